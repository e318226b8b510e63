//! What makes the operations of a load start, and so how many fewer there are when they take longer.

use brownout_record::{LoadDescription, LoadPart};

use super::{
    closed_loop::throughput_loss,
    delayed::{self, Extra},
    paths::Operation,
};
use crate::sums::PhaseSums;

/// A load, what it showed without a fault, and what is added to each of its operations.
pub(super) struct Loops<'a> {
    pub(super) load: &'a LoadDescription,
    pub(super) baseline: &'a PhaseSums,
    pub(super) operations: &'a [Operation<'a>],
    /// In their order, each with its share of all.
    pub(super) each: &'a [(f64, Vec<Extra>)],
}

impl Loops<'_> {
    /// Whether closed loops stand beside open ones.
    pub(super) fn are_mixed(&self) -> bool {
        !self.load.closed_beside_open().is_empty()
    }

    /// Whether the shares of the operations change with what they take: there are several, and some have users of their own. What
    /// is told of all together then has no one cause.
    pub(super) fn shift(&self) -> bool {
        self.load.parts.len() > 1 && self.load.parts.iter().any(|part| part.threads.is_some())
    }

    /// The share of its throughput that an operation, or all of the load, loses with one end of what is added. 0 where a clock starts
    /// the operations: what is offered stays.
    pub(super) fn slower(&self, operation: Option<&str>, end: fn(&Extra) -> f64) -> f64 {
        let parts = &self.load.parts;
        match operation.and_then(|name| parts.iter().find(|part| part.operation == name)) {
            Some(part) if part.threads.is_some() => self.of_part(part, end).map_or(0.0, |(_, loss)| loss),
            Some(_) => 0.0,
            // Each with its own users and its own mean: N₁ ÷ L₁ + N₂ ÷ L₂, before and after.
            None if parts.len() > 1 => {
                let each: Vec<(f64, f64)> = parts.iter().filter_map(|part| self.of_part(part, end)).collect();
                let before: f64 = each.iter().map(|(throughput, _)| throughput).sum();
                let lost: f64 = each.iter().map(|(throughput, loss)| throughput * loss).sum();
                if before > 0.0 { lost / before } else { 0.0 }
            }
            None if self.load.threads.is_some() => {
                let all = delayed::delayed(&delayed::of_all(self.each), end);
                throughput_loss(self.baseline.response().mean_ns(), &all)
            }
            None => 0.0,
        }
    }

    /// N ÷ L₀ of the users of one operation, per ns, and the share of it that they lose.
    fn of_part(&self, part: &LoadPart, end: fn(&Extra) -> f64) -> Option<(f64, f64)> {
        let at = self.operations.iter().position(|operation| operation.plan.operation == part.operation)?;
        let before_ns = self.baseline.response_of(&part.operation)?.mean_ns();
        let added = delayed::delayed(&self.each.get(at)?.1, end);
        let throughput = f64::from(part.threads?) / before_ns;
        (before_ns > 0.0).then(|| (throughput, throughput_loss(before_ns, &added)))
    }
}
