//! The state of a lab at this moment: read back from the kernel, the emulator, the disks and the clocks, not
//! remembered.

use std::{net::TcpStream, thread, time::Duration};

use brownout_cluster::NodeState;
use brownout_disk::DiskFault;
use brownout_network::{Host, Impairment};
use brownout_units::{Delay, Share};

use super::{
    Failure,
    attached::AttachedHosts,
    lab::Lab,
    link_state::LinkStates,
    objects::{ClockStatus, HostStatus, LinkStatus, Status},
};
use crate::{LabError, hosts::HostPlan, witness::ask_clock};

/// A host answers itself within this, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(1);

/// How the lab is.
pub(super) fn status(lab: &Lab) -> Result<Status, Failure> {
    lab.note_failed_hosts();
    let layout = &lab.layout;
    let read = LinkStates::of(lab.testbed.controls, layout)?;
    let mut network = read.by_host(&layout.hosts, &lab.ledger());
    for host in layout.hosts.iter().filter(|host| lab.failed.contains(&host.name)) {
        network.entry(host.name.clone()).or_default().insert(0, "FAILED".to_owned());
    }
    let mut groups = read.groups(&layout.hosts);
    let asked: Vec<(String, Option<ClockStatus>)> = thread::scope(|scope| {
        let ask = |plan: &HostPlan| {
            let (name, host) = (plan.name.clone(), lab.testbed.network.host(&plan.name).cloned());
            let drift_ppb = lab.testbed.controls.clocks.get(&name).map_or(0, |clock| clock.skew().drift_ppb);
            scope.spawn(move || (name, host.and_then(|host| clock(&host, drift_ppb))))
        };
        let threads: Vec<_> = layout.hosts.iter().map(ask).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    let hosts = layout.hosts.iter().map(|plan| {
        let name = &plan.name;
        let node = lab.is_node(name);
        Ok(HostStatus {
            name: name.clone(),
            role: if node { "node" } else { "load" }.to_owned(),
            state: if node { state(lab, name)? } else { "UP".to_owned() },
            address: plan.service().to_string(),
            site: plan.location.as_ref().map(|location| location.site.clone()),
            network: network.remove(name).unwrap_or_default(),
            partition: groups.remove(name).unwrap_or_default(),
            disk: disk(lab, name)?,
            cpu_share: if node { lab.control.cpu_share(name)?.map(Share::fraction) } else { None },
            clock: asked.iter().find(|(asked, _)| asked == name).and_then(|(_, clock)| *clock),
        })
    });
    let hosts = hosts.collect::<Result<Vec<_>, Failure>>()?;
    let text = |impairments: &[Impairment]| impairments.iter().map(Impairment::to_string).collect::<Vec<_>>();
    let links = read.0.iter().map(|((from, to), link)| LinkStatus {
        from: from.clone(),
        to: to.clone(),
        distance: (!link.distance.is_empty()).then(|| text(&link.distance).join(", ")),
        impairments: text(&link.added),
        cut: link.added.iter().any(|impairment| impairment.cut.is_some()),
    });
    let of_containers = lab.attached.as_ref().map(AttachedHosts::notes).unwrap_or_default();
    let no_disk = lab.no_disk.iter().map(|reason| format!("no slow disks: {reason}"));
    Ok(Status {
        format: 1,
        name: lab.name.clone(),
        system: lab.system.clone(),
        started_unix_ms: lab.started_unix_ms,
        seed: lab.seed,
        network: layout.network_words(),
        hosts,
        links: links.collect(),
        chaos: lab.chaos_words(),
        notes: lab.failed.texts().into_iter().chain(of_containers).chain(no_disk).collect(),
        checks: None,
    })
}

/// Of a node, as the kernel shows it; one that runs and does not listen yet is starting.
pub(super) fn state(lab: &Lab, name: &str) -> Result<String, Failure> {
    let state = lab.node_state(name)?;
    if state != NodeState::Up {
        return Ok(state.to_string());
    }
    let pid = lab.control.pid(name)?;
    if pid.is_none() && lab.knows_processes(name) {
        return Ok(NodeState::Down.to_string());
    }
    // Once a process has listened it goes on to: its kernel answers even when it is busy. Where one of no known database would, nobody
    // knows.
    let listens = !lab.has_database || pid.is_some_and(|pid| lab.has_listened(name, pid)) || {
        let (host, client) = (lab.testbed.network.host(name), lab.control.client(name)?);
        let listens = host.is_some_and(|host| {
            host.run(|| TcpStream::connect_timeout(&client, PATIENCE)).is_ok_and(|connected| connected.is_ok())
        });
        if let Some(pid) = pid.filter(|_| listens) {
            lab.note_listening(name, pid);
        }
        listens
    };
    Ok(if listens { "UP" } else { "STARTING" }.to_owned())
}

/// Asked on the host itself, so that nothing of the network comes between.
pub(super) fn clock(host: &Host, drift_ppb: i64) -> Option<ClockStatus> {
    let address = host.address();
    let sample = host.run(move || ask_clock(address, PATIENCE)).ok()??;
    Some(ClockStatus { offset_ns: sample.offset_ns, error_ns: sample.error_bound_ns(), drift_ppb })
}

/// What each disk of a node says that it does; the same on all of them is told once.
pub(super) fn disk(lab: &Lab, name: &str) -> Result<Vec<String>, LabError> {
    let mut told: Vec<(String, Vec<&str>)> = Vec::new();
    let mut disks = 0;
    for directory in lab.control.kind().disks().iter().copied() {
        let Some(registry) = lab.testbed.controls.disk(name, directory) else { continue };
        disks += 1;
        for fault in registry.control.effective()? {
            let words = disk_words(&fault);
            match told.iter_mut().find(|(known, _)| *known == words) {
                Some((_, directories)) => directories.push(directory),
                None => told.push((words, vec![directory])),
            }
        }
    }
    let all = |directories: &[&str]| directories.len() == disks;
    Ok(told
        .into_iter()
        .map(
            |(words, directories)| {
                if all(&directories) { words } else { format!("{words} on {}", directories.join(", ")) }
            },
        )
        .collect())
}

fn disk_words(fault: &DiskFault) -> String {
    let mut parts = Vec::new();
    if fault.delay != Delay::ZERO {
        let jitter = if fault.jitter == Delay::ZERO { String::new() } else { format!(" ± {}", fault.jitter) };
        parts.push(format!("SLOW {}{jitter}", fault.delay));
    }
    parts.extend(fault.error.map(|error| format!("FAILING {error}")));
    let share = if fault.share == Share::ALL { String::new() } else { format!("{} of ", fault.share) };
    format!("{} ({share}{})", parts.join(" + "), fault.operations)
}
