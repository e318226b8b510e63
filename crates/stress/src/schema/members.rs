//! The members of the cluster.

use std::{collections::BTreeMap, net::SocketAddr, time::Duration};

use brownout_load::{Consistency, control::Limit};
use tokio::time::Instant;

use super::{Control, SchemaError, session::POLL};

/// A node of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its CQL address.
    pub address: SocketAddr,
    /// Its data centre.
    pub datacenter: String,
    /// Its rack.
    pub rack: String,
    /// How near it is: nodes of a higher tier take operations only while none of a lower one is connected.
    pub tier: u8,
}

impl Control {
    /// The nodes known to the session, in order of address; if there is a whitelist, only those on it.
    pub fn members(&self) -> Vec<Member> {
        let (_, session) = self.driver();
        let state = session.get_cluster_state();
        let whitelist = self.contact().whitelist.then(|| &self.contact().nodes);
        let mut members: Vec<Member> = state
            .get_nodes_info()
            .iter()
            .map(|node| Member {
                address: SocketAddr::new(node.address.ip(), node.address.port()),
                datacenter: node.datacenter.clone().unwrap_or_default(),
                rack: node.rack.clone().unwrap_or_default(),
                tier: 0,
            })
            .filter(|member| whitelist.is_none_or(|nodes| nodes.contains(&member.address)))
            .collect();
        members.sort_by_key(|member| member.address);
        members
    }

    /// The tokens of the ring.
    pub fn tokens(&self) -> Vec<i64> {
        let (_, session) = self.driver();
        let state = session.get_cluster_state();
        state.replica_locator().ring().iter().map(|(token, _)| token.value()).collect()
    }

    /// The members that take a load for `datacenter` and `rack`.
    ///
    /// # Errors
    /// There are none.
    pub fn members_in(&self, datacenter: Option<&str>, rack: Option<&str>) -> Result<Vec<Member>, SchemaError> {
        let all = self.members();
        let here = |member: &&Member| {
            datacenter.is_none_or(|name| name == member.datacenter) && rack.is_none_or(|name| name == member.rack)
        };
        let found: Vec<Member> = all.iter().filter(here).cloned().collect();
        if found.is_empty() {
            let place = match (datacenter, rack) {
                (Some(datacenter), Some(rack)) => format!("data centre '{datacenter}', rack '{rack}'"),
                (Some(datacenter), None) => format!("data centre '{datacenter}'"),
                (None, Some(rack)) => format!("rack '{rack}'"),
                (None, None) => "the cluster".to_owned(),
            };
            let known: std::collections::BTreeSet<String> =
                all.iter().map(|member| format!("{}/{}", member.datacenter, member.rack)).collect();
            let known = known.into_iter().collect::<Vec<_>>().join(", ");
            return Err(SchemaError::NoSuchPlace { place, known });
        }
        Ok(found)
    }

    /// Waits until all members report the same schema version, each asked for its own; returns how long it took.
    ///
    /// # Errors
    /// They do not agree within the limit: the error says what each reports. The user interrupts.
    pub fn agree(&self, limit: Limit<'_>) -> Result<Duration, SchemaError> {
        const OWN: &str = "SELECT schema_version FROM system.local WHERE key = 'local'";
        let begun = Instant::now();
        loop {
            let mut versions: BTreeMap<SocketAddr, Result<String, String>> = BTreeMap::new();
            for member in self.members() {
                let told = self.ask(OWN, Consistency::One, Some(member.address), limit.interrupted)?;
                let version = match told {
                    Ok(rows) => rows.into_iter().flatten().flatten().next().ok_or_else(|| "nothing".to_owned()),
                    Err(refused) => Err(refused.reason().to_owned()),
                };
                versions.insert(member.address, version);
            }
            let mut told = versions.values();
            if let Some(Ok(first)) = told.next()
                && told.all(|version| version.as_ref() == Ok(first))
            {
                return Ok(begun.elapsed());
            }
            if begun.elapsed() > limit.time {
                let tell = |(node, version): (&SocketAddr, &Result<String, String>)| match version {
                    Ok(version) => format!("{node} has {version}"),
                    Err(reason) => format!("{node} reports {reason}"),
                };
                let state = versions.iter().map(tell).collect::<Vec<_>>().join("; ");
                return Err(SchemaError::Deadline {
                    what: "agreement on the schema".to_owned(),
                    limit: limit.time,
                    state,
                });
            }
            std::thread::sleep(POLL);
        }
    }
}
