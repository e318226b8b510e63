//! The mounts of a lab: what its processes see of the machine.

use std::{
    ffi::CString,
    fs::{self, File},
    io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use crate::{LabError, hosts::Hosts};

/// Where things of the machine stand inside the lab: at the same short paths for every user and
/// every run, reachable for the database's user whatever the rights of the directories above them are.
#[derive(Debug)]
pub struct Furnished {
    /// The lab's own directory, a tmpfs.
    pub root: PathBuf,
    /// The `/proc` that the lab's first process came with: it goes on to show what runs outside of the lab.
    pub proc: File,
}

/// Candidates for the lab's directory: on every Linux, and rarely home to what a lab needs.
const PLACES: [&str; 5] = ["/run", "/mnt", "/media", "/srv", "/opt"];

/// Makes the mounts private, gives the lab its own `/proc`, its own `/etc/hosts`, and an empty
/// directory in a place that none of `used` lies in.
pub fn furnish(hosts: &Hosts, used: &[&Path]) -> Result<Furnished, LabError> {
    let failed = |doing: &'static str| move |source: io::Error| LabError::Ground { doing, source };
    mount(None, Path::new("/"), None, libc::MS_REC | libc::MS_PRIVATE).map_err(failed("make the mounts private"))?;
    let proc = File::open("/proc").map_err(failed("open the machine's /proc"))?;
    mount(
        Some(Path::new("proc")),
        Path::new("/proc"),
        Some("proc"),
        libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC,
    )
    .map_err(failed("mount /proc of the lab's processes"))?;
    let place = PLACES
        .iter()
        .map(Path::new)
        .find(|place| place.is_dir() && !used.iter().any(|path| path.starts_with(place)))
        .ok_or_else(|| {
            failed("find a place for the lab's directory")(io::Error::other(format!("none of {PLACES:?} is free")))
        })?;
    mount(Some(Path::new("lab")), place, Some("tmpfs"), libc::MS_NOSUID | libc::MS_NODEV)
        .map_err(failed("mount the lab's directory"))?;
    let root = place.join("brownout");
    fs::create_dir_all(&root).map_err(failed("make the lab's directory"))?;
    let table = root.join("hosts");
    let mut lines = "127.0.0.1 localhost\n".to_owned();
    for host in hosts.iter() {
        lines.push_str(&format!("{} {}\n", host.address, host.name));
    }
    fs::write(&table, lines).map_err(failed("write the lab's /etc/hosts"))?;
    mount(Some(&table), Path::new("/etc/hosts"), None, libc::MS_BIND).map_err(failed("mount the lab's /etc/hosts"))?;
    Ok(Furnished { root, proc })
}

impl Furnished {
    /// Makes a directory of the machine appear in the lab's directory as `name`.
    pub fn bind(&self, directory: &Path, name: &str, read_only: bool) -> Result<PathBuf, LabError> {
        let target = self.root.join(name);
        let failed = |source| LabError::Bind { directory: directory.to_owned(), source };
        fs::create_dir_all(&target).map_err(failed)?;
        mount(Some(directory), &target, None, libc::MS_BIND | libc::MS_REC).map_err(failed)?;
        if read_only {
            // Flags that the underlying mount has locked (a user namespace may not clear them) must be kept.
            let locked = mount_flags(&target).map_err(failed)?;
            mount(None, &target, None, libc::MS_REMOUNT | libc::MS_BIND | libc::MS_RDONLY | locked).map_err(failed)?;
        }
        Ok(target)
    }
}

/// The flags of a mount that a less privileged namespace may not clear, as mount(2) wants them.
fn mount_flags(path: &Path) -> io::Result<libc::c_ulong> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: a zeroed statvfs is a valid place for the answer, and the path ends in NUL.
    let flags = unsafe {
        let mut answer: libc::statvfs = std::mem::zeroed();
        if libc::statvfs(path.as_ptr(), &raw mut answer) != 0 {
            return Err(io::Error::last_os_error());
        }
        answer.f_flag
    };
    let kept = [
        (libc::ST_NOSUID, libc::MS_NOSUID),
        (libc::ST_NODEV, libc::MS_NODEV),
        (libc::ST_NOEXEC, libc::MS_NOEXEC),
        (libc::ST_NOATIME, libc::MS_NOATIME),
        (libc::ST_NODIRATIME, libc::MS_NODIRATIME),
        (libc::ST_RELATIME, libc::MS_RELATIME),
    ];
    Ok(kept.into_iter().filter(|(shown, _)| flags & shown != 0).fold(0, |all, (_, flag)| all | flag))
}

fn mount(source: Option<&Path>, target: &Path, kind: Option<&str>, flags: libc::c_ulong) -> io::Result<()> {
    let text = |path: &Path| CString::new(path.as_os_str().as_bytes());
    let source = source.map(text).transpose()?;
    let target = text(target)?;
    let kind = kind.map(CString::new).transpose()?;
    let pointer = |text: &Option<CString>| text.as_ref().map_or(std::ptr::null(), |text| text.as_ptr());
    // SAFETY: all pointers are null or end in NUL and outlive the call.
    let done = unsafe { libc::mount(pointer(&source), target.as_ptr(), pointer(&kind), flags, std::ptr::null()) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
