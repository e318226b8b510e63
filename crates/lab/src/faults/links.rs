//! The common part of all faults on links: an impairment on some ordered pairs of hosts, none on the others.

use std::collections::{BTreeSet, HashSet};

use brownout_base::Change;
use brownout_network::{Impairment, Loss, RateLimit};
use brownout_record::{Expectation, Subject};
use brownout_units::{Delay, Share};

use super::{
    capabilities::{Applied, Capabilities},
    expected::{asked, burst, burst_packet, queue_bytes, unjudged},
    fault::{ActiveFault, Fault, Healing, of_kind},
    names::{join, known, s},
    needs::{Needs, TrainNeed},
    provable::provable,
};
use crate::{
    LabError,
    experiment::{Complaint, Direction, Names, checked},
    hosts::Hosts,
};

/// An impairment on some ordered pairs of hosts.
#[derive(Debug, Clone)]
pub struct LinkFault {
    /// The word in the file.
    pub kind: &'static str,
    /// The hosts in words.
    pub subject: String,
    /// What it does.
    pub text: String,
    /// What that means.
    pub effect: String,
    /// The pairs it hits, from → to.
    pub hit: Vec<(String, String)>,
    /// What it does to each of them.
    pub impairment: Impairment,
}

/// Whom a fault of hosts strikes, and which way.
pub struct Struck<'a> {
    /// Hosts or sites, as written.
    pub names: &'a Names,
    /// What they send, what is sent to them, or both.
    pub direction: Direction,
    /// All there are.
    pub hosts: &'a Hosts,
}

impl LinkFault {
    /// The same impairment on all links of some hosts, one way or both. `tell` says what it does and what that means: of the
    /// hosts, and of their traffic in words ("everything n2 sends").
    pub fn of_hosts(
        kind: &'static str,
        Struck { names, direction, hosts }: Struck<'_>,
        impairment: Impairment,
        tell: impl FnOnce(&[String], &str) -> (String, String),
    ) -> Result<LinkFault, Complaint> {
        let struck = known(names, hosts)?;
        let impairment = checked(impairment)?;
        provable(&impairment).map_err(|complaint| match complaint.key.as_ref() {
            // What is a key of its own on a link is the share of a fault that does nothing else.
            "duplicate" | "corrupt" | "reorder" => Complaint { key: "share".into(), ..complaint },
            _ => complaint,
        })?;
        let (text, effect) = tell(&struck, &traffic(&struck, direction));
        Ok(LinkFault {
            kind,
            subject: join(&struck),
            text: format!("{text} {}", direction_words(direction)),
            effect,
            hit: pairs(&struck, direction, hosts),
            impairment,
        })
    }
}

impl Fault for LinkFault {
    fn kind(&self) -> &'static str {
        self.kind
    }

    fn subject(&self) -> String {
        self.subject.clone()
    }

    fn text(&self) -> String {
        self.text.clone()
    }

    fn effect(&self) -> String {
        self.effect.clone()
    }

    fn expectations(&self, hosts: &Hosts) -> Vec<Expectation> {
        let asked = asked(&self.impairment);
        let mut all = Vec::new();
        let struck: HashSet<(&str, &str)> = self.hit.iter().map(|(from, to)| (from.as_str(), to.as_str())).collect();
        for (from, to) in hosts.watched_pairs() {
            let hit = struck.contains(&(from.name.as_str(), to.name.as_str()));
            all.extend(asked.iter().map(|(quantity, asked, tolerance)| Expectation {
                subject: Subject::pair(from.name.clone(), to.name.clone()),
                quantity: *quantity,
                hit,
                asked: if hit { *asked } else { 0.0 },
                tolerance: *tolerance,
                burst: burst(&self.impairment, *quantity).filter(|_| hit),
            }));
        }
        all
    }

    fn unsettled(&self) -> Delay {
        // A probe sent before the change is still on its way for the longest delay there is, and behind a full queue.
        let queue = self.impairment.rate.map_or(0, |limit| queue_ns(&limit));
        let spread = self.impairment.distribution.quantile(0.999) * self.impairment.jitter.ns() as f64;
        Delay::from_ns(self.impairment.delay.ns() + spread as u64 + queue + brownout_analysis::SETTLE_NS)
    }

    fn unjudged(&self) -> Vec<String> {
        unjudged(&self.impairment)
    }

    fn needs(&self) -> Needs {
        let train = |limit: RateLimit| {
            // Half of the queue at most, so that the burst itself does not overflow it.
            let packets = (queue_bytes(&limit) / 2 / u64::from(burst_packet())).clamp(8, 200) as u32;
            let link = move |(from, to): &(String, String)| TrainNeed {
                from: from.clone(),
                to: to.clone(),
                expected: limit.rate,
                packets,
            };
            self.hit.iter().map(link).collect()
        };
        let trains = self.impairment.rate.map(train).unwrap_or_default();
        let sized = |mtu| self.hit.iter().map(move |(from, to)| (from.clone(), to.clone(), mtu)).collect();
        let largest_packets = self.impairment.mtu.map(sized).unwrap_or_default();
        Needs { trains, largest_packets, ..Needs::default() }
    }

    fn inject(&self, capabilities: &Capabilities) -> Result<Box<dyn ActiveFault>, LabError> {
        let held = capabilities.links.impair(&self.hit, &self.impairment)?;
        Ok(Box::new(ImpairedLinks { held, hit: self.hit.clone() }))
    }

    fn scaled(&self, share: f64) -> Option<Box<dyn Fault>> {
        let impairment = scaled(&self.impairment, share)?;
        let text = format!("{} (step: {impairment})", self.text);
        Some(Box::new(LinkFault { impairment, text, ..self.clone() }))
    }

    fn impairment(&self) -> Option<Impairment> {
        Some(self.impairment)
    }

    fn links(&self) -> &[(String, String)] {
        &self.hit
    }

    fn on(&self, links: Vec<(String, String)>) -> Option<Box<dyn Fault>> {
        Some(Box::new(LinkFault { hit: links, ..self.clone() }))
    }
}

struct ImpairedLinks {
    held: Box<dyn Applied<Impairment>>,
    hit: Vec<(String, String)>,
}

impl ActiveFault for ImpairedLinks {
    fn change(&self) -> Change {
        self.held.change()
    }

    fn heal(self: Box<Self>) -> Result<Healing, LabError> {
        Ok(Healing::Done(self.held.heal()?))
    }

    fn amend(&mut self, to: &dyn Fault) -> Result<Option<Change>, LabError> {
        match of_kind::<LinkFault>(to) {
            Some(to) if to.hit == self.hit => self.held.amend(&to.impairment),
            _ => Ok(None),
        }
    }
}

/// How long a full queue takes to empty.
fn queue_ns(limit: &RateLimit) -> u64 {
    (queue_bytes(limit) as f64 * 8e9 / limit.rate.bits_per_second() as f64).min(60e9) as u64
}

/// The same with a share of its magnitudes; none if nothing of it can be more or less.
fn scaled(impairment: &Impairment, by: f64) -> Option<Impairment> {
    let time = |delay: Delay| Delay::from_ns((delay.ns() as f64 * by).round() as u64);
    let share = |share: Share| Share::new(share.fraction() * by).unwrap_or(share);
    let loss = match impairment.loss {
        Loss::None => Loss::None,
        Loss::Independent(of) => Loss::Independent(share(of)),
        Loss::Correlated { share: of, correlation } => Loss::Correlated { share: share(of), correlation },
        // Less of a burst model could mean fewer bursts or shorter ones.
        Loss::GilbertElliott { .. } | Loss::Markov { .. } => return None,
    };
    // A half of a cut, of an MTU or of a bottleneck is not less of it.
    if impairment.cut.is_some() || impairment.mtu.is_some() || impairment.rate.is_some() {
        return None;
    }
    let mut scaled = *impairment;
    scaled.loss = loss;
    (scaled.delay, scaled.jitter) = (time(impairment.delay), time(impairment.jitter));
    scaled.duplicate.share = share(impairment.duplicate.share);
    scaled.corrupt.share = share(impairment.corrupt.share);
    scaled.reorder.share = share(impairment.reorder.share);
    // A step that nobody could prove is none.
    provable(&scaled).is_ok().then_some(scaled)
}

/// The pairs between hosts and all others, by direction.
fn pairs(struck: &[String], direction: Direction, hosts: &Hosts) -> Vec<(String, String)> {
    let is = |name: &str| struck.iter().any(|host| host == name);
    let hit = |from: &str, to: &str| match direction {
        Direction::Out => is(from),
        Direction::In => is(to),
        Direction::Both => is(from) || is(to),
    };
    let all = hosts.pairs().filter(|(from, to)| hit(&from.name, &to.name));
    all.map(|(from, to)| (from.name.clone(), to.name.clone())).collect()
}

/// "everything n2 sends", "everything sent to n2", "everything n2 sends or receives".
fn traffic(struck: &[String], direction: Direction) -> String {
    let hosts = join(struck);
    match direction {
        Direction::Out => format!("everything {hosts} send{}", s(struck)),
        Direction::In => format!("everything sent to {hosts}"),
        Direction::Both => {
            format!("everything {hosts} send{} or receive{}", s(struck), s(struck))
        }
    }
}

/// "(direction: out)".
fn direction_words(direction: Direction) -> &'static str {
    match direction {
        Direction::Out => "(direction: out)",
        Direction::In => "(direction: in)",
        Direction::Both => "(direction: both)",
    }
}

/// What a one-way delay on these links does to round-trip times.
pub fn rtt_effect(struck: &[String], direction: Direction, delay: Delay) -> String {
    let twice = Delay::from_ns(delay.ns().saturating_mul(2));
    let grows = if direction == Direction::Both { twice } else { delay };
    let hosts = join(struck);
    match struck.len() {
        1 => format!("every RTT to and from {hosts} grows by {grows}; no other changes"),
        _ => format!("every RTT between {hosts} and others grows by {grows}, among them by {twice}; no other changes"),
    }
}

/// The hosts at the ends of some pairs, each once, for words.
pub fn ends(pairs: &[(String, String)]) -> Vec<String> {
    let all: BTreeSet<&String> = pairs.iter().flat_map(|(from, to)| [from, to]).collect();
    all.into_iter().cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_direction_says_is_hit_and_all_else_is_spared() {
        let hosts = Hosts::new(3);
        let struck = ["n2".to_owned()];
        for (direction, count) in [(Direction::Out, 3), (Direction::In, 3), (Direction::Both, 6)] {
            let pairs = pairs(&struck, direction, &hosts);
            assert_eq!(pairs.len(), count, "{direction:?}");
            assert!(pairs.iter().all(|(from, to)| match direction {
                Direction::Out => from == "n2",
                Direction::In => to == "n2",
                Direction::Both => from == "n2" || to == "n2",
            }));
        }
    }

    #[test]
    fn a_ramp_scales_what_can_be_more_or_less_and_nothing_else() {
        let half = scaled(&Impairment::delay(Delay::from_ms(100)), 0.5).unwrap();
        assert_eq!(half.delay, Delay::from_ms(50));
        assert!(scaled(&Impairment { mtu: Some(1280), ..Impairment::NONE }, 0.5).is_none());
    }
}
