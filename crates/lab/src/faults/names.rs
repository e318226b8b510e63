//! The hosts that a fault names: checked, and in words.

use crate::{
    experiment::{Complaint, Names, one_of},
    hosts::Hosts,
};

/// The hosts that these names mean: a site means all of its hosts.
pub(super) fn known(names: &Names, hosts: &Hosts) -> Result<Vec<String>, Complaint> {
    hosts.meant("host", names)
}

/// The nodes that these names mean: the host of the load has no database.
pub(super) fn known_nodes(names: &Names, hosts: &Hosts) -> Result<Vec<String>, Complaint> {
    let sites = hosts.sites();
    let mut found: Vec<String> = Vec::new();
    for name in names.iter().map(|name| hosts.called(name)) {
        let meant: Vec<String> = match sites.get(name) {
            Some(nodes) => nodes.iter().map(|node| (*node).to_owned()).collect(),
            None => {
                let known = hosts.nodes().map(|host| host.name.as_str());
                among(&Names(vec![name.to_owned()]), "host", "the nodes are", known)?
            }
        };
        found.extend(meant.into_iter().filter(|node| !found.contains(node)).collect::<Vec<_>>());
    }
    Ok(found)
}

pub(super) fn among<'a>(
    names: &Names,
    key: &'static str,
    intro: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> Result<Vec<String>, Complaint> {
    let mut found: Vec<String> = Vec::new();
    for name in names.iter() {
        if !known.clone().any(|known| known == name) {
            let names = one_of(intro, known, name);
            let what = match key {
                "directories" => "directory",
                "operations" => "operation",
                _ => "host",
            };
            return Err(Complaint::at(key, format!("unknown {what} '{name}'; {names}")));
        }
        if !found.iter().any(|found| found == name) {
            found.push(name.to_owned());
        }
    }
    Ok(found)
}

/// "n1", "n1 and n2", "n1, n2 and n3".
pub(super) fn join(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// "s" for one host: "n2 sends", "n2 and n3 send".
pub(super) fn s(names: &[String]) -> &'static str {
    if names.len() == 1 { "s" } else { "" }
}

/// "is" for one host, "are" for several.
pub(super) fn are(names: &[String]) -> &'static str {
    if names.len() == 1 { "is" } else { "are" }
}
