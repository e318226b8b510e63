//! Which data centre and rack a node is in.

use std::collections::BTreeMap;

use super::{ring, spec::Site};
use crate::{ClusterError, error::unknown, system::Member};

/// The file that [`super::yaml`]'s snitch reads a node's site from.
pub(super) const FILE: &str = "cassandra-rackdc.properties";

/// The snitch that reads it; with no sites it is Cassandra's simplest, as shipped.
pub(super) const SNITCH: &str = "GossipingPropertyFileSnitch";

/// Refuses sites of which a node has none, that are of no node, or whose names Cassandra could misread.
pub(super) fn check(
    sites: &BTreeMap<String, Site>,
    settings: &BTreeMap<String, String>,
    members: &[Member],
) -> Result<(), ClusterError> {
    if sites.is_empty() {
        return Ok(());
    }
    let no = |why: String| Err(ClusterError::Site(why));
    let names = || members.iter().map(|member| member.name.clone()).collect();
    if let Some(stranger) = sites.keys().find(|name| !members.iter().any(|member| member.name == **name)) {
        return Err(unknown(stranger, names()));
    }
    if let Some(member) = members.iter().find(|member| !sites.contains_key(&member.name)) {
        return no(format!("{} is in no data centre; once one node is in one, all must be", member.name));
    }
    for (node, Site { dc, rack }) in sites {
        for (what, name) in [("data centre", dc), ("rack", rack)] {
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            if name.is_empty() || name.len() > 48 || !name.chars().all(plain) {
                return no(format!("'{name}' of {node} cannot be a {what}: use up to 48 letters, digits, - and _"));
            }
        }
    }
    if settings.contains_key("endpoint_snitch") {
        return no(format!("they require the snitch {SNITCH}: leave out the setting endpoint_snitch, or the sites"));
    }
    Ok(())
}

/// The site of `member`; `None` when there are none.
pub(super) fn of<'a>(sites: &'a BTreeMap<String, Site>, member: &Member) -> Option<&'a Site> {
    sites.get(&member.name)
}

/// The tokens of `members`, in their order.
pub(super) fn tokens(sites: &BTreeMap<String, Site>, members: &[Member]) -> Vec<i64> {
    ring::tokens_of(&members.iter().map(|member| of(sites, member)).collect::<Vec<_>>())
}

/// The text of a node's [`FILE`].
pub(super) fn properties(Site { dc, rack }: &Site) -> String {
    format!("dc={dc}\nrack={rack}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members() -> Vec<Member> {
        let member = |name: &str| Member {
            name: name.to_owned(),
            address: [10, 0, 0, 1].into(),
            home: "/".into(),
            logs: "/".into(),
        };
        ["n1", "n2"].map(member).into()
    }

    fn sites(all: &[(&str, &str, &str)]) -> BTreeMap<String, Site> {
        let site = |(node, dc, rack): &(&str, &str, &str)| {
            ((*node).to_owned(), Site { dc: (*dc).to_owned(), rack: (*rack).to_owned() })
        };
        all.iter().map(site).collect()
    }

    #[test]
    fn sites_that_do_not_fit_the_nodes_or_have_odd_names_are_refused() {
        for (given, said) in [
            (&[("n1", "dc1", "r1")][..], "n2 is in no data centre"),
            (&[("n1", "dc1", "r1"), ("n2", "dc1", "r1"), ("n3", "dc1", "r1")], "no node 'n3' (did you mean n1?)"),
            (&[("n1", "dc 1", "r1"), ("n2", "dc1", "r1")], "'dc 1' of n1 cannot be a data centre"),
            (&[("n1", "dc1", ""), ("n2", "dc1", "r1")], "'' of n1 cannot be a rack"),
            (&[("n1", "dc1", "r\nprefer_local=true"), ("n2", "dc1", "r1")], "cannot be a rack"),
        ] {
            let error = check(&sites(given), &BTreeMap::new(), &members()).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
        let good = sites(&[("n1", "dc-1", "r_1"), ("n2", "dc2", "r1")]);
        assert!(check(&good, &BTreeMap::new(), &members()).is_ok());
        assert!(check(&BTreeMap::new(), &BTreeMap::new(), &members()).is_ok());
        let settings = BTreeMap::from([("endpoint_snitch".to_owned(), "SimpleSnitch".to_owned())]);
        let error = check(&good, &settings, &members()).unwrap_err().to_string();
        assert!(error.contains("GossipingPropertyFileSnitch"), "{error}");
    }

    #[test]
    fn without_sites_the_tokens_are_those_of_one_ring() {
        assert_eq!(tokens(&BTreeMap::new(), &members()), ring::tokens(2));
        assert_eq!(tokens(&sites(&[("n1", "b", "r"), ("n2", "a", "r")]), &members()), [0, i64::MIN]);
    }
}
