//! The open-loop schedule: when operations are meant to start, decided by the clock alone.

mod limiter;
mod profile;

pub(crate) use limiter::Limiter;
pub use profile::RateProfile;

use brownout_base::random::{Random, derive};

use crate::Arrivals;

/// The intended starts of one thread's part of an open loop.
///
/// Operation number *k* is due when the integral of the rate reaches *k*. Each start is computed from its number, never
/// by adding rounded gaps, so no error builds up: in f64 it is below 1 ns for 100 days. Constant arrivals deal the
/// numbers out to the threads in turn, so the union over all threads is the exact schedule. Poisson arrivals put the
/// sums of exponential gaps in the place of the numbers (time-rescaling: Daley and Vere-Jones, "An Introduction to the
/// Theory of Point Processes", theorem 7.4.I), one independent process per thread; their union is a Poisson process of
/// the whole rate.
#[derive(Debug)]
pub(crate) struct Schedule {
    start_ns: u64,
    profile: RateProfile,
    /// How much of the integral lies before the next start.
    count: f64,
    stride: f64,
    /// Of Poisson arrivals.
    random: Option<Random>,
    next_ns: u64,
}

impl Schedule {
    /// Part `thread` of `threads` of a schedule that begins at `start_ns`.
    pub(crate) fn new(
        start_ns: u64,
        profile: RateProfile,
        arrivals: Arrivals,
        thread: usize,
        threads: usize,
        seed: u64,
    ) -> Self {
        let stride = threads as f64;
        let (count, random) = match arrivals {
            Arrivals::Constant => (thread as f64, None),
            Arrivals::Poisson => {
                let mut random = Random::new(derive(seed, thread as u64));
                (stride * random.exponential(), Some(random))
            }
        };
        let mut schedule = Schedule { start_ns, profile, count, stride, random, next_ns: 0 };
        schedule.next_ns = schedule.at();
        schedule
    }

    fn at(&self) -> u64 {
        // Saturates: a rate of once in an aeon is due at the end of time.
        self.start_ns.saturating_add(self.profile.time_ns(self.count) as u64)
    }

    /// The next intended start.
    pub(crate) fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// Takes the next start if it is due at `now_ns`.
    pub(crate) fn take_due(&mut self, now_ns: u64) -> Option<u64> {
        if self.next_ns > now_ns {
            return None;
        }
        let due = self.next_ns;
        self.count += self.stride * self.random.as_mut().map_or(1.0, Random::exponential);
        self.next_ns = self.at();
        Some(due)
    }
}

#[cfg(test)]
mod tests;
