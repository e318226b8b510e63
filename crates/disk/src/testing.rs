//! What several unit tests need.

/// Gives the calling thread mounts of its own: what it mounts is seen by nobody else, and goes with it.
pub(crate) fn own_mounts() {
    // SAFETY: constants only.
    unsafe {
        let unshared = libc::unshare(libc::CLONE_NEWNS);
        assert_eq!(unshared, 0, "this test needs root: {}", std::io::Error::last_os_error());
        let none = std::ptr::null();
        libc::mount(none, c"/".as_ptr(), none, libc::MS_REC | libc::MS_PRIVATE, none.cast());
    }
}
