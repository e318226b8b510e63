//! What cassandra-stress does not tell: the balance sheet, the three latencies, attempts, errors by class, coordinators,
//! pages, conditional writes, late answers, and how punctual the client itself was.
//!
//! It is printed in front of `Results:`. Every line is `name : text` with names that occur nowhere in that block, holds
//! fewer than 18 commas and no word that scripts look for ("Op rate", "Latency", "Total"), so that line-wise parsers of
//! cassandra-stress's output pass over it.

use std::collections::BTreeMap;

use brownout_load::{Histogram, Outcome, histogram};

use super::{
    Measure, Operation, Total, ms,
    number::{count, fixed},
    snapshot::percentile,
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

/// So many late intervals are named; `-log json=` has all.
const NAMED: usize = 20;

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
        let late = merged(&total.interval.operations, |cell| cell == Outcome::Late, |cell| &cell.response);
        if !late.is_empty() {
            lines.say("", &format!("{} from the intended start", percentiles(&late)));
        }
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

/// Wait, service and response of each operation that was answered in time and right, and of its attempts and pages.
fn latencies(total: &Total, lines: &mut Lines) {
    let shown = match total.interval.measure {
        Measure::Service => "service times, as sent; the rows and the block below show these",
        Measure::Response => "response times, from the intended start; the rows and the block below show these",
    };
    lines.say("Times in the rows", shown);
    for operation in &total.interval.operations {
        let own = std::slice::from_ref(operation);
        let right = |outcome| outcome == Outcome::Ok;
        let times = [
            ("wait (held back)", merged(own, right, |cell| &cell.wait)),
            ("service (answering)", merged(own, right, |cell| &cell.service)),
            ("response (both)", merged(own, right, |cell| &cell.response)),
            ("pages (each)", operation.pages.clone()),
            ("attempts (each)", if retried(operation) { operation.attempt_service.clone() } else { histogram() }),
        ];
        for (name, times) in times.iter().filter(|(_, times)| !times.is_empty()) {
            lines.say(&format!("{} {name}", operation.name), &percentiles(times));
        }
    }
}

/// Whether attempts tell more than operations, or their pages, do.
fn retried(operation: &Operation) -> bool {
    operation.attempts > operation.ended().max(operation.pages.len())
}

fn errors(total: &Total, lines: &mut Lines) {
    for operation in &total.interval.operations {
        let mut classes: BTreeMap<&str, u64> = BTreeMap::new();
        for cell in operation.cells.iter().filter(|cell| !matches!(cell.outcome, Outcome::Ok | Outcome::Late)) {
            *classes.entry(cell.outcome.name()).or_default() += cell.count;
        }
        if operation.never_sent > 0 {
            classes.insert("never-sent", operation.never_sent);
        }
        if !classes.is_empty() {
            lines.say(&format!("{} errors by class", operation.name), &listed(&classes));
        }
        let ended = operation.ended();
        if retried(operation) {
            let failed: BTreeMap<&str, u64> =
                operation.attempts_failed.iter().map(|(class, count)| (class.as_str(), *count)).collect();
            let failed =
                if failed.is_empty() { "none failed".to_owned() } else { format!("failed: {}", listed(&failed)) };
            let text = format!("{} requests for {} operations; {failed}", count(operation.attempts), count(ended));
            lines.say(&format!("{} attempts", operation.name), &text);
        }
        if operation.conditional > 0 {
            lines.say(&format!("{} applied", operation.name), &applied(operation));
        }
    }
}

/// How many conditions held, told even if all of them did.
fn applied(operation: &Operation) -> String {
    let (applied, answered) = (operation.applied(), operation.conditional);
    let share = fixed(100.0 * applied as f64 / answered as f64, 1);
    let others = if applied < answered { "; the others' conditions did not hold" } else { "" };
    format!("{} of {} answered ({share} %){others}", count(applied), count(answered))
}

/// Each operation by the node that was asked.
fn coordinators(total: &Total, lines: &mut Lines) {
    for operation in &total.interval.operations {
        let mut by_node: BTreeMap<&str, Operation> = BTreeMap::new();
        for cell in &operation.cells {
            let part = by_node.entry(&cell.coordinator).or_insert_with(|| Operation::new(&operation.name));
            part.cells.push(cell.clone());
        }
        for (node, part) in by_node {
            let answered = part.count(Outcome::Ok);
            let times = merged(std::slice::from_ref(&part), |outcome| outcome == Outcome::Ok, |cell| &cell.response);
            let mut text = format!("{} answered, {} errors", count(answered), count(part.errors()));
            if !times.is_empty() {
                text.push_str(&format!("; response {}", percentiles(&times)));
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
    if lateness.is_empty() {
        return;
    }
    let text = format!("{}; {} beyond 1 ms or two ticks", percentiles(lateness), count(total.interval.late_starts));
    lines.say("Client's own lateness", &text);
    if !total.late_intervals.is_empty() {
        let text = format!(
            "{} of {} (more than 1 % of their operations were sent later than that: mistrust their times)",
            total.late_intervals.len(),
            total.intervals
        );
        lines.say("Intervals it was late in", &text);
        let begins = |at: &u64| fixed(at.saturating_sub(total.interval.start_ns) as f64 / 1e9, 1);
        let first: Vec<String> = total.late_intervals.iter().take(NAMED).map(begins).collect();
        let more = total.late_intervals.len() - first.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        lines.say("", &format!("they began after {} s{more}", first.join(" ")));
    }
}

/// The latencies of all cells with such an outcome.
fn merged(
    operations: &[Operation],
    outcome: impl Fn(Outcome) -> bool,
    latency: impl Fn(&super::Cell) -> &Histogram<u64>,
) -> Histogram<u64> {
    let mut all = histogram();
    for cell in operations.iter().flat_map(|operation| &operation.cells).filter(|cell| outcome(cell.outcome)) {
        let _ = all.add(latency(cell));
    }
    all
}

/// `p50 1.234 p95 … max 20.100 ms`.
fn percentiles(times: &Histogram<u64>) -> String {
    let at = |share: f64| fixed(ms(percentile(times, share) as f64), 3);
    format!(
        "p50 {} p95 {} p99 {} p99.9 {} max {} ms",
        at(50.0),
        at(95.0),
        at(99.0),
        at(99.9),
        fixed(ms(times.max() as f64), 3)
    )
}

/// `5 overloaded, 2 timed-out`.
fn listed(counts: &BTreeMap<&str, u64>) -> String {
    let parts: Vec<String> = counts.iter().map(|(class, number)| format!("{} {class}", count(*number))).collect();
    parts.join(", ")
}
