//! `start`, `unpause` and `restart`: nodes run again, whether a command or something else had stopped them.

use std::{
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

use brownout_base::Change;
use brownout_cluster::NodeState;

use super::{
    Failure,
    lab::Lab,
    ledger::Key,
    protocol::{Verb, Who},
    roles::refuse_roles,
    status,
};
use crate::faults::{BACK_WITHIN, Healing, STOP_WITHIN, together};

/// A node that is being started has a process by then.
const STARTED_WITHIN: Duration = Duration::from_secs(20);
/// Between two looks at it.
const LOOK: Duration = Duration::from_millis(20);

impl Lab {
    /// Lets all of them run again at once; says how each is then.
    pub(super) fn process(
        self: &Arc<Self>,
        verb: Verb,
        who: &Who,
        wait: bool,
        by: &str,
    ) -> Result<Vec<String>, Failure> {
        // Whoever has the role can be restarted, whatever has been struck.
        if verb != Verb::Restart {
            refuse_roles(who, &self.layout.hosts)?;
        }
        let nodes = self.nodes(who)?;
        if verb != Verb::Unpause {
            self.refuse_to_start(&nodes)?;
        }
        let (sender, receiver) = mpsc::channel();
        for node in &nodes {
            let (lab, node, by, sender) = (Arc::clone(self), node.clone(), by.to_owned(), sender.clone());
            let body = move || {
                let done = lab.one(verb, &node, &by);
                // Whoever did not wait has the event log.
                let _ = sender.send((node, done));
            };
            thread::Builder::new().name(verb.word().to_owned()).spawn(body)?;
        }
        drop(sender);
        let mut lines = Vec::new();
        let mut failed = Vec::new();
        if wait || verb == Verb::Unpause {
            for (node, done) in receiver {
                match done {
                    Ok(text) => lines.push(format!("{node}: {} {text}", status::state(self, &node)?)),
                    Err(failure) => failed.push(failure.message),
                }
            }
        } else {
            let limit = Instant::now() + STARTED_WITHIN + STOP_WITHIN;
            for node in &nodes {
                // One that failed at once, such as one that runs, is told; one that starts has a process soon.
                while Instant::now() < limit && failed.is_empty() && self.control.state(node)? == NodeState::Down {
                    failed.extend(receiver.try_iter().filter_map(|(_, done)| Some(done.err()?.message)));
                    thread::sleep(LOOK);
                }
                lines.push(format!("{node}: {} (answers when `status` says UP)", status::state(self, node)?));
            }
            failed.extend(receiver.try_iter().filter_map(|(_, done)| Some(done.err()?.message)));
        }
        lines.sort();
        if failed.is_empty() {
            return Ok(lines);
        }
        let well = if lines.is_empty() { String::new() } else { format!("; done: {}", lines.join("; ")) };
        Err(Failure::failed(format!("{}{well}", failed.join("; "))))
    }

    fn one(&self, verb: Verb, node: &str, by: &str) -> Result<String, Failure> {
        let begun = Instant::now();
        let done = self.run_again(verb, node);
        let change = match done {
            Ok(change) => change,
            Err(failure) => {
                let text = format!("{}: {failure}", verb.word());
                self.events.note(together([]), "failed", node, &text, by);
                return Err(Failure::failed(failure.message));
            }
        };
        self.events.note(change, verb.word(), node, &format!("{node}: {}", verb.word()), by);
        Ok(match verb {
            Verb::Unpause => "(SIGCONT)".to_owned(),
            Verb::Start | Verb::Restart => {
                let verb = if self.has_database { "answers" } else { "runs" };
                format!("({verb} after {:.1}s)", begun.elapsed().as_secs_f64())
            }
        })
    }

    fn run_again(&self, verb: Verb, node: &str) -> Result<Change, Failure> {
        let (control, key) = (&self.control, Key::new(Key::PROCESS, node));
        let state = control.state(node)?;
        let heals = match verb {
            Verb::Unpause => state == NodeState::Paused,
            Verb::Start => state == NodeState::Down,
            Verb::Restart => {
                // One that is down has only to be started, and one that a command ends already, too, once it has ended.
                if state != NodeState::Down && !self.ledger().is_settling(&key) {
                    self.stop(node)?;
                }
                true
            }
        };
        // Outside of the lock: others look into the ledger while a node starts.
        let healing = if heals { self.ledger().heal(&key) } else { None };
        let healed = healing.map(|healing| healing.and_then(Healing::wait)).transpose()?;
        // What no command has done, or another one than this undoes.
        let now = control.state(node)?;
        match (verb, now, healed) {
            (Verb::Unpause, NodeState::Up, Some(change)) => Ok(change),
            (Verb::Unpause, ..) => Ok(control.unpause(node)?),
            (Verb::Start | Verb::Restart, NodeState::Up, Some(change)) => {
                self.wait_answers(node)?;
                Ok(change)
            }
            (Verb::Start | Verb::Restart, ..) => {
                let change = control.start(node)?;
                self.wait_answers(node)?;
                Ok(change)
            }
        }
    }

    /// Until a node answers, as far as it is known how to ask it.
    fn wait_answers(&self, node: &str) -> Result<(), Failure> {
        if self.has_database {
            self.control.wait_answers(node, BACK_WITHIN, &|| false)?;
        }
        Ok(())
    }
}
