//! `wrap`: a Compose override that starts the containers of a project with what a clock of their own needs.
//!
//! The loader of each container's programs is told (`LD_PRELOAD`) of the object that shifts clocks (`crates/clock`), which comes
//! with a directory of this machine that is mounted into the container, read-only. The file that says by how much lies beside it.
//! Disks cannot be had in this way: a disk that can be slow is FUSE, served by a process of ours that has to be there before the
//! database opens its files and for as long as it has them open. If it died, the container's files would be gone; so nothing is
//! done about disks, and the override says why.

use std::{
    fs,
    path::{Path, PathBuf},
};

use brownout_clock::{ClockError, HostClock, write_object};
use brownout_lab::byhand::Failure;
use brownout_yaml::{Document, Node};

use crate::output;

/// Where the directory is inside of a container.
const INSIDE: &str = "/brownout";
/// Beside the Compose file, unless told otherwise.
const DIRECTORY: &str = ".brownout";
/// The variables that a program's loader and the preloaded object read.
const PRELOAD: &str = "LD_PRELOAD";
const CLOCK_FILE: &str = "BROWNOUT_CLOCK_FILE";
/// A container that bears this was started with a clock of its own: the file of it, on this machine.
const LABEL: &str = "brownout.clock";

#[derive(clap::Args)]
pub struct Arguments {
    /// The project's Compose file.
    file: PathBuf,
    /// Keep what is mounted into the containers in this directory. Default: .brownout beside the Compose file.
    #[arg(long, value_name = "DIRECTORY")]
    dir: Option<PathBuf>,
    /// Only these services; default: all of the file.
    #[arg(long, value_name = "SERVICE,…", value_delimiter = ',')]
    services: Vec<String>,
}

/// A service of the Compose file, as far as a clock depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Service {
    name: String,
    /// What it preloads already.
    preload: Option<String>,
    /// What a person should know of it.
    notes: Vec<String>,
}

/// Prints the override; what it mounts is made.
pub fn wrap(arguments: &Arguments) -> u8 {
    match made(arguments) {
        Ok(text) => output::code(output::print(&text), 0),
        Err(failure) => {
            output::fail(&failure);
            failure.code
        }
    }
}

fn made(arguments: &Arguments) -> Result<String, Failure> {
    let file = &arguments.file;
    let text = fs::read_to_string(file).map_err(|error| {
        Failure::wrong(format!("{}: cannot be read: {error}; name the project's Compose file", file.display()))
    })?;
    let document = Document::new(file, text).map_err(|error| Failure::wrong(error.to_string()))?;
    let services = chosen(services(&document)?, &arguments.services)?;
    let beside = || file.parent().unwrap_or(Path::new("")).join(DIRECTORY);
    let directory = arguments.dir.clone().unwrap_or_else(beside);
    let failed = |error: &dyn std::fmt::Display| {
        Failure::cannot(format!(
            "cannot make {}, which is mounted into the containers: {error}; choose another directory with --dir",
            directory.display()
        ))
    };
    fs::create_dir_all(&directory).map_err(|error| failed(&error))?;
    // Absolute: an override is read from wherever its reader is.
    let directory = directory.canonicalize().map_err(|error| failed(&error))?;
    let object = write_object(&directory).map_err(|error| failed(&error))?;
    for service in &services {
        match HostClock::create(directory.join(clock_file(&service.name))) {
            // It shows the machine's time, and stays: whoever starts the container finds it. Its last owner would remove it.
            Ok(clock) => std::mem::forget(clock),
            Err(ClockError::Exists { .. }) => {}
            Err(error) => return Err(failed(&error)),
        }
    }
    let object = object.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(overriding(file, &services, &directory, &object))
}

/// All services of a Compose file.
fn services(document: &Document) -> Result<Vec<Service>, Failure> {
    let found = document.tree().as_mapping().and_then(|map| map.get_node("services")).and_then(Node::as_mapping);
    let Some(found) = found else {
        let message = "a Compose file has services:, and this has none; name the project's Compose file";
        return Err(Failure::wrong(format!("{}: {message}", document.file().display())));
    };
    Ok(found.iter().map(|(name, section)| service(name.as_str(), section)).collect())
}

fn service(name: &str, section: &Node) -> Service {
    let text = |keys: &[&str]| {
        let found = keys.iter().try_fold(section, |node, key| node.as_mapping()?.get_node(key));
        found.and_then(Node::as_scalar).map(|scalar| scalar.as_str().to_owned())
    };
    let mut notes = Vec::new();
    if text(&["image"]).is_some_and(|image| image.contains("alpine")) {
        notes.push(
            "its image is Alpine, whose C library (musl) does not load the object: its clock stays right".to_owned(),
        );
    }
    let replicas = text(&["deploy", "replicas"]).or_else(|| text(&["scale"]));
    if replicas.and_then(|count| count.parse::<u32>().ok()).is_some_and(|count| count > 1) {
        notes.push(
            "all of its containers have one clock together; write a service for each that is to have its own"
                .to_owned(),
        );
    }
    if text(&["network_mode"]).is_some_and(|mode| mode == "host" || mode == "none") {
        notes.push("it has no network of its own: its links cannot be impaired".to_owned());
    }
    Service { name: name.to_owned(), preload: preloaded(section), notes }
}

/// The value of `LD_PRELOAD` in `environment:`, which is a mapping or a list of `KEY=VALUE`.
fn preloaded(section: &Node) -> Option<String> {
    match section.as_mapping()?.get_node("environment")? {
        Node::Mapping(map) => map.get_node(PRELOAD)?.as_scalar().map(|value| value.as_str().to_owned()),
        Node::Sequence(list) => list.iter().find_map(|entry| {
            let (key, value) = entry.as_scalar()?.as_str().split_once('=')?;
            (key == PRELOAD).then(|| value.to_owned())
        }),
        Node::Scalar(_) => None,
    }
}

/// Those that were asked for; none named: all.
fn chosen(all: Vec<Service>, named: &[String]) -> Result<Vec<Service>, Failure> {
    if let Some(unknown) = named.iter().find(|name| !all.iter().any(|service| service.name == **name)) {
        let known = all.iter().map(|service| service.name.as_str());
        let known = brownout_yaml::one_of("the services are", known, unknown);
        return Err(Failure::wrong(format!("--services: unknown service '{unknown}'; {known}")));
    }
    Ok(all.into_iter().filter(|service| named.is_empty() || named.contains(&service.name)).collect())
}

fn clock_file(service: &str) -> String {
    format!("{service}.clock")
}

/// A text as YAML takes it whatever it holds; Compose replaces no variable in it.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text.replace('$', "$$")).to_string()
}

fn overriding(file: &Path, services: &[Service], directory: &Path, object: &str) -> String {
    let directory = directory.display().to_string();
    let mut text = format!(
        "# Printed by `brownout wrap {file}`. Start the project with it:\n\
         #   docker compose -f {file} -f THIS-FILE up -d\n\
         # Clocks: programs of these containers read the time through {object}, by the file beside it, which shows the machine's\n\
         # time. `brownout` does not change it yet: if it were killed, nobody would make the clock right again. Never reached:\n\
         # programs that are linked statically or make system calls of their own (Go, so etcd), set-user-ID programs, and\n\
         # images without glibc (Alpine).\n\
         # Disks: not possible. A disk that can be slow is served by a process of this machine; if that ended, the container's\n\
         # files would be gone. Use a lab (`brownout up`) for disk faults.\n\
         services:\n",
        file = file.display(),
    );
    for Service { name, preload, notes } in services {
        notes.iter().for_each(|note| text.push_str(&format!("  # {name}: {note}.\n")));
        let own = format!("{INSIDE}/{object}");
        let preload = preload.iter().filter(|preload| !preload.is_empty());
        let preload = preload.fold(own, |own, before| format!("{own}:{before}"));
        text.push_str(&format!(
            "  {}:\n    environment:\n      {PRELOAD}: {}\n      {CLOCK_FILE}: {}\n    volumes:\n      - type: bind\n        \
             source: {}\n        target: {INSIDE}\n        read_only: true\n    labels:\n      {LABEL}: {}\n",
            quoted(name),
            quoted(&preload),
            quoted(&format!("{INSIDE}/{}", clock_file(name))),
            quoted(&directory),
            quoted(&format!("{directory}/{}", clock_file(name))),
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPOSE: &str = "\
services:
  db-1: { image: \"cassandra:5.0\", environment: [A=1, LD_PRELOAD=/lib/x.so] }
  db-2:
    image: cassandra:5.0-alpine
    network_mode: host
    deploy: { replicas: 3 }
    environment: { LD_PRELOAD: /lib/y.so }
  web: { image: shop }
";

    fn wrapped(compose: &str, words: &[&str]) -> (tempfile::TempDir, Result<String, Failure>) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("docker-compose.yml");
        fs::write(&file, compose).unwrap();
        let services = words.iter().map(|word| (*word).to_owned()).collect();
        let made = made(&Arguments { file, dir: None, services });
        (directory, made)
    }

    #[test]
    fn the_override_is_compose_that_mounts_what_was_made() {
        let (directory, text) = wrapped(COMPOSE, &[]);
        let text = text.unwrap();
        let document = Document::new("override", text.clone()).unwrap();
        let all = services(&document).unwrap();
        let preload = |name: &str| all.iter().find(|service| service.name == name).unwrap().preload.clone().unwrap();
        assert_eq!(preload("db-1"), "/brownout/libbrownout-clock.so:/lib/x.so");
        assert_eq!(preload("db-2"), "/brownout/libbrownout-clock.so:/lib/y.so");
        assert_eq!(preload("web"), "/brownout/libbrownout-clock.so");
        for words in ["db-2: its image is Alpine", "db-2: all of its containers", "db-2: it has no network of its own"]
        {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(!text.contains("web: its image"), "{text}");
        let made = directory.path().canonicalize().unwrap().join(".brownout");
        assert!(text.contains(&format!("source: \"{}\"", made.display())), "{text}");
        for file in ["libbrownout-clock.so", "db-1.clock", "db-2.clock", "web.clock"] {
            assert!(made.join(file).is_file(), "{file}");
        }
    }

    #[test]
    fn printed_again_the_clocks_that_are_there_stay() {
        let (directory, text) = wrapped(COMPOSE, &["web"]);
        let clock = directory.path().join(".brownout/web.clock");
        let before = fs::metadata(&clock).unwrap().modified().unwrap();
        let file = directory.path().join("docker-compose.yml");
        let again = made(&Arguments { file, dir: None, services: vec!["web".to_owned()] }).unwrap();
        assert_eq!(text.unwrap(), again);
        assert_eq!(fs::metadata(&clock).unwrap().modified().unwrap(), before);
        assert!(!directory.path().join(".brownout/db-1.clock").exists(), "only what was asked for");
    }

    #[test]
    fn mistakes_are_told_with_their_remedy() {
        let words = |compose: &str, services: &[&str]| wrapped(compose, services).1.err().unwrap();
        let unknown = words(COMPOSE, &["wev"]);
        assert!(unknown.code == 2 && unknown.message.contains("did you mean 'web'"), "{unknown}");
        assert!(words("version: '3'\n", &[]).message.contains("has services:"));
        assert!(words("services: [", &[]).message.contains("not valid YAML"));
    }
}
