//! Who leads a cluster in which a leader decides, by what its members say.

use std::collections::BTreeMap;

use brownout_record::EvidenceRow;
use serde::Serialize;

use crate::PhaseWindow;

/// From a moment on a node leads the cluster, or nobody does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Leadership {
    /// When, ns since the run's zero …
    pub at_ns: u64,
    /// … within this. The first of a trial is from when it was first told of.
    pub error_ns: u64,
    /// In which phase; none if in none.
    pub phase: Option<String>,
    /// Who leads from then on; none: nobody.
    pub node: Option<String>,
    /// In which term. Each election begins a new one.
    pub term: u64,
}

/// Who led in a phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Led {
    /// Those who did, in order of time; whoever came back after another is named again.
    pub by: Vec<String>,
    /// Terms that began in it.
    pub elections: u64,
    /// For so long nobody led, ns.
    pub without_ns: u64,
}

/// Names in the record.
const LEADER: &str = "leader";
const ELECTED: &str = "elected";
const LOST: &str = "lost-leader";
/// Rows that say whom a node follows in the term of their value: the subject, or nobody.
pub(crate) const NAMES: [&str; 3] = [LEADER, ELECTED, LOST];

/// What a node said last.
struct View<'a> {
    /// Whom it follows.
    leader: Option<&'a str>,
    term: u64,
}

/// Each change, in order of time. Empty where nobody tells.
pub(crate) fn leaders(rows: &[EvidenceRow], phases: &[PhaseWindow]) -> Vec<Leadership> {
    let mut views: BTreeMap<&str, View<'_>> = BTreeMap::new();
    let mut all: Vec<Leadership> = Vec::new();
    for row in rows.iter().filter(|row| NAMES.contains(&row.name.as_str())) {
        let leader = Some(row.subject.as_str()).filter(|leader| row.name != LOST && !leader.is_empty());
        views.insert(&row.node, View { leader, term: row.value as u64 });
        let (node, term) = together(&views);
        let last = all.last().map(|last| (last.node.as_deref(), last.term));
        if last == Some((node, term)) {
            continue;
        }
        let is_in = |window: &&PhaseWindow| (window.starts_ns..window.ends_ns).contains(&row.at_ns);
        all.push(Leadership {
            at_ns: row.at_ns,
            error_ns: row.error_ns,
            phase: phases.iter().find(is_in).map(|window| window.name.clone()),
            node: node.map(str::to_owned),
            term,
        });
    }
    all
}

/// The leader of the newest term in which anybody follows somebody. A member that is alone may begin one term after the other,
/// which nobody else knows of.
///
/// Nobody leads, in the newest term of all, if he says himself that he leads no more, or if fewer than half of those who know his
/// term, or a newer one, follow him: who was cut off, or stands still, goes on to take himself for the leader.
fn together<'a>(views: &BTreeMap<&str, View<'a>>) -> (Option<&'a str>, u64) {
    let newest = views.values().map(|view| view.term).max().unwrap_or(0);
    let led = views.values().filter_map(|view| Some((view.term, view.leader?))).max_by_key(|(term, _)| *term);
    let Some((term, leader)) = led else { return (None, newest) };
    let know = || views.values().filter(move |view| view.term >= term);
    let follow = know().filter(|view| view.leader.is_some()).count();
    let has_stepped_down = views.get(leader).is_some_and(|own| own.term >= term && own.leader.is_none());
    if has_stepped_down || 2 * follow < know().count() { (None, newest) } else { (Some(leader), term) }
}

/// Who led at a moment; before anybody told, who was told of first.
pub(crate) fn at(leaders: &[Leadership], at_ns: u64) -> Option<&Leadership> {
    leaders.iter().rfind(|one| one.at_ns <= at_ns).or_else(|| leaders.first())
}

/// Who led in the measured part of a phase; none where nobody tells.
pub(crate) fn led(leaders: &[Leadership], window: &PhaseWindow) -> Option<Led> {
    let (from_ns, to_ns) = (window.measured_from_ns, window.measured_to_ns);
    let first = at(leaders, from_ns)?;
    let is_within = |one: &&Leadership| one.at_ns > from_ns && one.at_ns < to_ns && *one != first;
    let within: Vec<&Leadership> = leaders.iter().filter(is_within).collect();
    let starts: Vec<(u64, &Leadership)> =
        [(from_ns, first)].into_iter().chain(within.into_iter().map(|one| (one.at_ns, one))).collect();
    let ends = starts.iter().skip(1).map(|(at_ns, _)| *at_ns).chain([to_ns]);
    let alone = starts.iter().zip(ends).filter(|((_, one), _)| one.node.is_none());
    let without_ns = alone.map(|((from_ns, _), to_ns)| to_ns - from_ns).sum();
    let mut by: Vec<String> = starts.iter().filter_map(|(_, one)| one.node.clone()).collect();
    by.dedup();
    let mut terms: Vec<u64> = starts.iter().map(|(_, one)| one.term).collect();
    terms.dedup();
    Some(Led { by, elections: terms.len() as u64 - 1, without_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(seconds: u64, node: &str, name: &str, subject: &str, term: u64) -> EvidenceRow {
        EvidenceRow {
            at_ns: seconds * 1_000_000_000,
            error_ns: 1_000_000,
            node: node.to_owned(),
            source: "status".to_owned(),
            subject: subject.to_owned(),
            name: name.to_owned(),
            value: term as f64,
        }
    }

    fn told(rows: &[EvidenceRow]) -> Vec<(u64, Option<String>, u64)> {
        let all = leaders(rows, &[]);
        all.into_iter().map(|one| (one.at_ns / 1_000_000_000, one.node, one.term)).collect()
    }

    fn n(name: &str) -> Option<String> {
        Some(name.to_owned())
    }

    #[test]
    fn one_election_is_one_change_however_many_tell_of_it() {
        let mut rows: Vec<EvidenceRow> = ["n1", "n2", "n3"].map(|node| row(1, node, LEADER, "n1", 2)).to_vec();
        rows.extend([row(5, "n2", LOST, "n1", 2), row(6, "n3", LOST, "n1", 2), row(7, "n3", ELECTED, "n3", 3)]);
        rows.extend([row(7, "n2", ELECTED, "n3", 3), row(8, "n3", LEADER, "n3", 3), row(9, "n1", LEADER, "n3", 3)]);
        assert_eq!(told(&rows), [(1, n("n1"), 2), (6, None, 2), (7, n("n3"), 3)]);
    }

    #[test]
    fn one_member_without_a_leader_leaves_the_others_theirs() {
        let mut rows: Vec<EvidenceRow> = ["n1", "n2", "n3"].map(|node| row(1, node, LEADER, "n2", 4)).to_vec();
        rows.extend([row(5, "n1", LEADER, "", 4), row(9, "n1", LEADER, "n2", 4)]);
        assert_eq!(told(&rows), [(1, n("n2"), 4)]);
    }

    #[test]
    fn a_member_alone_that_begins_term_after_term_leaves_the_others_their_leader() {
        let mut rows: Vec<EvidenceRow> = ["n1", "n2", "n3"].map(|node| row(1, node, LEADER, "n2", 4)).to_vec();
        rows.extend([5, 6, 7].map(|term| row(term, "n1", LEADER, "", term)));
        assert_eq!(told(&rows), [(1, n("n2"), 4)]);
        // It is back, and who hears of its term leads no more.
        rows.extend([row(8, "n2", LEADER, "", 7), row(9, "n3", LEADER, "n3", 8), row(9, "n2", LEADER, "n3", 8)]);
        assert_eq!(told(&rows), [(1, n("n2"), 4), (8, None, 7), (9, n("n3"), 8)]);
    }

    #[test]
    fn a_leader_that_was_cut_off_and_does_not_know_it_leads_no_more() {
        let mut rows: Vec<EvidenceRow> = ["n1", "n2", "n3"].map(|node| row(1, node, LEADER, "n2", 4)).to_vec();
        rows.extend([row(5, "n1", LEADER, "n1", 5), row(6, "n2", LEADER, "n2", 4)]);
        assert_eq!(told(&rows), [(1, n("n2"), 4), (5, n("n1"), 5)]);
    }

    #[test]
    fn who_steps_down_leaves_nobody_until_someone_is_elected() {
        let mut rows: Vec<EvidenceRow> = ["n1", "n2", "n3"].map(|node| row(1, node, LEADER, "n2", 4)).to_vec();
        rows.extend([row(5, "n2", LEADER, "", 4), row(7, "n2", LEADER, "n2", 5)]);
        assert_eq!(told(&rows), [(1, n("n2"), 4), (5, None, 4), (7, n("n2"), 5)]);
    }

    #[test]
    fn a_phase_has_its_elections_and_the_time_without_a_leader() {
        let mut rows = vec![row(1, "n1", LEADER, "n1", 2), row(11, "n1", LOST, "n1", 2)];
        rows.extend([row(14, "n3", ELECTED, "n3", 3), row(25, "n1", ELECTED, "n1", 4)]);
        let all = leaders(&rows, &[]);
        let window = |from: u64, to: u64| PhaseWindow {
            name: String::new(),
            starts_ns: 0,
            ends_ns: u64::MAX,
            finished: true,
            ended_by: None,
            measured_from_ns: from * 1_000_000_000,
            measured_to_ns: to * 1_000_000_000,
        };
        let of = |from, to| led(&all, &window(from, to)).unwrap();
        let is = |by: &[&str], elections, seconds: u64| Led {
            by: by.iter().map(|node| (*node).to_owned()).collect(),
            elections,
            without_ns: seconds * 1_000_000_000,
        };
        assert_eq!(of(0, 10), is(&["n1"], 0, 0));
        assert_eq!(of(10, 20), is(&["n1", "n3"], 1, 3));
        assert_eq!(of(12, 13), is(&[], 0, 1));
        assert_eq!(of(20, 30), is(&["n3", "n1"], 1, 0));
        assert_eq!(led(&[], &window(0, 10)), None);
    }
}
