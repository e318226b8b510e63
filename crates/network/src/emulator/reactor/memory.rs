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
    /// A quarter of what is available now, of the machine and of our cgroup, or of `share` where that is less, within
    /// reason, for all; 128 MiB for each.
    pub(in crate::emulator) fn within(share: Option<u64>) -> Limits {
        Limits::given(least(brownout_machine::available_memory(), share))
    }

    fn given(available: Option<u64>) -> Limits {
        let (least, most) = (128 * MIB, 2_048 * MIB);
        // Where nobody tells, little.
        Limits { of_link: least, of_all: (available.unwrap_or(0) / 4).clamp(least, most) }
    }
}

/// The less of both; of one that nobody tells the other.
fn least(available: Option<u64>, share: Option<u64>) -> Option<u64> {
    available.into_iter().chain(share).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_networks_each_counts_on_its_share() {
        assert_eq!(least(Some(8), Some(3)), Some(3));
        assert_eq!(least(Some(2), Some(3)), Some(2), "no more than there is");
        assert_eq!((least(None, Some(3)), least(Some(8), None), least(None, None)), (Some(3), Some(8), None));
    }

    #[test]
    fn all_links_get_a_quarter_of_what_is_available_within_reason() {
        let of_all = |available| Limits::given(available).of_all / MIB;
        assert_eq!(of_all(Some(4_096 * MIB)), 1_024);
        assert_eq!(of_all(Some(u64::MAX)), 2_048);
        assert_eq!(of_all(Some(MIB)), 128);
        assert_eq!(of_all(None), 128);
    }
}
