//! The balance sheet: every operation that was scheduled ended somewhere.

use brownout_record::TrialState;
use serde::Serialize;

use crate::{TrialEvidence, sums::Ended};

/// What became of all operations of a trial, warm-up included.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Balance {
    /// Intended to start.
    pub scheduled: u64,
    /// Sent.
    pub sent: u64,
    /// Given up before they could be sent.
    pub never_sent: u64,
    /// Not yet sent when the run was cut.
    pub open_unsent: u64,
    /// Answered without error within the time-out.
    pub ok: u64,
    /// Answered with an error.
    pub failed: u64,
    /// Not answered within the time-out.
    pub timed_out: u64,
    /// Sent, and neither answered nor timed out when the run was cut.
    pub open_sent: u64,
    /// Those of the timed out that were answered later.
    pub late: u64,
    /// Reads that returned an older version than one acknowledged before they were sent.
    pub stale: u64,
    /// Acknowledged writes that a read was the first to look for; see `docs/definitions.md`, "Lost writes".
    pub looked_for: u64,
    /// Those of `looked_for` that it did not find.
    pub lost: u64,
    /// Due, and called for by a schedule of users of whom none was free: no part of `scheduled`.
    pub withheld: u64,
    /// Operations of intervals that straddle a border between phases: in the balance, in no phase's figures.
    pub between_phases: u64,
    /// scheduled = sent + never sent + open unsent, sent = ok + failed + timed out + open sent, late ≤ timed out, and
    /// nothing is open in an interval that says that it is settled.
    pub balances: bool,
    /// The first intervals that do not, in words.
    pub errors: Vec<String>,
}

/// Intervals named in words; more would hide the message.
const NAMED: usize = 3;

/// Draws up the balance sheet of a trial.
pub(crate) fn balance(evidence: &TrialEvidence) -> Balance {
    let mut sheet = Balance { balances: true, ..Balance::default() };
    for interval in &evidence.intervals {
        let of_interval = Ended::of(interval);
        let Ended { ok, failed, timed_out, late } = of_interval;
        let (started, ended) = (interval.sent + interval.never_sent, of_interval.all());
        let exact = started == interval.scheduled && ended == interval.sent;
        let possible = started <= interval.scheduled && ended <= interval.sent && late <= timed_out;
        if !possible || (interval.settled && !exact) {
            sheet.balances = false;
            if sheet.errors.len() < NAMED {
                sheet.errors.push(format!(
                    "the interval at {:.3} s: scheduled {}, sent {}, never sent {}, ok {ok}, failed {failed}, \
                     timed out {timed_out}, late {late}",
                    interval.starts_ns as f64 / 1e9,
                    interval.scheduled,
                    interval.sent,
                    interval.never_sent
                ));
            }
        }
        sheet.scheduled += interval.scheduled;
        sheet.sent += interval.sent;
        sheet.never_sent += interval.never_sent;
        sheet.stale += interval.stale;
        sheet.looked_for += interval.looked_for;
        sheet.lost += interval.lost;
        sheet.withheld += interval.withheld;
        sheet.open_unsent += interval.scheduled.saturating_sub(started);
        sheet.open_sent += interval.sent.saturating_sub(ended);
        sheet.ok += ok;
        sheet.failed += failed;
        sheet.timed_out += timed_out;
        sheet.late += late;
        if evidence.phase_of(interval.starts_ns, interval.length_ns).is_none() {
            sheet.between_phases += interval.scheduled;
        }
    }
    let open = sheet.open_unsent + sheet.open_sent;
    if open > 0 && evidence.row.state == TrialState::Done {
        sheet.balances = false;
        sheet.errors.push(format!("{open} operations are still open although the trial is recorded as done"));
    }
    sheet
}
