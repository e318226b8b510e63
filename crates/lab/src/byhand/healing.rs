//! Healing what commands have put in force.

use serde_json::json;

use super::{
    Failure,
    lab::Lab,
    ledger::Key,
    link_state::{LinkStates, heals_with_fast},
    protocol::Who,
    roles::refuse_roles,
};
use crate::{LabError, experiment::LinkEntry, faults::Healing};

impl Lab {
    /// Heals what commands did to the links of these hosts.
    pub(super) fn fast(&self, who: &Who, by: &str) -> Result<Vec<String>, Failure> {
        refuse_roles(who, &self.layout.hosts)?;
        let mut hosts = self.hosts(who)?;
        if who.all {
            hosts = self.layout.hosts.iter().map(|host| host.name.clone()).collect();
        }
        let of = |key: &Key| {
            // A link's owner is the pair of its ends.
            heals_with_fast(key) && key.owner.split('>').any(|end| hosts.iter().any(|host| host == end))
        };
        let healed = self.heal_keys(of, by)?;
        let mut lines = vec![match healed {
            0 => "there was nothing to heal".to_owned(),
            healed => format!("healed: {healed}"),
        }];
        lines.extend(self.in_force(Some(&hosts), &[])?);
        Ok(lines)
    }

    /// Heals what `link` commands did to these links.
    pub(super) fn fast_link(
        &self,
        from: &[String],
        to: &[String],
        both: bool,
        by: &str,
    ) -> Result<Vec<String>, Failure> {
        let written = json!({ "from": from, "to": to, "both": both });
        let entry: LinkEntry =
            serde_json::from_value(written).map_err(|error| Failure::wrong(format!("link: {error}")))?;
        let links = self.layout.hosts.links(&entry)?;
        let owners: Vec<String> = links.iter().map(|(from, to)| format!("{from}>{to}")).collect();
        let healed = self.heal_keys(|key| key.kind == "link" && owners.contains(&key.owner), by)?;
        let mut lines = vec![format!("healed: {healed} of {} links", links.len())];
        lines.extend(self.in_force(None, &links)?);
        Ok(lines)
    }

    /// Heals what commands did of this kind to these hosts.
    pub(super) fn heal(&self, kind: &str, who: &Who, by: &str) -> Result<Vec<String>, Failure> {
        refuse_roles(who, &self.layout.hosts)?;
        let hosts = self.hosts(who)?;
        let healed = self.heal_keys(|key| key.kind == kind && hosts.contains(&key.owner), by)?;
        let mut lines = Vec::new();
        if healed == 0 {
            lines.push(format!("no {kind} fault was in force"));
        }
        lines.extend(self.in_force(Some(&hosts), &[])?);
        Ok(lines)
    }

    /// Heals the partition.
    pub(super) fn join(&self, by: &str) -> Result<Vec<String>, Failure> {
        let healed = self.heal_keys(|key| key.kind == "partition", by)?;
        let read = LinkStates::of(self.testbed.controls, &self.layout)?;
        let cut = read.0.values().filter(|link| link.added.iter().any(|impairment| impairment.cut.is_some())).count();
        Ok(vec![match (healed, cut) {
            (0, 0) => "there was no partition; all hosts reach one another".to_owned(),
            (_, 0) => "joined: all hosts reach one another".to_owned(),
            (_, cut) => format!("joined, but {cut} links are still cut, by `link` or chaos"),
        }])
    }

    /// Heals what the keys have in force that fit; says how many.
    pub(super) fn heal_keys(&self, of: impl Fn(&Key) -> bool, by: &str) -> Result<usize, Failure> {
        // All of them begin before one is waited for, and what goes wrong with one keeps no other.
        let healing: Vec<(Key, Result<Healing, LabError>)> = {
            let mut ledger = self.ledger();
            let keys = ledger.keys(of);
            keys.into_iter().filter_map(|key| ledger.heal(&key).map(|healing| (key, healing))).collect()
        };
        let count = healing.len();
        let mut result = Ok(count);
        for (key, healing) in healing {
            match healing.and_then(Healing::wait) {
                Ok(change) => {
                    let text = format!("{} healed", key.kind);
                    self.events.note(change, "heal", &key.owner.replace('>', " → "), &text, by);
                }
                Err(error) => result = result.and(Err(error.into())),
            }
        }
        result
    }
}
