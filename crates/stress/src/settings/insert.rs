//! `-insert`: how rows are written.

use brownout_generate::distribution::{RatioSpec, Spec};
use brownout_load::{Consistency, SerialConsistency};

use super::{
    SettingsError,
    grammar::{Alternative, Pattern, distribution, ratio, select, value},
    level::{consistency, consistency_name, consistency_option, serial, serial_name, serial_option},
    number,
};

/// How rows are written. Whatever is `None` is left to the profile; for `visits` and `revisit` see
/// [`crate::profile::Profile::visits`].
#[derive(Debug, Clone, PartialEq)]
pub struct Insert {
    /// Which of the incomplete partitions is visited next.
    pub revisit: Spec,
    /// In how many visits a partition is written.
    pub visits: Spec,
    /// Partitions per visit.
    pub partitions: Option<Spec>,
    /// Share of a visit's rows that is written.
    pub select_ratio: Option<RatioSpec>,
    /// Share of a row's columns that is written; the others are nulls.
    pub row_population_ratio: Option<RatioSpec>,
    /// How the rows of a visit are batched.
    pub batch: Option<Batch>,
    /// Most rows in a batch.
    pub batch_size: Option<u32>,
    /// Consistency of inserts.
    pub consistency: Option<Consistency>,
    /// Serial consistency of inserts.
    pub serial_consistency: Option<SerialConsistency>,
    /// Whether `revisit=` and `visits=` are defaults, which a profile's own settings override.
    pub(crate) revisit_is_default: bool,
    pub(crate) visits_is_default: bool,
}

/// How the rows of a visit are batched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Batch {
    /// Not at all: each row is a statement and an operation of its own.
    None,
    /// An atomic batch.
    Logged,
    /// A batch that is not atomic.
    Unlogged,
    /// A batch of increments.
    Counter,
}

impl Batch {
    /// Parses a name in any case; cassandra-stress accepts any case but then only understands upper case.
    pub fn from_name(name: &str) -> Option<Batch> {
        [Batch::None, Batch::Logged, Batch::Unlogged, Batch::Counter]
            .into_iter()
            .find(|batch| batch.name().eq_ignore_ascii_case(name))
    }

    /// `UNLOGGED`
    pub fn name(self) -> &'static str {
        match self {
            Batch::None => "NONE",
            Batch::Logged => "LOGGED",
            Batch::Unlogged => "UNLOGGED",
            Batch::Counter => "COUNTER",
        }
    }
}

pub(super) fn alternatives() -> Vec<Alternative> {
    vec![Alternative::new(vec![
        distribution("revisit=", "which of the partitions that are not yet whole is next").or("uniform(1..1M)"),
        distribution("visits=", "in how many visits a partition is written").or("fixed(1)"),
        distribution("partitions=", "partitions per visit"),
        value(
            "batchtype=",
            Pattern::Words("unlogged|logged|counter|none"),
            "what holds a visit's rows; none: each by itself",
        ),
        value("batch-size=", Pattern::Positive, "rows in a batch at the most"),
        ratio("select-ratio=", "share of a visit's rows that is written"),
        ratio("row-population-ratio=", "share of a row's columns that is written").or("fixed(1)/1"),
        consistency_option(),
        serial_option(),
    ])]
}

impl Insert {
    pub(super) fn parse(words: Option<&[String]>) -> Result<Self, SettingsError> {
        let (_, taken) = select("-insert", words.unwrap_or_default(), alternatives())?;
        let row_population = taken.given("row-population-ratio=").is_some();
        Ok(Insert {
            revisit: taken.spec("-insert", "revisit=")?.unwrap_or(Spec::Fixed(1)),
            visits: taken.spec("-insert", "visits=")?.unwrap_or(Spec::Fixed(1)),
            partitions: taken.spec("-insert", "partitions=")?,
            select_ratio: taken.ratio("-insert", "select-ratio=")?,
            // Its default must not override the profile's, as it does in cassandra-stress.
            row_population_ratio: taken.ratio("-insert", "row-population-ratio=")?.filter(|_| row_population),
            batch: taken.given("batchtype=").and_then(Batch::from_name),
            batch_size: taken
                .given("batch-size=")
                .map(|text| number::whole("-insert batch-size=", text))
                .transpose()?,
            consistency: consistency(&taken),
            serial_consistency: serial(&taken),
            revisit_is_default: taken.given("revisit=").is_none(),
            visits_is_default: taken.given("visits=").is_none(),
        })
    }

    pub(super) fn block(&self) -> String {
        let mut lines = vec![("Revisits", self.revisit.settings()), ("Visits", self.visits.settings())];
        lines.extend(self.partitions.as_ref().map(|spec| ("Batchsize", spec.settings())));
        lines.extend(self.select_ratio.as_ref().map(|ratio| ("Select Ratio", ratio.settings())));
        let whole = RatioSpec { spec: Spec::Fixed(1), divisor: 1 };
        lines.push(("Row Population Ratio", self.row_population_ratio.as_ref().unwrap_or(&whole).settings()));
        lines.extend(self.consistency.map(|level| ("Consistency Level", consistency_name(level))));
        lines.extend(self.serial_consistency.map(|level| ("Serial Consistency Level", serial_name(level).to_owned())));
        lines.push(("Batch Type", self.batch.map_or("not batching", Batch::name).to_owned()));
        lines.into_iter().map(|(name, value)| format!("  {name}: {value}\n")).collect()
    }
}
