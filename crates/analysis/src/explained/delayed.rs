//! What the delays that faults ask for add to operations.

use serde::Serialize;

use super::{
    Model,
    paths::{Operation, Way},
    subjects::Delays,
};

/// A share k of the operations meets an extra delay D.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Delayed {
    /// k: of all operations, 0 to 1.
    pub share: f64,
    /// D: the mean of these, ns; 0 without any.
    pub delay_ns: f64,
    /// k·D: the mean of all, ns.
    pub mean_ns: f64,
}

/// Some operations, and what is added to each of them.
pub(super) struct Extra {
    /// Of all operations looked at, 0 to 1.
    pub(super) share: f64,
    /// If the database chooses the best for them, ns.
    pub(super) least_ns: f64,
    /// If it chooses the worst.
    pub(super) most_ns: f64,
}

/// What is added to each way of an operation; nothing waits for longer than the client does.
pub(super) fn of_operation(model: &Model<'_>, operation: &Operation<'_>, with: &Delays, timeout_ns: u64) -> Vec<Extra> {
    let of = |way: &Way| {
        let load = model.hosts.load();
        let own = way.client(load, with) - way.client(load, &model.usual);
        let least = way.least(load, with) - way.least(load, &model.usual);
        let most = own + way.grows(&|path| model.usual.path(path), &|path| with.path(path));
        let most_ns = most.min(timeout_ns as f64);
        Extra { share: way.share, least_ns: least.clamp(0.0, most_ns), most_ns }
    };
    operation.ways.iter().map(of).collect()
}

/// The same of all operations, each with its share.
pub(super) fn of_all(each: &[(f64, Vec<Extra>)]) -> Vec<Extra> {
    let of = |(share, extras): &(f64, Vec<Extra>)| -> Vec<Extra> {
        let scaled = |one: &Extra| Extra { share: share * one.share, ..*one };
        extras.iter().map(scaled).collect()
    };
    each.iter().flat_map(of).collect()
}

/// k, D and k·D.
pub(super) fn delayed(extras: &[Extra], of: fn(&Extra) -> f64) -> Delayed {
    let mean_ns: f64 = extras.iter().map(|one| one.share * of(one)).sum();
    let share: f64 = extras.iter().filter(|one| of(one) > 0.0).map(|one| one.share).sum();
    Delayed { share, delay_ns: if share > 0.0 { mean_ns / share } else { 0.0 }, mean_ns }
}

/// How far a value lies beyond the nearer end; 0 between both.
pub(super) fn remainder(measured: f64, least: f64, most: f64) -> f64 {
    measured - measured.clamp(least, most.max(least))
}
