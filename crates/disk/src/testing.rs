//! What several unit tests need.

/// Gives the calling thread mounts of its own: what it mounts is seen by nobody else, and goes with it.
pub(crate) fn own_mounts() {
    use rustix::{
        mount::{MountPropagationFlags, mount_change},
        thread::{UnshareFlags, unshare_unsafe},
    };
    // SAFETY: the table of open files stays shared, so that no descriptor changes its meaning.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }.expect("this test needs root");
    mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE).unwrap();
}
