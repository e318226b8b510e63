//! Parts that are lost in the middle of a trial: it goes on without a load, while others still send.

use std::time::Duration;

use brownout_base::clock::monotonic_ns;
use brownout_record::{Event, MachineRole};

use super::Running;
use crate::{
    LabError,
    machines::{fleet::Part, message::ToPart},
};

/// A part that has said nothing for so long is lost: it tells something in each interval.
const SILENT: Duration = Duration::from_secs(15);
/// What the event is called that a load is lost, and the trial goes on without it.
const LOAD_LOST: &str = "load-lost";

impl Running<'_> {
    /// Parts that can be heard tell something in each interval, until their record comes.
    pub(super) fn miss_the_silent(&mut self) {
        let now_ns = monotonic_ns();
        for part in &self.fleet.parts {
            let since_ns = now_ns - *self.heard_ns.entry(part.machine.clone()).or_insert(now_ns);
            if self.is_there(part) && since_ns > SILENT.as_nanos() as u64 {
                self.is_lost(part, &format!("it has said nothing for {} s", SILENT.as_secs()));
            }
        }
    }

    pub(super) fn is_lost(&mut self, part: &Part, why: &str) {
        self.lost.insert(part.machine.clone());
        self.is_missing(part, why);
        if self.owner.as_ref() == Some(&part.machine) {
            // Without a sign of life from here it ends by itself, and drops what it has made, while others still use it.
            let text = format!(
                "{} is lost, which has made what operations are sent to, and may have dropped it",
                part.machine
            );
            if let Err(error) = self.seen("failed", &part.machine, &text) {
                self.gone.get_or_insert(error);
            }
            self.is_inherited();
        }
    }

    /// Goes on without a part, where that can be.
    pub(super) fn is_missing(&mut self, part: &Part, why: &str) {
        let failed = match self.goes_on_without(part) {
            true => self.without(part, why).err(),
            false => Some(part.failed(why)),
        };
        if let Some(failed) = failed {
            self.gone.get_or_insert(failed);
        }
    }

    /// Another load drops in the end what one has made that does not.
    pub(super) fn is_inherited(&mut self) {
        let heir = self.fleet.with(MachineRole::Load).find(|other| self.is_there(other));
        self.owner = heir.map(|heir| heir.machine.clone());
        heir.into_iter().for_each(|heir| heir.tell(&ToPart::Inherit));
    }

    pub(super) fn is_there(&self, part: &Part) -> bool {
        !self.ended.contains_key(&part.machine) && !self.lost.contains(&part.machine)
    }

    /// Whether the trial does: all know what is to come, and others still send.
    fn goes_on_without(&self, part: &Part) -> bool {
        let is_other = |other: &Part| other.machine != part.machine && !self.missing.contains(&other.machine);
        self.ends_ns.is_some() && part.role == MachineRole::Load && self.fleet.with(MachineRole::Load).any(is_other)
    }

    /// Tells that the trial goes on without a load: what is still to come from it is never sent.
    fn without(&mut self, part: &Part, why: &str) -> Result<(), LabError> {
        let machine = &part.machine;
        self.missing.insert(machine.clone());
        self.ticks.remove(machine);
        let now_ns = monotonic_ns();
        let last_ns = self.heard_ns.get(machine).copied().unwrap_or(now_ns);
        self.progress.note(&format!(
            "WARNING: {machine} is lost ({why}); the trial goes on, and what is still to come from there is never sent"
        ));
        let event = Event {
            trial: Some(self.trial.row.trial),
            at_ns: self.recorder.at(last_ns),
            error_ns: now_ns - last_ns,
            kind: LOAD_LOST.to_owned(),
            subject: machine.clone(),
            text: why.to_owned(),
        };
        Ok(self.recorder.batch(|recorder| recorder.event(&event))?)
    }
}
