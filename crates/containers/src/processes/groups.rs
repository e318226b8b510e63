//! The control groups that are one container's own: where its processes are listed, how they are frozen, what they used.
//!
//! A runtime makes a group for each container and names it after the container's id: `/docker/ID`, `docker-ID.scope`,
//! `libpod-ID.scope`, `cri-containerd-ID.scope` (cgroups(7), Documentation/admin-guide/cgroup-v2.rst).

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::freezer::Freezer;

/// A name that is shorter could be part of another one's.
const LEAST_ID: usize = 12;

/// Which hierarchy a directory is of: the names of its files differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    One,
    Two,
}

/// The groups of a container. All are empty for processes that no runtime has put into a group of their own.
#[derive(Debug, Clone, Default)]
pub(super) struct Groups {
    /// Where its processes are listed, with all directories below.
    members: Option<PathBuf>,
    /// What freezes them.
    pub(super) freezer: Option<Freezer>,
    /// The file that counts their CPU time.
    counter: Option<(Version, PathBuf)>,
}

/// A directory that is the container's own.
#[derive(Debug, PartialEq, Eq)]
struct Own {
    version: Version,
    /// `freezer`, `cpu,cpuacct`; nothing in the second version.
    controllers: String,
    path: PathBuf,
}

impl Groups {
    /// The groups of the container of this id, whose main process this is.
    pub(super) fn of(pid: u32, id: &str) -> Groups {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let own = own(id, &text(&format!("/proc/{pid}/cgroup")), &text("/proc/self/mountinfo"));
        // What does not list the process is another's, or is seen from another namespace.
        let own: Vec<Own> = own.into_iter().filter(|own| listed(&own.path).contains(&pid)).collect();
        let second = own.iter().find(|own| own.version == Version::Two);
        let first = |controller: &str| {
            let mut first = own.iter().filter(|own| own.version == Version::One);
            first.find(|own| own.controllers.split(',').any(|one| one == controller))
        };
        let freezers = [second, first("freezer")].into_iter().flatten();
        let mut freezers = freezers.filter_map(|own| Freezer::of(own.version, &own.path));
        let second_counter = second.map(|own| (Version::Two, own.path.join("cpu.stat")));
        let first_counter = first("cpuacct").map(|own| (Version::One, own.path.join("cpuacct.usage")));
        Groups {
            members: second.or(own.first()).map(|own| own.path.clone()),
            freezer: freezers.next(),
            counter: first_counter.into_iter().chain(second_counter).find(|(_, path)| path.exists()),
        }
    }

    /// The processes in them; none where there are no groups.
    pub(super) fn pids(&self) -> Option<Vec<u32>> {
        self.members.as_deref().map(listed)
    }

    /// CPU time that the processes in them have used since the groups were made, ns.
    pub(super) fn cpu_ns(&self) -> Option<u64> {
        let (version, path) = self.counter.as_ref()?;
        let text = fs::read_to_string(path).ok()?;
        match version {
            Version::One => text.trim().parse().ok(),
            Version::Two => keyed(&text, "usage_usec")?.checked_mul(1_000),
        }
    }
}

/// The value behind a key, in lines "key value".
pub(super) fn keyed(text: &str, key: &str) -> Option<u64> {
    let mut words = text.lines().filter_map(|line| line.split_once(' '));
    words.find(|(name, _)| *name == key)?.1.trim().parse().ok()
}

/// The processes in a group and in those below it.
fn listed(directory: &Path) -> Vec<u32> {
    // A group of threads alone does not say its processes; it stands below one that does.
    let text = fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
    // 0 is a process that cannot be seen from our PID namespace.
    let mut pids: Vec<u32> = text.lines().filter_map(|line| line.parse().ok()).filter(|pid| *pid != 0).collect();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            pids.extend(listed(&entry.path()));
        }
    }
    pids
}

/// From `/proc/PID/cgroup` (`hierarchy:controllers:path`) and `/proc/self/mountinfo` (proc(5)).
fn own(id: &str, groups: &str, mounts: &str) -> Vec<Own> {
    if id.len() < LEAST_ID {
        return Vec::new();
    }
    let mut found = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else { continue };
        let Some((version, root, point)) = mounts.lines().find_map(|line| mounted(line, controllers)) else { continue };
        // One outside of what is mounted here cannot be reached.
        let Ok(below) = Path::new(path).strip_prefix(root) else { continue };
        let mut path = PathBuf::from(point);
        let mut is_own = false;
        for part in below.components() {
            path.push(part);
            is_own = part.as_os_str().to_string_lossy().contains(id);
            if is_own || part.as_os_str() == ".." {
                break;
            }
        }
        if is_own {
            found.push(Own { version, controllers: controllers.to_owned(), path });
        }
    }
    found
}

/// Version, root and mount point, if this line of mountinfo is of the hierarchy with these controllers.
fn mounted<'a>(line: &'a str, controllers: &str) -> Option<(Version, &'a str, &'a str)> {
    let (mount, kind) = line.split_once(" - ")?;
    let mut mount = mount.split(' ').skip(3);
    let (root, point) = (mount.next()?, mount.next()?);
    let mut kind = kind.split(' ');
    let version = match (kind.next()?, controllers) {
        ("cgroup2", "") => Version::Two,
        ("cgroup", some) if !some.is_empty() => {
            let options = kind.nth(1)?;
            let all = some.split(',').all(|controller| options.split(',').any(|option| option == controller));
            all.then_some(Version::One)?
        }
        _ => return None,
    };
    Some((version, root, point))
}

#[cfg(test)]
mod tests {
    use super::*;

    const V2: &str = "29 22 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
    const V1: &str = "33 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
                      37 31 0:34 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n\
                      41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
    const ID: &str = "0123456789abcdef";

    fn paths(id: &str, groups: &str, mounts: &str) -> Vec<String> {
        own(id, groups, mounts).iter().map(|own| own.path.display().to_string()).collect()
    }

    #[test]
    fn the_group_of_a_container_is_the_one_that_bears_its_id_whatever_is_below_it() {
        assert_eq!(
            paths(ID, "0::/system.slice/docker-0123456789abcdef.scope\n", V2),
            ["/sys/fs/cgroup/system.slice/docker-0123456789abcdef.scope"]
        );
        assert_eq!(
            paths(ID, "0::/machine.slice/libpod-0123456789abcdef.scope/container/init.scope\n", V2),
            ["/sys/fs/cgroup/machine.slice/libpod-0123456789abcdef.scope"]
        );
        let groups = "4:freezer:/docker/0123456789abcdef\n1:cpu,cpuacct:/docker/0123456789abcdef\n0::/\n";
        let found = own(ID, groups, V1);
        assert_eq!(
            found,
            [
                Own {
                    version: Version::One,
                    controllers: "freezer".to_owned(),
                    path: "/sys/fs/cgroup/freezer/docker/0123456789abcdef".into()
                },
                Own {
                    version: Version::One,
                    controllers: "cpu,cpuacct".to_owned(),
                    path: "/sys/fs/cgroup/cpu,cpuacct/docker/0123456789abcdef".into()
                },
            ]
        );
    }

    #[test]
    fn a_group_that_is_shared_out_of_reach_or_not_mounted_is_not_its_own() {
        assert_eq!(paths(ID, "0::/user.slice\n", V2), [""; 0], "it bears no id");
        assert_eq!(paths("", "0::/user.slice\n", V2), [""; 0], "no id is in every name");
        assert_eq!(paths("0123", "0::/docker/0123456789abcdef\n", V2), [""; 0], "too short to be one's own");
        assert_eq!(paths(ID, "0::/../docker/0123456789abcdef\n", V2), [""; 0], "outside of our namespace");
        assert_eq!(paths(ID, "4:freezer:/docker/0123456789abcdef\n", V2), [""; 0], "not mounted");
        let inner = "29 22 0:26 /docker/fedcba9876543210 /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n";
        assert_eq!(paths(ID, "0::/docker/0123456789abcdef\n", inner), [""; 0], "another one's mount");
    }

    #[test]
    fn this_process_is_in_no_group_of_a_containers_own() {
        let groups = Groups::of(std::process::id(), "brownout-has-no-such-container");
        assert!(groups.pids().is_none() && groups.freezer.is_none() && groups.cpu_ns().is_none());
    }
}
