//! How the rate of an open loop changes with time.

use std::{fmt, path::PathBuf, time::Duration};

use brownout_load::RateProfile;
use brownout_units::{Delay, Rate};

use super::{SettingsError, grammar::Taken, number};

/// How a rate changes with time.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// Not at all.
    Constant(Rate),
    /// Changes linearly from one rate to another, and stays there.
    Ramp {
        /// At the start.
        from: Rate,
        /// After `over`.
        to: Rate,
        /// How long it takes.
        over: Duration,
    },
    /// One rate after another; the last one stays.
    Steps(Vec<(Rate, Duration)>),
    /// `mean + amplitude · sin(2π t / period)`
    Sine {
        /// The mean.
        mean: Rate,
        /// The amplitude.
        amplitude: Rate,
        /// The period.
        period: Duration,
    },
    /// As a file specifies.
    Trace(PathBuf),
}

/// Whether exactly enough is given: a rate and at most one shape for it, or a shape that has its own rates.
pub(super) fn complete(taken: &Taken) -> bool {
    let (open, fixed, unbounded) = (taken.flag("open="), taken.flag("fixed="), taken.flag("unbounded"));
    let rate = open && !fixed || fixed && unbounded && !open;
    let (ramp, sine) = (taken.flag("ramp="), taken.multi("sine").is_some());
    let (steps, trace) = (taken.multi("steps").is_some(), taken.flag("trace="));
    let (ops, search) = (taken.multi("ops").is_some(), taken.multi("search").is_some());
    let shapes = [ramp, sine, steps, trace, ops, search].into_iter().filter(|given| *given).count();
    if fixed && !unbounded {
        return false;
    }
    match shapes {
        // `arrivals=` alone is for rates in the command's ops(…).
        0 => rate || taken.flag("arrivals="),
        1 if ramp || sine => rate,
        1 => !open && !fixed,
        _ => false,
    }
}

impl Shape {
    pub(super) fn parse(taken: &Taken) -> Result<Self, SettingsError> {
        let mean = match (taken.given("open="), taken.given("fixed=")) {
            (Some(text), _) => Some(number::rate_above_0("-rate open=", text)?),
            (None, Some(text)) => Some(number::rate_above_0("-rate fixed=", text)?),
            (None, None) => None,
        };
        let mean = || {
            mean.ok_or_else(|| {
                SettingsError::senseless(
                    "-rate names no rate",
                    "write open=1000/s, or give every operation of ops(…) a rate",
                )
            })
        };
        if let Some(text) = taken.given("trace=") {
            return Ok(Shape::Trace(PathBuf::from(text)));
        }
        if let Some(steps) = taken.multi("steps") {
            let step = |(rate, time): &(String, String)| {
                Ok((number::rate_above_0("-rate steps: ", rate)?, number::time("-rate steps: ", time)?))
            };
            let steps = steps.pairs().iter().map(step).collect::<Result<Vec<_>, SettingsError>>()?;
            if steps.is_empty() {
                return Err(SettingsError::senseless(
                    "-rate steps() has none",
                    "write, for example, steps(1k/s=30s,2k/s=30s)",
                ));
            }
            return Ok(Shape::Steps(steps));
        }
        if let Some(text) = taken.given("ramp=") {
            let (from, time) = match text.split_once(',') {
                Some((from, time)) => (Some(from), time),
                None => (None, text),
            };
            let to = mean()?;
            // Starting from zero would mean an infinite wait for the first operation; a thousandth is close enough to
            // zero.
            let nothing = Rate::per_second(to.get() / 1_000.0).unwrap_or(to);
            let from = from.map(|from| number::rate_above_0("-rate ramp=", from)).transpose()?.unwrap_or(nothing);
            return Ok(Shape::Ramp { from, to, over: number::time("-rate ramp=", time)? });
        }
        if let Some(sine) = taken.multi("sine") {
            let (Some(amplitude), Some(period)) = (sine.get("amplitude="), sine.get("period=")) else {
                return Err(SettingsError::senseless(
                    "-rate sine(…) lacks a part",
                    "write both, as in sine(amplitude=500/s,period=60s)",
                ));
            };
            let (mean, amplitude) = (mean()?, number::rate_above_0("-rate sine amplitude=", amplitude)?);
            if amplitude > mean {
                return Err(SettingsError::senseless(
                    format!("-rate sine(amplitude={amplitude}) around {mean} falls below 0"),
                    "lower the amplitude, or raise the rate",
                ));
            }
            return Ok(Shape::Sine { mean, amplitude, period: number::time("-rate sine period=", period)? });
        }
        mean().map(Shape::Constant)
    }

    /// The engine's form. Reads the file of a trace: each line has an offset in seconds and a rate in operations per
    /// second, separated by blanks, a comma or both; lines that begin with `#` and a heading are skipped.
    pub fn profile(&self) -> Result<RateProfile, SettingsError> {
        let wrong =
            |error: brownout_load::LoadError| SettingsError::senseless(format!("-rate {self}"), error.to_string());
        match self {
            Shape::Constant(rate) => Ok(RateProfile::constant(*rate)),
            Shape::Ramp { from, to, over } => RateProfile::ramp(*from, *to, *over).map_err(wrong),
            Shape::Steps(steps) => RateProfile::steps(steps).map_err(wrong),
            Shape::Sine { mean, amplitude, period } => RateProfile::sine(*mean, *amplitude, *period).map_err(wrong),
            Shape::Trace(file) => {
                let refuse =
                    |reason: String| SettingsError::File { option: "-rate trace=", file: file.clone(), reason };
                let text = std::fs::read_to_string(file).map_err(|error| refuse(format!("cannot be read: {error}")))?;
                let rows = trace(&text).map_err(refuse)?;
                RateProfile::trace(&rows).map_err(|error| refuse(error.to_string()))
            }
        }
    }

    /// The rate that it starts from or oscillates around, if there is one.
    pub fn base(&self) -> Option<Rate> {
        match self {
            Shape::Constant(rate) | Shape::Ramp { to: rate, .. } | Shape::Sine { mean: rate, .. } => Some(*rate),
            Shape::Steps(steps) => steps.first().map(|(rate, _)| *rate),
            Shape::Trace(_) => None,
        }
    }
}

fn trace(text: &str) -> Result<Vec<(Duration, f64)>, String> {
    let mut rows = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        let cells: Vec<&str> = line.split([' ', '\t', ',', ';']).filter(|cell| !cell.is_empty()).collect();
        let heading = rows.is_empty() && cells.iter().all(|cell| cell.parse::<f64>().is_err());
        if cells.is_empty() || line.starts_with('#') || heading {
            continue;
        }
        let numbers: Vec<f64> = cells.iter().filter_map(|cell| cell.parse().ok()).collect();
        match numbers[..] {
            [offset, rate] if cells.len() == 2 => match Duration::try_from_secs_f64(offset) {
                Ok(offset) => rows.push((offset, rate)),
                Err(error) => return Err(format!("line {}: '{line}': {error}", at + 1)),
            },
            _ => {
                return Err(format!(
                    "line {}: '{line}' is no row; write an offset in seconds and a rate per second, such as 60 1500",
                    at + 1
                ));
            }
        }
    }
    Ok(rows)
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |duration: &Duration| Delay::from(*duration);
        match self {
            Shape::Constant(rate) => write!(f, "{rate}"),
            Shape::Ramp { from, to, over } => write!(f, "from {from} to {to} in {}", time(over)),
            Shape::Steps(steps) => {
                for (place, (rate, length)) in steps.iter().enumerate() {
                    write!(f, "{}{rate} for {}", if place == 0 { "" } else { ", then " }, time(length))?;
                }
                Ok(())
            }
            Shape::Sine { mean, amplitude, period } => write!(f, "{mean} ± {amplitude} every {}", time(period)),
            Shape::Trace(file) => write!(f, "as {} says", file.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_rows_of_seconds_and_rates() {
        let rows = trace("# recorded\nseconds,rate\n0,100\n\n60.5 200.25\n").expect("a trace");
        assert_eq!(rows, [(Duration::ZERO, 100.0), (Duration::from_millis(60_500), 200.25)]);
    }

    #[test]
    fn a_line_that_is_no_row_is_named() {
        for (text, line) in
            [("0 1\n5\n", "line 2"), ("0 1 2\n", "line 1"), ("-1 5\n", "line 1"), ("0 1\na b\n", "line 2")]
        {
            let error = trace(text).expect_err(text);
            assert!(error.contains(line), "{text}: {error}");
        }
    }
}
