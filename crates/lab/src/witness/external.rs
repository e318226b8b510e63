//! The clocks of nodes that are not ours, as far as they tell: by NTP where a server answers on the node itself, else by what the
//! database shows as its time. Both are asked over the machine's own network, so their way is a part of the bound.

use std::{cell::RefCell, collections::BTreeSet, net::IpAddr, sync::mpsc::Sender, time::Duration};

use brownout_base::clock::monotonic_ns;
use brownout_cluster::{Beat, ClusterControl};
use brownout_record::ClockRow;

use super::{
    clock::ask_at,
    poller::{PATIENCE, Poller},
};
use crate::{LabError, hosts::Hosts};

/// Servers of others are not to be asked more often: they would answer with a kiss of death (RFC 5905, section 7.4).
const EVERY_NS: u64 = 1_000_000_000;
/// Between two looks at whether it is time: how long the end can be delayed.
const NAP: Duration = Duration::from_millis(100);
/// A node that has not answered so many questions has no server, and is asked no more.
const GIVEN_UP_AFTER: u32 = 5;

/// Who tells what time it is.
pub(super) struct Clocks {
    /// What databases have shown since the last look.
    shown: RefCell<Vec<ClockRow>>,
    /// Nodes on which a server of NTP has answered: it knows better than the database does.
    served: RefCell<BTreeSet<String>>,
    _threads: Vec<Poller>,
}

/// One thread for each node, which asks its port of NTP.
pub(super) fn start(nodes: &ClusterControl, seen: &Sender<ClockRow>) -> Result<Clocks, LabError> {
    let asking = nodes.names().into_iter().map(|name| {
        let address: IpAddr = nodes.client(&name)?.ip();
        let (seen, thread) = (seen.clone(), format!("witness-ntp-{name}"));
        let (mut has_answered, mut unanswered, mut next_ns) = (false, 0, 0);
        let look = move || {
            if monotonic_ns() < next_ns || (!has_answered && unanswered >= GIVEN_UP_AFTER) {
                return;
            }
            next_ns = monotonic_ns() + EVERY_NS;
            let Some(sample) = ask_at(address, PATIENCE) else {
                unanswered += 1;
                return;
            };
            has_answered = true;
            // Nobody listens any more when all is about to end.
            let _ = seen.send(ClockRow {
                at_ns: monotonic_ns(),
                host: Hosts::LOAD.to_owned(),
                server: name.clone(),
                round_trip_ns: sample.delay_ns,
                offset_ns: sample.offset_ns,
                bound_ns: sample.error_bound_ns(),
            });
        };
        Poller::start(thread, NAP, || Ok(()), look)
    });
    let threads = asking.collect::<Result<Vec<Poller>, LabError>>()?;
    Ok(Clocks { shown: RefCell::default(), served: RefCell::default(), _threads: threads })
}

impl Clocks {
    /// Takes note of what a node showed as its time when it was asked.
    pub(super) fn note(&self, beat: &Beat) {
        self.shown.borrow_mut().extend(row_of(beat));
    }

    /// What servers of NTP have told, and beside it what databases showed on nodes without one.
    pub(super) fn with_databases(&self, mut rows: Vec<ClockRow>) -> Vec<ClockRow> {
        let mut served = self.served.borrow_mut();
        served.extend(rows.iter().map(|row| row.server.clone()));
        let shown = self.shown.take();
        rows.extend(shown.into_iter().filter(|row| !served.contains(&row.server)));
        rows
    }
}

/// Of an answer that showed the node's time.
fn row_of(beat: &Beat) -> Option<ClockRow> {
    let at_ns = beat.answered_ns?;
    Some(ClockRow {
        at_ns,
        host: Hosts::LOAD.to_owned(),
        server: beat.node.clone(),
        round_trip_ns: at_ns.saturating_sub(beat.asked_ns),
        offset_ns: beat.offset_ns?,
        bound_ns: beat.error_ns,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clocks() -> Clocks {
        Clocks { shown: RefCell::default(), served: RefCell::default(), _threads: Vec::new() }
    }

    fn beat(node: &str, offset_ns: Option<i64>) -> Beat {
        Beat { node: node.to_owned(), asked_ns: 10, answered_ns: Some(30), offset_ns, error_ns: 510 }
    }

    #[test]
    fn a_server_of_ntp_counts_and_where_there_is_none_the_database() {
        let clocks = clocks();
        let served = ClockRow { server: "n1".to_owned(), ..row_of(&beat("n1", Some(5))).unwrap() };
        clocks.note(&beat("n1", Some(900)));
        clocks.note(&beat("n2", Some(-7)));
        clocks.note(&beat("n2", None));
        let rows = clocks.with_databases(vec![served.clone()]);
        let other = ClockRow {
            at_ns: 30,
            host: "load".to_owned(),
            server: "n2".to_owned(),
            round_trip_ns: 20,
            offset_ns: -7,
            bound_ns: 510,
        };
        assert_eq!(rows, [served, other]);
        clocks.note(&beat("n1", Some(900)));
        assert_eq!(clocks.with_databases(Vec::new()), [], "it answered before, so it is asked on");
    }
}
