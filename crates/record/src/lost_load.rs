//! The share of a load that was lost in the middle of a trial, with the machine that sent it.
//!
//! What it had told of is known; nobody can say any more what became of the rest. A balance sheet that leaves that out would tell of a
//! smaller load than was asked for: so it stands there as never sent.

use std::collections::BTreeMap;

use crate::{LatencyRow, LoadRow};

/// What was to come from a load that was lost. Times are ns since the zero of its record, at which intervals begin.
pub struct LostLoad<'a> {
    /// How many operations of its share are due from one time to another.
    pub due: &'a dyn Fn(u64, u64) -> u64,
    /// Since when that is so.
    pub from_ns: u64,
    /// When it would have ended.
    pub until_ns: u64,
    /// The length of an interval.
    pub length_ns: u64,
}

impl LostLoad<'_> {
    /// Its intervals, up to the end that it did not see: all that was due and is not known to have ended was never sent. (Of the little
    /// that was under way nobody knows whether it was.) From what it has told: `rows`, and the latencies of all that had ended.
    pub(crate) fn account(&self, rows: Vec<LoadRow>, latencies: &[LatencyRow]) -> Vec<LoadRow> {
        let mut rows: BTreeMap<u64, LoadRow> = rows.into_iter().map(|row| (row.starts_ns, row)).collect();
        // Of all before its last interval it had told how much was due.
        let last_ns = rows.last_key_value().map_or(0, |(starts_ns, _)| *starts_ns).max(self.from_ns);
        let mut starts_ns = last_ns / self.length_ns * self.length_ns;
        while starts_ns < self.until_ns {
            let ends_ns = starts_ns + self.length_ns;
            let due = (self.due)(starts_ns.max(self.from_ns), ends_ns.min(self.until_ns));
            let row = rows.entry(starts_ns).or_insert_with(|| LoadRow::empty(starts_ns, self.length_ns));
            row.scheduled = row.scheduled.max(due);
            starts_ns = ends_ns;
        }
        let mut ended: BTreeMap<u64, u64> = BTreeMap::new();
        // Those that were answered late had timed out before.
        for row in latencies.iter().filter(|row| row.outcome != "late") {
            *ended.entry(row.starts_ns).or_default() += row.count;
        }
        let account = |mut row: LoadRow| {
            row.sent = ended.get(&row.starts_ns).copied().unwrap_or_default();
            row.never_sent = row.scheduled.saturating_sub(row.sent);
            row.settled = true;
            row
        };
        rows.into_values().map(account).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::times;

    const S: u64 = 1_000_000_000;

    fn row(starts_ns: u64, scheduled: u64, sent: u64) -> LoadRow {
        LoadRow { scheduled, sent, settled: false, ..LoadRow::empty(starts_ns, S) }
    }

    fn ended(starts_ns: u64, outcome: &str, count: u64) -> LatencyRow {
        let none = || (&times::empty()).into();
        LatencyRow {
            starts_ns,
            statement: "read".to_owned(),
            coordinator: "n1".to_owned(),
            outcome: outcome.to_owned(),
            count,
            wait: none(),
            service: none(),
            response: none(),
        }
    }

    /// Start in s, scheduled, sent, never sent.
    fn sheet(rows: &[LoadRow]) -> Vec<(u64, u64, u64, u64)> {
        assert!(rows.iter().all(|row| row.settled && row.length_ns == S), "{rows:?}");
        rows.iter().map(|row| (row.starts_ns / S, row.scheduled, row.sent, row.never_sent)).collect()
    }

    #[test]
    fn what_was_due_and_is_not_known_to_have_ended_was_never_sent() {
        // 100/s from 1 s on, of which it has told until the middle of the third second.
        let due = |from_ns: u64, to_ns: u64| (to_ns - from_ns) / (S / 100);
        let lost = LostLoad { due: &due, from_ns: S, until_ns: 5 * S + S / 2, length_ns: S };
        let told = vec![row(0, 7_000, 7_000), row(S, 100, 100), row(2 * S, 50, 48)];
        let ends = [
            ended(0, "ok", 7_000),
            ended(S, "ok", 90),
            ended(S, "timed-out", 10),
            ended(S, "late", 3),
            ended(2 * S, "failed:unavailable", 1),
            ended(2 * S, "ok", 40),
        ];
        assert_eq!(
            sheet(&lost.account(told, &ends)),
            [
                (0, 7_000, 7_000, 0),
                (1, 100, 100, 0),
                (2, 100, 41, 59),
                (3, 100, 0, 100),
                (4, 100, 0, 100),
                (5, 50, 0, 50)
            ]
        );
    }

    #[test]
    fn one_that_has_told_of_nothing_has_sent_nothing() {
        let due = |from_ns: u64, to_ns: u64| (to_ns - from_ns) / (S / 10);
        let lost = LostLoad { due: &due, from_ns: 3 * S / 2, until_ns: 3 * S, length_ns: S };
        assert_eq!(sheet(&lost.account(Vec::new(), &[])), [(1, 5, 0, 5), (2, 10, 0, 10)]);
    }

    #[test]
    fn of_users_who_ask_by_themselves_nothing_is_due() {
        let lost = LostLoad { due: &|_, _| 0, from_ns: 0, until_ns: 3 * S, length_ns: S };
        let rows = lost.account(vec![row(0, 30, 30)], &[ended(0, "ok", 28)]);
        assert_eq!(sheet(&rows), [(0, 30, 28, 2), (1, 0, 0, 0), (2, 0, 0, 0)]);
    }
}
