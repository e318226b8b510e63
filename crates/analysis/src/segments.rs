//! A trial's time line, cut at every change of every fault.
//!
//! In each segment the faults in force are the same from end to end. What was seen too soon after a change, or too
//! shortly before one, to say on which side of it it belongs, is left out.

use std::collections::BTreeMap;

use brownout_record::{FaultRecord, Quantity, Stamp, Subject};

use crate::{TrialEvidence, evidence::phase};

/// Left out after a change besides the delay asked for, ns: a probe period, queues, and a busy machine.
pub const SETTLE_NS: u64 = 500_000_000;
/// What a probe may take to reach the emulator on a busy machine, ns. Left out before a healing, with the delay asked for.
pub const REACH_NS: u64 = 50_000_000;

/// A pair that loses this share of its packets shows nothing but that.
pub(crate) const CUT: f64 = 0.999;

/// A fault (by its index among the trial's) and its severity (by its index among the fault's).
pub(crate) type Force = (usize, usize);

/// From, to; ns since the run's zero. An empty one, or one that ends before it begins, holds nothing.
pub(crate) type Span = (u64, u64);

/// What kind of subject is looked at: a change unsettles those of the kinds that its fault names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Pairs,
    Hosts,
    Directories,
    Overlays,
}

/// How many there are.
const CLASSES: usize = 4;

impl Class {
    const ALL: [Class; CLASSES] = [Class::Pairs, Class::Hosts, Class::Directories, Class::Overlays];

    pub(crate) fn of(subject: &Subject) -> Self {
        match subject {
            Subject::Pair { .. } => Class::Pairs,
            Subject::Overlay { .. } => Class::Overlays,
            Subject::Host { .. } => Class::Hosts,
            Subject::Directory { .. } => Class::Directories,
        }
    }
}

/// A stretch of time in which nothing changes.
#[derive(Debug, Clone)]
pub(crate) struct Segment {
    /// What is in force, in order.
    pub(crate) forces: Vec<Force>,
    /// Since when each of them is, ns.
    pub(crate) since: Vec<u64>,
    /// Between the two changes.
    pub(crate) between: Span,
    /// Where measurements count that are wholly inside, by class.
    settled: [Span; CLASSES],
    /// Where probes count by their sending: those below, and those through an overlay.
    sent: [Span; 2],
    /// Where measurements of witnesses count by their beginning, by class.
    begun: [Span; CLASSES],
}

impl Segment {
    pub(crate) fn settled(&self, class: Class) -> Span {
        self.settled[class as usize]
    }

    pub(crate) fn sent(&self, class: Class) -> Span {
        self.sent[usize::from(class == Class::Overlays)]
    }

    pub(crate) fn begun(&self, class: Class) -> Span {
        self.begun[class as usize]
    }

    /// Parts of what is looked at in it, each of a share of its length, and each half over the next.
    pub(crate) fn parts(&self, class: Class, share: f64) -> impl Iterator<Item = Segment> {
        let (from, to) = self.settled(class);
        let length = (to.saturating_sub(from) as f64 * share) as u64;
        let count = (2 * to.saturating_sub(from)).checked_div(length).map_or(0, |halves| halves - 1);
        (0..count).map(move |at| self.within((from + at * length / 2, from + at * length / 2 + length)))
    }

    /// Between the two changes, ns.
    pub(crate) fn length_ns(&self) -> u64 {
        self.between.1.saturating_sub(self.between.0)
    }

    /// It has any length.
    pub(crate) fn lasts(&self) -> bool {
        self.between.1 > self.between.0
    }

    /// What of it lies in a span.
    pub(crate) fn within(&self, span: Span) -> Segment {
        let cut = |own: Span| (own.0.max(span.0), own.1.min(span.1));
        Segment {
            between: cut(self.between),
            settled: self.settled.map(cut),
            sent: self.sent.map(cut),
            begun: self.begun.map(cut),
            ..self.clone()
        }
    }
}

/// A moment in which a fault comes, goes or changes its severity.
struct Change {
    at_ns: u64,
    error_ns: u64,
    /// Left out after it, ns, by class.
    margins: [u64; CLASSES],
    /// Left out after it of probes of pairs, by their sending, ns.
    sent_margin: u64,
    /// Left out before it of what is known by its sending, ns.
    ///
    /// On healing the emulator lets go of what it holds, so probes sent just before show less than the delay. One sent
    /// earlier by the delay asked for may still be let go early, if jitter made it later than that; but it was held for
    /// the delay at least, stays above the median where it was, and so leaves the median alone.
    early_ns: u64,
}

/// The largest delay that a fault asks for, ns.
pub(crate) fn longest_delay(fault: &FaultRecord) -> u64 {
    let expectations = fault.severities.iter().flat_map(|severity| &severity.expectations);
    let delays = expectations.filter(|one| one.quantity == Quantity::OneWayDelay && one.hit);
    delays.fold(0.0, |most: f64, one| most.max(one.asked)) as u64
}

/// In a shorter stretch no reading of the links' counters may lie, ns: they are read around its ends besides.
pub const BRIEF_NS: u64 = 1_000_000_000;

/// What is left out after a change of a fault that changes again after `stretch_ns`, ns.
///
/// Of a fault that comes and goes quickly the margin must leave something over: a quarter of the stretch goes for it, but
/// never less than what the fault does may take ([`FaultRecord::unsettled_ns`] is that and [`SETTLE_NS`]).
pub fn margin_within(stretch_ns: u64, unsettled_ns: u64) -> u64 {
    let least = unsettled_ns.saturating_sub(SETTLE_NS) + REACH_NS;
    least.max(stretch_ns / 4).min(unsettled_ns)
}

/// The same of what is known by its sending, ns: a packet meets what is in force when it is sent, however long it is then on its way.
pub fn sent_margin(stretch_ns: u64, unsettled_ns: u64) -> u64 {
    REACH_NS.max(stretch_ns / 4).min(unsettled_ns)
}

/// The same after a process was stopped, ns. That is there wholly and at once; only the others may take a moment.
pub fn stall_margin(stretch_ns: u64, unsettled_ns: u64) -> u64 {
    unsettled_ns.min(stretch_ns / 4)
}

/// Left out of a stretch before its end, ns, of what is asked of a host: with [`stall_margin`] half of the shortest stall is left.
pub fn reach_within(stretch_ns: u64) -> u64 {
    REACH_NS.min(stretch_ns / 4)
}

/// What an overlay with connections may take until it carries packets again after a long cut, ns: OpenVPN and WireGuard
/// begin anew. WireGuard tries to every 5 s (`REKEY_TIMEOUT`); OpenVPN tries every 4 s at the rarest, and takes 2.4 s.
const RECONNECT_NS: u64 = 10_000_000_000;
/// So long it has to have been: OpenVPN gives up after 60 s (`keepalive 10 60`), less what its timers are coarse by.
const LONG_CUT_NS: u64 = 50_000_000_000;

/// Whether a fault cuts ways through an overlay.
fn cuts_overlay(fault: &FaultRecord) -> bool {
    let mut expectations = fault.severities.iter().flat_map(|severity| &severity.expectations);
    expectations.any(|one| {
        matches!(one.subject, Subject::Overlay { .. }) && one.quantity == Quantity::Loss && one.hit && one.asked >= CUT
    })
}

/// The largest delay that a fault asks for of subjects of a class, ns.
fn longest_delay_of(fault: &FaultRecord, class: Class) -> u64 {
    let expectations = fault.severities.iter().flat_map(|severity| &severity.expectations);
    let own = expectations.filter(|one| Class::of(&one.subject) == class);
    let delays = own.filter(|one| one.quantity == Quantity::OneWayDelay && one.hit);
    delays.fold(0.0, |most: f64, one| most.max(one.asked)) as u64
}

/// What a change of a fault unsettles in subjects of a class, ns.
fn unsettled_in(fault: &FaultRecord, class: Class) -> u64 {
    let mut expectations = fault.severities.iter().flat_map(|severity| &severity.expectations);
    let own = expectations.any(|one| Class::of(&one.subject) == class);
    if own { fault.unsettled_ns } else { fault.unsettled_ns.min(SETTLE_NS) }
}

/// Whether a queue may stand before a limit of rate, so that what is sent after it may meet what came before.
fn queues(fault: &FaultRecord) -> bool {
    let mut expectations = fault.severities.iter().flat_map(|severity| &severity.expectations);
    expectations.any(|one| one.quantity == Quantity::Rate && one.hit)
}

/// The same by class of subject: a fault unsettles those that it names; for the others a change is just a busy moment.
fn margins(fault: &FaultRecord, next_ns: Option<u64>) -> [u64; CLASSES] {
    Class::ALL.map(|class| {
        let mut full = unsettled_in(fault, class);
        // Where a way takes two links, what is on it is late twice.
        if class == Class::Overlays && longest_delay_of(fault, class) > longest_delay_of(fault, Class::Pairs) {
            full += fault.unsettled_ns.saturating_sub(SETTLE_NS);
        }
        margin_within(next_ns.unwrap_or(u64::MAX), full)
    })
}

/// Whether it stops processes.
fn stops(fault: &FaultRecord) -> bool {
    let mut expectations = fault.severities.iter().flat_map(|severity| &severity.expectations);
    expectations.any(|one| matches!(one.quantity, Quantity::Running | Quantity::Answers) && one.hit && one.asked < 0.0)
}

fn changes_of(fault: &FaultRecord) -> Vec<Change> {
    let delay = longest_delay(fault);
    // With how long it was in force, where it goes.
    let mut stamps: Vec<(Stamp, Option<u64>)> = Vec::new();
    for period in &fault.periods {
        stamps.extend(period.injected.map(|stamp| (stamp, None)));
        let lasted = period.injected.zip(period.healed);
        stamps.extend(lasted.map(|(from, to)| (to, Some(to.at_ns.saturating_sub(from.at_ns)))));
    }
    let next = |at_ns: u64| stamps.iter().map(|(stamp, _)| stamp.at_ns).filter(|at| *at > at_ns).min();
    let (stops, cuts_overlay, queues) = (stops(fault), cuts_overlay(fault), queues(fault));
    let change = |(stamp, lasted): &(Stamp, Option<u64>)| {
        let healed = lasted.is_some();
        let next_ns = next(stamp.at_ns).map(|next| next - stamp.at_ns);
        let mut margins = margins(fault, next_ns);
        if let (true, false, Some(next_ns)) = (stops, healed, next_ns) {
            margins[Class::Hosts as usize] = stall_margin(next_ns, fault.unsettled_ns);
        }
        if cuts_overlay && lasted.is_some_and(|lasted| lasted >= LONG_CUT_NS) {
            let more = RECONNECT_NS.min(next_ns.unwrap_or(u64::MAX));
            margins[Class::Overlays as usize] = margins[Class::Overlays as usize].max(more);
        }
        let sent_margin = if queues {
            margins[Class::Pairs as usize]
        } else {
            sent_margin(next_ns.unwrap_or(u64::MAX), unsettled_in(fault, Class::Pairs))
        };
        let early_ns = if healed { REACH_NS + delay } else { 0 };
        Change { at_ns: stamp.at_ns, error_ns: stamp.error_ns, margins, sent_margin, early_ns }
    };
    stamps.iter().map(change).collect()
}

/// Some faults of a trial on its time line.
pub(crate) struct Segments {
    /// In order of time, from the beginning of the baseline to the end of the trial.
    pub(crate) all: Vec<Segment>,
}

impl Segments {
    /// The time line as the faults that `which` names (by their indices) cut it. The others do nothing to what is looked at.
    pub(crate) fn of(evidence: &TrialEvidence, which: &[usize]) -> Self {
        let faults = &evidence.faults;
        let starts = evidence.phase(phase::BASELINE).map_or(evidence.row.starts_ns, |phase| phase.starts_ns);
        // At the end of a trial, what was sent last may not have arrived when the record was closed.
        let last_sent = SETTLE_NS + faults.iter().map(longest_delay).max().unwrap_or(0);
        let recovery = evidence.phase(phase::RECOVERY).map_or(u64::MAX, |phase| phase.ends_ns);
        let ends = evidence.ends_ns.saturating_sub(last_sent).min(recovery).max(starts);

        let mut changes: Vec<Change> = which.iter().flat_map(|fault| changes_of(&faults[*fault])).collect();
        changes.sort_by_key(|change| change.at_ns);
        let mut cuts = vec![starts];
        cuts.extend(changes.iter().map(|change| change.at_ns).filter(|at| *at > starts && *at < ends));
        cuts.push(ends);
        cuts.dedup();

        let segment = |cut: &[u64]| {
            let between = (cut[0], cut[1]);
            let (forces, since) = in_force(faults, which, between).into_iter().unzip();
            Segment {
                forces,
                since,
                between,
                settled: [between; CLASSES],
                sent: [between; 2],
                begun: [between; CLASSES],
            }
        };
        let mut all: Vec<Segment> = cuts.windows(2).map(segment).collect();
        trim(&mut all, &changes);
        Segments { all }
    }

    /// Those before the first injection of any fault.
    pub(crate) fn before(evidence: &TrialEvidence) -> Vec<Segment> {
        let every: Vec<usize> = (0..evidence.faults.len()).collect();
        let first = evidence.faults.iter().filter_map(FaultRecord::injected).map(|stamp| stamp.at_ns).min();
        let all = Segments::of(evidence, &every).all;
        all.into_iter().filter(|segment| segment.between.1 <= first.unwrap_or(u64::MAX)).collect()
    }

    /// Those in which a fault is in force with a severity, by all that is in force.
    pub(crate) fn during(&self, force: Force) -> Vec<Vec<Segment>> {
        self.by_forces(|segment| segment.forces.contains(&force))
    }

    /// Those after a moment, by all that is in force; in order of time.
    pub(crate) fn after(&self, at_ns: u64) -> Vec<Vec<Segment>> {
        self.by_forces(|segment| segment.between.0 >= at_ns)
    }

    /// Those between two moments in which a fault is not in force, by all that is.
    pub(crate) fn pauses(&self, fault: usize, span: Span) -> Vec<Vec<Segment>> {
        self.by_forces(|segment| {
            segment.between.0 >= span.0
                && segment.between.1 <= span.1
                && segment.forces.iter().all(|force| force.0 != fault)
        })
    }

    fn by_forces(&self, which: impl Fn(&Segment) -> bool) -> Vec<Vec<Segment>> {
        let mut groups: BTreeMap<&[Force], Vec<Segment>> = BTreeMap::new();
        for segment in self.all.iter().filter(|segment| which(segment)) {
            groups.entry(&segment.forces).or_default().push(segment.clone());
        }
        let mut groups: Vec<Vec<Segment>> = groups.into_values().collect();
        groups.sort_by_key(|group| group[0].between.0);
        groups
    }
}

/// What was in force all through a span between two changes, and since when.
fn in_force(faults: &[FaultRecord], which: &[usize], span: Span) -> Vec<(Force, u64)> {
    let of = |at: &usize| {
        faults[*at].periods.iter().find_map(|period| {
            let since = period.injected.map(|injected| injected.at_ns).filter(|at_ns| *at_ns <= span.0)?;
            let holds = period.healed.is_none_or(|healed| healed.at_ns >= span.1);
            holds.then_some(((*at, period.severity as usize), since))
        })
    };
    which.iter().filter_map(of).collect()
}

/// Takes away what is too near to a change. A margin may reach beyond the next change.
fn trim(all: &mut [Segment], changes: &[Change]) {
    let (mut from, mut sent_from) = ([0; CLASSES], 0);
    let mut next = 0;
    for segment in all.iter_mut() {
        while let Some(change) = changes.get(next).filter(|change| change.at_ns <= segment.between.0) {
            for (from, margin) in from.iter_mut().zip(change.margins) {
                *from = (*from).max(change.at_ns + change.error_ns + margin);
            }
            sent_from = sent_from.max(change.at_ns + change.error_ns + change.sent_margin);
            next += 1;
        }
        for (class, from) in from.iter().enumerate() {
            segment.settled[class].0 = segment.settled[class].0.max(*from);
            segment.begun[class].0 = segment.begun[class].0.max(*from);
        }
        for (sent, from) in segment.sent.iter_mut().zip([sent_from, from[Class::Overlays as usize]]) {
            sent.0 = sent.0.max(from);
        }
    }
    let (mut settled, mut sent, mut begun) = (u64::MAX, u64::MAX, [u64::MAX; CLASSES]);
    let mut left = changes.len();
    for segment in all.iter_mut().rev() {
        // A request, once begun, must have had the time to be answered.
        let mut reach = [REACH_NS; CLASSES];
        reach[Class::Hosts as usize] = reach_within(segment.between.1 - segment.between.0);
        while let Some(change) = changes[..left].last().filter(|change| change.at_ns >= segment.between.1) {
            let at = change.at_ns.saturating_sub(change.error_ns);
            settled = settled.min(at);
            sent = sent.min(at.saturating_sub(change.early_ns));
            for (begun, reach) in begun.iter_mut().zip(reach) {
                *begun = (*begun).min(at.saturating_sub(reach));
            }
            left -= 1;
        }
        segment.settled.iter_mut().for_each(|span| span.1 = span.1.min(settled));
        segment.begun.iter_mut().zip(begun).for_each(|(span, begun)| span.1 = span.1.min(begun));
        segment.sent.iter_mut().for_each(|span| span.1 = span.1.min(sent));
    }
}
