//! `leader` and `follower` in the place of a host: whoever it is when the command comes.

use serde_json::Value;

use super::{Failure, lab::Lab, protocol::Who};
use crate::{
    faults::{Role, Roles},
    hosts::Hosts,
};

impl Lab {
    /// The node that has the role of that name at this moment; none if it names none.
    pub(super) fn in_role(&self, name: &str) -> Result<Option<String>, Failure> {
        let hosts = &self.layout.hosts;
        let Some(role) = Role::meant(name, hosts) else { return Ok(None) };
        let database = hosts.database();
        if !database.has_leader() {
            return Err(Failure::wrong(format!("{database} has no {name}; write the name of a node")));
        }
        let nodes: Vec<String> = hosts.nodes().map(|node| node.name.clone()).collect();
        Ok(Some(Roles::new(self.draw()).draw(role, &nodes, &[], self.testbed.capabilities)?))
    }

    /// Puts nodes in the place of roles, in a name or a list of names.
    pub(super) fn cast(&self, names: &mut Value) -> Result<(), Failure> {
        match names {
            Value::String(name) => {
                if let Some(node) = self.in_role(name)? {
                    *name = node;
                }
                Ok(())
            }
            Value::Array(list) => list.iter_mut().try_for_each(|name| self.cast(name)),
            _ => Ok(()),
        }
    }
}

/// Refuses roles where something is healed: drawn again, a role may be another node's than the one that was struck.
pub(super) fn refuse_roles(who: &Who, hosts: &Hosts) -> Result<(), Failure> {
    let is_role = |name: &&String| hosts.database().has_leader() && Role::meant(name, hosts).is_some();
    match who.names.iter().find(is_role) {
        None => Ok(()),
        Some(name) => Err(Failure::wrong(format!(
            "the {name} now may not be the node that was struck; write the name of the node (brownout status shows \
             what is in force)"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use brownout_cluster::DatabaseKind;

    use super::*;

    #[test]
    fn what_heals_takes_nodes_and_sites_and_no_roles() {
        let hosts = Hosts::new(3).running(DatabaseKind::Etcd);
        let owned = |name: &&str| (*name).to_owned();
        let who = |names: &[&str]| Who { names: names.iter().map(owned).collect(), ..Who::default() };
        for role in ["leader", "follower"] {
            let failure = refuse_roles(&who(&["n1", role]), &hosts).unwrap_err();
            assert_eq!(failure.code, 2);
            assert!(failure.message.contains(&format!("the {role} now may not be the node")), "{failure}");
        }
        assert_eq!(refuse_roles(&who(&["n1", "n2"]), &hosts), Ok(()));
        assert_eq!(refuse_roles(&Who { all: true, ..Who::default() }, &hosts), Ok(()));
        let sites = r#"{"leader":{"hosts":["n1","n2"]},"b":{"hosts":["n3","load"]}}"#;
        let hosts = hosts.in_sites(&serde_json::from_str(sites).unwrap()).unwrap();
        assert_eq!(refuse_roles(&who(&["leader"]), &hosts), Ok(()), "a site may be called so");
    }
}
