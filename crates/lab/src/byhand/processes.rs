//! What is done to the nodes' processes: pause, kill, stop, start.

use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use brownout_base::Change;
use brownout_cluster::NodeState;
use brownout_units::Delay;

use super::{
    Failure,
    lab::Lab,
    protocol::{Verb, Who},
    status,
};
use crate::faults::together;

/// A node that has been asked to end is killed after this.
const STOP_WITHIN: Duration = Duration::from_secs(20);
/// A node that does not answer by then, started again, will not.
const BACK_WITHIN: Duration = Duration::from_secs(180);

/// What is to be done to whom.
pub(super) struct Deed {
    pub(super) verb: Verb,
    pub(super) who: Who,
    pub(super) signal: i32,
    pub(super) wait: bool,
    pub(super) for_ns: Option<u64>,
}

impl Lab {
    /// Does it to all of them at once; says how each is then.
    pub(super) fn process(self: &Arc<Self>, deed: &Deed, by: &str) -> Result<Vec<String>, Failure> {
        let nodes = self.hosts(&deed.who)?;
        let nodes = nodes.iter().map(|name| self.node(name)).collect::<Result<Vec<_>, _>>()?;
        let undone = match (deed.verb, deed.for_ns) {
            (_, None) => None,
            (Verb::Pause, Some(after)) => Some((Verb::Unpause, after)),
            (Verb::Kill | Verb::Stop, Some(after)) => Some((Verb::Start, after)),
            (verb, Some(_)) => {
                return Err(Failure::wrong(format!("{} cannot be undone after a while; leave --for out", verb.word())));
            }
        };
        let done: Vec<(String, Result<String, Failure>)> = thread::scope(|scope| {
            let threads: Vec<_> = nodes.iter().map(|node| (node, scope.spawn(|| self.one(deed, node, by)))).collect();
            let ended = |(node, thread): (&String, thread::ScopedJoinHandle<'_, Result<String, Failure>>)| {
                let done = thread
                    .join()
                    .unwrap_or_else(|_| Err(Failure::failed(format!("{node}: the lab's thread has died"))));
                (node.clone(), done)
            };
            threads.into_iter().map(ended).collect()
        });
        let mut lines = Vec::new();
        let mut failed = Vec::new();
        let mut changed = Vec::new();
        for (node, done) in done {
            match done {
                Ok(text) => {
                    lines.push(format!("{node}: {} {text}", status::state(self, &node)?));
                    changed.push(node);
                }
                Err(failure) => failed.push(failure.message),
            }
        }
        if let Some((verb, after)) = undone.filter(|_| !changed.is_empty()) {
            lines.push(format!("{} by itself after {}", verb.word(), Delay::from_ns(after)));
            let who = Who { names: changed, ..Who::default() };
            let undo = Deed { verb, who, signal: libc::SIGKILL, wait: false, for_ns: None };
            let by = format!("{by} (by itself)");
            self.timer.at(Instant::now() + Duration::from_nanos(after), move |lab: &Arc<Lab>| {
                // Somebody may have undone it already; the log tells both.
                if let Err(failure) = lab.process(&undo, &by) {
                    lab.events.note(together([]), "failed", &undo.who.names.join(", "), &failure.message, &by);
                }
            });
        }
        if failed.is_empty() {
            return Ok(lines);
        }
        let well = if lines.is_empty() { String::new() } else { format!("; done: {}", lines.join("; ")) };
        Err(Failure::failed(format!("{}{well}", failed.join("; "))))
    }

    fn one(&self, deed: &Deed, node: &str, by: &str) -> Result<String, Failure> {
        let control = &self.control;
        let (change, text): (Change, String) = match deed.verb {
            Verb::Pause => {
                (control.pause(node)?, "(SIGSTOP): its connections stay open, nothing is answered".to_owned())
            }
            Verb::Unpause => (control.unpause(node)?, "(SIGCONT)".to_owned()),
            Verb::Kill => (control.kill(node, deed.signal)?, format!("(signal {})", deed.signal)),
            Verb::Stop => {
                let stopped = control.stop(node, STOP_WITHIN)?;
                (stopped.change, ended(stopped.killed).to_owned())
            }
            Verb::Start => (control.start(node)?, String::new()),
            Verb::Restart => {
                // One that is down has only to be started.
                let stopped = match control.state(node)? {
                    NodeState::Down => None,
                    _ => Some(control.stop(node, STOP_WITHIN)?),
                };
                let started = control.start(node)?;
                let changes = stopped.iter().map(|stopped| stopped.change).chain([started]);
                (together(changes), stopped.map_or("", |stopped| ended(stopped.killed)).to_owned())
            }
        };
        self.events.note(change, deed.verb.word(), node, &format!("{node}: {} {text}", deed.verb.word()), by);
        if matches!(deed.verb, Verb::Start | Verb::Restart) {
            if !deed.wait {
                return Ok("(answers when `status` says UP)".to_owned());
            }
            let took = control.wait_answers(node, BACK_WITHIN, &|| false)?;
            return Ok(format!("(answers after {:.1}s)", took.as_secs_f64()));
        }
        Ok(text)
    }
}

fn ended(killed: bool) -> &'static str {
    if killed { "(it did not end by itself, and was killed)" } else { "(ended in good order)" }
}
