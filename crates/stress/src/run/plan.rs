//! The operations of a run according to the settings, created anew for every phase.

use brownout_generate::{
    distribution::Spec,
    seeds::{self, SeedSettings},
};
use brownout_load::{Arrivals, Pace, Table};

use super::RunError;
use crate::{
    operations::{Flow, Kind, Named, Operations, Permits},
    output::Measure,
    settings::{Generator, Length, LimitKind, Rate, Seeds, Settings, Share},
};

/// An operation of the plan: a name, its weight, and the kinds that implement it (one, except for `validate`).
pub struct Planned {
    /// As it is printed.
    pub name: String,
    /// Its weight among all operations.
    pub weight: f64,
    /// The kinds that implement it.
    pub kinds: Vec<Box<dyn Kind>>,
    /// Index of the only coordinator that it goes to.
    pub pin: Option<u16>,
}

/// Where operations come from: the predefined commands, or profiles.
pub trait Source {
    /// Names and weights of the operations, in the order in which they are shown.
    fn operations(&self) -> Vec<(String, f64)>;

    /// Creates the operations, starting with their first partition; `only`: just the one at this index.
    ///
    /// # Errors
    /// Something cannot be created as requested.
    fn plan(&self, only: Option<usize>) -> Result<Vec<Planned>, RunError>;

    /// The CQL statements, to which kinds refer by index.
    fn statements(&self) -> Vec<String>;

    /// The tables, to which routes refer by index.
    fn tables(&self) -> Vec<Table>;

    /// Those of them that are read.
    fn tables_read(&self) -> Vec<Table>;

    /// Whether anything is written.
    fn updates(&self) -> bool;

    /// `[READ, WRITE]`, or `READ` of a single predefined command.
    fn description(&self) -> String;

    /// The profiles it comes from: files and their texts.
    fn profiles(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Names of the operations, likewise.
    fn names(&self) -> Vec<String> {
        self.operations().into_iter().map(|(name, _)| name).collect()
    }
}

/// The default seed of a run. cassandra-stress uses the clock; here runs can be repeated.
pub const SEED: i64 = 1;

/// The seed of all random choices.
pub fn seed(settings: &Settings) -> i64 {
    settings.command.seed.unwrap_or(SEED)
}

/// How seeds are handed out to a generator.
pub fn seeds_flavour(generator: Generator) -> seeds::Flavour {
    match generator {
        Generator::V2 => seeds::Flavour::Fixed,
        Generator::Compat => seeds::Flavour::Compat,
    }
}

/// How partitions are chosen; visits are as on the command line.
pub fn seed_settings(settings: &Settings, flavour: seeds::Flavour) -> SeedSettings {
    let range = match &settings.population.seeds {
        Seeds::Sequence { first, last, wrap, read_lookback } => {
            seeds::SeedRange::Sequence { first: *first, last: *last, wrap: *wrap, lookback: read_lookback.clone() }
        }
        Seeds::Distribution(spec) => seeds::SeedRange::Drawn(spec.clone()),
    };
    SeedSettings {
        visits: settings.insert.visits.clone(),
        revisit: settings.insert.revisit.clone(),
        ..SeedSettings::new(range, flavour, seed(settings) as u64)
    }
}

/// The operations of one phase: in one flow, or each in its own if each has a rate.
///
/// # Errors
/// Something cannot be made as asked.
pub fn operations(
    source: &dyn Source,
    settings: &Settings,
    only: Option<usize>,
    partitions: Option<u64>,
) -> Result<Operations, RunError> {
    let planned = source.plan(only)?;
    let rates = matches!(settings.rate, Rate::PerOperation { .. }) && only.is_none();
    let mut kinds = Vec::new();
    let mut weights: Vec<Vec<(usize, f64)>> = Vec::new();
    for Planned { name, weight, kinds: own, pin } in planned {
        let share = weight / own.len().max(1) as f64;
        let first = kinds.len();
        kinds.extend(own.into_iter().map(|kind| Named { name: name.clone(), kind, pin }));
        weights.push((first..kinds.len()).map(|kind| (kind, share)).collect());
    }
    let run = if only.is_some() { Spec::Fixed(1) } else { settings.command.clustering.clone() };
    let flows = if rates {
        let flow = |kinds: Vec<(usize, f64)>| Flow {
            kinds: kinds.into_iter().map(|(kind, _)| (kind, 1.0)).collect(),
            run: Spec::Fixed(1),
        };
        weights.into_iter().map(flow).collect()
    } else {
        vec![Flow { kinds: weights.into_iter().flatten().collect(), run }]
    };
    Ok(Operations {
        kinds,
        flows,
        statements: source.statements(),
        tables: source.tables(),
        permits: Permits::new(partitions),
        stop_on_error: stops_on_error(settings),
        tell_statements: settings.log.statements_on_error,
        seed: seed(settings),
    })
}

/// Whether the first failed operation ends the run. A search continues: there a failure is a result like any other,
/// slower than any bound.
pub fn stops_on_error(settings: &Settings) -> bool {
    !settings.errors.ignore && !matches!(settings.rate, Rate::Search(_))
}

/// How many partitions a run may visit; `None`: unlimited.
pub fn partitions(settings: &Settings) -> Option<u64> {
    match settings.command.length {
        Length::Count(count) => Some(count),
        Length::Time(_) | Length::Uncertainty(_) => None,
    }
}

/// The paces of a run's flows.
///
/// # Errors
/// The file of a trace cannot be read; an operation without a rate, or a rate for an operation that does not exist.
pub fn paces(names: &[String], settings: &Settings) -> Result<Vec<Pace>, RunError> {
    let one = |pace| Ok(vec![pace]);
    match &settings.rate {
        Rate::Threads { threads, limit: None } => one(Pace::Closed { threads: *threads }),
        Rate::Threads { threads, limit: Some(limit) } => one(Pace::Limited { threads: *threads, rate: limit.rate }),
        // The steps set the number of threads; until then nothing runs.
        Rate::Steps { least, .. } => one(Pace::Closed { threads: *least }),
        Rate::Open(open) => {
            let pace = match open.shape {
                crate::settings::Shape::Constant(rate) => Pace::Open { rate, arrivals: open.arrivals },
                _ => Pace::Varying { profile: open.profile()?, arrivals: open.arrivals },
            };
            one(pace)
        }
        Rate::Search(search) => one(Pace::Open { rate: search.from, arrivals: search.arrivals }),
        Rate::PerOperation { ops, arrivals } => {
            for op in ops {
                if !names.iter().any(|name| name.eq_ignore_ascii_case(&op.name)) {
                    return Err(RunError::Unfit {
                        what: format!("ops({}=…) is none of the operations: {}", op.name, names.join(", ")),
                        remedy: "give a rate to each of these, and to no other",
                    });
                }
            }
            let pace = |name: &String| {
                let found = ops.iter().find(|op| op.name.eq_ignore_ascii_case(name)).map(|op| op.share);
                match found {
                    Some(Share::Rate(rate)) => Ok(Pace::Open { rate, arrivals: *arrivals }),
                    _ => Err(RunError::Unfit {
                        what: format!("operation {name} has no rate"),
                        remedy: "give every operation a rate, or give one rate to all with open=",
                    }),
                }
            };
            names.iter().map(pace).collect()
        }
    }
}

/// Whether operations have an intended start, so that they can wait for it.
pub fn has_schedule(settings: &Settings) -> bool {
    !matches!(settings.rate, Rate::Threads { limit: None, .. } | Rate::Steps { .. })
}

/// Which latency the columns of a run show: as in cassandra-stress, `throttle=` has a schedule but shows service times.
pub fn measure(settings: &Settings) -> Measure {
    match &settings.rate {
        Rate::Threads { limit: Some(limit), .. } if limit.kind == LimitKind::Throttle => Measure::Service,
        _ if has_schedule(settings) => Measure::Response,
        _ => Measure::Service,
    }
}

/// Whether only the clock makes operations start.
pub fn is_open(settings: &Settings) -> bool {
    settings.rate.is_open()
}

/// The most operations open at a time, if that is bounded.
pub fn users(settings: &Settings) -> Option<u32> {
    match &settings.rate {
        Rate::Threads { threads, .. } => Some(*threads),
        Rate::Steps { most, .. } => Some(*most),
        Rate::Open(_) | Rate::PerOperation { .. } | Rate::Search(_) => None,
    }
}

/// The load in words, for people.
pub fn words(settings: &Settings) -> String {
    let arrivals = |arrivals: &Arrivals| match arrivals {
        Arrivals::Constant => "constant arrivals",
        Arrivals::Poisson => "Poisson arrivals",
    };
    match &settings.rate {
        Rate::Threads { threads, limit: None } => format!("{threads} threads"),
        Rate::Threads { threads, limit: Some(limit) } => format!("{threads} threads, at most {}", limit.rate),
        Rate::Steps { least, most, .. } => format!("{least} to {most} threads"),
        Rate::Open(open) => format!("an open loop, {}, {}", open.shape, arrivals(&open.arrivals)),
        Rate::PerOperation { ops, arrivals: spaced } => {
            let rate = |op: &crate::settings::Op| match op.share {
                Share::Rate(rate) => format!("{} {rate}", op.name),
                Share::Weight(weight) => format!("{} {weight}", op.name),
            };
            let rates: Vec<String> = ops.iter().map(rate).collect();
            format!("an open loop, {}, {}", rates.join(", "), arrivals(spaced))
        }
        Rate::Search(search) => format!("a search: {search}"),
    }
}

/// What a run line says after the threads.
pub fn until(settings: &Settings) -> String {
    match settings.command.length {
        Length::Time(time) => match settings.command.written_duration() {
            Some((number, unit)) => format!("{number} {}", unit.to_ascii_lowercase()),
            None => format!("{} seconds", time.as_secs_f64()),
        },
        Length::Count(count) => format!("for {count} iteration"),
        Length::Uncertainty(uncertainty) => format!("until stderr of mean < {}", uncertainty.target),
    }
}

/// Number of partitions that the warm-up visits for each operation, and of threads that visit them.
pub fn warm_up(settings: &Settings) -> (u64, u32) {
    let quarter = match settings.command.length {
        Length::Count(count) => count / 4,
        Length::Time(_) | Length::Uncertainty(_) => u64::MAX,
    };
    let iterations = if settings.command.warmup { quarter.min(50_000) } else { 0 };
    (iterations * settings.node.hosts.len() as u64, users(settings).unwrap_or(100).min(100))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_lasts_as_long_as_was_written_in_the_unit_that_was_written() {
        for (length, said) in [
            ("duration=30s", "30 seconds"),
            ("duration=90s", "90 seconds"),
            ("duration=5m", "5 minutes"),
            ("duration=1M", "1 minutes"),
            ("duration=2h", "2 hours"),
            ("duration=1000s", "1000 seconds"),
            ("duration=1.5s", "1.5 seconds"),
            ("duration=500ms", "0.5 seconds"),
            ("duration=2min", "120 seconds"),
            ("n=1500", "for 1500 iteration"),
            ("err<0.05", "until stderr of mean < 0.05"),
        ] {
            let settings = Settings::parse(&["write", length]).unwrap();
            assert_eq!(until(&settings), said, "{length}");
        }
    }
}
