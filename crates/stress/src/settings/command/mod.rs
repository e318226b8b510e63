//! Commands: what to do, for how long, and at which consistency.

mod block;
mod kind;
mod mix;
mod options;

use std::time::Duration;

use brownout_generate::distribution::Spec;
use brownout_load::{Consistency, SerialConsistency};
use brownout_units::Rate;

use super::{
    SettingsError,
    grammar::{Taken, select},
    level::{consistency, serial},
    number,
};
pub use kind::CommandKind;
use kind::CommandKind as K;
pub(super) use mix::ops;
pub(super) use options::alternatives;
use options::{LengthKind, lengths};

/// When a run ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Length {
    /// After this many partitions. 0: only the schema is created.
    Count(u64),
    /// After this time.
    Time(Duration),
    /// When the standard error of the mean row rate is small.
    Uncertainty(Uncertainty),
}

/// `err<0.02 n>30 n<200`
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Uncertainty {
    /// Standard error over mean.
    pub target: f64,
    /// Not before this many intervals.
    pub least: u64,
    /// After this many at the latest.
    pub most: u64,
}

/// When tables are truncated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truncate {
    /// Not at all.
    Never,
    /// Before the run.
    Once,
    /// Before every step of a run that has several.
    Always,
}

/// How values are generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Generator {
    /// As cassandra-stress does, to the bit.
    Compat,
    /// With every type, valid UUIDs and distinct rows.
    V2,
}

impl Generator {
    /// `compat` or `v2`.
    pub fn name(self) -> &'static str {
        match self {
            Generator::Compat => "compat",
            Generator::V2 => "v2",
        }
    }
}

/// The share of an operation in a mix.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Share {
    /// In proportion to those of the others.
    Weight(f64),
    /// Independent of the others, with its own rate.
    Rate(Rate),
}

/// An operation of `ops(…)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Op {
    /// As written: `insert`, `simple1`, `spec.simple1`.
    pub name: String,
    /// Its share.
    pub share: Share,
}

/// The command and its sub-options.
#[derive(Debug, Clone, PartialEq)]
pub struct Command {
    /// What is done.
    pub kind: CommandKind,
    /// How long.
    pub length: Length,
    /// Whether some of it runs beforehand, unmeasured.
    pub warmup: bool,
    /// When tables are truncated.
    pub truncate: Truncate,
    /// For every operation that does not specify its own.
    pub consistency: Consistency,
    /// For conditional writes.
    pub serial_consistency: SerialConsistency,
    /// The amounts added to counters.
    pub add: Spec,
    /// Bytes of a predefined key.
    pub key_size: u32,
    /// Weights of a mix; for a predefined command, itself alone; for `user`, nothing.
    pub ratio: Vec<(CommandKind, f64)>,
    /// How many operations of the same kind follow one another in a mix.
    pub clustering: Spec,
    /// Profiles, as written: files or URIs.
    pub profiles: Vec<String>,
    /// Operations from profiles.
    pub ops: Vec<Op>,
    /// How values are generated; `None`: `compat` unless a profile uses what only v2 has.
    pub generator: Option<Generator>,
    /// Seed for everything random; `None`: a fixed one.
    pub seed: Option<i64>,
    /// `clustering=` and `add=` as written, for the block of settings.
    clustering_text: String,
    add_text: String,
    duration_text: String,
}

impl Command {
    pub(super) fn parse(kind: CommandKind, words: &[String], notes: &mut Vec<String>) -> Result<Self, SettingsError> {
        let group = kind.shown();
        let (place, taken) = select(group, words, alternatives(kind))?;
        let mut command = Command {
            kind,
            length: Length::Count(0),
            warmup: !taken.flag("no-warmup"),
            truncate: match taken.text("truncate=").to_ascii_lowercase().as_str() {
                "once" => Truncate::Once,
                "always" => Truncate::Always,
                _ => Truncate::Never,
            },
            consistency: consistency(&taken).unwrap_or(Consistency::LocalOne),
            serial_consistency: serial(&taken).unwrap_or(SerialConsistency::Serial),
            add: taken.spec(kind.name(), "add=")?.unwrap_or(Spec::Fixed(1)),
            key_size: number::whole("keysize=", taken.get("keysize=").unwrap_or("10"))?,
            ratio: Vec::new(),
            clustering: clustering(&taken, kind)?,
            profiles: taken
                .get("profile=")
                .map(|text| text.split(',').map(str::to_owned).collect())
                .unwrap_or_default(),
            ops: Vec::new(),
            generator: taken
                .get("generator=")
                .map(|text| if text.eq_ignore_ascii_case("v2") { Generator::V2 } else { Generator::Compat }),
            seed: taken.get("seed=").map(|text| number::whole("seed=", text)).transpose()?,
            clustering_text: taken.text("clustering=").to_owned(),
            add_text: taken.text("add=").to_owned(),
            duration_text: taken.text("duration=").to_owned(),
        };
        if command.profiles.iter().any(String::is_empty) {
            return Err(SettingsError::senseless("profile= has an empty name", "separate files by single commas"));
        }
        if kind == K::VerifySizes {
            return Ok(command);
        }
        command.length = length(&taken, place)?;
        match kind {
            K::Mixed => command.ratio = mix::ratio(taken.multi("ratio"))?,
            K::User => {
                command.ops = taken.multi("ops").map(|ops| mix::ops("ops", ops)).transpose()?.unwrap_or_default()
            }
            basic => command.ratio = vec![(basic, 1.0)],
        }
        if kind == K::User
            && command.ops.iter().any(|op| matches!(op.share, Share::Rate(_)))
            && taken.given("clustering=").is_some()
        {
            notes.push(
                "clustering= has no effect: operations with rates of their own do not follow each other".to_owned(),
            );
        }
        Ok(command)
    }

    /// Whether a `user` command only inserts, into whichever tables.
    pub fn inserts_alone(&self) -> bool {
        let inserts = |op: &Op| op.name.rsplit('.').next().is_some_and(|name| name.eq_ignore_ascii_case("insert"));
        !self.ops.is_empty() && self.ops.iter().all(inserts)
    }

    /// Whether partitions are visited one after another unless `-pop` says otherwise. For `user`, cassandra-stress does
    /// so only if `ops(…)` is the single word `insert`, not with the name of a profile and not with two inserts; its
    /// command lines mean the same here. It does not know rates in `ops(…)`: those load tables, in order.
    pub fn is_sequential(&self) -> bool {
        let rated = || self.ops.iter().all(|op| matches!(op.share, Share::Rate(_)));
        match (self.kind, &self.ops[..]) {
            (K::Write | K::CounterWrite, _) => true,
            (_, [op]) if op.name == "insert" => true,
            _ => self.inserts_alone() && rated(),
        }
    }
}

/// Lengths of runs of one kind; at least one must be a real run.
fn clustering(taken: &Taken, kind: CommandKind) -> Result<Spec, SettingsError> {
    let spec = taken.spec(kind.name(), "clustering=")?.unwrap_or(Spec::Fixed(1));
    if spec.max() < 1 {
        return Err(SettingsError::senseless(
            format!("{} clustering={}: no operation would ever be chosen", kind.name(), taken.text("clustering=")),
            "give it values of 1 or more, such as fixed(1)",
        ));
    }
    Ok(spec)
}

fn length(taken: &Taken, place: usize) -> Result<Length, SettingsError> {
    Ok(match lengths(&Vec::new)[place].0 {
        LengthKind::Count => Length::Count(number::count("n=", taken.text("n="))?),
        LengthKind::Time => Length::Time(number::time("duration=", taken.text("duration="))?),
        LengthKind::Uncertainty => {
            let uncertainty = Uncertainty {
                target: number::whole("err<", taken.text("err<"))?,
                least: number::whole("n>", taken.text("n>"))?,
                most: number::whole("n<", taken.text("n<"))?,
            };
            Length::Uncertainty(uncertainty)
        }
    })
}
