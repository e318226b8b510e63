//! `ground`: which containers there are to work on, and what can be done to each.

use std::net::IpAddr;

use brownout_containers::{Ability, Container, Runtime, Selection, What};
use brownout_lab::{byhand::Failure, experiment::Source};
use brownout_network::{NetworkError, Way, attach_way};
use serde::Serialize;

use super::{byhand, selection::SelectionArguments};
use crate::output;

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    selection: SelectionArguments,
    /// Print the containers as one JSON object (docs/json.md).
    #[arg(long)]
    json: bool,
}

/// For `--json`.
#[derive(Serialize)]
struct Listed {
    format: u32,
    hosts: Vec<ListedHost>,
    attaching: Attaching,
}

/// How links come to the emulator on this machine.
#[derive(Serialize)]
struct Attaching {
    /// The name of the way; none: there is none.
    way: Option<&'static str>,
    /// What it cannot do, each as the end of a sentence; or why there is none.
    cannot: Vec<String>,
}

impl From<Result<Way, NetworkError>> for Attaching {
    fn from(tried: Result<Way, NetworkError>) -> Self {
        match tried {
            Ok(way) => {
                Attaching { way: Some(way.name()), cannot: way.limits().into_iter().map(str::to_owned).collect() }
            }
            Err(error) => Attaching { way: None, cannot: vec![error.to_string()] },
        }
    }
}

impl Attaching {
    fn words(&self) -> String {
        let cannot = self.cannot.join("; ");
        match self.way.and_then(Way::of_name) {
            Some(way) if cannot.is_empty() => format!("attached, their packets are {way}\n"),
            Some(way) => format!("attached, their packets are {way}; a network so {cannot}\n"),
            None => format!("links of none: nothing can be attached to here: {cannot}\n"),
        }
    }
}

#[derive(Serialize)]
struct ListedHost {
    /// Its name in experiment files and by hand.
    name: String,
    /// The short form of that.
    alias: String,
    id: String,
    runtime: &'static str,
    /// Who runs it, with the version.
    engine: String,
    image: String,
    pid: Option<u32>,
    started: String,
    addresses: Vec<IpAddr>,
    interface: String,
    can: Vec<&'static str>,
    cannot: Vec<Refused>,
}

#[derive(Serialize)]
struct Refused {
    what: &'static str,
    why: String,
}

/// Exits with 0 if the containers were found, whatever can be done to them.
pub fn ground(arguments: &Arguments) -> u8 {
    let shown = selected(&arguments.selection).and_then(|selection| {
        let containers = brownout_containers::find(&selection).map_err(byhand::not_found)?;
        let hosts: Vec<ListedHost> = containers.iter().enumerate().map(listed).collect();
        Ok(Listed { format: 1, hosts, attaching: attach_way().into() })
    });
    match shown {
        Ok(listed) if arguments.json => output::code(output::print_json(&listed), 0),
        Ok(listed) => output::code(output::print(&(text(&listed.hosts) + &listed.attaching.words())), 0),
        Err(failure) => {
            output::fail(&failure);
            failure.code
        }
    }
}

/// Which containers are meant: as typed, or as a file says.
fn selected(arguments: &SelectionArguments) -> Result<Selection, Failure> {
    let Some(file) = arguments.file()? else { return arguments.selection()?.ok_or_else(nothing_named) };
    let source = Source::read(&file)?;
    source.selection()?.ok_or_else(|| {
        let message = "it selects no containers; write ground: { containers: { project: NAME } }".to_owned();
        source.complain("ground", message).into()
    })
}

/// Who could be named, as far as that is known.
fn nothing_named() -> Failure {
    let answering: Vec<String> = brownout_containers::answering()
        .into_iter()
        .filter_map(|one| Some(format!("{} at {}", one.version.ok()?, one.socket.display())))
        .collect();
    let who = match answering.is_empty() {
        true => {
            "no container runtime answers at the sockets where one usually listens (--socket names another)".to_owned()
        }
        false => format!("there is {}", answering.join(" and ")),
    };
    Failure::wrong(format!(
        "which containers? Name them (brownout ground NAME…), or write --project PROJECT (Docker Compose), --label KEY=VALUE, \
         --pids PID,… or --netns PATH,…; {who}"
    ))
}

fn listed((index, container): (usize, &Container)) -> ListedHost {
    let refusal = |ability: &Ability| Some(Refused { what: word(&ability.what), why: ability.refused.clone()? });
    let can = container.abilities.iter().filter(|ability| ability.refused.is_none());
    ListedHost {
        name: container.name.clone(),
        alias: format!("n{}", index + 1),
        id: container.id.clone(),
        runtime: runtime(&container.runtime),
        engine: container.engine.clone(),
        image: container.image.clone(),
        pid: container.pid,
        started: container.started.clone(),
        addresses: container.addresses.clone(),
        interface: container.interface.clone(),
        can: can.map(|ability| word(&ability.what)).collect(),
        cannot: container.abilities.iter().filter_map(refusal).collect(),
    }
}

/// As the faults that need it are called.
fn word(what: &What) -> &'static str {
    match what {
        What::Links => "links",
        What::Pause => "pause",
        What::Kill => "kill",
        What::Restart => "restart",
        What::Cpu => "cpu",
        What::Disk => "disk",
        What::Clock => "clock",
    }
}

fn runtime(runtime: &Runtime) -> &'static str {
    match runtime {
        Runtime::Docker => "docker",
        Runtime::Podman => "podman",
        Runtime::Containerd => "containerd",
        Runtime::None => "none",
    }
}

fn text(hosts: &[ListedHost]) -> String {
    let head = ["HOST", "ALIAS", "ID", "RUNTIME", "ADDRESSES", "CAN", "CANNOT"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(hosts.iter().map(|host| {
        let addresses: Vec<String> = host.addresses.iter().map(IpAddr::to_string).collect();
        let cannot: Vec<&str> = host.cannot.iter().map(|refused| refused.what).collect();
        vec![
            host.name.clone(),
            host.alias.clone(),
            short(&host.id).to_owned(),
            host.engine.clone(),
            addresses.join(", "),
            host.can.join(" "),
            cannot.join(" "),
        ]
    }));
    let mut text = byhand::columns(&rows);
    for (what, why, whose) in reasons(hosts) {
        let of = if whose.len() == hosts.len() && whose.len() > 1 { "all".to_owned() } else { whose.join(", ") };
        text.push_str(&format!("{what} of {of}: {why}\n"));
    }
    text
}

/// As much of a runtime's identifier as runtimes show; what is none is shown as it is.
fn short(id: &str) -> &str {
    let is_hash = id.len() >= 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hash { &id[..12] } else { id }
}

/// Why something cannot be done, each reason once, with the hosts that it is of.
fn reasons(hosts: &[ListedHost]) -> Vec<(&'static str, &str, Vec<&str>)> {
    let mut all: Vec<(&'static str, &str, Vec<&str>)> = Vec::new();
    for host in hosts {
        for Refused { what, why } in &host.cannot {
            match all.iter_mut().find(|(known, reason, _)| known == what && reason == why) {
                Some((_, _, whose)) => whose.push(&host.name),
                None => all.push((*what, why.as_str(), vec![host.name.as_str()])),
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, cannot: &[(&'static str, &str)]) -> ListedHost {
        ListedHost {
            name: name.to_owned(),
            alias: "n1".to_owned(),
            id: "0123456789abcdef".repeat(4),
            runtime: "docker",
            engine: "Docker 20.10.24".to_owned(),
            image: "cassandra:5.0".to_owned(),
            pid: Some(7),
            started: String::new(),
            addresses: vec![[172, 18, 0, 2].into()],
            interface: "eth0".to_owned(),
            can: vec!["links", "pause"],
            cannot: cannot.iter().map(|(what, why)| Refused { what, why: (*why).to_owned() }).collect(),
        }
    }

    #[test]
    fn what_cannot_be_done_is_told_once_with_its_reason() {
        let hosts = [
            host("a-1", &[("disk", "it lies on the machine's disk"), ("links", "it is in the machine's own network")]),
            host("a-2", &[("disk", "it lies on the machine's disk")]),
        ];
        let text = text(&hosts);
        let has = |words: &str| assert!(text.contains(words), "{text}");
        has("a-1   n1     0123456789ab  Docker 20.10.24  172.18.0.2  links pause  disk links\n");
        has("\ndisk of all: it lies on the machine's disk\n");
        has("\nlinks of a-1: it is in the machine's own network\n");
        assert_eq!(text.lines().count(), 5, "{text}");
    }

    #[test]
    fn what_the_way_to_attach_cannot_do_is_told() {
        let words = |way: Way| Attaching::from(Ok(way)).words();
        assert_eq!(words(Way::Forward), "attached, their packets are forwarded by nf_tables where they leave\n");
        let queued = words(Way::Queue);
        assert!(queued.contains("cannot duplicate packets") && queued.contains("a smaller MTU"), "{queued}");
        assert!(words(Way::Route).contains("a network so cannot hold what comes from outside"));
        let none = Attaching::from(Err(NetworkError::EmulatorGone));
        assert!(none.way.is_none() && none.words().contains("nothing can be attached to here"));
    }

    #[test]
    fn who_names_nobody_is_told_how_to() {
        let failure = nothing_named();
        assert!(failure.code == 2 && failure.message.contains("--project"), "{failure}");
    }
}
