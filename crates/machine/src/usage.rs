//! How the processors of a lab were used since the machine began.
//!
//! What is in use is what is not idle. Most kernels look at each of their ticks who runs, and count the whole tick for that: work
//! that begins and ends between ticks, or with each of them, is counted for a fraction or for a multiple of itself (on one machine, of 1.35
//! processors in use 1.15 or 1.83, depending on how the pace of the load fell onto the ticks). When a processor becomes idle and
//! when it no longer is they know exactly, because they stop the ticks for so long.

use std::{fs, io};

use crate::{Processors, tick_ns};

/// CPU time of the lab's processors up to now, ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// In use by anything: programs, the kernel, interrupts. Where a quota is the limit, by all that it holds for.
    pub busy_ns: u64,
    /// Spent in interrupts, softirqs among them: packets are moved in these.
    pub interrupts_ns: u64,
    /// Taken by the hypervisor for other machines.
    pub stolen_ns: u64,
    /// In use by anything, whatever the quota.
    pub all_ns: u64,
}

impl Usage {
    /// As of now, which is `now_ns` on the monotonic clock: whoever asks has that clock.
    pub fn now(processors: &Processors, now_ns: u64) -> io::Result<Self> {
        let mut usage = of(&fs::read_to_string("/proc/stat")?, now_ns, |cpu| processors.has(cpu));
        usage.busy_ns = processors.used_of_quota_ns().unwrap_or(usage.all_ns);
        Ok(usage)
    }

    /// What was used since an earlier moment.
    pub fn since(&self, earlier: &Usage) -> Usage {
        // A clock and a counter that began at different times have a difference of any sign; what it grows by has none.
        let grown = |later: u64, earlier: u64| (later.wrapping_sub(earlier) as i64).max(0) as u64;
        Usage {
            busy_ns: grown(self.busy_ns, earlier.busy_ns),
            interrupts_ns: self.interrupts_ns.saturating_sub(earlier.interrupts_ns),
            stolen_ns: self.stolen_ns.saturating_sub(earlier.stolen_ns),
            all_ns: grown(self.all_ns, earlier.all_ns),
        }
    }
}

/// The lines "cpuN" of `/proc/stat` (proc(5)): user nice system idle iowait irq softirq steal guest guest_nice, in ticks.
/// Read at `now_ns`, since the machine began.
fn of(stat: &str, now_ns: u64, counts: impl Fn(usize) -> bool) -> Usage {
    let mut usage = Usage::default();
    for line in stat.lines() {
        let mut fields = line.split_ascii_whitespace();
        let number = fields.next().and_then(|name| name.strip_prefix("cpu")?.parse().ok());
        if !number.is_some_and(&counts) {
            continue;
        }
        let ticks: Vec<u64> = fields.map_while(|field| field.parse().ok()).collect();
        let &[_user, _nice, _system, idle, iowait, irq, softirq, steal, ..] = ticks.as_slice() else { continue };
        usage.all_ns = usage.all_ns.wrapping_add(now_ns).wrapping_sub((idle + iowait + steal) * tick_ns());
        usage.interrupts_ns += (irq + softirq) * tick_ns();
        usage.stolen_ns += steal * tick_ns();
    }
    usage.busy_ns = usage.all_ns;
    usage
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use rustix::time::{ClockId, clock_gettime};

    use super::*;

    /// By a clock that begins with the test: what usage grows by has no zero.
    fn usage(processors: &Processors, begun: Instant) -> Usage {
        Usage::now(processors, begun.elapsed().as_nanos() as u64).unwrap()
    }

    const STAT: &str = "cpu  30 1 15 2000 50 3 4 7 4 0\n\
                        cpu0 10 1 5 1000 25 2 3 7 4 0\n\
                        cpu1 20 0 10 1000 25 1 1 0 0 0\n\
                        intr 5\n";

    #[test]
    fn the_machine_is_busy_with_all_but_waiting() {
        let ticks = |usage: Usage| [usage.busy_ns, usage.interrupts_ns, usage.stolen_ns].map(|ns| ns / tick_ns());
        let now_ns = 1_060 * tick_ns();
        assert_eq!(ticks(of(STAT, now_ns, |_| true)), [28 + 35, 7, 7]);
        assert_eq!(ticks(of(STAT, now_ns, |cpu| cpu == 1)), [35, 2, 0], "of those that the lab may use");
        assert_eq!(of("cpu 1 2\ncpu0 3", now_ns, |_| true), Usage::default());
        // As long as the counters are, whatever they and the clock began with.
        let (before, after) = (of(STAT, 9, |_| true), of(&STAT.replace("1000", "1010"), 9 + 15 * tick_ns(), |_| true));
        assert_eq!(ticks(after.since(&before)), [2 * 5, 0, 0]);
    }

    /// Work that begins with each tick of the kernel, or between them, is counted for what it is.
    #[test]
    fn work_in_small_pieces_is_counted_for_what_it_takes() {
        let own_ns = || {
            let now = clock_gettime(ClockId::ThreadCPUTime);
            now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
        };
        // Of a machine with other work this says only that no less is counted.
        let processors = Processors::of_this_process();
        let begun = Instant::now();
        let (before, own) = (usage(&processors, begun), own_ns());
        while begun.elapsed().as_millis() < 2_000 {
            let piece = Instant::now();
            while piece.elapsed().as_micros() < 700 {
                std::hint::spin_loop();
            }
            std::thread::sleep(std::time::Duration::from_micros(1_800));
        }
        let (own, all) = (own_ns() - own, usage(&processors, begun).since(&before).all_ns);
        assert!(all + 40_000_000 >= own, "{all} ns of {own} ns");
    }

    #[test]
    fn work_shows() {
        let processors = Processors::of_this_process();
        let begun = Instant::now();
        let before = usage(&processors, begun);
        while usage(&processors, begun).since(&before).all_ns < 50_000_000 {
            assert!(begun.elapsed().as_secs() < 60, "a minute of work does not show");
        }
    }
}
