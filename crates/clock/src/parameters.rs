//! The file that tells processes how their wall clock differs from the machine's.
//!
//! One `Parameters` at the start of a mapped file: written by [`crate::HostClock`], read by the
//! preloaded object in each process. Both sides compile this one file, hence only `core` here.
//!
//! Nothing a writer does, not even to die halfway, may make a reader wait: a reader is a database
//! asking for the time, perhaps inside a signal handler. So there are two slots and a generation
//! whose lowest bit names the slot in force (a sequence latch): a writer fills the other slot, then
//! turns the generation. A reader that finds another generation after reading than before reads again,
//! which happens only when a whole write came between.

use core::sync::atomic::{AtomicI64, AtomicU64, Ordering, fence};

/// First eight bytes of the file: who wrote it, and the version of this layout (last byte).
pub const MAGIC: u64 = u64::from_be_bytes(*b"BrwnClk\x02");

/// The environment variable that names the file.
pub const FILE_VARIABLE: &str = "BROWNOUT_CLOCK_FILE";

// The preloaded object needs neither limit.
/// The largest offset either way, in nanoseconds: 20 years. Enough to pass the ends of NTP's era (2036) and of 32-bit
/// seconds (2038); little enough to tell the wall clock from the monotonic one by its value, on which the
/// translation of deadlines rests.
#[allow(dead_code)]
pub const MAX_OFFSET_NS: i64 = 20 * 365 * 86_400 * 1_000_000_000;

/// The largest drift either way, in parts per 10⁹: 90 %. The clock always goes forward.
#[allow(dead_code)]
pub const MAX_DRIFT_PPB: i64 = 900_000_000;

/// The bits behind the point of [`Shift::rate`]. Readers multiply and shift; a division by 10⁹ of a
/// 128-bit product would cost more than all the rest of the call.
const RATE_BITS: u32 = 62;

/// How a shown clock follows from the real one:
/// shown = real + offset + rate · (real − since).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shift {
    /// Nanoseconds by which the shown clock was ahead at `since_ns`.
    pub offset_ns: i64,
    /// Nanoseconds gained per real nanosecond, in units of 2⁻⁶². Magnitude below one.
    pub rate: i64,
    /// Real time, in nanoseconds since 1970, from which the rate counts.
    pub since_ns: i64,
}

// Each side uses a part of this.
#[allow(dead_code)]
impl Shift {
    /// The clock of the machine itself.
    pub const NONE: Shift = Shift { offset_ns: 0, rate: 0, since_ns: 0 };

    /// The rate that gains `gained_ns` in `within_ns` (must not be zero) of real time.
    pub fn rate_of(gained_ns: i64, within_ns: i64) -> i64 {
        ((i128::from(gained_ns) << RATE_BITS).checked_div(i128::from(within_ns)).unwrap_or(0)) as i64
    }

    /// The rate in nanoseconds per second, rounded.
    pub fn drift_ppb(&self) -> i64 {
        ((i128::from(self.rate) * 1_000_000_000 + (1 << (RATE_BITS - 1))) >> RATE_BITS) as i64
    }

    /// Nanoseconds by which the shown clock is ahead when the real one says `real_ns`.
    #[inline]
    pub fn skew_at(&self, real_ns: i64) -> i64 {
        self.offset_ns.saturating_add(self.gained_in(real_ns.saturating_sub(self.since_ns)))
    }

    #[inline]
    fn gained_in(&self, elapsed_ns: i64) -> i64 {
        // Half a unit more, so that the shift rounds.
        ((i128::from(elapsed_ns) * i128::from(self.rate) + (1 << (RATE_BITS - 1))) >> RATE_BITS) as i64
    }

    /// The real time from which on the shown clock says `shown_ns`: the inverse of real + skew.
    pub fn real_at(&self, shown_ns: i64) -> i64 {
        if self.rate == 0 {
            return shown_ns.saturating_sub(self.offset_ns);
        }
        // Newton's method on a straight line: the first step is as good as a double's 53 bits, the
        // second exact but for rounding. (A division of 128 bits is not to be had without a runtime.)
        let slope = 1.0 + self.rate as f64 / (1_u64 << RATE_BITS) as f64;
        let ahead = shown_ns.saturating_sub(self.offset_ns).saturating_sub(self.since_ns);
        let mut elapsed = ahead;
        for _ in 0..3 {
            let beyond = elapsed.saturating_add(self.gained_in(elapsed)).saturating_sub(ahead);
            elapsed = elapsed.saturating_sub((beyond as f64 / slope) as i64);
        }
        // Rounded up: who waits until then must not wake before.
        if elapsed.saturating_add(self.gained_in(elapsed)) < ahead {
            elapsed += 1;
        }
        self.since_ns.saturating_add(elapsed)
    }
}

/// The start of the file. All zero but for the magic, it means no shift: a new file is in force at once.
#[repr(C)]
pub struct Parameters {
    magic: AtomicU64,
    generation: AtomicU64,
    slots: [Slot; 2],
}

/// One [`Shift`].
#[repr(C)]
struct Slot {
    offset_ns: AtomicI64,
    rate: AtomicI64,
    since_ns: AtomicI64,
}

impl Slot {
    const fn new() -> Self {
        Slot { offset_ns: AtomicI64::new(0), rate: AtomicI64::new(0), since_ns: AtomicI64::new(0) }
    }
}

// Each side uses a part of this.
#[allow(dead_code)]
impl Parameters {
    /// Parameters that shift nothing, and are of no file.
    pub const fn none() -> Self {
        Parameters { magic: AtomicU64::new(MAGIC), generation: AtomicU64::new(0), slots: [Slot::new(), Slot::new()] }
    }

    /// Are these bytes such parameters, of this version?
    pub fn is_valid(&self) -> bool {
        self.magic.load(Ordering::Acquire) == MAGIC
    }

    /// Marks a new, empty file as such parameters.
    pub fn mark(&self) {
        self.magic.store(MAGIC, Ordering::Release);
    }

    /// The shift in force.
    #[inline]
    pub fn load(&self) -> Shift {
        loop {
            let generation = self.generation.load(Ordering::Acquire);
            let slot = if generation & 1 == 0 { &self.slots[0] } else { &self.slots[1] };
            let shift = Shift {
                offset_ns: slot.offset_ns.load(Ordering::Relaxed),
                rate: slot.rate.load(Ordering::Relaxed),
                since_ns: slot.since_ns.load(Ordering::Relaxed),
            };
            fence(Ordering::Acquire);
            if self.generation.load(Ordering::Relaxed) == generation {
                return shift;
            }
        }
    }

    /// Puts another shift in force. One writer at a time.
    pub fn store(&self, shift: Shift) {
        let next = self.generation.load(Ordering::Relaxed).wrapping_add(1);
        let slot = if next & 1 == 0 { &self.slots[0] } else { &self.slots[1] };
        // A reader that sees any of what follows must also see that the generation of this slot has passed.
        fence(Ordering::Release);
        slot.offset_ns.store(shift.offset_ns, Ordering::Relaxed);
        slot.rate.store(shift.rate, Ordering::Relaxed);
        slot.since_ns.store(shift.since_ns, Ordering::Relaxed);
        self.generation.store(next, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;
    /// In 2026.
    const NOW: i64 = 1_790_000_000 * SECOND;

    fn drifting(offset_ns: i64, ppb: i64) -> Shift {
        Shift { offset_ns, rate: Shift::rate_of(ppb, SECOND), since_ns: NOW }
    }

    #[test]
    fn a_drift_gains_its_parts_per_billion() {
        for ppb in [0, 1, -1, 50_000, -50_000, 900_000_000, -900_000_000] {
            let shift = drifting(7, ppb);
            assert_eq!(shift.drift_ppb(), ppb);
            for seconds in [0, 1, 60, 86_400, 30 * 86_400] {
                assert_eq!(shift.skew_at(NOW + seconds * SECOND), 7 + seconds * ppb, "{ppb} ppb for {seconds} s");
            }
        }
    }

    #[test]
    fn the_real_time_of_a_shown_one_is_found_to_the_nanosecond() {
        for offset in [0, 3_600 * SECOND, -3_600 * SECOND, 600_000_000 * SECOND] {
            for ppb in [0, 1, -200_000, 123_456_789, 900_000_000, -900_000_000] {
                let shift = drifting(offset, ppb);
                for later in [0, 1, 999, SECOND, 999 * SECOND, 1_000 * SECOND, 1_001 * SECOND, 10_000_000 * SECOND] {
                    let real = NOW + later;
                    let shown = real + shift.skew_at(real);
                    let found = shift.real_at(shown);
                    // A clock that is slow shows the same nanosecond for several real ones, a fast one skips some.
                    let early = shown - (found + shift.skew_at(found));
                    assert!((-1..=0).contains(&early), "{shift:?} at {later}: {early} ns early");
                    assert!((found - real).abs() <= 10, "{shift:?} at {later}: {found} for {real}");
                }
            }
        }
    }

    #[test]
    fn a_reader_never_sees_half_a_change() {
        const CHANGES: u64 = 1_000;
        let parameters = Parameters::none();
        let read = || {
            let (mut changes, mut last) = (0, 0);
            while changes < CHANGES {
                let Shift { offset_ns, rate, since_ns } = parameters.load();
                assert_eq!([rate, since_ns], [offset_ns; 2]);
                assert!(offset_ns >= last, "a change was taken back");
                changes += u64::from(offset_ns != last);
                last = offset_ns;
            }
        };
        std::thread::scope(|scope| {
            let readers = [scope.spawn(read), scope.spawn(read)];
            let mut number = 0;
            // Also when they end by failing.
            while number < 1_000_000 || !readers.iter().all(|reader| reader.is_finished()) {
                number += 1;
                parameters.store(Shift { offset_ns: number, rate: number, since_ns: number });
            }
        });
    }
}
