//! How the processors of a lab were used since the machine began.

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
    /// As of now.
    pub fn now(processors: &Processors) -> io::Result<Self> {
        let mut usage = of(&fs::read_to_string("/proc/stat")?, |cpu| processors.has(cpu));
        usage.busy_ns = processors.used_of_quota_ns().unwrap_or(usage.all_ns);
        Ok(usage)
    }

    /// What was used since an earlier moment.
    pub fn since(&self, earlier: &Usage) -> Usage {
        Usage {
            busy_ns: self.busy_ns.saturating_sub(earlier.busy_ns),
            interrupts_ns: self.interrupts_ns.saturating_sub(earlier.interrupts_ns),
            stolen_ns: self.stolen_ns.saturating_sub(earlier.stolen_ns),
            all_ns: self.all_ns.saturating_sub(earlier.all_ns),
        }
    }
}

/// The lines "cpuN" of `/proc/stat` (proc(5)): user nice system idle iowait irq softirq steal guest guest_nice, in ticks.
/// Guest time is counted in user time already.
fn of(stat: &str, counts: impl Fn(usize) -> bool) -> Usage {
    let mut usage = Usage::default();
    for line in stat.lines() {
        let mut fields = line.split_ascii_whitespace();
        let number = fields.next().and_then(|name| name.strip_prefix("cpu")?.parse().ok());
        if !number.is_some_and(&counts) {
            continue;
        }
        let ticks: Vec<u64> = fields.map_while(|field| field.parse().ok()).collect();
        let &[user, nice, system, _idle, _iowait, irq, softirq, steal, ..] = ticks.as_slice() else { continue };
        usage.all_ns += (user + nice + system + irq + softirq) * tick_ns();
        usage.interrupts_ns += (irq + softirq) * tick_ns();
        usage.stolen_ns += steal * tick_ns();
    }
    usage.busy_ns = usage.all_ns;
    usage
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  30 1 15 2000 50 3 4 7 4 0\n\
                        cpu0 10 1 5 1000 25 2 3 7 4 0\n\
                        cpu1 20 0 10 1000 25 1 1 0 0 0\n\
                        intr 5\n";

    #[test]
    fn the_machine_is_busy_with_all_but_waiting() {
        let ticks = |usage: Usage| [usage.busy_ns, usage.interrupts_ns, usage.stolen_ns].map(|ns| ns / tick_ns());
        assert_eq!(ticks(of(STAT, |_| true)), [53, 7, 7]);
        assert_eq!(ticks(of(STAT, |cpu| cpu == 1)), [32, 2, 0], "of those that the lab may use");
        assert_eq!(of("cpu 1 2\ncpu0 3", |_| true), Usage::default());
    }

    #[test]
    fn work_shows() {
        let processors = Processors::of_this_process();
        let before = Usage::now(&processors).unwrap();
        let begun = std::time::Instant::now();
        while Usage::now(&processors).unwrap().all_ns < before.all_ns + 50_000_000 {
            assert!(begun.elapsed().as_secs() < 60, "a minute of work does not show");
        }
    }
}
