//! The machine that the load runs on: what it is, and who used its processors between two readings.

use std::fs;

use brownout_base::clock::monotonic_ns;
use brownout_machine::{Processors, Usage};
use rustix::time::{ClockId, clock_gettime};

/// A reading of the CPU time used so far, ns.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Look {
    /// The moment, CLOCK_MONOTONIC.
    pub(super) at_ns: u64,
    /// Processors that this process may use, as CPU time per second, s.
    capacity: f64,
    /// Used by everything on them.
    machine: Usage,
    /// Used by this process.
    instrument: u64,
    /// Used by the engine's threads.
    load: u64,
}

impl Look {
    /// A reading before there is an engine.
    pub(super) fn now(at_ns: u64) -> Self {
        Look::at(at_ns, 0)
    }

    /// A reading, with what the engine's threads have used so far. What the kernel does not report counts as nothing.
    pub(super) fn at(at_ns: u64, load: u64) -> Self {
        let processors = Processors::of_this_process();
        let machine = Usage::now(&processors, monotonic_ns()).unwrap_or_default();
        Look { at_ns, capacity: processors.capacity(), machine, instrument: own_time(), load }
    }

    /// CPU time since an earlier reading, by the subjects of the run file.
    pub(super) fn since(&self, earlier: &Look) -> [(&'static str, u64); 5] {
        let machine = self.machine.since(&earlier.machine);
        [
            ("machine", machine.busy_ns),
            ("stolen", machine.stolen_ns),
            ("cores", (self.capacity * self.at_ns.saturating_sub(earlier.at_ns) as f64) as u64),
            ("load", self.load.saturating_sub(earlier.load)),
            ("instrument", self.instrument.saturating_sub(earlier.instrument)),
        ]
    }
}

/// CPU time of this process, ns.
fn own_time() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// Model of the first processor; empty if the kernel does not report it.
pub(super) fn cpu_model() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map(|(_, model)| model.trim().to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_difference_of_two_looks_is_what_was_used_between_them() {
        let machine = |busy_ns| Usage { busy_ns, stolen_ns: 1, ..Usage::default() };
        let earlier = Look { at_ns: 5, capacity: 2.0, machine: machine(100), instrument: 50, load: 40 };
        let later = Look { at_ns: 15, capacity: 2.0, machine: machine(112), instrument: 58, load: 47 };
        assert_eq!(
            later.since(&earlier),
            [("machine", 12), ("stolen", 0), ("cores", 20), ("load", 7), ("instrument", 8)]
        );
    }
}
