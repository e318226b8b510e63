//! The subjects that faults hit, as hosts and pairs of hosts of the plan; and the delays between these.

use std::collections::BTreeSet;

use brownout_record::{Expectation, FaultRecord, Placement, Quantity, Subject};

use super::paths::Path;
use crate::Routes;

/// The hosts by their indices: the nodes of the ring, then the load.
pub(super) struct Hosts<'a> {
    names: Vec<&'a str>,
    /// The links that the way of each ordered pair takes: an overlay may take it over other hosts.
    routes: Vec<Vec<(usize, usize)>>,
}

impl<'a> Hosts<'a> {
    pub(super) fn new(placement: &'a Placement, load: &'a str, routes: &Routes) -> Self {
        let names: Vec<&'a str> = placement.ring.iter().map(|node| node.node.as_str()).chain([load]).collect();
        let index = |name: &str| names.iter().position(|known| *known == name);
        let mut all = Vec::with_capacity(names.len() * names.len());
        for from in &names {
            for to in &names {
                let links = if from == to { Vec::new() } else { routes.of(from, to) };
                all.push(links.iter().filter_map(|(from, to)| index(from).zip(index(to))).collect());
            }
        }
        Hosts { names, routes: all }
    }

    fn route(&self, (from, to): (usize, usize)) -> &[(usize, usize)] {
        &self.routes[from * self.names.len() + to]
    }

    pub(super) fn load(&self) -> usize {
        self.names.len() - 1
    }

    fn index(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| *known == name)
    }

    fn pair(&self, subject: &Subject) -> Option<(usize, usize)> {
        match subject {
            Subject::Pair { from, to } => self.index(from).zip(self.index(to)),
            _ => None,
        }
    }
}

/// All that faults ask of the subjects that they hit, at any of their severities.
pub(super) fn hits<'a>(faults: &'a [&'a FaultRecord]) -> impl Iterator<Item = &'a Expectation> {
    let severities = faults.iter().flat_map(|fault| &fault.severities);
    severities.flat_map(|severity| &severity.expectations).filter(|one| one.hit)
}

/// What faults hit.
#[derive(Default)]
pub(super) struct HitSubjects {
    pairs: BTreeSet<(usize, usize)>,
    /// Nodes of which everything is hit: their process, processors or clock.
    hosts: BTreeSet<usize>,
    /// Nodes whose disk is hit in what a read waits for: reads and metadata of `data`.
    read_disks: BTreeSet<usize>,
    /// The same of a write: writes, fsyncs and metadata of `commitlog` (etcd: of `wal`).
    write_disks: BTreeSet<usize>,
    /// Members of etcd of which a disk is hit that anything may have to wait for: that of their store, to which they write now and
    /// then, and from which they cannot read while they do.
    store_disks: BTreeSet<usize>,
}

/// Whose disks an operation waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Disks {
    /// Of replicas that read.
    Read,
    /// Of replicas that write.
    Write,
    /// For none, but those asked may be busy with writing.
    Round,
    /// The same, of its own store alone.
    Own,
}

impl HitSubjects {
    /// `is_led`: a leader decides, and directories are those of etcd.
    pub(super) fn of(hosts: &Hosts<'_>, faults: &[&FaultRecord], is_led: bool) -> Self {
        let mut hit = HitSubjects::default();
        for one in hits(faults) {
            match &one.subject {
                Subject::Pair { .. } => hit.pairs.extend(hosts.pair(&one.subject)),
                // What is seen above follows from what is done below.
                Subject::Overlay { .. } => {}
                Subject::Host { host } => hit.hosts.extend(hosts.index(host)),
                Subject::Directory { host, directory } => {
                    let Some(host) = hosts.index(host) else { continue };
                    match (directory.as_str(), Disk::of(one.quantity)) {
                        ("data", Some(_)) if is_led => hit.store_disks.insert(host),
                        ("data", Some(Disk::Read | Disk::Metadata)) => hit.read_disks.insert(host),
                        ("commitlog" | "wal", Some(Disk::Write | Disk::Metadata)) => hit.write_disks.insert(host),
                        _ => false,
                    };
                }
            }
        }
        hit
    }

    /// Whether the way from the load to a coordinator and back, or the coordinator itself, is hit.
    pub(super) fn coordinator(&self, hosts: &Hosts<'_>, coordinator: usize) -> bool {
        let load = hosts.load();
        let ways = [(load, coordinator), (coordinator, load)];
        self.hosts.contains(&coordinator) || ways.iter().any(|way| self.hop(hosts, *way))
    }

    /// Whether a path to a replica, or the replica itself, is; `perhaps`: or may be, as far as the operation is concerned.
    pub(super) fn path(&self, hosts: &Hosts<'_>, path: &Path, disks: Disks, perhaps: bool) -> bool {
        let at = path.replica;
        let is_hit = match disks {
            Disks::Read => self.read_disks.contains(&at),
            Disks::Write => self.write_disks.contains(&at),
            Disks::Round => perhaps && self.write_disks.contains(&at),
            Disks::Own => false,
        };
        let is_busy = perhaps && self.store_disks.contains(&at);
        self.hosts.contains(&at) || is_hit || is_busy || path.hops.iter().any(|hop| self.hop(hosts, *hop))
    }

    /// Packets to or from a node that is hit wait there, too.
    fn hop(&self, hosts: &Hosts<'_>, (from, to): (usize, usize)) -> bool {
        let is_hit = |link: &(usize, usize)| self.pairs.contains(link);
        hosts.route((from, to)).iter().any(is_hit) || self.hosts.contains(&from) || self.hosts.contains(&to)
    }
}

enum Disk {
    Read,
    Write,
    Metadata,
}

impl Disk {
    fn of(quantity: Quantity) -> Option<Disk> {
        match quantity {
            Quantity::ReadTime | Quantity::ReadErrors | Quantity::ReadDelayed => Some(Disk::Read),
            Quantity::WriteTime
            | Quantity::WriteErrors
            | Quantity::WriteDelayed
            | Quantity::SyncTime
            | Quantity::SyncErrors
            | Quantity::SyncDelayed => Some(Disk::Write),
            Quantity::MetadataTime | Quantity::MetadataErrors | Quantity::MetadataDelayed => Some(Disk::Metadata),
            _ => None,
        }
    }
}

/// Which delay of a packet counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packet {
    /// The median one.
    Usual,
    /// One that is quicker than nearly all: faults with jitter count by as much less as their delays spread, with reordering not at
    /// all.
    Quick,
    /// The same, less what a fault may miss and still be proven: no operation can have less.
    Quickest,
}

/// One-way delays between hosts, ns.
pub(super) struct Delays {
    count: usize,
    ns: Vec<f64>,
}

impl Delays {
    /// What the topology declares, and what faults add to it, on all links that a way takes.
    pub(super) fn of(placement: &Placement, hosts: &Hosts<'_>, faults: &[&FaultRecord], packet: Packet) -> Self {
        let count = hosts.names.len();
        let mut delays = Delays { count, ns: vec![0.0; count * count] };
        for one in &placement.distances {
            let Some((from, to)) = hosts.index(&one.from).zip(hosts.index(&one.to)) else { continue };
            let declared = if packet == Packet::Usual { one.delay_ns } else { one.least_ns };
            delays.ns[from * count + to] += declared as f64;
        }
        for fault in faults {
            let all: Vec<&Expectation> = hits(std::slice::from_ref(fault)).collect();
            let of = |quantity: Quantity, subject: &Subject| {
                all.iter().find(|one| one.quantity == quantity && one.subject == *subject).map(|one| one.asked)
            };
            for one in all.iter().filter(|one| one.quantity == Quantity::OneWayDelay) {
                let Some((from, to)) = hosts.pair(&one.subject) else { continue };
                let spread = of(Quantity::DelaySpread, &one.subject).unwrap_or(0.0);
                let skipped = of(Quantity::Reordered, &one.subject).is_some();
                delays.ns[from * count + to] += match packet {
                    Packet::Usual => one.asked,
                    Packet::Quick | Packet::Quickest if skipped => 0.0,
                    Packet::Quick => (one.asked - spread).max(0.0),
                    Packet::Quickest => (one.asked - 2.0 * spread - 2.0 * one.tolerance).max(0.0),
                };
            }
        }
        let ends = (0..count).flat_map(|from| (0..count).map(move |to| (from, to)));
        let along = |ends: (usize, usize)| hosts.route(ends).iter().map(|link| delays.hop(*link)).sum::<f64>();
        Delays { count, ns: ends.map(along).collect() }
    }

    pub(super) fn hop(&self, (from, to): (usize, usize)) -> f64 {
        self.ns[from * self.count + to]
    }

    pub(super) fn path(&self, path: &Path) -> f64 {
        path.hops.iter().map(|hop| self.hop(*hop)).sum()
    }
}
