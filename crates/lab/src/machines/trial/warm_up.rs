//! The warm-up of a trial over several machines.

use brownout_record::MachineRole;

use super::Running;
use crate::{
    LabError,
    machines::message::ToPart,
    paces,
    plan::INTERVAL_NS,
    warmup::{self, Second, Settling},
};

impl Running<'_> {
    /// Fills, floods and settles. Returns its end, on the axis, and why it ended.
    pub(super) fn warm_up(&mut self, starts: u64, length_ns: u64) -> Result<(u64, &'static str), LabError> {
        let limit = starts + length_ns;
        let loads = || self.fleet.with(MachineRole::Load);
        loads().for_each(|part| part.tell(&ToPart::Fill));
        loop {
            let mark = self.next_mark();
            self.until(mark, "warm-up (filling)")?;
            let filled = self.sum(|tick| tick.filled);
            if let Some(refused) = self.ticks.values().find_map(|tick| tick.refused.clone()) {
                return Err(LabError::Trial(format!("the table cannot be filled: {refused}")));
            }
            if filled.1 > 0 && filled.0 >= filled.1 {
                break;
            }
            if mark >= limit {
                return Err(LabError::Trial(format!(
                    "the warm-up ended before the table was full ({} of {} rows); give phases.warm-up more time, or write fewer \
                     rows: load.population",
                    filled.0, filled.1
                )));
            }
        }
        let plan = self.trial.plan;
        let from_ns = self.ahead();
        self.tell_loads(&ToPart::Flood { from_ns });
        let until = (starts + (length_ns as f64 * warmup::FLOOD_SHARE) as u64).max(from_ns + 3 * INTERVAL_NS);
        let mut flood = Vec::new();
        while self.axis_now() < until {
            let mark = self.next_mark();
            self.until(mark, "warm-up (flood)")?;
            if mark > from_ns + INTERVAL_NS {
                flood.push(self.per_second(|tick| tick.delivered));
            }
        }
        let newer = &flood[flood.len() / 2..];
        let capacity = newer.iter().sum::<f64>() / newer.len().max(1) as f64;
        let (measured, words) = paces::measured(plan, capacity)?;
        let from_ns = self.ahead();
        self.tell_loads(&ToPart::Measure { capacity, from_ns });
        self.shares.measure(measured, from_ns - self.here.axis_ns);
        let text = format!("the flood was answered at {capacity:.0}/s; the load from here on is {words}");
        self.seen("capacity", "load", &text)?;
        self.progress.note(&text);
        self.until(from_ns, "warm-up (flood)")?;
        let mut settling = Settling::within(limit.saturating_sub(from_ns));
        loop {
            let mark = self.next_mark();
            self.until(mark, "warm-up (settling)")?;
            let second = Second {
                offered: self.ticks.values().map(|tick| tick.offered).sum(),
                delivered: self.ticks.values().map(|tick| tick.delivered).sum(),
                p50_ns: self.ticks.values().map(|tick| tick.p50_ns).max().unwrap_or(0),
            };
            settling.add(second);
            // The end is told ahead, so that it is later than this.
            let ends = self.next_mark_after(self.ahead());
            if settling.is_over() {
                return Ok((ends, "stationary"));
            }
            if mark >= limit {
                let Some(doubt) = settling.doubt() else { return Ok((ends, "stationary")) };
                let text = format!(
                    "the warm-up ended at its limit of {} s before latency was stationary: {doubt}; give phases.warm-up more time",
                    length_ns / 1_000_000_000
                );
                self.seen("warning", "warm-up", &text)?;
                self.progress.note(&text);
                return Ok((ends, "limit"));
            }
        }
    }
}
