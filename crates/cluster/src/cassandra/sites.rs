//! Which data centre and rack a node is in.

use std::collections::BTreeMap;

use super::{ring, site::Site};
use crate::{ClusterError, database::Member, error::unknown};

/// The file that [`super::yaml`]'s snitch reads a node's site from.
pub(super) const FILE: &str = "cassandra-rackdc.properties";

/// The snitch that reads it; with no sites it is Cassandra's simplest, as shipped.
pub(super) const SNITCH: &str = "GossipingPropertyFileSnitch";

/// Refuses sites of which a node has none, that are of no node, or whose names Cassandra could misread. `is_set`:
/// whether the experiment sets this key of cassandra.yaml on any node.
pub(super) fn check(
    sites: &BTreeMap<String, Site>,
    is_set: impl Fn(&str) -> bool,
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
    if is_set("endpoint_snitch") {
        return no(format!("they require the snitch {SNITCH}: leave out the setting endpoint_snitch, or the sites"));
    }
    Ok(())
}

/// Seeds of one data centre: as one deploys them, so that the loss of a node leaves another.
const SEEDS_PER_CENTRE: usize = 2;

/// The nodes that others are told to begin with. Without data centres all: they start at once, and nobody waits for
/// another. With them the first two of each, so that gossip always has somewhere to go in the others, and does not go
/// everywhere.
pub(super) fn seeds<'a>(sites: &BTreeMap<String, Site>, members: &'a [Member]) -> Vec<&'a Member> {
    let mut of_centre: BTreeMap<&str, usize> = BTreeMap::new();
    let is_seed = |member: &&Member| {
        let Some(site) = of(sites, member) else { return true };
        let before = of_centre.entry(&site.dc).or_default();
        *before += 1;
        *before <= SEEDS_PER_CENTRE
    };
    members.iter().filter(is_seed).collect()
}

/// Who they are, for people.
pub(super) fn seeds_in_words(sites: &BTreeMap<String, Site>) -> &'static str {
    if sites.is_empty() { "every node" } else { "the first two nodes of every data centre" }
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
            client: ([10, 0, 0, 1], 9042).into(),
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
            let error = check(&sites(given), |_| false, &members()).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
        let good = sites(&[("n1", "dc-1", "r_1"), ("n2", "dc2", "r1")]);
        assert!(check(&good, |_| false, &members()).is_ok());
        assert!(check(&BTreeMap::new(), |_| false, &members()).is_ok());
        let error = check(&good, |key| key == "endpoint_snitch", &members()).unwrap_err().to_string();
        assert!(error.contains("GossipingPropertyFileSnitch"), "{error}");
    }

    #[test]
    fn two_nodes_of_each_data_centre_are_seeds_and_without_any_all() {
        let member = |name: &str| Member { name: name.to_owned(), ..members().remove(0) };
        let five = ["n1", "n2", "n3", "n4", "n5"].map(member);
        let names = |sites: &BTreeMap<String, Site>| {
            seeds(sites, &five).iter().map(|seed| seed.name.clone()).collect::<Vec<_>>().join(" ")
        };
        let three_and_two =
            sites(&[("n1", "a", "r"), ("n2", "b", "r"), ("n3", "a", "r"), ("n4", "a", "r"), ("n5", "b", "r")]);
        assert_eq!(names(&three_and_two), "n1 n2 n3 n5");
        assert_eq!(names(&BTreeMap::new()), "n1 n2 n3 n4 n5");
    }

    #[test]
    fn without_sites_the_tokens_are_those_of_one_ring() {
        assert_eq!(tokens(&BTreeMap::new(), &members()), ring::tokens(2));
        assert_eq!(tokens(&sites(&[("n1", "b", "r"), ("n2", "a", "r")]), &members()), [0, i64::MIN]);
    }
}
