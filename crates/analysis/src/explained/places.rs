//! The places that faults hit, as hosts and pairs of hosts of the plan; and the delays between these.

use std::collections::BTreeSet;

use brownout_record::{Expectation, FaultRecord, Placement, Quantity, Subject};

use super::ways::Path;

/// The hosts by their places: the nodes of the ring, then the load.
pub(super) struct Hosts<'a> {
    names: Vec<&'a str>,
}

impl<'a> Hosts<'a> {
    pub(super) fn new(placement: &'a Placement, load: &'a str) -> Self {
        Hosts { names: placement.ring.iter().map(|node| node.node.as_str()).chain([load]).collect() }
    }

    pub(super) fn load(&self) -> usize {
        self.names.len() - 1
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| *known == name)
    }

    fn pair(&self, subject: &Subject) -> Option<(usize, usize)> {
        match subject {
            Subject::Pair { from, to } => self.place(from).zip(self.place(to)),
            _ => None,
        }
    }
}

/// All that faults ask of the places that they hit, at any of their severities.
pub(super) fn hits<'a>(faults: &'a [&'a FaultRecord]) -> impl Iterator<Item = &'a Expectation> {
    let severities = faults.iter().flat_map(|fault| &fault.severities);
    severities.flat_map(|severity| &severity.expectations).filter(|one| one.hit)
}

/// Where faults hit.
#[derive(Default)]
pub(super) struct Places {
    pairs: BTreeSet<(usize, usize)>,
    /// Nodes of which everything is hit: their process, processors or clock.
    hosts: BTreeSet<usize>,
    /// Nodes whose disk is hit in what a read waits for: reads and metadata of `data`.
    read_disks: BTreeSet<usize>,
    /// The same of a write: writes, fsyncs and metadata of `commitlog`.
    write_disks: BTreeSet<usize>,
}

impl Places {
    pub(super) fn of(hosts: &Hosts<'_>, faults: &[&FaultRecord]) -> Self {
        let mut places = Places::default();
        for one in hits(faults) {
            match &one.subject {
                Subject::Pair { .. } => places.pairs.extend(hosts.pair(&one.subject)),
                Subject::Host { host } => places.hosts.extend(hosts.place(host)),
                Subject::Directory { host, directory } => {
                    let Some(host) = hosts.place(host) else { continue };
                    match (directory.as_str(), Disk::of(one.quantity)) {
                        ("data", Some(Disk::Read | Disk::Metadata)) => places.read_disks.insert(host),
                        ("commitlog", Some(Disk::Write | Disk::Metadata)) => places.write_disks.insert(host),
                        _ => false,
                    };
                }
            }
        }
        places
    }

    /// Whether the way from the load to a coordinator and back, or the coordinator itself, is hit.
    pub(super) fn coordinator(&self, hosts: &Hosts<'_>, coordinator: usize) -> bool {
        let load = hosts.load();
        self.hosts.contains(&coordinator) || [(load, coordinator), (coordinator, load)].iter().any(|way| self.hop(*way))
    }

    /// Whether a path to a replica, or the replica itself, is.
    pub(super) fn path(&self, path: &Path, reads: bool) -> bool {
        let disks = if reads { &self.read_disks } else { &self.write_disks };
        let at = path.replica;
        self.hosts.contains(&at) || disks.contains(&at) || path.hops.iter().any(|hop| self.hop(*hop))
    }

    /// Packets to or from a node that is hit wait there, too.
    fn hop(&self, (from, to): (usize, usize)) -> bool {
        self.pairs.contains(&(from, to)) || self.hosts.contains(&from) || self.hosts.contains(&to)
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
    /// What the topology declares, and what faults add to it.
    pub(super) fn of(placement: &Placement, hosts: &Hosts<'_>, faults: &[&FaultRecord], packet: Packet) -> Self {
        let count = hosts.names.len();
        let mut delays = Delays { count, ns: vec![0.0; count * count] };
        for one in &placement.distances {
            let Some((from, to)) = hosts.place(&one.from).zip(hosts.place(&one.to)) else { continue };
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
        delays
    }

    pub(super) fn hop(&self, (from, to): (usize, usize)) -> f64 {
        self.ns[from * self.count + to]
    }

    pub(super) fn path(&self, path: &Path) -> f64 {
        path.hops.iter().map(|hop| self.hop(*hop)).sum()
    }
}
