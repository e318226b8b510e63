//! Putting faults in force, each as a part for every host or link that can be healed alone.

use std::{
    collections::BTreeMap,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use brownout_base::Change;
use brownout_units::Delay;
use serde_json::{Map, Value, json};

use super::{
    Failure,
    lab::Lab,
    ledger::{Amended, Key, Settled},
    protocol::Who,
};
use crate::{
    LabError,
    experiment::FaultEntry,
    faults::{self, Fault, Healing, together},
    plan::limits_packets,
};

/// A fault that heals by itself does so within a week.
const LONGEST_FOR: Duration = Duration::from_secs(7 * 24 * 3600);
/// Between two looks at whether something has come into force.
const LOOK: Duration = Duration::from_millis(20);
/// The kinds that strike nodes, which the host of the load is none of.
const OF_NODES: [&str; 6] = ["pause", "kill", "stop", "cpu", "disk", "clock"];

/// What is put in force, in the words of an experiment file.
pub(super) struct Asked {
    pub(super) kind: String,
    pub(super) who: Option<Who>,
    pub(super) values: Map<String, Value>,
    pub(super) for_ns: Option<u64>,
}

/// What a command has put in force, with its id and since when, and what it could not.
struct Put {
    put: Vec<(Key, u64, Change)>,
    failed: Vec<String>,
}

impl Lab {
    /// Puts a fault in force; says what then is.
    pub(super) fn inject(self: &Arc<Self>, asked: Asked, by: &str) -> Result<Vec<String>, Failure> {
        let Asked { kind, who, mut values, for_ns } = asked;
        let of_nodes = OF_NODES.contains(&kind.as_str());
        let struck = who.as_ref().map(|who| if of_nodes { self.nodes(who) } else { self.hosts(who) }).transpose()?;
        if let Some(struck) = &struck {
            values.insert("host".to_owned(), json!(struck));
        }
        if let Some(names) = values.get_mut("isolate") {
            self.cast(names)?;
        }
        let limit = for_ns.map(Duration::from_nanos);
        if limit.is_some_and(|limit| limit.is_zero() || limit > LONGEST_FOR) {
            return Err(Failure::wrong("--for takes a time above 0 and at most a week"));
        }
        let mut fault = self.fault(&kind, &values)?;
        self.refuse_impossible(fault.as_ref())?;
        let put = self.put(&kind, fault.as_ref(), struck.as_deref().unwrap_or_default(), &mut values);
        let Put { put, mut failed } = put?;
        let (mut changes, mut there): (Vec<Change>, Vec<(Key, u64)>) = (Vec::new(), Vec::new());
        for (key, id, change) in put {
            match self.wait_settled(&key, id) {
                Ok(since) => {
                    changes.push(since.unwrap_or(change));
                    there.push((key, id));
                }
                Err(error) => {
                    self.events.note(together([]), "failed", &key.owner, &format!("{kind}: {error}"), by);
                    failed.push(error.to_string());
                }
            }
        }
        if there.is_empty() {
            return Err(Failure::failed(failed.join("; ")));
        }
        if !failed.is_empty() {
            // What is noted is what is in force, and no more.
            let owners: Vec<&String> = there.iter().map(|(key, _)| &key.owner).collect();
            values.insert("host".to_owned(), json!(owners));
            fault = self.fault(&kind, &values)?;
        }
        self.events.note(together(changes), &kind, &fault.subject(), &fault.text(), by);
        if let Some(limit) = limit {
            let text = format!("{} heals by itself after {}", kind, Delay::from(limit));
            self.timer.at(Instant::now() + limit, move |lab: &Arc<Lab>| lab.heal_later(&there, &text));
        }
        let mut lines = self.in_force(struck.as_deref(), fault.links())?;
        if !failed.is_empty() {
            return Err(Failure::failed(format!("{}; in force now: {}", failed.join("; "), lines.join("; "))));
        }
        lines.push(format!("effect: {}", fault.effect()));
        lines.extend(limit.map(|limit| format!("heals by itself after {}", Delay::from(limit))));
        Ok(lines)
    }

    /// Puts a fault in force, a part for each of its hosts or links: all of them or none. But a node that another part has
    /// stopped or ended is not brought back because one was down already: that is told instead.
    fn put(
        &self,
        kind: &str,
        fault: &dyn Fault,
        struck: &[String],
        values: &mut Map<String, Value>,
    ) -> Result<Put, Failure> {
        let inward = values.get("direction").is_some_and(|direction| direction == "in");
        let owners = owners(kind, struck, inward, fault.links());
        let parts = owners.into_iter().filter_map(|(owner, links)| Some((owner, fault.on(links)?)));
        let mut parts: Vec<(String, Box<dyn Fault>)> = parts.collect();
        if fault.links().is_empty() {
            for host in struck {
                values.insert("host".to_owned(), json!([host]));
                parts.push((host.clone(), self.fault(kind, values)?));
            }
        }
        let mut done = Put { put: Vec::new(), failed: Vec::new() };
        for (owner, part) in parts {
            let key = Key::of(part.as_ref(), &owner);
            match self.put_part(&key, part) {
                Ok((id, change)) => done.put.push((key, id, change)),
                Err(failure) if key.kind == Key::PROCESS => done.failed.push(failure.message),
                Err(failure) => {
                    // What went wrong is what a person has to know.
                    let mut ledger = self.ledger();
                    done.put.iter().for_each(|(key, id, _)| drop(ledger.heal_if(key, *id)));
                    return Err(failure);
                }
            }
        }
        Ok(done)
    }

    /// Puts one part in force, in the place of what its key had.
    fn put_part(&self, key: &Key, part: Box<dyn Fault>) -> Result<(u64, Change), Failure> {
        let capabilities = self.testbed.capabilities;
        if key.kind == Key::PROCESS {
            let mut ledger = self.ledger();
            let state = self.control.state(&key.owner)?;
            let refused = |why: &str| Failure::failed(format!("cannot {} {}: {why}", part.kind(), key.owner));
            ledger.make_room(key, state).map_err(refused)?;
            return Ok(ledger.put(key, part, capabilities)?);
        }
        let part = match self.ledger().amend(key, part)? {
            Amended::Yes(id, change) => return Ok((id, change)),
            Amended::No(part) => part,
        };
        let healing = self.ledger().heal(key);
        let healed = healing.map(|healing| healing.and_then(Healing::wait)).transpose()?;
        let (id, change) = self.ledger().put(key, part, capabilities)?;
        Ok((id, together(healed.into_iter().chain([change]))))
    }

    /// Stops a node as `stop` does, and returns when it has ended: who heals that starts it again.
    pub(super) fn stop(&self, node: &str) -> Result<(), Failure> {
        let values = Map::from_iter([("host".to_owned(), json!([node]))]);
        let fault = self.fault("stop", &values)?;
        let key = Key::of(fault.as_ref(), node);
        let (id, _) = self.put_part(&key, fault)?;
        self.wait_settled(&key, id)?;
        Ok(())
    }

    /// Waits until what was asked for is there: a database that shuts down cleanly takes seconds. None: somebody has healed
    /// it meanwhile.
    fn wait_settled(&self, key: &Key, id: u64) -> Result<Option<Change>, LabError> {
        loop {
            let settled = self.ledger().settled(key, id)?;
            match settled {
                None => return Ok(None),
                Some(Settled::Since(change)) => return Ok(Some(change)),
                Some(Settled::NotYet) => {}
            }
            thread::sleep(LOOK);
        }
    }

    fn entry(&self, kind: &str, values: &Map<String, Value>) -> Result<FaultEntry, Failure> {
        let written = json!({ kind: values });
        serde_json::from_value(written).map_err(|error| Failure::wrong(format!("{kind}: {error}")))
    }

    fn fault(&self, kind: &str, values: &Map<String, Value>) -> Result<Box<dyn Fault>, Failure> {
        let fault = faults::from_entry(&self.entry(kind, values)?, &self.layout.hosts, self.draw())?;
        limits_packets(fault.as_ref(), self.layout.network.mtu)?;
        Ok(fault)
    }

    fn heal_later(self: &Arc<Self>, put: &[(Key, u64)], why: &str) {
        for (key, id) in put {
            // Something else may have taken its place meanwhile.
            let Some(healing) = self.ledger().heal_if(key, *id) else { continue };
            let note = {
                let (lab, owner, why) = (Arc::clone(self), key.owner.clone(), why.to_owned());
                move |healed: Result<Change, LabError>| match healed {
                    Ok(change) => lab.events.note(change, "heal", &owner, "healed by itself", &why),
                    Err(error) => {
                        lab.events.note(together([]), "failed", &owner, &format!("healing: {error}"), &why);
                    }
                }
            };
            match healing {
                // The timer has others to heal in time, while a database starts.
                Ok(Healing::UnderWay(thread)) => drop(thread::spawn(move || note(Healing::UnderWay(thread).wait()))),
                healing => note(healing.and_then(Healing::wait)),
            }
        }
    }
}

/// Whose each link is: of the host that was struck by what it sends, else of the one that is sent to (`inward`: the other
/// way round); of a `link` command, its own; of a partition, nobody's.
fn owners(
    kind: &str,
    struck: &[String],
    inward: bool,
    links: &[(String, String)],
) -> BTreeMap<String, Vec<(String, String)>> {
    let mut owners: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for (from, to) in links {
        let owner = match kind {
            "partition" => String::new(),
            "link" => format!("{from}>{to}"),
            _ if struck.contains(from) && !(inward && struck.contains(to)) => from.clone(),
            _ => to.clone(),
        };
        owners.entry(owner).or_default().push((from.clone(), to.clone()));
    }
    owners
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_link_between_two_struck_hosts_is_hit_twice() {
        let names = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let links: Vec<(String, String)> = [("n1", "n2"), ("n2", "n1"), ("n1", "n3"), ("n3", "n1")]
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
            .to_vec();
        let both = owners("slow", &names(&["n1", "n2"]), false, &links);
        assert_eq!((both["n1"].len(), both["n2"].len()), (3, 1));
        assert_eq!(both.values().map(Vec::len).sum::<usize>(), links.len());
        // Of what is sent to them, each has what is sent to it.
        let inward = owners("slow", &names(&["n1", "n2"]), true, &links[..2]);
        assert!(inward["n1"][0].1 == "n1" && inward["n2"][0].1 == "n2", "{inward:?}");
    }
}
