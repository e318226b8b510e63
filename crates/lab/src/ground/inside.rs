//! The mounts of a lab: what its processes see of the machine.

use std::{
    collections::BTreeSet,
    ffi::CStr,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use rustix::{
    fs::StatVfsMountFlags,
    mount::{MountFlags, MountPropagationFlags, mount, mount_bind, mount_bind_recursive, mount_change, mount_remount},
};

use crate::{LabError, hosts::Hosts};

/// Where things of the machine stand inside the lab: at the same short paths for every user and
/// every run, reachable for the database's user whatever the rights of the directories above them are.
#[derive(Debug)]
pub struct Furnished {
    /// The lab's own directory, a tmpfs; none: it has none, and sees the machine as it is.
    root: Option<PathBuf>,
    /// The `/proc` that the lab's first process came with: it goes on to show what runs outside of the lab.
    pub proc: File,
}

/// For filesystems that take none.
const NO_DATA: Option<&CStr> = None;
/// Candidates for the lab's directory: on every Linux, and rarely home to what a lab needs.
const PLACES: [&str; 5] = ["/run", "/mnt", "/media", "/srv", "/opt"];

/// Makes the mounts private, gives the lab its own `/proc`, its own `/etc/hosts`, and an empty
/// directory in a place that none of `used` lies in.
pub fn furnish(hosts: &[&Hosts], used: &[&Path]) -> Result<Furnished, LabError> {
    let failed = |doing: &'static str| move |source: io::Error| LabError::Ground { doing, source };
    let private = MountPropagationFlags::REC | MountPropagationFlags::PRIVATE;
    mount_change("/", private).map_err(|error| failed("make the mounts private")(error.into()))?;
    let proc = File::open("/proc").map_err(failed("open the machine's /proc"))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", flags, NO_DATA)
        .map_err(|error| failed("mount /proc of the lab's processes")(error.into()))?;
    let place = PLACES
        .iter()
        .map(Path::new)
        .find(|place| place.is_dir() && !used.iter().any(|path| path.starts_with(place)))
        .ok_or_else(|| {
            failed("find a place for the lab's directory")(io::Error::other(format!("none of {PLACES:?} is free")))
        })?;
    mount("lab", place, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, NO_DATA)
        .map_err(|error| failed("mount the lab's directory")(error.into()))?;
    let root = place.join("brownout");
    fs::create_dir_all(&root).map_err(failed("make the lab's directory"))?;
    let table = root.join("hosts");
    let mut lines = "127.0.0.1 localhost\n".to_owned();
    let mut known = BTreeSet::new();
    // Layouts of one run number their hosts alike.
    for host in hosts.iter().flat_map(|hosts| hosts.iter()).filter(|host| known.insert((host.service(), &host.name))) {
        lines.push_str(&format!("{} {}\n", host.service(), host.name));
    }
    fs::write(&table, lines).map_err(failed("write the lab's /etc/hosts"))?;
    mount_bind(&table, "/etc/hosts").map_err(|error| failed("mount the lab's /etc/hosts")(error.into()))?;
    Ok(Furnished { root: Some(root), proc })
}

/// Without any mount, for what is not within walls of its own ([`super::Walls::None`]): all stands where it is.
pub fn unfurnished() -> Result<Furnished, LabError> {
    let failed = |source| LabError::Ground { doing: "open the machine's /proc", source };
    Ok(Furnished { root: None, proc: File::open("/proc").map_err(failed)? })
}

impl Furnished {
    /// Makes a directory of the machine appear in the lab's directory as `name`, if the lab has one.
    pub fn bind(&self, directory: &Path, name: &str, read_only: bool) -> Result<PathBuf, LabError> {
        let Some(root) = &self.root else { return Ok(directory.to_owned()) };
        let target = root.join(name);
        let failed = |source| LabError::Bind { directory: directory.to_owned(), source };
        fs::create_dir_all(&target).map_err(failed)?;
        mount_bind_recursive(directory, &target).map_err(|error| failed(error.into()))?;
        if read_only {
            // Flags that the underlying mount has locked (a user namespace may not clear them) must be kept.
            let locked = locked_flags(&target).map_err(failed)?;
            let flags = MountFlags::BIND | MountFlags::RDONLY | locked;
            mount_remount(&target, flags, "").map_err(|error| failed(error.into()))?;
        }
        Ok(target)
    }
}

/// The flags of a mount that a less privileged namespace may not clear.
fn locked_flags(path: &Path) -> io::Result<MountFlags> {
    let shown = rustix::fs::statvfs(path)?.f_flag;
    let kept = [
        (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
        (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
    ];
    Ok(kept.into_iter().filter(|(flag, _)| shown.contains(*flag)).map(|(_, flag)| flag).collect())
}
