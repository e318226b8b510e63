//! `-errors`: what happens when operations fail.

use std::time::Duration;

use brownout_load::RetryDelay;

use super::{
    SettingsError,
    grammar::{Alternative, Pattern, Taken, select, value},
    number,
};

/// What happens when operations fail.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Errors {
    /// How often an operation is tried, at least once. In an open loop once, unless `retries=` says otherwise: nine
    /// retries turn 1,000 operations per second into 10,000 requests, against a cluster in trouble.
    pub tries: u32,
    /// Whether the run continues after an operation has finally failed.
    pub ignore: bool,
    /// Whether a run of a given duration ends at the first failure. Without `ignore` every run does; with it there is
    /// no failure to end at, as in cassandra-stress.
    pub fail_fast: bool,
    /// Whether comparing what is read with what was written is skipped.
    pub skip_read_validation: bool,
    /// Whether columns of a type that `compat` does not know are left out.
    pub skip_unsupported_columns: bool,
    /// The delay before retrying an operation that met an overloaded server. Others are retried at once.
    pub delay: RetryDelay,
    /// Whether `retries=` is given.
    given: bool,
    /// `min-delay-ms=` and `max-delay-ms=`, for the block of settings.
    bounds_ms: (u64, u64),
}

/// How often operations of a closed loop are retried, as in cassandra-stress.
const RETRIES: u32 = 9;

pub(super) fn alternatives() -> Vec<Alternative> {
    let options = vec![
        value(
            "retries=",
            Pattern::Digits,
            "how often a failed operation is tried again; in an open loop the default is 0",
        )
        .or("9"),
        value("ignore", Pattern::Nothing, "go on after errors"),
        value("fail-fast", Pattern::Nothing, "end a run of a given duration at the first failure"),
        value("skip-read-validation", Pattern::Nothing, "do not compare what is read"),
        value(
            "skip-unsupported-columns",
            Pattern::Nothing,
            "leave out columns of types that generator=compat does not know",
        ),
        value("delay-policy=", Pattern::Words("constant|linear|exponential"), "how the wait before a retry grows")
            .or("constant"),
        value("min-delay-ms=", Pattern::Digits, "the shortest wait; not 0 with exponential").or("0"),
        value("max-delay-ms=", Pattern::Digits, "the longest wait").or("20000"),
    ];
    vec![Alternative::new(options).complete(delays_fit)]
}

fn delays_fit(taken: &Taken) -> bool {
    let ms = |name| taken.text(name).parse::<u64>().unwrap_or(u64::MAX);
    let exponential = taken.text("delay-policy=").eq_ignore_ascii_case("exponential");
    ms("min-delay-ms=") <= ms("max-delay-ms=") && (!exponential || ms("min-delay-ms=") > 0)
}

impl Errors {
    /// `open`: only the clock makes operations start.
    pub(super) fn parse(words: Option<&[String]>, open: bool) -> Result<Self, SettingsError> {
        let (_, taken) = select("-errors", words.unwrap_or_default(), alternatives())?;
        let given: Option<u32> =
            taken.given("retries=").map(|text| number::whole("-errors retries=", text)).transpose()?;
        let bounds_ms = (
            number::whole("-errors min-delay-ms=", taken.text("min-delay-ms="))?,
            number::whole("-errors max-delay-ms=", taken.text("max-delay-ms="))?,
        );
        let (min, max) = (Duration::from_millis(bounds_ms.0), Duration::from_millis(bounds_ms.1));
        let mut errors = Errors {
            tries: given.unwrap_or(RETRIES).saturating_add(1),
            given: given.is_some(),
            ignore: taken.flag("ignore"),
            fail_fast: taken.flag("fail-fast"),
            skip_read_validation: taken.flag("skip-read-validation"),
            skip_unsupported_columns: taken.flag("skip-unsupported-columns"),
            delay: match taken.text("delay-policy=").to_ascii_lowercase().as_str() {
                "linear" => RetryDelay::Linear { min, max },
                "exponential" => RetryDelay::Exponential { min, max },
                _ if min.is_zero() => RetryDelay::None,
                _ => RetryDelay::Constant(min),
            },
            bounds_ms,
        };
        errors.suit(open);
        Ok(errors)
    }

    /// Sets the default of an open loop or of any other, unless `retries=` is given.
    pub fn suit(&mut self, open: bool) {
        if !self.given {
            self.tries = if open { 1 } else { RETRIES + 1 };
        }
    }

    pub(super) fn block(&self) -> String {
        let mut text =
            format!("  Ignore: {}\n  Fail fast setting: {}\n  Tries: {}\n", self.ignore, self.fail_fast, self.tries);
        let policy = match self.delay {
            RetryDelay::None => return text,
            RetryDelay::Constant(_) => "constant",
            RetryDelay::Linear { .. } => "linear",
            RetryDelay::Exponential { .. } => "exponential",
        };
        let ms = |ms: u64| number::grouped(i64::try_from(ms).unwrap_or(i64::MAX)) + " MILLISECONDS";
        text.push_str(&format!("  RetryPolicy: {policy}\n  Minimum Delay: {}\n", ms(self.bounds_ms.0)));
        if policy != "constant" {
            text.push_str(&format!("  Maximum Delay: {}\n", ms(self.bounds_ms.1)));
        }
        text
    }
}
