//! The impairments on one link, one on top of another.

use brownout_base::Link;

use super::{
    bottleneck::Bottleneck,
    random,
    stages::{FLIGHT, Fate, ORDER, Stage},
};
use crate::impairment::{Cut, Impairment, RateLimit};

/// Each impairment has its own stages, with their own memory, as long as it stays. A link without any costs nothing.
pub(in crate::emulator) struct Impairments {
    seed: u64,
    link: Link,
    /// The oldest first.
    installed: Vec<Installed>,
    /// In the order in which packets meet them.
    stages: Vec<InstalledStage>,
    /// How many impairments there ever were.
    came: u32,
    /// How many of them drew from the seed of now.
    drawn: u32,
    idle: bool,
    gate: Gate,
}

struct Installed {
    id: u64,
    /// How many there were on this link before.
    ordinal: u32,
    /// What its stages draw from: of the same seed, and the same sequence of impairments, the same.
    draws: (u64, u32),
    asked: Impairment,
}

struct InstalledStage {
    position: StagePosition,
    stage: Box<dyn Stage>,
    asked: Impairment,
}

/// Where packets meet a stage: by group, then by impairment, then by kind within the group.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct StagePosition {
    group: u8,
    ordinal: u32,
    kind: u8,
}

/// What keeps packets from entering a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::emulator) struct Gate {
    /// Nothing enters. Of several impairments, the oldest that cuts says how.
    pub(in crate::emulator) cut: Option<Cut>,
    /// Larger packets do not. Of several, the smallest counts.
    pub(in crate::emulator) mtu: Option<u16>,
}

impl Impairments {
    pub(in crate::emulator) fn new(seed: u64, link: Link) -> Self {
        let (installed, stages) = (Vec::new(), Vec::new());
        Impairments { seed, link, installed, stages, came: 0, drawn: 0, idle: true, gate: Gate::default() }
    }

    /// Impairments that come from now on draw from this, as on a link that has never had one. Those that stay keep what they
    /// drew; so that no two have one place, they are counted on from.
    pub(in crate::emulator) fn reseed(&mut self, seed: u64) {
        self.seed = seed;
        self.drawn = 0;
    }

    /// True when packets pass as if there were none.
    pub(in crate::emulator) fn is_idle(&self) -> bool {
        self.idle
    }

    /// What does not even enter.
    pub(in crate::emulator) fn gate(&self) -> Gate {
        self.gate
    }

    /// Decides about packets that enter together, behind one that leaves the link at `last_release_ns`.
    pub(in crate::emulator) fn decide(
        &mut self,
        bottleneck: &mut Bottleneck,
        last_release_ns: u64,
        fates: &mut Vec<Fate>,
    ) {
        let behind = self.stages.partition_point(|installed| installed.position.group < FLIGHT);
        let (before, behind) = self.stages.split_at_mut(behind);
        before.iter_mut().for_each(|installed| installed.stage.decide(&installed.asked, fates));
        bottleneck.decide(fates);
        behind.iter_mut().for_each(|installed| installed.stage.decide(&installed.asked, fates));
        bottleneck.keep_order(last_release_ns, fates);
    }

    /// The one rate that counts: the least, and of equal ones the oldest.
    pub(in crate::emulator) fn rate(&self) -> Option<RateLimit> {
        self.effective().filter_map(|impairment| impairment.rate).min_by_key(|limit| limit.rate.bits_per_second())
    }

    /// What is in force, the oldest first, without those that do nothing.
    pub(in crate::emulator) fn effective(&self) -> impl Iterator<Item = Impairment> {
        self.installed.iter().map(|one| one.asked).filter(|asked| *asked != Impairment::NONE)
    }

    pub(in crate::emulator) fn has(&self, id: u64) -> bool {
        self.installed.iter().any(|one| one.id == id)
    }

    pub(in crate::emulator) fn add(&mut self, id: u64, asked: Impairment) {
        self.installed.push(Installed { id, ordinal: self.came, draws: (self.seed, self.drawn), asked });
        self.came = self.came.wrapping_add(1);
        self.drawn = self.drawn.wrapping_add(1);
        self.configure(self.installed.len() - 1);
        self.changed();
    }

    pub(in crate::emulator) fn amend(&mut self, id: u64, asked: Impairment) {
        if let Some(at) = self.installed.iter().position(|one| one.id == id) {
            self.installed[at].asked = asked;
            self.configure(at);
            self.changed();
        }
    }

    pub(in crate::emulator) fn remove(&mut self, id: u64) {
        if let Some(at) = self.installed.iter().position(|one| one.id == id) {
            let gone = self.installed.remove(at);
            self.stages.retain(|installed| installed.position.ordinal != gone.ordinal);
            self.changed();
        }
    }

    /// Gives an impairment's stages their part to do; makes those that it lacks.
    fn configure(&mut self, at: usize) {
        let Installed { ordinal, draws: (seed, drawn), asked, .. } = self.installed[at];
        let mut stream = 0;
        for (group, kinds) in (0..).zip(ORDER) {
            for (kind, how) in (0..).zip(kinds) {
                let position = StagePosition { group, ordinal, kind };
                match self.stages.binary_search_by_key(&position, |installed| installed.position) {
                    Ok(found) => self.stages[found].asked = asked,
                    Err(free) if (how.is_asked)(&asked) => {
                        let stage = (how.make)(random::stream(seed, self.link, drawn, stream));
                        self.stages.insert(free, InstalledStage { position, stage, asked });
                    }
                    Err(_) => {}
                }
                stream += 1;
            }
        }
    }

    fn changed(&mut self) {
        let cut = self.effective().find_map(|asked| asked.cut);
        let mtu = self.effective().filter_map(|asked| asked.mtu).min();
        self.gate = Gate { cut, mtu };
        let idle = self.effective().next().is_none();
        self.idle = idle;
    }
}

#[cfg(test)]
#[path = "impairments_tests.rs"]
mod tests;
