//! Pressure stall information: for how long somebody could have run and did not (Documentation/accounting/psi.rst).

use std::fs;

use crate::cgroup::{self, Version};

/// Time in which at least one task waited for a processor, ns since the counting began: in this process's own cgroup
/// where that counts it (version 2), else on the whole machine. None where the kernel does not count.
pub fn pressure_ns() -> Option<u64> {
    let groups = cgroup::own("cpu");
    let own = groups.iter().find(|directory| directory.version == Version::Two);
    let own = own.and_then(|directory| directory.read("cpu.pressure"));
    some(&own.or_else(|| fs::read_to_string("/proc/pressure/cpu").ok())?)
}

/// "some avg10=0.00 avg60=0.00 avg300=0.00 total=123", in µs.
fn some(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("some "))?;
    line.split(' ').find_map(|word| word.strip_prefix("total="))?.parse::<u64>().ok()?.checked_mul(1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_of_some_is_what_counts() {
        let text = "some avg10=1.53 avg60=0.67 avg300=0.00 total=68613582\nfull avg10=0.00 total=7\n";
        assert_eq!(some(text), Some(68_613_582_000));
        assert_eq!(some("full avg10=0.00 total=7\n"), None);
    }
}
