//! Commands: what is done, how long, and at which consistency.

use std::time::Duration;

use brownout_generate::distribution::Spec;
use brownout_load::{Consistency, SerialConsistency};
use brownout_units::Rate;

use super::{
    SettingsError,
    grammar::{Alternative, Extra, Pattern, Sub, Taken, distribution, multi, select, value},
    number,
};

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CommandKind {
    /// Reads of `standard1`.
    Read,
    /// Writes to `standard1`.
    Write,
    /// A mix of the predefined ones.
    Mixed,
    /// Increments of `counter1`.
    CounterWrite,
    /// Reads of `counter1`.
    CounterRead,
    /// Operations of profiles.
    User,
    /// No load: asks the servers for the sizes of partitions and compares them with the profile's.
    VerifySizes,
}

use CommandKind as K;

/// All with their names; the first is the one shown.
const COMMANDS: [(CommandKind, &[&str]); 7] = [
    (K::Read, &["read"]),
    (K::Write, &["write", "insert"]),
    (K::Mixed, &["mixed"]),
    (K::CounterWrite, &["counter_write", "counterwrite", "counter_add", "counteradd"]),
    (K::CounterRead, &["counter_read", "counterread", "counter_get", "counterget"]),
    (K::User, &["user"]),
    (K::VerifySizes, &["verify-sizes", "verify_sizes", "verifysizes"]),
];

/// Commands that are answered at once, without a run.
const ANSWERED: [&str; 5] = ["help", "-?", "print", "legacy", "version"];

impl CommandKind {
    /// From any of its names, in lower case.
    pub fn from_name(name: &str) -> Option<CommandKind> {
        COMMANDS.iter().find(|(_, names)| names.contains(&name)).map(|(kind, _)| *kind)
    }

    /// Its first name.
    pub fn name(self) -> &'static str {
        COMMANDS.iter().find(|(kind, _)| *kind == self).map_or("", |(_, names)| names[0])
    }

    /// As rows and messages have it: `COUNTER_WRITE`.
    pub fn shown(self) -> &'static str {
        match self {
            K::Read => "READ",
            K::Write => "WRITE",
            K::Mixed => "MIXED",
            K::CounterWrite => "COUNTER_WRITE",
            K::CounterRead => "COUNTER_READ",
            K::User => "USER",
            K::VerifySizes => "VERIFY_SIZES",
        }
    }

    /// Whether it is one of those that may be mixed.
    pub fn is_basic(self) -> bool {
        matches!(self, K::Read | K::Write | K::CounterWrite | K::CounterRead)
    }

    /// Every name of a command, those that are answered at once included.
    pub(super) fn names() -> impl Iterator<Item = &'static str> {
        COMMANDS.iter().flat_map(|(_, names)| names.iter().copied()).chain(ANSWERED)
    }
}

/// When a run ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Length {
    /// After so many partitions. 0: the schema is made, nothing else.
    Count(u64),
    /// After this time.
    Time(Duration),
    /// When the standard error of the row rate's mean is small.
    Uncertainty(Uncertainty),
}

/// `err<0.02 n>30 n<200`
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Uncertainty {
    /// Standard error over mean.
    pub target: f64,
    /// Not before so many intervals.
    pub least: u64,
    /// At the latest after so many.
    pub most: u64,
}

/// When tables are emptied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truncate {
    /// Not at all.
    Never,
    /// Before the run.
    Once,
    /// Before every step of a run that has several.
    Always,
}

/// How values are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Generator {
    /// As cassandra-stress makes them, to the bit.
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

/// How much of a mix an operation is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Share {
    /// In proportion to those of the others.
    Weight(f64),
    /// By its own clock.
    Rate(Rate),
}

/// An operation of `ops(…)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Op {
    /// As written: `insert`, `simple1`, `spec.simple1`.
    pub name: String,
    /// How much of it.
    pub share: Share,
}

/// The command and its sub-options.
#[derive(Debug, Clone, PartialEq)]
pub struct Command {
    /// What is done.
    pub kind: CommandKind,
    /// How long.
    pub length: Length,
    /// Whether some of it is done beforehand, unmeasured.
    pub warmup: bool,
    /// When tables are emptied.
    pub truncate: Truncate,
    /// Of every operation that does not say otherwise.
    pub consistency: Consistency,
    /// Of conditional writes.
    pub serial_consistency: SerialConsistency,
    /// Increments of counters.
    pub add: Spec,
    /// Bytes of a predefined key.
    pub key_size: u32,
    /// Weights of a mix; of a predefined command, itself alone; of `user`, nothing.
    pub ratio: Vec<(CommandKind, f64)>,
    /// How many of the same kind follow each other in a mix.
    pub clustering: Spec,
    /// Profiles, as written: files or URIs.
    pub profiles: Vec<String>,
    /// Operations of profiles.
    pub ops: Vec<Op>,
    /// How values are made; `None`: `compat` unless a profile uses what only v2 has.
    pub generator: Option<Generator>,
    /// Seed of everything that is drawn; `None`: a fixed one.
    pub seed: Option<i64>,
    /// `clustering=` and `add=` as written, for the block of settings.
    pub(super) clustering_text: String,
    pub(super) add_text: String,
    pub(super) duration_text: String,
}

const LEVELS: &str = "ONE|QUORUM|LOCAL_QUORUM|EACH_QUORUM|ALL|ANY|TWO|THREE|LOCAL_ONE|SERIAL|LOCAL_SERIAL";
const SERIAL_LEVELS: &str = "SERIAL|LOCAL_SERIAL";

/// `cl=`
pub(super) fn consistency_option() -> Sub {
    value("cl=", Pattern::Words(LEVELS), "consistency level")
}

/// `serial-cl=`
pub(super) fn serial_option() -> Sub {
    value("serial-cl=", Pattern::Words(SERIAL_LEVELS), "serial consistency level of conditional writes")
}

/// The level that `cl=` names, which its pattern has checked.
pub(super) fn consistency(taken: &Taken) -> Option<Consistency> {
    taken.get("cl=").and_then(|text| text.parse().ok())
}

/// The level that `serial-cl=` names.
pub(super) fn serial(taken: &Taken) -> Option<SerialConsistency> {
    taken.get("serial-cl=").map(|text| {
        if text.eq_ignore_ascii_case("serial") { SerialConsistency::Serial } else { SerialConsistency::LocalSerial }
    })
}

/// As Java shows a level: `LOCAL_ONE`.
pub fn consistency_name(level: Consistency) -> String {
    let name = Consistency::all().find(|(known, _)| *known == level).map_or("", |(_, name)| name);
    name.to_ascii_uppercase().replace('-', "_")
}

/// As Java shows a serial level.
pub fn serial_name(level: SerialConsistency) -> &'static str {
    match level {
        SerialConsistency::Serial => "SERIAL",
        SerialConsistency::LocalSerial => "LOCAL_SERIAL",
    }
}

fn common() -> Vec<Sub> {
    vec![
        value("no-warmup", Pattern::Nothing, "do not warm up"),
        value(
            "truncate=",
            Pattern::Words("never|once|always"),
            "empty the tables: never, before the run, before each step",
        )
        .or("never"),
        consistency_option().or("LOCAL_ONE"),
        serial_option().or("SERIAL"),
        value("generator=", Pattern::Words("compat|v2"), "how values are made: as cassandra-stress, or with all types"),
        value("seed=", Pattern::Whole, "seed of all that is drawn, so that a run can be repeated"),
    ]
}

/// The ways to say how long a command runs, each with what else the command takes.
fn lengths(rest: &dyn Fn() -> Vec<Sub>) -> [(LengthKind, Alternative); 3] {
    let whole = |first: Vec<Sub>| Alternative::new(first.into_iter().chain(common()).chain(rest()).collect());
    [
        (
            LengthKind::Uncertainty,
            whole(vec![
                value("err<", Pattern::Fraction, "until the standard error of the mean is below this share of it")
                    .or("0.02"),
                value("n>", Pattern::Digits, "not before so many intervals").or("30"),
                value("n<", Pattern::Digits, "at the latest after so many intervals").or("200"),
            ]),
        ),
        (
            LengthKind::Count,
            whole(vec![value("n=", Pattern::Count, "so many partitions; 0 only makes the schema").required()]),
        ),
        (
            LengthKind::Time,
            whole(vec![value("duration=", Pattern::Time, "so many seconds, minutes or hours").required()]),
        ),
    ]
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LengthKind {
    Uncertainty,
    Count,
    Time,
}

fn options(kind: CommandKind) -> Vec<Sub> {
    let predefined = || {
        vec![
            distribution("add=", "what counters are incremented by").or("fixed(1)"),
            value("keysize=", Pattern::Digits, "bytes of a key").or("10"),
        ]
    };
    let profile = || value("profile=", Pattern::Something, "YAML profiles: files, separated by commas").required();
    let clustering = |default: &str| distribution("clustering=", "how many of a kind follow each other").or(default);
    match kind {
        K::Mixed => {
            let part = |name, default: Option<&str>| {
                let sub = value(name, Pattern::Weight, "so many of these out of all");
                default.map_or(sub.clone(), |default| sub.or(default))
            };
            let parts = vec![
                part("read=", Some("1")),
                part("write=", Some("1")),
                part("counter_write=", None),
                part("counter_read=", None),
            ];
            let ratio = multi("ratio", parts, Extra::Refused, "how many of each, as in ratio(read=2,write=1)");
            predefined().into_iter().chain([clustering("GAUSSIAN(1..10)"), ratio]).collect()
        }
        K::User => {
            let ops = multi(
                "ops",
                Vec::new(),
                Extra::Pairs,
                "weights or rates of operations: ops(insert=1,simple1=2), ops(insert=500/s,other.simple1=2k/s)",
            );
            vec![ops.required(), profile(), clustering("gaussian(1..10)")]
        }
        K::VerifySizes => vec![profile()],
        _ => predefined(),
    }
}

pub(super) fn alternatives(kind: CommandKind) -> Vec<Alternative> {
    if kind == K::VerifySizes {
        return vec![Alternative::new(options(kind).into_iter().chain(common()).collect())];
    }
    let mut all = lengths(&|| options(kind)).map(|(_, alternative)| alternative).to_vec();
    if kind == K::User {
        all = all.into_iter().map(|alternative| alternative.complete(has_ops)).collect();
    }
    all
}

/// `ops()` names nothing.
fn has_ops(taken: &Taken) -> bool {
    taken.multi("ops").is_some_and(|ops| !ops.pairs().is_empty())
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
            clustering: taken.spec(kind.name(), "clustering=")?.unwrap_or(Spec::Fixed(1)),
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
            K::Mixed => command.ratio = ratio(taken.multi("ratio"))?,
            K::User => {
                command.ops = taken.multi("ops").map(|ops| self::ops("ops", ops)).transpose()?.unwrap_or_default()
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

    /// Whether all that a `user` command does is to insert.
    pub fn only_inserts(&self) -> bool {
        matches!(&self.ops[..], [op] if op.name == "insert")
    }
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

/// Those that are named, or one read for one write.
fn ratio(given: Option<&Taken>) -> Result<Vec<(CommandKind, f64)>, SettingsError> {
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

/// Weights, or rates: both in one list have no meaning.
pub(super) fn ops(option: &str, given: &Taken) -> Result<Vec<Op>, SettingsError> {
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

/// A weight as Java's `Double.toString` writes it, for the sizes that weights have.
fn java_double(value: f64) -> String {
    if value == value.trunc() && value.abs() < 1e7 { format!("{value:.1}") } else { format!("{value}") }
}

impl Command {
    pub(super) fn block(&self) -> String {
        let count = match self.length {
            _ if self.kind == K::VerifySizes => -1,
            Length::Count(count) => i64::try_from(count).unwrap_or(i64::MAX),
            _ => -1,
        };
        let mut text = format!("  Type: {}\n  Count: {}\n", self.kind.name(), number::grouped(count));
        if let Length::Time(time) = self.length {
            text.push_str(&format!("  Duration: {}\n", shown_time(time, &self.duration_text)));
        }
        text.push_str(&format!(
            "  No Warmup: {}\n  Consistency Level: {}\n  Serial Consistency Level: {}\n",
            !self.warmup,
            consistency_name(self.consistency),
            serial_name(self.serial_consistency)
        ));
        match self.length {
            Length::Uncertainty(Uncertainty { target, least, most }) => text.push_str(&format!(
                "  Target Uncertainty: {target:.3}\n  Minimum Uncertainty Measurements: {}\n  Maximum Uncertainty \
                 Measurements: {}\n",
                number::grouped(least as i64),
                number::grouped(most as i64)
            )),
            _ => text.push_str("  Target Uncertainty: not applicable\n"),
        }
        match self.kind {
            K::User => {
                let ratios = self.ops.iter().map(|op| match op.share {
                    Share::Weight(weight) => format!("{}={}", op.name, java_double(weight)),
                    Share::Rate(rate) => format!("{}={rate}", op.name),
                });
                text.push_str(&self.mix(&ratios.collect::<Vec<_>>()));
                text.push_str(&format!("  Profile File(s): {}\n", self.profiles.join(",")));
            }
            K::VerifySizes => text.push_str(&format!("  Profile File(s): {}\n", self.profiles.join(","))),
            // "Distibution" is how cassandra-stress spells it here.
            _ => text.push_str(&format!(
                "  Key Size (bytes): {}\n  Counter Increment Distibution: add={}\n",
                self.key_size, self.add_text
            )),
        }
        if self.kind == K::Mixed {
            let ratios = self.ratio.iter().map(|(kind, weight)| format!("{}={}", kind.shown(), java_double(*weight)));
            text.push_str(&self.mix(&ratios.collect::<Vec<_>>()));
        }
        text
    }

    fn mix(&self, ratios: &[String]) -> String {
        format!(
            "  Command Ratios: {{{}}}\n  Command Clustering Distribution: clustering={}\n",
            ratios.join(", "),
            self.clustering_text
        )
    }
}

/// `5 MINUTES`: in the unit that was written.
fn shown_time(time: Duration, written: &str) -> String {
    let unit = match written.to_ascii_lowercase().chars().last() {
        Some('s') => "SECONDS",
        Some('m') => "MINUTES",
        _ => "HOURS",
    };
    match written.get(..written.len().saturating_sub(1)).and_then(|number| number.parse().ok()) {
        Some(number) => format!("{} {unit}", number::grouped(number)),
        None => format!("{} MILLISECONDS", number::grouped(time.as_millis() as i64)),
    }
}
