//! The operations that a command line names, found in its profiles.

use brownout_load::Arrivals;
use brownout_yaml::nearest;

use super::Profile;
use crate::settings::{Op, Rate, Settings, SettingsError, Share};

/// An operation of a profile.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// As the command line names it.
    pub name: String,
    /// Place of the profile.
    pub profile: usize,
    /// What it does.
    pub what: What,
    /// How much of it.
    pub share: Share,
}

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// Writes rows.
    Insert,
    /// Reads partitions and compares them with what was written.
    Validate,
    /// A query, by its place.
    Query(usize),
    /// A token range query, by its place.
    TokenRange(usize),
}

/// Finds the operations: `insert`, `validate`, a query or a token range query of the first profile, or of the one whose
/// name and a dot come before. Their case does not matter.
///
/// # Errors
/// There is no such profile, or nothing of this name in it.
pub fn resolve(ops: &[Op], profiles: &[Profile]) -> Result<Vec<Resolved>, SettingsError> {
    ops.iter().map(|op| one(op, profiles)).collect()
}

fn one(op: &Op, profiles: &[Profile]) -> Result<Resolved, SettingsError> {
    let (profile, name) = match op.name.rsplit_once('.').filter(|(spec, name)| !spec.is_empty() && !name.is_empty()) {
        None => (0, op.name.as_str()),
        Some((spec, name)) => {
            let place = profiles.iter().position(|profile| profile.name == spec).ok_or_else(|| {
                let known: Vec<&str> = profiles.iter().map(|profile| profile.name.as_str()).collect();
                SettingsError::senseless(
                    format!("Op name {} contains an invalid profile specname: {spec}", op.name),
                    match nearest(spec, known.iter().copied()) {
                        Some(nearest) => format!("did you mean '{nearest}'?"),
                        None => format!("the profiles are {}", known.join(", ")),
                    },
                )
            })?;
            (place, name)
        }
    };
    let Some(here) = profiles.get(profile) else {
        return Err(SettingsError::senseless(format!("{} has no profile", op.name), "write profile=FILE"));
    };
    let query = || here.queries.iter().position(|query| query.name.eq_ignore_ascii_case(name)).map(What::Query);
    let range = || {
        here.token_range_queries.iter().position(|query| query.name.eq_ignore_ascii_case(name)).map(What::TokenRange)
    };
    let what = match name.to_ascii_lowercase().as_str() {
        "insert" => What::Insert,
        "validate" => What::Validate,
        _ => query().or_else(range).ok_or_else(|| {
            let known: Vec<&str> = ["insert", "validate"]
                .into_iter()
                .chain(here.queries.iter().map(|query| query.name.as_str()))
                .chain(here.token_range_queries.iter().map(|query| query.name.as_str()))
                .collect();
            SettingsError::senseless(
                format!("No query defined with name {name}"),
                match nearest(name, known.iter().copied()) {
                    Some(nearest) => format!("{} has {}; did you mean '{nearest}'?", here.file, known.join(", ")),
                    None => format!("{} has {}", here.file, known.join(", ")),
                },
            )
        })?,
    };
    Ok(Resolved { name: op.name.clone(), profile, what, share: op.share })
}

impl Resolved {
    /// `rate:` of the operation, in its profile.
    fn own_rate(&self, profiles: &[Profile]) -> Option<brownout_units::Rate> {
        let profile = profiles.get(self.profile)?;
        match self.what {
            What::Insert => profile.insert.request.rate,
            What::Validate => None,
            What::Query(place) => profile.queries.get(place)?.request.rate,
            What::TokenRange(place) => profile.token_range_queries.get(place)?.request.rate,
        }
    }
}

/// What makes operations start, with the rates that profiles give: they count if all operations have one, and the command
/// line has none and no `-rate`. A note says so where they are overruled.
///
/// # Errors
/// Some operations have a rate and some have none; `-rate ops(…)` does not name the operations of the command.
pub fn rate(
    settings: &Settings,
    ops: &[Resolved],
    profiles: &[Profile],
    notes: &mut Vec<String>,
) -> Result<Rate, SettingsError> {
    if let Rate::PerOperation { ops: rated, arrivals } = &settings.rate {
        // Rates of -rate ops(…) may come in another order than the command's operations.
        let lacks = ops.iter().find(|op| !rated.iter().any(|rated| rated.name == op.name));
        let stranger = rated.iter().find(|rated| !ops.iter().any(|op| op.name == rated.name));
        if let Some(name) = lacks.map(|op| &op.name).or(stranger.map(|op| &op.name)) {
            return Err(SettingsError::senseless(
                format!("-rate ops(…) and the command's ops(…) do not both have {name}"),
                "name the same operations in both, or write the rates into the command's",
            ));
        }
        return Ok(Rate::PerOperation { ops: rated.clone(), arrivals: *arrivals });
    }
    let rated = ops.iter().filter(|op| op.own_rate(profiles).is_some()).count();
    if rated == 0 {
        return Ok(settings.rate.clone());
    }
    if !settings.rate_is_default {
        notes.push("rate: in profiles has no effect: -rate is given".to_owned());
        return Ok(settings.rate.clone());
    }
    let with_rate = |op: &Resolved| match op.own_rate(profiles) {
        Some(rate) => Ok(Op { name: op.name.clone(), share: Share::Rate(rate) }),
        None => Err(SettingsError::senseless(
            format!("{} has no rate:, but other operations have one", op.name),
            match op.what {
                What::Validate => {
                    "profiles give validate none: write the rates of all into the command, as in \
                     ops(insert=500/s,validate=100/s)"
                }
                _ => "give every operation of ops(…) a rate: in its profile, or write the rates on the command line",
            },
        )),
    };
    Ok(Rate::PerOperation { ops: ops.iter().map(with_rate).collect::<Result<_, _>>()?, arrivals: Arrivals::Constant })
}
