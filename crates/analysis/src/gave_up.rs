//! Servers that end themselves because their disk failed: that is what a fault of the disk does to some databases (etcd at any
//! error, Cassandra by `disk_failure_policy: die`), and no harm beside it.

use brownout_record::{FaultRecord, Quantity, Stamp, Subject};

/// Between an error and the end of the process that could not go on with it, ns.
const ENDS_WITHIN_NS: u64 = 5_000_000_000;

/// Whether a node that died at this moment did so while a fault made operations on one of its disks fail.
pub(crate) fn of_its_disk(faults: &[FaultRecord], node: &str, at_ns: u64) -> bool {
    faults.iter().any(|fault| {
        fault.periods.iter().any(|period| {
            let severity = fault.severities.get(period.severity as usize);
            let fails = severity.is_some_and(|severity| {
                let mut hit = severity.expectations.iter().filter(|one| one.hit && one.asked > 0.0);
                hit.any(|one| is_error_of(one.quantity, &one.subject, node))
            });
            fails && is_within(period.injected, period.healed, at_ns)
        })
    })
}

fn is_error_of(quantity: Quantity, subject: &Subject, node: &str) -> bool {
    let errors = [Quantity::ReadErrors, Quantity::WriteErrors, Quantity::SyncErrors, Quantity::MetadataErrors];
    errors.contains(&quantity) && matches!(subject, Subject::Directory { host, .. } if host == node)
}

fn is_within(injected: Option<Stamp>, healed: Option<Stamp>, at_ns: u64) -> bool {
    let begins = injected.map(|stamp| stamp.at_ns.saturating_sub(stamp.error_ns));
    let ends = healed.map_or(u64::MAX, |stamp| stamp.at_ns.saturating_add(stamp.error_ns + ENDS_WITHIN_NS));
    begins.is_some_and(|begins| (begins..=ends).contains(&at_ns))
}

#[cfg(test)]
mod tests {
    use brownout_record::{Expectation, Period, Severity};

    use super::*;

    #[test]
    fn a_node_ends_of_its_disk_only_while_operations_on_that_disk_fail() {
        const S: u64 = 1_000_000_000;
        let expectation = |quantity, asked, hit, host: &str| Expectation {
            subject: Subject::directory(host, "wal"),
            quantity,
            hit,
            asked,
            tolerance: 0.1,
            burst: None,
        };
        let stamp = |at: u64| Some(Stamp { at_ns: at * S, error_ns: 0 });
        let fault = |quantity| FaultRecord {
            index: 0,
            kind: "disk".to_owned(),
            text: String::new(),
            effect: String::new(),
            unsettled_ns: 0,
            severities: vec![Severity {
                text: String::new(),
                expectations: vec![expectation(quantity, 1.0, true, "n2"), expectation(quantity, 0.0, false, "n1")],
            }],
            periods: vec![Period { severity: 0, injected: stamp(10), healed: stamp(20) }],
        };
        let died = |node: &str, at: u64, fault: &FaultRecord| of_its_disk(std::slice::from_ref(fault), node, at * S);
        let errors = fault(Quantity::SyncErrors);
        assert!(died("n2", 11, &errors) && died("n2", 24, &errors));
        assert!(!died("n2", 9, &errors) && !died("n2", 26, &errors));
        assert!(!died("n1", 11, &errors) && !died("n2", 11, &fault(Quantity::SyncTime)));
    }
}
