//! Whether the nodes had the processors to themselves.
//!
//! Three databases on one machine wait for each other, and for the load: that is their own doing, and the experiment's. What
//! others take is not: programs outside of the lab, and the hypervisor for other machines. The kernel counts how long each
//! thread could have run and did not, but not for whom it waited. Whoever waits, waits for those who run; so of a wait,
//! others have caused the share that they had in all that ran meanwhile.
//!
//! The limits are those below and [`crate::LATE_SHARE`]; the figures that they are compared with are in the findings of
//! every run (`instrument`: `most_hindered`; `instrument.cpu`: `hindered`, `programs`, `stolen`). They are set between what a
//! quiet machine shows and what one shows on which another program runs: compare `experiments/slow-replica.yaml` alone with the
//! same beside `sh -c 'while :; do :; done'`, on one processor and on all; `make demos` prints `most_hindered` of each run.

use std::collections::BTreeMap;

use brownout_record::CpuRow;
use serde::Serialize;

use crate::TrialEvidence;

/// What others took counts from this share of the lab's processors on: less is what the services of a quiet machine take,
/// however long the nodes wait for each other.
pub const OTHERS_SHARE: f64 = 0.05;
/// An interval is disturbed when others made the nodes' work take longer by this share of the CPU time that it took.
/// Measured with `experiments/slow-replica.yaml` on two processors: 0.01 in each measured phase with the machine alone, 0.92
/// beside a compiler of lower priority that got 58 % of a processor.
pub const HINDERED_SHARE: f64 = 0.25;
/// What nobody accounts for (`/proc` shows only the programs of one's own container) counts as others' from this share of the
/// lab's processors on. Below it may be the kernel's, which is busy between programs, too: with the lab alone, and 400 operations in a
/// second, 3.5 % of two processors, and 6 % at most in any second. (Records of before 2026-11-28 counted the machine's time in
/// ticks, which may be off by far more.)
pub const UNSEEN_SHARE: f64 = 0.1;
/// A program is named when it took this share of a processor, and the one that took most in any case.
const NAMED_SHARE: f64 = 0.05;
/// At most so many are.
const NAMED: usize = 3;

/// A program outside of the lab.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Taker {
    /// Its name.
    pub name: String,
    /// Its processes, as the machine numbers them.
    pub pids: Vec<u32>,
    /// What it took, as a share of one processor; above 1 of more than one.
    pub processors: f64,
}

/// What one reading of the processors shows, ns.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reading<'a> {
    length: u64,
    cores: u64,
    machine: u64,
    stolen: u64,
    /// What each node used, and how long its threads waited; none: nobody knows.
    nodes: BTreeMap<&'a str, (u64, Option<u64>)>,
    instrument: u64,
    interrupts: u64,
    kernel: u64,
    /// None: the record does not know of any program outside of the lab.
    programs: Option<u64>,
    takers: Vec<(&'a str, u32, u64)>,
}

impl<'a> Reading<'a> {
    /// The readings of a trial, by their beginning.
    pub(crate) fn all(evidence: &'a TrialEvidence) -> BTreeMap<u64, Self> {
        let mut readings: BTreeMap<u64, Self> = BTreeMap::new();
        for row in &evidence.cpu {
            readings.entry(row.starts_ns).or_default().add(row);
        }
        readings
    }

    fn add(&mut self, row: &'a CpuRow) {
        self.length = row.length_ns;
        let used = row.busy_ns;
        match row.subject.as_str() {
            "cores" => self.cores += used,
            "machine" => self.machine += used,
            "stolen" => self.stolen += used,
            "instrument" => self.instrument += used,
            "interrupts" => self.interrupts += used,
            "kernel" => self.kernel += used,
            "programs" => *self.programs.get_or_insert(0) += used,
            other => match other.split_once(':') {
                Some(("node", node)) => self.nodes.entry(node).or_default().0 += used,
                Some(("waited", node)) => *self.nodes.entry(node).or_default().1.get_or_insert(0) += used,
                Some(("program", program)) => {
                    let named = program.split_once(':').and_then(|(pid, name)| Some((name, pid.parse().ok()?)));
                    self.takers.extend(named.map(|(name, pid)| (name, pid, used)));
                }
                _ => {}
            },
        }
    }

    /// Whether it says who else was at work, so that what is not said is missing, and not unknown to the record.
    pub(crate) fn tells_of_others(&self) -> bool {
        self.programs.is_some()
    }

    /// Whether it is of this moment, if it begins at `starts_ns`.
    pub(crate) fn holds(&self, starts_ns: u64, at_ns: u64) -> bool {
        (starts_ns..starts_ns.saturating_add(self.length)).contains(&at_ns)
    }

    /// Used by the nodes.
    fn used(&self) -> u64 {
        self.nodes.values().map(|(used, _)| used).sum()
    }

    /// How long their threads waited; none where nobody knows it of one that ran.
    fn waited(&self) -> Option<u64> {
        self.nodes.values().filter(|(used, waited)| *used > 0 || waited.is_some()).map(|(_, waited)| *waited).sum()
    }

    /// Used by nobody who is known, where that is more than an error of the counting.
    fn unseen(&self) -> u64 {
        let programs = self.programs.unwrap_or(0);
        let known = [self.used(), self.instrument, self.interrupts, self.kernel, programs].into_iter().sum();
        let unseen = self.machine.saturating_sub(known);
        if unseen as f64 > UNSEEN_SHARE * self.cores as f64 { unseen } else { 0 }
    }

    /// Taken by others than the lab; none where the record does not say.
    fn others(&self) -> Option<u64> {
        Some(self.programs? + self.unseen() + self.stolen)
    }

    /// Whether that is more than a quiet machine takes.
    pub(crate) fn crowded(&self) -> bool {
        self.others().is_some_and(|others| others as f64 > OTHERS_SHARE * self.cores as f64)
    }

    /// By how much longer the nodes' work took because of others, ns of all their threads together: the share of their waiting
    /// in which others ran, and what the hypervisor took while they seemed to run themselves. None where nobody knows how long
    /// they waited, or who else was at work.
    fn hindered(&self) -> Option<f64> {
        let (others, waited, nodes) = (self.others()?, self.waited()?, self.used());
        let lab = nodes + self.instrument;
        let ran = lab + others - self.stolen;
        let share = |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
        Some(waited as f64 * share(others, lab + others) + self.stolen as f64 * share(nodes, ran))
    }

    /// Whether the nodes were disturbed. Where others took processors, and nobody knows how long the nodes waited, nobody can say
    /// that they were not.
    pub(crate) fn disturbed(&self) -> bool {
        let is_hindered = |hindered: f64| hindered > HINDERED_SHARE * self.used() as f64;
        self.crowded() && self.hindered().is_none_or(is_hindered)
    }

    /// Whether they count as disturbed for no other reason than that nobody knows how long they waited.
    pub(crate) fn is_unknown(&self) -> bool {
        self.crowded() && self.waited().is_none()
    }
}

/// By how much longer the nodes' work took because of others, as a share of the CPU time that it took, in the readings that say so.
pub(crate) fn hindered<'a, 'b: 'a>(readings: impl Iterator<Item = &'a Reading<'b>>) -> Option<f64> {
    let (mut hindered, mut nodes) = (0.0, 0);
    for (reading, own) in readings.filter_map(|reading| Some((reading, reading.hindered()?))) {
        hindered += own;
        nodes += reading.used();
    }
    (nodes > 0).then(|| hindered / nodes as f64)
}

/// Who took most, the hypervisor and what cannot be seen among them.
pub(crate) fn takers<'a, 'b: 'a>(readings: impl Iterator<Item = &'a Reading<'b>>) -> Vec<Taker> {
    let mut sums: BTreeMap<&str, (Vec<u32>, u64)> = BTreeMap::new();
    let mut length = 0;
    for reading in readings {
        length += reading.length;
        for (name, pid, used) in &reading.takers {
            let (pids, sum) = sums.entry(name).or_default();
            if !pids.contains(pid) {
                pids.push(*pid);
            }
            *sum += used;
        }
        for (name, used) in [(HYPERVISOR, reading.stolen), (UNSEEN, reading.unseen())] {
            sums.entry(name).or_default().1 += used;
        }
    }
    let taker = |(name, (pids, used)): (&str, (Vec<u32>, u64))| Taker {
        name: name.to_owned(),
        pids,
        processors: used as f64 / length.max(1) as f64,
    };
    let mut takers: Vec<Taker> = sums.into_iter().map(taker).filter(|taker| taker.processors > 0.0).collect();
    takers.sort_by(|a, b| b.processors.total_cmp(&a.processors));
    let named = takers.iter().take(NAMED).filter(|taker| taker.processors >= NAMED_SHARE).count();
    takers.truncate(named.max(1));
    takers
}

const HYPERVISOR: &str = "the hypervisor, for other machines,";
const UNSEEN: &str = "something invisible from here (another container?)";

impl Taker {
    /// "spin (pid 4711) took 98% of a processor".
    pub(crate) fn text(&self) -> String {
        let who = match self.pids.as_slice() {
            [] => self.name.clone(),
            [pid] => format!("{} (pid {pid})", self.name),
            pids => format!("{} ({} processes)", self.name, pids.len()),
        };
        if self.processors > 1.05 {
            format!("{who} took {:.1} processors", self.processors)
        } else {
            format!("{who} took {:.0}% of a processor", self.processors * 100.0)
        }
    }
}
