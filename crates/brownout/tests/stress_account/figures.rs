//! Figures of one run as its outputs tell them, and the one comparison of all: with what the histograms of `-log json=`
//! give by the fold of the record.

use brownout_record::{Histogram, Latencies, LatencyRow, Percentile, Population, decode_histogram};
use serde_json::Value;

use crate::stress::Done;

/// What outputs print percentiles of.
pub const PERCENTS: [(&str, f64); 5] = [("p50", 50.0), ("p95", 95.0), ("p99", 99.0), ("p999", 99.9), ("max", 100.0)];

/// A percentile that an output tells.
pub struct Figure {
    /// Where: the line, column or field.
    pub place: String,
    pub of: Population,
    pub percent: f64,
    pub told: Told,
}

/// How an output tells it.
#[derive(Debug)]
pub enum Told {
    /// All of it.
    Exactly(Option<Percentile>),
    /// In ns, without a word of whether it is only the least.
    Ns(u64),
    /// As people read it: `1.234`, `≥300.000`, `never`.
    Printed(String),
    /// In ms, rounded to so many.
    Ms(f64, f64),
}

/// The latencies of some operations or attempts by the histograms of JSON.
#[derive(Default)]
pub struct Reference {
    /// Also of those that timed out it is fully known.
    pub wait: Latencies,
    pub service: Latencies,
    pub response: Latencies,
}

impl Reference {
    /// From `outcomes`, and so many more that were due.
    pub fn of(outcomes: &Value, never: u64) -> Reference {
        let mut all = Reference::default();
        for (outcome, figures) in outcomes.as_object().unwrap() {
            let count = figures["count"].as_u64().unwrap();
            for (name, to) in [("wait", &mut all.wait), ("service", &mut all.service), ("response", &mut all.response)]
            {
                // Of attempts there are service times alone, which then are the figures themselves.
                let times = if figures.get(name).is_some() { &figures[name] } else { figures };
                match outcome.as_str() {
                    "ok" => to.add_ok(&histogram(times)),
                    "timed-out" if name == "wait" => to.add_ok(&histogram(times)),
                    "timed-out" => to.add_timed_out(&histogram(times)),
                    "late" => {}
                    _ => to.add_failed(count),
                }
            }
        }
        all.service.add_never_sent(never);
        all.response.add_never_sent(never);
        all
    }

    /// From rows of the record, and so many more that were due.
    pub fn of_rows<'a>(rows: impl Iterator<Item = &'a LatencyRow>, never: u64) -> Reference {
        let mut all = Reference::default();
        for row in rows {
            for (to, times) in [(&mut all.service, &row.service), (&mut all.response, &row.response)] {
                match row.outcome.as_str() {
                    "ok" => to.add_ok(times),
                    "timed-out" => to.add_timed_out(times),
                    "late" => {}
                    _ => to.add_failed(row.count),
                }
            }
            if matches!(row.outcome.as_str(), "ok" | "timed-out") {
                all.wait.add_ok(&row.wait);
            }
        }
        all.service.add_never_sent(never);
        all.response.add_never_sent(never);
        all
    }

    pub fn latency(&self, name: &str) -> &Latencies {
        match name {
            "wait" => &self.wait,
            "service" => &self.service,
            _ => &self.response,
        }
    }
}

/// The one operation of these runs.
pub fn operation(done: &Done) -> &Value {
    &done.json["operations"][0]
}

/// Its latencies. What found no free user was due, too.
pub fn reference(done: &Done) -> Reference {
    Reference::of(&operation(done)["outcomes"], done.sheet("never_sent") + done.sheet("withheld"))
}

/// Every figure is what the latencies give.
pub fn compare(what: &str, done: &Done, latencies: &Latencies, figures: impl IntoIterator<Item = Figure>) {
    for Figure { place, of, percent, told } in figures {
        let expected = latencies.percentile(of, percent);
        let ns = expected.and_then(Percentile::ns);
        let same = match &told {
            Told::Exactly(found) => *found == expected,
            Told::Ns(found) => *found == ns.unwrap_or(0),
            Told::Printed(found) => *found == printed(expected),
            Told::Ms(found, within) => (found - ns.unwrap_or(0) as f64 / 1e6).abs() <= *within,
        };
        assert!(same, "{what}: {place}, {percent} % of {of}: told {told:?}, but is {expected:?}: {done}");
    }
}

/// A percentile as people read it.
pub fn printed(percentile: Option<Percentile>) -> String {
    match percentile {
        Some(Percentile::Is(ns)) => format!("{:.3}", ns as f64 / 1e6),
        Some(Percentile::AtLeast(ns)) => format!("≥{:.3}", ns as f64 / 1e6),
        Some(Percentile::Never) | None => "never".to_owned(),
    }
}

/// `p50 1.234 p95 … max ≥300.000 ms`, and what may follow.
pub fn line_of_percentiles(place: &str, of: Population, text: &str) -> Vec<Figure> {
    let words: Vec<&str> = text.split(' ').collect();
    assert_eq!(words.get(10), Some(&"ms"), "{place}: {text}");
    let figure = |(place_of, (name, percent)): (usize, (&str, f64))| {
        assert_eq!(words[2 * place_of].replace("99.9", "999"), name, "{place}: {text}");
        Figure { place: place.to_owned(), of, percent, told: Told::Printed(words[2 * place_of + 1].to_owned()) }
    };
    PERCENTS.into_iter().enumerate().map(figure).collect()
}

/// The percentiles of an object of JSON: `value_ns` and `at_least`; without them beyond every limit.
pub fn object_of_percentiles(place: &str, of: Population, object: &Value) -> Vec<Figure> {
    let figure = |(name, percent)| {
        let value = object.get(name)?;
        let told = match (value["value_ns"].as_u64(), value["at_least"] == true) {
            (None, _) => Percentile::Never,
            (Some(ns), true) => Percentile::AtLeast(ns),
            (Some(ns), false) => Percentile::Is(ns),
        };
        Some(Figure { place: format!("{place} {name}"), of, percent, told: Told::Exactly(Some(told)) })
    };
    PERCENTS.into_iter().filter_map(figure).collect()
}

/// The histogram of an object of JSON, which may be null.
pub fn histogram(times: &Value) -> Histogram {
    times["histogram"].as_str().map_or_else(|| Histogram::new(3).unwrap(), decoded)
}

/// HdrHistogram V2, deflated, base64.
pub fn decoded(text: &str) -> Histogram {
    decode_histogram(&from_base64(text)).unwrap()
}

fn from_base64(text: &str) -> Vec<u8> {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let mut out = Vec::new();
    for four in text.as_bytes().chunks(4) {
        let own: Vec<u8> = four.iter().filter(|byte| **byte != b'=').map(|byte| value(*byte)).collect();
        let word = own.iter().fold(0_u32, |word, six| word << 6 | u32::from(*six)) << (6 * (4 - own.len()));
        out.extend_from_slice(&word.to_be_bytes()[1..own.len()]);
    }
    out
}
