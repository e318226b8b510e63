//! Whether and when a request that failed is sent again.

use std::time::Duration;

use brownout_base::random::Random;

use crate::{ErrorClass, LoadError};

/// A set of [`ErrorClass`]es.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ErrorClasses(u32);

impl ErrorClasses {
    /// Every class that a retry can help with: all but [`ErrorClass::Mismatch`], [`ErrorClass::Missing`],
    /// [`ErrorClass::Invalid`], [`ErrorClass::Unexpected`], [`ErrorClass::Unwritable`] and [`ErrorClass::Abandoned`].
    pub fn transient() -> Self {
        let lasting = [
            ErrorClass::Mismatch,
            ErrorClass::Missing,
            ErrorClass::Invalid,
            ErrorClass::Unexpected,
            ErrorClass::Unwritable,
            ErrorClass::Abandoned,
        ];
        ErrorClass::all().filter(|class| !lasting.contains(class)).collect()
    }

    /// Whether the class is in the set.
    pub const fn contains(self, class: ErrorClass) -> bool {
        self.0 & 1 << class as u32 != 0
    }
}

impl FromIterator<ErrorClass> for ErrorClasses {
    fn from_iter<I: IntoIterator<Item = ErrorClass>>(classes: I) -> Self {
        ErrorClasses(classes.into_iter().fold(0, |set, class| set | 1 << class as u32))
    }
}

/// Whether and when a request that failed is sent again. The default is never.
///
/// A retry belongs to its operation: the response time runs from the intended start to the end of the last attempt.
/// Attempts are accounted separately as well ([`crate::Attempts`]). Each goes to the coordinator whose turn it is.
/// Nothing is retried after [`ErrorClass::Mismatch`] and [`ErrorClass::Missing`], and no attempt begins after the
/// operation's timeout.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Retries {
    /// How often a request is sent at most, including the first time: 1 means no retry.
    pub tries: u32,
    /// The failures that are retried.
    pub on: ErrorClasses,
    /// How long to wait before the next attempt.
    pub delay: RetryDelay,
    /// The failures after which the delay applies; after others the next attempt begins at once.
    pub delayed: ErrorClasses,
    /// An attempt that is not answered within this time is given up, and the next begins. `None`: an attempt lasts as
    /// long as its operation.
    pub attempt_timeout: Option<Duration>,
}

impl Default for Retries {
    fn default() -> Self {
        Retries {
            tries: 1,
            on: ErrorClasses::transient(),
            delay: RetryDelay::None,
            delayed: ErrorClasses::default(),
            attempt_timeout: None,
        }
    }
}

/// Delay before another attempt. Every delay is multiplied by a random factor from 0.75 to 1.25, so that operations
/// that failed together are not retried together, and kept between `min` and `max`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryDelay {
    /// Not at all.
    None,
    /// The same every time.
    Constant(Duration),
    /// Before retry number *k* (from 0): `min + (max − min) · k ÷ tries`.
    Linear {
        /// Before the first retry.
        min: Duration,
        /// What the delay would be one step after the last retry.
        max: Duration,
    },
    /// Doubled every time.
    Exponential {
        /// Before the first retry.
        min: Duration,
        /// Never more than this.
        max: Duration,
    },
}

impl Retries {
    /// Checks that the settings make sense.
    ///
    /// # Errors
    /// What is out of range, and what to write instead.
    pub fn check(&self) -> Result<(), LoadError> {
        let refuse = |what: &str, remedy| Err(LoadError::Config { what: what.to_owned(), remedy });
        if !(1..=1_000).contains(&self.tries) {
            return refuse("the number of tries is out of range", "write 1 (no retry) to 1000");
        }
        if let RetryDelay::Linear { min, max } | RetryDelay::Exponential { min, max } = self.delay
            && min > max
        {
            return refuse("the shortest delay of retries exceeds the longest", "exchange them");
        }
        if matches!(self.delay, RetryDelay::Exponential { min, .. } if min.is_zero()) {
            return refuse("an exponential delay of retries begins at 0 and stays there", "give it a shortest delay");
        }
        if self.attempt_timeout.is_some_and(|timeout| timeout < Duration::from_millis(1)) {
            return refuse("the timeout of an attempt is out of range", "write at least 1ms");
        }
        Ok(())
    }

    /// How long to wait after attempt number `attempt` (from 0) has failed with `class`, in ns; `None`: it was the
    /// last.
    pub(crate) fn wait_ns(&self, attempt: u32, class: ErrorClass, random: &mut Random) -> Option<u64> {
        let hopeless = matches!(class, ErrorClass::Mismatch | ErrorClass::Missing | ErrorClass::Abandoned);
        if attempt + 1 >= self.tries || hopeless || !self.on.contains(class) {
            return None;
        }
        Some(if self.delayed.contains(class) { self.delay_ns(attempt, random) } else { 0 })
    }

    fn delay_ns(&self, retry: u32, random: &mut Random) -> u64 {
        let (mean, min, max) = match self.delay {
            RetryDelay::None => return 0,
            RetryDelay::Constant(delay) => (delay.as_secs_f64(), Duration::ZERO, Duration::MAX),
            RetryDelay::Linear { min, max } => {
                let steps = f64::from(retry) / f64::from(self.tries);
                (min.as_secs_f64() + (max - min).as_secs_f64() * steps, min, max)
            }
            RetryDelay::Exponential { min, max } => (min.as_secs_f64() * 2f64.powi(retry.min(1_000) as i32), min, max),
        };
        let spread = 0.75 + random.below(1 << 32) as f64 / (1u64 << 33) as f64;
        ((mean * spread).clamp(min.as_secs_f64(), max.as_secs_f64()) * 1e9) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_set_has_what_was_put_in() {
        let set: ErrorClasses = [ErrorClass::Overloaded, ErrorClass::Abandoned].into_iter().collect();
        for class in ErrorClass::all() {
            assert_eq!(set.contains(class), matches!(class, ErrorClass::Overloaded | ErrorClass::Abandoned));
        }
    }

    #[test]
    fn only_the_configured_classes_are_tried_again_and_wrong_content_never() {
        let mut random = Random::new(1);
        let all = Retries { tries: 3, on: ErrorClass::all().collect(), ..Retries::default() };
        let some = Retries { tries: 3, on: [ErrorClass::ReadTimeout].into_iter().collect(), ..Retries::default() };
        for class in ErrorClass::all() {
            let hopeless = matches!(class, ErrorClass::Mismatch | ErrorClass::Missing | ErrorClass::Abandoned);
            assert_eq!(all.wait_ns(1, class, &mut random), (!hopeless).then_some(0), "{class:?}");
            assert_eq!(all.wait_ns(2, class, &mut random), None, "three tries are two retries");
            assert_eq!(some.wait_ns(0, class, &mut random).is_some(), class == ErrorClass::ReadTimeout);
            assert_eq!(Retries::default().wait_ns(0, class, &mut random), None);
        }
    }

    #[test]
    fn delays_grow_as_configured_and_stay_within_their_bounds() {
        let (min, max) = (Duration::from_millis(100), Duration::from_millis(1_000));
        let mut random = Random::new(1);
        let mean = |delay, retry, random: &mut Random| {
            let retries = Retries { tries: 10, delay, delayed: ErrorClass::all().collect(), ..Retries::default() };
            let waits = (0..2_000).filter_map(|_| retries.wait_ns(retry, ErrorClass::Overloaded, random));
            waits.sum::<u64>() / 2_000 / MS
        };
        for (delay, retry, range) in [
            (RetryDelay::None, 3, 0..=0),
            (RetryDelay::Constant(min), 5, 98..=102),
            (RetryDelay::Linear { min, max }, 5, 540..=560),
            (RetryDelay::Exponential { min, max }, 2, 392..=408),
            (RetryDelay::Exponential { min, max }, 8, 1_000..=1_000),
        ] {
            let mean = mean(delay, retry, &mut random);
            assert!(range.contains(&mean), "{delay:?} before retry {retry}: {mean} ms");
        }
    }
}
