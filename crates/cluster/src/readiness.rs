//! Waiting until every node reports that the whole cluster is there.

use std::{
    collections::BTreeSet,
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use serde::Serialize;

use crate::{
    database::{ClusterView, Member},
    host::Network,
};

/// Between two questions to the same node.
const ASK_EVERY: Duration = Duration::from_millis(150);
/// Between two looks at deaths, the deadline and the caller's wish to stop.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A cluster that is ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Readiness {
    /// From the start of the first process until all conditions held.
    pub took: Duration,
    /// The one schema version that all nodes hold.
    pub schema: String,
}

/// Asks every member by `ask`, in its own network, until all lack nothing and hold one schema: returns that schema.
///
/// `look` is called about every 50 ms with what is missing, and a last time with nothing; it ends the wait by returning
/// an error.
pub(crate) fn wait<E>(
    ask: &(dyn Fn(usize) -> ClusterView + Sync),
    members: &[Member],
    networks: &[Network],
    mut look: impl FnMut(&[String]) -> Result<(), E>,
) -> Result<String, E> {
    let stop = AtomicBool::new(false);
    let (to_us, views_in) = mpsc::channel();
    thread::scope(|scope| {
        for (index, network) in networks.iter().enumerate() {
            let (to_us, stop) = (to_us.clone(), &stop);
            scope.spawn(move || ask_until_stopped(ask, members, index, network, stop, &to_us));
        }
        // The scope joins the askers, also when `look` panics.
        let _stopper = StopOnDrop(&stop);
        let mut answers = Answers::of(members);
        loop {
            let until = Instant::now() + LOOK_EVERY;
            while let Ok(answer) = views_in.recv_timeout(until.saturating_duration_since(Instant::now())) {
                answers.take(answer);
            }
            match answers.verdict() {
                Ok(schema) => return look(&[]).map(|()| schema),
                Err(missing) => look(&missing)?,
            }
        }
    })
}

/// Asks one member, in its own network, by `answers`, until it does.
///
/// `look` is called about every 50 ms with what it did last; it ends the wait by returning an error.
pub(crate) fn ask_one<E>(
    network: &Network,
    answers: &(dyn Fn() -> Result<(), String> + Sync),
    mut look: impl FnMut(&str) -> Result<(), E>,
) -> Result<(), E> {
    let stop = AtomicBool::new(false);
    let (to_us, from_asker) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            let to_us = to_us;
            // Each time: a node that is started again may be in another network than before.
            let entered = || network.enter().map_err(|error| format!("its network cannot be entered: {error}"));
            while !stop.load(Ordering::Relaxed) && to_us.send(entered().and_then(|()| answers())).is_ok() {
                thread::sleep(ASK_EVERY);
            }
        });
        let _stopper = StopOnDrop(&stop);
        let mut last = "it was not asked yet".to_owned();
        loop {
            match from_asker.recv_timeout(LOOK_EVERY) {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(what)) => last = what,
                Err(_) => {}
            }
            look(&last)?;
        }
    })
}

struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn ask_until_stopped(
    ask: &(dyn Fn(usize) -> ClusterView + Sync),
    members: &[Member],
    index: usize,
    network: &Network,
    stop: &AtomicBool,
    to_us: &mpsc::Sender<Answer>,
) {
    while !stop.load(Ordering::Relaxed) {
        let begun = Instant::now();
        let view = match network.enter() {
            Ok(()) => ask(index),
            Err(error) => {
                let missing = vec![format!("{}'s network cannot be entered: {error}", members[index].name)];
                ClusterView { missing, schema: None }
            }
        };
        if to_us.send(Answer { index, begun, ended: Instant::now(), view }).is_err() {
            return;
        }
        thread::sleep(ASK_EVERY);
    }
}

/// A member's view, and the time in which it was formed.
struct Answer {
    index: usize,
    begun: Instant,
    ended: Instant,
    view: ClusterView,
}

/// The last answer of every member.
struct Answers<'a> {
    members: &'a [Member],
    last: Vec<Option<Answer>>,
    /// When something was last known to be missing. What was seen before may no longer be so, and does not count.
    lacked: Option<Instant>,
}

impl<'a> Answers<'a> {
    fn of(members: &'a [Member]) -> Self {
        Answers { members, last: members.iter().map(|_| None).collect(), lacked: None }
    }

    fn take(&mut self, answer: Answer) {
        if !answer.view.missing.is_empty() {
            self.lacked = self.lacked.max(Some(answer.ended));
        }
        let index = answer.index;
        self.last[index] = Some(answer);
    }

    /// The schema that all agree on, by answers that were begun after the last that told of something missing; or
    /// what is missing.
    fn verdict(&mut self) -> Result<String, Vec<String>> {
        let mut missing = Vec::new();
        let (mut schemas, mut stale) = (BTreeSet::new(), false);
        for (member, answer) in self.members.iter().zip(&self.last) {
            let Some(Answer { begun, view, .. }) = answer else {
                missing.push(format!("{} has not answered yet", member.name));
                continue;
            };
            missing.extend(view.missing.iter().cloned());
            schemas.extend(view.schema.clone());
            stale |= self.lacked.is_some_and(|lacked| *begun <= lacked);
        }
        if !missing.is_empty() {
            return Err(missing);
        }
        if stale {
            return Err(vec!["all nodes are asked once more".to_owned()]);
        }
        match (schemas.len(), schemas.pop_first()) {
            (1, Some(schema)) => return Ok(schema),
            (0, _) => missing.push("no node reports a schema version".to_owned()),
            (count, _) => missing.push(format!("the nodes hold {count} schema versions")),
        }
        // Answers that contradict one another are of different times, or will be.
        self.lacked = self.lacked.max(self.last.iter().flatten().map(|answer| answer.ended).max());
        Err(missing)
    }
}

#[cfg(test)]
mod tests {
    use std::{net::Ipv4Addr, sync::OnceLock};

    use super::*;

    fn members() -> Vec<Member> {
        ["n1", "n2"]
            .map(|name| Member {
                name: name.to_owned(),
                address: Ipv4Addr::LOCALHOST,
                client: (Ipv4Addr::LOCALHOST, 9042).into(),
                home: "/".into(),
                logs: "/".into(),
            })
            .into()
    }

    /// What a member answers who is asked `begun` ms after the beginning and lets one pass; then the verdict.
    fn after(answers: &mut Answers, index: usize, begun: u64, missing: &[&str], schema: &str) -> String {
        static BEGINNING: OnceLock<Instant> = OnceLock::new();
        let begun = *BEGINNING.get_or_init(Instant::now) + Duration::from_millis(begun);
        let missing = missing.iter().map(|&m| m.to_owned()).collect();
        let view = ClusterView { missing, schema: Some(schema.to_owned()) };
        answers.take(Answer { index, begun, ended: begun + Duration::from_millis(1), view });
        answers.verdict().unwrap_or_else(|missing| missing.join("; "))
    }

    #[test]
    fn ready_means_that_all_answered_lack_nothing_and_hold_one_schema() {
        let members = members();
        let answers = &mut Answers::of(&members);
        assert_eq!(after(answers, 0, 1, &[], "a"), "n2 has not answered yet");
        assert_eq!(after(answers, 1, 5, &[], "a"), "a");
        assert_eq!(after(answers, 0, 7, &["n1 takes n2 for down"], "a"), "n1 takes n2 for down");
    }

    #[test]
    fn what_was_seen_before_something_was_missing_does_not_count() {
        let members = members();
        let answers = &mut Answers::of(&members);
        after(answers, 0, 1, &[], "a");
        after(answers, 1, 5, &["n2 takes n1 for down"], "a");
        assert_eq!(after(answers, 1, 10, &[], "a"), "all nodes are asked once more", "n1 was asked before");
        // Begun before the lack was known, answered after it.
        assert_eq!(after(answers, 0, 6, &[], "a"), "all nodes are asked once more");
        assert_eq!(after(answers, 0, 11, &[], "a"), "a");
    }

    #[test]
    fn after_two_schemas_were_seen_all_have_to_be_asked_again() {
        let members = members();
        let answers = &mut Answers::of(&members);
        after(answers, 0, 1, &[], "a");
        assert_eq!(after(answers, 1, 1, &[], "b"), "the nodes hold 2 schema versions");
        assert_eq!(after(answers, 0, 5, &[], "b"), "all nodes are asked once more");
        assert_eq!(after(answers, 1, 5, &[], "b"), "b");
    }
}
