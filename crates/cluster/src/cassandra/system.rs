use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    process::Command,
};

use super::{
    CassandraSpec, Distribution, Origin, conf, forget,
    jvm::{self, Archive, Jvm},
    rest, sites, tool, view, yaml,
};
use crate::{
    ClusterError, SystemSettings,
    java::Java,
    system::{ClusterView, Member, Start, System},
};

/// Cassandra, with all that is decided before it starts.
pub(crate) struct Cassandra {
    spec: CassandraSpec,
    distribution: Distribution,
    java: Java,
    archive: Option<Archive>,
}

impl Cassandra {
    pub(crate) fn new(
        spec: &CassandraSpec,
        distribution: &Distribution,
        java: &Java,
        archive: Option<&Path>,
    ) -> Result<Cassandra, ClusterError> {
        Cassandra::with(spec, distribution, java, archive.map(|path| Archive::Use(path.to_owned())))
    }

    pub(super) fn with(
        spec: &CassandraSpec,
        distribution: &Distribution,
        java: &Java,
        archive: Option<Archive>,
    ) -> Result<Cassandra, ClusterError> {
        yaml::check(&spec.settings)?;
        if distribution.root.as_os_str().as_encoded_bytes().contains(&b':') {
            let why = io::Error::new(io::ErrorKind::InvalidInput, "the path of a jar must not hold a ':'");
            return Err(ClusterError::files("put on Java's class path", &distribution.root)(why));
        }
        Ok(Cassandra { spec: spec.clone(), distribution: distribution.clone(), java: java.clone(), archive })
    }

    fn tokens(&self, members: &[Member]) -> Vec<i64> {
        sites::tokens(&self.spec.sites, members)
    }

    fn java(&self, member: &Member, arguments: Vec<OsString>) -> Command {
        let mut command = Command::new(&self.java.path);
        // JAVA_TOOL_OPTIONS and its kind would change what is measured behind everyone's back.
        command.args(arguments).env_clear();
        command.env("PATH", "/usr/bin:/bin").env("LANG", "C.UTF-8").env("HOME", &member.home);
        command
    }

    fn jvm(&self) -> Jvm<'_> {
        Jvm {
            heap: self.spec.heap,
            jit: self.spec.jit,
            jmx_port: self.spec.jmx_port,
            class_path: &self.distribution.classpath,
            archive: self.archive.as_ref(),
        }
    }
}

impl System for Cassandra {
    fn directories(&self) -> &[&str] {
        &yaml::DIRECTORIES
    }

    fn reads(&self) -> Vec<PathBuf> {
        let mut paths = vec![self.java.path.clone()];
        paths.extend(self.distribution.classpath.iter().cloned());
        if let Some(Archive::Use(archive)) = &self.archive {
            paths.push(archive.clone());
        }
        paths
    }

    fn log_files(&self) -> &'static [&'static str] {
        &["system.log"]
    }

    fn check(&self, members: &[Member]) -> Result<(), ClusterError> {
        sites::check(&self.spec.sites, &self.spec.settings, members)
    }

    fn configure(&self, members: &[Member], index: usize) -> Result<(), ClusterError> {
        conf::write(&self.spec, members, &self.tokens(members), index)
    }

    fn command(&self, members: &[Member], index: usize, start: Start) -> Command {
        self.java(&members[index], self.jvm().arguments(&members[index], start))
    }

    fn tool(&self, members: &[Member], index: usize, arguments: &[String]) -> Command {
        let member = &members[index];
        self.java(member, tool::arguments(member, self.spec.jmx_port, &self.distribution.classpath, arguments))
    }

    fn view(&self, members: &[Member], index: usize) -> ClusterView {
        view::view(members, &self.tokens(members), index)
    }

    fn rest(&self, members: &[Member], index: usize) -> ClusterView {
        rest::rest(members, &self.tokens(members), index)
    }

    fn forget(&self) -> Result<(), String> {
        forget::forget(self.spec.jmx_port)
    }

    fn answers(&self, members: &[Member], index: usize) -> Result<(), String> {
        view::answers(&members[index])
    }

    fn settings_in_force(&self, members: &[Member]) -> SystemSettings {
        let settings = [
            ("java", self.java.version.to_string()),
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
            ("class-data archive", if self.archive.is_some() { "given" } else { "none" }.to_owned()),
        ];
        SystemSettings {
            system: "cassandra".to_owned(),
            version: self.distribution.version.clone(),
            origin: match self.distribution.how {
                Origin::Maven => "maven, checksums verified".to_owned(),
                Origin::Tarball => self.distribution.root.display().to_string(),
            },
            settings: settings.map(|(key, value)| (key.to_owned(), value)).into(),
            deviations: yaml::deviations(&self.spec),
            options: self
                .jvm()
                .arguments(&members[0], Start::First)
                .iter()
                .map(|o| o.to_string_lossy().into_owned())
                .collect(),
            files: conf::files(&self.spec, members, &self.tokens(members), 0),
        }
    }
}
