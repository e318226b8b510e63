//! The faults of an experiment: what they do, and when.

use std::sync::Arc;

use brownout_base::random::derive;
use brownout_record::{Quantity, Subject};
use brownout_units::Delay;

use super::{
    Phase, PlannedFault, PlannedPeriod, PlannedPhase, check::Check, network::limits_packets, roles::casts,
    windows::lasts,
};
use crate::{
    experiment::{ChaosFault, FaultEntry, FileError},
    faults::{self, Drawn, Fault},
    hosts::Hosts,
    witness::LEAST_STALL,
};

/// More changes than this in one phase are a mistake.
const MOST_PERIODS: u64 = 1_000;
/// A shorter stretch cannot be distinguished from the time that changes take.
const LEAST_PERIOD: Delay = Delay::from_ms(200);
/// More steps than this cannot each be seen.
const MOST_STEPS: u64 = 100;
/// A cut of one direction that is as long cuts both above an encrypted overlay: OpenVPN gives up after 60 s without a packet
/// (`keepalive 10 60`), and each handshake that comes through takes one of the 8 sessions that boringtun keeps, every 5 s.
const SESSION: Delay = Delay::from_secs(50);
/// Who loses this share of its packets hears nothing; as the proof has it.
const CUT: f64 = 0.999;

/// A link that carries nothing for a while.
struct Cut {
    /// The fault, by its index.
    fault: usize,
    from: String,
    to: String,
    /// From, to; ns from the start of the phase `fault`.
    span: (u64, u64),
}

impl Check<'_> {
    /// All of them, and the hosts, of whom those pairs are measured that are of use for these.
    pub(super) fn faults(
        &self,
        hosts: &Hosts,
        phases: &[PlannedPhase],
    ) -> Result<(Vec<PlannedFault>, Hosts), FileError> {
        // Until it is known what is hit, as many as there will be.
        let hosts = &hosts.clone().watching(std::iter::empty());
        let phase = phases.iter().find(|phase| phase.phase == Phase::Fault).map_or(Delay::ZERO, |phase| phase.length);
        let mut planned = Vec::new();
        // Of each of them, the place of its entry in the file: a chaos plans many.
        let mut entries = Vec::new();
        for (index, entry) in self.experiment.faults.iter().enumerate() {
            let at = format!("faults.{index}");
            let (starts, ends) = self.span(&at, entry, phase)?;
            let seed = derive(self.experiment.seed.0, index as u64 + 1);
            if let Some(chaos) = &entry.chaos {
                self.whole(&at, entry)?;
                let length = Delay::from_ns(ends.ns() - starts.ns());
                self.rounds(&at, chaos, hosts, seed)?;
                let drawn = faults::draw(chaos, hosts, length, seed).or_else(|complaint| {
                    let key = format!("chaos.{}", complaint.key).into();
                    self.complain_in(&at, crate::experiment::Complaint { key, ..complaint })
                })?;
                let later = |time: Delay| Delay::from_ns(starts.ns() + time.ns());
                planned.extend(drawn.into_iter().map(|Drawn { fault, starts, ends }| PlannedFault {
                    severities: vec![Arc::from(fault)],
                    periods: vec![PlannedPeriod { severity: 0, starts: later(starts), ends: later(ends) }],
                }));
                entries.resize(planned.len(), index);
                continue;
            }
            let fault = faults::from_entry(entry, hosts, seed).or_else(|complaint| self.complain_in(&at, complaint))?;
            let limited = limits_packets(fault.as_ref(), self.experiment.network.mtu);
            limited.or_else(|complaint| self.complain_in(&at, complaint))?;
            planned.push(self.planned(&at, entry, fault, starts, ends)?);
            entries.push(index);
        }
        let severities = planned.iter().flat_map(|fault| &fault.severities);
        let hosts = hosts.clone().watching(severities.flat_map(|fault| fault.links()));
        for cast in casts(&hosts, &planned) {
            let hosts = &hosts;
            self.overlaps(hosts, &planned, &cast, &entries)?;
            self.one_way_cuts(hosts, &cast, &entries)?;
            self.able(hosts, &cast, &entries)?;
            self.provable(hosts, phases, &cast, &entries)?;
        }
        Ok((planned, hosts))
    }

    /// Refuses to cut one direction and not the other for so long that an encrypted overlay would lose both.
    fn one_way_cuts(&self, hosts: &Hosts, faults: &[PlannedFault], entries: &[usize]) -> Result<(), FileError> {
        let Some(overlay) = hosts.overlay().filter(|overlay| overlay.is_encrypted()) else { return Ok(()) };
        let (cuts, routes) = (cuts(hosts, faults), hosts.routes());
        for Cut { fault, from, to, span } in cuts.iter().filter(|cut| cut.span.1 - cut.span.0 >= SESSION.ns()) {
            // Where one host passes on what others send each other, no packet takes the links between these.
            if routes.of(from, to).len() > 1 {
                continue;
            }
            let back = cuts.iter().filter(|other| other.from == *to && other.to == *from).map(|other| other.span);
            if longest_outside(*span, back.collect()) >= SESSION.ns() {
                let message = format!(
                    "{from} → {to} is cut for {SESSION} or more and {to} → {from} is not: {overlay} needs both ends to hear \
                     each other, and would lose the other way, too; make it shorter, cut both ways, or write overlay: vxlan"
                );
                return self.complain(&format!("faults.{}", entries[*fault]), message);
            }
        }
        Ok(())
    }

    /// Refuses a chaos whose shortest rounds could not prove one of its kinds, whatever is drawn.
    fn rounds(&self, at: &str, chaos: &ChaosFault, hosts: &Hosts, seed: u64) -> Result<(), FileError> {
        let kinds = faults::kinds(chaos, hosts, seed).or_else(|complaint| {
            let key = format!("chaos.{}", complaint.key).into();
            self.complain_in(at, crate::experiment::Complaint { key, ..complaint })
        })?;
        for kind in kinds {
            limits_packets(kind.as_ref(), self.experiment.network.mtu).or_else(|complaint| {
                self.complain_in(at, crate::experiment::Complaint { key: "chaos.faults".into(), ..complaint })
            })?;
            let name = kind.kind();
            let alone = PlannedFault { severities: vec![Arc::from(kind)], periods: Vec::new() };
            if let Err((need, what)) = lasts(&alone, chaos.run.least, hosts) {
                let message = format!(
                    "a round of {} is too short to prove {name} by {what}: it takes at least {need}; write run: {need}..{}",
                    chaos.run.least,
                    chaos.run.most.max(need)
                );
                return self.complain(&format!("{at}.chaos.run"), message);
            }
        }
        Ok(())
    }

    /// From when to when, from the start of the phase.
    fn span(&self, at: &str, entry: &FaultEntry, phase: Delay) -> Result<(Delay, Delay), FileError> {
        let starts = entry.start;
        if starts >= phase {
            return self.complain(
                &format!("{at}.start"),
                format!(
                    "the fault would begin {starts} into a phase of {phase}, after its end; start is counted from the \
                     beginning of the phase 'fault'"
                ),
            );
        }
        let left = Delay::from_ns(phase.ns() - starts.ns());
        match entry.length {
            Some(length) if length > left || length == Delay::ZERO => self.complain(
                &format!("{at}.length"),
                format!("from {starts} on, the fault can last up to {left}; the phase 'fault' ends then"),
            ),
            Some(length) => Ok((starts, Delay::from_ns(starts.ns() + length.ns()))),
            None => Ok((starts, phase)),
        }
    }

    /// Refuses flap and ramp where they mean nothing.
    fn whole(&self, at: &str, entry: &FaultEntry) -> Result<(), FileError> {
        for (key, given) in [("flap", entry.flap.is_some()), ("ramp", entry.ramp.is_some())] {
            if given {
                let message = "chaos has its own timing; leave this out".to_owned();
                return self.complain(&format!("{at}.{key}"), message);
            }
        }
        Ok(())
    }

    fn planned(
        &self,
        at: &str,
        entry: &FaultEntry,
        fault: Box<dyn Fault>,
        starts: Delay,
        ends: Delay,
    ) -> Result<PlannedFault, FileError> {
        let length = ends.ns() - starts.ns();
        let from = |ns: u64| Delay::from_ns(starts.ns() + ns);
        match (entry.flap, entry.ramp) {
            (Some(_), Some(_)) => {
                self.complain(&format!("{at}.ramp"), "flap and ramp cannot be combined; write one of them".to_owned())
            }
            (None, None) => Ok(PlannedFault {
                severities: vec![Arc::from(fault)],
                periods: vec![PlannedPeriod { severity: 0, starts, ends }],
            }),
            (Some(flap), None) => {
                let key = format!("{at}.flap");
                let at_once = fault.is_stall() || fault.impairment().is_some();
                let least = if at_once { LEAST_STALL } else { LEAST_PERIOD };
                if flap.on < least || flap.off < LEAST_PERIOD {
                    let message = format!(
                        "{} has to last {least} at least each time, and to be off for {LEAST_PERIOD}",
                        fault.kind()
                    );
                    return self.complain(&key, message);
                }
                let heals = fault.heals_within();
                if flap.off < heals {
                    let message = format!(
                        "off: {} is too short: after each {} a node may take {heals} to start again; write off: {heals} or \
                         more",
                        flap.off,
                        fault.kind()
                    );
                    return self.complain(&key, message);
                }
                let every = flap.on.ns() + flap.off.ns();
                let count = length.div_ceil(every);
                if count > MOST_PERIODS {
                    return self.complain(&key, format!("that is {count} times; write longer times"));
                }
                let period = |number: u64| PlannedPeriod {
                    severity: 0,
                    starts: from(number * every),
                    ends: from((number * every + flap.on.ns()).min(length)),
                };
                // What would be cut short at the end would not be proven either.
                let periods: Vec<PlannedPeriod> = (0..count)
                    .map(period)
                    .filter(|period| period.ends.ns() - period.starts.ns() >= flap.on.ns().min(length))
                    .collect();
                Ok(PlannedFault { severities: vec![Arc::from(fault)], periods })
            }
            (None, Some(ramp)) => {
                let key = format!("{at}.ramp.steps");
                let steps = ramp.steps.0;
                if !(2..=MOST_STEPS).contains(&steps) {
                    return self
                        .complain(&key, format!("a ramp of {steps} steps is not possible; write 2 to {MOST_STEPS}"));
                }
                let mut severities: Vec<Arc<dyn Fault>> = Vec::new();
                for step in 1..steps {
                    let Some(less) = fault.scaled(step as f64 / steps as f64) else {
                        let message = format!(
                            "{} cannot be injected in steps of this size; leave ramp out, or use fewer steps",
                            fault.kind()
                        );
                        return self.complain(&key, message);
                    };
                    severities.push(Arc::from(less));
                }
                severities.push(Arc::from(fault));
                let edge = |step: u64| from(length / steps * step);
                let period = |step: u64| PlannedPeriod {
                    severity: step as usize,
                    starts: edge(step),
                    ends: if step + 1 == steps { ends } else { edge(step + 1) },
                };
                Ok(PlannedFault { severities, periods: (0..steps).map(period).collect() })
            }
        }
    }
}

/// The links that faults cut, and when.
fn cuts(hosts: &Hosts, faults: &[PlannedFault]) -> Vec<Cut> {
    let mut cuts = Vec::new();
    for (at, fault) in faults.iter().enumerate() {
        for period in &fault.periods {
            let Some(severity) = fault.severities.get(period.severity) else { continue };
            let span = (period.starts.ns(), period.ends.ns());
            let asked = severity.expectations(hosts).into_iter();
            let lost = asked.filter(|one| one.quantity == Quantity::Loss && one.hit && one.asked >= CUT);
            cuts.extend(lost.filter_map(|one| match one.subject {
                Subject::Pair { from, to } => Some(Cut { fault: at, from, to, span }),
                _ => None,
            }));
        }
    }
    cuts
}

/// The longest stretch of a span that lies in none of the others, ns.
fn longest_outside(span: (u64, u64), mut others: Vec<(u64, u64)>) -> u64 {
    others.sort_unstable();
    let (mut from, mut longest) = (span.0, 0);
    for (starts, ends) in others {
        longest = longest.max(starts.min(span.1).saturating_sub(from));
        from = from.max(ends);
    }
    longest.max(span.1.saturating_sub(from))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{Plan, experiment::Source};

    fn plan(overlay: &str, faults: &str) -> Result<Plan, FileError> {
        let text = format!(
            "network: {{ overlay: {overlay} }}\nload: {{ rate: 400/s }}\nobjective: {{ p99: 1s }}\n\
             phases: {{ warm-up: 20s, baseline: 10s, fault: 60s, recovery: 20s }}\nfaults: [{faults}]\n"
        );
        Plan::new(&Source::from_text(Path::new("e.yaml"), text).unwrap())
    }

    #[test]
    fn a_long_cut_of_one_direction_is_refused_where_an_overlay_would_lose_both() {
        const ONE: &str = "{ partition: { from: n2, to: n1 } }";
        const LATE: &str = "{ partition: { from: n2, to: n1 } }, { partition: { from: n1, to: n2 }, start: 55s }";
        for (overlay, faults) in [("wireguard", ONE), ("wireguard+vxlan", ONE), ("openvpn", ONE), ("wireguard", LATE)] {
            let error = plan(overlay, faults).err().unwrap_or_else(|| panic!("{overlay}: {faults} was taken"));
            let error = error.to_string();
            let says = format!("n2 → n1 is cut for 50s or more and n1 → n2 is not: {overlay} needs");
            assert!(error.contains(&says) && error.contains("overlay: vxlan"), "{error}");
        }
        for (overlay, faults) in [
            ("vxlan", ONE),
            ("none", ONE),
            ("wireguard", "{ partition: { from: n2, to: n1 }, length: 45s }"),
            ("wireguard", "{ partition: { isolate: n2 } }"),
            ("wireguard", "{ partition: { from: n2, to: n1 } }, { partition: { from: n1, to: n2 } }"),
            ("openvpn", "{ partition: { from: n2, to: n3 } }"),
        ] {
            assert!(plan(overlay, faults).is_ok(), "{overlay}: {faults}: {}", plan(overlay, faults).unwrap_err());
        }
    }

    #[test]
    fn what_lies_in_no_other_span_is_found_wherever_they_lie() {
        assert_eq!(longest_outside((10, 70), vec![]), 60);
        assert_eq!(longest_outside((10, 70), vec![(0, 20), (80, 90)]), 50);
        assert_eq!(longest_outside((10, 70), vec![(60, 65), (20, 30), (25, 40)]), 20);
        assert_eq!(longest_outside((10, 70), vec![(0, 100)]), 0);
    }
}
