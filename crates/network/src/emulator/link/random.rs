//! Randomness that belongs to one stage of one impairment on one link.

use brownout_base::{
    Link,
    random::{Random, derive},
};

/// The stream of one stage of the `ordinal`-th impairment that this link has had: it depends on nothing else, so that
/// neither traffic on other links nor another stage nor another impairment changes what is drawn.
pub(in crate::emulator) fn stream(seed: u64, link: Link, ordinal: u32, stage: u8) -> Random {
    let pair = u64::from(link.from.0) << 32 | u64::from(link.to.0);
    Random::new([pair, u64::from(ordinal), u64::from(stage)].into_iter().fold(seed, derive))
}

#[cfg(test)]
mod tests {
    use brownout_base::HostId;

    use super::*;

    fn link(from: u16, to: u16) -> Link {
        Link { from: HostId(from), to: HostId(to) }
    }

    fn first(seed: u64, link: Link, ordinal: u32, stage: u8) -> [u64; 4] {
        let mut random = stream(seed, link, ordinal, stage);
        std::array::from_fn(|_| random.word())
    }

    #[test]
    fn a_stream_depends_on_seed_link_impairment_and_stage_and_on_nothing_else() {
        let drawn = first(7, link(0, 1), 0, 0);
        assert_eq!(drawn, first(7, link(0, 1), 0, 0));
        for other in [
            first(8, link(0, 1), 0, 0),
            first(7, link(1, 0), 0, 0),
            first(7, link(0, 2), 0, 0),
            first(7, link(0, 1), 1, 0),
            first(7, link(0, 1), 0, 1),
        ] {
            assert_ne!(drawn, other);
        }
    }
}
