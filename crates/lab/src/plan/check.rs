//! The checks of an experiment file; each knows the place of its complaint.

use std::ops::RangeInclusive;

use brownout_analysis::MARGIN;
use brownout_units::{Count, Delay, Share};

use super::{
    narrow::to_u32,
    phase::{INTERVAL_NS, Phase, PlannedPhase},
};
use crate::experiment::{Complaint, Experiment, FileError, Source};

/// What IPv4 hosts have to take (RFC 791), and the most that a TUN carries.
const MTU: RangeInclusive<u64> = 576..=65_521;
/// Filling, flooding, and then as many settled seconds as stationarity is judged by.
const MIN_WARM_UP: Delay = Delay::from_secs(16);
/// Below, no number of trials says that there is no difference; above, everything is none.
const MARGINS: RangeInclusive<f64> = 0.001..=0.5;
/// Three intervals are the least of which one can be compared with the others.
const MIN_PHASE: Delay = Delay::from_secs(3);

/// An experiment file under examination.
pub(super) struct Check<'a> {
    pub(super) source: &'a Source,
    pub(super) experiment: &'a Experiment,
}

impl Check<'_> {
    pub(super) fn complain<T>(&self, key: &str, message: String) -> Result<T, FileError> {
        Err(self.source.complain(key, message))
    }

    /// The same for a complaint that does not know its place yet.
    pub(super) fn complain_in<T>(&self, section: &str, complaint: Complaint) -> Result<T, FileError> {
        let dot = if complaint.key.is_empty() { "" } else { "." };
        self.complain(&format!("{section}{dot}{}", complaint.key), complaint.message)
    }

    /// A number of something that cannot be any.
    pub(super) fn count(&self, key: &str, count: Count, allowed: RangeInclusive<u32>) -> Result<u32, FileError> {
        let number = to_u32(count.0);
        if !allowed.contains(&number) {
            let (least, most) = (allowed.start(), allowed.end());
            return self.complain(key, format!("{count} cannot be; write {least} to {most}"));
        }
        Ok(number)
    }

    pub(super) fn margin(&self) -> Result<Share, FileError> {
        let Some(margin) = self.experiment.margin else { return Ok(Share::new(MARGIN).unwrap_or_default()) };
        if !MARGINS.contains(&margin.fraction()) {
            let message = format!("{margin} cannot be the smallest change that matters; write 0.1% to 50%");
            return self.complain("margin", message);
        }
        Ok(margin)
    }

    pub(super) fn mtu(&self) -> Result<(), FileError> {
        let network = &self.experiment.network;
        if !MTU.contains(&network.mtu.0) {
            return self.complain(
                "network.mtu",
                format!(
                    "an MTU of {} bytes is not possible; write {} to {}, usually 1500",
                    network.mtu,
                    Count(*MTU.start()),
                    Count(*MTU.end())
                ),
            );
        }
        Ok(())
    }

    pub(super) fn phases(&self) -> Result<Vec<PlannedPhase>, FileError> {
        let phases = &self.experiment.phases;
        let wanted = [
            (Phase::WarmUp, Some(phases.warm_up)),
            (Phase::Baseline, Some(phases.baseline)),
            (Phase::Fault, phases.fault),
            (Phase::Recovery, phases.recovery),
        ];
        let mut planned = Vec::new();
        for (phase, length) in wanted {
            let key = format!("phases.{}", phase.name());
            let needed = !self.experiment.faults.is_empty();
            let says_faults = self.source.node("faults").is_some();
            let length = match length {
                // `faults: []` is written on purpose: as the others, but without a fault.
                Some(length) if !says_faults && matches!(phase, Phase::Fault | Phase::Recovery) => {
                    return self.complain(
                        &key,
                        format!("a phase of {length} without a fault; add faults: or leave the phase out"),
                    );
                }
                Some(length) => length,
                None if needed => {
                    return self.complain(
                        "phases",
                        format!("there are faults, but no phase '{}'; write {}: 20s", phase.name(), phase.name()),
                    );
                }
                None => continue,
            };
            let least = if phase == Phase::WarmUp { MIN_WARM_UP } else { MIN_PHASE };
            if length < least || !length.ns().is_multiple_of(INTERVAL_NS) {
                return self.complain(
                    &key,
                    format!(
                        "{length} is not a valid length; write a whole number of seconds, at least {least} (series are \
                         kept per second)"
                    ),
                );
            }
            if length > Delay::from_secs(7 * 24 * 3600) {
                return self.complain(&key, format!("{length} is longer than a week"));
            }
            planned.push(PlannedPhase { phase, length });
        }
        Ok(planned)
    }
}
