//! `chaos`: faults one after the other, or some at once, all drawn from a seed before anything starts, so that the same
//! seed gives the same faults at the same times.

use brownout_base::random::Random;
use brownout_units::Delay;

use super::{entry::from_entry, fault::Fault, names::known_nodes, role::Role};
use crate::{
    experiment::{ChaosFault, Complaint, FaultEntry, Names, Span},
    hosts::Hosts,
};

/// ns.
const MS: u64 = 1_000_000;
/// More rounds than this in one phase are a mistake.
const MOST: usize = 1_000;

/// One fault of many.
#[derive(Debug)]
pub struct Drawn {
    /// What it does.
    pub fault: Box<dyn Fault>,
    /// From the start of the chaos.
    pub starts: Delay,
    /// From the start of the chaos.
    pub ends: Delay,
}

/// Who may be struck.
fn victims(entry: &ChaosFault, hosts: &Hosts) -> Result<Vec<String>, Complaint> {
    let nodes: Vec<String> = hosts.nodes().map(|node| node.name.clone()).collect();
    let role = entry.hosts.iter().flat_map(Names::iter).find_map(|name| Role::meant(name, hosts));
    if let Some(role) = role.filter(|_| hosts.database().has_leader()) {
        let message = format!(
            "chaos draws its hosts before the trial begins, when nobody knows who will be {role}; write nodes, or a fault of its \
             own with host: {}",
            role.word()
        );
        return Err(Complaint::at("hosts", message));
    }
    let victims = match &entry.hosts {
        Some(names) => known_nodes(names, hosts).map_err(|complaint| Complaint { key: "hosts".into(), ..complaint })?,
        None => nodes,
    };
    if entry.at_once.most > victims.len() as u64 {
        let message = format!("{} hosts at once are more than the {} there are", entry.at_once.most, victims.len());
        return Err(Complaint::at("at-once", message));
    }
    Ok(victims)
}

/// A fault of each kind that the chaos draws from, on as many hosts as it strikes at once: whether it can be does not
/// depend on the seed.
pub fn kinds(entry: &ChaosFault, hosts: &Hosts, seed: u64) -> Result<Vec<Box<dyn Fault>>, Complaint> {
    let mut struck = victims(entry, hosts)?;
    struck.truncate(usize::try_from(entry.at_once.most).unwrap_or(usize::MAX));
    let of = |(index, written)| one(written, index, struck.clone(), hosts, seed);
    entry.faults.iter().enumerate().map(of).collect()
}

/// All faults of the chaos for a phase of this length: rounds, each of one kind on one or more hosts, with pauses between.
/// After a round whose healing takes its time (a database starts again) the pause is longer by that.
pub fn draw(entry: &ChaosFault, hosts: &Hosts, length: Delay, seed: u64) -> Result<Vec<Drawn>, Complaint> {
    if entry.faults.is_empty() {
        return Err(Complaint::at(
            "faults",
            "the kinds of faults are missing; write faults: [slow: { delay: 100ms }, pause: {}]",
        ));
    }
    if entry.run.least < Delay::from_ms(1) {
        return Err(Complaint::at("run", "a fault cannot last 0s; write 5s..20s"));
    }
    kinds(entry, hosts, seed)?;
    let victims = victims(entry, hosts)?;
    let mut random = Random::new(seed);
    // Whole milliseconds: what is drawn shall be read, and said again, by people.
    let within = |random: &mut Random, span: Span| {
        let (least, most) = (span.least.ns().div_ceil(MS), span.most.ns() / MS);
        random.between(least, most) * MS
    };
    let mut drawn = Vec::new();
    let mut at = within(&mut random, entry.pause);
    loop {
        let run = within(&mut random, entry.run);
        let count = random.between(entry.at_once.least, entry.at_once.most) as usize;
        let kind = random.below(entry.faults.len() as u64) as usize;
        let mut struck = victims.clone();
        random.shuffle(&mut struck);
        struck.truncate(count);
        struck.sort_unstable();
        let seed = random.word();
        let pause = within(&mut random, entry.pause);
        let Some(ends) = at.checked_add(run).filter(|ends| *ends <= length.ns()) else { break };
        let fault = one(&entry.faults[kind], kind, struck, hosts, seed)?;
        let healed = ends.saturating_add(fault.heals_within().ns());
        drawn.push(Drawn { fault, starts: Delay::from_ns(at), ends: Delay::from_ns(ends) });
        if drawn.len() > MOST {
            return Err(Complaint::at("run", format!("that is more than {MOST} faults; write longer times")));
        }
        at = healed.saturating_add(pause);
    }
    if drawn.is_empty() {
        let message = format!("no fault of at least {} fits into {length}; write shorter times", entry.run.least);
        return Err(Complaint::at("run", message));
    }
    Ok(drawn)
}

/// A fault as written, with the hosts that were drawn for it.
fn one(
    written: &serde_json::Value,
    index: usize,
    struck: Vec<String>,
    hosts: &Hosts,
    seed: u64,
) -> Result<Box<dyn Fault>, Complaint> {
    let at = |message: String| Complaint::at(format!("faults.{index}"), message);
    let mut written = as_text(written);
    // `- pause` alone is as good as `- pause: {}`.
    if let serde_json::Value::String(kind) = &written {
        written = serde_json::json!({ kind.as_str(): {} });
    }
    let Some((kind, body)) = written.as_object_mut().and_then(|map| map.iter_mut().next()) else {
        return Err(at("a fault is one word with its values, such as slow: { delay: 100ms }".to_owned()));
    };
    let who = if kind == "partition" { "isolate" } else { "host" };
    if body.is_null() {
        *body = serde_json::json!({});
    }
    let Some(body) = body.as_object_mut() else {
        return Err(at(format!("the values of {kind} are missing; write {kind}: {{ … }}")));
    };
    if body.contains_key("host") || body.contains_key("hosts") {
        return Err(at("chaos draws the hosts itself; write them in chaos.hosts".to_owned()));
    }
    if !(who == "isolate" && (body.contains_key("random") || body.contains_key("groups"))) {
        body.insert(who.to_owned(), serde_json::json!(Names(struck).0));
    }
    let entry: FaultEntry = serde_json::from_value(written).map_err(|error| at(error.to_string()))?;
    from_entry(&entry, hosts, seed)
        .map_err(|complaint| Complaint { key: format!("faults.{index}.{}", complaint.key).into(), ..complaint })
}

/// Numbers as they are written in a file: text, which the units are read from.
fn as_text(value: &serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    match value {
        Value::Number(number) => Value::String(number.to_string()),
        Value::Array(list) => list.iter().map(as_text).collect(),
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), as_text(value))).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(text: &str) -> ChaosFault {
        serde_json::from_str(text).unwrap()
    }

    const SLOW: &str = r#"{ "pause": "2s..5s", "run": "3s..6s", "at-once": "1..2",
        "faults": [{ "slow": { "delay": "50ms" } }, { "flaky": { "loss": "10%" } }, "pause"] }"#;

    fn told(seed: u64) -> Vec<String> {
        let drawn = draw(&entry(SLOW), &Hosts::new(3), Delay::from_secs(60), seed).unwrap();
        drawn.iter().map(|one| format!("{}-{} {}", one.starts, one.ends, one.fault.text())).collect()
    }

    #[test]
    fn the_same_seed_gives_the_same_faults_at_the_same_times() {
        assert_eq!(told(7), told(7));
        assert_ne!(told(7), told(8));
    }

    #[test]
    fn what_is_drawn_keeps_to_what_was_asked() {
        for seed in 0..50 {
            let drawn = draw(&entry(SLOW), &Hosts::new(3), Delay::from_secs(60), seed).unwrap();
            let mut before = 0;
            for Drawn { fault, starts, ends } in &drawn {
                assert!(["slow", "flaky", "pause"].contains(&fault.kind()));
                assert!((2_000_000_000..=5_000_000_000).contains(&(starts.ns() - before)));
                assert!((3_000_000_000..=6_000_000_000).contains(&(ends.ns() - starts.ns())));
                assert!(ends.ns() <= 60_000_000_000);
                before = ends.ns();
            }
            assert!(drawn.len() >= 4, "{}", drawn.len());
        }
    }

    #[test]
    fn nothing_is_drawn_while_a_node_starts_again() {
        let kills = SLOW.replace(r#""pause"]"#, r#""kill", "stop"]"#);
        let mut ended = 0;
        for seed in 0..20 {
            let drawn = draw(&entry(&kills), &Hosts::new(3), Delay::from_secs(600), seed).unwrap();
            for pair in drawn.windows(2) {
                let back = pair[0].ends.ns() + pair[0].fault.heals_within().ns();
                assert!(pair[1].starts.ns() >= back + 2_000_000_000, "seed {seed}");
                ended += usize::from(pair[0].fault.heals_within() > Delay::ZERO);
            }
        }
        assert!(ended > 20, "{ended}");
    }

    #[test]
    fn what_is_wrong_with_one_kind_does_not_depend_on_what_is_drawn() {
        let wrong = SLOW.replace(r#""loss": "10%""#, r#""loss": "0%""#);
        for seed in 0..20 {
            let complaint = draw(&entry(&wrong), &Hosts::new(3), Delay::from_secs(8), seed).unwrap_err();
            assert!(complaint.key.starts_with("faults.1"), "{complaint}");
        }
    }

    #[test]
    fn chaos_follows_no_role() {
        let hosts = Hosts::new(3).running(brownout_cluster::DatabaseKind::Etcd);
        let led = SLOW.replace(r#""at-once""#, r#""hosts": "leader", "at-once""#);
        let complaint = draw(&entry(&led), &hosts, Delay::from_secs(60), 1).unwrap_err();
        assert_eq!(complaint.key, "hosts");
        assert!(complaint.message.contains("a fault of its own with host: leader"), "{complaint}");
        let sites = r#"{"leader":{"hosts":["n1","n2"]},"b":{"hosts":["n3","load"]}}"#;
        let hosts = hosts.in_sites(&serde_json::from_str(sites).unwrap()).unwrap();
        assert!(draw(&entry(&led), &hosts, Delay::from_secs(60), 1).is_ok(), "a site may be called so");
    }

    #[test]
    fn chaos_that_cannot_be_is_refused() {
        for (text, key) in [
            (SLOW.replace("1..2", "1..4"), "at-once"),
            (SLOW.replace("3s..6s", "90s"), "run"),
            (SLOW.replace(r#""delay": "50ms""#, r#""delay": "50ms", "host": "n1""#), "faults.0"),
            (SLOW.replace(r#"{ "delay": "50ms" }"#, r#"{ "delai": "50ms" }"#), "faults.0"),
        ] {
            for seed in 0..20 {
                if let Err(complaint) = draw(&entry(&text), &Hosts::new(3), Delay::from_secs(60), seed) {
                    assert!(complaint.key.starts_with(key), "{complaint}");
                    break;
                }
                assert!(seed < 19, "{text} was never refused");
            }
        }
    }
}
