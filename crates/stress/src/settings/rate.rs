//! `-rate`: what makes operations start.

use brownout_load::{Arrivals, RateProfile};
use brownout_units::Rate as PerSecond;

use super::{
    Command, CommandKind, Length, Op, SettingsError, Share,
    command::ops,
    grammar::{Alternative, Extra, Pattern, Taken, multi, select, value},
    number,
    open::{self, Shape},
    search::{self, Search},
};

/// What makes operations start.
#[derive(Debug, Clone, PartialEq)]
pub enum Rate {
    /// The end of the previous operation: a closed loop. With a limit, not before its time in a schedule.
    Threads {
        /// How many there are.
        threads: u32,
        /// Their maximum rate.
        limit: Option<Limit>,
    },
    /// The same with more and more threads, one run for each number.
    Steps {
        /// In the first run.
        least: u32,
        /// In the last run at most.
        most: u32,
        /// Whether it ends when more threads no longer bring more.
        until_saturated: bool,
    },
    /// The clock: an open loop, in which nothing bounds what is outstanding.
    Open(Open),
    /// A clock of its own for every operation.
    PerOperation {
        /// The operations and their rates, all of them [`Share::Rate`]. Empty: only `arrivals=` is given, and the rates
        /// are those of the profiles.
        ops: Vec<Op>,
        /// How starts are spaced.
        arrivals: Arrivals,
    },
    /// An open loop, at higher and higher rates, until it no longer keeps an objective.
    Search(Search),
}

/// A rate that threads may not exceed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit {
    /// Partitions per second, over all threads.
    pub rate: PerSecond,
    /// What latencies count from.
    pub kind: LimitKind,
}

/// What latencies count from under a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitKind {
    /// `throttle=`: the actual start.
    Throttle,
    /// `fixed=`: the start that the schedule intended.
    Fixed,
}

/// An open loop.
#[derive(Debug, Clone, PartialEq)]
pub struct Open {
    /// How the rate changes with time.
    pub shape: Shape,
    /// How starts are spaced.
    pub arrivals: Arrivals,
}

impl Open {
    /// The engine's form. Reads the file of a trace.
    pub fn profile(&self) -> Result<RateProfile, SettingsError> {
        self.shape.profile()
    }
}

pub(super) fn alternatives() -> Vec<Alternative> {
    let threads = || value("threads=", Pattern::Digits, "so many clients, each waiting for its answer");
    vec![
        Alternative::new(vec![
            value("threads>=", Pattern::Digits, "at first so many clients").or("4"),
            value("threads<=", Pattern::Digits, "at last at most so many").or("1000"),
            value("auto", Pattern::Nothing, "stop when more clients bring no more"),
        ]),
        Alternative::new(vec![
            threads().required(),
            value("throttle=", Pattern::Rate, "no faster than this; latencies from the actual start").or("0/s"),
            value("fixed=", Pattern::Rate, "no faster than this; latencies from the intended start").or("0/s"),
        ]),
        Alternative::new(vec![
            value("open=", Pattern::Rate, "an open loop: operations start when they are due, whatever is outstanding"),
            value("fixed=", Pattern::Rate, "the same, with 'unbounded'"),
            value("unbounded", Pattern::Nothing, "fixed= without threads: outstanding operations are not bounded"),
            value("arrivals=", Pattern::Words("constant|poisson"), "how starts are spaced").or("constant"),
            value("ramp=", Pattern::Something, "[FROM/s,]DURATION: reach the rate evenly"),
            multi("steps", Vec::new(), Extra::Sequence, "one rate after the other: steps(1k/s=30s,2k/s=30s,1k/s=30s)"),
            multi(
                "sine",
                vec![
                    value("amplitude=", Pattern::Rate, "how far the rate swings from its mean"),
                    value("period=", Pattern::Time, "how long a swing takes"),
                ],
                Extra::Refused,
                "swing around the rate: sine(amplitude=500/s,period=60s)",
            ),
            value("trace=", Pattern::Something, "a file of rates: seconds and operations per second on each line"),
            multi("ops", Vec::new(), Extra::Pairs, "a rate for every operation: ops(insert=500/s,simple1=2k/s)"),
            multi(
                "search",
                search::options(),
                Extra::Words,
                "the highest rate that keeps objectives: search(slo=p99<20ms)",
            ),
            value("threads=", Pattern::Digits, "accepted; an open loop has no clients that wait"),
        ])
        .complete(open::complete),
    ]
}

impl Rate {
    pub(super) fn parse(
        words: Option<&[String]>,
        command: &Command,
        notes: &mut Vec<String>,
    ) -> Result<Self, SettingsError> {
        let own_rates = command.ops.iter().any(|op| matches!(op.share, Share::Rate(_)));
        let Some(words) = words else {
            return Ok(match (command.kind, command.length) {
                _ if own_rates => Rate::PerOperation { ops: command.ops.clone(), arrivals: Arrivals::Constant },
                (CommandKind::Write | CommandKind::CounterWrite, Length::Count(count)) if count > 0 => {
                    Rate::Threads { threads: 200, limit: None }
                }
                _ => Rate::Steps { least: 4, most: 1000, until_saturated: true },
            });
        };
        let (place, taken) = select("-rate", words, alternatives())?;
        let rate = match place {
            0 => {
                let least = number::whole("threads>=", taken.text("threads>="))?;
                let most = number::whole("threads<=", taken.text("threads<="))?;
                if least == 0 || least > most {
                    return Err(SettingsError::senseless(
                        format!("-rate threads>={least} threads<={most}"),
                        "write at least 1, and no more at first than at last",
                    ));
                }
                Rate::Steps { least, most, until_saturated: taken.flag("auto") }
            }
            1 => threads(&taken)?,
            _ => {
                if taken.given("threads=").is_some() {
                    notes.push(
                        "-rate threads= has no effect: in an open loop nothing bounds what is outstanding".into(),
                    );
                }
                ours(&taken, command, own_rates)?
            }
        };
        if own_rates && !matches!(rate, Rate::PerOperation { .. }) {
            return Err(SettingsError::senseless(
                "ops(…) gives every operation a rate, and -rate one to all of them",
                "leave -rate out, or give the operations weights",
            ));
        }
        Ok(rate)
    }

    /// Whether it is an open loop.
    pub fn is_open(&self) -> bool {
        matches!(self, Rate::Open(_) | Rate::PerOperation { .. } | Rate::Search(_))
    }

    pub(super) fn block(&self) -> String {
        let (threads, rate) = match self {
            Rate::Steps { least, most, until_saturated: true } => {
                return format!("  Auto: true\n  Min Threads: {least}\n  Max Threads: {most}\n");
            }
            Rate::Threads { threads, limit } => (i64::from(*threads), limit.map_or(0.0, |limit| limit.rate.get())),
            Rate::Open(open) => (-1, open.shape.base().map_or(0.0, PerSecond::get)),
            _ => (-1, 0.0),
        };
        format!("  Auto: false\n  Thread Count: {threads}\n  OpsPer Sec: {rate:.0}\n")
    }

    /// What cassandra-stress's block cannot show.
    pub(super) fn ours(&self) -> Vec<(&'static str, String)> {
        let spaced = |arrivals: &Arrivals| match arrivals {
            Arrivals::Constant => "constant".to_owned(),
            Arrivals::Poisson => "poisson".to_owned(),
        };
        match self {
            Rate::Threads { limit: None, .. } => vec![("Loop", "closed".to_owned())],
            Rate::Threads { limit: Some(limit), .. } => {
                let kind = match limit.kind {
                    LimitKind::Throttle => "throttle",
                    LimitKind::Fixed => "fixed",
                };
                vec![("Loop", format!("closed, {kind} at {}", limit.rate))]
            }
            Rate::Steps { least, most, until_saturated } => {
                let end = if *until_saturated { ", until more bring no more" } else { "" };
                vec![("Loop", format!("closed, {least} to {most} threads{end}"))]
            }
            Rate::Open(open) => vec![("Loop", format!("open, {}", open.shape)), ("Arrivals", spaced(&open.arrivals))],
            Rate::PerOperation { ops, arrivals } => {
                let rates = ops.iter().filter_map(|op| match op.share {
                    Share::Rate(rate) => Some(format!("{} {rate}", op.name)),
                    Share::Weight(_) => None,
                });
                let rates = rates.collect::<Vec<_>>().join(", ");
                vec![("Loop", format!("open, each operation by itself: {rates}")), ("Arrivals", spaced(arrivals))]
            }
            Rate::Search(search) => {
                vec![("Loop", format!("open, searching: {search}")), ("Arrivals", spaced(&search.arrivals))]
            }
        }
    }
}

fn threads(taken: &Taken) -> Result<Rate, SettingsError> {
    let threads: u32 = number::whole("threads=", taken.text("threads="))?;
    if threads == 0 {
        return Err(SettingsError::senseless("-rate threads=0", "write at least 1"));
    }
    let throttle = number::rate("throttle=", taken.text("throttle="))?;
    let fixed = number::rate("fixed=", taken.text("fixed="))?;
    let limit = match (throttle, fixed) {
        (Some(_), Some(_)) => {
            return Err(SettingsError::senseless(
                "can't have both fixed and throttle set, choose one.",
                "fixed= counts latencies from the intended start, throttle= from the actual one",
            ));
        }
        (Some(rate), None) => Some(Limit { rate, kind: LimitKind::Throttle }),
        (None, Some(rate)) => Some(Limit { rate, kind: LimitKind::Fixed }),
        (None, None) => None,
    };
    Ok(Rate::Threads { threads, limit })
}

fn ours(taken: &Taken, command: &Command, own_rates: bool) -> Result<Rate, SettingsError> {
    let arrivals = match taken.text("arrivals=").to_ascii_lowercase().as_str() {
        "poisson" => Arrivals::Poisson,
        _ => Arrivals::Constant,
    };
    if let Some(given) = taken.multi("search") {
        return Search::parse(given, arrivals).map(Rate::Search);
    }
    let ops = match taken.multi("ops") {
        Some(given) => Some(ops("-rate ops", given)?),
        None if own_rates => Some(command.ops.clone()),
        None => None,
    };
    let Some(ops) = ops else {
        let bare =
            !["open=", "fixed=", "trace="].iter().any(|option| taken.flag(option)) && taken.multi("steps").is_none();
        if bare && command.kind == CommandKind::User {
            return Ok(Rate::PerOperation { ops: Vec::new(), arrivals });
        }
        return Ok(Rate::Open(Open { shape: Shape::parse(taken)?, arrivals }));
    };
    if let Some(op) = ops.iter().find(|op| matches!(op.share, Share::Weight(_))) {
        return Err(SettingsError::senseless(
            format!("-rate ops(…) gives {} a weight", op.name),
            "write rates, such as ops(insert=500/s), and weights in the command's own ops(…)",
        ));
    }
    Ok(Rate::PerOperation { ops, arrivals })
}
