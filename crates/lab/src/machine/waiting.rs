//! Whether the kernel tells who waited for a processor.

use super::{Check, CheckState};

/// Whether it can be seen that somebody waited for a processor.
pub(super) fn check(counted: bool) -> Check {
    if counted {
        return Check::good("waiting", "the kernel counts how long each thread waits for a processor");
    }
    Check::not(
        CheckState::Limited,
        "waiting",
        "the kernel does not count how long a thread waits for a processor (/proc/PID/schedstat is missing or all zeros): \
         a trial in which other programs held up the nodes, the load or the emulator may not show that",
        "use a kernel with CONFIG_SCHED_INFO: built with CONFIG_SCHEDSTATS, or with CONFIG_TASK_DELAY_ACCT and started \
         with delayacct",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_does_not_count_waiting_limits_what_a_run_shows_and_doctor_says_how_to_get_one_that_does() {
        assert_eq!(check(true).state, CheckState::Good);
        let blind = check(false);
        assert_eq!(blind.state, CheckState::Limited);
        assert!(blind.found.contains("/proc/PID/schedstat"), "{}", blind.found);
        assert!(blind.remedy.is_some_and(|remedy| remedy.contains("CONFIG_SCHED_INFO")));
    }
}
