//! What trials show: effects with intervals, verdicts, and where to look next.
//!
//! Pure functions of numbers, which know nothing of databases, faults or files. The rules were chosen by simulation: how often
//! each calls equal things different was counted over eleven kinds of noise, from two trials up (`docs/statistics.md`). What
//! they rest on has its source beside it.
//!
//! Values are on a *working scale*, on which effects add up: the natural logarithm of latencies and rates, and
//! [`log_odds`] of shares. An effect `e` on the logarithmic scale is a change by the factor exp(e).

mod blocks;
pub mod capacity;
mod drift;
mod estimate;
mod independent;
mod many;
mod order;
mod planning;
mod quantiles;
mod recovery;
mod shares;
mod signed_rank;
mod zone;

pub use self::{
    blocks::{Comparison, Outcome, compare, differences, prediction_limits},
    drift::{SETTLED_HALF, Trend, change_over, change_point, fall, has_settled, mann_kendall},
    estimate::{Estimate, Method, effect_factor, effect_factor_at, estimate},
    independent::{Difference, difference},
    many::{Selection, benjamini_hochberg},
    order::{deviation, mean, median},
    planning::{Plan, enough_blocks, plan},
    quantiles::{chi_squared, student},
    recovery::{MedianOverTrials, Recovery, goodput_floor, median_over_trials, recovery},
    shares::{log_odds, log_odds_floor},
    zone::{Crossing, Zone},
};

/// The least standard error of a mean of logarithms: clocks, histograms and rounding know nothing finer.
pub const FLOOR: f64 = 2e-4;
/// What the error of verdicts is kept below.
pub const ALPHA: f64 = 0.05;
/// How often what "could have been seen" would have been: in four of five runs.
const POWER: f64 = 0.8;
