//! What cassandra-stress does not report: the balance sheet, the three latencies, attempts, errors by class,
//! coordinators, pages, conditional writes, late answers, and how punctual the client itself was.
//!
//! It is printed in front of `Results:`. Every line is `name : text` with names that occur nowhere in that block, holds
//! fewer than 18 commas and no word that scripts look for ("Op rate", "Latency", "Total"), so that line-wise parsers of
//! cassandra-stress's output pass over it.

use std::collections::BTreeMap;

use brownout_load::{Histogram, Outcome};
use brownout_record::{Latencies, Percentile, Population};

use super::{
    Measure, Operation, SHOWN, Total, ms,
    number::{count, fixed},
};

/// The lines, without line breaks; the first is empty, to part them from the rows.
pub fn account(total: &Total) -> Vec<String> {
    let mut lines = Lines(vec![String::new()]);
    balance(total, &mut lines);
    latencies(total, &mut lines);
    errors(total, &mut lines);
    coordinators(total, &mut lines);
    contents(total, &mut lines);
    client(total, &mut lines);
    for remark in &total.remarks {
        lines.say("Reads and the disk", &remark.replace('\n', " "));
    }
    for warning in &total.warnings {
        lines.say("Warning", &warning.replace('\n', " "));
    }
    lines.0
}

/// Of the account only which times rows and results show, and of which operations: they are never printed without that.
pub fn populations(total: &Total) -> Vec<String> {
    let mut lines = Lines(vec![String::new()]);
    what_is_shown(total, &mut lines);
    lines.0
}

/// At most this many late intervals are listed; `-log json=` has all.
const NAMED: usize = 20;

/// A drain in which nothing ended is reported from this length on: 1 s.
const LONG_DRAIN_NS: u64 = 1_000_000_000;

struct Lines(Vec<String>);

impl Lines {
    fn say(&mut self, name: &str, text: &str) {
        self.0.push(format!("{name:<26}: {text}"));
    }
}

fn balance(total: &Total, lines: &mut Lines) {
    let sheet = &total.balance;
    let mut scheduled = format!(
        "{} scheduled = {} sent + {} never sent",
        count(sheet.scheduled),
        count(sheet.sent),
        count(sheet.never_sent)
    );
    if sheet.waiting > 0 {
        scheduled.push_str(&format!(" + {} waiting", count(sheet.waiting)));
    }
    let mut sent = format!(
        "{} sent = {} answered + {} failed + {} timed out",
        count(sheet.sent),
        count(sheet.answered_ok),
        count(sheet.failed),
        count(sheet.timed_out)
    );
    if sheet.in_flight > 0 {
        sent.push_str(&format!(" + {} in flight", count(sheet.in_flight)));
    }
    lines.say("Account of operations", &scheduled);
    lines.say("", &sent);
    if !sheet.balances() {
        lines.say("", "THIS DOES NOT BALANCE: part of what happened is not in these figures");
    }
    for lost in &sheet.lost_threads {
        lines.say("", &format!("a load thread died, and its part is missing: {}", lost.replace('\n', " ")));
    }
    if sheet.withheld > 0 {
        let text = format!(
            "{} partitions that the rate called for: no thread was free to ask for them",
            count(sheet.withheld)
        );
        lines.say("Never asked", &text);
    }
    if sheet.timed_out > 0 {
        let text = format!("{} of the {} timed out were answered after all", count(sheet.late), count(sheet.timed_out));
        lines.say("Answers that came too late", &text);
        let mut late = Latencies::new();
        let cells = total.interval.operations.iter().flat_map(|operation| &operation.cells);
        cells.filter(|cell| cell.outcome == Outcome::Late).for_each(|cell| late.add_ok(&cell.response));
        if late.count(Population::Ok) > 0 {
            lines.say("", &format!("{} from the intended start", percentiles(&late, Population::Ok)));
        }
    }
    if let Some(drain) = &total.drain
        && (drain.ended > 0 || drain.length_ns >= LONG_DRAIN_NS)
    {
        let text = format!(
            "{} s after operations were due for {} s: {} ended in it; rates are of the time in which they were due",
            fixed(drain.length_ns as f64 / 1e9, 1),
            fixed(total.due_ns() as f64 / 1e9, 1),
            count(drain.ended)
        );
        lines.say("Drain", &text);
    }
    if sheet.connections_lost > 0 {
        let text = format!(
            "{} ({} of them closed by the client: the server's bytes made no sense)",
            count(sheet.connections_lost),
            count(sheet.garbage)
        );
        lines.say("Connections lost", &text);
    }
}

/// Which times rows and results show, and of which operations.
fn what_is_shown(total: &Total, lines: &mut Lines) {
    let shown = match total.interval.measure {
        Measure::Service => "service times, as sent",
        Measure::Response => "response times, from the intended start",
    };
    lines.say("Times in the rows", &format!("{shown}; the block below shows these, too"));
    let text = "those answered ok and those timed out (with the time-out: \u{2265}), unless a line says otherwise";
    lines.say("Times are of", text);
}

/// Wait, service and response of each operation, and of its attempts and pages. What the rows show comes first; a
/// population that differs from it has a line of its own.
fn latencies(total: &Total, lines: &mut Lines) {
    what_is_shown(total, lines);
    for operation in &total.interval.operations {
        let response = operation.latencies(|cell| &cell.response);
        let mut say = |what: &str, latencies: &Latencies, of: Population| {
            if latencies.count(of) > 0 {
                lines.say(&format!("{} {what}", operation.name), &percentiles(latencies, of));
            }
        };
        say("wait (held back)", &exact(&operation.latencies(|cell| &cell.wait)), SHOWN);
        say("service (answering)", &operation.latencies(|cell| &cell.service), SHOWN);
        say("response (both)", &response, SHOWN);
        if response.count(Population::Ok) < response.count(SHOWN) {
            say("response, ok", &response, Population::Ok);
        }
        if response.count(SHOWN) < response.count(Population::Due) {
            say("response, all due", &response, Population::Due);
        }
        say("pages (each), ok", &plain(&operation.pages), Population::Ok);
        if retried(operation) {
            say("attempts (each)", &operation.attempt_latencies(), SHOWN);
        }
    }
    if total.interval.withheld > 0 && total.interval.operations.len() != 1 {
        // Nobody knows of which operation these would have been.
        let due = total.interval.all().latencies(|cell| &cell.response);
        lines.say("total response, all due", &percentiles(&due, Population::Due));
    }
}

/// Latencies for which only one population is known.
fn plain(times: &Histogram<u64>) -> Latencies {
    let mut latencies = Latencies::new();
    latencies.add_ok(times);
    latencies
}

/// The same operations with all times taken as exact: how long a timed-out operation was held back is fully known.
fn exact(latencies: &Latencies) -> Latencies {
    plain(&latencies.times(SHOWN))
}

/// Whether attempts show more than operations or their pages do.
fn retried(operation: &Operation) -> bool {
    operation.attempts_ended() > operation.ended().max(operation.pages.len())
}

fn errors(total: &Total, lines: &mut Lines) {
    for operation in &total.interval.operations {
        let mut classes: BTreeMap<&str, u64> = BTreeMap::new();
        for cell in operation.cells.iter().filter(|cell| is_error(cell.outcome)) {
            *classes.entry(cell.outcome.name()).or_default() += cell.count;
        }
        if operation.never_sent > 0 {
            classes.insert("never-sent", operation.never_sent);
        }
        if !classes.is_empty() {
            lines.say(&format!("{} errors by class", operation.name), &listed(&classes));
        }
        let ended = operation.ended();
        if let Some(each) = operation.requests_each() {
            let text =
                format!("{} for {} operations sent: {} each", count(operation.requests), count(ended), fixed(each, 2));
            lines.say(&format!("{} requests", operation.name), &text);
        }
        if retried(operation) {
            let failed = operation.attempts.iter().filter(|(outcome, _)| is_error(**outcome));
            let failed: BTreeMap<&str, u64> = failed.map(|(outcome, times)| (outcome.name(), times.len())).collect();
            let failed =
                if failed.is_empty() { "none failed".to_owned() } else { format!("failed: {}", listed(&failed)) };
            let attempts = operation.attempts_ended();
            let text = format!("{} requests for {} operations; {failed}", count(attempts), count(ended));
            lines.say(&format!("{} attempts", operation.name), &text);
        }
        if operation.conditional > 0 {
            lines.say(&format!("{} applied", operation.name), &applied(operation));
        }
    }
}

fn is_error(outcome: Outcome) -> bool {
    !matches!(outcome, Outcome::Ok | Outcome::Late)
}

/// How many conditions held, printed even if all of them did.
fn applied(operation: &Operation) -> String {
    let (applied, answered) = (operation.applied(), operation.conditional);
    let share = fixed(100.0 * applied as f64 / answered as f64, 1);
    let others = if applied < answered { "; the others' conditions did not hold" } else { "" };
    format!("{} of {} answered ({share} %){others}", count(applied), count(answered))
}

/// Each operation by the node that coordinated it.
fn coordinators(total: &Total, lines: &mut Lines) {
    for operation in &total.interval.operations {
        let mut by_node: BTreeMap<&str, Operation> = BTreeMap::new();
        for cell in &operation.cells {
            let part = by_node.entry(&cell.coordinator).or_insert_with(|| Operation::new(&operation.name));
            part.cells.push(cell.clone());
        }
        for (node, part) in by_node {
            let answered = part.count(Outcome::Ok);
            let response = part.latencies(|cell| &cell.response);
            let mut text = format!("{} answered, {} errors", count(answered), count(part.errors()));
            if response.count(SHOWN) > 0 {
                text.push_str(&format!("; response {}", percentiles(&response, SHOWN)));
            }
            lines.say(&format!("{}@{node}", operation.name), &text);
        }
    }
}

fn contents(total: &Total, lines: &mut Lines) {
    let findings = &total.interval.findings;
    for (name, found, text) in [
        ("Wrong content", findings.mismatched, "reads returned what nobody had written"),
        ("Missing rows", findings.missing, "reads found nothing: were the rows written, with the same -pop?"),
        ("Old content", findings.stale, "reads returned less than a write acknowledged before they were sent"),
        ("Empty reads", findings.empty, "reads asked for what had not been written: cheap ones, and no error"),
        ("Sent elsewhere", findings.rerouted, "operations: the coordinator chosen for them was not connected"),
    ] {
        if found > 0 {
            lines.say(name, &format!("{} {text}", count(found)));
        }
    }
}

fn client(total: &Total, lines: &mut Lines) {
    let lateness = &total.interval.lateness;
    if !lateness.is_empty() {
        let percentiles = percentiles(&plain(lateness), Population::Ok);
        let text = format!("{percentiles}; {} beyond 1 ms or two ticks", count(total.interval.late_starts));
        lines.say("Client's own lateness", &text);
    }
    if total.late_intervals().next().is_some() {
        let seconds = |ns: u64| fixed(ns as f64 / 1e9, 1);
        let text = format!(
            "{} s of {} s (all of an interval of which more than 1 % of the operations were sent later than that, and as long as it stood still: mistrust their times)",
            seconds(total.late_ns()),
            seconds(total.due_ns())
        );
        lines.say("It was late for", &text);
        let begins = |at: u64| seconds(at.saturating_sub(total.interval.start_ns));
        let first: Vec<String> = total.late_intervals().take(NAMED).map(begins).collect();
        let more = total.late_intervals().count() - first.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        lines.say("", &format!("in intervals that began after {} s{more}", first.join(" ")));
    }
}

/// `p50 1.234 p95 … max ≥ 20.100 ms`; `never` among operations that failed or were never sent.
fn percentiles(times: &Latencies, of: Population) -> String {
    let at = |share: f64| match times.percentile(of, share) {
        Some(Percentile::Is(ns)) => fixed(ms(ns as f64), 3),
        Some(Percentile::AtLeast(ns)) => format!("\u{2265}{}", fixed(ms(ns as f64), 3)),
        Some(Percentile::Never) | None => "never".to_owned(),
    };
    format!("p50 {} p95 {} p99 {} p99.9 {} max {} ms", at(50.0), at(95.0), at(99.0), at(99.9), at(100.0))
}

/// `5 overloaded, 2 timed-out`.
fn listed(counts: &BTreeMap<&str, u64>) -> String {
    let parts: Vec<String> = counts.iter().map(|(class, number)| format!("{} {class}", count(*number))).collect();
    parts.join(", ")
}
