//! Delay and jitter: asked and measured, by probes through real namespaces.

mod common;

use std::time::Duration;

use brownout_network::{Impairment, LinkControl, Probes};
use brownout_units::Delay;
use common::{delays_ms, impair, link, network, quantile, samples};

#[test]
fn a_delay_is_measured_on_the_links_it_hits_and_on_no_other() {
    let network = network(3);
    let probes = Probes::start(&network, Duration::from_millis(5)).unwrap();
    for asked in ["0ms", "1ms", "10ms", "100ms"] {
        let delay: Delay = asked.parse().unwrap();
        let hit = [link(&network, "h1", "h0"), link(&network, "h1", "h2")];
        let guard = impair(&network, &hit, Impairment::delay(delay));
        let (since, asked_ms) = (guard.change().at_ns, delay.secs() * 1e3);
        let in_force = samples(&probes, Duration::from_secs(30), |all| {
            network.links().iter().all(|l| all.iter().filter(|s| s.link == *l && s.sent_ns > since).count() >= 50)
        });
        let in_force: Vec<_> = in_force.into_iter().filter(|sample| sample.sent_ns > since).collect();
        for link in network.links() {
            let expected = if hit.contains(&link) { asked_ms } else { 0.0 };
            let measured = delays_ms(&in_force, link);
            // The median bears a neighbour who takes the processor now and then.
            let (least, median) = (measured[0], quantile(&measured, 0.5));
            println!("{asked} {link:?}: least {least:.3} ms, median {median:.3} ms");
            assert!(least >= expected, "{asked} {link:?}: {least} ms is too early");
            assert!(median < expected + 5.0, "{asked} {link:?}: median {median} ms");
            assert_eq!(network.control().effective(link).unwrap().delay.secs() * 1e3, expected);
        }
    }
    println!("{:?} {:?}", probes.health(), probes.realtime());
}
