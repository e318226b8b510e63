//! How often processes are polled and nodes are asked: often enough for the shortest stall that is planned.

use std::time::Duration;

use brownout_units::Delay;

/// Without short stalls ten times a second is enough, and costs next to nothing.
const SLOWEST: Duration = Duration::from_millis(100);
/// A look at a process takes some 10 µs of a processor.
const FASTEST_LOOK: Duration = Duration::from_millis(5);
/// A question costs the node itself some 50 µs.
const FASTEST_BEAT: Duration = Duration::from_millis(10);
/// Looks at a process in the shortest stall, as far as they may be so frequent.
const LOOKS: u32 = 20;
/// Questions to a node in it.
const BEATS: u32 = 10;

/// Shorter stalls cannot be distinguished from a running process that is off the CPU between two looks.
pub const LEAST_STALL: Delay = Delay::from_ms(50);

/// Between two looks, and between two questions. The same from the trial's beginning to its end: what looking costs, the baseline
/// pays as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampling {
    /// Between two looks at a process.
    pub look: Duration,
    /// Between two questions to a node.
    pub beat: Duration,
}

impl Sampling {
    /// For a shortest stall of this length; for none, what long ones take.
    pub fn of(shortest: Option<Delay>) -> Sampling {
        let length = shortest.map_or(Duration::MAX, Delay::duration);
        Sampling {
            look: (length / LOOKS).clamp(FASTEST_LOOK, SLOWEST),
            beat: (length / BEATS).clamp(FASTEST_BEAT, SLOWEST),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shorter_stalls_are_looked_at_more_often_within_bounds() {
        let sampling = |ms| {
            let sampling = Sampling::of(Some(Delay::from_ms(ms)));
            (sampling.look.as_millis(), sampling.beat.as_millis())
        };
        assert_eq!(sampling(50), (5, 10));
        assert_eq!(sampling(200), (10, 20));
        assert_eq!(sampling(10_000), (100, 100));
        assert_eq!(Sampling::of(None), Sampling { look: SLOWEST, beat: SLOWEST });
    }
}
