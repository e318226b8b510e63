//! The interface of every fault: how it is injected and healed, what it does, what must then be seen.

use std::{any::Any, fmt, sync::Arc};

use brownout_base::Change;
use brownout_network::Impairment;
use brownout_record::Expectation;
use brownout_units::Delay;

use super::{capabilities::Capabilities, needs::Needs, role::Role};
use crate::{LabError, hosts::Hosts};

/// A fault of any kind.
pub trait Fault: Any + fmt::Debug + Send + Sync {
    /// The word it begins with in an experiment file.
    fn kind(&self) -> &'static str;

    /// The hosts it strikes, for the event log.
    fn subject(&self) -> String;

    /// What it does, with its direction.
    fn text(&self) -> String;

    /// What that means for those who use the cluster: for round-trip times first of all.
    fn effect(&self) -> String;

    /// What must be seen where it hits and where it must not.
    fn expectations(&self, hosts: &Hosts) -> Vec<Expectation>;

    /// How long after a change one may still see what was before it, or neither.
    fn unsettled(&self) -> Delay;

    /// How long it may take to come into force: a database that shuts down cleanly takes seconds. The proof looks at what
    /// comes after that, however long it took; the plan leaves this much time for it.
    fn injects_within(&self) -> Delay {
        Delay::ZERO
    }

    /// How long its healing may take: a database that starts again takes more than ten seconds, and longer on a busy
    /// machine. The plan leaves this much time for it.
    fn heals_within(&self) -> Delay {
        Delay::ZERO
    }

    /// The nodes whose processes it stops or ends: no other fault can do that to them before they are back.
    fn stills(&self) -> &[String] {
        &[]
    }

    /// Whether a process is started again when it is healed: one that has everything still to compile, and nothing cached.
    fn restarts(&self) -> bool {
        false
    }

    /// Whether it stops processes, wholly and at once, so that a fraction of a second of it can be seen.
    fn is_stall(&self) -> bool {
        false
    }

    /// How long a window has to be to prove it, if that is longer than what its witnesses take in general.
    fn evidence(&self) -> Delay {
        Delay::ZERO
    }

    /// What the lab has to have from its start so that this can be injected and proven.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// Puts it in force until the guard goes.
    fn inject(&self, capabilities: &Capabilities) -> Result<Box<dyn ActiveFault>, LabError>;

    /// The same with this share of its magnitude, for ramps; none for what is there or not.
    fn scaled(&self, _share: f64) -> Option<Box<dyn Fault>> {
        None
    }

    /// What of it nobody judges, in words: said before anyone trusts the proof.
    fn unjudged(&self) -> Vec<String> {
        Vec::new()
    }

    /// What it does to each of its links, if that is all that it does.
    fn impairment(&self) -> Option<Impairment> {
        None
    }

    /// The ordered pairs of hosts whose links it impairs.
    fn links(&self) -> &[(String, String)] {
        &[]
    }

    /// The same on these links alone; none if it is of no links.
    fn on(&self, _links: Vec<(String, String)>) -> Option<Box<dyn Fault>> {
        None
    }

    /// The role of the node that it strikes, if which one that is, is drawn when it is injected.
    fn role(&self) -> Option<Role> {
        None
    }

    /// The same on this node, whoever has its role; none if it follows no role, or there is no such node.
    fn on_node(&self, _node: &str) -> Option<Arc<dyn Fault>> {
        None
    }
}

/// A fault in force. Dropping it heals it.
pub trait ActiveFault: Send {
    /// Since when; up to now while it [is settling](ActiveFault::is_settling).
    fn change(&self) -> Change;

    /// Whether it was asked for, but is not in force in every place yet.
    fn is_settling(&self) -> bool {
        false
    }

    /// What has kept it from coming into force, once it is settling no more; told once.
    fn outcome(&mut self) -> Result<(), LabError> {
        Ok(())
    }

    /// Takes it back.
    fn heal(self: Box<Self>) -> Result<Healing, LabError>;

    /// Whether healing takes a database's time to start: too long for someone who wants the end at once.
    fn takes_long_to_heal(&self) -> bool {
        false
    }

    /// Becomes another of its kind, in the same places, without being healed in between; none where that cannot be.
    fn amend(&mut self, _to: &dyn Fault) -> Result<Option<Change>, LabError> {
        Ok(None)
    }
}

/// What a healing came to.
pub enum Healing {
    /// It is over.
    Done(Change),
    /// It takes its time: a database has to start. The thread ends when it is over.
    UnderWay(std::thread::JoinHandle<Result<Change, LabError>>),
}

impl Healing {
    /// When it was over; waits for that.
    pub(crate) fn wait(self) -> Result<Change, LabError> {
        match self {
            Healing::Done(change) => Ok(change),
            Healing::UnderWay(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
        }
    }
}

/// Another fault of one's own kind, if it is one.
pub(super) fn of_kind<F: Fault>(fault: &dyn Fault) -> Option<&F> {
    (fault as &dyn Any).downcast_ref()
}
