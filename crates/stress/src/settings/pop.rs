//! `-pop`: which partitions.

use brownout_generate::distribution::Spec;

use super::{
    Command, Length, SettingsError,
    grammar::{Alternative, Pattern, distribution, range, select, value},
    number,
};

/// Which partitions, and the order of their rows.
#[derive(Debug, Clone, PartialEq)]
pub struct PopOptions {
    /// The seeds of partitions.
    pub seeds: Seeds,
    /// The order of rows.
    pub contents: Contents,
}

/// How the seed of the next partition is chosen.
#[derive(Debug, Clone, PartialEq)]
pub enum Seeds {
    /// One after another.
    Sequence {
        /// The first.
        first: i64,
        /// The last.
        last: i64,
        /// Whether it starts over after the last; otherwise the run ends.
        wrap: bool,
        /// How far reads lag behind writes; `None`: reads have a sequence of their own.
        read_lookback: Option<Spec>,
    },
    /// Each drawn independently.
    Distribution(Spec),
}

/// The order in which the rows of a partition are generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contents {
    /// Some order, the same every time.
    Arbitrary,
    /// By clustering values.
    Sorted,
    /// Another order every time.
    Shuffled,
}

/// The default number of seeds: as many as operations, or a million.
fn limit(command: &Command) -> u64 {
    match command.length {
        Length::Count(count) if count > 0 => count,
        _ => 1_000_000,
    }
}

pub(super) fn alternatives(limit: &str) -> Vec<Alternative> {
    let contents = || value("contents=", Pattern::Words("sorted|shuffled"), "order of a partition's rows");
    vec![
        Alternative::new(vec![
            value("seq=", Pattern::Range, "seeds of partitions, one after the other")
                .or(format!("1..{limit}"))
                .required(),
            value("no-wrap", Pattern::Nothing, "end the run when all seeds were visited"),
            distribution("read-lookback=", "how far behind the writes reads are"),
            contents(),
        ]),
        Alternative::new(vec![
            distribution("dist=", "seeds of partitions, each drawn by itself").or(format!("gaussian(1..{limit})")),
            contents(),
        ]),
    ]
}

impl PopOptions {
    pub(super) fn parse(words: Option<&[String]>, command: &Command) -> Result<Self, SettingsError> {
        let limit = limit(command).to_string();
        let sequential = command.is_sequential();
        let (place, taken) = match words {
            Some(words) => select("-pop", words, alternatives(&limit))?,
            None => {
                let place = usize::from(!sequential);
                (place, alternatives(&limit).swap_remove(place).untouched())
            }
        };
        let contents = match taken.text("contents=").to_ascii_lowercase().as_str() {
            "sorted" => Contents::Sorted,
            "shuffled" => Contents::Shuffled,
            _ => Contents::Arbitrary,
        };
        let wrong = |text: &str| {
            SettingsError::senseless(
                format!("-pop seq={text} is no range"),
                "write the smaller seed first, as in seq=1..1M",
            )
        };
        let seeds = if place == 0 {
            let text = taken.text("seq=");
            let (first, last) = range(text).ok_or_else(|| wrong(text))?;
            let first = number::count("-pop seq=", first)? as i64;
            let last = number::count("-pop seq=", last)? as i64;
            if first > last {
                return Err(wrong(text));
            }
            Seeds::Sequence {
                first,
                last,
                wrap: !taken.flag("no-wrap"),
                read_lookback: taken.spec("-pop", "read-lookback=")?,
            }
        } else {
            Seeds::Distribution(taken.spec("-pop", "dist=")?.unwrap_or(Spec::Fixed(1)))
        };
        Ok(PopOptions { seeds, contents })
    }

    pub(super) fn block(&self) -> String {
        let mut text = String::new();
        let mut wraps = false;
        match &self.seeds {
            Seeds::Distribution(spec) => text.push_str(&format!("  Distribution: {}\n", spec.settings())),
            Seeds::Sequence { first, last, wrap, read_lookback } => {
                wraps = *wrap;
                text.push_str(&format!("  Sequence: {first}..{last}\n"));
                if let Some(spec) = read_lookback {
                    text.push_str(&format!("  Read Look Back: {}\n", spec.settings()));
                }
            }
        }
        let order = match self.contents {
            Contents::Arbitrary => "ARBITRARY",
            Contents::Sorted => "SORTED",
            Contents::Shuffled => "SHUFFLED",
        };
        text.push_str(&format!("  Order: {order}\n  Wrap: {wraps}\n"));
        text
    }
}
