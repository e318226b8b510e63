//! What clusters run, as it is found on the machine: Cassandra with a Java, etcd, or a cluster that runs already.

use std::{
    collections::BTreeMap,
    fmt, fs,
    net::{IpAddr, SocketAddr, ToSocketAddrs},
    path::{Path, PathBuf},
    time::Duration,
};

use brownout_cluster::{
    Access, ClusterError, DatabaseKind, Distribution,
    cassandra::{maven, release, tarball},
    etcd,
    external::External,
    java, version_words,
};
use brownout_load::{Credentials, Identity, TlsOptions, TrustStore};
use serde::{Deserialize, Serialize};

use crate::{
    LabError,
    experiment::{AccessSection, CassandraChoice, ClusterSection, EtcdChoice},
    ground::Interrupts,
    plan::split_address,
    progress::Progress,
};

/// For a node of an external cluster to say who it is.
const SURVEY_WITHIN: Duration = Duration::from_secs(10);

/// Something that is found once, however many clusters run it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Software {
    /// As the file names it.
    pub(crate) choice: String,
    pub(crate) found: Found,
}

/// What was found.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Found {
    /// Cassandra, with the Java that runs it.
    Cassandra { distribution: Distribution, java: JavaFound },
    /// A program.
    Etcd(etcd::Installed),
    /// A cluster that runs already.
    External(ExternalFound),
}

/// A Java of this machine.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct JavaFound {
    pub(crate) home: PathBuf,
    pub(crate) version: String,
}

/// A cluster that runs already.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ExternalFound {
    /// Where its nodes answer clients, by name.
    pub(crate) nodes: Vec<(String, SocketAddr)>,
    /// The full version of each.
    pub(crate) versions: BTreeMap<String, String>,
    access: AccessFound,
}

/// What it takes to be let in, by files that are where they are found.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct AccessFound {
    ca: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    /// Names of nodes, which their certificates may be for.
    names: Vec<(IpAddr, String)>,
    login: Option<Login>,
}

#[derive(Clone, Serialize, Deserialize)]
struct Login {
    user: String,
    password: String,
}

/// Without the password.
impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

/// What a cluster runs, as written.
pub(crate) enum Wanted<'a> {
    Cassandra(CassandraChoice),
    Etcd(&'a EtcdChoice),
    External(&'a ClusterSection),
}

impl<'a> Wanted<'a> {
    /// What most nodes of a cluster run, or all.
    pub(crate) fn first(section: &'a ClusterSection) -> Wanted<'a> {
        match &section.etcd {
            _ if section.is_external() => Wanted::External(section),
            Some(choice) => Wanted::Etcd(choice),
            None => Wanted::Cassandra(section.cassandra()),
        }
    }

    /// All that a cluster runs.
    pub(crate) fn all(section: &'a ClusterSection) -> Vec<Wanted<'a>> {
        let mut all = vec![Wanted::first(section)];
        all.extend(section.versions.values().cloned().map(Wanted::Cassandra));
        all
    }

    /// What tells it from others.
    pub(crate) fn name(&self) -> String {
        match self {
            Wanted::Cassandra(choice) => format!("Cassandra {choice}"),
            Wanted::Etcd(choice) => format!("etcd {choice}"),
            Wanted::External(ClusterSection { cassandra, etcd, external, access, names, .. }) => {
                let named = if names.is_empty() { String::new() } else { format!(" {names:?}") };
                format!("external {:?}{named} {cassandra:?} {etcd:?} {access:?}", external.as_ref().map(|one| &one.0))
            }
        }
    }

    fn of_etcd(choice: &EtcdChoice) -> etcd::Wanted {
        match choice {
            EtcdChoice::Version(version) => etcd::Wanted::Version(version.clone()),
            EtcdChoice::Binary(path) => etcd::Wanted::Binary(path.clone()),
        }
    }

    /// Refuses what this machine cannot run, or cannot have. What has to be fetched or built is found out by that.
    pub(crate) fn refuse(&self, cache: &Path) -> Result<(), LabError> {
        match self {
            Wanted::Cassandra(CassandraChoice::Version(version)) => {
                java::find(release(version)?.java()).map(drop)?;
            }
            Wanted::Cassandra(CassandraChoice::Home(home)) => java::find(tarball::open(home)?.java()).map(drop)?,
            Wanted::Etcd(choice) => etcd::refuse(&Self::of_etcd(choice), cache)?,
            Wanted::External(_) => {}
        }
        Ok(())
    }

    /// Finds it, or fetches it. Files that an experiment names are found from where `file` is.
    pub(crate) fn find(
        &self,
        file: &Path,
        cache: &Path,
        interrupts: Interrupts,
        progress: &mut dyn Progress,
    ) -> Result<Found, LabError> {
        match self {
            Wanted::Cassandra(choice) => {
                let distribution = cassandra(choice, cache, interrupts, progress)?;
                let java = java::find(distribution.java())?;
                let java = JavaFound { home: java.home.clone(), version: java.version.text.clone() };
                Ok(Found::Cassandra { distribution, java })
            }
            Wanted::Etcd(choice) => {
                let wanted = Self::of_etcd(choice);
                progress.step(&format!("etcd {choice}: checking the cache"));
                // The callback may not change what it is given, and a progress view must.
                let progress = std::cell::RefCell::new(progress);
                let told = |line: &str| progress.borrow_mut().step(line);
                etcd::provide(&wanted, cache, &told, &|| interrupts.any())
                    .map(Found::Etcd)
                    .map_err(|error| if interrupts.any() { LabError::Interrupted } else { error.into() })
            }
            Wanted::External(section) => {
                progress.step(match section.names.is_empty() {
                    true => "asking the nodes of the external cluster who they are",
                    false => "asking the nodes in the containers who they are",
                });
                external(section, file).map(Found::External)
            }
        }
    }
}

fn cassandra(
    choice: &CassandraChoice,
    cache: &Path,
    interrupts: Interrupts,
    progress: &mut dyn Progress,
) -> Result<Distribution, LabError> {
    match choice {
        CassandraChoice::Home(home) => Ok(tarball::open(home)?),
        CassandraChoice::Version(version) => {
            progress.step(&format!("Cassandra {version}: checking the cache"));
            let progress = std::cell::RefCell::new(progress);
            let told = |line: &str| progress.borrow_mut().step(line);
            maven::resolve(version, cache, &told, &|| interrupts.any())
                .map_err(|error| if interrupts.any() { LabError::Interrupted } else { error.into() })
        }
    }
}

/// Where the nodes of a cluster that runs already are, and what it takes to be let in; they are not asked.
fn located(section: &ClusterSection, file: &Path) -> Result<ExternalFound, LabError> {
    let addresses = section.external.iter().flat_map(|addresses| &addresses.0);
    let mut nodes = Vec::new();
    let mut names = Vec::new();
    for (name, address) in section.node_names().into_iter().zip(addresses) {
        let found = resolve(address)?;
        nodes.push((name, found));
        if let Ok((host, _)) = split_address(address) {
            names.push((found.ip(), host.to_owned()));
        }
    }
    let access = AccessFound::find(section.access.as_ref(), names, file)?;
    Ok(ExternalFound { nodes, versions: BTreeMap::new(), access })
}

/// The same of nodes that run already, who are not asked who they are: containers may be of no database.
pub(crate) fn unasked(section: &ClusterSection, file: &Path) -> Result<Software, LabError> {
    let found = Found::External(located(section, file)?);
    Ok(Software { choice: Wanted::External(section).name(), found })
}

fn external(section: &ClusterSection, file: &Path) -> Result<ExternalFound, LabError> {
    let kind = section.kind();
    let ExternalFound { nodes, access, .. } = located(section, file)?;
    let survey = External::new(kind, access.access())?.survey(&nodes, SURVEY_WITHIN);
    let versions = survey.map_err(|error| not_a_node(section, error))?.versions;
    let asked = match kind {
        DatabaseKind::Cassandra => match &section.cassandra {
            Some(CassandraChoice::Version(version)) => Some(version),
            Some(CassandraChoice::Home(_)) | None => None,
        },
        DatabaseKind::Etcd => match &section.etcd {
            Some(EtcdChoice::Version(version)) => Some(version),
            Some(EtcdChoice::Binary(_)) | None => None,
        },
    };
    if let Some(asked) = asked
        && let Some((node, found)) = versions.iter().find(|(_, found)| !is_of_line(found, asked))
    {
        return Err(LabError::Machine(format!(
            "{node} of the external cluster runs {kind} {found}, and the file says {asked}; write {}: \"{found}\"",
            kind.word()
        )));
    }
    Ok(ExternalFound { nodes, versions, access })
}

/// Why nodes could not be asked. A project may have containers that are no nodes of its database.
fn not_a_node(section: &ClusterSection, error: ClusterError) -> LabError {
    if section.names.is_empty() {
        return error.into();
    }
    LabError::Machine(format!(
        "{error}; all containers that ground.containers chooses are nodes of the cluster: choose those of the database \
         alone, of these: ground: {{ containers: {{ names: [{}] }} }}",
        section.names.join(", ")
    ))
}

/// Whether a full version is of this line, or is it.
fn is_of_line(version: &str, line: &str) -> bool {
    version.strip_prefix(line).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-', '+']))
}

/// Where a node answers clients: names are asked for here, where the machine's name servers are.
fn resolve(address: &str) -> Result<SocketAddr, LabError> {
    let why = match address.to_socket_addrs() {
        Ok(mut found) => match found.find(SocketAddr::is_ipv4) {
            Some(found) => return Ok(found),
            None => "it has no IPv4 address".to_owned(),
        },
        Err(error) => error.to_string(),
    };
    Err(LabError::Machine(format!(
        "the node at {address} cannot be found: {why}; write its address, such as 10.0.0.5:9042"
    )))
}

impl AccessFound {
    /// Reads nothing but the password; the other files are read by those who use them.
    fn find(
        section: Option<&AccessSection>,
        names: Vec<(IpAddr, String)>,
        file: &Path,
    ) -> Result<AccessFound, LabError> {
        let Some(AccessSection { ca, certificate, key, user, password_file }) = section else {
            return Ok(AccessFound::default());
        };
        let beside = |path: &PathBuf| file.parent().unwrap_or(Path::new("")).join(path);
        let login = match (user, password_file) {
            (Some(user), Some(path)) => {
                let path = beside(path);
                let text = fs::read_to_string(&path).map_err(|source| {
                    let path = path.display();
                    LabError::Machine(format!("cluster.access.password-file: {path} cannot be read: {source}"))
                })?;
                let password = text.lines().next().unwrap_or_default().to_owned();
                Some(Login { user: user.clone(), password })
            }
            _ => None,
        };
        let [ca, certificate, key] = [ca, certificate, key].map(|path| path.as_ref().map(beside));
        Ok(AccessFound { ca, certificate, key, names, login })
    }

    /// As clusters and loads take it.
    fn access(&self) -> Access {
        let tls = self.ca.as_ref().map(|ca| TlsOptions {
            trust: TrustStore { file: ca.clone(), password: None },
            identity: self.certificate.as_ref().map(|file| Identity {
                file: file.clone(),
                key: self.key.clone(),
                password: None,
            }),
            verify_hostname: true,
            names: self.names.clone(),
            protocols: Vec::new(),
            ciphers: Vec::new(),
        });
        let credentials = self
            .login
            .as_ref()
            .map(|Login { user, password }| Credentials { user: user.clone(), password: password.clone() });
        Access { tls, credentials }
    }
}

impl ExternalFound {
    /// What a client needs beside the nodes' addresses.
    pub(crate) fn access(&self) -> Access {
        self.access.access()
    }

    /// Of the nodes in their order, in words.
    pub(crate) fn version(&self) -> String {
        let known = self.nodes.iter().filter_map(|(node, _)| Some((node.as_str(), self.versions.get(node)?.as_str())));
        version_words(known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(json: &str) -> ClusterSection {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn what_differs_is_found_apart_and_what_does_not_is_found_once() {
        let names = |json: &str| Wanted::all(&section(json)).iter().map(Wanted::name).collect::<Vec<_>>();
        assert_eq!(names("{}"), ["Cassandra 5.0"]);
        assert_eq!(names(r#"{"versions":{"n3":"4.1"}}"#), ["Cassandra 5.0", "Cassandra 4.1"]);
        assert_eq!(names(r#"{"etcd":"3.6"}"#), ["etcd 3.6"]);
        assert_ne!(names(r#"{"external":["a:1"]}"#), names(r#"{"external":["b:1"]}"#));
        assert_ne!(names(r#"{"external":["a:1"]}"#), names(r#"{"external":["a:1"],"etcd":"3"}"#));
    }

    #[test]
    fn a_line_is_what_a_version_begins_with_up_to_a_dot() {
        assert!(is_of_line("3.6.16", "3") && is_of_line("3.6.16", "3.6") && is_of_line("3.6.16", "3.6.16"));
        assert!(is_of_line("5.0-beta2", "5.0") && !is_of_line("3.60.1", "3.6") && !is_of_line("4.1.10", "4.1.1"));
    }

    #[test]
    fn files_are_found_from_where_the_experiment_is_and_a_password_is_never_shown() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("secret"), "hunter2\nnot this\n").unwrap();
        let file = directory.path().join("e.yaml");
        let section = section(r#"{"external":["a:1"],"access":{"ca":"ca.pem","user":"u","password-file":"secret"}}"#);
        let found = AccessFound::find(section.access.as_ref(), Vec::new(), &file).unwrap();
        assert!(!format!("{found:?}").contains("hunter2"));
        let access = found.access();
        assert_eq!(access.tls.unwrap().trust.file, directory.path().join("ca.pem"));
        assert_eq!(access.credentials.unwrap().password, "hunter2");
        let missing = section_without_password(&file);
        assert!(missing.contains("password-file") && missing.contains("cannot be read"), "{missing}");
    }

    fn section_without_password(file: &Path) -> String {
        let section = section(r#"{"external":["a:1"],"access":{"user":"u","password-file":"none"}}"#);
        AccessFound::find(section.access.as_ref(), Vec::new(), file).unwrap_err().to_string()
    }
}
