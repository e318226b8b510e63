//! What the engine is told of links, and asked about them.

use brownout_base::clock::monotonic_ns;

use super::engine::Engine;
use crate::{
    counters::LinkCounters,
    emulator::link::{LinkChange, LinkState},
    impairment::Impairment,
};

impl Engine {
    pub(in crate::emulator) fn add(&mut self, id: u64, links: &[usize], impairment: Impairment) {
        let now = monotonic_ns();
        links.iter().for_each(|&link| self.change(link, now, LinkChange::Add(id, impairment)));
    }

    pub(in crate::emulator) fn amend(&mut self, id: u64, impairment: Impairment) {
        self.change_where(|state| state.has(id), LinkChange::Amend(id, impairment));
    }

    pub(in crate::emulator) fn remove(&mut self, id: u64) {
        self.change_where(|state| state.has(id), LinkChange::Remove(id));
    }

    fn change_where(&mut self, which: impl Fn(&LinkState) -> bool, change: LinkChange) {
        let now = monotonic_ns();
        for link in 0..self.links.len() {
            if which(&self.links[link]) {
                self.change(link, now, change);
            }
        }
    }

    fn change(&mut self, link: usize, now_ns: u64, change: LinkChange) {
        self.links[link].change(now_ns, change);
        self.agenda.set(link, self.links[link].next_release_ns());
    }

    /// What the impairments of a link do.
    pub(in crate::emulator) fn effective(&self, link: usize) -> Vec<Impairment> {
        self.links[link].effective().collect()
    }

    /// The longest that each link holds a packet.
    pub(in crate::emulator) fn longest_holds_ns(&self) -> impl Iterator<Item = u64> {
        self.links.iter().map(LinkState::longest_hold_ns)
    }

    pub(in crate::emulator) fn take_counters(&mut self, fresh: Vec<LinkCounters>) -> Vec<LinkCounters> {
        std::mem::replace(&mut self.counters, fresh)
    }

    pub(in crate::emulator) fn unroutable(&self) -> Vec<u64> {
        self.unroutable.clone()
    }
}
