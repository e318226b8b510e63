//! What a fault on the emulated network means on an overlay above it.
//!
//! Packets from one host to another through an overlay take a *route*: the link between the two below, or, where a host
//! passes on what others send each other, two links. So what must be seen above follows from routes, not from pairs of
//! hosts: with OpenVPN's server slowed, two clients are as near to each other as ever below, and far apart above.

use std::collections::HashMap;

use brownout_record::{Expectation, Quantity, Subject};

/// What OpenVPN, a process among others, may take longer than before on a busy machine, ns.
const PROCESS_NOISE_NS: f64 = 2e6;
/// What a shorter delay than that is judged against, as a share of itself: so "none" can never pass for it.
const MOST_TOLERANCE: f64 = 0.5;
/// What carries packets in a process of its own, through a host that passes them on.
const HUB: &str = "openvpn";
/// What takes a packet that arrives twice for two.
const PASSES_COPIES: &str = "vxlan";

/// Quantities of a way through an overlay that are measured there, by probes.
pub(crate) const MEASURED: [Quantity; 5] =
    [Quantity::OneWayDelay, Quantity::DelaySpread, Quantity::Loss, Quantity::Duplicates, Quantity::Reordered];

/// Which links below each way through an overlay takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Routes {
    /// `vxlan`, …; empty for none.
    overlay: String,
    hosts: Vec<String>,
}

/// An expectation below, by its pair and quantity.
type Below<'a> = HashMap<(&'a str, &'a str, Quantity), &'a Expectation>;

impl Routes {
    /// Of an overlay by its word in the record (empty: there is none) and of all hosts of a lab, in their order.
    pub fn new(overlay: &str, hosts: &[String]) -> Routes {
        Routes { overlay: overlay.to_owned(), hosts: hosts.to_vec() }
    }

    /// Whether there is an overlay at all.
    pub fn has_overlay(&self) -> bool {
        !self.overlay.is_empty()
    }

    /// Whether its own processes may be what packets queue for: a load that is too much for them delays them, and nobody did it.
    pub(crate) fn has_queues(&self) -> bool {
        self.overlay == HUB
    }

    /// The ordered pairs of hosts below that packets between two hosts pass, in order.
    pub fn of(&self, from: &str, to: &str) -> Vec<(String, String)> {
        let pair = |from: &str, to: &str| (from.to_owned(), to.to_owned());
        match self.hosts.first().filter(|_| self.overlay == HUB) {
            Some(hub) if hub != from && hub != to => vec![pair(from, hub), pair(hub, to)],
            _ => vec![pair(from, to)],
        }
    }

    /// What expectations on pairs of hosts below mean on the ways above: nothing without an overlay, or where they are of no
    /// pairs.
    ///
    /// Delays add up, and of the losses on a route each takes its share. Damaged packets are lost above: whoever takes them out
    /// of their envelope looks at its checksum first. Copies come through VXLAN alone; the others know packets again. A limit of
    /// rate stands above with its figure below, envelopes included: it is not measured there, and says only that what queues
    /// before it is nobody's fault.
    pub fn above(&self, below: &[Expectation]) -> Vec<Expectation> {
        if !self.has_overlay() {
            return Vec::new();
        }
        let known: Below<'_> = below
            .iter()
            .filter_map(|one| match &one.subject {
                Subject::Pair { from, to } => Some(((from.as_str(), to.as_str(), one.quantity), one)),
                _ => None,
            })
            .collect();
        let asked = |quantity| known.keys().any(|(.., of)| *of == quantity);
        let loses = asked(Quantity::Loss) || asked(Quantity::Corruption);
        let mut above = Vec::new();
        for from in &self.hosts {
            for to in self.hosts.iter().filter(|to| *to != from) {
                let route = self.of(from, to);
                let mut add = |quantity, meant: Option<Meant>| {
                    above.extend(meant.map(|Meant { hit, asked, tolerance, burst }| Expectation {
                        subject: Subject::overlay(from, to),
                        quantity,
                        hit,
                        asked,
                        tolerance,
                        burst,
                    }));
                };
                for quantity in [Quantity::OneWayDelay, Quantity::DelaySpread] {
                    add(quantity, self.time(quantity, &known, &route));
                }
                if loses {
                    add(Quantity::Loss, share(&[Quantity::Loss, Quantity::Corruption], &known, &route));
                }
                let copies = share(&[Quantity::Duplicates], &known, &route);
                let passes_copies = self.overlay == PASSES_COPIES;
                add(Quantity::Duplicates, copies.map(|meant| if passes_copies { meant } else { meant.none() }));
                add(Quantity::Reordered, share(&[Quantity::Reordered], &known, &route));
                add(Quantity::Rate, least(Quantity::Rate, &known, &route));
            }
        }
        above
    }

    /// Times of a route: delays add, independent spreads add as squares.
    fn time(&self, quantity: Quantity, known: &Below<'_>, route: &[(String, String)]) -> Option<Meant> {
        let mut meant = Meant::NONE;
        let (mut any, mut least_tolerance) = (false, 0.0_f64);
        for one in parts(&[quantity], known, route) {
            any = true;
            least_tolerance = least_tolerance.max(one.tolerance);
            if one.hit && one.asked != 0.0 {
                meant.hit = true;
                meant.asked = match quantity {
                    Quantity::DelaySpread => meant.asked.hypot(one.asked),
                    _ => meant.asked + one.asked,
                };
                meant.tolerance += one.tolerance;
            }
        }
        let noise = if self.overlay == HUB { PROCESS_NOISE_NS } else { 0.0 };
        let tolerance = meant.tolerance.max(least_tolerance) + noise;
        meant.tolerance = if meant.hit { tolerance.min(meant.asked * MOST_TOLERANCE) } else { tolerance };
        any.then_some(meant)
    }
}

/// What a way above must show of one quantity.
#[derive(Debug, Clone, Copy)]
struct Meant {
    hit: bool,
    asked: f64,
    tolerance: f64,
    burst: Option<f64>,
}

impl Meant {
    const NONE: Meant = Meant { hit: false, asked: 0.0, tolerance: 0.0, burst: None };

    /// The same where nothing of it may be seen.
    fn none(self) -> Meant {
        Meant { tolerance: self.tolerance, ..Meant::NONE }
    }
}

/// What is expected of some quantities on the links of a route.
fn parts<'a, 'b>(
    quantities: &'b [Quantity],
    known: &'b Below<'a>,
    route: &'b [(String, String)],
) -> impl Iterator<Item = &'a Expectation> + 'b {
    let links = route.iter().flat_map(move |(from, to)| {
        quantities.iter().filter_map(move |quantity| known.get(&(from.as_str(), to.as_str(), *quantity)))
    });
    links.copied()
}

/// Of shares a packet has to survive each; none if nothing is expected of them.
fn share(quantities: &[Quantity], known: &Below<'_>, route: &[(String, String)]) -> Option<Meant> {
    let mut meant = Meant::NONE;
    let (mut stays, mut any, mut least_tolerance) = (1.0_f64, false, 0.0_f64);
    for one in parts(quantities, known, route) {
        any = true;
        least_tolerance = least_tolerance.max(one.tolerance);
        if one.hit && one.asked != 0.0 {
            meant.hit = true;
            stays *= 1.0 - one.asked;
            meant.tolerance += one.tolerance;
            meant.burst = meant.burst.or(one.burst);
        }
    }
    (meant.asked, meant.tolerance) = (1.0 - stays, meant.tolerance.max(least_tolerance));
    any.then_some(meant)
}

/// Of limits the lowest; none if there is none on this route.
fn least(quantity: Quantity, known: &Below<'_>, route: &[(String, String)]) -> Option<Meant> {
    let quantities = [quantity];
    let limits = parts(&quantities, known, route).filter(|one| one.hit && one.asked != 0.0);
    let least = limits.reduce(|least, one| if one.asked < least.asked { one } else { least })?;
    Some(Meant { hit: true, asked: least.asked, tolerance: least.tolerance, burst: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts() -> Vec<String> {
        ["n1", "n2", "n3", "load"].map(str::to_owned).to_vec()
    }

    /// What a fault must show on every pair that asks this of those that it hits.
    fn below(quantity: Quantity, asked: f64, tolerance: f64, hits: impl Fn(&str, &str) -> bool) -> Vec<Expectation> {
        let mut all = Vec::new();
        for from in hosts() {
            for to in hosts().into_iter().filter(|to| *to != from) {
                let hit = hits(&from, &to);
                let asked = if hit { asked } else { 0.0 };
                let subject = Subject::pair(from.clone(), to);
                all.push(Expectation { subject, quantity, hit, asked, tolerance, burst: None });
            }
        }
        all
    }

    fn of<'a>(above: &'a [Expectation], from: &str, to: &str, quantity: Quantity) -> Option<&'a Expectation> {
        above.iter().find(|one| one.subject == Subject::overlay(from, to) && one.quantity == quantity)
    }

    const MS: f64 = 1e6;

    #[test]
    fn without_an_overlay_or_without_pairs_nothing_is_expected_above() {
        let slow = below(Quantity::OneWayDelay, 50.0 * MS, MS, |from, _| from == "n2");
        assert_eq!(Routes::new("", &hosts()).above(&slow), []);
        let mut paused = slow[0].clone();
        paused.subject = Subject::host("n2");
        assert_eq!(Routes::new("vxlan", &hosts()).above(&[paused]), []);
    }

    #[test]
    fn a_slowed_host_is_as_slow_above_and_others_are_spared() {
        let slow = below(Quantity::OneWayDelay, 50.0 * MS, MS, |from, _| from == "n2");
        let above = Routes::new("wireguard", &hosts()).above(&slow);
        assert_eq!(above.len(), slow.len());
        for one in &above {
            let Subject::Overlay { from, .. } = &one.subject else { panic!("{:?}", one.subject) };
            assert_eq!((one.hit, one.asked > 0.0, one.tolerance), (from == "n2", from == "n2", MS));
        }
    }

    #[test]
    fn a_slowed_hub_is_in_the_way_of_those_that_are_spared_below() {
        // Everything n1 sends or receives: 50 ms one way, as measured on real OpenVPN.
        let slow = below(Quantity::OneWayDelay, 50.0 * MS, MS, |from, to| from == "n1" || to == "n1");
        let routes = Routes::new("openvpn", &hosts());
        let above = routes.above(&slow);
        let between = of(&above, "n2", "n3", Quantity::OneWayDelay).unwrap();
        assert_eq!((between.hit, between.asked), (true, 100.0 * MS));
        let direct = of(&above, "n1", "n3", Quantity::OneWayDelay).unwrap();
        assert_eq!((direct.hit, direct.asked), (true, 50.0 * MS));
        // A link that no route takes is nobody's business above.
        let unused = below(Quantity::OneWayDelay, 50.0 * MS, MS, |from, to| (from, to) == ("n2", "n3"));
        assert!(routes.above(&unused).iter().all(|one| !one.hit && one.asked == 0.0));
    }

    #[test]
    fn no_delay_above_can_pass_for_none() {
        let slow = below(Quantity::OneWayDelay, MS, MS / 2.0, |from, _| from == "n1");
        for one in Routes::new("openvpn", &hosts()).above(&slow).iter().filter(|one| one.hit) {
            assert!(one.tolerance <= one.asked / 2.0, "{one:?}");
        }
    }

    #[test]
    fn losses_of_a_route_each_take_their_share_and_damage_is_loss() {
        let mut faults = below(Quantity::Loss, 0.1, 0.01, |_, to| to == "n1");
        faults.extend(below(Quantity::Corruption, 0.2, 0.02, |from, _| from == "n1"));
        let above = Routes::new("openvpn", &hosts()).above(&faults);
        let between = of(&above, "n2", "n3", Quantity::Loss).unwrap();
        assert!((between.asked - 0.28).abs() < 1e-12 && (between.tolerance - 0.03).abs() < 1e-12, "{between:?}");
        assert!(above.iter().all(|one| one.quantity == Quantity::Loss));
    }

    #[test]
    fn copies_come_through_vxlan_alone() {
        let twice = below(Quantity::Duplicates, 0.2, 0.02, |from, _| from == "n2");
        for (overlay, asked) in [("vxlan", 0.2), ("wireguard", 0.0), ("wireguard+vxlan", 0.0), ("openvpn", 0.0)] {
            let above = Routes::new(overlay, &hosts()).above(&twice);
            let one = of(&above, "n2", "n1", Quantity::Duplicates).unwrap();
            assert!((one.asked - asked).abs() < 1e-12 && one.hit == (asked > 0.0), "{overlay}: {one:?}");
        }
    }

    #[test]
    fn spreads_add_as_squares_and_of_limits_the_lowest_counts() {
        let routes = Routes::new("openvpn", &hosts());
        let spread = below(Quantity::DelaySpread, 3.0 * MS, MS, |from, to| from == "n1" || to == "n1");
        let above = routes.above(&spread);
        let between = of(&above, "n2", "n3", Quantity::DelaySpread).unwrap();
        assert!((between.asked - 18.0_f64.sqrt() * MS).abs() < 1.0, "{between:?}");
        let mut limits = below(Quantity::Rate, 1e6, 1e5, |from, to| (from, to) == ("n2", "n1"));
        limits.retain(|one| one.hit);
        let other = below(Quantity::Rate, 2e6, 1e5, |from, to| (from, to) == ("n1", "n3"));
        limits.extend(other.into_iter().filter(|one| one.hit));
        let above = routes.above(&limits);
        assert_eq!(of(&above, "n2", "n3", Quantity::Rate).unwrap().asked, 1e6);
        assert_eq!(of(&above, "n1", "n3", Quantity::Rate).unwrap().asked, 2e6);
        assert!(of(&above, "n3", "n1", Quantity::Rate).is_none());
    }
}
