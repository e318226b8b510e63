//! What Cassandra itself encrypts: connections between nodes, and those of clients.

use std::{collections::BTreeMap, path::Path};

use serde::Serialize;

use super::{certificates, dialect::Series, site::Site};
use crate::ClusterError;

/// Which connections are encrypted. By default none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Encryption {
    /// Those between nodes.
    pub internode: Internode,
    /// Those of clients: the load, readiness, heartbeats, statements by hand.
    pub clients: bool,
    /// Nodes take connections in clear as well (the way of a cluster that is being changed from one to the other). What
    /// starts a connection here encrypts it all the same.
    pub optional: bool,
}

/// Which connections between nodes are encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Internode {
    /// None.
    #[default]
    None,
    /// Those between racks.
    Rack,
    /// Those between data centres.
    Dc,
    /// All.
    All,
}

impl Internode {
    /// As Cassandra writes it.
    pub fn word(self) -> &'static str {
        match self {
            Internode::None => "none",
            Internode::Rack => "rack",
            Internode::Dc => "dc",
            Internode::All => "all",
        }
    }
}

impl Encryption {
    /// Whether anything is encrypted.
    pub fn is_any(self) -> bool {
        self.clients || self.internode != Internode::None
    }

    /// Whether the connections from a node at one site to one at another are.
    pub fn is_between(self, from: Option<&Site>, to: Option<&Site>) -> bool {
        match self.internode {
            Internode::None => false,
            Internode::All => true,
            Internode::Dc => from.map(|site| &site.dc) != to.map(|site| &site.dc),
            Internode::Rack => from != to,
        }
    }

    /// What is encrypted, for people and for the record, one line each; none: nothing.
    pub fn words(self) -> Vec<String> {
        let optional = if self.optional { " (and what comes in clear is taken)" } else { "" };
        let internode = match self.internode {
            Internode::None => None,
            Internode::Rack => Some("between racks"),
            Internode::Dc => Some("between data centres"),
            Internode::All => Some("between all nodes"),
        };
        let clients = self.clients.then_some("to clients");
        [internode, clients].into_iter().flatten().map(|what| format!("{what}{optional}")).collect()
    }

    /// Refuses what would encrypt nothing, or what a version cannot do. `versions` are those of the nodes, by name.
    ///
    /// # Errors
    /// [`ClusterError::Encryption`], with what to write instead.
    pub fn check(
        self,
        sites: &BTreeMap<String, Site>,
        versions: &BTreeMap<String, String>,
    ) -> Result<(), ClusterError> {
        let no = |why: String| Err(ClusterError::Encryption(why));
        // Whether anything lies between that is encrypted.
        let is_hit = |from: &Site| sites.values().any(|to| self.is_between(Some(from), Some(to)));
        let lies_between = sites.values().any(is_hit);
        let why = match self.internode {
            Internode::Dc if !lies_between => {
                "internode: dc encrypts what passes between data centres, and there are not two; give the network \
                 sites, or write internode: all"
            }
            Internode::Rack if !lies_between => {
                "internode: rack encrypts what passes between racks, and there are not two; give the sites racks, or \
                 write internode: all"
            }
            _ if self.optional && !self.is_any() => {
                "optional: true says that clear text is taken as well, but nothing is encrypted; leave it out, or \
                 write internode: all or clients: true"
            }
            _ => "",
        };
        if !why.is_empty() {
            return no(why.to_owned());
        }
        let old = versions.iter().find(|(_, version)| Series::of(version) == Some(Series::V3_11));
        if let Some((node, version)) = old.filter(|_| self.optional && self.internode != Internode::None) {
            return no(format!(
                "{node} has {version}, which knows no optional encryption between nodes; leave optional out, or write \
                 internode: none"
            ));
        }
        Ok(())
    }
}

/// The options of `cassandra.yaml`; none where nothing is encrypted. `conf` is the directory with the node's
/// certificates.
pub(super) fn options(encryption: Encryption, series: Series, conf: &Path) -> Vec<(&'static str, String)> {
    let Encryption { internode, clients, optional } = encryption;
    let stores = certificates::stores(series, conf);
    let mut all = Vec::new();
    if internode != Internode::None {
        let mut options = format!("{{internode_encryption: {}, ", internode.word());
        // 3.11 knows no such key, and verifies names in a way of its own, which a node that is called cannot pass.
        if series > Series::V3_11 {
            options.push_str(&format!("optional: {optional}, require_endpoint_verification: true, "));
        }
        options.push_str(&format!("require_client_auth: true, {stores}}}"));
        all.push(("server_encryption_options", options));
    }
    if clients {
        let options = format!("{{enabled: true, optional: {optional}, require_client_auth: false, {stores}}}");
        all.push(("client_encryption_options", options));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sites(all: &[(&str, &str, &str)]) -> BTreeMap<String, Site> {
        let site = |(node, dc, rack): &(&str, &str, &str)| {
            ((*node).to_owned(), Site { dc: (*dc).to_owned(), rack: (*rack).to_owned() })
        };
        all.iter().map(site).collect()
    }

    fn encryption(internode: Internode, clients: bool, optional: bool) -> Encryption {
        Encryption { internode, clients, optional }
    }

    #[test]
    fn what_would_encrypt_nothing_is_refused_with_what_to_write() {
        let one = sites(&[("n1", "a", "r1"), ("n2", "a", "r1")]);
        let racks = sites(&[("n1", "a", "r1"), ("n2", "a", "r2")]);
        let centres = sites(&[("n1", "a", "r1"), ("n2", "b", "r1")]);
        let none = BTreeMap::new();
        let new = BTreeMap::from([("n1".to_owned(), "5.0.9".to_owned())]);
        let old = BTreeMap::from([("n2".to_owned(), "3.11.19".to_owned())]);
        for (what, sites, versions, said) in [
            (encryption(Internode::Dc, true, false), &none, &new, "give the network sites"),
            (encryption(Internode::Dc, true, false), &racks, &new, "and there are not two"),
            (encryption(Internode::Rack, false, false), &one, &new, "give the sites racks"),
            (encryption(Internode::None, false, true), &none, &new, "nothing is encrypted"),
            (encryption(Internode::All, true, true), &none, &old, "n2 has 3.11.19"),
        ] {
            let error = what.check(sites, versions).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
        for (what, sites, versions) in [
            (encryption(Internode::Dc, false, false), &centres, &new),
            (encryption(Internode::Rack, false, false), &racks, &new),
            (encryption(Internode::Rack, false, false), &centres, &new),
            (encryption(Internode::All, true, true), &none, &new),
            (encryption(Internode::None, true, true), &none, &old),
            (Encryption::default(), &none, &old),
        ] {
            assert!(what.check(sites, versions).is_ok(), "{what:?}");
        }
    }

    #[test]
    fn which_connections_are_encrypted_follows_from_where_their_ends_are() {
        let site = |dc: &str, rack: &str| Site { dc: dc.to_owned(), rack: rack.to_owned() };
        let (here, beside, far) = (site("a", "r1"), site("a", "r2"), site("b", "r1"));
        let of = |internode: Internode| {
            let between = |to: &Site| encryption(internode, false, false).is_between(Some(&here), Some(to));
            [between(&here), between(&beside), between(&far)]
        };
        assert_eq!(of(Internode::None), [false, false, false]);
        assert_eq!(of(Internode::Dc), [false, false, true]);
        assert_eq!(of(Internode::Rack), [false, true, true]);
        assert_eq!(of(Internode::All), [true, true, true]);
        assert!(encryption(Internode::All, false, false).is_between(None, None));
    }

    #[test]
    fn options_are_in_the_words_of_each_series() {
        let of = |series| options(encryption(Internode::All, true, false), series, Path::new("/n1/conf"));
        let [(server, between), (client, clients)] = <[_; 2]>::try_from(of(Series::V5_0)).unwrap();
        assert_eq!((server, client), ("server_encryption_options", "client_encryption_options"));
        assert!(between.starts_with("{internode_encryption: all, optional: false, "), "{between}");
        assert!(between.contains("PEMBasedSslContextFactory") && between.contains("'/n1/conf/node.pem'"), "{between}");
        assert!(clients.starts_with("{enabled: true, optional: false, require_client_auth: false, "), "{clients}");
        let old = &of(Series::V3_11)[0].1;
        assert!(!old.contains("optional") && old.contains("store_type: PKCS12"), "{old}");
        assert!(of(Series::V4_0)[0].1.contains("require_endpoint_verification: true"));
        assert!(options(Encryption::default(), Series::V5_0, Path::new("/")).is_empty());
    }

    #[test]
    fn words_name_what_is_encrypted() {
        assert_eq!(encryption(Internode::All, true, false).words(), ["between all nodes", "to clients"]);
        let taken = encryption(Internode::None, true, true).words();
        assert_eq!(taken, ["to clients (and what comes in clear is taken)"]);
        assert_eq!(Encryption::default().words(), Vec::<String>::new());
    }
}
