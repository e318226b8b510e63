//! Hosts that nobody emulates: addresses of the loopback interface. It takes no privileges.

// Helpers outside of a #[test] may fail it just as well.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    io,
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use brownout_base::{EnterableHost, HostId, Link, LongestHold, Mesh, clock::monotonic_ns};
use brownout_probe::{ProbeError, ProbeHealth, ProbeSample, Probes, TrainSpec, Trains};

/// For what must come.
const PATIENCE: Duration = Duration::from_secs(60);

struct Here {
    name: String,
    address: Ipv4Addr,
    is_open: bool,
}

impl EnterableHost for Here {
    fn name(&self) -> &str {
        &self.name
    }

    fn address(&self) -> Ipv4Addr {
        self.address
    }

    fn enter(&self) -> io::Result<()> {
        if self.is_open { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
    }
}

/// All links may hold a packet equally long.
#[derive(Default)]
struct Hold(AtomicU64);

impl LongestHold for Hold {
    fn longest_hold_of_ns(&self, _: Link) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

struct Loopback {
    hosts: Vec<Here>,
    hold: Arc<Hold>,
}

impl Loopback {
    fn new(hosts: u8) -> Self {
        let host = |n| Here { name: format!("h{n}"), address: Ipv4Addr::new(127, 0, 0, n + 1), is_open: true };
        Loopback { hosts: (0..hosts).map(host).collect(), hold: Arc::default() }
    }
}

impl Mesh for Loopback {
    fn enterable_hosts(&self) -> Vec<&dyn EnterableHost> {
        self.hosts.iter().map(|host| host as &dyn EnterableHost).collect()
    }

    fn mtu(&self) -> u16 {
        1_500
    }

    fn is_realtime(&self) -> bool {
        false
    }

    fn holds(&self) -> Arc<dyn LongestHold> {
        Arc::<Hold>::clone(&self.hold)
    }
}

#[test]
fn each_probe_arrives_once_on_every_link() {
    let probes = Probes::start(&Loopback::new(3), Duration::from_millis(10)).unwrap();
    let end = Instant::now() + PATIENCE;
    let mut all: Vec<ProbeSample> = Vec::new();
    let of = |all: &[ProbeSample], link| all.iter().filter(|one| one.link == link).map(|one| one.seq).collect();
    while Link::all(3).into_iter().any(|link| Vec::<u64>::len(&of(&all, link)) < 20) {
        assert!(Instant::now() < end, "{all:?}");
        thread::sleep(Duration::from_millis(20));
        all.extend(probes.drain());
    }
    for link in Link::all(3) {
        let mut numbers: Vec<u64> = of(&all, link);
        numbers.sort_unstable();
        assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>(), "{link:?}");
    }
    let whole = |one: &ProbeSample| one.delay_ns.is_some() && one.copies == 1;
    assert!(all.iter().all(whole), "{all:?}");
    assert!(probes.health().sent >= all.len() as u64);
}

/// Waits until each of these links has an arrival of a probe that was sent after this moment; all that was seen by then.
fn until_all_arrive(probes: &Probes, links: &[Link], after_ns: u64) -> Vec<ProbeSample> {
    let end = Instant::now() + PATIENCE;
    let mut all: Vec<ProbeSample> = Vec::new();
    let arrives = |all: &[ProbeSample], link: &Link| {
        all.iter().any(|one| one.link == *link && one.delay_ns.is_some() && one.sent_ns > after_ns)
    };
    while !links.iter().all(|link| arrives(&all, link)) {
        assert!(Instant::now() < end, "{:?}", probes.health());
        thread::sleep(Duration::from_millis(20));
        all.extend(probes.drain());
    }
    all
}

#[test]
fn a_host_that_is_away_has_no_samples_and_is_probed_again_where_it_is_then() {
    let mut network = Loopback::new(3);
    let probes = Probes::start(&network, Duration::from_millis(10)).unwrap();
    until_all_arrive(&probes, &Link::all(3), 0);
    let host = HostId(1);
    let (of_it, others): (Vec<Link>, Vec<Link>) =
        Link::all(3).into_iter().partition(|link| link.from == host || link.to == host);
    let left_ns = monotonic_ns();
    probes.left(host, left_ns);
    // Whatever is lost counts as such by then.
    thread::sleep(Probes::LOST_AFTER + Duration::from_millis(500));
    let seen = until_all_arrive(&probes, &others, monotonic_ns());
    // It is told within a few looks of the thread.
    let told_ns = left_ns + 1_000_000_000;
    let of_gap: Vec<&ProbeSample> = seen
        .iter()
        .filter(|one| of_it.contains(&one.link) && (one.delay_ns.is_none() || one.sent_ns > told_ns))
        .collect();
    assert!(of_gap.is_empty(), "{of_gap:?}");
    assert!(probes.health().absent > 0);

    network.hosts[1].address = Ipv4Addr::new(127, 0, 0, 9);
    let came_ns = monotonic_ns();
    probes.came(host, &network.hosts[1]).unwrap();
    let seen = until_all_arrive(&probes, &Link::all(3), came_ns);
    assert!(seen.iter().all(|one| one.delay_ns.is_some()), "{seen:?}");
}

#[test]
fn trains_go_on_where_a_host_is_after_it_was_away() {
    let mut network = Loopback::new(2);
    let link = Link { from: HostId(0), to: HostId(1) };
    let spec = TrainSpec { packets: 20, every: Duration::from_millis(50), ..TrainSpec::default() };
    let trains = Trains::start(&network, &[(link, None)], spec).unwrap();
    let until = |after_ns: u64| {
        let end = Instant::now() + PATIENCE;
        while !trains.drain().iter().any(|sample| sample.sent_ns > after_ns && sample.arrived == 20) {
            assert!(Instant::now() < end, "{} discarded", trains.discarded());
            thread::sleep(Duration::from_millis(20));
        }
    };
    until(0);
    trains.left(HostId(1), monotonic_ns());
    thread::sleep(Duration::from_millis(200));
    let sent = trains.sent();
    thread::sleep(Duration::from_millis(300));
    assert_eq!(trains.sent(), sent, "nobody is there");
    network.hosts[1].address = Ipv4Addr::new(127, 0, 0, 9);
    trains.came(HostId(1), &network.hosts[1]).unwrap();
    until(monotonic_ns());
}

#[test]
fn what_is_sent_settles_the_later_the_longer_a_link_may_hold_it() {
    let network = Loopback::new(2);
    let probes = Probes::start(&network, Duration::from_millis(10)).unwrap();
    let clear = probes.settles_within();
    assert!(clear > Probes::LOST_AFTER);
    network.hold.0.store(3_000_000_000, Ordering::Relaxed);
    assert_eq!(probes.settles_within(), clear + Duration::from_secs(3));
}

#[test]
fn a_whole_train_arrives() {
    let link = Link { from: HostId(1), to: HostId(0) };
    let spec = TrainSpec { packets: 50, every: Duration::from_millis(50), ..TrainSpec::default() };
    let trains = Trains::start(&Loopback::new(2), &[(link, None)], spec).unwrap();
    let end = Instant::now() + PATIENCE;
    let sample = loop {
        assert!(Instant::now() < end, "{} discarded", trains.discarded());
        // One that the machine cut short tells of the machine.
        if let Some(sample) = trains.drain().into_iter().find(|sample| sample.packets == 50) {
            break sample;
        }
        thread::sleep(Duration::from_millis(20));
    };
    assert_eq!((sample.link, sample.arrived), (link, 50));
    assert!(sample.rate_bps.is_some_and(|rate| rate > 0.0), "{sample:?}");
}

#[test]
fn probes_that_would_be_a_load_of_their_own_are_refused() {
    let network = Loopback::new(3);
    let error = Probes::start(&network, Duration::from_millis(1)).unwrap_err();
    assert!(matches!(error, ProbeError::Budget { links: 6, .. }), "{error}");
    assert!(Probes::start(&network, Probes::shortest_interval(6)).is_ok());
}

#[test]
fn links_that_are_none_and_hosts_that_cannot_be_entered_are_named() {
    let mut network = Loopback::new(2);
    let beyond = Link { from: HostId(0), to: HostId(2) };
    let error = Probes::start_on(&network, &[beyond], Duration::from_millis(10)).unwrap_err();
    assert!(matches!(error, ProbeError::NoSuchLink { from: 0, to: 2, hosts: 2 }), "{error}");
    network.hosts[1].is_open = false;
    let error = Probes::start(&network, Duration::from_millis(10)).unwrap_err().to_string();
    assert!(error.contains("host h1 (127.0.0.2): enter the host"), "{error}");
}

#[test]
fn a_host_alone_has_nothing_to_probe() {
    let probes = Probes::start(&Loopback::new(1), Duration::from_millis(10)).unwrap();
    thread::sleep(Duration::from_millis(50));
    assert_eq!(probes.health(), ProbeHealth::default());
    assert!(probes.drain().is_empty());
}
