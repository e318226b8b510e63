//! What the database itself says that it did: the same lines for the terminal and for the page.

use brownout_analysis::{
    Counter, DatabaseFindings, DatabasePhase, Gauge, Leadership, Led, Mark, NodeEvidence, Quantile, Response, Score,
    TrialFindings, Values, WatchLag, phase,
};
use brownout_record::Subject;
use brownout_units::format_ns;

use crate::{
    escape::escape,
    markup::{cell, table},
    page::Page,
    table::{Paint, Table},
    text,
};

/// On the terminal: of so many trials, and so many scores and marks of each. The page has all.
const TRIALS_SHOWN: usize = 2;
const SCORES_SHOWN: usize = 12;
const MARKS_SHOWN: usize = 6;
/// Who was kept away from a node for less of the fault phase than this is said to have read on.
const KEPT_AWAY: f64 = 0.5;
/// Letters of a line's name and of a cell there, so that three phases fit into 100 columns.
const NAME_WIDTH: usize = 28;
const CELL_WIDTH: usize = 21;
/// Up to so many nodes stand side by side in a cell, in the order of the caption; of more only those with anything to say.
const SIDE_BY_SIDE: usize = 5;

/// How a figure of a node in a phase is made, and shown.
#[derive(Clone, Copy)]
enum Show {
    /// A counter: how far it rose.
    Rise,
    /// A counter: how far it rose in a second.
    PerSecond,
    /// A counter of bytes, in MiB.
    MiB,
    /// A gauge: its mean.
    Mean,
    /// A gauge: its most.
    Most,
    /// A gauge of 1 and 0: share of the time in which it was 0.
    Off,
    /// A gauge in ns: its most.
    MostTime,
    /// A gauge of bytes: its most, in MiB.
    MostMiB,
}

/// What there can be, in the order in which it is shown. What is not here is shown by its own name.
const KNOWN: [(&str, &str, &str, Show); 37] = [
    ("replica-reads", "", "replica reads, /s", Show::PerSecond),
    ("replica-writes", "", "replica writes, /s", Show::PerSecond),
    ("speculative-retries", "", "speculative retries", Show::Rise),
    ("timeouts", "", "requests timed out", Show::Rise),
    ("dropped-messages", "", "dropped", Show::Rise),
    ("hints-stored", "", "hints stored", Show::Rise),
    ("hints-in-progress", "", "hints in progress, most", Show::Most),
    ("hints-replayed", "", "hints replayed", Show::Rise),
    ("hints-failed", "", "hints that failed", Show::Rise),
    ("hints-timed-out", "", "hints that timed out", Show::Rise),
    ("read-repairs", "", "read repairs", Show::Rise),
    ("considered-up", "", "considered down", Show::Off),
    ("noticed-pause", "", "long pauses it noticed", Show::Rise),
    ("compactions", "", "compactions", Show::Rise),
    ("compacted-bytes", "", "compacted, MiB", Show::MiB),
    ("sstables-per-read", "mean", "SSTables per read, mean", Show::Mean),
    ("sstables-per-read", "p99", "SSTables per read, p99", Show::Mean),
    ("pending", "", "pending, most", Show::Most),
    ("proposals-committed", "", "proposals committed, /s", Show::PerSecond),
    ("proposals-applied", "", "proposals applied, /s", Show::PerSecond),
    ("proposals-failed", "", "proposals failed", Show::Rise),
    ("leader-changes", "", "leader changes it saw", Show::Rise),
    ("campaign", "", "elections it began", Show::Rise),
    ("slow-read-indexes", "", "slow linearizable reads", Show::Rise),
    ("read-indexes-failed", "", "linearizable reads failed", Show::Rise),
    ("slow-applies", "", "slow applies", Show::Rise),
    ("slow-fsync", "", "slow fsyncs in its log", Show::Rise),
    ("late-heartbeats", "", "heartbeats sent late", Show::Rise),
    ("send-failures", "", "messages not sent", Show::Rise),
    ("connected", "", "not connected", Show::Off),
    ("behind", "", "entries not applied, most", Show::Most),
    ("snapshots-sent", "", "snapshots sent", Show::Rise),
    ("wal-fsync-p99", "", "fsync of the log, p99, most", Show::MostTime),
    ("backend-commit-p99", "", "store commit, p99, most", Show::MostTime),
    ("apply-p99", "", "apply, p99, most", Show::MostTime),
    ("database-bytes", "", "store, MiB", Show::MostMiB),
    // With the scores.
    ("messages-sent", "", "", Show::PerSecond),
];
const MESSAGES: &str = "messages-sent";

/// What is told as a mean of times.
const MEANS: [(&str, &str); 5] = [
    ("wal-fsync", "fsync of the log, mean"),
    ("backend-commit", "store commit, mean"),
    ("apply", "apply, mean"),
    ("peer-round-trip", "round trip, mean"),
    ("gc-pause", "pause for garbage, mean"),
];

/// A row of the table: what, and one cell for each phase.
struct Row {
    what: String,
    cells: Vec<String>,
}

impl Page {
    /// The database's own evidence of these trials, each with what it is called.
    pub(crate) fn database<'a>(&mut self, trials: impl Iterator<Item = (String, &'a TrialFindings)>) {
        let mut told: Vec<_> =
            trials.filter_map(|(name, trial)| Some((name, trial, trial.database.as_ref()?))).collect();
        // Those with a fault have more to explain.
        told.sort_by_key(|(_, trial, _)| trial.faults.is_empty());
        for (name, trial, found) in told.iter().take(TRIALS_SHOWN) {
            self.section(&format!("What the database says, {name}{}", order(found)));
            let mut table = Table::new(&headings("what", found));
            for line in lines(found).into_iter().chain(watched(found, trial)) {
                table.row(Paint::Plain, short(line));
            }
            self.table(&table);
            let scores = scores(found, score_figures);
            if !scores.is_empty() {
                self.line(Paint::Dim, &format!("  {SCORES}"));
                let mut table = Table::new(&headings("coordinator → replica", found));
                let left_out = scores.len().saturating_sub(SCORES_SHOWN);
                for line in scores.into_iter().take(SCORES_SHOWN) {
                    table.row(Paint::Plain, short(line));
                }
                self.table(&table);
                if left_out > 0 {
                    self.line(Paint::Dim, &format!("  … and {left_out} more pairs, in the report"));
                }
            }
            for why in read_on(found, trial).iter().take(MARKS_SHOWN) {
                self.line(Paint::Plain, &format!("  {why}"));
            }
            for leader in found.leaders.iter().take(MARKS_SHOWN) {
                self.line(Paint::Plain, &format!("  {}", leader_words(leader, trial)));
            }
            for mark in found.marks.iter().take(MARKS_SHOWN) {
                self.line(Paint::Plain, &format!("  {}", mark_words(mark, trial)));
            }
            for (all, what) in [(found.leaders.len(), "changes of the leader"), (found.marks.len(), "marks")] {
                if all > MARKS_SHOWN {
                    let left_out = all - MARKS_SHOWN;
                    self.line(Paint::Dim, &format!("  … and {left_out} more {what}, in the report"));
                }
            }
        }
        if told.len() > TRIALS_SHOWN {
            let left_out = told.len() - TRIALS_SHOWN;
            self.line(Paint::Dim, &format!("  the same of {left_out} more trials is in the report"));
        }
    }
}

/// The same for the page; none if the record has nothing of it.
pub(crate) fn html(trial: &TrialFindings) -> Option<String> {
    let found = trial.database.as_ref()?;
    let rows =
        |lines: Vec<Row>| lines.into_iter().map(|line| ("", row(line).into_iter().map(cell).collect())).collect();
    let caption = format!("What it served, counted and showed in each phase{}", order(found));
    let all = lines(found).into_iter().chain(watched(found, trial)).collect();
    let mut out = table("", &caption, &headings("what", found), rows(all));
    let scores = scores(found, score_words);
    if !scores.is_empty() {
        out += &table("", SCORES, &headings("coordinator → replica", found), rows(scores));
    }
    let leaders = found.leaders.iter().map(|leader| leader_words(leader, trial));
    let marks = leaders.chain(found.marks.iter().map(|mark| mark_words(mark, trial)));
    let told: String =
        read_on(found, trial).into_iter().chain(marks).map(|text| format!("<li>{}</li>", escape(&text))).collect();
    if !told.is_empty() {
        out += &format!("<ul>{told}</ul>");
    }
    Some(out)
}

const SCORES: &str = "Snitch scores of replicas, mean (the median of the latest latencies; the worst has 1) · share of the \
                      time in which they kept the coordinator from reading from it · messages sent to it";

fn headings<'a>(first: &'a str, found: &'a DatabaseFindings) -> Vec<&'a str> {
    [first].into_iter().chain(found.phases.iter().map(|phase| phase.phase.as_str())).collect()
}

fn row(line: Row) -> Vec<String> {
    [line.what].into_iter().chain(line.cells).collect()
}

/// A row for the terminal.
fn short(line: Row) -> Vec<String> {
    let mut widths = [NAME_WIDTH].into_iter().chain(std::iter::repeat(CELL_WIDTH));
    row(line).iter().map(|text| text::shorten(text, widths.next().unwrap_or(CELL_WIDTH))).collect()
}

/// " (n1 / n2 / n3)", where nodes stand side by side.
fn order(found: &DatabaseFindings) -> String {
    match found.phases.first() {
        Some(phase) if phase.by_node.len() <= SIDE_BY_SIDE => {
            let names: Vec<&str> = phase.by_node.iter().map(|one| one.node.as_str()).collect();
            format!(" ({})", names.join(" / "))
        }
        _ => String::new(),
    }
}

/// All that is not nought.
fn lines(found: &DatabaseFindings) -> Vec<Row> {
    let all = || found.phases.iter().flat_map(|phase| &phase.by_node);
    let counters = all().flat_map(|one| &one.counters).map(|one| (one.name.as_str(), one.subject.as_str()));
    let gauges = all().flat_map(|one| &one.gauges).map(|one| (one.name.as_str(), one.subject.as_str()));
    let mut there: Vec<(&str, &str)> = counters.chain(gauges).filter(|(name, _)| *name != MESSAGES).collect();
    // In the order of `KNOWN`, what is not there last.
    there.sort_by_key(|(name, subject)| (place(name, subject), *name, *subject));
    there.dedup();
    let mut lines = led(found);
    lines.extend(there.into_iter().map(|(name, subject)| line(found, name, subject)));
    lines.extend(means(found));
    if all().any(|one| one.pauses.count > 0) {
        let each = |show: fn(&NodeEvidence, &DatabasePhase) -> String| {
            found.phases.iter().map(|phase| joined(phase, |one| show(one, phase))).collect()
        };
        let share = |one: &NodeEvidence, phase: &DatabasePhase| match one.pauses.total_ns {
            0 => "0".to_owned(),
            total_ns => text::share(total_ns as f64 / phase.measured_ns.max(1) as f64),
        };
        lines.push(Row { what: "JVM stood still, of the time".to_owned(), cells: each(share) });
        let longest = |one: &NodeEvidence, _: &DatabasePhase| one.pauses.longest_ns.div_ceil(1_000_000).to_string();
        lines.push(Row { what: "… longest pause, ms".to_owned(), cells: each(longest) });
    }
    lines
}

/// Who led, where a leader decides.
fn led(found: &DatabaseFindings) -> Vec<Row> {
    if found.phases.iter().all(|phase| phase.led.is_none()) {
        return Vec::new();
    }
    let line = |what: &str, show: fn(&Led) -> String| Row {
        what: what.to_owned(),
        cells: found.phases.iter().map(|phase| text::or_none(phase.led.as_ref(), show)).collect(),
    };
    let by = |led: &Led| if led.by.is_empty() { "nobody".to_owned() } else { led.by.join(", ") };
    let mut lines = vec![line("led by", by), line("elections", |led| text::count(led.elections))];
    if found.phases.iter().filter_map(|phase| phase.led.as_ref()).any(|led| led.without_ns > 0) {
        lines.push(line("without a leader", |led| format_ns(led.without_ns as f64)));
    }
    lines
}

/// How far watches lagged, as the load saw it; of what no watch reported within the time-out, the time-out.
fn watched(found: &DatabaseFindings, trial: &TrialFindings) -> Vec<Row> {
    if trial.watches.is_empty() {
        return Vec::new();
    }
    let own = |one: &NodeEvidence, phase: &DatabasePhase| {
        trial.watches.iter().find(|lag| lag.node == one.node && lag.phase == phase.phase)
    };
    let line = |what: &str, show: &dyn Fn(&WatchLag) -> String| Row {
        what: what.to_owned(),
        cells: found.phases.iter().map(|phase| joined(phase, |one| text::or_none(own(one, phase), show))).collect(),
    };
    let at = |quantile: fn(Response) -> Quantile| {
        move |lag: &WatchLag| text::or_none(lag.lag, |lag| text::quantile(quantile(lag)))
    };
    let mut lines = vec![
        line("watch lag p50, ok+timed-out", &at(|lag| lag.p50)),
        line("watch lag p99, ok+timed-out", &at(|lag| lag.p99)),
    ];
    if trial.watches.iter().any(|lag| lag.missing > 0) {
        lines.push(line("puts that no watch reported", &|lag| text::count(lag.missing)));
    }
    lines
}

/// Means of times, by what they are of.
fn means(found: &DatabaseFindings) -> Vec<Row> {
    let nodes = || found.phases.iter().flat_map(|phase| &phase.by_node);
    let mut there: Vec<(&str, &str)> =
        nodes().flat_map(|one| &one.means).map(|one| (one.name.as_str(), one.subject.as_str())).collect();
    there.sort_by_key(|(name, subject)| (MEANS.iter().position(|(known, _)| known == name), *name, *subject));
    there.dedup();
    let of = |(name, subject): (&str, &str)| {
        let what = MEANS.iter().find(|(known, _)| *known == name).map_or(name, |(_, what)| *what);
        let figure = |one: &NodeEvidence| {
            let own = one.means.iter().find(|one| one.name == name && one.subject == subject);
            text::or_none(own, |own| format_ns(own.mean_ns))
        };
        Row {
            what: if subject.is_empty() { what.to_owned() } else { format!("{what}: {subject}") },
            cells: found.phases.iter().map(|phase| joined(phase, figure)).collect(),
        }
    };
    there.into_iter().map(of).collect()
}

fn place(name: &str, subject: &str) -> usize {
    let is = |known: &(&str, &str, &str, Show)| known.0 == name && (known.1.is_empty() || known.1 == subject);
    KNOWN.iter().position(is).unwrap_or(KNOWN.len())
}

fn line(found: &DatabaseFindings, name: &str, subject: &str) -> Row {
    let known = KNOWN.get(place(name, subject));
    let counts = found.phases.iter().flat_map(|phase| &phase.by_node).any(|one| counter(one, name, subject).is_some());
    let (what, show) = match known {
        Some((_, _, what, show)) => (*what, *show),
        None => (name, if counts { Show::Rise } else { Show::Mean }),
    };
    let named = known.is_some_and(|known| !known.1.is_empty()) || subject.is_empty();
    let what = if named { what.to_owned() } else { format!("{what}: {subject}") };
    let figure = |one: &NodeEvidence, phase: &DatabasePhase| {
        // Without an answer nothing is known; what a node's log tells comes without.
        if one.readings == 0 && counter(one, name, subject).is_none() {
            return text::NONE.to_owned();
        }
        let rise = counter(one, name, subject).map_or(0.0, |one| one.rise);
        let values = one.gauges.iter().find(|one| is_of(one, name, subject)).map(|one| one.values);
        match show {
            Show::Rise => text::count(rise as u64),
            Show::PerSecond => text::rate(rise / (phase.measured_ns.max(1) as f64 / 1e9)),
            Show::MiB => format!("{:.1}", rise / f64::from(1 << 20)),
            Show::Mean => number(values.map_or(0.0, |values| values.mean)),
            Show::Most => number(values.map_or(0.0, |values| values.most)),
            Show::Off => text::share(values.map_or(0.0, |values| 1.0 - values.mean)),
            Show::MostTime => text::or_none(values, |values| format_ns(values.most)),
            Show::MostMiB => format!("{:.1}", values.map_or(0.0, |values| values.most) / f64::from(1 << 20)),
        }
    };
    let cells = found.phases.iter().map(|phase| joined(phase, |one| figure(one, phase))).collect();
    Row { what, cells }
}

fn counter<'a>(one: &'a NodeEvidence, name: &str, subject: &str) -> Option<&'a Counter> {
    one.counters.iter().find(|one| one.name == name && one.subject == subject)
}

fn is_of(gauge: &Gauge, name: &str, subject: &str) -> bool {
    gauge.name == name && gauge.subject == subject
}

/// Nodes side by side; of many only those that have something.
fn joined(phase: &DatabasePhase, show: impl Fn(&NodeEvidence) -> String) -> String {
    let shown: Vec<(&str, String)> = phase.by_node.iter().map(|one| (one.node.as_str(), show(one))).collect();
    if shown.len() <= SIDE_BY_SIDE {
        let values: Vec<String> = shown.into_iter().map(|(_, value)| value).collect();
        return values.join(" / ");
    }
    let is_nought = |value: &str| !value.contains(|digit: char| ('1'..='9').contains(&digit));
    let some: Vec<String> =
        shown.iter().filter(|(_, value)| !is_nought(value)).map(|(node, value)| format!("{node} {value}")).collect();
    if some.is_empty() { "0".to_owned() } else { some.join(" · ") }
}

/// What each coordinator made of each replica.
fn scores(found: &DatabaseFindings, show: fn(&NodeEvidence, &Score, &DatabasePhase) -> String) -> Vec<Row> {
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    for one in found.phases.iter().flat_map(|phase| &phase.by_node) {
        pairs.extend(one.scores.iter().map(|score| (one.node.as_str(), score.of.as_str())));
    }
    pairs.sort_unstable();
    pairs.dedup();
    let of = |(node, of): (&str, &str)| {
        let cells = found.phases.iter().map(|phase| {
            let one = phase.by_node.iter().find(|one| one.node == node);
            let score = one.and_then(|one| one.scores.iter().find(|score| score.of == of));
            text::or_none(one.zip(score), |(one, score)| show(one, score, phase))
        });
        Row { what: format!("{node} → {of}"), cells: cells.collect() }
    };
    pairs.into_iter().map(of).collect()
}

/// "0.98 · 97.0% · 412/s".
fn score_figures(one: &NodeEvidence, score: &Score, phase: &DatabasePhase) -> String {
    let own = (score.of == one.node).then(|| text::NONE.to_owned());
    let sent = own.unwrap_or_else(|| sent(one, score, phase));
    format!("{:.2} · {} · {sent}", score.values.mean, text::or_none(score.avoided, text::share))
}

/// "0.98 (0.61–1.00), kept away 97.0%, 412/s".
fn score_words(one: &NodeEvidence, score: &Score, phase: &DatabasePhase) -> String {
    let Values { least, mean, most, .. } = score.values;
    let mut words = format!("{mean:.2} ({least:.2}–{most:.2})");
    if let Some(avoided) = score.avoided {
        words += &format!(", kept away {}", text::share(avoided));
    }
    if score.of != one.node {
        words += &format!(", {}", sent(one, score, phase));
    }
    words
}

/// Messages sent to the node that is scored, in a second.
fn sent(one: &NodeEvidence, score: &Score, phase: &DatabasePhase) -> String {
    let sent = counter(one, MESSAGES, &score.of).map_or(0.0, |sent| sent.rise);
    format!("{}/s", text::rate(sent / (phase.measured_ns.max(1) as f64 / 1e9)))
}

/// Who went on reading from a node that a fault hit, on the way between the two or the node itself, and why the scores let it.
fn read_on(found: &DatabaseFindings, trial: &TrialFindings) -> Vec<String> {
    let is_hit = |coordinator: &str, of: &str| {
        trial.faults.iter().flat_map(|fault| &fault.rows).filter(|row| row.hit).any(|row| match &row.subject {
            Subject::Pair { from, to } | Subject::Overlay { from, to } => {
                (from == of && to == coordinator) || (from == coordinator && to == of)
            }
            Subject::Host { host } | Subject::Directory { host, .. } => host == of,
        })
    };
    let mut told = Vec::new();
    for one in found.phases.iter().filter(|phase| phase.phase == phase::FAULT).flat_map(|phase| &phase.by_node) {
        for score in &one.scores {
            let (Some(avoided), Some(other)) = (score.avoided, &score.because_of) else { continue };
            if score.of == one.node || avoided >= KEPT_AWAY || !is_hit(&one.node, &score.of) {
                continue;
            }
            let Some(others) = one.scores.iter().find(|score| score.of == *other).map(|score| score.values) else {
                continue;
            };
            let old =
                if others.least == others.most { ", unchanged (one that is not asked keeps its score)" } else { "" };
            let times = found.badness_threshold.map_or(1.0, |threshold| 1.0 + threshold);
            told.push(format!(
                "{} was free to read from {} for {} of the fault phase: it scored that {:.2}, and {other} {:.2}{old}; it \
                 is kept only from one more than {} times as bad",
                one.node,
                score.of,
                text::share(1.0 - avoided),
                score.values.mean,
                others.mean,
                number(times),
            ));
        }
    }
    told
}

fn mark_words(mark: &Mark, trial: &TrialFindings) -> String {
    let Mark { node, of, up, error_ns, .. } = mark;
    let at = (mark.at_ns.saturating_sub(trial.starts_ns)) as f64 / 1e9;
    let phase = mark.phase.as_deref().map_or(String::new(), |phase| format!(" ({phase})"));
    let state = if *up { "up" } else { "down" };
    format!("{node} took {of} for {state} at {at:.3}s ± {} of the trial{phase}", format_ns(*error_ns as f64))
}

/// "n3 led from 20.350s ± 1.0ms of the trial on (fault), term 3".
fn leader_words(leader: &Leadership, trial: &TrialFindings) -> String {
    let at = (leader.at_ns.saturating_sub(trial.starts_ns)) as f64 / 1e9;
    let phase = leader.phase.as_deref().map_or(String::new(), |phase| format!(" ({phase})"));
    let who = leader.node.as_deref().unwrap_or("nobody");
    let error = format_ns(leader.error_ns as f64);
    format!("{who} led from {at:.3}s ± {error} of the trial on{phase}, term {}", leader.term)
}

/// A gauge's value: whole where it is, else with two decimals.
fn number(value: f64) -> String {
    if value.fract() == 0.0 && value >= 0.0 { text::count(value as u64) } else { format!("{value:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gauges_are_whole_where_they_are() {
        assert_eq!([0.0, 12.0, 1.236].map(number), ["0", "12", "1.24"]);
    }

    #[test]
    fn what_is_known_has_its_place_and_what_is_not_comes_last() {
        assert_eq!(place("replica-reads", ""), 0);
        assert_eq!(place("sstables-per-read", "p99"), place("sstables-per-read", "mean") + 1);
        assert_eq!(place("dropped-messages", "READ_REQ"), place("dropped-messages", "MUTATION_REQ"));
        assert_eq!(place("something new", ""), KNOWN.len());
    }
}
