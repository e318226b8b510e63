//! The JVM's own log of the moments at which it stood still: garbage collections, and whatever else needs all threads to
//! stop.

use std::{ffi::OsString, path::Path};

/// The file in a node's log directory.
pub(crate) const LOG: &str = "safepoints.log";

/// The option that has the JVM write it. Each line is stamped with `CLOCK_MONOTONIC` (the decoration `timenanos`,
/// JEP 158): no wall clock, right or wrong, comes between a pause and the time line of a run. It is some ten short lines a
/// second, in files that the JVM rotates at 20 MB.
pub(crate) fn option(logs: &Path) -> OsString {
    // The quotes keep a colon in a path from ending it.
    let mut option = OsString::from("-Xlog:safepoint:file=\"");
    option.push(logs.join(LOG));
    option.push("\":timenanos");
    option
}

/// A pause of all threads.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pause {
    /// When it began, `CLOCK_MONOTONIC`, ns.
    pub(super) began_ns: u64,
    pub(super) length_ns: u64,
    /// What for, in the JVM's words: `G1CollectForAllocation`.
    pub(super) cause: String,
}

/// Reads the lines of one JVM, in their order.
#[derive(Debug, Default)]
pub(super) struct Pauses {
    /// Java 11 tells the cause in a line of its own, before.
    cause: String,
}

impl Pauses {
    /// The pause that ended with this line, if one did.
    pub(super) fn read(&mut self, line: &str) -> Option<Pause> {
        let (stamp, said) = line.strip_prefix('[')?.split_once("ns] ")?;
        let ended_ns: u64 = stamp.trim().parse().ok()?;
        let (cause, length_ns) = if let Some(cause) = said.strip_prefix("Entering safepoint region: ") {
            cause.trim().clone_into(&mut self.cause);
            return None;
        } else if let Some(rest) = said.strip_prefix("Total time for which application threads were stopped: ") {
            let seconds: f64 = rest.split_once(' ')?.0.parse().ok()?;
            (std::mem::take(&mut self.cause), (seconds * 1e9) as u64)
        } else {
            let (cause, times) = said.strip_prefix("Safepoint \"")?.split_once("\", ")?;
            let total = times.split_once("Total: ")?.1.strip_suffix(" ns")?;
            (cause.to_owned(), total.parse().ok()?)
        };
        // The line is written at its end.
        Some(Pause { began_ns: ended_ns.saturating_sub(length_ns), length_ns, cause })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

    use super::*;

    #[test]
    fn a_pause_began_by_its_length_before_its_line() {
        // A node of 5.0.9 on Java 17.0.15.
        let line = "[26966380211233ns] Safepoint \"GenCollectForAllocation\", Time since last: 1043788874 ns, \
                    Reaching safepoint: 84857 ns, Cleanup: 125286 ns, At safepoint: 71919260 ns, Total: 72129403 ns";
        let pause = Pauses::default().read(line).unwrap();
        let cause = "GenCollectForAllocation".to_owned();
        assert_eq!(pause, Pause { began_ns: 26_966_308_081_830, length_ns: 72_129_403, cause });
        assert_eq!(Pauses::default().read(&line[..line.len() - 9]), None, "a line that is cut off");
        assert_eq!(Pauses::default().read("[1.2s][info][gc] Using Serial"), None);
    }

    #[test]
    fn java_11_tells_the_cause_before_the_length() {
        // As its HotSpot writes them (runtime/safepoint.cpp).
        let mut pauses = Pauses::default();
        assert_eq!(pauses.read("[5000000000ns] Entering safepoint region: G1CollectForAllocation"), None);
        assert_eq!(pauses.read("[5009900000ns] Leaving safepoint region"), None);
        let line = "[5010000000ns] Total time for which application threads were stopped: 0.0100000 seconds, Stopping \
                    threads took: 0.0000412 seconds";
        let pause = pauses.read(line).unwrap();
        assert_eq!((pause.began_ns, pause.cause.as_str()), (5_000_000_000, "G1CollectForAllocation"));
    }
}
