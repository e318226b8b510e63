//! How a lab is at this moment: read back from the kernel, the emulator, the disks and the clocks, not remembered.

use std::{
    net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket},
    thread,
    time::Duration,
};

use brownout_base::clock::realtime_ns;
use brownout_clock::ntp::exchange;
use brownout_cluster::NodeState;
use brownout_disk::DiskFault;
use brownout_network::{Host, Impairment};
use brownout_units::{Delay, Share};
use serde::{Deserialize, Serialize};

use super::{
    CheckStatus, Failure,
    lab::{CQL_PORT, Lab},
    layers::ReadBack,
};
use crate::{LabError, faults::DIRECTORIES, hosts::HostPlan, stand::NTP_PORT};

/// A host answers itself within this, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(1);

/// A lab.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Status {
    /// Version of this object.
    pub format: u32,
    /// The lab's name.
    pub name: String,
    /// What runs in it: "Cassandra 5.0.9".
    pub system: String,
    /// When it was started, ms since 1970 UTC.
    pub started_unix_ms: u64,
    /// What its randomness is drawn from.
    pub seed: u64,
    /// Sites and distances, in words.
    pub network: Vec<String>,
    /// The nodes, then the host of the load.
    pub hosts: Vec<HostStatus>,
    /// Every ordered pair.
    pub links: Vec<LinkStatus>,
    /// What chaos does, if it is on.
    pub chaos: Option<String>,
    /// What this lab cannot do.
    pub notes: Vec<String>,
    /// Whether what commands have put in force shows; none: not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checks: Option<Vec<CheckStatus>>,
}

/// A host.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HostStatus {
    /// Its name.
    pub name: String,
    /// `node` or `load`.
    pub role: String,
    /// `UP`, `STARTING` (runs, and answers nobody yet), `PAUSED`, `DOWN`; of the host of the load always `UP`.
    pub state: String,
    /// In the lab.
    pub address: String,
    /// Its site; none if there are no sites.
    pub site: Option<String>,
    /// What is wrong with its links, in words with magnitudes; empty: nothing.
    pub network: Vec<String>,
    /// The groups of the partition that it is in, from 1; empty if there is no partition.
    pub partition: Vec<usize>,
    /// What is wrong with its disks, in words.
    pub disk: Vec<String>,
    /// The share of the processors that it is limited to.
    pub cpu_share: Option<f64>,
    /// Its clock, as its own NTP answers tell it.
    pub clock: Option<ClockStatus>,
}

/// A clock, against the machine's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockStatus {
    /// Ahead of the true time by this (negative: behind), ns.
    pub offset_ns: i64,
    /// The true offset lies within this of it, ns.
    pub error_ns: u64,
    /// Gained in each second, ns: as set, not measured.
    pub drift_ppb: i64,
}

/// An ordered pair of hosts.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LinkStatus {
    /// Who sends.
    pub from: String,
    /// Who receives.
    pub to: String,
    /// What lies between them all the time; none: nothing.
    pub distance: Option<String>,
    /// What is wrong beside that, oldest first.
    pub impairments: Vec<String>,
    /// Nothing passes.
    pub cut: bool,
}

/// How the lab is.
pub(super) fn status(lab: &Lab) -> Result<Status, Failure> {
    let layout = &lab.layout;
    let read = ReadBack::of(lab.stand.handles, layout)?;
    let mut network = read.by_host(&layout.hosts, &lab.ledger());
    let mut groups = read.groups(&layout.hosts);
    let asked: Vec<(String, Option<ClockStatus>)> = thread::scope(|scope| {
        let ask = |plan: &HostPlan| {
            let (name, host) = (plan.name.clone(), lab.stand.network.host(&plan.name).cloned());
            let drift_ppb = lab.stand.handles.clocks.get(&name).map_or(0, |clock| clock.skew().drift_ppb);
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
            address: plan.address.to_string(),
            site: plan.place.as_ref().map(|place| place.site.clone()),
            network: network.remove(name).unwrap_or_default(),
            partition: groups.remove(name).unwrap_or_default(),
            disk: disk(lab, name)?,
            cpu_share: if node { lab.control.cpu_share(name)?.map(Share::fraction) } else { None },
            clock: asked.iter().find(|(asked, _)| asked == name).and_then(|(_, clock)| *clock),
        })
    });
    let hosts = hosts.collect::<Result<Vec<_>, Failure>>()?;
    let text = |layers: &[Impairment]| layers.iter().map(Impairment::to_string).collect::<Vec<_>>();
    let links = read.0.iter().map(|((from, to), layers)| LinkStatus {
        from: from.clone(),
        to: to.clone(),
        distance: (!layers.distance.is_empty()).then(|| text(&layers.distance).join(", ")),
        impairments: text(&layers.added),
        cut: layers.added.iter().any(|layer| layer.cut.is_some()),
    });
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
        notes: lab.no_disk.iter().map(|reason| format!("no slow disks: {reason}")).collect(),
        checks: None,
    })
}

/// Of a node, as the kernel shows it; one that runs and does not listen yet is starting.
pub(super) fn state(lab: &Lab, name: &str) -> Result<String, Failure> {
    let state = lab.control.state(name)?;
    if state != NodeState::Up {
        return Ok(state.to_string());
    }
    let Some(pid) = lab.control.pid(name)? else { return Ok(NodeState::Down.to_string()) };
    // Once a process has listened it goes on to: its kernel answers even when it is busy.
    let listens = lab.has_listened(name, pid) || {
        let host = lab.stand.network.host(name);
        let listens = host.is_some_and(|host| {
            let address = SocketAddr::new(host.address().into(), CQL_PORT);
            host.run(|| TcpStream::connect_timeout(&address, PATIENCE)).is_ok_and(|connected| connected.is_ok())
        });
        if listens {
            lab.note_listening(name, pid);
        }
        listens
    };
    Ok(if listens { "UP" } else { "STARTING" }.to_owned())
}

/// Asked on the host itself, so that nothing of the network comes between.
pub(super) fn clock(host: &Host, drift_ppb: i64) -> Option<ClockStatus> {
    let server = (host.address(), NTP_PORT).into();
    let sample = host.run(|| {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
        exchange(&socket, server, &realtime_ns, PATIENCE).ok()
    });
    let sample = sample.ok()??;
    Some(ClockStatus { offset_ns: sample.offset_ns, error_ns: sample.error_bound_ns(), drift_ppb })
}

/// What each disk of a node says that it does; the same on all of them is told once.
pub(super) fn disk(lab: &Lab, name: &str) -> Result<Vec<String>, LabError> {
    let mut told: Vec<(String, Vec<&str>)> = Vec::new();
    let mut disks = 0;
    for directory in DIRECTORIES {
        let Some(place) = lab.stand.handles.disk(name, directory) else { continue };
        disks += 1;
        for fault in place.control.effective()? {
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
