//! Whether a plan leaves enough time to prove its faults: one that cannot be proven is refused before the run, not
//! after it.

use std::time::Duration;

use brownout_analysis::{clumping, margin_within, reach_within, sent_margin, stall_margin, stats::samples_to_tell};
use brownout_probe::Probes;
use brownout_record::{Expectation, Quantity};
use brownout_units::{Count, Delay};

use super::{
    check::Check,
    period::{PlannedFault, PlannedPeriod},
    phase::{Phase, PlannedPhase},
    roles::casts,
};
use crate::{experiment::FileError, faults::Fault, hosts::Hosts, witness::Sampling};

/// Probes on each pair are this far apart, unless there are too many pairs.
const PROBE_EVERY: Duration = Duration::from_millis(20);
/// Probes that each of the windows before, during and after a fault has to have: three times what a verdict takes.
const PROBES: u32 = 3 * brownout_analysis::ENOUGH as u32;
/// In a shorter period no reading of the links' counters may lie: they are read around its ends besides.
pub(crate) const BRIEF: Delay = Delay::from_ns(brownout_analysis::BRIEF_NS);
/// What these readings tell.
const COUNTED: [Quantity; 5] =
    [Quantity::OneWayDelay, Quantity::Loss, Quantity::Duplicates, Quantity::Reordered, Quantity::Corruption];
/// The same of questions to a paused node.
const BEATS: u32 = 30;
/// A node that is paused for a moment is best looked at between moments as far apart as this: it is wholly back by then.
const BETWEEN_STALLS: Delay = Delay::from_secs(3);
/// The same in time for what other witnesses see, who look ten times a second.
const WITNESSES: Delay = Delay::from_secs(5);
/// Bursts come once or twice a second.
const TRAINS: Delay = Delay::from_secs(10);

/// Between two probes on each pair: as close as the prober's budget for all pairs together allows.
pub fn probe_interval(hosts: &Hosts) -> Duration {
    PROBE_EVERY.max(Probes::shortest_interval(hosts.watched_pairs().count()))
}

impl Check<'_> {
    /// `entries`: of each fault, the place of its entry in the file.
    pub(super) fn provable(
        &self,
        hosts: &Hosts,
        phases: &[PlannedPhase],
        faults: &[PlannedFault],
        entries: &[usize],
    ) -> Result<(), FileError> {
        let refuse = |key: &str, have: u64, need: u64, what: &str| {
            let (have, need) = (Delay::from_ns(have), Delay::from_ns(need));
            self.complain(key, format!("{have} is too short to prove this fault by {what}; it needs at least {need}"))
        };
        let transitions = transitions(faults);
        let first = transitions.first().map_or(0, |transition| transition.at);
        for (index, fault) in faults.iter().enumerate() {
            let (need, what) = evidence(fault, hosts);
            let (need, key) = (need.ns(), format!("faults.{}", entries[index]));
            let before = length(phases, Phase::Baseline) + first;
            if before < need {
                return refuse("phases.baseline", before, need, what);
            }
            // Whether other faults' nodes take their time to end and to start is seen where processes are looked at.
            let processes = fault.fault().is_some_and(|fault| fault.needs().process_witness);
            let felt = |transition: &Transition| {
                let long = if processes || transition.fault == index { transition.long } else { 0 };
                Transition { long, ..*transition }
            };
            let transitions: Vec<Transition> = transitions.iter().map(felt).collect();
            for severity in 0..fault.severities.len() {
                let periods: Vec<&PlannedPeriod> =
                    fault.periods.iter().filter(|period| period.severity == severity).collect();
                let during = quiet_in(&transitions, &periods);
                if during < need && !is_told_by_the_load(hosts, fault, &periods) {
                    let message = too_little(fault, &periods, need, what).unwrap_or_else(|| {
                        let have = periods.iter().map(|period| period.ends.ns() - period.starts.ns()).sum();
                        let [during, have, need] = [during, have, need].map(Delay::from_ns);
                        format!(
                            "other faults begin, end or heal within its {have}: {during} are left to prove it \
                             by {what}, which needs {need}; space them further apart"
                        )
                    });
                    return self.complain(&key, message);
                }
            }
            let end = length(phases, Phase::Fault) + length(phases, Phase::Recovery);
            let healed = fault.ends().ns();
            if quiet(&transitions, healed, end) < need {
                let heals = fault.fault().map_or(0, |fault| fault.heals_within().ns());
                return refuse("phases.recovery", end - healed, heals + unsettled(fault) + need, what);
            }
        }
        Ok(())
    }
}

fn length(phases: &[PlannedPhase], wanted: Phase) -> u64 {
    phases.iter().find(|phase| phase.phase == wanted).map_or(0, |phase| phase.length.ns())
}

/// Every moment at which something comes or goes, in order.
fn transitions(faults: &[PlannedFault]) -> Vec<Transition> {
    let mut transitions: Vec<Transition> = Vec::new();
    for (index, fault) in faults.iter().enumerate() {
        let (unsettled, early) = (unsettled(fault), early(fault));
        let (injects, heals) =
            fault.fault().map_or((0, 0), |fault| (fault.injects_within().ns(), fault.heals_within().ns()));
        let periods = fault.periods.iter();
        let own: Vec<(u64, bool)> =
            periods.flat_map(|period| [(period.starts.ns(), true), (period.ends.ns(), false)]).collect();
        // Short stretches, as of a flapping link, leave less out.
        let next = |at| own.iter().map(|(at, _)| *at).find(|next| *next > at).unwrap_or(u64::MAX) - at;
        let last = |at| at - own.iter().rev().map(|(at, _)| *at).find(|last| *last < at).unwrap_or(0);
        let stall = fault.fault().is_some_and(Fault::is_stall);
        let by_sending = is_seen_by_sending(fault);
        transitions.extend(own.iter().map(|(at, comes)| Transition {
            fault: index,
            at: *at,
            long: if *comes { injects } else { heals },
            margin: if stall && *comes {
                stall_margin(next(*at), unsettled)
            } else if by_sending {
                sent_margin(next(*at), unsettled)
            } else {
                margin_within(next(*at), unsettled)
            },
            early: match (*comes, stall) {
                (true, _) => 0,
                (false, true) => reach_within(last(*at)),
                (false, false) => early,
            },
        }));
    }
    transitions.sort_by_key(|transition| transition.at);
    transitions
}

/// Whether probes alone show it, of which each meets what is in force when it is sent.
fn is_seen_by_sending(fault: &PlannedFault) -> bool {
    let impairments: Vec<_> = fault.severities.iter().map(|fault| fault.impairment()).collect();
    impairments.iter().all(|one| one.is_some_and(|one| one.rate.is_none()))
}

/// Whether periods are too brief for any probe to tell a fault of links, and the emulator's account of all packets may.
fn is_told_by_the_load(hosts: &Hosts, fault: &PlannedFault, periods: &[&PlannedPeriod]) -> bool {
    // A packet that is held for as long as the period lasts is let go early.
    let spans = early(fault)..BRIEF.ns();
    let brief = periods.iter().all(|period| spans.contains(&(period.ends.ns() - period.starts.ns())));
    let counted = || {
        let expectations = fault.severities.iter().flat_map(|fault| fault.expectations(hosts));
        expectations.into_iter().filter(|one| one.hit).all(|one| COUNTED.contains(&one.quantity))
    };
    // It has to come again and again: of a ramp each step comes once.
    let repeated = periods.len() > 1;
    let unseen = || quiet_in(&transitions(std::slice::from_ref(fault)), periods) == 0;
    brief && repeated && is_seen_by_sending(fault) && unseen() && counted()
}

/// Warnings of faults of links of which the packets of the load alone can tell.
pub(super) fn brief(hosts: &Hosts, faults: &[PlannedFault]) -> Vec<String> {
    let told = faults.iter().filter(|fault| {
        let periods: Vec<&PlannedPeriod> = fault.periods.iter().collect();
        is_told_by_the_load(hosts, fault, &periods)
    });
    let words = told.filter_map(|fault| {
        let longest = fault.periods.iter().map(|period| period.ends.ns() - period.starts.ns()).max()?;
        Some(format!(
            "no probe that meets '{}' is sent early enough before it ends after {}: it can be proven only if the load sends {} \
             packets on each of its links while it lasts, in all of its periods together",
            fault.fault().map(Fault::text).unwrap_or_default(),
            Delay::from_ns(longest),
            brownout_analysis::ENOUGH
        ))
    });
    words.collect()
}

/// Why a fault's periods leave too little time to prove it, though no other fault came between, and what to write instead.
fn too_little(fault: &PlannedFault, periods: &[&PlannedPeriod], need: u64, what: &str) -> Option<String> {
    let alone = quiet_in(&transitions(std::slice::from_ref(fault)), periods);
    if alone >= need {
        return None;
    }
    let count = periods.len() as u64;
    let length = periods.iter().map(|period| period.ends.ns() - period.starts.ns()).max().unwrap_or(0);
    let once = longest(fault, need);
    let delay = Delay::from_ns;
    // How often it takes, and how long that is, with so much from one beginning to the next.
    let repeated = |every: u64| {
        let each = (alone > 0).then(|| alone / count.max(1)).filter(|each| *each > 0)?;
        let times = need.div_ceil(each);
        Some((times, delay(fault.starts().ns() + (times - 1) * every + length)))
    };
    let text = format!("{} is too short to prove this fault by {what}", delay(length));
    let single = format!("it needs at least {}", delay(once));
    Some(match periods {
        [first, second, ..] => {
            let every = second.starts.ns() - first.starts.ns();
            match repeated(every) {
                Some((times, phase)) => format!(
                    "{count} periods of {} leave {} to prove this fault by {what}, and it takes {}: write at least {times} \
                     periods (a phase 'fault' of {phase}), or longer ones (one alone takes {})",
                    delay(length),
                    delay(alone),
                    delay(need),
                    delay(once)
                ),
                None => format!("{text}, however often it comes; {single}"),
            }
        }
        _ if fault.shortest_stall().is_some() => match repeated(length + BETWEEN_STALLS.ns()) {
            Some((times, phase)) => format!(
                "{text}; {single}, or {times} such: flap: {{ on: {}, off: {BETWEEN_STALLS} }} in a phase 'fault' of at least \
                 {phase}",
                delay(length)
            ),
            None => format!("{text}; {single}"),
        },
        _ => format!("{text}; {single}"),
    })
}

/// How long a period of a fault has to be at the longest, to be proven within it.
fn longest(fault: &PlannedFault, need: u64) -> u64 {
    // A long stall is looked at less often than a short one.
    let stall = fault.fault().is_some_and(Fault::is_stall);
    let need = if stall { (Sampling::of(None).beat * BEATS).as_nanos() as u64 } else { need };
    let injects = fault.fault().map_or(0, |fault| fault.injects_within().ns());
    injects.saturating_add(unsettled(fault)).saturating_add(early(fault)).saturating_add(need)
}

/// Whether a period of this length can prove a fault that comes alone; else what it takes, and by what.
pub(super) fn lasts(fault: &PlannedFault, length: Delay, hosts: &Hosts) -> Result<(), (Delay, &'static str)> {
    let (need, what) = evidence(fault, hosts);
    let once = PlannedPeriod { severity: 0, starts: Delay::ZERO, ends: length };
    let alone = PlannedFault { periods: vec![once], ..fault.clone() };
    let enough = quiet(&transitions(std::slice::from_ref(&alone)), 0, length.ns()) >= need.ns();
    if enough { Ok(()) } else { Err((Delay::from_ns(longest(fault, need.ns())), what)) }
}

/// Warnings of shares so small that the probes alone do not tell them from none.
pub(super) fn faint(hosts: &Hosts, phases: &[PlannedPhase], faults: &[PlannedFault]) -> Vec<String> {
    const SHARES: [Quantity; 4] = [Quantity::Loss, Quantity::Duplicates, Quantity::Reordered, Quantity::Corruption];
    let every = probe_interval(hosts).as_nanos() as u64;
    let mut warnings = Vec::new();
    // Of a fault that follows a role any node will do: its links are as many, whoever it is.
    for (fault, planned) in casts(hosts, faults).first().into_iter().flatten().zip(faults) {
        // Probes of each window, and what they would have to be; the worst case of all steps.
        let mut worst: Option<(u64, u64)> = None;
        // Of packets that are hit in bursts more are needed.
        let packets =
            |one: &Expectation| (samples_to_tell(one.asked, one.tolerance) as f64 * clumping(one)).round() as u64;
        for (at, severity) in fault.severities.iter().enumerate() {
            let periods = fault.periods.iter().filter(|period| period.severity == at);
            let during: u64 = periods.map(|period| period.ends.ns() - period.starts.ns()).sum();
            let probes = during.min(length(phases, Phase::Baseline) + fault.starts().ns()) / every;
            let expectations = severity.expectations(hosts);
            let shares = expectations.iter().filter(|one| one.hit && one.asked > 0.0 && SHARES.contains(&one.quantity));
            let need = shares.map(packets).max().unwrap_or(0);
            if need > probes && worst.is_none_or(|(_, most)| need > most) {
                worst = Some((probes, need));
            }
        }
        let Some((probes, need)) = worst else { continue };
        warnings.push(format!(
            "proving '{}' takes about {} packets on each of its links, before the fault and during it, and \
             the probes send {}: it can be proven only if the load sends the rest on the same links",
            planned.fault().map(Fault::text).unwrap_or_default(),
            Count(need),
            Count(probes)
        ));
    }
    warnings
}

/// That nobody will be told who would have noticed the faults, because detectors have too little to learn from.
pub(super) fn unscored(phases: &[PlannedPhase], faults: &[PlannedFault]) -> Option<String> {
    let (baseline, least) = (length(phases, Phase::Baseline), brownout_analysis::detectors::LEAST_BASELINE_NS);
    (!faults.is_empty() && baseline < least).then(|| {
        format!(
            "a baseline of {} is too short for detectors to learn from, so none is scored; of {} it is not",
            Delay::from_ns(baseline),
            Delay::from_ns(least)
        )
    })
}

fn unsettled(fault: &PlannedFault) -> u64 {
    fault.severities.iter().map(|fault| fault.unsettled().ns()).max().unwrap_or(0)
}

/// What is let go early by a healing, so that it shows less than the fault: packets on their way, ns before it.
fn early(fault: &PlannedFault) -> u64 {
    let delays = fault.fault().is_some_and(|fault| fault.impairment().is_some());
    let delay = if delays { unsettled(fault).saturating_sub(brownout_analysis::SETTLE_NS) } else { 0 };
    delay + brownout_analysis::REACH_NS
}

/// A moment at which a fault comes or goes; ns from the start of the phase, and around it.
#[derive(Clone, Copy)]
struct Transition {
    fault: usize,
    at: u64,
    /// What the change itself may take.
    long: u64,
    margin: u64,
    early: u64,
}

/// The same of some periods together.
fn quiet_in(transitions: &[Transition], periods: &[&PlannedPeriod]) -> u64 {
    periods.iter().map(|period| quiet(transitions, period.starts.ns(), period.ends.ns())).sum()
}

/// Time between `from` and `to` in which nothing has just changed, or is about to. What takes its time may reach in from before.
fn quiet(transitions: &[Transition], from: u64, to: u64) -> u64 {
    let mut settled = from;
    let mut quiet = 0;
    for Transition { at, long, margin, early, .. } in transitions.iter().filter(|transition| transition.at <= to) {
        if *at >= from {
            quiet += at.saturating_sub(*early).saturating_sub(settled);
        }
        if *at >= from || *long > 0 {
            settled = settled.max(at + long + margin);
        }
    }
    quiet + to.saturating_sub(settled)
}

/// How long a window has to be to tell something, and by what.
fn evidence(fault: &PlannedFault, hosts: &Hosts) -> (Delay, &'static str) {
    let needs = fault.needs();
    let (length, what) = if fault.fault().is_some_and(Fault::is_stall) {
        (Delay::from(Sampling::of(needs.shortest_stall).beat * BEATS), "heartbeats")
    } else if !needs.trains.is_empty() {
        (TRAINS, "bursts")
    } else if needs.process_witness
        || needs.clock_witness
        || !needs.disks.is_empty()
        || !needs.largest_packets.is_empty()
    {
        (WITNESSES, "witnesses")
    } else {
        (Delay::from(probe_interval(hosts) * PROBES), "probes")
    };
    // A ramp's least step takes longest.
    let longest = fault.severities.iter().map(|fault| fault.evidence()).max().unwrap_or_default();
    (length.max(longest), what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(at: u64, long: u64) -> Transition {
        Transition { fault: 0, at, long, margin: 1, early: 2 }
    }

    #[test]
    fn what_takes_its_time_to_change_leaves_less_to_look_at() {
        assert_eq!(quiet(&[change(0, 0)], 0, 20), 19);
        assert_eq!(quiet(&[change(0, 8)], 0, 20), 11);
        assert_eq!(quiet(&[change(10, 0)], 0, 20), 8 + 9);
        // A node that was to start again before, and still may.
        assert_eq!(quiet(&[change(5, 30)], 20, 60), 60 - 36);
        assert_eq!(quiet(&[change(5, 30)], 50, 60), 10);
        assert_eq!(quiet(&[change(5, 90)], 50, 60), 0);
    }
}
