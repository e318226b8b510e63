//! How much memory packets on their way may take.

use std::fs;

const MIB: u64 = 1 << 20;

/// Bytes of memory that may be held; what comes beyond is dropped and counted. Buffers count as large as they are, with
/// what it takes to keep them.
#[derive(Debug, Clone, Copy)]
pub(in crate::emulator) struct Limits {
    /// By one link: 5 Gbit/s for 100 ms are 63 MB.
    pub(in crate::emulator) of_link: u64,
    /// By all together: else a few hundred slow links could take the whole machine.
    pub(in crate::emulator) of_all: u64,
}

impl Limits {
    /// A quarter of what is available now, within reason, for all; 128 MiB for each.
    pub(in crate::emulator) fn of_this_machine() -> Limits {
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        Limits::given(available(&meminfo))
    }

    fn given(available: Option<u64>) -> Limits {
        let (least, most) = (128 * MIB, 2_048 * MIB);
        // Where nobody tells, little.
        Limits { of_link: least, of_all: (available.unwrap_or(0) / 4).clamp(least, most) }
    }
}

/// MemAvailable of proc(5), in bytes.
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1_024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_links_get_a_quarter_of_what_is_available_within_reason() {
        let of_all = |meminfo| Limits::given(available(meminfo)).of_all / MIB;
        assert_eq!(of_all("MemTotal:  9 kB\nMemAvailable:    4194304 kB\n"), 1_024);
        assert_eq!(of_all("MemAvailable:    99999999999 kB\n"), 2_048);
        assert_eq!(of_all("MemAvailable:    1000 kB\n"), 128);
        assert_eq!(of_all("nothing of the kind"), 128);
        assert!(available(&fs::read_to_string("/proc/meminfo").unwrap()).is_some());
    }
}
