//! Memory that this process may still take: of the machine, and of its cgroups.

use std::fs;

use crate::cgroup::{self, Directory, Version};

/// Bytes that can still be taken without swapping and without meeting a limit; none where nobody tells.
///
/// Of the machine it is MemAvailable (proc(5)); of each cgroup its limit − what is used, file pages that nobody has
/// looked at for a while (`inactive_file`) left out, since the kernel drops those first.
pub fn available_memory() -> Option<u64> {
    let machine = meminfo(&fs::read_to_string("/proc/meminfo").unwrap_or_default(), "MemAvailable:");
    cgroup::own("memory").iter().filter_map(left).chain(machine).min()
}

/// Bytes of memory in the machine, or what the cgroups give of it; 0 where nobody tells.
pub fn total_memory() -> u64 {
    let machine = meminfo(&fs::read_to_string("/proc/meminfo").unwrap_or_default(), "MemTotal:");
    cgroup::own("memory").iter().filter_map(limit).chain(machine).min().unwrap_or(0)
}

/// What a group may still take.
fn left(directory: &Directory) -> Option<u64> {
    let limit = limit(directory)?;
    let (used, idle) = match directory.version {
        Version::Two => (directory.number("memory.current")?, directory.keyed("memory.stat", "inactive_file")),
        Version::One => {
            (directory.number("memory.usage_in_bytes")?, directory.keyed("memory.stat", "total_inactive_file"))
        }
    };
    Some(limit.saturating_sub(used.saturating_sub(idle.unwrap_or(0))))
}

/// A group's limit. Version 1 says "none" by the largest multiple of a page that fits into 63 bits, version 2 by "max".
/// `memory.high` slows down those who go beyond, which spoils a measurement as well.
fn limit(directory: &Directory) -> Option<u64> {
    match directory.version {
        Version::Two => ["memory.max", "memory.high"].iter().filter_map(|file| directory.number(file)).min(),
        Version::One => directory.number("memory.limit_in_bytes").filter(|limit| *limit < 1 << 62),
    }
}

/// A line of `/proc/meminfo`, bytes.
fn meminfo(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1_024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_group_may_still_take_leaves_idle_file_pages_out() {
        let directory = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| fs::write(directory.path().join(file), text).unwrap();
        let two = Directory { version: Version::Two, path: directory.path().to_owned() };
        assert_eq!(left(&two), None, "the root has no limit");
        write("memory.max", "1000000\n");
        write("memory.high", "max\n");
        write("memory.current", "700000\n");
        write("memory.stat", "anon 1\ninactive_file 200000\nactive_file 5\n");
        assert_eq!(left(&two), Some(500_000));
        write("memory.high", "600000\n");
        assert_eq!(left(&two), Some(100_000));
        write("memory.current", "9000000\n");
        assert_eq!(left(&two), Some(0));

        let one = Directory { version: Version::One, path: directory.path().to_owned() };
        write("memory.limit_in_bytes", "9223372036854771712\n");
        write("memory.usage_in_bytes", "700\n");
        assert_eq!(left(&one), None, "no limit");
        write("memory.limit_in_bytes", "1000\n");
        write("memory.stat", "inactive_file 1\ntotal_inactive_file 200\n");
        assert_eq!(left(&one), Some(500));
    }

    #[test]
    fn the_machine_says_what_is_available() {
        assert_eq!(meminfo("MemTotal:  9 kB\nMemAvailable:    4 kB\n", "MemAvailable:"), Some(4_096));
        assert_eq!(meminfo("nothing of the kind", "MemAvailable:"), None);
        assert!(available_memory().unwrap() < total_memory());
    }
}
