//! From an entry to its fault: the only way in which a fault is made, for a file as for a command.

use super::{
    clock, corrupt, cpu, disk, duplicate, ends, fault::Fault, flaky, link, mtu, partition, pause, rate, reorder,
    role_fault, slow,
};
use crate::{
    experiment::{Complaint, FaultEntry},
    hosts::Hosts,
};

/// The fault that an entry of a file, or a command, asks for. `seed` is for what is left to chance.
pub fn from_entry(entry: &FaultEntry, hosts: &Hosts, seed: u64) -> Result<Box<dyn Fault>, Complaint> {
    match role_fault::fault(entry, hosts, |entry| on_hosts(entry, hosts, seed))? {
        Some(fault) => Ok(Box::new(fault)),
        None => on_hosts(entry, hosts, seed),
    }
}

/// The fault of an entry that names hosts.
fn on_hosts(entry: &FaultEntry, hosts: &Hosts, seed: u64) -> Result<Box<dyn Fault>, Complaint> {
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
        (None, _) if entry.chaos.is_some() => Err(Complaint::at("chaos", "chaos cannot be nested in another fault")),
        (None, _) => {
            Err(Complaint::at("", "a fault is one word with its values, such as slow: { host: n2, delay: 100ms }"))
        }
        (Some(_), Some(_)) => {
            Err(Complaint::at("", "this is more than one fault; write each as an entry of its own, they add up"))
        }
    }
}
