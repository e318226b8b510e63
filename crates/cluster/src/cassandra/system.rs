use std::{collections::BTreeMap, ffi::OsString, io, path::PathBuf, process::Command, sync::OnceLock};

use brownout_load::{Tls, TlsOptions, TrustStore};

use super::{
    CassandraSpec, Distribution, Encryption, Origin,
    certificates::{self, Authority},
    conf,
    dialect::{self, Series},
    evidence::Watcher,
    forget,
    heartbeat::CqlHeartbeat,
    jvm::{self, Archive, Jvm},
    rest, sites, tool,
    view::{self, Asked},
    yaml::{self, Node},
};
use crate::{
    Access, ClusterError, DatabaseKind, Question, SystemSettings,
    database::{ClusterView, Database, Heartbeat, Looker, Member, Program, Start, version_words},
    error::unknown,
    java::Java,
};

/// What nodes run: Cassandra's jars, a Java for them, and the archive that lets it start faster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// The jars.
    pub distribution: Distribution,
    /// What runs them.
    pub java: Java,
    /// A class-data archive of [`super::archive`]; a JVM that cannot use it starts without.
    pub archive: Option<PathBuf>,
}

/// Cassandra, with all that is decided before it starts.
pub struct Cassandra {
    spec: CassandraSpec,
    software: Software,
    /// Of single nodes that run something else, by their names.
    others: BTreeMap<String, Software>,
    /// Signs the certificates of nodes, where anything is encrypted.
    authority: Option<Authority>,
    /// What clients trust, where they encrypt; there once the first node is configured.
    trust: OnceLock<Trust>,
}

/// How clients encrypt.
struct Trust {
    options: TlsOptions,
    tls: Tls,
}

/// What a node runs, and what it does with the archive.
struct Software {
    distribution: Distribution,
    java: Java,
    archive: Option<Archive>,
}

impl Software {
    fn new(distribution: &Distribution, java: &Java, archive: Option<Archive>) -> Result<Software, ClusterError> {
        if distribution.root.as_os_str().as_encoded_bytes().contains(&b':') {
            let why = io::Error::new(io::ErrorKind::InvalidInput, "the path of a jar must not hold a ':'");
            return Err(ClusterError::files("put on Java's class path", &distribution.root)(why));
        }
        Ok(Software { distribution: distribution.clone(), java: java.clone(), archive })
    }

    fn series(&self) -> Series {
        Series::of_known(&self.distribution.version)
    }

    fn of(installed: &Installed) -> Result<Software, ClusterError> {
        let archive = installed.archive.clone().map(Archive::Use);
        Software::new(&installed.distribution, &installed.java, archive)
    }
}

impl Cassandra {
    /// Nodes run what is `installed`, but for those that `others` names.
    ///
    /// # Errors
    /// When a setting is not allowed, or a path cannot be on a class path.
    pub fn new(
        spec: &CassandraSpec,
        installed: &Installed,
        others: &BTreeMap<String, Installed>,
    ) -> Result<Cassandra, ClusterError> {
        spec.settings_of.values().chain([&spec.settings]).try_for_each(yaml::check)?;
        let other = |(node, installed): (&String, &Installed)| -> Result<(String, Software), ClusterError> {
            Ok((node.clone(), Software::of(installed)?))
        };
        let others: BTreeMap<String, Software> = others.iter().map(other).collect::<Result<_, ClusterError>>()?;
        let authority = spec.encryption.is_any().then(|| Authority::new(&spec.cluster_name)).transpose()?;
        let software = Software::of(installed)?;
        Ok(Cassandra { spec: spec.clone(), software, others, authority, trust: OnceLock::new() })
    }

    /// The same of a node that is to write a class-data archive when it ends.
    pub(super) fn archiving(
        spec: &CassandraSpec,
        distribution: &Distribution,
        java: &Java,
        archive: PathBuf,
    ) -> Result<Cassandra, ClusterError> {
        let software = Software::new(distribution, java, Some(Archive::Make(archive)))?;
        let (others, trust) = (BTreeMap::new(), OnceLock::new());
        Ok(Cassandra { spec: spec.clone(), software, others, authority: None, trust })
    }

    fn software(&self, member: &Member) -> &Software {
        self.others.get(&member.name).unwrap_or(&self.software)
    }

    fn tokens(&self, members: &[Member]) -> Vec<i64> {
        sites::tokens(&self.spec.sites, members)
    }

    /// Whether nodes are of several series.
    fn is_mixed(&self, members: &[Member]) -> bool {
        dialect::is_mixed(members.iter().map(|member| self.software(member).distribution.version.as_str()))
    }

    /// Has `ask` ask a node.
    fn asked<T>(&self, members: &[Member], index: usize, ask: impl FnOnce(&Asked<'_>) -> T) -> T {
        ask(&Asked {
            members,
            tokens: &self.tokens(members),
            index,
            series: self.software(&members[index]).series(),
            mixed: self.is_mixed(members),
            tls: self.trust.get().map(|trust| &trust.tls),
            jmx_port: self.spec.jmx_port,
        })
    }

    /// Has `make` make something of a node's configuration.
    fn node<T>(&self, members: &[Member], index: usize, make: impl FnOnce(&Node<'_>) -> T) -> T {
        make(&Node {
            spec: &self.spec,
            series: self.software(&members[index]).series(),
            mixed: self.is_mixed(members),
            members,
            tokens: &self.tokens(members),
            index,
        })
    }

    /// From now on clients trust the authority, whose certificate lies in this node's directory.
    fn trust_authority_of(&self, member: &Member) -> Result<(), ClusterError> {
        if !self.spec.encryption.clients || self.trust.get().is_some() {
            return Ok(());
        }
        let options = TlsOptions {
            trust: TrustStore { file: member.home.join("conf").join(certificates::AUTHORITY), password: None },
            identity: None,
            verify_hostname: true,
            names: Vec::new(),
            protocols: Vec::new(),
            ciphers: Vec::new(),
        };
        let tls = Tls::new(&options).map_err(|error| ClusterError::Certificates(error.to_string()))?;
        // Whoever was first, it is the same authority.
        let _ = self.trust.set(Trust { options, tls });
        Ok(())
    }

    fn java(&self, member: &Member, arguments: Vec<OsString>) -> Command {
        let mut command = Command::new(&self.software(member).java.path);
        // JAVA_TOOL_OPTIONS and its kind would change what is measured behind everyone's back.
        command.args(arguments).env_clear();
        command.env("PATH", "/usr/bin:/bin").env("LANG", "C.UTF-8").env("HOME", &member.home);
        command
    }

    fn jvm(&self, member: &Member) -> Jvm<'_> {
        let software = self.software(member);
        Jvm {
            java: software.java.version.major,
            heap: self.spec.heap,
            jit: self.spec.jit,
            jmx_port: self.spec.jmx_port,
            class_path: &software.distribution.classpath,
            archive: software.archive.as_ref(),
        }
    }
}

impl Database for Cassandra {
    fn kind(&self) -> DatabaseKind {
        DatabaseKind::Cassandra
    }

    fn program(&self) -> Option<&dyn Program> {
        Some(self)
    }

    fn answers(&self, members: &[Member], index: usize) -> Result<(), String> {
        self.asked(members, index, view::answers)
    }

    fn view(&self, members: &[Member], index: usize) -> ClusterView {
        self.asked(members, index, view::view)
    }

    fn rest(&self, members: &[Member], index: usize) -> ClusterView {
        self.asked(members, index, rest::rest)
    }

    fn forget(&self, members: &[Member], index: usize) -> Result<(), String> {
        forget::forget(members[index].address, self.spec.jmx_port)
    }

    fn heartbeat(&self, members: &[Member], index: usize, question: Question) -> Box<dyn Heartbeat> {
        let member = &members[index];
        let tls = self.trust.get().map(|trust| trust.tls.clone());
        Box::new(CqlHeartbeat { address: member.client, question, clock: self.software(member).series().clock(), tls })
    }

    fn access(&self) -> Access {
        Access { tls: self.trust.get().map(|trust| trust.options.clone()), credentials: None }
    }

    fn looker(&self, members: &[Member], index: usize, clock_is_right: bool) -> Option<Box<dyn Looker>> {
        Some(Box::new(Watcher::new(members, index, self.spec.jmx_port, clock_is_right)))
    }

    fn settings_in_force(&self, members: &[Member]) -> SystemSettings {
        let of_node = |member: &Member| (member.name.clone(), self.software(member).distribution.version.clone());
        let versions: BTreeMap<String, String> = members.iter().map(of_node).collect();
        let in_order = members.iter().map(|member| (member.name.as_str(), versions[&member.name].as_str()));
        let version = version_words(in_order);
        let first = self.software(&members[0]);
        let java_of = |member: &Member| self.software(member).java.version.to_string();
        let javas: Vec<(&str, String)> = members.iter().map(|member| (member.name.as_str(), java_of(member))).collect();
        let settings = [
            ("java", version_words(javas.iter().map(|(node, java)| (*node, java.as_str())))),
            ("heap", self.spec.heap.to_string()),
            (
                "jit",
                match self.spec.jit {
                    super::Jit::C1 => "C1 only",
                    super::Jit::Default => "default",
                }
                .to_owned(),
            ),
            ("collector", jvm::collector(self.spec.heap).trim_start_matches("-XX:+Use").to_owned()),
            ("class-data archive", if first.archive.is_some() { "given" } else { "none" }.to_owned()),
            ("encryption", encrypted(self.spec.encryption)),
        ];
        let settings = settings.map(|(key, value)| (key.to_owned(), value));
        let own = self.spec.settings_of.iter().flat_map(|(node, settings)| {
            settings.iter().map(move |(key, value)| (format!("{key} of {node}"), value.clone()))
        });
        SystemSettings {
            system: DatabaseKind::Cassandra.word().to_owned(),
            version,
            versions,
            origin: match first.distribution.how {
                Origin::Maven => "maven, checksums verified".to_owned(),
                Origin::MavenUnpinned => "maven, without checksums of ours".to_owned(),
                Origin::Tarball => first.distribution.root.display().to_string(),
            },
            settings: settings.into_iter().chain(own).collect(),
            deviations: yaml::deviations(&self.spec, &members[0].name, first.series()),
            options: self
                .jvm(&members[0])
                .arguments(&members[0], Start::First)
                .iter()
                .map(|o| o.to_string_lossy().into_owned())
                .collect(),
            files: self.node(members, 0, conf::files),
        }
    }
}

/// What is encrypted, in a line.
fn encrypted(encryption: Encryption) -> String {
    let words = encryption.words();
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}

impl Program for Cassandra {
    fn directories(&self) -> &[&str] {
        &yaml::DIRECTORIES
    }

    fn reads(&self) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        for software in std::iter::once(&self.software).chain(self.others.values()) {
            paths.push(software.java.path.clone());
            paths.extend(software.distribution.classpath.iter().cloned());
            if let Some(Archive::Use(archive)) = &software.archive {
                paths.push(archive.clone());
            }
        }
        paths
    }

    fn check(&self, members: &[Member]) -> Result<(), ClusterError> {
        let spec = &self.spec;
        let is_set = |key: &str| spec.settings_of.values().chain([&spec.settings]).any(|all| all.contains_key(key));
        sites::check(&spec.sites, is_set, members)?;
        let is_there = |name: &String| members.iter().any(|member| member.name == *name);
        if let Some(stranger) = spec.settings_of.keys().find(|name| !is_there(name)) {
            return Err(unknown(stranger, members.iter().map(|member| member.name.clone()).collect()));
        }
        let version = |member: &Member| (member.name.clone(), self.software(member).distribution.version.clone());
        let versions: BTreeMap<String, String> = members.iter().map(version).collect();
        dialect::check_mixed(&versions)?;
        spec.encryption.check(&spec.sites, &versions)?;
        members.iter().try_for_each(|member| {
            dialect::check_names(self.software(member).series(), &spec.settings_for(&member.name))
        })
    }

    fn configure(&self, members: &[Member], index: usize) -> Result<(), ClusterError> {
        self.node(members, index, |node| conf::write(node, self.authority.as_ref()))?;
        self.trust_authority_of(&members[index])
    }

    fn command(&self, members: &[Member], index: usize, start: Start) -> Command {
        let member = &members[index];
        self.java(member, self.jvm(member).arguments(member, start))
    }

    fn tool(&self, members: &[Member], index: usize, arguments: &[String]) -> Option<Command> {
        let member = &members[index];
        let Software { distribution, java, .. } = self.software(member);
        let (java, port) = (java.version.major, self.spec.jmx_port);
        Some(self.java(member, tool::arguments(member, java, port, &distribution.classpath, arguments)))
    }

    fn log_files(&self) -> &'static [&'static str] {
        &["system.log"]
    }
}
