//! Waiting until every node says that the whole cluster is there.

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
    place::Network,
    system::{Member, System, View},
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

/// Asks every member, in its own network, until all lack nothing and hold one schema: returns that schema.
///
/// `look` is called about every 50 ms with what is missing, and ends the wait by returning an error.
pub(crate) fn wait<E>(
    system: &dyn System,
    members: &[Member],
    networks: &[Network],
    mut look: impl FnMut(&[String]) -> Result<(), E>,
) -> Result<String, E> {
    let stop = AtomicBool::new(false);
    let (to_us, views_in) = mpsc::channel();
    thread::scope(|scope| {
        for (index, network) in networks.iter().enumerate() {
            let (to_us, stop) = (to_us.clone(), &stop);
            scope.spawn(move || ask_until_stopped(system, members, index, network, stop, &to_us));
        }
        // The scope joins the askers, also when `look` panics.
        let _stopper = StopOnDrop(&stop);
        let mut views: Vec<Option<View>> = members.iter().map(|_| None).collect();
        loop {
            let until = Instant::now() + LOOK_EVERY;
            while let Ok((index, view)) = views_in.recv_timeout(until.saturating_duration_since(Instant::now())) {
                views[index] = Some(view);
            }
            match verdict(members, &views) {
                Ok(schema) => return Ok(schema),
                Err(missing) => look(&missing)?,
            }
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
    system: &dyn System,
    members: &[Member],
    index: usize,
    network: &Network,
    stop: &AtomicBool,
    to_us: &mpsc::Sender<(usize, View)>,
) {
    let entered = network.enter();
    while !stop.load(Ordering::Relaxed) {
        let view = match &entered {
            Ok(()) => system.view(members, index),
            Err(error) => {
                let missing = vec![format!("{}'s network cannot be entered: {error}", members[index].name)];
                View { missing, schema: None }
            }
        };
        if to_us.send((index, view)).is_err() {
            return;
        }
        thread::sleep(ASK_EVERY);
    }
}

/// The schema that all agree on, or what is missing.
fn verdict(members: &[Member], views: &[Option<View>]) -> Result<String, Vec<String>> {
    let mut missing = Vec::new();
    let mut schemas = BTreeSet::new();
    for (member, view) in members.iter().zip(views) {
        match view {
            None => missing.push(format!("{} has not answered yet", member.name)),
            Some(view) => {
                missing.extend(view.missing.iter().cloned());
                schemas.extend(view.schema.clone());
            }
        }
    }
    if missing.is_empty() && schemas.len() > 1 {
        missing.push(format!("the nodes hold {} schema versions", schemas.len()));
    }
    match schemas.pop_first() {
        Some(schema) if missing.is_empty() => Ok(schema),
        None if missing.is_empty() => Err(vec!["no node tells a schema version".to_owned()]),
        _ => Err(missing),
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn members() -> Vec<Member> {
        ["n1", "n2"]
            .map(|name| Member {
                name: name.to_owned(),
                address: Ipv4Addr::LOCALHOST,
                home: "/".into(),
                logs: "/".into(),
            })
            .into()
    }

    fn view(missing: &[&str], schema: &str) -> Option<View> {
        Some(View { missing: missing.iter().map(|&m| m.to_owned()).collect(), schema: Some(schema.to_owned()) })
    }

    #[test]
    fn ready_means_that_all_answered_lack_nothing_and_hold_one_schema() {
        assert_eq!(verdict(&members(), &[view(&[], "a"), view(&[], "a")]), Ok("a".to_owned()));
        let not = |views: [Option<View>; 2]| verdict(&members(), &views).unwrap_err().join("; ");
        assert_eq!(not([view(&[], "a"), None]), "n2 has not answered yet");
        assert_eq!(not([view(&["n1 takes n2 for down"], "a"), view(&[], "a")]), "n1 takes n2 for down");
        assert_eq!(not([view(&[], "a"), view(&[], "b")]), "the nodes hold 2 schema versions");
    }
}
