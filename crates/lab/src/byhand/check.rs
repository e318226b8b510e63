//! Whether what commands have put in force shows: a short look at the hosts and links that it hits, by the same means as
//! the proof of a run: probes for links, the kernel for processes and for what they use of the processors, NTP and the database
//! itself for clocks, timed operations for disks. It has no baseline and looks at no spared subject. Each link, each quantity,
//! and whoever tells of a clock has to show it alone; what cannot be told in a second or two is "not seen".

use std::{
    collections::{BTreeMap, BTreeSet},
    thread::{self, ScopedJoinHandle},
    time::Duration,
};

use brownout_analysis::{Worked, clock_glimpse, limit_glimpse};
use brownout_base::clock::monotonic_ns;
use brownout_cluster::{CpuLimit, NodeState};
use brownout_disk::{Operation, Operations, Probe};
use brownout_machine::Processors;
use brownout_network::{Host, Impairment, Link};
use brownout_probe::{ProbeSample, Probes};
use brownout_record::{Expectation, Quantity, Subject};
use brownout_units::{Delay, Share, format_ns};

use super::{Failure, in_force::clock_words, lab::Lab, link_state::LinkStates, objects::CheckStatus, status};
use crate::{LabError, faults::expected, witness::ask_databases};

/// How long links are probed, disks are used, and nodes are asked and watched.
const LOOK: Duration = Duration::from_millis(1_200);
/// Between two probes of a link, if there are not too many links.
const PROBE_EVERY: Duration = Duration::from_millis(10);
/// Between two rounds of operations on a disk.
const DISK_EVERY: Duration = Duration::from_millis(25);
/// Fewer cases than this tell no share.
const LEAST_CASES: f64 = 5.0;
/// Fewer delays than this tell no spread.
const LEAST_DELAYS: usize = 40;
/// How often an NTP server is asked: as often as a proof needs it.
const EXCHANGES: usize = 3;
/// The kernel counts what a running thread uses at the ticks of its clock; these are so far apart at most.
const TICK_NS: f64 = 10e6;

/// What is asked of one subject.
struct Checked {
    kind: &'static str,
    subject: String,
    links: Vec<(String, String)>,
    impairment: Option<Impairment>,
    expected: Vec<Expectation>,
}

impl Checked {
    fn asks(&self, quantity: Quantity) -> bool {
        self.expected.iter().any(|one| one.quantity == quantity)
    }
}

/// Whether a quantity shows what was asked, with what was seen; none: a short look cannot tell.
type Observed = (Option<bool>, String);

/// Looks at all that the ledger holds.
pub(super) fn check(lab: &Lab) -> Result<Vec<CheckStatus>, Failure> {
    let hosts = &lab.layout.hosts;
    let held: Vec<Checked> = {
        let ledger = lab.ledger();
        let of = |(key, held): (&super::ledger::Key, &super::ledger::Entry)| Checked {
            kind: held.fault.kind(),
            subject: key.owner.clone(),
            links: held.fault.links().to_vec(),
            impairment: held.fault.impairment(),
            expected: held.fault.expectations(hosts).into_iter().filter(|one| one.hit && one.asked != 0.0).collect(),
        };
        ledger.iter().map(of).collect()
    };
    let links: BTreeSet<&(String, String)> = held.iter().flat_map(|held| &held.links).collect();
    let read = LinkStates::of(lab.testbed.controls, &lab.layout)?;
    let (probed, clocks, limited, disks) = thread::scope(|scope| {
        let probed = scope.spawn(|| probe(lab, &links));
        let clocks = scope.spawn(|| ask_clocks(lab, &held));
        let limited = scope.spawn(|| watch_limited(lab, &held));
        let disks = use_disks(lab, &held);
        (joined(probed), joined(clocks), joined(limited), disks)
    });
    let (probed, looked) = (probed?, Looked { clocks: clocks?, limited: limited?, disks: disks? });
    let mut checks = held
        .iter()
        .map(|held| {
            let mut seen = match &held.impairment {
                Some(impairment) => of_links(&held.links, impairment, &read, &probed),
                None => Vec::new(),
            };
            for asked in held.expected.iter().filter(|_| held.impairment.is_none()) {
                seen.extend(of_host(lab, held, asked, &looked)?);
            }
            let proven = is_proven(&seen);
            let mut evidence: Vec<String> = seen.into_iter().map(|(_, words)| words).collect();
            evidence.dedup();
            Ok(CheckStatus {
                kind: held.kind.to_owned(),
                subject: held.subject.clone(),
                verdict: if proven { "proven" } else { "not seen" }.to_owned(),
                evidence: evidence.join("; "),
            })
        })
        .collect::<Result<Vec<_>, Failure>>()?;
    // Its faults are no command's, and come and go while this looks.
    checks.extend(lab.chaos_words().map(|doing| CheckStatus {
        kind: "chaos".to_owned(),
        subject: String::new(),
        verdict: "not seen".to_owned(),
        evidence: format!("a short check does not look at the faults of chaos ({doing})"),
    }));
    Ok(checks)
}

/// What a thread of a look has seen.
fn joined<T>(looking: ScopedJoinHandle<'_, T>) -> T {
    looking.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// What a look has seen of hosts.
struct Looked {
    clocks: Clocks,
    limited: Limited,
    disks: Disks,
}

/// All that was asked for has to show.
fn is_proven(seen: &[Observed]) -> bool {
    !seen.is_empty() && seen.iter().all(|(shows, _)| *shows == Some(true))
}

/// What became of one probe.
#[derive(Debug, Clone, Copy)]
struct Arrival {
    /// None: it was lost.
    delay_ns: Option<u64>,
    copies: u8,
    reordered: bool,
}

type Probed = BTreeMap<(String, String), Vec<Arrival>>;

/// Probes those links for a while, until each probe has arrived or is lost.
fn probe(lab: &Lab, pairs: &BTreeSet<&(String, String)>) -> Result<Probed, LabError> {
    let controls = lab.testbed.controls;
    let named: Vec<(&(String, String), Link)> =
        pairs.iter().filter_map(|pair| Some((*pair, controls.link(&pair.0, &pair.1)?))).collect();
    if named.is_empty() {
        return Ok(Probed::new());
    }
    let links: Vec<Link> = named.iter().map(|(_, link)| *link).collect();
    let every = Probes::shortest_interval(links.len()).max(PROBE_EVERY);
    let probes = Probes::start_on(lab.testbed.network, &links, every)?;
    let samples = all_settled(&probes, LOOK);
    let arrival = |one: &ProbeSample| Arrival { delay_ns: one.delay_ns, copies: one.copies, reordered: one.reordered };
    let of = |link: Link| samples.iter().filter(|one| one.link == link).map(arrival).collect();
    Ok(named.into_iter().map(|(pair, link)| (pair.clone(), of(link))).collect())
}

/// What became of all that was sent until this time has passed. What arrives is known sooner than what is lost: whoever
/// counts before all has settled sees no loss.
pub(super) fn all_settled(probes: &Probes, length: Duration) -> Vec<ProbeSample> {
    let until = monotonic_ns() + length.as_nanos() as u64;
    thread::sleep(length);
    thread::sleep(probes.settles_within());
    let mut samples = probes.drain();
    samples.retain(|sample| sample.sent_ns <= until);
    samples
}

/// What probes show of an impairment, beside all else that is on its links.
fn of_links(links: &[(String, String)], own: &Impairment, read: &LinkStates, probed: &Probed) -> Vec<Observed> {
    let none = Vec::new();
    let samples = |pair: &(String, String)| probed.get(pair).unwrap_or(&none);
    let others = |pair: &(String, String)| -> Vec<Impairment> {
        let Some(link) = read.0.get(pair) else { return Vec::new() };
        let mut all: Vec<Impairment> = link.distance.iter().chain(&link.added).copied().collect();
        // It is one of them, if it is there.
        if let Some(at) = all.iter().rposition(|impairment| impairment == own) {
            all.remove(at);
        }
        all
    };
    let asked_of_others = |pair: &(String, String), quantity| -> Vec<(f64, f64)> {
        let all = others(pair).into_iter().flat_map(|other| expected::asked(&other));
        all.filter(|(of, ..)| *of == quantity).map(|(_, asked, tolerance)| (asked, tolerance)).collect()
    };
    let judge = |(quantity, asked, tolerance): (Quantity, f64, f64)| -> Observed {
        let of = |pair: &(String, String)| {
            let beside = asked_of_others(pair, quantity);
            let clumps =
                others(pair).iter().chain([own]).map(|one| expected::clumping(one, quantity)).fold(1.0, f64::max);
            let (shows, words) = of_link(samples(pair), (quantity, asked, tolerance), clumps, &beside);
            (shows, format!("{} → {}: {words}", pair.0, pair.1))
        };
        everywhere(links.iter().map(of).collect())
    };
    expected::asked(own).into_iter().map(judge).collect()
}

/// It shows if it shows on every link; told is one on which it does not, or nobody can tell.
fn everywhere(seen: Vec<Observed>) -> Observed {
    let links = seen.len();
    let rank = |(shows, _): &Observed| match shows {
        Some(false) => 0,
        None => 1,
        Some(true) => 2,
    };
    match seen.into_iter().min_by_key(rank) {
        None => (None, "no link".to_owned()),
        Some((Some(true), words)) if links > 1 => (Some(true), format!("{words}; so on all of {links} links")),
        Some(told) => told,
    }
}

/// What probes show of one quantity on one link, where counts vary so many times as much as of packets that are hit each by itself,
/// beside what others ask of it there (how much, with which tolerance).
fn of_link(
    samples: &[Arrival],
    (quantity, asked, tolerance): (Quantity, f64, f64),
    clumps: f64,
    beside: &[(f64, f64)],
) -> Observed {
    let of = |ns: f64| Delay::from_ns((ns.max(0.0) / 1e4).round() as u64 * 10_000);
    match quantity {
        Quantity::OneWayDelay | Quantity::DelaySpread => {
            let mut arrived: Vec<u64> = samples.iter().filter_map(|one| one.delay_ns).collect();
            arrived.sort_unstable();
            let at = |quantile: f64| arrived.get((arrived.len() as f64 * quantile) as usize).map(|ns| *ns as f64);
            let (Some(low), Some(median), Some(high)) = (at(0.1), at(0.5), at(0.9)) else {
                return (None, "no probe arrived".to_owned());
            };
            if quantity == Quantity::OneWayDelay {
                let all: f64 = asked + beside.iter().map(|(asked, _)| asked).sum::<f64>();
                let within: f64 = tolerance + beside.iter().map(|(_, tolerance)| tolerance).sum::<f64>();
                let words = format!("one-way delay {}, expected {}", of(median), of(all));
                return (Some((median - all).abs() <= within.max(1.0)), words);
            }
            let words = format!("80% of the delays within {}, expected {}", of(high - low), of(asked));
            // Two spreads are not one of their sum.
            if !beside.is_empty() || arrived.len() < LEAST_DELAYS {
                return (None, format!("{words}: a short check cannot tell"));
            }
            (Some((high - low - asked).abs() <= tolerance), words)
        }
        Quantity::Loss | Quantity::Duplicates | Quantity::Reordered => {
            let all = 1.0 - (1.0 - asked) * beside.iter().map(|(asked, _)| 1.0 - asked).product::<f64>();
            // What was lost came neither twice nor out of order.
            let cases = samples.iter().filter(|one| quantity == Quantity::Loss || one.delay_ns.is_some());
            let is = |one: &&Arrival| match quantity {
                Quantity::Loss => one.delay_ns.is_none(),
                Quantity::Duplicates => one.copies > 1,
                _ => one.reordered,
            };
            let (count, cases) = (cases.clone().filter(is).count() as f64, cases.count() as f64);
            let what = match quantity {
                Quantity::Loss => "lost",
                Quantity::Duplicates => "twice",
                _ => "out of order",
            };
            share_seen(what, "probes", (count, cases), all, (tolerance, clumps))
        }
        other => (None, format!("a short check cannot measure: {}", other.name())),
    }
}

/// Whether so many of so many are the share that was asked for, give or take the tolerance and what so few vary by.
fn share_seen(
    what: &str,
    of: &str,
    (count, cases): (f64, f64),
    asked: f64,
    (tolerance, clumps): (f64, f64),
) -> Observed {
    let words = format!("{count} of {cases} {of} {what}, expected {:.1}%", asked * 100.0);
    if cases * asked < LEAST_CASES {
        return (None, format!("{words}: too few samples"));
    }
    let error = 3.0 * (asked * (1.0 - asked) * clumps / cases).sqrt();
    (Some(count > 0.0 && (count / cases - asked).abs() <= tolerance + error), words)
}

/// How far each node's database says that its clock is off, each time with the bound within which that is known, ns.
type Clocks = BTreeMap<String, Vec<(f64, f64)>>;

/// Asks the databases, if there is a clock to be seen.
fn ask_clocks(lab: &Lab, held: &[Checked]) -> Result<Clocks, LabError> {
    let mut told = Clocks::new();
    if !held.iter().any(|held| held.asks(Quantity::ClockOffset)) {
        return Ok(told);
    }
    let asking = ask_databases(&lab.control)?;
    thread::sleep(LOOK);
    for beat in asking.drain() {
        if let Some(offset_ns) = beat.offset_ns {
            told.entry(beat.node).or_default().push((offset_ns as f64, beat.error_ns as f64));
        }
    }
    Ok(told)
}

/// The same by a host's NTP server.
fn ask_ntp(host: &Host) -> Vec<(f64, f64)> {
    let told = (0..EXCHANGES).map_while(|_| status::clock(host, 0));
    told.map(|clock| (clock.offset_ns as f64, clock.error_ns as f64)).collect()
}

type Limited = BTreeMap<String, Worked>;

/// What the nodes do whose processor time is limited; nothing of one that did not run all the while.
fn watch_limited(lab: &Lab, held: &[Checked]) -> Result<Limited, LabError> {
    let limited = held.iter().filter(|held| held.asks(Quantity::ProcessorShare));
    let nodes: BTreeSet<&str> = limited.map(|held| held.subject.as_str()).collect();
    let mut all = Limited::new();
    if nodes.is_empty() {
        return Ok(all);
    }
    let read = |node: &str| -> Result<(u64, Option<u64>, u64), LabError> {
        Ok((monotonic_ns(), lab.control.cpu_ns(node)?, lab.control.held_ns(node)?))
    };
    let begun = nodes.into_iter().map(|node| Ok((node, read(node)?))).collect::<Result<Vec<_>, LabError>>()?;
    thread::sleep(LOOK);
    let processors = Processors::of_this_process();
    for (node, (from_ns, used_from, held_from)) in begun {
        let (to_ns, used_to, held_to) = read(node)?;
        // That of another process began at 0.
        let Some(used_ns) = used_from.zip(used_to).and_then(|(from, to)| to.checked_sub(from)) else { continue };
        let took_ns = to_ns.saturating_sub(from_ns).max(1) as f64;
        let share = |ns: f64| ns / (took_ns * processors.capacity());
        let worked = Worked {
            used: share(used_ns as f64),
            error: share(TICK_NS * f64::from(processors.count())),
            held: held_to.saturating_sub(held_from) as f64 / took_ns,
            periods: (took_ns / CpuLimit::PERIOD.as_nanos() as f64) as u64,
        };
        all.insert(node.to_owned(), worked);
    }
    Ok(all)
}

/// What a disk has shown: operation by operation, the times of those that succeeded, how many failed, and how many of how
/// many waited.
#[derive(Default)]
struct Used {
    took_ns: Vec<u64>,
    failed: u64,
    waited: (u64, u64),
}

type Disks = BTreeMap<(String, String), BTreeMap<String, Used>>;

/// Uses the directories that are hit, and counts.
fn use_disks(lab: &Lab, held: &[Checked]) -> Result<Disks, LabError> {
    let subjects = held.iter().flat_map(|held| &held.expected).filter_map(|one| directory_of(&one.subject));
    let hit: BTreeSet<(String, String)> =
        subjects.map(|(host, directory)| (host.to_owned(), directory.to_owned())).collect();
    let mut probes = Vec::new();
    for (host, directory) in &hit {
        let Some(registry) = lab.testbed.controls.disk(host, directory) else { continue };
        registry.control.take_counters();
        let probe = Probe::start(&registry.directory, DISK_EVERY, Operations::ALL)?;
        probes.push(((host.clone(), directory.clone()), registry, probe));
    }
    if !probes.is_empty() {
        thread::sleep(LOOK);
    }
    let mut disks = Disks::new();
    for (key, registry, probe) in probes {
        let used = disks.entry(key).or_default();
        for sample in probe.drain() {
            let used = used.entry(sample.operation.to_string()).or_default();
            match sample.took_ns {
                Ok(took) => used.took_ns.push(took),
                Err(_) => used.failed += 1,
            }
        }
        for (operation, counted) in registry.control.take_counters().iter() {
            used.entry(operation.to_string()).or_default().waited = (counted.delayed, counted.received);
        }
    }
    Ok(disks)
}

/// What shows of a fault of processes, processors, clocks and disks.
fn of_host(lab: &Lab, held: &Checked, asked: &Expectation, looked: &Looked) -> Result<Vec<Observed>, Failure> {
    use Quantity::*;
    let node = held.subject.as_str();
    let seen = match asked.quantity {
        Running => {
            let state = lab.control.state(node)?;
            (Some(state == left_by(held.kind)), format!("the kernel shows it {state}"))
        }
        // A process that does not run answers nobody.
        Answers => return Ok(Vec::new()),
        ProcessorShare => match lab.control.cpu_share(node)? {
            Some(share) => of_limit(asked, share, looked.limited.get(node)),
            None => (Some(false), "its CPU is not limited".to_owned()),
        },
        ClockOffset if held.asks(ClockDrift) => return Ok(Vec::new()),
        ClockOffset => {
            let by_ntp = lab.testbed.network.host(node).map(ask_ntp).unwrap_or_default();
            let by_database = looked.clocks.get(node).map_or(&[][..], Vec::as_slice);
            return Ok(of_clock(asked, &by_ntp, by_database).into());
        }
        quantity => {
            let Some((host, directory)) = directory_of(&asked.subject) else {
                return Ok(vec![(None, format!("a short check cannot measure: {}", quantity.name()))]);
            };
            let used = looked.disks.get(&(host.to_owned(), directory.to_owned()));
            of_disk(directory, asked, used)
        }
    };
    Ok(vec![seen])
}

/// Whether a clock is wrong as was asked, by NTP and by the database. The NTP server is the lab's own, and reads what the lab
/// itself has written: it does not show what the node's processes see.
fn of_clock(asked: &Expectation, by_ntp: &[(f64, f64)], by_database: &[(f64, f64)]) -> [Observed; 2] {
    let look = |told: &[(f64, f64)], who: &str, silent: &str| -> Observed {
        let seen = clock_glimpse(asked, told);
        let Some(offset_ns) = seen.value else { return (None, silent.to_owned()) };
        let words = format!("{who} {} ± {}", clock_words(offset_ns as i64, 0), format_ns(seen.error));
        if seen.shows.is_none() {
            return (None, format!("{words}: a short check cannot tell"));
        }
        (seen.shows, words)
    };
    [
        look(by_ntp, "NTP measures", "its NTP server does not answer"),
        look(by_database, "its database reports", "its database does not report the time"),
    ]
}

/// Whether a node that has this limit, as its governor says, works as it allows. Of several the least counts: a stricter one
/// hides it.
fn of_limit(asked: &Expectation, share: Share, worked: Option<&Worked>) -> Observed {
    let more = share.fraction() - asked.asked;
    let words = format!("its CPU limit is {share}");
    if more < -asked.tolerance {
        return (None, format!("{words}: a stricter one than this hides it"));
    }
    if more > asked.tolerance {
        return (Some(false), words);
    }
    let Some(worked) = worked else { return (None, format!("{words}: the node did not run all the while")) };
    let percent = |part: f64| format!("{:.1}%", part * 100.0);
    let (used, held) = (percent(worked.used), percent(worked.held));
    let words = format!("{words}; it used {used} of the processors, and was held for {held} of the time");
    match limit_glimpse(asked, worked) {
        None => (None, format!("{words}: not judged, the node used less than its limit")),
        shows => (shows, words),
    }
}

/// A disk that takes more than so many times what is asked, and than this besides, shows something else than the fault.
const MOST_TIMES: f64 = 3.0;
const MOST_BESIDES_NS: f64 = 50e6;

/// What a fault of processes makes of a node.
fn left_by(kind: &str) -> NodeState {
    if kind == "pause" { NodeState::Paused } else { NodeState::Down }
}

fn directory_of(subject: &Subject) -> Option<(&str, &str)> {
    match subject {
        Subject::Directory { host, directory } => Some((host, directory)),
        Subject::Pair { .. } | Subject::Overlay { .. } | Subject::Host { .. } => None,
    }
}

fn of_disk(directory: &str, asked: &Expectation, used: Option<&BTreeMap<String, Used>>) -> Observed {
    use Quantity::*;
    let (operation, what) = match asked.quantity {
        ReadTime | ReadErrors | ReadDelayed => (Operation::Read, asked.quantity),
        WriteTime | WriteErrors | WriteDelayed => (Operation::Write, asked.quantity),
        SyncTime | SyncErrors | SyncDelayed => (Operation::Sync, asked.quantity),
        _ => (Operation::Metadata, asked.quantity),
    };
    let Some(used) = used.and_then(|used| used.get(&operation.to_string())) else {
        return (None, format!("no {operation} was seen in {directory}"));
    };
    let of = format!("{operation} operations in {directory}");
    match what {
        ReadTime | WriteTime | SyncTime | MetadataTime => {
            let mut took = used.took_ns.clone();
            took.sort_unstable();
            let Some(median) = took.get(took.len() / 2) else { return (None, format!("none of the {of} succeeded")) };
            let rounded = Delay::from_ns(*median / 10_000 * 10_000);
            let words = format!("{of} take {rounded}, {} of {} waited", used.waited.0, used.waited.1);
            if *median as f64 > MOST_TIMES * asked.asked + MOST_BESIDES_NS {
                return (None, format!("{words}: something else makes them slower than this"));
            }
            // A disk takes its own time, too: that these waited is the filesystem's word.
            let shows = *median as f64 >= asked.asked - asked.tolerance && used.waited.0 > 0;
            (Some(shows), words)
        }
        ReadErrors | WriteErrors | SyncErrors | MetadataErrors => {
            let all = used.failed + used.took_ns.len() as u64;
            share_seen("failed", &of, (used.failed as f64, all as f64), asked.asked, (asked.tolerance, 1.0))
        }
        _ => {
            share_seen("waited", &of, (used.waited.0 as f64, used.waited.1 as f64), asked.asked, (asked.tolerance, 1.0))
        }
    }
}

#[cfg(test)]
mod tests {
    use brownout_network::Loss;

    use super::*;
    use crate::byhand::link_state::LinkState;

    const MS: u64 = 1_000_000;

    fn pair() -> (String, String) {
        ("n1".to_owned(), "n2".to_owned())
    }

    /// Of 100 probes on a link with these impairments, so many lost, the others so late.
    fn seen(own: &Impairment, beside: &[Impairment], delay_ns: u64, lost: usize) -> Vec<Option<bool>> {
        let arrival = |n| Arrival { delay_ns: (n >= lost).then_some(delay_ns), copies: 1, reordered: false };
        let probed = Probed::from([(pair(), (0..100).map(arrival).collect())]);
        let added = beside.iter().chain([own]).copied().collect();
        let read = LinkStates(BTreeMap::from([(pair(), LinkState { distance: Vec::new(), added })]));
        of_links(&[pair()], own, &read, &probed).into_iter().map(|(shows, _)| shows).collect()
    }

    #[test]
    fn a_delay_shows_with_all_else_that_is_on_its_link_and_one_that_is_not_there_does_not() {
        let slow = Impairment::delay(Delay::from_ms(100));
        assert_eq!(seen(&slow, &[], 100 * MS + 200_000, 0), [Some(true)]);
        assert_eq!(seen(&slow, &[], 200_000, 0), [Some(false)]);
        assert_eq!(seen(&slow, &[], 150 * MS, 0), [Some(false)]);
        let beside = Impairment::delay(Delay::from_ms(50));
        assert_eq!(seen(&slow, &[beside], 150 * MS + 200_000, 0), [Some(true)]);
        assert_eq!(seen(&slow, &[beside], 100 * MS, 0), [Some(false)]);
        assert_eq!(seen(&slow, &[], 0, 100), [None], "where no probe arrives there is no delay to see");
    }

    #[test]
    fn a_share_shows_as_far_as_so_many_probes_can_tell() {
        let flaky =
            |share: &str| Impairment { loss: Loss::Independent(share.parse::<Share>().unwrap()), ..Impairment::NONE };
        assert_eq!(seen(&flaky("30%"), &[], MS, 33), [Some(true)]);
        assert_eq!(seen(&flaky("30%"), &[], MS, 0), [Some(false)]);
        assert_eq!(seen(&flaky("30%"), &[], MS, 80), [Some(false)]);
        // Two of 20% each lose 36%.
        assert_eq!(seen(&flaky("20%"), &[flaky("20%")], MS, 36), [Some(true)]);
        assert_eq!(seen(&flaky("1%"), &[], MS, 1), [None]);
        let cut = Impairment { cut: Some(brownout_network::Cut::Drop), ..Impairment::NONE };
        assert_eq!((seen(&cut, &[], MS, 100), seen(&cut, &[], MS, 60)), (vec![Some(true)], vec![Some(false)]));
    }

    #[test]
    fn what_no_short_look_tells_is_not_seen() {
        assert_eq!(seen(&Impairment { mtu: Some(1000), ..Impairment::NONE }, &[], MS, 0), [None]);
    }

    #[test]
    fn one_quantity_that_shows_proves_no_other() {
        let slow = Impairment::delay(Delay::from_ms(100));
        let both = Impairment { mtu: Some(1000), ..slow };
        let of = |own: &Impairment| {
            let told = seen(own, &[], 100 * MS, 0).into_iter().map(|shows| (shows, String::new()));
            is_proven(&told.collect::<Vec<Observed>>())
        };
        assert!(of(&slow) && !of(&both), "nobody has seen how large packets may be");
        assert!(!is_proven(&[]));
    }

    #[test]
    fn a_link_that_is_spared_is_not_hidden_by_the_others() {
        let flaky = Impairment { loss: Loss::Independent("30%".parse::<Share>().unwrap()), ..Impairment::NONE };
        let links: Vec<(String, String)> = (1..=6).map(|to| ("n0".to_owned(), format!("n{to}"))).collect();
        let of = |lost: [usize; 6]| {
            let arrivals = |lost: usize| {
                let arrival = |n| Arrival { delay_ns: (n >= lost).then_some(MS), copies: 1, reordered: false };
                (0..120).map(arrival).collect::<Vec<Arrival>>()
            };
            let probed: Probed = links.iter().cloned().zip(lost.map(arrivals)).collect();
            of_links(&links, &flaky, &LinkStates::default(), &probed).remove(0)
        };
        assert_eq!(of([36; 6]).0, Some(true));
        let (shows, words) = of([36, 36, 0, 36, 36, 36]);
        assert!(shows == Some(false) && words.contains("n0 → n3: 0 of 120 probes lost"), "{words}");
    }

    #[test]
    fn jitter_shows_by_the_spread_of_the_delays() {
        let slow = Impairment { jitter: Delay::from_ms(10), ..Impairment::delay(Delay::from_ms(100)) };
        let of = |width_us: u64| {
            let arrival = |n: u64| Arrival {
                delay_ns: Some(100 * MS + n * width_us * 10 - width_us * 500),
                copies: 1,
                reordered: false,
            };
            let probed = Probed::from([(pair(), (0..100).map(arrival).collect())]);
            let seen = of_links(&[pair()], &slow, &LinkStates::default(), &probed);
            seen.into_iter().map(|(shows, _)| shows).collect::<Vec<_>>()
        };
        assert_eq!(of(20_000), [Some(true), Some(true)], "uniform within 10 ms to either side");
        assert_eq!(of(0), [Some(true), Some(false)]);
    }

    #[test]
    fn a_paused_node_that_dies_is_paused_no_more() {
        assert_eq!(["pause", "kill", "stop"].map(left_by), [NodeState::Paused, NodeState::Down, NodeState::Down]);
    }

    #[test]
    fn a_disk_is_slow_if_its_operations_waited() {
        let asked = Expectation {
            subject: Subject::directory("n2", "data"),
            quantity: Quantity::SyncTime,
            hit: true,
            asked: 20.0 * MS as f64,
            tolerance: 2.0 * MS as f64,
            burst: None,
        };
        let look = |took, waited| {
            let used = Used { took_ns: vec![took; 9], failed: 0, waited: (waited, 9) };
            of_disk("data", &asked, Some(&BTreeMap::from([("sync".to_owned(), used)]))).0
        };
        assert_eq!((look(22 * MS, 9), look(2 * MS, 9)), (Some(true), Some(false)));
        assert_eq!(look(22 * MS, 0), Some(false), "a disk that is slow by itself is no fault");
        assert_eq!(look(500 * MS, 9), None, "whoever makes it wait for so long, it is not this fault");
        assert_eq!(of_disk("data", &asked, None).0, None);
    }

    fn of_n2(quantity: Quantity, asked: f64, tolerance: f64) -> Expectation {
        Expectation { subject: Subject::host("n2"), quantity, hit: true, asked, tolerance, burst: None }
    }

    #[test]
    fn a_clock_that_only_the_labs_own_server_shows_is_not_seen() {
        let asked = of_n2(Quantity::ClockOffset, 5e9, 5e6);
        let (ahead, right) = ([(5e9 + 1e5, 6e5); 3], [(1e5, 6e5); 3]);
        let look = |by_ntp: &[(f64, f64)], by_database: &[(f64, f64)]| {
            let seen = of_clock(&asked, by_ntp, by_database);
            let words = format!("{}; {}", seen[0].1, seen[1].1);
            (is_proven(&seen), words)
        };
        let (proven, words) = look(&ahead, &ahead);
        assert!(proven && words.contains("NTP measures +5.00s ± 600us; its database reports +5.00s"), "{words}");
        let (proven, words) = look(&ahead, &[]);
        assert!(!proven && words.contains("its database does not report the time"), "{words}");
        assert!(!look(&ahead, &right).0, "what shifts it has not come to the database");
        assert!(!look(&ahead, &ahead[..2]).0, "two answers are too few");
        assert!(!look(&right, &ahead).0 && !look(&[], &ahead).0, "nor is one that only the database shows");
    }

    /// What a look says of a limit of half of the processors, which the governor shows as this one.
    fn limited(share: &str, used: f64, held: f64) -> Observed {
        let worked = Worked { used, error: 0.01, held, periods: 12 };
        of_limit(&of_n2(Quantity::ProcessorShare, 0.5, 0.05), share.parse().unwrap(), Some(&worked))
    }

    #[test]
    fn a_stricter_limit_of_processors_is_no_proof_of_this_one() {
        let shows = |share: &str| limited(share, 0.5, 0.4).0;
        assert_eq!([shows("50%"), shows("5%"), shows("80%")], [Some(true), None, Some(false)]);
    }

    #[test]
    fn a_limit_that_was_never_reached_is_not_judged() {
        let (shows, words) = limited("50%", 0.1, 0.0);
        assert!(shows.is_none() && words.contains("used less than its limit"), "{words}");
        assert_eq!(limited("50%", 0.1, 0.02).0, Some(true), "it was held for a moment");
        assert_eq!(limited("50%", 0.48, 0.0).0, Some(true), "it took all of it");
        let gone = of_limit(&of_n2(Quantity::ProcessorShare, 0.5, 0.05), "50%".parse().unwrap(), None);
        assert!(gone.0.is_none() && gone.1.contains("did not run"), "{}", gone.1);
    }

    #[test]
    fn a_limit_that_is_exceeded_is_not_seen() {
        let (shows, words) = limited("50%", 0.7, 0.0);
        assert!(shows == Some(false) && words.contains("it used 70.0% of the processors"), "{words}");
        assert_eq!(limited("50%", 0.7, 0.3).0, Some(false), "whatever its governor says that it does");
        assert_eq!(limited("50%", 0.1, 0.9).0, Some(false), "what holds it so long allows less");
    }

    #[test]
    fn a_share_in_bursts_may_differ_more_than_one_of_single_packets() {
        let [p, r] = ["2.5%", "10%"].map(|share| share.parse::<Share>().unwrap());
        let bursts = Loss::GilbertElliott { p, r, one_minus_h: Share::ALL, one_minus_k: Share::ZERO };
        let loss = |loss| Impairment { loss, ..Impairment::NONE };
        let alone = loss(Loss::Independent("20%".parse().unwrap()));
        assert_eq!(
            (seen(&loss(bursts), &[], MS, 45), seen(&alone, &[], MS, 45)),
            (vec![Some(true)], vec![Some(false)])
        );
    }
}
