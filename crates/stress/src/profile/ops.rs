//! Finds the operations that a command line names in its profiles.

use brownout_load::{Arrivals, Consistency, SerialConsistency};
use brownout_yaml::nearest;

use super::{Profile, RequestSpec};
use crate::settings::{Op, Rate, Settings, SettingsError, Share};

/// An operation of a profile.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// As the command line names it.
    pub name: String,
    /// Index of the profile.
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
    /// Reads partitions, and compares them with what was written.
    Validate,
    /// A query, by its index.
    Query(usize),
    /// A token range query, by its index.
    TokenRange(usize),
}

/// Finds the operations: `insert`, `validate`, a query or a token range query of the first profile, or of the profile
/// whose name precedes it with a dot. Their case does not matter.
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
    /// Whether any of it is to run: weight 0 leaves it out.
    pub fn is_asked(&self) -> bool {
        self.share != Share::Weight(0.0)
    }

    /// The levels it runs at: those of its profile, for inserts first those of `-insert`, else the command's.
    pub fn levels(&self, settings: &Settings, profiles: &[Profile]) -> (Consistency, SerialConsistency) {
        let request = self.request(profiles);
        let insert = (self.what == What::Insert).then_some(&settings.insert);
        let consistency = insert.and_then(|insert| insert.consistency).or(request.and_then(|own| own.consistency));
        let serial =
            insert.and_then(|insert| insert.serial_consistency).or(request.and_then(|own| own.serial_consistency));
        (consistency.unwrap_or(settings.command.consistency), serial.unwrap_or(settings.command.serial_consistency))
    }

    /// The request settings in its profile.
    pub fn request<'a>(&self, profiles: &'a [Profile]) -> Option<&'a RequestSpec> {
        let profile = profiles.get(self.profile)?;
        match self.what {
            What::Insert => Some(&profile.insert.request),
            What::Validate => None,
            What::Query(place) => profile.queries.get(place).map(|query| &query.request),
            What::TokenRange(place) => profile.token_range_queries.get(place).map(|query| &query.request),
        }
    }

    /// `rate:` of the operation, in its profile.
    fn own_rate(&self, profiles: &[Profile]) -> Option<brownout_units::Rate> {
        self.request(profiles)?.rate
    }
}

/// What makes operations start, including the rates that profiles give: these count if all operations have one, and the
/// command line has neither rates nor a `-rate` with anything but `arrivals=`. An operation of weight 0 is left out.
/// Notes say what is overruled.
///
/// # Errors
/// Some operations have a rate and some do not; `-rate ops(…)` does not name the operations of the command.
pub fn rate(
    settings: &Settings,
    ops: &[Resolved],
    profiles: &[Profile],
    notes: &mut Vec<String>,
) -> Result<Rate, SettingsError> {
    let asked: Vec<&Resolved> = ops.iter().filter(|op| op.is_asked()).collect();
    let any_own = asked.iter().any(|op| op.own_rate(profiles).is_some());
    let rate = match &settings.rate {
        Rate::PerOperation { ops: rated, arrivals } if rated.is_empty() => own_rates(&asked, profiles, *arrivals)?,
        Rate::PerOperation { ops: rated, .. } => {
            same_names(rated, &asked)?;
            settings.rate.clone()
        }
        _ if any_own && settings.rate_is_default => own_rates(&asked, profiles, Arrivals::Constant)?,
        given => given.clone(),
    };
    let Rate::PerOperation { ops: rated, .. } = &rate else {
        if any_own {
            notes.push("rate: in profiles has no effect: -rate is given".to_owned());
        }
        return Ok(rate);
    };
    let overruled = |op: &&Resolved| {
        let own = op.own_rate(profiles).map(Share::Rate);
        own.is_some() && rated.iter().all(|rated| rated.name != op.name || Some(rated.share) != own)
    };
    if asked.iter().any(overruled) {
        notes.push("rate: in profiles has no effect: the command line has rates".to_owned());
    }
    notes.extend(idle_weights(settings, &asked));
    Ok(rate)
}

/// Rates in -rate ops(…) may be in another order than the command's operations.
fn same_names(rated: &[Op], asked: &[&Resolved]) -> Result<(), SettingsError> {
    let lacks = asked.iter().find(|op| !rated.iter().any(|rated| rated.name == op.name)).map(|op| &op.name);
    let stranger = rated.iter().find(|rated| !asked.iter().any(|op| op.name == rated.name)).map(|op| &op.name);
    match lacks.or(stranger) {
        None => Ok(()),
        Some(name) => Err(SettingsError::senseless(
            format!("-rate ops(…) and the command's ops(…) do not both have {name}"),
            "name the same operations in both, or write the rates into the command's; one of weight 0 is left out",
        )),
    }
}

/// Every operation with the rate that its profile gives it.
fn own_rates(asked: &[&Resolved], profiles: &[Profile], arrivals: Arrivals) -> Result<Rate, SettingsError> {
    if asked.iter().all(|op| op.own_rate(profiles).is_none()) {
        return Err(SettingsError::senseless(
            "-rate names no rate, and the profiles have none",
            "write open=1000/s, or give every operation of ops(…) a rate",
        ));
    }
    let with_rate = |op: &&Resolved| match op.own_rate(profiles) {
        Some(rate) => Ok(Op { name: op.name.clone(), share: Share::Rate(rate) }),
        None => Err(SettingsError::senseless(
            format!("{} has no rate:, but other operations have one", op.name),
            match op.what {
                What::Validate => {
                    "profiles give validate none: write the rates of all into the command, as in \
                     ops(insert=500/s,validate=100/s)"
                }
                _ => {
                    "give every operation of ops(…) a rate: in its profile, or write the rates on the command line; weight 0 \
                     leaves one out"
                }
            },
        )),
    };
    Ok(Rate::PerOperation { ops: asked.iter().map(with_rate).collect::<Result<_, _>>()?, arrivals })
}

/// The part of the command's mix that has no effect where operations have rates. Equal weights ask for nothing.
fn idle_weights(settings: &Settings, asked: &[&Resolved]) -> Vec<String> {
    let mut notes = Vec::new();
    if !asked.iter().all(|op| matches!(op.share, Share::Weight(_))) {
        return notes;
    }
    if asked.windows(2).any(|pair| pair[0].share != pair[1].share) {
        notes.push("weights of ops(…) have no effect: every operation has a rate of its own".to_owned());
    }
    if settings.words.iter().any(|word| word.to_ascii_lowercase().starts_with("clustering=")) {
        notes.push("clustering= has no effect: operations with rates of their own do not follow each other".to_owned());
    }
    notes
}
