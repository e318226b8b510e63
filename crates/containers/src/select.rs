//! The containers that are meant: in which order and by which names they are hosts.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use brownout_base::natural;

use crate::{
    ability::What,
    container::{Container, examine},
    error::ContainersError,
    machine::{Machine, NamespaceId},
    runtime::{self, Told, bare},
    selection::{By, Selection},
};

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
        if container.refusal(What::Links).is_none() && !others.is_empty() {
            let reason = format!("it is in the same network as {}; name only one of them", others.join(" and "));
            container.refuse(What::Links, reason);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ability::Ability, runtime::Attachment};

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
