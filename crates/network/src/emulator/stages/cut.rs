//! A link that lets nothing in.

use super::{Gate, Impairment, Kind, Stage};
use crate::impairment;

pub(super) const KIND: Kind = Kind { is_asked: |impairment| impairment.cut.is_some(), make: |_| Box::new(Cut(None)) };

/// Of several, the oldest says how.
struct Cut(Option<impairment::Cut>);

impl Stage for Cut {
    fn configure(&mut self, impairment: &Impairment) {
        self.0 = impairment.cut;
    }

    fn report(&self, into: &mut Impairment) {
        into.cut = self.0;
    }

    fn gate(&self, gate: &mut Gate) {
        gate.cut = gate.cut.or(self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::{super::testing::stage, *};

    #[test]
    fn the_first_cut_says_how() {
        let cut = |how| stage(&KIND, Impairment::cut(how));
        let mut gate = Gate::default();
        cut(impairment::Cut::Reject).gate(&mut gate);
        cut(impairment::Cut::Drop).gate(&mut gate);
        assert_eq!(gate, Gate { cut: Some(impairment::Cut::Reject), mtu: None });
    }
}
