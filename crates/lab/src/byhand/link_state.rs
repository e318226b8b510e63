//! The impairments that the emulator reports for each link, and what they mean for each host.

use std::collections::{BTreeMap, BTreeSet};

use brownout_network::{Cut, Impairment, LinkControl, Loss};
use brownout_units::Delay;

use super::ledger::{Key, Ledger};
use crate::{LabError, controls::Controls, hosts::Hosts, plan::Layout};

/// More groups than this are not listed.
const MOST_GROUPS: usize = 64;

type Pair = (String, String);

/// One link, read back.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct LinkState {
    /// What lies between the hosts all the time.
    pub(super) distance: Vec<Impairment>,
    /// What was added to that.
    pub(super) added: Vec<Impairment>,
}

impl LinkState {
    fn cut(&self) -> Option<Cut> {
        self.added.iter().find_map(|impairment| impairment.cut)
    }
}

/// All links, read back.
#[derive(Debug, Clone, Default)]
pub(super) struct LinkStates(pub(super) BTreeMap<Pair, LinkState>);

impl LinkStates {
    /// Asks the emulator.
    pub(super) fn of(controls: &Controls, layout: &Layout) -> Result<LinkStates, LabError> {
        let mut distances: BTreeMap<&Pair, Vec<Impairment>> = BTreeMap::new();
        for distance in layout.distances.iter().filter(|distance| distance.impairment != Impairment::NONE) {
            distance.pairs.iter().for_each(|pair| distances.entry(pair).or_default().push(distance.impairment));
        }
        let mut all = BTreeMap::new();
        for (pair, link) in &controls.by_name {
            let mut distance = controls.control.effective(*link)?;
            let expected = distances.get(pair).map_or(&[][..], Vec::as_slice);
            // The distances were there first.
            let known = distance.iter().zip(expected).take_while(|(found, expected)| found == expected).count();
            let added = distance.split_off(known);
            all.insert(pair.clone(), LinkState { distance, added });
        }
        Ok(LinkStates(all))
    }

    /// What is wrong with the links of each host, in words; nothing for those on which nothing is wrong.
    pub(super) fn by_host(&self, hosts: &Hosts, ledger: &Ledger) -> BTreeMap<String, Vec<String>> {
        let mut words: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut left: BTreeMap<Pair, Vec<Impairment>> = self
            .0
            .iter()
            .map(|(pair, link)| {
                let added = link.added.iter().filter(|impairment| impairment.cut.is_none());
                (pair.clone(), added.copied().collect())
            })
            .collect();
        // What commands have asked for, as far as it is really there.
        for (key, held) in ledger.iter() {
            let (Some(asked), true) = (held.fault.impairment(), hosts.find(&key.owner).is_some()) else { continue };
            let links = held.fault.links();
            let there: Vec<&Pair> = links.iter().filter(|pair| take(&mut left, pair, &asked)).collect();
            let (out, into) =
                (there.iter().any(|pair| pair.0 == key.owner), there.iter().any(|pair| pair.1 == key.owner));
            let direction = match (out, into) {
                (true, true) => "both",
                (false, true) => "in",
                _ => "out",
            };
            let missing = links.len() - there.len();
            let missing = match missing {
                0 => String::new(),
                missing => format!(" (NOT IN FORCE on {missing} of {} links)", links.len()),
            };
            words.entry(key.owner.clone()).or_default().push(format!("{} {direction}{missing}", self::words(&asked)));
        }
        // What others have done: of chaos, and of single links.
        for host in hosts.iter() {
            let name = &host.name;
            for (out, direction) in [(true, "out"), (false, "in")] {
                let others = hosts.iter().filter(|other| other.name != *name);
                let pairs: Vec<Pair> = others.map(|other| pair(name, &other.name, out)).collect();
                let first = pairs.first().and_then(|pair| left.get(pair)).cloned().unwrap_or_default();
                for impairment in first {
                    // One link alone is told as that link.
                    if pairs.len() > 1
                        && pairs.iter().all(|pair| left.get(pair).is_some_and(|left| left.contains(&impairment)))
                    {
                        pairs.iter().for_each(|pair| {
                            take(&mut left, pair, &impairment);
                        });
                        let words = words.entry(name.clone()).or_default();
                        words.push(format!("{} {direction}", self::words(&impairment)));
                    }
                }
            }
        }
        let mut single: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
        for ((from, to), impairments) in left {
            for impairment in impairments {
                single.entry((from.clone(), self::words(&impairment))).or_default().push(to.clone());
            }
        }
        for ((from, what), to) in single {
            words.entry(from).or_default().push(format!("{what} to {}", to.join(", ")));
        }
        for ((from, to), link) in &self.0 {
            if link.cut().is_some() && !self.is_cut(to, from) {
                words.entry(from.clone()).or_default().push(format!("CUT to {to} (one way)"));
            }
        }
        words
    }

    /// The partition's groups that each host is in, from 1; empty if nobody is cut off from anybody.
    pub(super) fn groups(&self, hosts: &Hosts) -> BTreeMap<String, Vec<usize>> {
        let names: Vec<&str> = hosts.iter().map(|host| host.name.as_str()).collect();
        let apart = |one: &str, other: &str| self.is_cut(one, other) && self.is_cut(other, one);
        if !names.iter().any(|one| names.iter().any(|other| apart(one, other))) {
            return BTreeMap::new();
        }
        let together: Vec<BTreeSet<usize>> = names
            .iter()
            .map(|one| (0..names.len()).filter(|other| names[*other] != *one && !apart(one, names[*other])).collect())
            .collect();
        let mut groups: Vec<BTreeSet<usize>> = Vec::new();
        cliques(&together, BTreeSet::new(), (0..names.len()).collect(), BTreeSet::new(), &mut groups);
        groups.sort();
        let mut of: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (number, group) in groups.iter().enumerate() {
            group.iter().for_each(|host| of.entry(names[*host].to_owned()).or_default().push(number + 1));
        }
        of
    }

    fn is_cut(&self, from: &str, to: &str) -> bool {
        self.0.get(&(from.to_owned(), to.to_owned())).is_some_and(|link| link.cut().is_some())
    }
}

fn pair(host: &str, other: &str, out: bool) -> Pair {
    if out { (host.to_owned(), other.to_owned()) } else { (other.to_owned(), host.to_owned()) }
}

/// Takes one such impairment off a link; false if it has none.
fn take(left: &mut BTreeMap<Pair, Vec<Impairment>>, pair: &Pair, impairment: &Impairment) -> bool {
    let Some(of_link) = left.get_mut(pair) else { return false };
    let Some(position) = of_link.iter().position(|found| found == impairment) else { return false };
    of_link.remove(position);
    true
}

/// All largest sets of hosts of which each two are together (Bron and Kerbosch 1973).
fn cliques(
    together: &[BTreeSet<usize>],
    group: BTreeSet<usize>,
    mut more: BTreeSet<usize>,
    mut done: BTreeSet<usize>,
    found: &mut Vec<BTreeSet<usize>>,
) {
    if found.len() >= MOST_GROUPS {
        return;
    }
    if more.is_empty() && done.is_empty() {
        found.push(group);
        return;
    }
    // A pivot: who is together with it is found with it.
    let pivot = more.union(&done).max_by_key(|host| together[**host].intersection(&more).count()).copied();
    let skipped = pivot.map(|pivot| together[pivot].clone()).unwrap_or_default();
    for host in more.difference(&skipped).copied().collect::<Vec<_>>() {
        let mut larger = group.clone();
        larger.insert(host);
        let with = |set: &BTreeSet<usize>| set.intersection(&together[host]).copied().collect();
        cliques(together, larger, with(&more), with(&done), found);
        more.remove(&host);
        done.insert(host);
    }
}

/// An impairment in the words of the commands: `SLOW 100ms ± 10ms`, `FLAKY 10%`.
pub(super) fn words(impairment: &Impairment) -> String {
    let mut parts = Vec::new();
    let reorders = impairment.reorder.share.fraction() > 0.0;
    if impairment.delay != Delay::ZERO || impairment.jitter != Delay::ZERO {
        let word = if reorders { "DELAY" } else { "SLOW" };
        let mut text = format!("{word} {}", impairment.delay);
        if impairment.jitter != Delay::ZERO {
            text.push_str(&format!(" ± {}", impairment.jitter));
            if impairment.distribution != Default::default() {
                text.push_str(&format!(" {}", impairment.distribution));
            }
        }
        parts.push(text);
    }
    if impairment.loss != Loss::None {
        let bursts = match impairment.loss {
            Loss::None | Loss::Independent(_) => String::new(),
            loss => loss.mean_burst().map_or_else(String::new, |burst| format!(" in bursts of {burst:.1}")),
        };
        parts.push(format!("FLAKY {}{bursts}", impairment.loss.mean()));
    }
    if impairment.duplicate.share.fraction() > 0.0 {
        parts.push(format!("DUPLICATE {}", impairment.duplicate));
    }
    if impairment.corrupt.share.fraction() > 0.0 {
        parts.push(format!("CORRUPT {}", impairment.corrupt));
    }
    if reorders {
        parts.push(format!("REORDER {}", impairment.reorder));
    }
    parts.extend(impairment.rate.map(|limit| format!("RATE {limit}")));
    parts.extend(impairment.mtu.map(|mtu| format!("MTU {mtu}")));
    parts.extend(impairment.cut.map(|cut| format!("CUT ({cut})")));
    parts.join(" + ")
}

/// The kinds of faults that belong to links, and that `fast` heals.
pub(super) fn heals_with_fast(key: &Key) -> bool {
    ["slow", "flaky", "duplicate", "corrupt", "reorder", "rate", "mtu", "link"].contains(&key.kind.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(cuts: &[(&str, &str)]) -> LinkStates {
        let impairment = Impairment { cut: Some(Cut::Drop), ..Impairment::NONE };
        let of = |(from, to): &(&str, &str)| {
            (((*from).to_owned(), (*to).to_owned()), LinkState { distance: Vec::new(), added: vec![impairment] })
        };
        LinkStates(cuts.iter().map(of).collect())
    }

    fn both(pairs: &[(&'static str, &'static str)]) -> Vec<(&'static str, &'static str)> {
        pairs.iter().flat_map(|(one, other)| [(*one, *other), (*other, *one)]).collect()
    }

    #[test]
    fn groups_are_those_who_reach_one_another_and_a_bridge_is_in_two() {
        let hosts = Hosts::new(3);
        assert!(cut(&[]).groups(&hosts).is_empty());
        let read = cut(&both(&[("n1", "n3"), ("n2", "n3"), ("load", "n3")]));
        let groups = read.groups(&hosts);
        assert_eq!(groups["n1"], groups["load"]);
        assert_ne!(groups["n1"], groups["n3"]);
        let bridge = cut(&both(&[("n1", "n3"), ("load", "n3"), ("load", "n2")]));
        assert_eq!(bridge.groups(&hosts)["n2"].len(), 2);
        // One way is no partition.
        let one_way = cut(&[("n1", "n2")]);
        assert!(one_way.groups(&hosts).is_empty());
        assert_eq!(one_way.by_host(&hosts, &Ledger::default())["n1"], ["CUT to n2 (one way)"]);
    }

    #[test]
    fn what_hits_all_links_of_a_host_is_told_once_and_what_hits_one_is_told_of_it() {
        let hosts = Hosts::new(3);
        let slow = Impairment::delay(Delay::from_ms(100));
        let with = |impairment| LinkState { distance: Vec::new(), added: vec![impairment] };
        let mut read = LinkStates::default();
        for (from, to) in hosts.pairs() {
            let hit = from.name == "n2" || (from.name == "n1" && to.name == "n3");
            let of = if hit { with(slow) } else { LinkState::default() };
            read.0.insert((from.name.clone(), to.name.clone()), of);
        }
        let words = read.by_host(&hosts, &Ledger::default());
        assert_eq!(words["n2"], ["SLOW 100ms out"]);
        assert_eq!(words["n1"], ["SLOW 100ms to n3"]);
        assert_eq!(words.len(), 2);
    }

    #[test]
    fn magnitudes_are_told_of_every_part() {
        let jittered = Impairment { jitter: Delay::from_ms(10), ..Impairment::delay(Delay::from_ms(100)) };
        assert_eq!(words(&jittered), "SLOW 100ms ± 10ms");
        let share = "30%".parse().unwrap();
        assert_eq!(
            words(&Impairment { mtu: Some(1000), loss: Loss::Independent(share), ..Impairment::NONE }),
            "FLAKY 30% + MTU 1000"
        );
    }
}
