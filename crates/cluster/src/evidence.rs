//! The database's own evidence of what it does: what its nodes tell of themselves, looked at once in every interval. What there is
//! to look at is the database's: see [`Looker`].

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, Sender},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use brownout_base::clock::monotonic_ns;

use crate::{
    ClusterControl, ClusterError,
    database::{Looker, Shown},
    host::Network,
};

/// Nodes are asked this long before an interval's end, so that its last reading belongs to it; and one after the other.
const BEFORE_END_NS: u64 = 50_000_000;
const APART_NS: u64 = 100_000_000;
/// All are asked in the last half of an interval.
const SHARE_OF_INTERVAL: u64 = 2;
/// Longest sleep: how long the end can be delayed.
const NAP: Duration = Duration::from_millis(50);

/// One thing that a node's evidence shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// The node that shows it.
    pub node: String,
    /// When, `CLOCK_MONOTONIC`, ns.
    pub at_ns: u64,
    /// The true time lies within `at_ns` ± this.
    pub error_ns: u64,
    /// As of [`Shown::source`].
    pub source: &'static str,
    /// As of [`Shown::subject`].
    pub subject: String,
    /// As of [`Shown::name`].
    pub name: &'static str,
    /// As of [`Shown::value`].
    pub value: f64,
}

/// Looks at every node's evidence, until this is dropped.
#[derive(Debug)]
pub struct EvidenceWatch {
    seen: Receiver<Evidence>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl EvidenceWatch {
    /// Asks each node shortly before the end of every interval: those of length `every` that begin at `epoch_ns`
    /// (`CLOCK_MONOTONIC`). `wrong_clocks` are the nodes whose wall clock may be wrong: what they log happened at some
    /// moment since the last look.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn start(
        control: &ClusterControl,
        epoch_ns: u64,
        every: Duration,
        wrong_clocks: &BTreeSet<String>,
    ) -> Result<EvidenceWatch, ClusterError> {
        let (tell, seen) = mpsc::channel();
        let mut started = EvidenceWatch { seen, stop: Arc::new(AtomicBool::new(false)), threads: Vec::new() };
        let every_ns = every.as_nanos() as u64;
        let nodes = control.members().count() as u64;
        let apart_ns = APART_NS.min(every_ns / SHARE_OF_INTERVAL / nodes.max(1));
        for (index, (member, network)) in control.members().enumerate() {
            let node = member.name.clone();
            let Some(mut looker) = control.looker(index, !wrong_clocks.contains(&node)) else { continue };
            let (network, stop, tell) = (network.clone(), Arc::clone(&started.stop), tell.clone());
            let offset_ns = every_ns.saturating_sub(BEFORE_END_NS + apart_ns * index as u64).max(every_ns / 4);
            let name = node.clone();
            let run = move || {
                let whom = (name.as_str(), &network);
                watch(whom, looker.as_mut(), epoch_ns + offset_ns, every_ns, &stop, &tell);
            };
            let thread = thread::Builder::new().name(format!("evidence-{node}")).spawn(run);
            started.threads.push(thread.map_err(|source| ClusterError::Network { node, source })?);
        }
        Ok(started)
    }

    /// What was seen since this was last called.
    pub fn drain(&self) -> Vec<Evidence> {
        self.seen.try_iter().collect()
    }
}

impl Drop for EvidenceWatch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A panic has been printed by the thread itself.
            let _ = thread.join();
        }
    }
}

/// Looks at `first_ns` and once in every `every_ns` after it, from the network that the node is in by then.
fn watch(
    (node, network): (&str, &Network),
    looker: &mut dyn Looker,
    first_ns: u64,
    every_ns: u64,
    stop: &AtomicBool,
    tell: &Sender<Evidence>,
) {
    loop {
        // A look that took too long has missed those after it.
        let gone = monotonic_ns().checked_sub(first_ns).map_or(0, |since| since / every_ns.max(1) + 1);
        let next_ns = first_ns + gone * every_ns;
        while monotonic_ns() < next_ns && !stop.load(Ordering::Relaxed) {
            thread::sleep(NAP.min(Duration::from_nanos(next_ns.saturating_sub(monotonic_ns()))));
        }
        if stop.load(Ordering::Relaxed) {
            return;
        }
        if network.enter().is_err() {
            continue;
        }
        for Shown { at_ns, error_ns, source, name, subject, value } in looker.look() {
            // Nobody listens any more when all is about to end.
            let _ = tell.send(Evidence { node: node.to_owned(), at_ns, error_ns, source, subject, name, value });
        }
    }
}
