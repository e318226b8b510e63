//! How much memory packets on their way may take.

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
    /// A quarter of what is available now, of the machine and of our cgroup, within reason, for all; 128 MiB for each.
    pub(in crate::emulator) fn of_this_machine() -> Limits {
        Limits::given(brownout_machine::available_memory())
    }

    fn given(available: Option<u64>) -> Limits {
        let (least, most) = (128 * MIB, 2_048 * MIB);
        // Where nobody tells, little.
        Limits { of_link: least, of_all: (available.unwrap_or(0) / 4).clamp(least, most) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_links_get_a_quarter_of_what_is_available_within_reason() {
        let of_all = |available| Limits::given(available).of_all / MIB;
        assert_eq!(of_all(Some(4_096 * MIB)), 1_024);
        assert_eq!(of_all(Some(u64::MAX)), 2_048);
        assert_eq!(of_all(Some(MIB)), 128);
        assert_eq!(of_all(None), 128);
    }
}
