//! Numbers and moments as people read them; the terminal and the HTML use the same.

use brownout_analysis::{
    Effect, Findings, LabFindings, Part, PhaseFindings, Proof, Quantile, Range, RecoveryOverTrials, Verdict, words,
};
use brownout_record::Quantity;
use brownout_units::format_ns;

pub use brownout_analysis::words::{SHOWN, bound, percent, relative, relative_range, share};

/// Behind the name of a node that ended itself because its disk failed.
pub const OF_ITS_DISK: &str = ", whose disk a fault made fail,";

/// What stands where there is no value.
pub const NONE: &str = "–";

/// The first `most` letters of a text that is longer.
pub fn shorten(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most - 1).chain(['…']).collect()
}

/// A percentile as [`quantile`] has it, or `never` where it lies beyond every limit.
pub fn limit(value: Option<Quantile>) -> String {
    value.map_or_else(|| "never".to_owned(), quantile)
}

/// `1.23ms`, or `≥2.00s` for a lower bound.
pub fn quantile(value: Quantile) -> String {
    format!("{}{}", if value.at_least { "≥" } else { "" }, format_ns(value.value_ns as f64))
}

/// The response p50 and p99 of a part of the load, and how many of its operations were never sent, if any.
pub fn part(part: &Part) -> String {
    let times = or_none(part.response, |response| format!("{} / {}", quantile(response.p50), quantile(response.p99)));
    match part.never_sent {
        None | Some(0) => times,
        Some(never_sent) => format!("{times}, {} never sent", count(never_sent)),
    }
}

/// How many operations were never sent, and how many were due beside them and found no user, if any.
pub fn not_sent(never_sent: u64, withheld: u64) -> String {
    match withheld {
        0 => count(never_sent),
        withheld => format!("{} + {} withheld", count(never_sent), count(withheld)),
    }
}

/// A count with its thousands apart: `12 345`.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// Operations per second: whole from ten on.
pub fn rate(value: f64) -> String {
    if value >= 9.95 { count(value.round() as u64) } else { format!("{value:.1}") }
}

/// A value or [`NONE`].
pub fn or_none<T>(value: Option<T>, show: impl Fn(T) -> String) -> String {
    value.map_or_else(|| NONE.to_owned(), show)
}

/// A change in its quantity's unit, with its sign.
pub fn change(quantity: Quantity, value: f64) -> String {
    format!("{}{}", if value >= 0.0 { "+" } else { "" }, words::number(quantity, value))
}

/// A proof's verdict.
pub fn proof(verdict: Proof) -> &'static str {
    match verdict {
        Proof::Proven => "proven",
        Proof::Refuted => "refuted",
        Proof::Unproven => "unproven",
    }
}

/// When goodput came back: known to within one interval.
pub fn recovery(effect: &Effect) -> String {
    let relapse = if effect.relapsed == Some(true) { ", after a relapse" } else { "" };
    match (effect.recovered, effect.recovery_ns, effect.recovery_resolution_ns) {
        (Some(true), Some(ns), Some(resolution)) if ns <= resolution => {
            format!("within {}{relapse}", seconds(ns.max(resolution) as f64))
        }
        (Some(true), Some(ns), Some(resolution)) => {
            format!("{} … {}{relapse}", seconds((ns - resolution) as f64), seconds(ns as f64))
        }
        (Some(false), ..) => "not within the recovery phase".to_owned(),
        _ => NONE.to_owned(),
    }
}

/// The same over trials: `median 3.0s (2.0s … 4.0s, 93.8% sure)`.
pub fn recovery_over_trials(over: &RecoveryOverTrials) -> String {
    let time = |ns: Option<u64>| ns.map_or_else(|| "never".to_owned(), |ns| seconds(ns as f64));
    let (low, high, sure) = (time(over.low_ns), time(over.high_ns), share(over.confidence));
    format!("median {} ({low} … {high}, {sure} sure)", time(over.median_ns))
}

/// Seconds with one decimal.
pub fn seconds(ns: f64) -> String {
    format!("{:.1}s", ns / 1e9)
}

/// The reasons that the verdict's sentence does not tell: it has the first one already, but only its first line.
pub fn more_reasons(verdict: &Verdict) -> &[String] {
    match &verdict.reasons[..] {
        [first, more @ ..] if !first.contains('\n') => more,
        all => all,
    }
}

/// How a phase ended, in words.
pub fn ended(phase: &PhaseFindings) -> String {
    match (phase.finished, phase.ended_by.as_deref()) {
        (false, _) => "cut".to_owned(),
        (true, Some("stationary")) => "latency was stationary".to_owned(),
        (true, Some("limit")) => "its limit: latency was not stationary yet".to_owned(),
        (true, Some("time")) => "its time was over".to_owned(),
        (true, Some("interrupt")) => "interrupted".to_owned(),
        (true, Some("failure")) => "the trial failed".to_owned(),
        (true, Some(other)) => other.to_owned(),
        (true, None) => "differs by trial".to_owned(),
    }
}

/// How many trials a run has of how many: `4 trials`, `3 of 4 trials`, `5 attempts at 4 trials`.
pub fn trials(findings: &Findings) -> String {
    let planned = match &findings.search {
        // How many it takes, a search itself decides.
        Some(search) if search.is_over => search.trials,
        _ => findings.design.only.map_or(findings.design.trials, |_| 1),
    };
    let mut done: Vec<u32> = findings.trials.iter().map(|trial| trial.planned).collect();
    done.sort_unstable();
    done.dedup();
    let s = if planned == 1 { "" } else { "s" };
    match (done.len() as u32 == planned, findings.trials.len() == done.len()) {
        (true, true) => format!("{planned} trial{s}"),
        (true, false) => format!("{} attempts at {planned} trial{s}", findings.trials.len()),
        (false, _) => format!("{} of {planned} trials", done.len()),
    }
}

/// `2 labs at once: lab 1 on processors 0-3 (12 trials), lab 2 on 4-7 (11 trials)`; none where there was one.
pub fn labs(findings: &Findings) -> Option<String> {
    let at_once = findings.design.labs;
    if at_once < 2 {
        return None;
    }
    let lab = |(at, lab): (usize, &LabFindings)| {
        let on = match (&lab.processors[..], at) {
            ([], _) => String::new(),
            (lists, 0) => format!(" on processors {}", lists.join(" or ")),
            (lists, _) => format!(" on {}", lists.join(" or ")),
        };
        format!("lab {}{on} ({} trial{})", lab.lab, lab.trials, if lab.trials == 1 { "" } else { "s" })
    };
    let each: Vec<String> = findings.labs.iter().enumerate().map(lab).collect();
    // One trial alone, or the last that were missing, may have taken fewer.
    let some =
        if findings.labs.len() < at_once as usize { format!("{} of ", findings.labs.len()) } else { String::new() };
    Some(format!("{some}{at_once} labs at once: {}", each.join(", ")))
}

/// `2026-05-28 20:26:40 UTC` from ms since 1970.
pub fn date(unix_ms: u64) -> String {
    let moment = i64::try_from(unix_ms).ok().and_then(chrono::DateTime::from_timestamp_millis).unwrap_or_default();
    moment.format("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// Shares from the least to the most; one if they are the same.
pub fn shares(range: Range) -> String {
    match range.min == range.max {
        true => share(range.min),
        false => format!("{} … {}", share(range.min), share(range.max)),
    }
}

/// Whose response time an objective is of: "the operations", "operation read".
pub fn whose(objective: &brownout_record::Objective) -> String {
    objective.operation.as_ref().map_or_else(|| "the operations".to_owned(), |name| format!("operation {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_the_calendars() {
        for (ms, text) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_400_000, "2000-02-29 00:00:00 UTC"),
            (1_780_000_000_000, "2026-05-28 20:26:40 UTC"),
        ] {
            assert_eq!(date(ms), text);
        }
    }

    #[test]
    fn a_text_is_shortened_to_so_many_letters_and_says_so() {
        assert_eq!(["n1 → n2", "n1 → n23"].map(|place| shorten(place, 7)), ["n1 → n2", "n1 → n…"]);
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!(count(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!((rate(9.94), rate(1234.4)), ("9.9".to_owned(), "1\u{202f}234".to_owned()));
        assert_eq!(quantile(Quantile { value_ns: 2_000_000_000, at_least: true }), "≥2.00s");
    }

    #[test]
    fn a_recovery_is_told_with_the_interval_in_which_it_came() {
        let of = |seconds: u64, relapsed| {
            recovery(&Effect {
                recovered: Some(true),
                recovery_ns: Some(seconds * 1_000_000_000),
                recovery_resolution_ns: Some(1_000_000_000),
                relapsed: Some(relapsed),
                ..Effect::default()
            })
        };
        assert_eq!([of(0, false), of(1, false), of(4, false)], ["within 1.0s", "within 1.0s", "3.0s … 4.0s"]);
        assert_eq!(of(13, true), "12.0s … 13.0s, after a relapse");
        let never = Effect { recovered: Some(false), ..Effect::default() };
        assert_eq!(recovery(&never), "not within the recovery phase");
        let over = RecoveryOverTrials {
            trials: 4,
            recovered: 3,
            median_ns: Some(4_500_000_000),
            low_ns: Some(3_000_000_000),
            high_ns: None,
            confidence: 0.875,
        };
        assert_eq!(recovery_over_trials(&over), "median 4.5s (3.0s … never, 87.5% sure)");
    }
}
