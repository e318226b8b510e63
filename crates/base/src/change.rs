/// When something came into force, on the [monotonic clock](crate::clock::monotonic_ns).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// The middle of the time between asking for it and its being done.
    pub at_ns: u64,
    /// Half of that time: it came into force at `at_ns` ± this.
    pub error_ns: u64,
}

impl Change {
    /// Asked for at `asked_ns`, known to be in force at `done_ns`.
    pub fn between(asked_ns: u64, done_ns: u64) -> Change {
        let width = done_ns.saturating_sub(asked_ns);
        Change { at_ns: asked_ns + width / 2, error_ns: width.div_ceil(2) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_lies_within_its_error_of_asking_and_of_its_being_done() {
        for (asked, done) in [(10, 10), (10, 11), (10, 20), (10, 21), (0, u64::MAX)] {
            let Change { at_ns, error_ns } = Change::between(asked, done);
            assert!(at_ns - asked <= error_ns && done - at_ns <= error_ns, "{asked} {done}");
            assert!(error_ns - (done - asked) / 2 <= 1, "{asked} {done}: no wider than it has to be");
        }
        assert_eq!(Change::between(10, 9), Change { at_ns: 10, error_ns: 0 }, "done before it was asked for");
    }
}
