//! Answers of which a segment is lost are timed by when they could be read, not by when the rest of them had come: through real
//! namespaces and packets.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

use std::{
    net::{Ipv4Addr, TcpListener},
    thread::sleep,
    time::{Duration, Instant},
};

use brownout_base::clock::monotonic_ns;
use brownout_load::{
    Bucket, Consistency, Engine, EngineConfig, Histogram, KeyValue, Outcome, Pace, histogram,
    stub::{Stub, StubOptions},
};
use brownout_network::{HostSpec, Impairment, LinkControl as _, Loss, Network, NetworkSpec};

const ONE_WAY: Duration = Duration::from_millis(100);

/// Four segments, which go out at once.
const VALUE: u64 = 5_000;

fn network() -> Network {
    let host = |(n, name): (u8, &str)| HostSpec::new(name, Ipv4Addr::new(10, 77, 1, n));
    let spec = NetworkSpec {
        hosts: (1..).zip(["load", "server"]).map(host).collect(),
        mtu: 1500,
        congestion_control: Some("reno".into()),
        seed: 20_111,
        realtime: true,
        overlay: None,
    };
    Network::start(spec).unwrap_or_else(|error| panic!("this test needs root and /dev/net/tun: {error}"))
}

fn quantile(share: f64, buckets: &[Bucket], of: impl Fn(&Bucket) -> Histogram<u64>) -> Duration {
    let mut sum = histogram();
    for bucket in buckets {
        sum.add(of(bucket)).unwrap();
    }
    Duration::from_nanos(sum.value_at_quantile(share))
}

fn responses(bucket: &Bucket) -> Histogram<u64> {
    let mut sum = histogram();
    for series in bucket.series.iter().filter(|series| series.outcome == Outcome::Ok) {
        sum.add(&series.response).unwrap();
    }
    sum
}

#[test]
fn an_answer_is_there_when_what_was_lost_of_it_has_come_again() {
    let network = network();
    let server = network.host("server").unwrap();
    let bound = server.run(|| TcpListener::bind((Ipv4Addr::new(10, 77, 1, 2), 9042)).unwrap()).unwrap();
    let stub = Stub::serve(vec![bound], StubOptions::default()).unwrap();
    let workload = KeyValue {
        keyspace: "stub".into(),
        table: "kv".into(),
        replication: 1,
        data_centres: Default::default(),
        consistency: Consistency::One,
        read: 1,
        write: 0,
        population: 50,
        value_size: VALUE,
        timestamps: Default::default(),
    };
    let config = EngineConfig {
        connections: 8,
        timeout: Duration::from_secs(60),
        epoch_ns: monotonic_ns(),
        ..EngineConfig::new(stub.coordinators())
    };
    let load = network.host("load").unwrap();
    let engine = load.run(|| Engine::start(config, workload).unwrap()).unwrap();
    engine.set_pace(Pace::Populate { in_flight: 8 }).unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    while !engine.populated().complete() {
        assert!(Instant::now() < until, "no values within 20 s");
        sleep(Duration::from_millis(5));
    }
    engine.set_pace(Pace::Idle).unwrap();

    // A segment that is missing is asked for, which takes one way, and comes again; those after it have come long before.
    let late = Impairment { delay: ONE_WAY.into(), ..Impairment::NONE };
    let lossy = Impairment { loss: Loss::Independent("15%".parse().unwrap()), ..Impairment::NONE };
    let _late = network.control().impair(&[network.link("load", "server").unwrap()], &late).unwrap();
    let _lossy = network.control().impair(&[network.link("server", "load").unwrap()], &lossy).unwrap();
    engine.set_pace(Pace::Closed { threads: 8 }).unwrap();
    let since = monotonic_ns();
    sleep(Duration::from_secs(8));
    let (mut buckets, balance) = engine.stop(Duration::from_secs(60));
    assert!(balance.balances(), "{balance:#?}");
    buckets.retain(|bucket| bucket.start_ns >= since);
    let response = quantile(0.5, &buckets, responses);
    let lateness = quantile(0.9, &buckets, |bucket| bucket.lateness.clone());
    println!("{} operations, response {response:?}, lateness {lateness:?}", balance.sent);
    assert!(response >= 3 * ONE_WAY, "most answers were sent again, if not all of them: {response:?}");
    assert!(lateness < ONE_WAY / 4, "and the next operation was sent as soon as they had come: {lateness:?}");
}
