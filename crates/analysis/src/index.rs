//! The evidence of a trial, indexed by subject, so that each row is searched for once and not once for each fault and
//! pair.

use std::collections::HashMap;

use brownout_record::{CpuRow, HostCounterRow, ProbeRow, Subject, WitnessRow};

use crate::TrialEvidence;

/// Probes by sender and receiver.
type ByPair<'a> = HashMap<&'a str, HashMap<&'a str, Vec<&'a ProbeRow>>>;

/// Rows by subject, each list in order of time.
pub(crate) struct Index<'a> {
    probes: ByPair<'a>,
    overlay_probes: ByPair<'a>,
    kernel: HashMap<&'a str, Vec<&'a HostCounterRow>>,
    /// By node; with what all cores could have done in the same reading, ns.
    cpu: HashMap<&'a str, Vec<(&'a CpuRow, u64)>>,
    witnesses: HashMap<&'a Subject, Vec<&'a WitnessRow>>,
}

impl<'a> Index<'a> {
    pub(crate) fn of(evidence: &'a TrialEvidence) -> Self {
        let mut index = Index {
            probes: by_pair(&evidence.probes),
            overlay_probes: by_pair(&evidence.overlay_probes),
            kernel: HashMap::new(),
            cpu: HashMap::new(),
            witnesses: HashMap::new(),
        };
        for row in &evidence.host_counters {
            index.kernel.entry(&row.host).or_default().push(row);
        }
        let cores = evidence.cpu.iter().filter(|row| row.subject == "cores");
        let cores: HashMap<u64, u64> = cores.map(|row| (row.starts_ns, row.busy_ns)).collect();
        for row in &evidence.cpu {
            if let (Some(node), Some(cores)) = (row.subject.strip_prefix("node:"), cores.get(&row.starts_ns)) {
                index.cpu.entry(node).or_default().push((row, *cores));
            }
        }
        for row in &evidence.witnesses {
            index.witnesses.entry(&row.subject).or_default().push(row);
        }
        index
    }

    pub(crate) fn probes<'b>(&'b self, from: &str, to: &str) -> &'b [&'a ProbeRow] {
        self.probes.get(from).and_then(|of| of.get(to)).map_or(&[], Vec::as_slice)
    }

    /// Those that went through the overlay.
    pub(crate) fn overlay_probes<'b>(&'b self, from: &str, to: &str) -> &'b [&'a ProbeRow] {
        self.overlay_probes.get(from).and_then(|of| of.get(to)).map_or(&[], Vec::as_slice)
    }

    /// Those that went the way that the packets of databases and loads go: through the overlay, if there is one.
    pub(crate) fn service_probes<'b>(&'b self, from: &str, to: &str) -> &'b [&'a ProbeRow] {
        if self.overlay_probes.is_empty() { self.probes(from, to) } else { self.overlay_probes(from, to) }
    }

    pub(crate) fn kernel<'b>(&'b self, host: &str) -> &'b [&'a HostCounterRow] {
        self.kernel.get(host).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn cpu<'b>(&'b self, node: &str) -> &'b [(&'a CpuRow, u64)] {
        self.cpu.get(node).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn witnesses<'b>(&'b self, subject: &Subject) -> &'b [&'a WitnessRow] {
        self.witnesses.get(subject).map_or(&[], Vec::as_slice)
    }
}

fn by_pair(rows: &[ProbeRow]) -> ByPair<'_> {
    let mut pairs = ByPair::new();
    for row in rows {
        pairs.entry(&row.from).or_default().entry(&row.to).or_default().push(row);
    }
    pairs
}
