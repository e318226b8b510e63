//! `-rate search(…)`: the objectives that the highest rate must keep, and how to search for it.

use std::{fmt, time::Duration};

use brownout_load::Arrivals;
use brownout_units::{Delay, Rate, Share};

use super::{
    SettingsError,
    grammar::{Pattern, Sub, Taken, value},
    number,
};

/// A search for the highest open rate that keeps objectives.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    /// At least one; all of them must be kept.
    pub objectives: Vec<Objective>,
    /// The first rate to try.
    pub from: Rate,
    /// The highest rate to try.
    pub to: Option<Rate>,
    /// How long each rate is tried.
    pub step: Duration,
    /// How narrow the interval of the result must be, relative to the result.
    pub precision: f64,
    /// How starts are spaced.
    pub arrivals: Arrivals,
}

/// What a rate has to keep.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Objective {
    /// A quantile of the response time stays below this.
    Latency {
        /// 0 to 1; 1 is the maximum.
        quantile: f64,
        /// The bound.
        below: Duration,
    },
    /// The mean response time stays below this.
    Mean {
        /// The bound.
        below: Duration,
    },
    /// The share of operations that fail or time out stays below this.
    Errors {
        /// The bound, 0 to 1.
        below: f64,
    },
}

/// The default start of a search.
const FROM: &str = "1000/s";

pub(super) fn options() -> Vec<Sub> {
    vec![
        value("slo=", Pattern::Something, "an objective: p99<20ms, mean<5ms, max<1s, errors<0.1%; more may follow it"),
        value("from=", Pattern::Rate, "the rate tried first").or(FROM),
        value("to=", Pattern::Rate, "try no higher rate"),
        value("step=", Pattern::Time, "how long a rate is tried").or("10s"),
        value("precision=", Pattern::Something, "how narrow the answer's interval has to be").or("5%"),
    ]
}

impl Search {
    pub(super) fn parse(given: &Taken, arrivals: Arrivals) -> Result<Self, SettingsError> {
        // What follows the first objective stands alone: search(slo=p99<20ms,errors<1%).
        let more = given.pairs().iter().map(
            |(text, rest)| {
                if rest.is_empty() { text.clone() } else { format!("{text}={rest}") }
            },
        );
        let texts: Vec<String> = given.get("slo=").map(str::to_owned).into_iter().chain(more).collect();
        if given.get("slo=").is_none() {
            return Err(SettingsError::senseless(
                "-rate search(…) has no objective",
                "write, for example, search(slo=p99<20ms)",
            ));
        }
        let from = number::rate_above_0("-rate search from=", given.text("from="))?;
        let to = given.get("to=").map(|text| number::rate_above_0("-rate search to=", text)).transpose()?;
        if to.is_some_and(|to| to < from) {
            return Err(SettingsError::senseless("-rate search: to= is below from=", "exchange them"));
        }
        let text = given.text("precision=");
        let precision = text.parse::<Share>().map(Share::fraction).ok().filter(|share| *share > 0.0 && *share < 1.0);
        Ok(Search {
            objectives: texts.iter().map(|text| objective(text)).collect::<Result<_, _>>()?,
            from,
            to,
            step: number::time("-rate search step=", given.text("step="))?,
            precision: precision.ok_or_else(|| {
                SettingsError::senseless(format!("-rate search precision={text}"), "write a share, such as 5%")
            })?,
            arrivals,
        })
    }
}

fn objective(text: &str) -> Result<Objective, SettingsError> {
    let wrong = || {
        SettingsError::senseless(
            format!("Invalid search specification: {text}"),
            "write an objective, such as p99<20ms, p99.9<50ms, mean<5ms, max<1s or errors<0.1%",
        )
    };
    let (measure, bound) = text.split_once('<').ok_or_else(wrong)?;
    let measure = measure.to_ascii_lowercase();
    if measure == "errors" {
        let below = bound.parse::<Share>().map_err(|_| wrong())?.fraction();
        return if below > 0.0 { Ok(Objective::Errors { below }) } else { Err(wrong()) };
    }
    let below = bound.parse::<Delay>().ok().filter(|bound| *bound > Delay::ZERO).ok_or_else(wrong)?.duration();
    let quantile = match measure.as_str() {
        "mean" => return Ok(Objective::Mean { below }),
        "max" => 1.0,
        "median" | "med" => 0.5,
        percentile => {
            let digits = percentile.strip_prefix('p').ok_or_else(wrong)?;
            let percent: f64 =
                digits.parse().ok().filter(|percent| (0.0..=100.0).contains(percent)).ok_or_else(wrong)?;
            percent / 100.0
        }
    };
    Ok(Objective::Latency { quantile, below })
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Objective::Latency { quantile, below } if *quantile == 1.0 => write!(f, "max<{}", Delay::from(*below)),
            // Four digits hide that 99.9 / 100 · 100 is not 99.9.
            Objective::Latency { quantile, below } => {
                let percent = (quantile * 1e6).round() / 1e4;
                write!(f, "p{percent}<{}", Delay::from(*below))
            }
            Objective::Mean { below } => write!(f, "mean<{}", Delay::from(*below)),
            Objective::Errors { below } => write!(f, "errors<{}%", (below * 1e6).round() / 1e4),
        }
    }
}

impl fmt::Display for Search {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let objectives: Vec<String> = self.objectives.iter().map(Objective::to_string).collect();
        write!(f, "{}, from {}", objectives.join(", "), self.from)?;
        if let Some(to) = self.to {
            write!(f, " to {to}")?;
        }
        write!(f, ", {} each, to {}%", Delay::from(self.step), (self.precision * 1e6).round() / 1e4)
    }
}
