//! The mix of operations: `ratio(…)` and `ops(…)`.

use super::{
    super::{SettingsError, grammar::Taken, number},
    Op, Share,
    kind::CommandKind::{self, self as K},
};

/// The given ratios, or one read for one write.
pub(super) fn ratio(given: Option<&Taken>) -> Result<Vec<(CommandKind, f64)>, SettingsError> {
    let names = [
        (K::Read, "read="),
        (K::Write, "write="),
        (K::CounterWrite, "counter_write="),
        (K::CounterRead, "counter_read="),
    ];
    let mut ratio = Vec::new();
    if let Some(given) = given {
        for (kind, name) in names {
            if let Some(text) = given.given(name) {
                ratio.push((kind, number::whole(name, text)?));
            }
        }
    }
    if ratio.is_empty() {
        ratio = vec![(K::Read, 1.0), (K::Write, 1.0)];
    }
    if ratio.iter().all(|(_, weight)| *weight == 0.0) {
        return Err(SettingsError::senseless(
            "Must specify at least one command with a non-zero ratio",
            "write, for example, ratio(read=1,write=1)",
        ));
    }
    Ok(ratio)
}

/// Weights, or rates: mixing both in one list makes no sense.
pub(in crate::settings) fn ops(option: &str, given: &Taken) -> Result<Vec<Op>, SettingsError> {
    let mut ops = Vec::new();
    for (name, text) in given.pairs() {
        let wrong = || {
            SettingsError::senseless(
                format!("Invalid {option} specification: {name}={text}"),
                "write a weight, such as 2 or 0.5, or a rate, such as 500/s",
            )
        };
        let share = if text.contains('/') {
            Share::Rate(number::rate(name, text)?.ok_or_else(wrong)?)
        } else {
            Share::Weight(
                text.parse().ok().filter(|weight: &f64| weight.is_finite() && *weight >= 0.0).ok_or_else(wrong)?,
            )
        };
        ops.push(Op { name: name.clone(), share });
    }
    let rates = ops.iter().filter(|op| matches!(op.share, Share::Rate(_))).count();
    if rates != 0 && rates != ops.len() {
        return Err(SettingsError::senseless(
            format!("{option}(…) mixes weights and rates"),
            "give every operation a weight, or every operation a rate",
        ));
    }
    if ops.iter().all(|op| op.share == Share::Weight(0.0)) {
        return Err(SettingsError::senseless(
            "Must specify at least one command with a non-zero ratio",
            "write, for example, ops(insert=1)",
        ));
    }
    Ok(ops)
}
