//! `attach`: from containers that run already to a lab by hand on them.

use std::{
    net::{Ipv4Addr, SocketAddr, TcpStream},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use brownout_cluster::{DatabaseKind, cache};
use brownout_containers::{By, Selection};
use serde_json::{Value, json};

use super::{
    Failure,
    begin::{Unborn, now_unix_ms},
    lab_file::{GROUND, LabFile},
    registry::LabRegistry,
};
use crate::{
    LabError,
    experiment::{ContainersFound, Source},
    ground::{Interrupts, Privilege},
    machine,
    progress::Progress,
    provided::Found,
    request::{AttachedLab, LabRequest},
};

/// A database that listens takes a connection by then.
const LISTENS_WITHIN: Duration = Duration::from_secs(1);
/// The lab's name where nothing else says one.
const NAME: &str = "attached";
/// Complaints about what was typed name this in the place of a file.
const FILE: &str = "attach";
/// Any etcd that there is: which one, its nodes say.
const ETCD: &str = "3";

/// Which containers a lab is attached to.
#[derive(Debug, Clone)]
pub enum Ground {
    /// Those that were named.
    Named(Selection),
    /// Those that a file selects (`ground:`): a lab file, or an experiment file.
    File(PathBuf),
}

/// What is asked of [`attach()`].
#[derive(Debug, Clone)]
pub struct Attach {
    /// Which containers.
    pub ground: Ground,
    /// The lab's name. Default: the file's, or the Compose project's, or "attached".
    pub name: Option<String>,
    /// The command line, for the event log.
    pub who: String,
}

/// Attaches a lab to containers, and returns its name when it is ready; whatever goes wrong, nothing is left.
///
/// # Errors
/// When this user may not, a container is not there or cannot be a host, or its traffic cannot be diverted.
pub fn attach(asked: &Attach, interrupts: Interrupts, progress: &mut dyn Progress) -> Result<String, Failure> {
    if Privilege::current() != Privilege::Root {
        return Err(Failure::cannot(
            "the networks of containers are entered and diverted, for which this user lacks the rights (CAP_SYS_ADMIN, \
             CAP_NET_ADMIN); run it as root: sudo brownout attach …",
        ));
    }
    let registry = LabRegistry::mine()?;
    let name = asked.name.clone().unwrap_or_else(|| name_for(&asked.ground, &registry));
    // A name that cannot be is told before anybody is asked.
    registry.lab(&name)?;
    progress.step("asking which containers run");
    let written = match &asked.ground {
        Ground::Named(selection) => Written::typed(selection)?,
        Ground::File(file) => Written::in_file(file)?,
    };
    let Written { file, text, source, lab, found, is_asked } = &written;
    if !lab.ignored.is_empty() {
        progress.note(&format!("not used in a lab by hand: {}", lab.ignored.join(", ")));
    }
    let section = &lab.layout.cluster;
    let (software, has_database) = match is_asked.then(|| Found::find(&[section], file, interrupts, progress)) {
        Some(Ok(software)) => (software, true),
        Some(Err(LabError::Interrupted)) => return Err(LabError::Interrupted.into()),
        Some(Err(error)) => {
            let kind = section.kind();
            progress.note(&format!(
                "their links and processes can be worked on, but they are not asked as {kind}: {error}"
            ));
            (Found::in_containers(section, file)?, false)
        }
        None => (Found::in_containers(section, file)?, false),
    };
    let cache = cache::directory().map_err(|error| Failure::cannot(error.to_string()))?;
    machine::refuse_if_lacking(&lab.layout, &cache)?;
    let claim = registry.claim(&name)?;
    // Its nodes keep nothing with it: a few small files beside its socket are all that it has.
    let base = claim.directory.path().to_owned();
    let mut unborn = Unborn::new(&registry, claim);
    let born = unborn.born(&base, |work, birth, lock, listener| {
        let provided = software.in_directory(work);
        let system = match has_database {
            true => format!("{}, {}", provided.database_of(section), found.words()),
            false => found.words(),
        };
        LabRequest {
            name: name.clone(),
            registry: registry.root().to_owned(),
            provided,
            file: file.clone(),
            text: text.clone(),
            set: Vec::new(),
            attached: Some(AttachedLab { system, has_database }),
            files: source.attached(),
            no_disk: Some("its nodes are containers, whose files lie on disks of their own".to_owned()),
            started_unix_ms: now_unix_ms(),
            who: asked.who.clone(),
            lock,
            listener,
            birth,
        }
    })?;
    born.wait(interrupts, progress)?;
    Ok(name)
}

/// What was asked, as a lab file on these containers.
struct Written {
    file: PathBuf,
    text: String,
    source: Source,
    lab: LabFile,
    found: ContainersFound,
    /// All of them take connections as the database that it says they run.
    is_asked: bool,
}

impl Written {
    /// What was typed. They run what they listen for.
    fn typed(selection: &Selection) -> Result<Written, Failure> {
        let found = ContainersFound::find(selection).map_err(Failure::wrong)?;
        let of = |kind: Option<DatabaseKind>| -> Result<Written, Failure> {
            Written::of(Source::from_text(Path::new(FILE), text_of(selection, kind))?.with_containers(&found))
        };
        // Of those that cannot be hosts this tells before they are connected to.
        let written = of(None)?;
        let kind = DatabaseKind::ALL.into_iter().find(|kind| listen(&found.addresses(), *kind));
        let written = if kind == Some(DatabaseKind::Etcd) { of(kind)? } else { written };
        Ok(Written { is_asked: kind.is_some(), ..written })
    }

    /// What a file says. They run what it says, if they listen for that.
    fn in_file(file: &Path) -> Result<Written, Failure> {
        let written = Written::of(Source::read(file)?)?;
        Ok(Written { is_asked: listen(&written.found.addresses(), written.lab.layout.kind()), ..written })
    }

    /// Nobody has looked yet whether they listen.
    fn of(source: Source) -> Result<Written, Failure> {
        let lab = LabFile::of(source.clone(), &[])?;
        let Some(found) = lab.layout.containers.clone() else {
            let message = "it names no containers; write ground: { containers: { project: NAME } }, or, for a lab of its own, type \
                           brownout up FILE";
            return Err(source.complain(GROUND, message.to_owned()).into());
        };
        let (file, text) = (source.file().to_owned(), source.text().to_owned());
        Ok(Written { file, text, source, lab, found, is_asked: false })
    }
}

/// A selection as `ground:` of a file. JSON is YAML, whatever the names hold.
fn text_of(selection: &Selection, kind: Option<DatabaseKind>) -> String {
    let (key, value) = match &selection.by {
        By::Project(project) => ("project", json!(project)),
        By::Names(names) => ("names", json!(names)),
        By::Label(label) => ("label", json!(label)),
        By::Pids(pids) => ("pids", json!(pids)),
        By::Namespaces(paths) => {
            ("netns", paths.iter().map(|path| Value::from(path.display().to_string())).collect::<Value>())
        }
    };
    let mut containers = json!({ key: value });
    if let Some(socket) = &selection.socket {
        containers["socket"] = socket.display().to_string().into();
    }
    let mut file = json!({ "ground": { "containers": containers } });
    if kind == Some(DatabaseKind::Etcd) {
        file["cluster"] = json!({ "etcd": ETCD });
    }
    file.to_string()
}

/// The file's name or the project's, where that can be a lab's.
fn name_for(ground: &Ground, registry: &LabRegistry) -> String {
    let name = match ground {
        Ground::File(file) => file.file_stem().map(|stem| stem.to_string_lossy().into_owned()),
        Ground::Named(Selection { by: By::Project(project), .. }) => Some(project.clone()),
        Ground::Named(_) => None,
    };
    name.filter(|name| registry.lab(name).is_ok()).unwrap_or_else(|| NAME.to_owned())
}

/// Whether all of them take connections where nodes of this database do.
fn listen(nodes: &[Ipv4Addr], kind: DatabaseKind) -> bool {
    let port = kind.client_port();
    thread::scope(|scope| {
        let connect = |node: &Ipv4Addr| {
            let address = SocketAddr::from((*node, port));
            scope.spawn(move || TcpStream::connect_timeout(&address, LISTENS_WITHIN).is_ok())
        };
        // All at once: one that is filtered answers nothing.
        let threads: Vec<_> = nodes.iter().map(connect).collect();
        threads.into_iter().all(|thread| thread.join().unwrap_or(false))
    })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::experiment::ContainersSection;

    #[test]
    fn what_is_selected_is_the_same_when_it_is_read_again() {
        let path = || PathBuf::from("/run/netns/a: b");
        for (by, socket) in [
            (By::Project("shop".to_owned()), None),
            (
                By::Names(vec!["db-1".to_owned(), "8091f84306d0".to_owned()]),
                Some(PathBuf::from("/run/podman/podman.sock")),
            ),
            (By::Label("app=\"db\"".to_owned()), None),
            (By::Pids(vec![17, 4711]), None),
            (By::Namespaces(vec![path()]), None),
        ] {
            let selection = Selection { by, socket };
            let text = text_of(&selection, Some(DatabaseKind::Etcd));
            let source = Source::from_text(Path::new(FILE), text.clone()).unwrap();
            assert_eq!(source.sections(), ["ground", "cluster"], "{text}");
            // As JSON it is what it is as YAML.
            let read: Value = serde_json::from_str(&text).unwrap();
            let mut section = read["ground"]["containers"].clone();
            if let Some(pids) = section.get_mut("pids") {
                *pids = json!(["17", "4711"]);
            }
            let section: ContainersSection = serde_json::from_value(section).unwrap();
            let again = section.selection().unwrap_or_else(|complaint| panic!("{text}: {complaint}"));
            assert_eq!(format!("{again:?}"), format!("{selection:?}"), "{text}");
        }
        assert!(!text_of(&Selection { by: By::Pids(vec![1]), socket: None }, None).contains("cluster"));
    }

    #[test]
    fn a_database_is_what_all_of_them_listen_for() {
        let nodes = [Ipv4Addr::new(127, 93, 0, 1), Ipv4Addr::new(127, 93, 0, 2)];
        let bind = |node: usize, kind: DatabaseKind| TcpListener::bind((nodes[node], kind.client_port()));
        let bound = [(0, DatabaseKind::Cassandra), (0, DatabaseKind::Etcd), (1, DatabaseKind::Etcd)];
        let bound: Result<Vec<TcpListener>, _> = bound.into_iter().map(|(node, kind)| bind(node, kind)).collect();
        // Where something of this machine listens at all addresses, nothing can be told.
        let Ok(mut bound) = bound else { return };
        assert!(listen(&nodes, DatabaseKind::Etcd) && !listen(&nodes, DatabaseKind::Cassandra));
        assert!(listen(&nodes[..1], DatabaseKind::Cassandra));
        bound.pop();
        assert!(!listen(&nodes, DatabaseKind::Etcd), "one of them does not");
    }

    #[test]
    fn a_file_that_names_no_containers_is_refused_with_what_to_write() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("lab.yaml");
        std::fs::write(&file, "cluster: { nodes: 3 }\n").unwrap();
        let failure = Written::in_file(&file).err().unwrap();
        assert!(failure.code == 2 && failure.message.contains("it names no containers; write ground:"), "{failure}");
        std::fs::write(&file, "ground: { containers: { pids: [4194305] } }\ncluster: { etcd: '3' }\n").unwrap();
        let failure = Written::in_file(&file).err().unwrap();
        assert!(failure.message.contains("lab.yaml:1:") && failure.message.contains("4194305"), "{failure}");
    }
}
