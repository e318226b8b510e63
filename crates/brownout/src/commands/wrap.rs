//! `wrap`: a Compose override that starts the containers of a project with clocks of their own, so that faults can make them
//! wrong.
//!
//! The loader of each container's programs is told (`LD_PRELOAD`) of the object that shifts clocks (`crates/clock`), which comes
//! with a directory of this machine that is mounted into the container, read-only. The file that says by how much lies beside it.
//! `crates/containers` finds it again by what the kernel shows of the container's processes, whoever started it.
//!
//! Disks cannot be had in this way: a disk that can be slow is FUSE, served by a process of ours that has to be there before the
//! database opens its files and for as long as it has them open. If it died, the container's files would be gone; so nothing is
//! done about disks, and the override says why.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use brownout_clock::{ClockError, FILE_VARIABLE, HostClock, write_object};
use brownout_lab::byhand::Failure;
use brownout_yaml::{Document, Node};

use crate::output;

/// Where the directory is inside of a container.
const INSIDE: &str = "/brownout";
/// Beside the Compose file, unless told otherwise.
const DIRECTORY: &str = ".brownout";
/// What a program's loader is told of objects by.
const PRELOAD: &str = "LD_PRELOAD";
/// What images are called by that the object does not reach, and why.
const UNREACHED: [(&str, &str); 3] = [
    ("alpine", "its image is Alpine, whose C library (musl) cannot load the object: its programs would not even start"),
    ("busybox", "its image is BusyBox, whose programs are linked statically"),
    ("etcd", "etcd is a program of Go, which reads its clock past the C library"),
];

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
    /// Why it cannot have a clock of its own; none: it can.
    unreached: Option<&'static str>,
    /// What a person should know of it.
    notes: Vec<&'static str>,
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
    if services.iter().all(|service| service.unreached.is_some()) {
        let why: Vec<String> =
            services.iter().map(|one| format!("{}: {}", one.name, one.unreached.unwrap_or_default())).collect();
        return Err(Failure::cannot(format!(
            "no service of {} can have a clock of its own: {}; use a lab for faults of clocks",
            file.display(),
            why.join("; ")
        )));
    }
    fs::create_dir_all(&directory).map_err(|error| failed(&error))?;
    // Users of the containers read what is in it, whatever the umask says. What else is allowed there stays so.
    let mode = fs::metadata(&directory).map_err(|error| failed(&error))?.permissions().mode() | 0o055;
    fs::set_permissions(&directory, fs::Permissions::from_mode(mode)).map_err(|error| failed(&error))?;
    // Absolute: an override is read from wherever its reader is.
    let directory = directory.canonicalize().map_err(|error| failed(&error))?;
    let object = write_object(&directory).map_err(|error| failed(&error))?;
    for service in services.iter().filter(|service| service.unreached.is_none()) {
        place_clock(&directory.join(clock_file(&service.name))).map_err(|error| failed(&error))?;
    }
    let object = object.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(overriding(file, &services, &directory, &object))
}

/// The file of a clock that shows the machine's time. It stays: whoever starts the container finds it.
fn place_clock(path: &Path) -> Result<(), ClockError> {
    match HostClock::create(path) {
        // Its last owner would remove it.
        Ok(clock) => std::mem::forget(clock),
        // Containers that run read this very file. Whatever was left wrong in it goes with its owner.
        Err(ClockError::Exists { .. }) => match HostClock::adopt(path) {
            Ok(_) | Err(ClockError::Held { .. }) => {}
            Err(error) => return Err(error),
        },
        Err(error) => return Err(error),
    }
    Ok(())
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
    let image = text(&["image"]).unwrap_or_default();
    let unreached = UNREACHED.iter().find(|(called, _)| image.contains(called)).map(|(_, why)| *why);
    let mut notes = Vec::new();
    let replicas = text(&["deploy", "replicas"]).or_else(|| text(&["scale"]));
    if replicas.and_then(|count| count.parse::<u32>().ok()).is_some_and(|count| count > 1) {
        notes.push("its containers would have one clock together, and so none can be wrong; write a service for each");
    }
    if text(&["network_mode"]).is_some_and(|mode| mode == "host" || mode == "none") {
        notes.push("it has no network of its own: its links cannot be impaired");
    }
    Service { name: name.to_owned(), preload: preloaded(section), unreached, notes }
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
         # Clocks: programs of these containers read the time through {object}, by the file beside it, which shows the\n\
         # machine's time until a fault changes it, and again when that is healed, or whoever made it was killed. Never\n\
         # reached: programs that are linked statically or make system calls of their own (Go), and set-user-ID programs.\n\
         # An image with a much older C library than this machine's does not start with it: leave it out (--services).\n\
         # Disks: not possible. A disk that can be slow is served by a process of this machine; if that ended, the container's\n\
         # files would be gone. Use a lab (`brownout up`) for disk faults.\n\
         services:\n",
        file = file.display(),
    );
    for Service { name, preload, unreached, notes } in services {
        notes.iter().for_each(|note| text.push_str(&format!("  # {name}: {note}.\n")));
        if let Some(why) = unreached {
            text.push_str(&format!("  # {name} is left as it is: {why}.\n"));
            continue;
        }
        let own = format!("{INSIDE}/{object}");
        let preload = preload.iter().filter(|preload| !preload.is_empty());
        let preload = preload.fold(own, |own, before| format!("{own}:{before}"));
        text.push_str(&format!(
            "  {}:\n    environment:\n      {PRELOAD}: {}\n      {FILE_VARIABLE}: {}\n    volumes:\n      - type: bind\n        \
             source: {}\n        target: {INSIDE}\n        read_only: true\n",
            quoted(name),
            quoted(&preload),
            quoted(&format!("{INSIDE}/{}", clock_file(name))),
            quoted(&directory),
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    const COMPOSE: &str = "\
services:
  db-1: { image: \"cassandra:5.0\", environment: [A=1, LD_PRELOAD=/lib/x.so] }
  db-2: { image: cassandra:5.0-alpine }
  web:
    image: shop
    network_mode: host
    deploy: { replicas: 3 }
    environment: { LD_PRELOAD: /lib/y.so }
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
        let preload = |name: &str| all.iter().find(|service| service.name == name)?.preload.clone();
        assert_eq!(preload("db-1").as_deref(), Some("/brownout/libbrownout-clock.so:/lib/x.so"));
        assert_eq!(preload("web").as_deref(), Some("/brownout/libbrownout-clock.so:/lib/y.so"));
        assert_eq!(preload("db-2"), None);
        for words in [
            "db-2 is left as it is: its image is Alpine",
            "web: its containers would have one clock",
            "web: it has no network of its own",
            "BROWNOUT_CLOCK_FILE: \"/brownout/db-1.clock\"",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        let made = directory.path().canonicalize().unwrap().join(".brownout");
        assert!(text.contains(&format!("source: \"{}\"", made.display())), "{text}");
        for (file, is_made) in
            [("libbrownout-clock.so", true), ("db-1.clock", true), ("db-2.clock", false), ("web.clock", true)]
        {
            assert_eq!(made.join(file).is_file(), is_made, "{file}");
        }
        assert_eq!(fs::metadata(&made).unwrap().permissions().mode() & 0o055, 0o055);
    }

    #[test]
    fn printed_again_the_clocks_that_are_there_stay_and_are_right() {
        let (directory, text) = wrapped(COMPOSE, &["web"]);
        let clock = directory.path().join(".brownout/web.clock");
        let before = fs::metadata(&clock).unwrap().ino();
        let file = directory.path().join("docker-compose.yml");
        let again = || made(&Arguments { file: file.clone(), dir: None, services: vec!["web".to_owned()] });
        assert_eq!(text.unwrap(), again().unwrap());
        assert_eq!(fs::metadata(&clock).unwrap().ino(), before, "containers that run read this one");
        assert!(!directory.path().join(".brownout/db-1.clock").exists(), "only what was asked for");
        // In mid-fault: it stays as it is.
        let held = HostClock::adopt(&clock).unwrap();
        held.shift(5_000_000_000, 0).unwrap();
        again().unwrap();
        assert!(held.skew().offset_ns > 4_000_000_000);
    }

    #[test]
    fn a_project_that_no_clock_reaches_is_told_so() {
        let (_directory, refused) = wrapped("services:\n  kv: { image: \"quay.io/coreos/etcd:v3.6.1\" }\n", &[]);
        let refused = refused.err().unwrap();
        assert!(refused.message.contains("kv: etcd is a program of Go"), "{refused}");
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
