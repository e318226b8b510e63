//! Which containers are meant, and in which order and by which names they are hosts.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use serde::{Deserialize, Serialize};

use crate::{
    Container, ContainersError, What,
    container::examine,
    machine::{Machine, NamespaceId},
    runtime::{self, Told, bare},
};

/// Which containers are meant, and who is asked for them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selection {
    /// By what.
    #[serde(flatten)]
    pub by: By,
    /// Where the runtime listens; else the first one that has such containers is taken, of those in the usual places.
    #[serde(default)]
    pub socket: Option<PathBuf>,
}

/// By what containers are selected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// Those of a Compose project that run.
    Project(String),
    /// By name or identifier, all of which have to be there; of Kubernetes `POD` or `POD/CONTAINER`.
    Names(Vec<String>),
    /// Those that run with a label: `app=db`, or `app`, whatever its value.
    Label(String),
    /// By one process of each, as this process numbers it.
    Pids(Vec<u32>),
    /// By the files of their network namespaces, `/run/netns/db1`.
    #[serde(rename = "netns")]
    Namespaces(Vec<PathBuf>),
}

impl By {
    /// "of the Compose project shop".
    pub(crate) fn words(&self) -> String {
        match self {
            By::Project(project) => format!("of the Compose project {project}"),
            By::Names(names) => format!("named {}", names.join(", ")),
            By::Label(label) => format!("with the label {label}"),
            By::Pids(pids) => {
                format!("of the processes {}", pids.iter().map(u32::to_string).collect::<Vec<_>>().join(", "))
            }
            By::Namespaces(paths) => {
                let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
                format!("with the network namespaces {}", paths.join(", "))
            }
        }
    }

    /// That it can select something.
    fn check(&self) -> Result<(), ContainersError> {
        let twice = |texts: Vec<String>| {
            let mut known = BTreeSet::new();
            texts.into_iter().find(|text| !known.insert(text.clone()))
        };
        let (what, texts) = match self {
            By::Project(project) => ("project", vec![project.clone()]),
            By::Label(label) => ("label", vec![label.split('=').next().unwrap_or_default().to_owned()]),
            By::Names(names) => ("names", names.clone()),
            By::Pids(pids) => ("pids", pids.iter().map(u32::to_string).collect()),
            By::Namespaces(paths) => ("netns", paths.iter().map(|path| path.display().to_string()).collect()),
        };
        let wrong = |reason: String| Err(ContainersError::Selection { what, reason });
        if texts.is_empty() {
            return wrong("the list is empty; write at least one".to_owned());
        }
        if texts.iter().any(|text| text.trim().is_empty()) {
            return wrong("it is empty; write project: NAME, names: [NAME], or label: KEY=VALUE".to_owned());
        }
        match twice(texts) {
            Some(text) => wrong(format!("{text} is there twice; write it once")),
            None => Ok(()),
        }
    }

    /// Whether whoever selected them has put them into an order.
    fn is_ordered(&self) -> bool {
        matches!(self, By::Names(_) | By::Pids(_) | By::Namespaces(_))
    }
}

/// The containers that are meant: in the order in which they were named, or by service, number and name.
///
/// # Errors
/// Nobody can be asked, or there are no such containers: with what was looked at and what to do. That something cannot be
/// done to one of them is no error: see [`Container::abilities`].
pub fn find(selection: &Selection) -> Result<Vec<Container>, ContainersError> {
    selection.by.check()?;
    let mut told = match &selection.by {
        By::Pids(pids) => bare::by_pids(pids)?,
        By::Namespaces(paths) => bare::by_namespaces(paths)?,
        By::Project(_) | By::Names(_) | By::Label(_) => runtime::told(selection)?,
    };
    arrange(&mut told, selection.by.is_ordered());
    let networks = networks(&told);
    let machine = Machine::look().map_err(ContainersError::Machine)?;
    let examined = told.into_iter().map(|told| examine(told, &networks, &machine));
    let (mut containers, namespaces): (Vec<Container>, Vec<_>) = examined.unzip();
    refuse_shared(&mut containers, &namespaces);
    Ok(containers)
}

/// What was found, in words: "3 containers of the Compose project shop, Docker 20.10.24".
pub fn described(selection: &Selection, containers: &[Container]) -> String {
    let engines: BTreeSet<&str> = containers.iter().map(|container| container.engine.as_str()).collect();
    let engines: Vec<&str> = engines.into_iter().collect();
    let s = if containers.len() == 1 { "" } else { "s" };
    format!("{} container{s} {}, {}", containers.len(), selection.by.words(), engines.join(" and "))
}

/// Puts them into their order, and gives them their names as hosts.
fn arrange(told: &mut [Told], is_ordered: bool) {
    if !is_ordered {
        told.sort_by_cached_key(|told| {
            (told.service.as_deref().map(natural), told.number, natural(&told.host), told.id.clone())
        });
        name_by_service(told);
    }
    // Two of the same name would be one host.
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    for told in told.iter() {
        *known.entry(told.host.clone()).or_default() += 1;
    }
    let mut given: BTreeMap<String, usize> = BTreeMap::new();
    for told in told.iter_mut().filter(|told| known.get(&told.host).is_some_and(|count| *count > 1)) {
        let number = given.entry(told.host.clone()).or_default();
        *number += 1;
        told.host = format!("{}-{number}", told.host);
    }
}

/// A service's name, as others of its project reach it; with its number where there are several of it. Where two
/// projects have such services, all keep their own names.
fn name_by_service(told: &mut [Told]) {
    let mut services: BTreeMap<String, usize> = BTreeMap::new();
    let mut projects = BTreeSet::new();
    for told in told.iter() {
        projects.insert(told.project.clone());
        *services.entry(told.service.clone().unwrap_or_default()).or_default() += 1;
    }
    if projects.len() > 1 {
        return;
    }
    for told in told {
        let Some(service) = &told.service else { continue };
        told.host = match (services.get(service), told.number) {
            (Some(1), _) | (_, None) => service.clone(),
            (_, Some(number)) => format!("{service}-{number}"),
        };
    }
}

/// In the order of people, to whom node10 comes after node9: each run of digits is a number.
fn natural(name: &str) -> Vec<(String, u64)> {
    let mut parts = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (text, after) = rest.split_at(digits);
        let end = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        let (number, after) = after.split_at(end);
        // One with more digits than a number has is as good as any.
        parts.push((text.to_owned(), number.parse().unwrap_or(0)));
        rest = after;
    }
    parts
}

/// The networks that they are in, those first that most of them are in: there they speak to each other.
fn networks(told: &[Told]) -> Vec<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for attachment in told.iter().flat_map(|told| &told.networks) {
        *counts.entry(&attachment.network).or_default() += 1;
    }
    let mut networks: Vec<(&str, usize)> = counts.into_iter().collect();
    networks.sort_by_key(|(_, count)| Reverse(*count));
    networks.into_iter().map(|(network, _)| network.to_owned()).collect()
}

/// Links between those that are in one network never leave it, and from there to others nobody can tell them apart.
fn refuse_shared(containers: &mut [Container], namespaces: &[Option<NamespaceId>]) {
    let names: Vec<String> = containers.iter().map(|container| container.name.clone()).collect();
    for (index, container) in containers.iter_mut().enumerate() {
        let Some(Some(own)) = namespaces.get(index) else { continue };
        let others = namespaces.iter().zip(&names).enumerate();
        let others: Vec<&str> = others
            .filter(|(other, (namespace, _))| *other != index && **namespace == Some(*own))
            .map(|(_, (_, name))| name.as_str())
            .collect();
        let links = container.abilities.iter_mut().find(|ability| ability.what == What::Links);
        if let Some(links) = links.filter(|links| links.refused.is_none() && !others.is_empty()) {
            links.refused =
                Some(format!("it is in the same network as {}; name only one of them", others.join(" and ")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ability, runtime::Attachment};

    fn told(project: &str, service: &str, number: u32) -> Told {
        Told {
            project: Some(project.into()),
            service: Some(service.into()),
            number: Some(number),
            ..Told::named(&format!("{project}-{service}-{number}"))
        }
    }

    fn hosts(mut told: Vec<Told>, is_ordered: bool) -> Vec<String> {
        arrange(&mut told, is_ordered);
        told.into_iter().map(|told| told.host).collect()
    }

    #[test]
    fn a_selection_is_written_and_read() {
        for (by, text) in [
            (By::Project("shop".into()), r#"{"project":"shop","socket":null}"#),
            (By::Names(vec!["c1".into(), "c2".into()]), r#"{"names":["c1","c2"],"socket":null}"#),
            (By::Label("app=db".into()), r#"{"label":"app=db","socket":null}"#),
            (By::Pids(vec![7, 8]), r#"{"pids":[7,8],"socket":null}"#),
            (By::Namespaces(vec!["/run/netns/a".into()]), r#"{"netns":["/run/netns/a"],"socket":null}"#),
        ] {
            let selection = Selection { by, socket: None };
            assert_eq!(serde_json::to_string(&selection).unwrap(), text);
            assert_eq!(serde_json::from_str::<Selection>(text).unwrap(), selection);
        }
        let with = serde_json::from_str::<Selection>(r#"{"label":"a","socket":"/run/podman/podman.sock"}"#).unwrap();
        assert_eq!(with.socket, Some("/run/podman/podman.sock".into()));
        assert!(serde_json::from_str::<Selection>(r#"{"socket":"/x"}"#).is_err());
    }

    #[test]
    fn what_selects_nothing_is_refused() {
        let find = |by: By| find(&Selection { by, socket: None }).unwrap_err().to_string();
        assert!(find(By::Names(Vec::new())).contains("names: the list is empty"));
        assert!(find(By::Names(vec!["a".into(), "b".into(), "a".into()])).contains("a is there twice"));
        assert!(find(By::Pids(vec![7, 7])).contains("pids: 7 is there twice"));
        assert!(find(By::Project(" ".into())).contains("project: it is empty"));
        assert!(find(By::Label("=db".into())).contains("label: it is empty"));
    }

    #[test]
    fn services_are_hosts_by_their_names_in_their_order() {
        let several = vec![told("shop", "cassandra", 10), told("shop", "web", 1), told("shop", "cassandra", 9)];
        assert_eq!(hosts(several, false), ["cassandra-9", "cassandra-10", "web"]);
        let single = vec![told("shop", "node10", 1), told("shop", "node9", 1), told("shop", "a", 1)];
        assert_eq!(hosts(single, false), ["a", "node9", "node10"]);
        let two = vec![told("shop", "db", 1), told("other", "db", 1)];
        assert_eq!(hosts(two, false), ["other-db-1", "shop-db-1"]);
        let bare = vec![Told::named("c10"), Told::named("c9")];
        assert_eq!(hosts(bare, false), ["c9", "c10"]);
    }

    #[test]
    fn who_named_them_has_ordered_them_and_none_is_there_twice() {
        let named = vec![told("shop", "b", 1), told("shop", "a", 1)];
        assert_eq!(hosts(named, true), ["shop-b-1", "shop-a-1"]);
        let same = vec![Told::named("net"), Told::named("x"), Told::named("net")];
        assert_eq!(hosts(same, true), ["net-1", "x", "net-2"]);
    }

    #[test]
    fn the_network_that_most_are_in_comes_first() {
        let attachment = |network: &str| Attachment { network: network.into(), ..Attachment::default() };
        let on = |name: &str, networks: &[&str]| Told {
            networks: networks.iter().map(|name| attachment(name)).collect(),
            ..Told::named(name)
        };
        let all = [on("a", &["admin", "db"]), on("b", &["db"]), on("c", &["db", "front"])];
        assert_eq!(networks(&all), ["db", "admin", "front"]);
    }

    #[test]
    fn links_are_refused_of_those_that_share_a_network() {
        let machine = Machine::look().unwrap();
        let container = |name: &str| {
            let (container, _) = examine(Told { namespace: Some("/x".into()), ..Told::named(name) }, &[], &machine);
            Container { abilities: vec![Ability { what: What::Links, refused: None }], ..container }
        };
        let mut all = [container("a"), container("b"), container("c"), container("d")];
        refuse_shared(&mut all, &[Some((4, 1)), Some((4, 2)), Some((4, 1)), None]);
        let refusals = all.each_ref().map(|container| container.refusal(What::Links));
        assert_eq!(refusals[0], Some("it is in the same network as c; name only one of them"));
        assert_eq!((refusals[1], refusals[3]), (None, None));
        assert!(refusals[2].unwrap().contains("as a;"));
    }

    #[test]
    fn what_was_found_is_told_in_words() {
        let (container, _) =
            examine(Told { engine: "Docker 20.10.24".into(), ..Told::named("a") }, &[], &Machine::look().unwrap());
        let selection = Selection { by: By::Project("shop".into()), socket: None };
        let three = [container.clone(), container.clone(), container];
        assert_eq!(described(&selection, &three), "3 containers of the Compose project shop, Docker 20.10.24");
        assert_eq!(described(&selection, &three[..1]), "1 container of the Compose project shop, Docker 20.10.24");
    }
}
