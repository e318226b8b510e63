//! Operations of a profile as one load, or each as a load of its own.

#![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

use std::{
    io,
    path::Path,
    sync::Arc,
    thread::sleep,
    time::{Duration, Instant},
};

use brownout_load::{
    Arrivals, Consistency, Engine, EngineConfig, Pace, WireOptions, Workload,
    stub::{Content, Stub, StubOptions},
};
use brownout_stress::{
    operations::StressWorkload,
    profile::Profile,
    run::experiment::{ProfileLoad, ProfileLoadOptions},
    settings::{Op, Share},
};
use brownout_units::Rate;

const PROFILE: &str = "\
keyspace: ks
table: t
keyspace_definition: \"CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}\"
table_definition: CREATE TABLE ks.t (k bigint PRIMARY KEY, v blob)
columnspec: [{ name: v, size: fixed(8) }]
queries:
  put: { cql: UPDATE ks.t SET v = ? WHERE k = ?, fields: samerow }
";

fn load(stub: &Stub, shares: [Share; 2], apart: bool) -> Arc<StressWorkload> {
    let no_files = |_: &Path| Err(io::Error::from(io::ErrorKind::NotFound));
    let load = ProfileLoad::new(ProfileLoadOptions {
        profiles: vec![Profile::from_text("t.yaml", PROFILE.to_owned(), &no_files).unwrap()],
        ops: ["insert", "put"]
            .into_iter()
            .zip(shares)
            .map(|(name, share)| Op { name: name.to_owned(), share })
            .collect(),
        apart,
        consistency: Consistency::One,
        partitions: 1_000,
        keys: None,
    });
    load.unwrap().make(&stub.coordinators(), &WireOptions::default(), 1, &|| false).unwrap().load
}

#[test]
fn operations_with_rates_or_users_have_a_flow_each_in_their_order() {
    let options = StubOptions { content: Content::Canned { rows: 1, size: 8 }, ..StubOptions::default() };
    let stub = Stub::local_with(1, options).unwrap();
    let rate = Rate::per_second(400.0).unwrap();
    // How much there is of each is the pace's to say.
    let load = load(&stub, [Share::Rate(rate), Share::Weight(1.0)], true);
    assert_eq!(load.flows(), 2);
    let paces = [Pace::Open { rate, arrivals: Arrivals::Constant }, Pace::Closed { threads: 2 }];
    for (at, name) in ["insert", "put"].into_iter().enumerate() {
        let config = EngineConfig { timeout: Duration::from_secs(60), ..EngineConfig::new(stub.coordinators()) };
        let engine = Engine::launch(config, Arc::clone(&load) as Arc<dyn Workload>).unwrap();
        let mut one = vec![Pace::Idle, Pace::Idle];
        one[at] = paces[at].clone();
        engine.set_paces(one).unwrap();
        let start = Instant::now();
        while engine.balance().answered_ok < 50 {
            assert!(start.elapsed() < Duration::from_secs(60), "waited 60 s for 50 answers");
            sleep(Duration::from_millis(5));
        }
        let (buckets, balance) = engine.stop(Duration::from_secs(60));
        assert!(balance.balances(), "{balance:?}");
        let series = || buckets.iter().flat_map(|bucket| &bucket.series);
        assert!(series().count() > 0 && series().all(|series| series.statement == name), "{name}");
    }
}

#[test]
fn operations_with_weights_are_one_flow() {
    let options = StubOptions { content: Content::Canned { rows: 1, size: 8 }, ..StubOptions::default() };
    let stub = Stub::local_with(1, options).unwrap();
    assert_eq!(load(&stub, [Share::Weight(1.0), Share::Weight(3.0)], false).flows(), 1);
}
