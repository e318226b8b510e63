//! Hosts on two machines: each machine measures the links that begin there, and is told by the other what has arrived. Here both are
//! this one, with hosts that are addresses of the loopback interface; the other's clock is said to be two seconds ahead.

// Helpers outside of a #[test] may fail it just as well.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    collections::VecDeque,
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use brownout_base::{
    ArrivalElsewhere, ArrivalsElsewhere, EnterableHost, HostId, Link, LongestHold, Mesh, clock::monotonic_ns,
};
use brownout_probe::{FarArrival, FarEnd, ProbeError, ProbeSample, Probes, TrainSpec, Trains};

/// For what must come.
const PATIENCE: Duration = Duration::from_secs(60);
/// By how much the other machine's clock is ahead, ns.
const AHEAD_NS: u64 = 2_000_000_000;
/// Kinds of senders.
const PROBES: u16 = 0;
const TRAINS: u16 = 1;

struct Host {
    name: String,
    address: Ipv4Addr,
}

impl EnterableHost for Host {
    fn name(&self) -> &str {
        &self.name
    }

    fn address(&self) -> Ipv4Addr {
        self.address
    }

    fn enter(&self) -> io::Result<()> {
        Ok(())
    }
}

/// What was told of one host's stream.
#[derive(Default)]
struct Told {
    address: Mutex<Option<SocketAddr>>,
    arrivals: Mutex<VecDeque<ArrivalElsewhere>>,
}

impl ArrivalsElsewhere for Told {
    fn address(&self) -> SocketAddr {
        self.address.lock().unwrap().unwrap()
    }

    fn next(&self) -> Option<ArrivalElsewhere> {
        self.arrivals.lock().unwrap().pop_front()
    }
}

/// One of the machines: of three hosts, those of `here` are on it.
struct Machine {
    hosts: Vec<Host>,
    here: Vec<usize>,
    told: Vec<Arc<Told>>,
}

struct Hold;

impl LongestHold for Hold {
    fn longest_hold_of_ns(&self, _: Link) -> u64 {
        0
    }
}

impl Machine {
    fn new(here: &[usize]) -> Machine {
        let host = |n: u8| Host { name: format!("h{n}"), address: Ipv4Addr::new(127, 0, 0, n + 1) };
        Machine {
            hosts: (0..3).map(host).collect(),
            here: here.to_vec(),
            told: (0..3).map(|_| Arc::default()).collect(),
        }
    }
}

impl Mesh for Machine {
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
        Arc::new(Hold)
    }

    fn elsewhere(&self, host: HostId) -> Option<Arc<dyn ArrivalsElsewhere>> {
        let is_here = self.here.contains(&host.index());
        (!is_here).then(|| Arc::<Told>::clone(&self.told[host.index()]) as Arc<dyn ArrivalsElsewhere>)
    }
}

/// Two hosts on one machine, whose view this is, and one on the other, which tells of what arrives on a stream.
fn machines(stream: u16) -> (Machine, FarEnd) {
    let (one, other) = (Machine::new(&[0, 1]), Machine::new(&[2]));
    let told = Arc::clone(&one.told[2]);
    let tell = move |arrivals: Vec<FarArrival>| {
        for FarArrival { from, to, stream: of, mut arrival } in arrivals {
            assert!(to == HostId(2) && from.index() < 2 && of == stream);
            // By the other's clock, and back.
            let theirs = arrival.at_ns.map(|at| at + AHEAD_NS);
            arrival.at_ns = theirs.map(|at| at - AHEAD_NS);
            told.arrivals.lock().unwrap().push_back(arrival);
        }
    };
    let far_end = FarEnd::start(&other, 2, Box::new(tell)).unwrap();
    assert_eq!(far_end.address(HostId(0), stream), None, "it is not there");
    *one.told[2].address.lock().unwrap() = far_end.address(HostId(2), stream);
    (one, far_end)
}

fn link(from: u16, to: u16) -> Link {
    Link { from: HostId(from), to: HostId(to) }
}

#[test]
fn links_that_begin_here_are_measured_wherever_they_end() {
    let (one, _far_end) = machines(PROBES);
    let probes = Probes::start(&one, Duration::from_millis(10)).unwrap();
    let begin_here = [link(0, 1), link(0, 2), link(1, 0), link(1, 2)];
    let end = Instant::now() + PATIENCE;
    let mut all: Vec<ProbeSample> = Vec::new();
    while begin_here.iter().any(|link| all.iter().filter(|one| one.link == *link).count() < 20) {
        assert!(Instant::now() < end, "{all:?} {:?}", probes.health());
        thread::sleep(Duration::from_millis(20));
        all.extend(probes.drain());
    }
    assert!(all.iter().all(|one| begin_here.contains(&one.link)), "{all:?}");
    assert!(all.iter().all(|one| one.copies == 1 && one.delay_ns.is_some_and(|delay| delay < AHEAD_NS)), "{all:?}");
}

#[test]
fn what_nobody_tells_of_is_lost_and_a_host_that_is_away_is_not() {
    let (one, far_end) = machines(PROBES);
    let far = [link(0, 2), link(1, 2)];
    let probes = Probes::start_on(&one, &far, Duration::from_millis(10)).unwrap();
    let until = |is_so: &dyn Fn(&ProbeSample) -> bool| {
        let end = Instant::now() + PATIENCE;
        while !probes.drain().iter().any(is_so) {
            assert!(Instant::now() < end, "{:?}", probes.health());
            thread::sleep(Duration::from_millis(20));
        }
    };
    until(&|sample| sample.delay_ns.is_some());
    drop(far_end);
    until(&|sample| sample.delay_ns.is_none());
    // It is told that it has left only now.
    probes.left(HostId(2), 0);
    thread::sleep(Duration::from_millis(500));
    probes.drain();
    let sent = probes.health().sent;
    thread::sleep(Duration::from_millis(200));
    assert_eq!(probes.health().sent, sent, "nobody is there");

    let other = Machine::new(&[2]);
    let told = Arc::clone(&one.told[2]);
    let tell = move |arrivals: Vec<FarArrival>| {
        told.arrivals.lock().unwrap().extend(arrivals.into_iter().map(|far| far.arrival));
    };
    let again = FarEnd::start(&other, 1, Box::new(tell)).unwrap();
    *one.told[2].address.lock().unwrap() = again.address(HostId(2), PROBES);
    let back_ns = monotonic_ns();
    probes.back(HostId(2));
    until(&|sample| sample.delay_ns.is_some() && sample.sent_ns > back_ns);
}

#[test]
fn a_whole_train_arrives_on_another_machine() {
    let (one, _far_end) = machines(TRAINS);
    let spec = TrainSpec { packets: 50, every: Duration::from_millis(50), ..TrainSpec::default() };
    let trains = Trains::start(&one, &[(link(0, 2), None)], spec).unwrap();
    let end = Instant::now() + PATIENCE;
    loop {
        assert!(Instant::now() < end, "{} discarded", trains.discarded());
        let whole = |sample: &brownout_probe::TrainSample| sample.packets == 50 && sample.arrived == 50;
        if let Some(sample) = trains.drain().into_iter().find(whole) {
            assert!(sample.rate_bps.is_some_and(|rate| rate > 0.0), "{sample:?}");
            break;
        }
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_link_that_begins_elsewhere_is_refused() {
    let (one, _far_end) = machines(PROBES);
    let error = Probes::start_on(&one, &[link(2, 0)], Duration::from_millis(10)).unwrap_err();
    assert!(matches!(error, ProbeError::BeginsElsewhere { from: 2, to: 0 }), "{error}");
    let error = Trains::start(&one, &[(link(2, 1), None)], TrainSpec::default()).unwrap_err();
    assert!(error.to_string().contains("measure it there"), "{error}");
}
