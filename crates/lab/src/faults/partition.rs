//! `partition`: hosts cannot reach one another.

use brownout_base::random::Random;
use brownout_network::{Cut, Impairment};

use super::{links::LinkFault, names::known};
use crate::{
    experiment::{Complaint, CutChoice, Names, PartitionFault},
    hosts::Hosts,
};

/// The links between hosts that share no group are cut.
pub fn fault(entry: &PartitionFault, hosts: &Hosts, seed: u64) -> Result<LinkFault, Complaint> {
    let ways = [!entry.groups.is_empty(), entry.isolate.is_some(), entry.random, entry.from.is_some()];
    if ways.iter().filter(|way| **way).count() != 1 {
        let message = "a partition needs exactly one of groups: [[n1], [n2, n3]], isolate: n2, random: true, or from: n1 \
                       with to: n2";
        return Err(Complaint::at("", message));
    }
    if entry.to.is_some() && entry.from.is_none() {
        return Err(Complaint::at("to", "to: needs from:, as in from: n1, to: n2"));
    }
    let (mut hit, words) = if let Some(from) = &entry.from {
        one_way(from, entry.to.as_ref(), hosts)?
    } else {
        let groups = groups(entry, hosts, seed)?;
        (between(&groups, hosts), words(&groups))
    };
    if entry.load == Some(false) {
        hit.retain(|(from, to)| from != Hosts::LOAD && to != Hosts::LOAD);
    }
    if hit.is_empty() {
        return Err(Complaint::at("groups", "every host can still reach every other one: nothing is cut"));
    }
    let (cut, told) = match entry.how {
        CutChoice::Drop => (Cut::Drop, "packets vanish"),
        CutChoice::Reject => (Cut::Reject, "senders are notified"),
    };
    Ok(LinkFault {
        kind: "partition",
        subject: words.clone(),
        text: format!("partition {words}: {told}"),
        effect: format!(
            "{} of {} links carry nothing; RTTs on the others do not change",
            hit.len(),
            hosts.pairs().count()
        ),
        hit,
        impairment: Impairment { cut: Some(cut), ..Impairment::NONE },
    })
}

type Cuts = (Vec<(String, String)>, String);

fn one_way(from: &Names, to: Option<&Names>, hosts: &Hosts) -> Result<Cuts, Complaint> {
    let to = to.ok_or_else(|| Complaint::at("to", "the receivers are missing; write to: n2"))?;
    let (from, to) = (known(from, hosts)?, known(to, hosts)?);
    let pairs = from.iter().flat_map(|from| to.iter().map(move |to| (from.clone(), to.clone())));
    let pairs = pairs.filter(|(from, to)| from != to).collect();
    Ok((pairs, format!("{} → {} (one way)", from.join(","), to.join(","))))
}

fn groups(entry: &PartitionFault, hosts: &Hosts, seed: u64) -> Result<Vec<Vec<String>>, Complaint> {
    let all: Vec<String> = hosts.iter().map(|host| host.name.clone()).collect();
    if let Some(isolate) = &entry.isolate {
        let alone = known(isolate, hosts)?;
        let rest = all.into_iter().filter(|host| !alone.contains(host)).collect::<Vec<_>>();
        let rest = (!rest.is_empty()).then_some(rest);
        return Ok(alone.into_iter().map(|host| vec![host]).chain(rest).collect());
    }
    if entry.random {
        return random(hosts, seed);
    }
    let mut groups = Vec::new();
    for group in &entry.groups {
        groups.push(known(group, hosts).map_err(|complaint| Complaint { key: "groups".into(), ..complaint })?);
    }
    // Who is named nowhere is together with all others of whom that is true, as Blockade has it.
    let rest: Vec<String> = all.into_iter().filter(|host| !groups.iter().any(|group| group.contains(host))).collect();
    if !rest.is_empty() {
        groups.push(rest);
    }
    Ok(groups)
}

/// Two groups of nodes, neither empty; the host of the load stays with the larger one.
fn random(hosts: &Hosts, seed: u64) -> Result<Vec<Vec<String>>, Complaint> {
    let mut nodes: Vec<String> = hosts.nodes().map(|host| host.name.clone()).collect();
    if nodes.len() < 2 {
        return Err(Complaint::at("random", "one node cannot be cut in two; add nodes"));
    }
    let mut random = Random::new(seed);
    random.shuffle(&mut nodes);
    let size = 1 + random.below(nodes.len() as u64 / 2) as usize;
    let mut large = nodes.split_off(size.min(nodes.len() - 1));
    nodes.sort_unstable();
    large.sort_unstable();
    large.push(Hosts::LOAD.to_owned());
    Ok(vec![nodes, large])
}

/// Every ordered pair of hosts that share no group.
fn between(groups: &[Vec<String>], hosts: &Hosts) -> Vec<(String, String)> {
    let together =
        |one: &String, other: &String| groups.iter().any(|group| group.contains(one) && group.contains(other));
    let apart = hosts.pairs().filter(|(from, to)| !together(&from.name, &to.name));
    apart.map(|(from, to)| (from.name.clone(), to.name.clone())).collect()
}

/// "n1 | n2,n3,load".
fn words(groups: &[Vec<String>]) -> String {
    groups.iter().map(|group| group.join(",")).collect::<Vec<_>>().join(" | ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[&str]) -> Names {
        Names(list.iter().map(|name| (*name).to_owned()).collect())
    }

    fn cut(entry: &PartitionFault) -> Vec<String> {
        let fault = fault(entry, &Hosts::new(3), 7).unwrap();
        let mut cut: Vec<String> = fault.hit.iter().map(|(from, to)| format!("{from}>{to}")).collect();
        cut.sort_unstable();
        cut
    }

    #[test]
    fn hosts_in_no_group_form_one_of_their_own() {
        let entry = PartitionFault { groups: vec![names(&["n1"])], ..PartitionFault::default() };
        assert_eq!(cut(&entry), ["load>n1", "n1>load", "n1>n2", "n1>n3", "n2>n1", "n3>n1"]);
    }

    #[test]
    fn a_host_in_two_groups_is_a_bridge() {
        let groups = vec![names(&["n1", "n2", "load"]), names(&["n2", "n3"])];
        let entry = PartitionFault { groups, ..PartitionFault::default() };
        assert_eq!(cut(&entry), ["load>n3", "n1>n3", "n3>load", "n3>n1"]);
    }

    #[test]
    fn one_way_cuts_leave_the_way_back() {
        let entry =
            PartitionFault { from: Some(names(&["n1"])), to: Some(names(&["n2", "n3"])), ..PartitionFault::default() };
        assert_eq!(cut(&entry), ["n1>n2", "n1>n3"]);
    }

    #[test]
    fn a_random_partition_follows_from_its_seed_and_leaves_no_group_empty() {
        for seed in 0..200 {
            let entry = PartitionFault { random: true, ..PartitionFault::default() };
            let (one, again) =
                (fault(&entry, &Hosts::new(5), seed).unwrap(), fault(&entry, &Hosts::new(5), seed).unwrap());
            assert_eq!(one.hit, again.hit);
            assert!(!one.hit.is_empty());
        }
    }

    #[test]
    fn what_cuts_nothing_or_is_said_twice_is_refused() {
        let hosts = Hosts::new(3);
        for entry in [
            PartitionFault::default(),
            PartitionFault { groups: vec![names(&["n1", "n2", "n3", "load"])], ..PartitionFault::default() },
            PartitionFault { random: true, isolate: Some(names(&["n1"])), ..PartitionFault::default() },
            PartitionFault { isolate: Some(names(&["n9"])), ..PartitionFault::default() },
            PartitionFault { from: Some(names(&["n1"])), ..PartitionFault::default() },
        ] {
            assert!(fault(&entry, &hosts, 1).is_err(), "{entry:?}");
        }
    }
}
