//! A link that takes only small packets.

use super::{Gate, Impairment, Kind, Stage};

pub(super) const KIND: Kind = Kind { is_asked: |impairment| impairment.mtu.is_some(), make: |_| Box::new(Mtu(None)) };

/// Of several, the smallest counts.
struct Mtu(Option<u16>);

impl Stage for Mtu {
    fn configure(&mut self, impairment: &Impairment) {
        self.0 = impairment.mtu;
    }

    fn report(&self, into: &mut Impairment) {
        into.mtu = self.0;
    }

    fn gate(&self, gate: &mut Gate) {
        gate.mtu = gate.mtu.into_iter().chain(self.0).min();
    }
}

#[cfg(test)]
mod tests {
    use super::{super::testing::stage, *};

    #[test]
    fn the_smallest_mtu_counts() {
        let mut gate = Gate::default();
        for (mtu, smallest) in [(1_400, 1_400), (1_280, 1_280), (1_500, 1_280)] {
            stage(&KIND, Impairment::NONE.with_mtu(mtu)).gate(&mut gate);
            assert_eq!(gate.mtu, Some(smallest));
        }
    }
}
