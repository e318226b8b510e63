//! `disk`: a node's disk is slow, or fails.

use std::{sync::Arc, thread, time::Duration};

use brownout_analysis::stats::samples_to_tell;
use brownout_base::Change;
use brownout_cluster::NodeState;
use brownout_disk::{DiskErrno, DiskFault, Operation};
use brownout_record::{Expectation, Quantity, Subject};
use brownout_units::{Delay, Share};

use super::{
    capabilities::{Applied, Capabilities, ControlNodes, together},
    ends::{STARTS_WITHIN, restart},
    fault::{ActiveFault, Fault, Healing, of_kind},
    names::{among, join, known_nodes},
    needs::Needs,
};
use crate::{
    LabError,
    experiment::{Complaint, DiskErrorChoice, DiskFaultEntry, Names},
    hosts::Hosts,
};

/// Between two rounds of one operation each, and between two readings of the disk's counters.
pub const LOOK_EVERY: Duration = Duration::from_millis(100);
const OPERATIONS: [&str; 4] = ["read", "write", "sync", "metadata"];
/// Half of the least tolerance: what a real disk and a busy machine add to a median.
const NOISE: Delay = Delay::from_ms(2);
/// Less cannot be distinguished from what disks do by themselves.
const LEAST_DELAY: Delay = Delay::from_ms(2);
/// If fewer operations take longer, chance may keep the median of a short phase among those that do not.
const MEDIAN_SHARE: f64 = 0.8;
/// Of the jitter: the median of 50 operations lies within this, but for one case in 2,000.
const JITTER_TOLERANCE: f64 = 0.5;
/// Of a share.
const SHARE_TOLERANCE: f64 = 0.2;
/// A node whose disk works again and who does not answer by then has given itself up.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);
/// Looks at each operation that tell of its time.
const LOOKS: u64 = 12;

/// Operations in some directories of some nodes take longer, or fail.
#[derive(Debug, Clone)]
pub struct Disk {
    nodes: Vec<String>,
    directories: Vec<String>,
    operations: Vec<Operation>,
    fault: DiskFault,
    /// A node that has such disks, too, and is spared; none if all are hit.
    spared: Option<String>,
}

/// What is seen of a kind of operation: how long it takes, whether it fails, whether the fault made it wait.
fn seen(operation: Operation) -> [Quantity; 3] {
    match operation {
        Operation::Read => [Quantity::ReadTime, Quantity::ReadErrors, Quantity::ReadDelayed],
        Operation::Write => [Quantity::WriteTime, Quantity::WriteErrors, Quantity::WriteDelayed],
        Operation::Sync => [Quantity::SyncTime, Quantity::SyncErrors, Quantity::SyncDelayed],
        Operation::Metadata => [Quantity::MetadataTime, Quantity::MetadataErrors, Quantity::MetadataDelayed],
    }
}

impl Disk {
    pub(super) fn new(entry: &DiskFaultEntry, hosts: &Hosts) -> Result<Disk, Complaint> {
        let nodes = known_nodes(&entry.host, hosts)?;
        let all = |words: &[&str]| Names(words.iter().map(|word| (*word).to_owned()).collect());
        let known = hosts.database().disks();
        let directories = entry.directories.clone().unwrap_or_else(|| all(known));
        let directories = among(&directories, "directories", "the directories are", known.iter().copied())?;
        let operations = entry.operations.clone().unwrap_or_else(|| all(&["sync"]));
        let operations = among(&operations, "operations", "the operations are", OPERATIONS.into_iter())?;
        if entry.delay == Delay::ZERO && entry.error.is_none() {
            let message = "without a delay or an error this fault does nothing; write delay: 20ms or error: io";
            return Err(Complaint::at("", message));
        }
        if entry.delay != Delay::ZERO && !(LEAST_DELAY..=Delay::from_secs(60)).contains(&entry.delay) {
            let message =
                format!("{} is outside of what can be injected and proven; write {LEAST_DELAY} to 60s", entry.delay);
            return Err(Complaint::at("delay", message));
        }
        if entry.jitter > entry.delay {
            let message = format!(
                "{} exceeds the delay of {}: some operations would have to end early",
                entry.jitter, entry.delay
            );
            return Err(Complaint::at("jitter", message));
        }
        if entry.share.fraction() < 0.01 {
            return Err(Complaint::at(
                "share",
                format!("{} of the operations is too little to be proven; write at least 1%", entry.share),
            ));
        }
        let operations: Vec<Operation> = operations.iter().filter_map(|word| word.parse().ok()).collect();
        let fault = DiskFault {
            operations: operations.iter().copied().collect(),
            delay: entry.delay,
            jitter: entry.jitter,
            share: entry.share,
            error: entry.error.map(|error| match error {
                DiskErrorChoice::Io => DiskErrno::Io,
                DiskErrorChoice::NoSpace => DiskErrno::NoSpace,
                DiskErrorChoice::ReadOnly => DiskErrno::ReadOnly,
            }),
        };
        let spared = hosts.nodes().map(|node| node.name.clone()).find(|node| !nodes.contains(node));
        let disk = Disk { nodes, directories, operations, fault, spared };
        if let (Some(error), Some(never)) = (fault.error, disk.operations.iter().find(|one| !disk.fails(**one))) {
            let message = format!("a {never} never fails with {error}; leave it out, or write error: io");
            return Err(Complaint::at("operations", message));
        }
        Ok(disk)
    }

    /// Whether operations of this kind fail, if they are hit: one that only reads works on a full disk, too.
    fn fails(&self, operation: Operation) -> bool {
        match self.fault.error {
            None => false,
            Some(DiskErrno::Io) => true,
            Some(DiskErrno::NoSpace | DiskErrno::ReadOnly) => operation != Operation::Read,
        }
    }

    /// What an operation shows that is hit: how much, and how far from it is still right.
    fn shown(&self, operation: Operation) -> Vec<(Quantity, f64, f64)> {
        let DiskFault { delay, jitter, share, .. } = self.fault;
        let [time, errors, delayed] = seen(operation);
        let (share, fails) = (share.fraction(), self.fails(operation));
        let of_share = (share * SHARE_TOLERANCE).max(0.01 / 2.0);
        let mut all = Vec::new();
        // One that fails takes a time, but not that of an operation that did its work.
        if delay != Delay::ZERO && !fails && share >= MEDIAN_SHARE {
            let (delay, jitter) = (delay.ns() as f64, jitter.ns() as f64);
            // The operations that are not hit are the quickest: of the others, the median of all lies below the middle.
            let of_hit = (0.5 - (1.0 - share)) / share;
            let median = delay + jitter * (2.0 * of_hit - 1.0);
            let tolerance = (delay * 0.05 + jitter * JITTER_TOLERANCE).max(NOISE.ns() as f64).min(median / 2.0);
            all.push((time, median, tolerance));
        }
        // What a median does not show, the filesystem's own count does.
        if delay != Delay::ZERO && (fails || share < 1.0) {
            all.push((delayed, share, of_share));
        }
        if fails {
            all.push((errors, share, of_share));
        }
        all
    }
}

impl Fault for Disk {
    fn kind(&self) -> &'static str {
        "disk"
    }

    fn subject(&self) -> String {
        join(&self.nodes)
    }

    fn text(&self) -> String {
        let DiskFault { delay, jitter, share, error, .. } = self.fault;
        let mut parts = Vec::new();
        if delay != Delay::ZERO {
            let jitter = if jitter == Delay::ZERO { String::new() } else { format!(" ± {jitter}") };
            parts.push(format!("take {delay}{jitter} longer"));
        }
        parts.extend(error.map(|error| format!("fail with {error}")));
        let share = if share == Share::ALL { String::new() } else { format!("{share} of the ") };
        let words: Vec<String> = self.operations.iter().map(Operation::to_string).collect();
        let (operations, directories) = (join(&words), join(&self.directories));
        format!("{share}{operations} operations in {directories} of {} {}", join(&self.nodes), parts.join(" and "))
    }

    fn effect(&self) -> String {
        format!("only the disk of {} is affected; network RTTs do not change", join(&self.nodes))
    }

    fn expectations(&self, hosts: &Hosts) -> Vec<Expectation> {
        let watched = |name: &String| self.nodes.contains(name) || self.spared.as_ref() == Some(name);
        let mut all = Vec::new();
        for operation in &self.operations {
            for (quantity, asked, tolerance) in self.shown(*operation) {
                for node in hosts.nodes().filter(|node| watched(&node.name)) {
                    for directory in hosts.database().disks() {
                        let hit =
                            self.nodes.contains(&node.name) && self.directories.iter().any(|hit| hit == directory);
                        let subject = Subject::directory(node.name.clone(), *directory);
                        let asked = if hit { asked } else { 0.0 };
                        all.push(Expectation { subject, quantity, hit, asked, tolerance, burst: None });
                    }
                }
            }
        }
        all
    }

    fn unsettled(&self) -> Delay {
        Delay::from_ns(self.fault.delay.ns() + self.fault.jitter.ns() + brownout_analysis::SETTLE_NS)
    }

    fn restarts(&self) -> bool {
        self.fault.error.is_some()
    }

    fn heals_within(&self) -> Delay {
        // A database that cannot use its disk gives itself up, and has to be started again.
        if self.fault.error.is_some() { STARTS_WITHIN } else { Delay::ZERO }
    }

    fn evidence(&self) -> Delay {
        let DiskFault { delay, share, .. } = self.fault;
        // The probe does one thing after the other, and a write before each sync.
        let waits = |operation: &Operation| self.fault.operations.contains(*operation);
        let waits = Operation::ALL.iter().filter(|one| waits(one)).count() + usize::from(waits(&Operation::Write));
        let round = LOOK_EVERY.as_nanos() as f64 + delay.ns() as f64 * share.fraction() * waits as f64;
        let share = share.fraction();
        let looks = if share < 1.0 { samples_to_tell(share, share * SHARE_TOLERANCE).max(LOOKS) } else { LOOKS };
        // Nobody plans more exactly than to the second.
        Delay::from_secs((round * looks as f64 / 1e9).ceil() as u64)
    }

    fn needs(&self) -> Needs {
        let disks = self.nodes.iter().chain(&self.spared).cloned().collect();
        let delayed = |operation: &Operation| {
            let delayed = seen(*operation)[2];
            self.shown(*operation).iter().any(|(quantity, ..)| *quantity == delayed)
        };
        Needs { disks, disk_counters: self.operations.iter().any(delayed), ..Needs::default() }
    }

    fn inject(&self, capabilities: &Capabilities) -> Result<Box<dyn ActiveFault>, LabError> {
        let mut guards = Vec::new();
        for node in &self.nodes {
            for directory in &self.directories {
                guards.push(capabilities.disks.impair(node, directory, &self.fault)?);
            }
        }
        let may_give_up = self.fault.error.is_some();
        Ok(Box::new(ImpairedDisks { guards, fault: self.clone(), nodes: Arc::clone(&capabilities.nodes), may_give_up }))
    }

    fn scaled(&self, share: f64) -> Option<Box<dyn Fault>> {
        // Whether an operation fails cannot be more or less; how long it takes can.
        let of = |whole: Delay| Delay::from_ns((whole.ns() as f64 * share).round() as u64);
        let fault = DiskFault { delay: of(self.fault.delay), jitter: of(self.fault.jitter), ..self.fault };
        (fault.delay >= LEAST_DELAY && self.fault.error.is_none())
            .then(|| Box::new(Disk { fault, ..self.clone() }) as Box<dyn Fault>)
    }
}

struct ImpairedDisks {
    guards: Vec<Box<dyn Applied<DiskFault>>>,
    fault: Disk,
    nodes: Arc<dyn ControlNodes>,
    /// A disk has failed: its node may have given itself up.
    may_give_up: bool,
}

impl ActiveFault for ImpairedDisks {
    fn change(&self) -> Change {
        together(self.guards.iter().map(|guard| guard.change()))
    }

    fn amend(&mut self, to: &dyn Fault) -> Result<Option<Change>, LabError> {
        let same = |to: &&Disk| to.nodes == self.fault.nodes && to.directories == self.fault.directories;
        let Some(to) = of_kind::<Disk>(to).filter(same) else { return Ok(None) };
        self.may_give_up |= to.fault.error.is_some();
        let amended = self.guards.iter_mut().map(|guard| guard.amend(&to.fault));
        Ok(amended.collect::<Result<Option<Vec<_>>, _>>()?.map(together))
    }

    fn takes_long_to_heal(&self) -> bool {
        self.may_give_up
    }

    fn heal(self: Box<Self>) -> Result<Healing, LabError> {
        // A disk that has ended must not keep the others from healing.
        let healed: Vec<_> = self.guards.into_iter().map(Applied::heal).collect();
        let healed = together(healed.into_iter().collect::<Result<Vec<_>, _>>()?);
        if !self.may_give_up {
            return Ok(Healing::Done(healed));
        }
        let (control, nodes) = (self.nodes, self.fault.nodes);
        let failed = |source| LabError::Ground { doing: "start a thread", source };
        let back = move || Ok(together([Some(healed), revive(&*control, &nodes)?].into_iter().flatten()));
        thread::Builder::new().name("revive".to_owned()).spawn(back).map(Healing::UnderWay).map_err(failed)
    }
}

/// Starts those nodes again that do not answer: a Cassandra whose disk failed goes on living, but closes its doors for good
/// (`disk_failure_policy: stop`, as it is shipped); an etcd server ends itself.
fn revive(control: &dyn ControlNodes, nodes: &[String]) -> Result<Option<Change>, LabError> {
    let silent = |node: &&String| control.wait_answers(node, ANSWERS_WITHIN).is_err();
    let silent: Vec<String> = nodes.iter().filter(silent).cloned().collect();
    if silent.is_empty() {
        return Ok(None);
    }
    for node in &silent {
        // One that waits for a disk that has failed it does not end cleanly: it was seen to take more than 20 s.
        if control.state(node)? != NodeState::Down {
            control.kill(node, libc::SIGKILL)?;
        }
    }
    restart(control, &silent).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(body: &str) -> Result<Disk, Complaint> {
        Disk::new(&serde_json::from_str(&format!(r#"{{"host":"n2",{body}}}"#)).unwrap(), &Hosts::new(3))
    }

    /// What a directory that is hit has to show.
    fn shown(body: &str) -> Vec<(Quantity, f64)> {
        let all = fault(body).unwrap().expectations(&Hosts::new(3));
        let data = all.iter().filter(|one| one.hit && one.subject == Subject::directory("n2", "data"));
        data.map(|one| (one.quantity, (one.asked * 1e3).round() / 1e3)).collect()
    }

    #[test]
    fn every_disk_fault_has_something_to_show() {
        for (body, expected) in [
            (r#""delay":"20ms""#, vec![(Quantity::SyncTime, 20e6)]),
            (r#""delay":"20ms","share":"30%""#, vec![(Quantity::SyncDelayed, 0.3)]),
            (r#""delay":"20ms","operations":"metadata""#, vec![(Quantity::MetadataTime, 20e6)]),
            (r#""error":"io","operations":"metadata""#, vec![(Quantity::MetadataErrors, 1.0)]),
            // Operations that fail have no time of an operation that did its work.
            (r#""delay":"20ms","error":"io""#, vec![(Quantity::SyncDelayed, 1.0), (Quantity::SyncErrors, 1.0)]),
            // A fifth is quicker: the median of all is the 37.5th percentile of the rest.
            (
                r#""delay":"20ms","jitter":"8ms","share":"80%""#,
                vec![(Quantity::SyncTime, 18e6), (Quantity::SyncDelayed, 0.8)],
            ),
        ] {
            assert_eq!(shown(body), expected, "{body}");
        }
    }

    #[test]
    fn the_directories_of_another_node_are_watched_and_spared() {
        let disk = fault(r#""delay":"20ms","directories":"data""#).unwrap();
        assert_eq!(disk.needs().disks, ["n2", "n1"]);
        let all = disk.expectations(&Hosts::new(3));
        let spared = |host| {
            all.iter()
                .filter(|one| !one.hit && one.asked == 0.0 && one.subject == Subject::directory(host, "data"))
                .count()
        };
        assert_eq!((all.len(), spared("n1"), spared("n2")), (6, 1, 0));
    }

    #[test]
    fn what_no_operation_answers_is_refused() {
        for error in ["no-space", "read-only"] {
            let complaint = fault(&format!(r#""error":"{error}","operations":["read","write"]"#)).unwrap_err();
            assert_eq!(complaint.key, "operations");
        }
    }

    #[test]
    fn small_shares_and_long_delays_take_longer_to_prove() {
        let of = |body| fault(body).unwrap().evidence();
        assert_eq!(of(r#""delay":"20ms""#), Delay::from_secs(2));
        assert!(of(r#""delay":"2s""#) > Delay::from_secs(20));
        assert!(of(r#""delay":"20ms","share":"1%""#) > Delay::from_secs(60));
    }

    #[test]
    fn a_ramp_scales_the_jitter_with_the_delay() {
        let whole = fault(r#""delay":"20ms","jitter":"20ms""#).unwrap();
        assert!(whole.scaled(0.5).unwrap().text().contains("10ms ± 10ms"));
        assert!(whole.scaled(0.05).is_none());
    }
}
