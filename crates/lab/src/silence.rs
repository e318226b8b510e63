//! Nodes that are not ours and do not answer any more. Nobody here sees their processes: their silence is all that shows an end.

use std::collections::BTreeMap;

use brownout_record::{Quantity, Subject, WitnessRow};

/// A node that has answered no heartbeat for so long counts as dead, ns. Longer than what a healthy JVM stands still.
pub const SILENT_NS: u64 = 5_000_000_000;

/// Who answers.
#[derive(Debug, Default)]
pub struct Silence {
    nodes: BTreeMap<String, Node>,
    notices: Vec<Notice>,
}

#[derive(Debug, Default)]
struct Node {
    /// Since when nothing that it was asked was answered, `CLOCK_MONOTONIC`; none: the last question was.
    silent_since_ns: Option<u64>,
    /// It was noted to be silent.
    is_noted: bool,
}

/// What has become of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// It has not answered for [`SILENT_NS`], since this moment, `CLOCK_MONOTONIC`.
    Silent {
        /// Its name.
        node: String,
        /// When it was asked the first question that it did not answer.
        since_ns: u64,
    },
    /// It answers again, since this moment.
    Back {
        /// Its name.
        node: String,
        /// When it was asked the first question that it answered.
        since_ns: u64,
    },
}

impl Silence {
    /// Takes note of heartbeats among what witnesses saw, in order of time; their times are of `CLOCK_MONOTONIC`.
    pub fn note(&mut self, rows: &[WitnessRow]) {
        for row in rows.iter().filter(|row| row.quantity == Quantity::Answers) {
            let Subject::Host { host } = &row.subject else { continue };
            let node = self.nodes.entry(host.clone()).or_default();
            let notice = if row.value > 0.0 {
                node.silent_since_ns = None;
                std::mem::take(&mut node.is_noted).then(|| Notice::Back { node: host.clone(), since_ns: row.at_ns })
            } else {
                let since_ns = *node.silent_since_ns.get_or_insert(row.at_ns);
                let is_news = !node.is_noted && row.at_ns.saturating_sub(since_ns) >= SILENT_NS;
                node.is_noted |= is_news;
                is_news.then(|| Notice::Silent { node: host.clone(), since_ns })
            };
            self.notices.extend(notice);
        }
    }

    /// What has changed since the last call.
    pub fn take(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn beats(node: &str, from_s: u64, to_s: u64, answers: bool) -> Vec<WitnessRow> {
        let beat = |second| WitnessRow {
            at_ns: second * SECOND,
            subject: Subject::host(node),
            quantity: Quantity::Answers,
            source: "heartbeat".to_owned(),
            value: f64::from(u8::from(answers)),
            error: 0.0,
        };
        (from_s..to_s).map(beat).collect()
    }

    #[test]
    fn a_node_is_noted_once_when_it_is_silent_for_long_and_once_when_it_is_back() {
        let mut silence = Silence::default();
        silence.note(&beats("n1", 0, 10, true));
        silence.note(&beats("n2", 0, 3, true));
        silence.note(&beats("n2", 3, 8, false));
        assert_eq!(silence.take(), [], "a pause");
        silence.note(&beats("n2", 8, 12, false));
        assert_eq!(silence.take(), [Notice::Silent { node: "n2".to_owned(), since_ns: 3 * SECOND }]);
        silence.note(&beats("n2", 12, 14, false));
        assert_eq!(silence.take(), []);
        silence.note(&beats("n2", 14, 16, true));
        assert_eq!(silence.take(), [Notice::Back { node: "n2".to_owned(), since_ns: 14 * SECOND }]);
        silence.note(&beats("n2", 16, 18, false));
        assert_eq!(silence.take(), [], "it begins anew");
    }
}
