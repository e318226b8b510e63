//! Probes that the sending host's kernel does not let out.

// Helpers outside of a #[test] may fail it just as well.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../../network/tests/common/mod.rs"]
mod common;

use std::{process::Command, time::Duration};

use brownout_base::clock::monotonic_ns;
use brownout_probe::{ProbeSample, Probes};
use common::{link, network, samples};

#[test]
fn a_probe_that_its_own_host_refuses_to_send_is_lost() {
    let network = network(2);
    let there = link(&network, "h0", "h1");
    let probes = Probes::start(&network, Duration::from_millis(10)).unwrap();
    let rule = "meta l4proto udp numgen inc mod 5 0 drop";
    let table = format!("table ip harm {{ chain leaving {{ type filter hook output priority 0; {rule}; }}; }}");
    let nft = || Command::new("nft").arg(&table).output();
    let output = network.host("h0").unwrap().run(nft).unwrap().unwrap();
    assert!(output.status.success(), "this test needs nft (nftables): {output:?}");
    let since = monotonic_ns();

    let lost = |sample: &&ProbeSample| sample.link == there && sample.sent_ns > since && sample.delay_ns.is_none();
    let all = samples(&probes, |all| all.iter().filter(lost).count() >= 40);
    // Who is lost settles later than who arrived, and each in its turn: up to the last of them all are known.
    let last = all.iter().filter(lost).map(|sample| sample.sent_ns).max().unwrap();
    let known = |sample: &&ProbeSample| sample.link == there && (since + 1..=last).contains(&sample.sent_ns);
    let (lost, known) = (all.iter().filter(lost).count(), all.iter().filter(known).count());
    assert!(known.abs_diff(5 * lost) <= 5, "{lost} of {known} were lost, not a fifth");
    assert!(all.iter().all(|sample| sample.link == there || sample.delay_ns.is_some()), "the way back is harmed");
    let health = probes.health();
    assert!(health.refused >= lost as u64, "{health:?}");
}
