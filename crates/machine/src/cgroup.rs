//! The control groups that this process is in: of each controller, its own directory and all above it.
//!
//! Limits hold for everything below them, so each one is the least of all directories on the way up (cgroups(7),
//! Documentation/admin-guide/cgroup-v2.rst).

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Which hierarchy a directory is of: the names of its files differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    One,
    Two,
}

/// A directory of a control group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Directory {
    pub(crate) version: Version,
    pub(crate) path: PathBuf,
}

impl Directory {
    /// The text of one of its files.
    pub(crate) fn read(&self, file: &str) -> Option<String> {
        fs::read_to_string(self.path.join(file)).ok()
    }

    /// A file that holds one number.
    pub(crate) fn number(&self, file: &str) -> Option<u64> {
        self.read(file)?.trim().parse().ok()
    }

    /// A number of a file of lines "key value".
    pub(crate) fn keyed(&self, file: &str, key: &str) -> Option<u64> {
        keyed(&self.read(file)?, key)
    }
}

/// The value behind a key, in lines "key value".
pub(crate) fn keyed(text: &str, key: &str) -> Option<u64> {
    let mut words = text.lines().filter_map(|line| line.split_once(' '));
    words.find(|(name, _)| *name == key)?.1.trim().parse().ok()
}

/// The directories of this process for a controller (`cpu`, `memory`), its own first; none where there are none.
pub(crate) fn own(controller: &str) -> Vec<Directory> {
    let text = |path| fs::read_to_string(path).unwrap_or_default();
    directories(controller, &text("/proc/self/cgroup"), &text("/proc/self/mountinfo"))
}

/// From `/proc/PID/cgroup` (`hierarchy:controllers:path`) and `/proc/PID/mountinfo` (proc(5)).
fn directories(controller: &str, groups: &str, mounts: &str) -> Vec<Directory> {
    let mut found = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else { continue };
        let version = match controllers {
            "" => Version::Two,
            some if some.split(',').any(|one| one == controller) => Version::One,
            _ => continue,
        };
        let Some((root, point)) = mounts.lines().find_map(|line| mounted(line, version, controller)) else { continue };
        // In a container the hierarchy is often mounted from the container's own group on, while the path is told from
        // the top; and one outside of a cgroup namespace's root begins with "/..". Then the mount's root is all there is.
        let below = Path::new(path).strip_prefix(root).unwrap_or(Path::new(""));
        let below = if below.components().any(|part| part.as_os_str() == "..") { Path::new("") } else { below };
        // `join` with nothing would end in a slash.
        let own: PathBuf = Path::new(point).components().chain(below.components()).collect();
        let all = own.ancestors().take_while(|directory| directory.starts_with(point));
        found.extend(all.map(|path| Directory { version, path: path.to_owned() }));
    }
    found
}

/// Root and mount point, if this line of mountinfo is of the hierarchy asked for.
fn mounted<'a>(line: &'a str, version: Version, controller: &str) -> Option<(&'a str, &'a str)> {
    let (place, kind) = line.split_once(" - ")?;
    let mut place = place.split(' ').skip(3);
    let (root, point) = (place.next()?, place.next()?);
    let mut kind = kind.split(' ');
    let right = match (kind.next()?, version) {
        ("cgroup2", Version::Two) => true,
        ("cgroup", Version::One) => kind.nth(1)?.split(',').any(|option| option == controller),
        _ => false,
    };
    right.then_some((root, point))
}

#[cfg(test)]
mod tests {
    use super::*;

    const V2: &str = "29 22 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
    const V1: &str = "33 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
                      36 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                      41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

    fn paths(controller: &str, groups: &str, mounts: &str) -> Vec<String> {
        let found = directories(controller, groups, mounts);
        found.iter().map(|directory| directory.path.display().to_string()).collect()
    }

    #[test]
    fn limits_are_looked_for_from_the_own_group_up_to_the_mount() {
        assert_eq!(
            paths("cpu", "0::/user.slice/lab.scope\n", V2),
            ["/sys/fs/cgroup/user.slice/lab.scope", "/sys/fs/cgroup/user.slice", "/sys/fs/cgroup"]
        );
        let groups = "4:memory:/docker/abc\n1:cpu,cpuacct:/docker/abc\n0::/\n";
        assert_eq!(
            paths("memory", groups, V1),
            [
                "/sys/fs/cgroup/memory/docker/abc",
                "/sys/fs/cgroup/memory/docker",
                "/sys/fs/cgroup/memory",
                "/sys/fs/cgroup/unified"
            ]
        );
        let cpu = directories("cpu", groups, V1);
        assert_eq!(cpu[0].path, Path::new("/sys/fs/cgroup/cpu,cpuacct/docker/abc"));
        assert_eq!((cpu[0].version, cpu[3].version), (Version::One, Version::Two));
    }

    #[test]
    fn a_group_that_is_not_mounted_is_none_and_one_mounted_as_root_is_the_mount() {
        assert_eq!(paths("cpu", "0::/a\n", ""), [""; 0]);
        assert_eq!(paths("cpu", "", V2), [""; 0]);
        let container = "29 22 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n";
        assert_eq!(paths("cpu", "0::/docker/abc/in\n", container), ["/sys/fs/cgroup/in", "/sys/fs/cgroup"]);
        assert_eq!(paths("cpu", "0::/../other\n", container), ["/sys/fs/cgroup"]);
        assert_eq!(paths("cpu", "0::/../other\n", V2), ["/sys/fs/cgroup"]);
    }

    #[test]
    fn numbers_stand_behind_their_keys() {
        let text = "usage_usec 7\ninactive_file 12\ntotal_inactive_file 13\n";
        assert_eq!(keyed(text, "inactive_file"), Some(12));
        assert_eq!(keyed(text, "file"), None);
    }
}
