//! What goes wrong. One file per fault: how it is injected (a guard heals it), what must then be seen where it hits and
//! where it must not, and how it is told to people. docs/adding-a-fault.md shows how a new one is made.

mod chaos;
mod clock;
mod corrupt;
mod cpu;
mod disk;
mod duplicate;
mod ends;
pub(crate) mod expected;
mod flaky;
mod link;
mod links;
mod mtu;
mod partition;
mod pause;
mod provable;
mod rate;
pub mod reach;
mod reorder;
pub mod sabotage;
mod slow;

use std::{any::Any, fmt};

use brownout_base::Change;
use brownout_network::Impairment;
use brownout_record::Expectation;
use brownout_units::Delay;

use crate::{
    LabError,
    experiment::{Complaint, FaultEntry, Names, one_of},
    hosts::Hosts,
};
pub use chaos::{Drawn, draw, kinds};
pub use disk::DIRECTORIES;
pub use links::LinkFault;
pub use reach::Reach;
pub(crate) use reach::together;

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

    /// How long it may take to come into force: a database that ends in good order takes seconds. The proof looks at what
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

    /// Whether it makes processes stand still, wholly and at once, so that a fraction of a second of it can be seen.
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
    fn inject(&self, reach: &Reach) -> Result<Box<dyn InForce>, LabError>;

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
}

/// A fault in force. Dropping it heals it.
pub trait InForce: Send {
    /// Since when; up to now while it [is settling](InForce::is_settling).
    fn change(&self) -> Change;

    /// Whether it was asked for, but is not in force in every place yet.
    fn is_settling(&self) -> bool {
        false
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

/// What faults need of the lab from its start, in every trial, and in its baseline too.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// Nodes whose directories lie on a disk that can be slow.
    pub disks: Vec<String>,
    /// What those disks do is counted.
    pub disk_counters: bool,
    /// Nodes whose clock can be wrong.
    pub clocks: Vec<String>,
    /// The clocks are watched.
    pub clock_witness: bool,
    /// The nodes' processes and answers are watched.
    pub process_witness: bool,
    /// The shortest time for which a process is to stand still: they are watched closely enough for that.
    pub shortest_stall: Option<Delay>,
    /// Bursts measure the rate of these links, and of as many that are spared.
    pub trains: Vec<TrainNeed>,
    /// The largest packets of these links (from, to, the size that is asked for) are found out, and of others.
    pub largest_packets: Vec<(String, String, u16)>,
}

/// A link whose rate bursts measure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrainNeed {
    /// The sending host.
    pub from: String,
    /// The receiving host.
    pub to: String,
    /// The rate that is asked for.
    pub expected: brownout_units::BitRate,
    /// Packets of a burst that fits into the queue.
    pub packets: u32,
}

impl Needs {
    /// What both need.
    pub fn and(mut self, other: Needs) -> Needs {
        fn join<T: PartialEq>(all: &mut Vec<T>, more: Vec<T>) {
            more.into_iter().for_each(|one| {
                if !all.contains(&one) {
                    all.push(one);
                }
            });
        }
        join(&mut self.disks, other.disks);
        join(&mut self.clocks, other.clocks);
        join(&mut self.trains, other.trains);
        join(&mut self.largest_packets, other.largest_packets);
        self.disk_counters |= other.disk_counters;
        self.clock_witness |= other.clock_witness;
        self.process_witness |= other.process_witness;
        self.shortest_stall = [self.shortest_stall, other.shortest_stall].into_iter().flatten().min();
        self
    }
}

/// The fault that an entry of a file, or a command, asks for. `seed` is for what is left to chance.
pub fn from_entry(entry: &FaultEntry, hosts: &Hosts, seed: u64) -> Result<Box<dyn Fault>, Complaint> {
    fn made<F: Fault + 'static>(kind: &str, fault: Result<F, Complaint>) -> Result<Box<dyn Fault>, Complaint> {
        fault.map(|fault| Box::new(fault) as Box<dyn Fault>).map_err(|complaint| {
            let dot = if complaint.key.is_empty() { "" } else { "." };
            Complaint { key: format!("{kind}{dot}{}", complaint.key).into(), ..complaint }
        })
    }
    let mut faults = [
        entry.slow.as_ref().map(|slow| made("slow", slow::fault(slow, hosts))),
        entry.flaky.as_ref().map(|flaky| made("flaky", flaky::fault(flaky, hosts))),
        entry.duplicate.as_ref().map(|duplicate| made("duplicate", duplicate::fault(duplicate, hosts))),
        entry.corrupt.as_ref().map(|corrupt| made("corrupt", corrupt::fault(corrupt, hosts))),
        entry.reorder.as_ref().map(|reorder| made("reorder", reorder::fault(reorder, hosts))),
        entry.rate.as_ref().map(|rate| made("rate", rate::fault(rate, hosts))),
        entry.mtu.as_ref().map(|mtu| made("mtu", mtu::fault(mtu, hosts))),
        entry.link.as_ref().map(|link| made("link", link::fault(link, hosts))),
        entry.partition.as_ref().map(|partition| made("partition", partition::fault(partition, hosts, seed))),
        entry.pause.as_ref().map(|pause| made("pause", pause::Pause::new(pause, hosts))),
        entry.kill.as_ref().map(|kill| made("kill", ends::Ends::new(&kill.host, hosts, ends::How::Kill(kill.signal)))),
        entry.stop.as_ref().map(|stop| made("stop", ends::Ends::new(&stop.host, hosts, ends::How::Stop))),
        entry.cpu.as_ref().map(|cpu| made("cpu", cpu::Cpu::new(cpu, hosts))),
        entry.disk.as_ref().map(|disk| made("disk", disk::Disk::new(disk, hosts))),
        entry.clock.as_ref().map(|clock| made("clock", clock::Clock::new(clock, hosts))),
    ]
    .into_iter()
    .flatten();
    match (faults.next(), faults.next()) {
        (Some(fault), None) => fault,
        (None, _) if entry.chaos.is_some() => {
            Err(Complaint::at("chaos", "chaos is many faults, and cannot be one of another"))
        }
        (None, _) => {
            Err(Complaint::at("", "a fault is one word with its values, such as slow: { host: n2, delay: 100ms }"))
        }
        (Some(_), Some(_)) => {
            Err(Complaint::at("", "this is more than one fault; write each as an entry of its own, they add up"))
        }
    }
}

/// Another fault of one's own kind, if it is one.
fn of_kind<F: Fault>(fault: &dyn Fault) -> Option<&F> {
    (fault as &dyn Any).downcast_ref()
}

/// The hosts that these names mean: a site means all of its hosts.
fn known(names: &Names, hosts: &Hosts) -> Result<Vec<String>, Complaint> {
    hosts.meant("host", names)
}

/// The nodes that these names mean: the host of the load has no database.
fn known_nodes(names: &Names, hosts: &Hosts) -> Result<Vec<String>, Complaint> {
    let sites = hosts.sites();
    let mut found: Vec<String> = Vec::new();
    for name in names.iter() {
        let meant: Vec<String> = match sites.get(name) {
            Some(nodes) => nodes.iter().map(|node| (*node).to_owned()).collect(),
            None => {
                let known = hosts.nodes().map(|host| host.name.as_str());
                among(&Names(vec![name.to_owned()]), "host", "the nodes are", known)?
            }
        };
        found.extend(meant.into_iter().filter(|node| !found.contains(node)).collect::<Vec<_>>());
    }
    Ok(found)
}

fn among<'a>(
    names: &Names,
    key: &'static str,
    intro: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> Result<Vec<String>, Complaint> {
    let mut found: Vec<String> = Vec::new();
    for name in names.iter() {
        if !known.clone().any(|known| known == name) {
            let names = one_of(intro, known, name);
            let what = match key {
                "directories" => "directory",
                "operations" => "operation",
                _ => "host",
            };
            return Err(Complaint::at(key, format!("unknown {what} '{name}'; {names}")));
        }
        if !found.iter().any(|found| found == name) {
            found.push(name.to_owned());
        }
    }
    Ok(found)
}

/// "n1", "n1 and n2", "n1, n2 and n3".
fn join(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// "s" for one host: "n2 sends", "n2 and n3 send".
fn s(names: &[String]) -> &'static str {
    if names.len() == 1 { "s" } else { "" }
}
