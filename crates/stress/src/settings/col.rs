//! `-col`: the columns of the predefined tables.

use brownout_generate::distribution::Spec;

use super::{
    SettingsError,
    grammar::{Alternative, Pattern, Sub, distribution, select, value},
    number::{self, null},
};

/// The columns of `standard1` and `counter1`.
#[derive(Debug, Clone, PartialEq)]
pub struct Columns {
    /// Their names, ordered by their bytes.
    pub names: Vec<String>,
    /// Bytes of a value.
    pub size: Spec,
    /// Whether reads select all columns instead of naming them.
    pub slice: bool,
    /// Timestamp of every write, in µs; `None`: the current time.
    pub timestamp: Option<i64>,
    /// Shown only: names are text.
    pub comparator: String,
    /// What the block of settings shows as the count.
    count_text: String,
}

/// Cassandra allows more, but a row that large is a mistake.
const MOST_COLUMNS: i64 = 10_000;

pub(super) fn alternatives() -> Vec<Alternative> {
    let common = || -> Vec<Sub> {
        vec![
            value("slice", Pattern::Nothing, "reads ask for all columns"),
            value("super=", Pattern::Digits, "accepted; super columns are gone").or("0"),
            value("comparator=", Pattern::Words("TimeUUIDType|AsciiType|UTF8Type"), "accepted; names are text")
                .or("AsciiType"),
            value("timestamp=", Pattern::Digits, "timestamp of every write, in microseconds"),
            distribution("size=", "bytes of a value").or("FIXED(34)"),
        ]
    };
    vec![
        Alternative::new(
            [vec![value("names=", Pattern::Something, "names of the columns").required()], common()].concat(),
        ),
        Alternative::new([vec![distribution("n=", "count of columns; fixed").or("FIXED(5)")], common()].concat()),
    ]
}

impl Columns {
    pub(super) fn parse(words: Option<&[String]>, notes: &mut Vec<String>) -> Result<Self, SettingsError> {
        let (place, taken) = match words {
            Some(words) => select("-col", words, alternatives())?,
            None => (1, alternatives().swap_remove(1).untouched()),
        };
        for gone in ["super=", "comparator="] {
            if taken.given(gone).is_some() {
                notes.push(format!("-col {gone} has no effect: it belongs to Thrift, which is gone"));
            }
        }
        let (mut names, count_text) = if place == 0 {
            let names: Vec<String> = taken.text("names=").split(',').map(str::to_owned).collect();
            let text = format!("Count:  fixed={}", names.len());
            (names, text)
        } else {
            let count = taken.spec("-col", "n=")?.unwrap_or(Spec::Fixed(5));
            if count.min() != count.max() {
                return Err(SettingsError::senseless(
                    format!("Variable column counts are not implemented for CQL: -col n={count}"),
                    "write a fixed count, such as n=fixed(5); rows of a varying number of columns are written with a \
                     profile's row-population",
                ));
            }
            if !(1..=MOST_COLUMNS).contains(&count.max()) {
                return Err(SettingsError::senseless(
                    format!("-col n={count} is out of range"),
                    format!("write 1 to {MOST_COLUMNS}"),
                ));
            }
            ((0..count.max()).map(|number| format!("C{number}")).collect(), count.settings())
        };
        names.sort();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1] || pair[0].is_empty()) {
            return Err(SettingsError::senseless(
                format!("-col names= has '{}' twice, or an empty name", pair[1]),
                "give every column a name of its own",
            ));
        }
        let size = taken.spec("-col", "size=")?.unwrap_or(Spec::Fixed(34));
        if size.min() < 0 || size.max() > i64::from(i32::MAX) {
            return Err(SettingsError::senseless(
                format!("-col size={size}"),
                "write sizes from 0 to 2147483647 bytes",
            ));
        }
        Ok(Columns {
            names,
            size,
            slice: taken.flag("slice"),
            timestamp: taken.get("timestamp=").map(|text| number::whole("-col timestamp=", text)).transpose()?,
            comparator: taken.text("comparator=").to_owned(),
            count_text,
        })
    }

    pub(super) fn block(&self) -> String {
        format!(
            "  Max Columns Per Key: {}\n  Column Names: [{}]\n  Comparator: {}\n  Timestamp: {}\n  Variable Column Count: \
             false\n  Slice: {}\n  Size Distribution: {}\n  Count Distribution: {}\n",
            self.names.len(),
            self.names.join(", "),
            self.comparator,
            null(self.timestamp),
            self.slice,
            self.size.settings(),
            self.count_text
        )
    }
}
