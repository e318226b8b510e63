//! `-log json=`: one object about the whole run, documented in `docs/stress-json.md`.
//!
//! Times are nanoseconds. Every latency carries its histogram (HdrHistogram V2, deflated, base64), so that the results
//! of several clients can be combined without averaging percentiles.

use std::collections::BTreeMap;

use brownout_load::{Balance, Histogram};
use brownout_record::{Latencies, Percentile, Population};
use serde::Serialize;

use super::{
    Cell, Measure, Operation, SHOWN, Total, hdrlog::encoded, per_second, percentile, words::without_passwords,
};

/// Version of the object: raised when a field changes its meaning or is removed.
pub const FORMAT: u32 = 2;

/// What only the runner knows.
#[derive(Debug, Clone, Default)]
pub struct RunFacts {
    /// The words of the command.
    pub command: String,
    /// Unix time of the start, ms.
    pub started_unix_ms: u64,
    /// Whether the run completed as instructed: `END` and not `FAILURE`.
    pub success: bool,
    /// The seed of all random choices, if there is one.
    pub seed: Option<u64>,
    /// The result of a search.
    pub search: Option<SearchFacts>,
}

impl SearchFacts {
    /// Even the highest rate tried keeps the objectives.
    pub const ALWAYS: &str = "always";
    /// Even the lowest rate tried misses them.
    pub const NEVER: &str = "never";
    /// The client was late in every try at a rate, so the client is the limit.
    pub const CLIENT: &str = "client";
    /// There were no more operations, so that there is no answer.
    pub const DRY: &str = "dry";
}

/// The result of a search. Rates are operations per second.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SearchFacts {
    /// The objectives, as they were given.
    pub objectives: Vec<String>,
    /// `threshold`, `always`, `never`, `client` (it is the limit itself), `dry` (there were no more operations) or `interrupted`.
    pub found: &'static str,
    /// The threshold; of `always` and `never` the rate that was tried, of `client` and `dry` the highest that was kept; none where nothing is known.
    pub rate: Option<f64>,
    /// The threshold is between these with 95 % probability.
    pub interval: Option<(f64, f64)>,
    /// The rate at which, with 90 % probability, 19 of 20 steps keep the objectives.
    pub safe_rate: Option<f64>,
}

/// The object of a run. For a run in steps, `total` is its last step (of thread counts) or all of it (of a search), and
/// `steps` lists them all.
pub fn to_json(facts: &RunFacts, total: &Total, steps: &[(String, Total)]) -> serde_json::Value {
    let object = RunJson {
        format: FORMAT,
        version: env!("CARGO_PKG_VERSION"),
        command: without_passwords(&facts.command),
        started_unix_ms: facts.started_unix_ms,
        success: facts.success,
        seed: facts.seed,
        search: facts.search.as_ref(),
        result: StepJson::of(None, total),
        steps: steps.iter().map(|(name, total)| StepJson::of(Some(name), total)).collect(),
    };
    // Maps have text keys and numbers are finite or null: nothing here can fail.
    serde_json::to_value(&object).unwrap_or_default()
}

#[derive(Serialize)]
struct RunJson<'a> {
    format: u32,
    version: &'static str,
    command: String,
    started_unix_ms: u64,
    success: bool,
    seed: Option<u64>,
    search: Option<&'a SearchFacts>,
    #[serde(flatten)]
    result: StepJson<'a>,
    steps: Vec<StepJson<'a>>,
}

#[derive(Serialize)]
struct StepJson<'a> {
    name: Option<&'a str>,
    duration_ns: u64,
    due_ns: u64,
    drain: DrainJson,
    population: &'static str,
    measure: &'static str,
    stderr: Option<f64>,
    balance: BalanceJson<'a>,
    total: OperationJson,
    operations: Vec<OperationJson>,
    findings: BTreeMap<&'static str, u64>,
    client: ClientJson,
    remarks: &'a [String],
    warnings: &'a [String],
}

impl<'a> StepJson<'a> {
    fn of(name: Option<&'a str>, total: &'a Total) -> Self {
        let interval = &total.interval;
        let of_each = |operation| OperationJson::of(operation, total.due_ns());
        let drain = total.drain.unwrap_or_default();
        let found = &interval.findings;
        let late = total.late_intervals().map(|at| at.saturating_sub(interval.start_ns));
        StepJson {
            name,
            duration_ns: interval.length_ns,
            due_ns: total.due_ns(),
            drain: DrainJson { length_ns: drain.length_ns, ended: drain.ended },
            population: SHOWN.name(),
            measure: match interval.measure {
                Measure::Service => "service",
                Measure::Response => "response",
            },
            stderr: Some(total.uncertainty.value()).filter(|value| value.is_finite()),
            balance: BalanceJson::of(&total.balance),
            total: OperationJson::of(&interval.all(), total.due_ns()),
            operations: interval.operations.iter().map(of_each).collect(),
            findings: BTreeMap::from([
                ("stale", found.stale),
                ("empty", found.empty),
                ("missing", found.missing),
                ("mismatched", found.mismatched),
                ("rerouted", found.rerouted),
            ]),
            client: ClientJson {
                lateness: latency(&interval.lateness),
                late_starts: interval.late_starts,
                intervals: total.intervals,
                late_intervals_ns: late.collect(),
                late_ns: total.late_ns(),
            },
            remarks: &total.remarks,
            warnings: &total.warnings,
        }
    }
}

#[derive(Serialize)]
struct BalanceJson<'a> {
    balances: bool,
    scheduled: u64,
    sent: u64,
    never_sent: u64,
    waiting: u64,
    withheld: u64,
    answered_ok: u64,
    failed: u64,
    timed_out: u64,
    in_flight: u64,
    late: u64,
    failures: BTreeMap<&'static str, u64>,
    connections_lost: u64,
    garbage: u64,
    lost_threads: &'a [String],
}

impl<'a> BalanceJson<'a> {
    fn of(sheet: &'a Balance) -> Self {
        BalanceJson {
            balances: sheet.balances(),
            scheduled: sheet.scheduled,
            sent: sheet.sent,
            never_sent: sheet.never_sent,
            waiting: sheet.waiting,
            withheld: sheet.withheld,
            answered_ok: sheet.answered_ok,
            failed: sheet.failed,
            timed_out: sheet.timed_out,
            in_flight: sheet.in_flight,
            late: sheet.late,
            failures: sheet.failures.iter().map(|(class, count)| (class.name(), *count)).collect(),
            connections_lost: sheet.connections_lost,
            garbage: sheet.garbage,
            lost_threads: &sheet.lost_threads,
        }
    }
}

#[derive(Serialize)]
struct ClientJson {
    lateness: Option<LatencyJson>,
    late_starts: u64,
    intervals: u64,
    late_intervals_ns: Vec<u64>,
    late_ns: u64,
}

#[derive(Serialize)]
struct DrainJson {
    length_ns: u64,
    ended: u64,
}

#[derive(Serialize)]
struct OperationJson {
    name: String,
    ended: u64,
    errors: u64,
    never_sent: u64,
    requests: u64,
    requests_per_operation: Option<f64>,
    partitions: u64,
    rows: u64,
    conditional: u64,
    applied: u64,
    not_applied: u64,
    operations_per_second: f64,
    partitions_per_second: f64,
    rows_per_second: f64,
    populations: BTreeMap<&'static str, PopulationJson>,
    outcomes: BTreeMap<&'static str, OutcomeJson>,
    attempts: AttemptsJson,
    pages: Option<PagesJson>,
    coordinators: BTreeMap<String, BTreeMap<&'static str, OutcomeJson>>,
}

impl OperationJson {
    fn of(operation: &Operation, length_ns: u64) -> Self {
        let mut together = Operation::new(&operation.name);
        let mut coordinators: BTreeMap<String, BTreeMap<&'static str, OutcomeJson>> = BTreeMap::new();
        for cell in &operation.cells {
            together.cell("", cell.outcome).add(cell);
            coordinators
                .entry(cell.coordinator.clone())
                .or_default()
                .insert(cell.outcome.name(), OutcomeJson::of(cell));
        }
        OperationJson {
            name: operation.name.clone(),
            ended: operation.ended(),
            errors: operation.errors(),
            never_sent: operation.never_sent,
            requests: operation.requests,
            requests_per_operation: operation.requests_each(),
            partitions: operation.partitions,
            rows: operation.rows,
            conditional: operation.conditional,
            applied: operation.applied(),
            not_applied: operation.not_applied,
            operations_per_second: per_second(operation.ended(), length_ns),
            partitions_per_second: per_second(operation.partitions, length_ns),
            rows_per_second: per_second(operation.rows, length_ns),
            populations: PopulationJson::all(operation),
            outcomes: together.cells.iter().map(|cell| (cell.outcome.name(), OutcomeJson::of(cell))).collect(),
            attempts: AttemptsJson::of(operation),
            pages: latency(&operation.pages).map(|service| PagesJson { population: Population::Ok.name(), service }),
            coordinators,
        }
    }
}

/// Service and response times of one population.
#[derive(Serialize)]
struct PopulationJson {
    count: u64,
    service: BTreeMap<&'static str, PercentileJson>,
    response: BTreeMap<&'static str, PercentileJson>,
}

/// In ns, and whether they are only lower bounds; null where the rank lies among operations that failed or were never
/// sent.
#[derive(Serialize)]
struct PercentileJson {
    value_ns: Option<u64>,
    at_least: bool,
}

impl PopulationJson {
    fn all(operation: &Operation) -> BTreeMap<&'static str, Self> {
        let service = operation.latencies(|cell| &cell.service);
        let response = operation.latencies(|cell| &cell.response);
        let each = |of: Population| {
            let own = PopulationJson {
                count: response.count(of),
                service: PercentileJson::all(&service, of),
                response: PercentileJson::all(&response, of),
            };
            (of.name(), own)
        };
        Population::ALL.into_iter().map(each).collect()
    }
}

impl PercentileJson {
    fn all(latencies: &Latencies, of: Population) -> BTreeMap<&'static str, Self> {
        let names = [("p50", 50.0), ("p95", 95.0), ("p99", 99.0), ("p999", 99.9), ("max", 100.0)];
        let each = |(name, percent)| {
            let found = latencies.percentile(of, percent)?;
            let at_least = matches!(found, Percentile::AtLeast(_));
            Some((name, PercentileJson { value_ns: found.ns(), at_least }))
        };
        names.into_iter().filter_map(each).collect()
    }
}

/// Requests of operations that may be retried, which have ended; and by outcome.
#[derive(Serialize)]
struct AttemptsJson {
    count: u64,
    populations: BTreeMap<&'static str, RequestsJson>,
    outcomes: BTreeMap<&'static str, Option<LatencyJson>>,
}

/// Service times of one population of requests.
#[derive(Serialize)]
struct RequestsJson {
    count: u64,
    service: BTreeMap<&'static str, PercentileJson>,
}

impl AttemptsJson {
    fn of(operation: &Operation) -> Self {
        let times = operation.attempt_latencies();
        let each = |of: Population| RequestsJson { count: times.count(of), service: PercentileJson::all(&times, of) };
        AttemptsJson {
            count: operation.attempts_ended(),
            populations: Population::ALL.into_iter().map(|of| (of.name(), each(of))).collect(),
            outcomes: operation.attempts.iter().map(|(outcome, times)| (outcome.name(), latency(times))).collect(),
        }
    }
}

/// Service times of pages, and of which.
#[derive(Serialize)]
struct PagesJson {
    population: &'static str,
    #[serde(flatten)]
    service: LatencyJson,
}

#[derive(Serialize)]
struct OutcomeJson {
    count: u64,
    wait: Option<LatencyJson>,
    service: Option<LatencyJson>,
    response: Option<LatencyJson>,
}

impl OutcomeJson {
    fn of(cell: &Cell) -> Self {
        OutcomeJson {
            count: cell.count,
            wait: latency(&cell.wait),
            service: latency(&cell.service),
            response: latency(&cell.response),
        }
    }
}

#[derive(Serialize)]
struct LatencyJson {
    count: u64,
    mean_ns: f64,
    min_ns: u64,
    p50_ns: u64,
    p90_ns: u64,
    p95_ns: u64,
    p99_ns: u64,
    p999_ns: u64,
    p9999_ns: u64,
    max_ns: u64,
    histogram: Option<String>,
}

fn latency(times: &Histogram<u64>) -> Option<LatencyJson> {
    let at = |share| percentile(times, share);
    (!times.is_empty()).then(|| LatencyJson {
        count: times.len(),
        mean_ns: times.mean(),
        min_ns: times.min(),
        p50_ns: at(50.0),
        p90_ns: at(90.0),
        p95_ns: at(95.0),
        p99_ns: at(99.0),
        p999_ns: at(99.9),
        p9999_ns: at(99.99),
        max_ns: times.max(),
        histogram: encoded(times).ok(),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;
    use crate::output::sample;

    fn object() -> Value {
        let (_, mut total) = sample::mixed();
        total.balance = sample::balance();
        total.warnings.push("a warning".to_owned());
        let facts = RunFacts {
            command: "mixed n=7 -mode password=secret".to_owned(),
            started_unix_ms: 1_700_000_000_250,
            success: true,
            seed: Some(42),
            search: Some(SearchFacts {
                objectives: vec!["p99<20ms".to_owned()],
                found: "threshold",
                rate: Some(1000.0),
                interval: Some((900.0, 1100.0)),
                safe_rate: Some(850.0),
            }),
        };
        to_json(&facts, &total, &[("4 threadCount".to_owned(), total.clone())])
    }

    #[test]
    fn the_numbers_are_those_of_the_run() {
        let run = object();
        assert_eq!((&run["format"], &run["seed"], &run["success"]), (&2.into(), &42.into(), &true.into()));
        assert_eq!(run["command"], "mixed n=7 -mode password=*******");
        assert_eq!(run["measure"], "response");
        assert_eq!(run["balance"]["balances"], true);
        assert_eq!(run["total"]["ended"], 7);
        let write = &run["operations"][1];
        assert_eq!((&write["name"], &write["errors"]), (&"WRITE".into(), &2.into()));
        assert_eq!(write["outcomes"]["ok"]["response"]["p99_ns"], 10_002_431);
        assert_eq!(write["outcomes"]["timed-out"]["count"], 1);
        assert_eq!(write["coordinators"]["n2"]["overloaded"]["count"], 1);
        assert_eq!(run["steps"][0]["name"], "4 threadCount");
    }

    #[test]
    fn every_field_is_documented() {
        let documented = include_str!("../../../../docs/stress-json.md");
        let mut names = BTreeSet::new();
        collect(&object(), &mut names);
        // Keys that come from the data: operations, coordinators, outcomes.
        let of_data = ["n1", "n2", "ok", "timed-out", "overloaded", "ok+timed-out", "due"];
        for name in names.iter().filter(|name| !of_data.contains(&name.as_str())) {
            assert!(documented.contains(&format!("`{name}`")), "docs/stress-json.md says nothing of `{name}`");
        }
    }

    fn collect(value: &Value, names: &mut BTreeSet<String>) {
        match value {
            Value::Object(map) => {
                for (name, value) in map {
                    names.insert(name.clone());
                    collect(value, names);
                }
            }
            Value::Array(values) => values.iter().for_each(|value| collect(value, names)),
            _ => {}
        }
    }
}
