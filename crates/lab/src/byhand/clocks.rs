//! Delays and clock offsets between all hosts, by NTP exchanges and probes.

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, UdpSocket},
    thread,
    time::Duration,
};

use brownout_base::clock::realtime_ns;
use brownout_clock::{
    HostClock,
    ntp::{PORT as NTP_PORT, best_of},
};
use brownout_probe::Probes;

use super::{
    Failure,
    check::all_settled,
    lab::Lab,
    objects::{ClockRow, Matrix},
};
use crate::plan::probe_interval;

/// Exchanges on each pair; the one with the shortest round trip tells.
const EXCHANGES: usize = 4;
/// For all exchanges of a pair, beside the longest delays in force.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long the links are probed.
const PROBED: Duration = Duration::from_secs(1);
/// At least this much between probes of a link, here: a look, not a load.
const PROBE_EVERY: Duration = Duration::from_millis(20);

/// Measures all pairs.
pub(super) fn matrix(lab: &Lab) -> Result<Matrix, Failure> {
    let hosts: Vec<String> = lab.layout.hosts.iter().map(|host| host.name.clone()).collect();
    let network = lab.testbed.network;
    let longest = Duration::from_nanos(lab.testbed.controls.control.longest_hold_ns());
    let probes =
        Probes::start(network, probe_interval(&lab.layout.hosts).max(PROBE_EVERY)).map_err(crate::LabError::from)?;
    let patience = PATIENCE + 2 * longest;
    let samples = thread::scope(|scope| {
        let ask = |from: &String| {
            let (others, from) = (hosts.clone(), from.clone());
            scope.spawn(move || ask_all(lab, &from, &others, patience))
        };
        let threads: Vec<_> = hosts.iter().map(ask).collect();
        // A thread that died has no answers.
        threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect::<BTreeMap<_, _>>()
    });
    let mut seen: BTreeMap<_, Vec<Option<u64>>> = BTreeMap::new();
    for sample in all_settled(&probes, PROBED) {
        seen.entry(sample.link).or_default().push(sample.delay_ns);
    }
    drop(probes);
    let pairs = lab.layout.hosts.pairs().map(|(from, to)| {
        let pair = (from.name.clone(), to.name.clone());
        let probed = network.link(&pair.0, &pair.1).and_then(|link| seen.get(&link));
        let mut delays: Vec<u64> = probed.into_iter().flatten().filter_map(|delay| *delay).collect();
        delays.sort_unstable();
        let sample = samples.get(&pair);
        ClockRow {
            one_way_ns: delays.get(delays.len() / 2).copied(),
            loss: probed.map(|all| 1.0 - delays.len() as f64 / all.len().max(1) as f64),
            rtt_ns: sample.map(|sample| sample.delay_ns),
            offset_ns: sample.map(|sample| sample.offset_ns),
            error_ns: sample.map(|sample| sample.error_bound_ns()),
            from: pair.0,
            to: pair.1,
        }
    });
    Ok(Matrix { format: 1, pairs: pairs.collect(), hosts })
}

type Answers = Vec<((String, String), brownout_clock::ntp::Sample)>;

/// One host asks all others: at once, since those that are cut off answer late.
fn ask_all(lab: &Lab, from: &str, others: &[String], patience: Duration) -> Answers {
    let Some(host) = lab.testbed.network.host(from) else { return Vec::new() };
    // A container's clock is the machine's, unless it was started with one of its own.
    let clock = lab.testbed.controls.clocks.get(from);
    let now_ns = move || clock.map_or_else(realtime_ns, HostClock::realtime_ns);
    let now_ns = &now_ns;
    thread::scope(|scope| {
        let others = others.iter().filter(|to| *to != from);
        let asked: Vec<_> = others
            .filter_map(|to| {
                let server = (lab.layout.hosts.find(to)?.address, NTP_PORT).into();
                let ask = move || {
                    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
                    best_of(EXCHANGES, &socket, server, now_ns, patience).ok()
                };
                let pair = (from.to_owned(), to.clone());
                Some(scope.spawn(move || Some((pair, host.run(ask).ok()??))))
            })
            .collect();
        asked.into_iter().filter_map(|thread| thread.join().ok()?).collect()
    })
}
