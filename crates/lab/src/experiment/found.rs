//! Containers as they were found: once, when the experiment file is read, and kept with it as text, so that a plan follows from
//! what is written alone, and a run that goes on is on the same ones.

use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
};

use brownout_containers::{By, Container, Runtime, Selection, What, described};
use brownout_network::{Way, attach_way};
use serde::{Deserialize, Serialize};

use crate::hosts::Hosts;

/// What the names of such texts begin with, among those of files; no path does.
pub(super) const KEPT_AS: &str = "ground: ";
/// Nobody listens there (RFC 863), and nothing is sent: only the way to it is asked for.
const DISCARD: u16 = 9;

/// The containers of a selection.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ContainersFound {
    /// How they were chosen.
    pub selection: Selection,
    /// All of them, in the order in which they are nodes: n1, n2, …
    pub containers: Vec<Container>,
    /// The addresses of this machine from which it speaks to them, by which they know it.
    pub machine: Vec<IpAddr>,
    /// In which way what they send can be diverted here; none where that could not be tried, as without root.
    #[serde(default, with = "way")]
    pub way: Option<Way>,
    /// Which of several machines this one is; none: all of them are here.
    #[serde(skip)]
    pub here: Option<String>,
}

/// A way by its name.
mod way {
    use brownout_network::Way;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    #[expect(clippy::ref_option, reason = "serde passes it so")]
    pub(super) fn serialize<S: Serializer>(way: &Option<Way>, serializer: S) -> Result<S::Ok, S::Error> {
        way.map(Way::name).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Way>, D::Error> {
        let name = Option::<String>::deserialize(deserializer)?;
        let known = |name: String| Way::of_name(&name).ok_or_else(|| D::Error::custom(format!("{name} is no way")));
        name.map(known).transpose()
    }
}

impl ContainersFound {
    /// Asks the runtime, or the kernel, who is there.
    ///
    /// # Errors
    /// Nobody answers, or nobody is there; in words.
    pub fn find(selection: &Selection) -> Result<ContainersFound, String> {
        let containers = brownout_containers::find(selection).map_err(|error| error.to_string())?;
        if containers.is_empty() {
            return Err(format!(
                "there are no containers {}; `brownout ground` lists those that run, start them or choose others",
                selection.by.words()
            ));
        }
        let mut machine: Vec<IpAddr> = Vec::new();
        for address in containers.iter().flat_map(|container| &container.addresses) {
            machine.extend(own_address(*address).filter(|own| !machine.contains(own)));
        }
        Ok(ContainersFound { selection: selection.clone(), containers, machine, way: attach_way().ok(), here: None })
    }

    /// The same again, as they are now: a container that was started again has other processes.
    ///
    /// # Errors
    /// As of [`ContainersFound::find`]; and when others are there now.
    pub fn again(&self) -> Result<ContainersFound, String> {
        let now = match &self.here {
            Some(_) => self.looked_at_again()?,
            None => ContainersFound::find(&self.selection)?,
        };
        match self.differences(&now).as_slice() {
            [] => Ok(now),
            all => Err(format!("{}; begin a new run with those that are there now", all.join("; "))),
        }
    }

    /// Those that are here as they are now, the others as they were.
    fn looked_at_again(&self) -> Result<ContainersFound, String> {
        let again = |container: &Container| match self.is_here(container) {
            true => container.again().map_err(|error| error.to_string()),
            false => Ok(container.clone()),
        };
        let containers = self.containers.iter().map(again).collect::<Result<_, String>>()?;
        Ok(ContainersFound { containers, ..self.clone() })
    }

    /// The same as they are to one of the machines that they are on.
    #[must_use]
    pub fn on(mut self, machine: &str) -> ContainersFound {
        self.here = Some(machine.to_owned());
        self.machine =
            self.here().flat_map(|container| &container.addresses).filter_map(|one| own_address(*one)).collect();
        self.machine.sort_unstable();
        self.machine.dedup();
        self
    }

    /// Whether a container is on this machine: it can be entered, and what it sends is carried here.
    pub fn is_here(&self, container: &Container) -> bool {
        self.here.is_none() || container.machine == self.here
    }

    /// Those that are on this machine, in order.
    pub fn here(&self) -> impl Iterator<Item = &Container> {
        self.containers.iter().filter(|container| self.is_here(container))
    }

    /// In what others are not the same containers at the same addresses, in words; empty if they are.
    pub fn differences(&self, now: &ContainersFound) -> Vec<String> {
        let moved =
            |before: &Container| Some(format!("{} {}", before.name, moved(before, now.container(&before.name)?)?));
        self.others(now).into_iter().chain(self.containers.iter().filter_map(moved)).collect()
    }

    /// In what others are not the same containers, in words; empty if they are, wherever they are now.
    pub fn others(&self, now: &ContainersFound) -> Vec<String> {
        let mut told = Vec::new();
        for before in &self.containers {
            let name = &before.name;
            match now.container(name) {
                None => told.push(format!("{name} is not there any more")),
                Some(now) if !now.is_same(before) => {
                    let (before, now) = (short(&before.id), short(&now.id));
                    told.push(format!("{name} is another container: it was {before} and is {now}"));
                }
                // Nobody starts a process again: what has its number now is another one.
                Some(now) if now.runtime == Runtime::None && now.started != before.started => {
                    told.push(format!("{name} is another process of the same number"));
                }
                Some(_) => {}
            }
        }
        let new = now.containers.iter().filter(|now| self.container(&now.name).is_none());
        told.extend(new.map(|now| format!("{} was not there", now.name)));
        if let (Some(before), Some(now)) = (self.way, now.way)
            && before != now
        {
            told.push(format!("their packets were {before}, and can now be {now}"));
        }
        told
    }

    /// Which of the same containers are somewhere else now, or were made anew, in words.
    pub fn moves(&self, now: &ContainersFound) -> Vec<String> {
        let told = |before: &Container| {
            let now = now.container(&before.name)?;
            let machine = |one: &Container| one.machine.clone().unwrap_or_default();
            let moved = match moved(before, now) {
                _ if machine(before) != machine(now) => {
                    format!("was on {} and is on {}", machine(before), machine(now))
                }
                Some(moved) => moved,
                None if before.id != now.id => "was made anew".to_owned(),
                None => return None,
            };
            Some(format!("{} {moved}", before.name))
        };
        self.containers.iter().filter_map(told).collect()
    }

    /// By name.
    pub fn container(&self, name: &str) -> Option<&Container> {
        self.containers.iter().find(|container| container.name == name)
    }

    /// Those of these names alone.
    #[must_use]
    pub(crate) fn of(mut self, names: &[String]) -> ContainersFound {
        self.containers.retain(|container| names.contains(&container.name));
        self.selection.by = By::Names(self.names());
        self
    }

    /// Their names, in order.
    pub fn names(&self) -> Vec<String> {
        self.containers.iter().map(|container| container.name.clone()).collect()
    }

    /// Where each of them is reached, in order.
    pub fn addresses(&self) -> Vec<Ipv4Addr> {
        self.containers.iter().filter_map(|container| first_ipv4(&container.addresses)).collect()
    }

    /// This machine's address, as they know it.
    pub fn machine_address(&self) -> Option<Ipv4Addr> {
        first_ipv4(&self.machine)
    }

    /// The first that cannot be a host of an experiment, and why.
    pub(super) fn unusable(&self) -> Option<(String, String)> {
        let (mut names, mut addresses) = (BTreeSet::new(), BTreeSet::new());
        for container in &self.containers {
            let name = &container.name;
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            let why = if name == Hosts::LOAD {
                "has the name of the host that stands for this machine; rename it, or leave it out".to_owned()
            } else if name.is_empty() || !name.chars().all(plain) {
                "has a name that no host can have; use letters, digits, '-', '_' and '.'".to_owned()
            } else if !names.insert(name) {
                "is there twice; choose the containers so that each has a name of its own".to_owned()
            } else if !container.is_running() {
                "does not run; start it, or leave it out".to_owned()
            } else if let Some(why) = container.refusal(What::Links) {
                format!("cannot be attached: {why}")
            } else {
                match first_ipv4(&container.addresses) {
                    None => "has no IPv4 address, by which nodes are asked; give it a network with one".to_owned(),
                    Some(address) if !addresses.insert(address) => {
                        format!("has the address {address} of another one, whose network it shares; name one of them")
                    }
                    Some(_) => continue,
                }
            };
            return Some((name.clone(), why));
        }
        let first = self.containers.first()?;
        self.machine_address().is_none().then(|| {
            let why = "cannot be reached from this machine, and the load runs here: there is no way to its addresses; give \
                       it a network of this machine, as a bridge is";
            (first.name.clone(), why.to_owned())
        })
    }

    /// "3 containers of the Compose project shop, Docker 20.10.24, packets forwarded by nf_tables where they leave".
    pub fn words(&self) -> String {
        let way = self.way.map(|way| format!(", packets {way}")).unwrap_or_default();
        described(&self.selection, &self.containers) + &way
    }
}

/// By which name a selection's containers are kept among the files of an experiment.
pub(super) fn name_of(selection: &Selection) -> String {
    let socket = selection.socket.as_ref().map(|socket| format!(" by {}", socket.display())).unwrap_or_default();
    format!("{KEPT_AS}containers {}{socket}", selection.by.words())
}

/// The first IPv4 address of some.
fn first_ipv4(addresses: &[IpAddr]) -> Option<Ipv4Addr> {
    addresses.iter().find_map(|address| match address {
        IpAddr::V4(address) => Some(*address),
        IpAddr::V6(_) => None,
    })
}

/// From which address this machine would speak to another; nothing is sent.
fn own_address(to: IpAddr) -> Option<IpAddr> {
    let any: IpAddr = match to {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(SocketAddr::new(to, DISCARD)).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// In what the addresses of a container are others than before, as the end of a sentence; none: they are the same.
pub(crate) fn moved(before: &Container, now: &Container) -> Option<String> {
    let (was, is) = (&before.addresses, &now.addresses);
    (!same(was, is)).then(|| format!("had the address {} and has {}", words_of(was), words_of(is)))
}

/// Whether both have the same addresses, in whatever order.
fn same(some: &[IpAddr], others: &[IpAddr]) -> bool {
    let set = |all: &[IpAddr]| all.iter().copied().collect::<BTreeSet<_>>();
    set(some) == set(others)
}

fn words_of(addresses: &[IpAddr]) -> String {
    let words: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}

/// As much of an identifier as people are shown.
fn short(id: &str) -> &str {
    id.get(..12).unwrap_or(id)
}
