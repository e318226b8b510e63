//! What the database itself says it did, phase by phase: how far its counters rose, what its gauges showed, how its nodes
//! scored each other, whom they took for down, when their JVMs stood still, who led, and how long their fsyncs took.

use std::collections::{BTreeMap, BTreeSet};

use brownout_record::{Description, EvidenceRow};
use serde::Serialize;

use crate::{Leadership, Led, Mean, PhaseWindow, Timed, TrialEvidence, leaders, phase, standstill::awaited, timed};

/// What the database says of a trial.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DatabaseFindings {
    /// How much worse a replica's score must be before coordinators leave their usual order of replicas, as a share: 1 is
    /// twice as bad. None: it was not told.
    pub badness_threshold: Option<f64>,
    /// The measured phases, in order.
    pub phases: Vec<DatabasePhase>,
    /// When nodes took others for down and for up again, in order of time.
    pub marks: Vec<Mark>,
    /// Of a database that a leader decides for: who led from when on, in order of time; empty for others.
    pub leaders: Vec<Leadership>,
}

/// One phase.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DatabasePhase {
    /// Its name.
    pub phase: String,
    /// Length of its measured part, ns: what all of this is of.
    pub measured_ns: u64,
    /// Who led; none where nobody does, or says so.
    pub led: Option<Led>,
    /// Every node, by name.
    pub by_node: Vec<NodeEvidence>,
}

/// What one node said in one phase.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NodeEvidence {
    /// The node.
    pub node: String,
    /// How often it answered when it was asked. 0: nothing is known of its counters and gauges.
    pub readings: u64,
    /// Counters that rose.
    pub counters: Vec<Counter>,
    /// Gauges that were not 0 all the time.
    pub gauges: Vec<Gauge>,
    /// What it counts together with the time that it took.
    pub means: Vec<Mean>,
    /// As a coordinator: its scores of all nodes.
    pub scores: Vec<Score>,
    /// Pauses of its JVM of 1 ms and more that began in the phase.
    pub pauses: Pauses,
}

/// A counter.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Counter {
    /// `speculative-retries`, `dropped-messages`, …: see `docs/definitions.md`.
    pub name: String,
    /// Of what: another node, a verb; empty where there is only one.
    pub subject: String,
    /// How far it rose.
    pub rise: f64,
}

/// A gauge.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Gauge {
    /// `pending`, `hints-in-progress`, …
    pub name: String,
    /// Of what: another node, a thread pool; empty where there is only one.
    pub subject: String,
    /// What it showed.
    #[serde(flatten)]
    pub values: Values,
}

/// What a gauge showed in a phase.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Values {
    /// The least.
    pub least: f64,
    /// The mean over time.
    pub mean: f64,
    /// The most.
    pub most: f64,
    /// The last.
    pub last: f64,
}

/// How a coordinator scored a node as a replica to read from: the median of its latest latencies ÷ the worst such median.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Score {
    /// The node that is scored.
    pub of: String,
    /// Its scores.
    #[serde(flatten)]
    pub values: Values,
    /// Share of the time in which they kept the coordinator from reading from it, but to speculate. None where that cannot be
    /// said: not every node has every row, or nobody knows how many replicas a read asks.
    pub avoided: Option<f64>,
    /// While they did not: the node that would have to have a better score for that, most of the time. It is the one that a read
    /// would ask instead.
    pub because_of: Option<String>,
}

/// Pauses of a JVM.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Pauses {
    /// How many.
    pub count: u64,
    /// All together, ns.
    pub total_ns: u64,
    /// The longest, ns.
    pub longest_ns: u64,
}

/// A node takes another for up or for down.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Mark {
    /// When, ns since the run's zero …
    pub at_ns: u64,
    /// … within this.
    pub error_ns: u64,
    /// In which phase; none if in none.
    pub phase: Option<String>,
    /// Who says so.
    pub node: String,
    /// Of whom.
    pub of: String,
    /// For up; else for down.
    pub up: bool,
}

/// Names in the record.
const SCORE: &str = "snitch-score";
const THRESHOLD: &str = "snitch-badness-threshold";
const READING: &str = "reading";
const PAUSE: &str = "pause";
const NOTICED_PAUSE: &str = "noticed-pause";
const CONSIDERED_UP: &str = "considered-up";
const CONNECTED: &str = "connected";
/// Of the same table, and told elsewhere: what is encrypted.
const OF_ENCRYPTION: [&str; 5] = [
    "marker-on-encrypted-link",
    "marker-on-open-link",
    "marker-writes",
    "encrypted-connection",
    "unencrypted-connection",
];
const MARKS: [(&str, bool); 2] = [("marked-up", true), ("marked-down", false)];
/// What happened: it is counted.
const EVENTS: [&str; 3] = [NOTICED_PAUSE, "campaign", "slow-fsync"];
/// What is no counter: its value is of the moment.
const GAUGES: [&str; 11] = [
    CONSIDERED_UP,
    CONNECTED,
    "hints-in-progress",
    "pending",
    "sstables-per-read",
    "behind",
    "database-bytes",
    "keys",
    "wal-fsync-p99",
    "backend-commit-p99",
    "apply-p99",
];

/// What decides whom a coordinator reads from.
#[derive(Debug, Clone, Copy)]
struct Rule {
    /// The dynamic snitch's `badness threshold`.
    threshold: f64,
    /// How many replicas a read asks …
    asked: usize,
    /// … of so many: of all nodes.
    of: usize,
}

/// One counter or gauge of a node over time, in order.
type Series<'a> = Vec<&'a EvidenceRow>;

/// The series of a node, by name and subject.
type OfNode<'a> = BTreeMap<(&'a str, &'a str), Series<'a>>;

/// What the record has of it; none if it has nothing.
pub(crate) fn database(description: &Description, evidence: &TrialEvidence) -> Option<DatabaseFindings> {
    let rows = &evidence.database;
    let is_own = |row: &&EvidenceRow| !OF_ENCRYPTION.contains(&row.name.as_str());
    if !rows.iter().any(|row| is_own(&row)) {
        return None;
    }
    let mut nodes: BTreeMap<&str, OfNode<'_>> = BTreeMap::new();
    // A node that never said anything is one of which nothing is known, and no missing row.
    for host in description.hosts.iter().filter(|host| host.role == "node") {
        nodes.entry(&host.name).or_default();
    }
    for row in rows.iter().filter(is_own) {
        let series = nodes.entry(&row.node).or_default().entry((&row.name, &row.subject)).or_default();
        series.push(row);
    }
    let badness_threshold = rows.iter().rfind(|row| row.name == THRESHOLD).map(|row| row.value);
    let rule = badness_threshold.zip(asked_of_all(description));
    let rule = rule.map(|(threshold, asked)| Rule { threshold, asked, of: nodes.len() });
    let timed: BTreeMap<&str, Vec<Timed>> = nodes.keys().map(|node| (*node, timed::timed(rows, node))).collect();
    let leaders = leaders::leaders(rows, &evidence.phases);
    let measured = evidence.phases.iter().filter(|window| phase::MEASURED.contains(&window.name.as_str()));
    let phases = measured.map(|window| {
        let of = |(node, series): (&&str, &OfNode<'_>)| {
            let means = timed.get(node).map(|timed| timed::means(timed, window)).unwrap_or_default();
            NodeEvidence { means, ..of_node(node, series, window, rule) }
        };
        DatabasePhase {
            phase: window.name.clone(),
            measured_ns: window.measured_to_ns - window.measured_from_ns,
            led: leaders::led(&leaders, window),
            by_node: nodes.iter().map(of).collect(),
        }
    });
    let mark = |row: &EvidenceRow| {
        let (_, up) = MARKS.into_iter().find(|(name, _)| *name == row.name)?;
        let within = |window: &&PhaseWindow| (window.starts_ns..window.ends_ns).contains(&row.at_ns);
        Some(Mark {
            at_ns: row.at_ns,
            error_ns: row.error_ns,
            phase: evidence.phases.iter().find(within).map(|window| window.name.clone()),
            node: row.node.clone(),
            of: row.subject.clone(),
            up,
        })
    };
    Some(DatabaseFindings {
        badness_threshold,
        phases: phases.collect(),
        marks: rows.iter().filter_map(mark).collect(),
        leaders,
    })
}

fn of_node(node: &str, all: &OfNode<'_>, window: &PhaseWindow, rule: Option<Rule>) -> NodeEvidence {
    let within = |row: &&&EvidenceRow| (window.measured_from_ns..window.measured_to_ns).contains(&row.at_ns);
    let count = |name: &str| all.get(&(name, "")).map_or(0, |series| series.iter().filter(within).count() as u64);
    let readings = count(READING);
    let mut found = NodeEvidence {
        node: node.to_owned(),
        readings,
        counters: Vec::new(),
        gauges: Vec::new(),
        means: Vec::new(),
        scores: Vec::new(),
        pauses: Pauses::default(),
    };
    for ((name, _), series) in all {
        if *name == PAUSE {
            for pause in series.iter().filter(within) {
                found.pauses.count += 1;
                found.pauses.total_ns += pause.value as u64;
                found.pauses.longest_ns = found.pauses.longest_ns.max(pause.value as u64);
            }
        }
    }
    let counter =
        |name: &str, subject: &str, rise: f64| Counter { name: name.to_owned(), subject: subject.to_owned(), rise };
    for event in EVENTS {
        let happened = count(event);
        if happened > 0 {
            found.counters.push(counter(event, "", happened as f64));
        }
    }
    // What nobody asked for in the phase may be anything by now.
    if readings == 0 {
        return found;
    }
    found.scores = scores(all, window, rule);
    let others = [READING, PAUSE, SCORE, THRESHOLD, MARKS[0].0, MARKS[1].0];
    let is_counted = |name: &str| {
        !(others.contains(&name) || EVENTS.contains(&name) || leaders::NAMES.contains(&name) || timed::is_paired(name))
    };
    for ((name, subject), series) in all.iter().filter(|((name, _), _)| is_counted(name)) {
        if GAUGES.contains(name) {
            let usual = if [CONSIDERED_UP, CONNECTED].contains(name) { 1.0 } else { 0.0 };
            let values = values(&steps(series, window)).filter(|values| values.least != usual || values.most != usual);
            found.gauges.extend(values.map(|values| Gauge {
                name: (*name).to_owned(),
                subject: (*subject).to_owned(),
                values,
            }));
        } else {
            let rise = rise(series, window, first_reading(all));
            found.counters.extend((rise > 0.0).then(|| counter(name, subject, rise)));
        }
    }
    found
}

/// When a node was first asked: a counter that says nothing then was 0.
fn first_reading(all: &OfNode<'_>) -> u64 {
    all.get(&(READING, "")).and_then(|series| series.first()).map_or(u64::MAX, |row| row.at_ns)
}

/// How far a counter rose: from what it was when the phase began to what it was when it ended. One that falls has been begun
/// anew, with its node.
fn rise(series: &Series<'_>, window: &PhaseWindow, first_reading_ns: u64) -> f64 {
    let (from, to) = (window.measured_from_ns, window.measured_to_ns);
    let mut last = series.iter().rfind(|row| row.at_ns < from).map(|row| row.value);
    if last.is_none() && first_reading_ns < from {
        last = Some(0.0);
    }
    let mut rise = 0.0;
    for row in series.iter().filter(|row| (from..to).contains(&row.at_ns)) {
        // Of one that was first asked for in the phase nobody knows what it was before.
        let before = last.unwrap_or(row.value);
        rise += if row.value >= before { row.value - before } else { row.value };
        last = Some(row.value);
    }
    rise
}

/// A gauge in a phase: from when on it showed what, and for how long, ns.
fn steps(series: &Series<'_>, window: &PhaseWindow) -> Vec<(u64, f64, u64)> {
    let (from, to) = (window.measured_from_ns, window.measured_to_ns);
    let before = series.iter().rfind(|row| row.at_ns < from).map(|row| (from, row.value));
    let within = series.iter().filter(|row| (from..to).contains(&row.at_ns)).map(|row| (row.at_ns, row.value));
    let starts: Vec<(u64, f64)> = before.into_iter().chain(within).collect();
    let ends = starts.iter().skip(1).map(|(at, _)| *at).chain([to]);
    starts.iter().zip(ends).map(|((at, value), end)| (*at, *value, end - at)).collect()
}

fn values(steps: &[(u64, f64, u64)]) -> Option<Values> {
    let (_, last, _) = *steps.last()?;
    let time: f64 = steps.iter().map(|(.., length)| *length as f64).sum();
    let sum: f64 = steps.iter().map(|(_, value, length)| value * *length as f64).sum();
    let all = || steps.iter().map(|(_, value, _)| *value);
    Some(Values {
        least: all().fold(f64::INFINITY, f64::min),
        mean: if time > 0.0 { sum / time } else { last },
        most: all().fold(f64::NEG_INFINITY, f64::max),
        last,
    })
}

/// A coordinator's scores of all nodes.
///
/// With a threshold t, and reads that ask R replicas: Cassandra's dynamic snitch (`DynamicEndpointSnitch`, the
/// same in 4.1 and 5.0) compares the scores of a read's replicas in their usual order with the same scores sorted, position by
/// position; if any is more than 1 + t times the sorted one, it takes the replicas by their scores instead. The first R are asked.
/// So one whose score is more than 1 + t times the R-th best is asked in neither case, whatever the usual order.
fn scores(all: &OfNode<'_>, window: &PhaseWindow, rule: Option<Rule>) -> Vec<Score> {
    let by_node: BTreeMap<&str, Vec<(u64, f64, u64)>> = all
        .iter()
        .filter(|((name, _), _)| *name == SCORE)
        .map(|((_, of), series)| (*of, steps(series, window)))
        .collect();
    // Between two of these moments no score changes.
    let moments: BTreeSet<u64> = by_node.values().flatten().map(|(at, ..)| *at).collect();
    let ends = moments.iter().skip(1).copied().chain([window.measured_to_ns]);
    let stretches: Vec<(u64, u64)> = moments.iter().copied().zip(ends).collect();
    let at = |steps: &[(u64, f64, u64)], moment: u64| {
        steps.iter().rfind(|(at, ..)| *at <= moment).map(|(_, value, _)| *value)
    };
    // For how long it was known whether the node is avoided, for how long it was, and whose score else stood in the way.
    let judged = |of: &str, own: &[(u64, f64, u64)]| {
        let Rule { threshold, asked, of: nodes } = rule?;
        let (mut avoided, mut known) = (0, 0);
        let mut in_the_way: BTreeMap<&str, u64> = BTreeMap::new();
        for (from, to) in &stretches {
            let Some(score) = at(own, *from) else { continue };
            let mut sorted: Vec<(f64, &str)> =
                by_node.iter().filter_map(|(node, steps)| Some((at(steps, *from)?, *node))).collect();
            // A node without a score counts as one of 0.
            sorted.resize(nodes.max(sorted.len()), (0.0, ""));
            sorted.sort_by(|one, other| one.0.total_cmp(&other.0));
            let Some((worst_asked, _)) = sorted.get(asked - 1) else { continue };
            known += to - from;
            if score > (1.0 + threshold) * worst_asked {
                avoided += to - from;
            } else if let Some((_, who)) = sorted.iter().filter(|(_, node)| *node != of).nth(asked - 1) {
                *in_the_way.entry(who).or_default() += to - from;
            }
        }
        let most = in_the_way.into_iter().max_by_key(|(_, time)| *time);
        let because_of = most.map(|(who, _)| who.to_owned()).filter(|who| !who.is_empty());
        (known > 0).then(|| (avoided as f64 / known as f64, because_of))
    };
    let score = |(of, steps): (&&str, &Vec<(u64, f64, u64)>)| {
        let (avoided, because_of) = judged(of, steps).map_or((None, None), |(avoided, who)| (Some(avoided), who));
        Some(Score { of: (**of).to_owned(), values: values(steps)?, avoided, because_of })
    };
    by_node.iter().filter_map(score).collect()
}

/// How many replicas a read asks, where every node has every row, so that they are chosen among all nodes.
fn asked_of_all(description: &Description) -> Option<usize> {
    let nodes = description.hosts.iter().filter(|host| host.role == "node").count();
    let load = &description.load;
    if nodes == 0 || load.replication as usize != nodes {
        return None;
    }
    // In several data centres a local level chooses among those of one.
    if load.consistency.to_ascii_lowercase().starts_with("local") && !description.network.is_empty() {
        return None;
    }
    awaited(&load.consistency, load.replication).map(|awaited| (awaited as usize).clamp(1, nodes))
}
