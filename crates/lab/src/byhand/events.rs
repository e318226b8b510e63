//! The event log of a lab: what changed, when, and by whose command.

use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use brownout_base::{Change, clock::monotonic_ns};
use serde::{Deserialize, Serialize};

/// Older ones are forgotten, and that is told.
const KEPT: usize = 10_000;

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabEvent {
    /// Counts up by one from 1.
    pub number: u64,
    /// When, on the machine's wall clock, ns since 1970 UTC.
    pub unix_ns: u64,
    /// The same on the lab's monotonic clock, ns.
    pub at_ns: u64,
    /// It happened at that moment, give or take this, ns.
    pub error_ns: u64,
    /// `slow`, `partition`, `heal`, `state`, …
    pub kind: String,
    /// The hosts.
    pub subject: String,
    /// What changed.
    pub text: String,
    /// The command line, or who else did it.
    pub who: String,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Events {
    kept: Mutex<VecDeque<LabEvent>>,
    news: Condvar,
}

impl Events {
    /// Notes a change.
    pub(super) fn note(&self, change: Change, kind: &str, subject: &str, text: &str, who: &str) {
        // Two clocks read together; the wall clock only serves people.
        let (now_ns, wall) = (monotonic_ns(), SystemTime::now());
        let wall_ns = wall.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let event = LabEvent {
            number: kept.back().map_or(0, |last| last.number) + 1,
            unix_ns: wall_ns.saturating_sub(now_ns.saturating_sub(change.at_ns)),
            at_ns: change.at_ns,
            error_ns: change.error_ns,
            kind: kind.to_owned(),
            subject: subject.to_owned(),
            text: text.to_owned(),
            who: who.to_owned(),
        };
        kept.push_back(event);
        if kept.len() > KEPT {
            kept.pop_front();
        }
        self.news.notify_all();
    }

    /// Those after that number; waits for one up to `patience`. In place of those that were forgotten stands one that says so.
    pub(super) fn after(&self, number: u64, patience: Duration) -> Vec<LabEvent> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let nothing = |kept: &mut VecDeque<LabEvent>| kept.back().is_none_or(|last| last.number <= number);
        let (kept, _) = self.news.wait_timeout_while(kept, patience, nothing).unwrap_or_else(PoisonError::into_inner);
        let forgotten = kept.front().and_then(|first| forgotten(number, first));
        forgotten.into_iter().chain(kept.iter().filter(|event| event.number > number).cloned()).collect()
    }
}

/// In place of the events between that number and the first that was kept; it bears the last of their numbers.
fn forgotten(number: u64, first: &LabEvent) -> Option<LabEvent> {
    let count = first.number.saturating_sub(number + 1);
    (count > 0).then(|| LabEvent {
        number: first.number - 1,
        unix_ns: first.unix_ns,
        at_ns: first.at_ns,
        error_ns: 0,
        kind: "forgotten".to_owned(),
        subject: String::new(),
        text: format!("{count} events before this moment are forgotten: the last {KEPT} are kept"),
        who: "the lab".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_that_were_forgotten_are_told() {
        let events = Events::default();
        let kinds = |number| -> Vec<(u64, String)> {
            let told = events.after(number, Duration::ZERO);
            told.into_iter().take(2).map(|event| (event.number, event.kind)).collect()
        };
        let note = |count: usize| (0..count).for_each(|_| events.note(Change::between(1, 2), "slow", "n2", "", ""));
        let of = |number: u64, kind: &str| (number, kind.to_owned());
        note(KEPT);
        assert_eq!(kinds(0), [of(1, "slow"), of(2, "slow")]);
        note(3);
        assert_eq!(kinds(0), [of(3, "forgotten"), of(4, "slow")]);
        assert!(events.after(0, Duration::ZERO)[0].text.starts_with("3 events"));
        // Who has been told up to there misses nothing.
        assert_eq!(kinds(3), [of(4, "slow"), of(5, "slow")]);
        assert_eq!(kinds(2), [of(3, "forgotten"), of(4, "slow")]);
    }
}
