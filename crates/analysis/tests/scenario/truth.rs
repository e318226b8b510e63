//! What the faults of a scenario really do at a moment.

use super::*;

/// What is true of a subject at a moment.
pub struct Truth {
    /// Sums of what is asked: delays, times, offsets.
    pub sum: f64,
    /// 1 − Π(1 − share).
    pub share: f64,
    /// The smallest limit.
    pub least: Option<f64>,
}

impl Made {
    /// What it really does to a subject at a moment (seconds since the fault phase began); the seconds since it does.
    fn acts(&self, subject: &Subject, quantity: Quantity, at: f64) -> Option<(f64, f64)> {
        let spills = matches!(&self.does, Does::Spills(to) | Does::SpillsIn(to, _) if to == subject);
        if quantity != self.quantity || self.does == Does::Nothing || !(spills || self.hits.contains(subject)) {
            return None;
        }
        if matches!(&self.does, Does::Gone(when) if when.iter().any(|(from, to)| at >= *from && at < *to)) {
            return None;
        }
        let (first, last) = (self.periods.first()?, self.periods.last()?);
        let period = match self.does {
            Does::NoPauses if at >= first.1 && at < last.2 => Some(first),
            Does::Stays if at >= last.1 => Some(last),
            _ => self.periods.iter().find(|period| at >= period.1 && at < period.2),
        }?;
        if matches!(&self.does, Does::SpillsIn(where_to, which) if where_to == subject
            && !which.iter().any(|number| self.periods.get(number - 1) == Some(period)))
        {
            return None;
        }
        let severity = if self.does == Does::FirstSeverity { 0 } else { period.0 };
        let value = match &self.does {
            Does::Otherwise(value, when) if when.iter().any(|(from, to)| at >= *from && at < *to) => *value,
            _ => self.asked[severity as usize],
        };
        Some((value, at - period.1))
    }

    /// What of its second quantity is really there.
    fn acts_also(&self, subject: &Subject, quantity: Quantity, at: f64) -> Option<f64> {
        self.also
            .filter(|_| self.does != Does::OnlyFirst && self.acts(subject, quantity, at).is_some())
            .map(|also| also.1)
    }
}

impl Scenario {
    pub fn truth(&self, subject: &Subject, quantity: Quantity, at_ns: u64) -> Truth {
        let at = (at_ns as f64 - self.fault_ns() as f64) / 1e9;
        let mut truth = Truth { sum: 0.0, share: 0.0, least: None };
        for (value, since) in self.acting().filter_map(|fault| fault.acts(subject, quantity, at)) {
            // A drift's offset grows with time.
            truth.sum += if quantity == Quantity::ClockDrift { value * since } else { value };
            truth.share = 1.0 - (1.0 - truth.share) * (1.0 - value);
            truth.least = Some(truth.least.map_or(value, |least| least.min(value)));
        }
        truth.sum += self.acting().filter_map(|fault| fault.acts_also(subject, quantity, at)).sum::<f64>();
        truth
    }

    /// When something held now is let go, because the delay is healed: the next end of a period, if the fault does go.
    pub fn next_healing(&self, subject: &Subject, at_ns: u64) -> u64 {
        let delays = self.faults.iter().filter(|fault| {
            matches!(fault.quantity, Quantity::OneWayDelay | Quantity::DelaySpread) && fault.does == Does::AsSaid
        });
        let own = delays.filter(|fault| fault.hits.contains(subject));
        let ends = own.flat_map(|fault| &fault.periods).map(|period| self.at(period.2));
        ends.filter(|end| *end > at_ns).min().unwrap_or(u64::MAX)
    }
}
