//! Probes on links that copy and reorder packets.

// Helpers outside of a #[test] may fail it just as well.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../../network/tests/common/mod.rs"]
mod common;
#[path = "../../network/tests/machine/mod.rs"]
mod machine;

use std::time::Duration;

use brownout_network::{Chance, Impairment};
use brownout_probe::{ProbeSample, Probes};
use common::{impair, link, network, samples};
use machine::until_quiet;

#[test]
fn copies_are_counted_however_far_behind_the_first_they_come() {
    // A copy is waited for, 50 ms longer than a link may hold it. On a machine that stands still it may come later.
    until_quiet("copies", 25.0, |_| {
        let network = network(2);
        let there = link(&network, "h0", "h1");
        let probes = Probes::start(&network, Duration::from_millis(10)).unwrap();
        // The copies of a probe are up to 400 ms apart.
        let impairment =
            Impairment { delay: "300ms".parse().unwrap(), jitter: "200ms".parse().unwrap(), ..Impairment::NONE };
        let duplicate = Chance { share: "100%".parse().unwrap(), ..Chance::default() };
        let guard = impair(&network, &[there], Impairment { duplicate, ..impairment });
        let since = guard.change().at_ns + guard.change().error_ns;
        let hit = |sample: &ProbeSample| sample.link == there && sample.sent_ns > since;
        let all = samples(&probes, |all| all.iter().filter(|sample| hit(sample)).count() >= 200);
        let (hit, spared): (Vec<_>, Vec<_>) = all
            .into_iter()
            .filter(|sample| hit(sample) || sample.link != there)
            .partition(|sample| sample.link == there);
        assert!(hit.iter().filter(|sample| sample.reordered).count() > 50);
        assert!(spared.iter().all(|sample| sample.copies <= 1 && !sample.reordered));
        assert!(hit.iter().all(|sample| sample.copies <= 2), "{hit:?}");
        let once = hit.iter().filter(|sample| sample.copies < 2).count();
        let lost = spared.iter().filter(|sample| sample.copies < 1).count();
        match (once, lost, probes.health().late_answers) {
            (0, 0, 0) => Ok(()),
            missed => Err(format!("came once, never, too late to count: {missed:?}")),
        }
    });
}
