//! What can happen to wire packets on a link, one file each.
//!
//! A new impairment is a file with a [`Stage`], a line in [`pipeline`], and whatever it needs to
//! say about a packet in [`Fate`].

mod delay;
mod loss;

use crate::{impairment::Impairment, link::Link};

use super::random::Random;

/// What becomes of one wire packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Fate {
    /// It vanishes.
    pub(super) lost: bool,
    /// How long it is held, in nanoseconds.
    pub(super) hold_ns: u64,
}

/// One kind of thing that can be wrong with a link, with its own randomness and memory.
pub(super) trait Stage: Send {
    /// From now on do your part of `impairment`. Memory of packets gone by is kept.
    fn configure(&mut self, impairment: &Impairment);

    /// Writes what it does into its part of `into`.
    fn report(&self, into: &mut Impairment);

    /// Decides about packets that enter together, in their order. What an earlier stage has lost
    /// never comes here as far as a stage is concerned: it must leave it lost.
    fn decide(&mut self, packets: &mut [Fate]);
}

/// The stages of one link, in the order in which packets meet them.
pub(super) struct Stages {
    stages: Vec<Box<dyn Stage>>,
    idle: bool,
}

/// The order is part of what an impairment means: what is lost is not delayed.
pub(super) fn pipeline(seed: u64, link: Link) -> Stages {
    let random = |stage| Random::of(seed, link, stage);
    Stages { stages: vec![Box::new(loss::Loss::new(random(0))), Box::new(delay::Delay::new(random(1)))], idle: true }
}

impl Stages {
    /// True when packets pass as if there were no stages.
    pub(super) fn is_idle(&self) -> bool {
        self.idle
    }

    pub(super) fn configure(&mut self, impairment: &Impairment) {
        self.stages.iter_mut().for_each(|stage| stage.configure(impairment));
        self.idle = self.report() == Impairment::NONE;
    }

    /// What the stages really do.
    pub(super) fn report(&self) -> Impairment {
        let mut impairment = Impairment::NONE;
        self.stages.iter().for_each(|stage| stage.report(&mut impairment));
        impairment
    }

    pub(super) fn decide(&mut self, packets: &mut [Fate]) {
        self.stages.iter_mut().for_each(|stage| stage.decide(packets));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::HostId;
    use brownout_units::Delay;

    fn stages(seed: u64, impairment: Impairment) -> Stages {
        let mut stages = pipeline(seed, Link { from: HostId(0), to: HostId(1) });
        stages.configure(&impairment);
        stages
    }

    fn fates(stages: &mut Stages, packets: usize) -> Vec<Fate> {
        let mut fates = vec![Fate::default(); packets];
        stages.decide(&mut fates);
        fates
    }

    #[test]
    fn stages_report_exactly_what_they_were_given() {
        let impairment = Impairment::delay(Delay::from_ns(1_234_567))
            .with_jitter(Delay::from_ms(1))
            .with_loss("0.1%".parse().unwrap());
        let mut stages = stages(1, impairment);
        assert_eq!(stages.report(), impairment);
        assert!(!stages.is_idle());
        stages.configure(&Impairment::NONE);
        assert!(stages.is_idle());
    }

    #[test]
    fn the_same_seed_has_the_same_fates_and_superframes_draw_like_single_packets() {
        let impairment = Impairment::delay(Delay::from_ms(10)).with_jitter(Delay::from_ms(5));
        let impairment = impairment.with_loss("20%".parse().unwrap());
        let together = fates(&mut stages(7, impairment), 100);
        let mut one_by_one = stages(7, impairment);
        let apart: Vec<Fate> = (0..100).flat_map(|_| fates(&mut one_by_one, 1)).collect();
        assert_eq!(together, apart);
        assert_ne!(together, fates(&mut stages(8, impairment), 100));
    }

    #[test]
    fn jitter_does_not_change_which_packets_are_lost() {
        let lossy = Impairment::loss("20%".parse().unwrap());
        let lost = |impairment| fates(&mut stages(7, impairment), 1_000).iter().map(|f| f.lost).collect::<Vec<_>>();
        assert_eq!(lost(lossy), lost(lossy.with_jitter(Delay::from_ms(1))));
    }
}
