//! What a lab is given from the machine: the software of its clusters, directories. Provided outside, furnished inside; the same
//! for runs and for labs by hand.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use brownout_cluster::{
    Owner, cache,
    cassandra::{Installed, archive},
    java::{Java, JavaVersion},
    version_words,
};
use brownout_network::Network;
use serde::{Deserialize, Serialize};

use crate::{
    LabError,
    experiment::{CassandraChoice, ClusterSection},
    ground::{self, Furnished, Interrupts, Privilege},
    hosts::Hosts,
    plan::Layout,
    progress::Progress,
    software::{self, Software, Wanted},
    spec::{LabSpec, Runs},
};

/// What was provided outside, for the lab's first process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Provided {
    /// Of the run or the lab: `scratch/` and `logs/` lie in it.
    pub(crate) directory: PathBuf,
    /// What is kept between labs.
    pub(crate) cache: PathBuf,
    /// What its clusters run, each once.
    pub(crate) software: Vec<Software>,
}

/// A name inside the lab; only the first of several does without a number.
fn numbered(name: &str, number: usize) -> String {
    if number == 0 { name.to_owned() } else { format!("{name}-{}", number + 1) }
}

/// What lies on the machine beside the directory, which is made last.
pub(crate) struct Found {
    cache: PathBuf,
    software: Vec<Software>,
}

impl Found {
    /// Finds it, or fetches it; what is chosen twice is found once. Files that an experiment names are found from where `file` is.
    pub(crate) fn find(
        clusters: &[&ClusterSection],
        file: &Path,
        interrupts: Interrupts,
        progress: &mut dyn Progress,
    ) -> Result<Found, LabError> {
        let cache = cache::directory().map_err(|error| LabError::Machine(error.to_string()))?;
        let mut software: Vec<Software> = Vec::new();
        for wanted in clusters.iter().flat_map(|cluster| Wanted::all(cluster)) {
            let choice = wanted.name();
            if software.iter().any(|known| known.choice == choice) {
                continue;
            }
            let found = wanted.find(file, &cache, interrupts, progress)?;
            software.push(Software { choice, found });
        }
        if interrupts.any() {
            return Err(LabError::Interrupted);
        }
        Found::beside(cache, software)
    }

    /// Of a lab on containers, whose nodes are not asked who they are: they may be of no database.
    pub(crate) fn in_containers(cluster: &ClusterSection, file: &Path) -> Result<Found, LabError> {
        let cache = cache::directory().map_err(|error| LabError::Machine(error.to_string()))?;
        Found::beside(cache, vec![software::unasked(cluster, file)?])
    }

    /// With this cache, made if there is none.
    fn beside(cache: PathBuf, software: Vec<Software>) -> Result<Found, LabError> {
        let failed = |doing| {
            let path = cache.clone();
            move |source| LabError::Directory { doing, path, source }
        };
        // What was found elsewhere has left nothing in it.
        fs::create_dir_all(&cache).map_err(failed("make"))?;
        let found = cache.canonicalize().map_err(failed("find"))?;
        Ok(Found { cache: found, software })
    }

    /// For a lab in this directory.
    pub(crate) fn in_directory(self, directory: &Path) -> Provided {
        Provided { directory: directory.to_owned(), cache: self.cache, software: self.software }
    }
}

impl Provided {
    /// Inside: mounts what labs of these layouts need of the machine, where everyone in them can reach it.
    pub(crate) fn furnish(&self, layouts: &[&Layout]) -> Result<Vec<LabSpec>, LabError> {
        let ground = self.ground(layouts)?;
        let cache = ground.bind(&self.cache, "cache", false)?;
        let scratch = ground.bind(&self.directory.join("scratch"), "scratch", false)?;
        let logs = ground.bind(&self.directory.join("logs"), "logs", false)?;
        let privilege = Privilege::current_inside();
        let seen = self.seen(&ground, &cache)?;
        let spec = |layout: &&Layout| {
            let proc = ground.proc.try_clone();
            Ok(LabSpec {
                layout: (*layout).clone(),
                runs: runs(&seen, layout)?,
                cache: cache.clone(),
                scratch: scratch.clone(),
                logs: logs.clone(),
                owner: (privilege == Privilege::Root).then_some(Owner::NOBODY),
                proc: proc.map_err(|source| LabError::Ground { doing: "keep the machine's /proc", source })?,
                memory: None,
                privilege,
            })
        };
        layouts.iter().map(spec).collect()
    }

    fn ground(&self, layouts: &[&Layout]) -> Result<Furnished, LabError> {
        if layouts.iter().all(|layout| layout.is_external()) {
            return ground::unfurnished();
        }
        let mut used: Vec<&Path> = vec![&self.directory, &self.cache, Path::new("/proc")];
        for Software { found, .. } in &self.software {
            match found {
                software::Found::Cassandra { distribution, java } => {
                    used.extend([distribution.root.as_path(), &java.home]);
                }
                software::Found::Etcd(installed) => used.push(installed.root()),
                software::Found::External(_) => {}
            }
        }
        let hosts: Vec<&Hosts> = layouts.iter().map(|layout| &layout.hosts).collect();
        ground::furnish(&hosts, &used)
    }

    /// What was found, where the lab sees it.
    fn seen(&self, ground: &Furnished, cache: &Path) -> Result<Vec<(String, Seen)>, LabError> {
        let mut all = Vec::new();
        for (number, Software { choice, found }) in self.software.iter().enumerate() {
            let seen = match found {
                software::Found::Cassandra { distribution, java } => {
                    let root = ground.bind(&distribution.root, &numbered("cassandra", number), true)?;
                    let home = ground.bind(&java.home, &numbered("java", number), true)?;
                    let version = JavaVersion::parse(&java.version)
                        .ok_or_else(|| LabError::Machine(format!("'{}' is not a version of Java", java.version)))?;
                    let distribution = distribution.seen_at(&root);
                    let java = Java { path: home.join("bin/java"), home, version };
                    let archive = archive::find(&distribution, &java, cache);
                    Seen::Cassandra(Installed { distribution, java, archive })
                }
                software::Found::Etcd(installed) => {
                    let root = ground.bind(installed.root(), &numbered("etcd", number), true)?;
                    Seen::Other(Box::new(Runs::Etcd(installed.seen_at(&root))))
                }
                software::Found::External(found) => {
                    // Whether its nodes are containers that are attached, the layout knows.
                    let (nodes, access) = (found.nodes.clone(), found.access());
                    Seen::Other(Box::new(Runs::External { nodes, access, ground: None }))
                }
            };
            all.push((choice.clone(), seen));
        }
        Ok(all)
    }

    /// The Java of a Cassandra, for the record: "17.0.15, /usr/lib/jvm/…"; of several versions all, and empty where none is run.
    pub(crate) fn java_of(&self, cluster: &ClusterSection) -> String {
        let mut javas = Vec::new();
        for wanted in Wanted::all(cluster) {
            if let Some(software::Found::Cassandra { java, .. }) = self.found(&wanted) {
                let words = format!("{}, {}", java.version, java.home.display());
                if !javas.contains(&words) {
                    javas.push(words);
                }
            }
        }
        javas.join("; ")
    }

    /// The database of a cluster with its full version, for the record: "Cassandra 5.0.9".
    pub(crate) fn database_of(&self, cluster: &ClusterSection) -> String {
        let version = match self.found(&Wanted::first(cluster)) {
            Some(software::Found::Etcd(installed)) => installed.version.clone(),
            Some(software::Found::External(found)) => found.version(),
            Some(software::Found::Cassandra { distribution, .. }) => {
                let of_node = |name: &str| {
                    let other = cluster.versions.get(name).cloned().map(Wanted::Cassandra);
                    match other.and_then(|other| self.found(&other)) {
                        Some(software::Found::Cassandra { distribution, .. }) => distribution.version.clone(),
                        _ => distribution.version.clone(),
                    }
                };
                let nodes = cluster.node_names();
                let versions: Vec<String> = nodes.iter().map(|node| of_node(node)).collect();
                version_words(nodes.iter().map(String::as_str).zip(versions.iter().map(String::as_str)))
            }
            None => return cluster.kind().to_string(),
        };
        format!("{} {version}", cluster.kind())
    }

    fn found(&self, wanted: &Wanted<'_>) -> Option<&software::Found> {
        let choice = wanted.name();
        self.software.iter().find(|known| known.choice == choice).map(|known| &known.found)
    }

    /// Inside: makes the class-data archives of Cassandra once per machine; without one, nodes only start more slowly.
    pub(crate) fn provide_archive(
        &self,
        spec: &mut LabSpec,
        interrupts: Interrupts,
        progress: &mut dyn Progress,
    ) -> Result<(), LabError> {
        for installed in lacking_archive(&spec.runs) {
            progress.step("making the class-data archive that lets nodes start faster (once per machine)");
            let network = Network::start(spec.network(0))?;
            let Some(host) = spec.layout.hosts.nodes().next().and_then(|node| network.host(&node.name)) else {
                return Ok(());
            };
            let paths = spec.paths(0);
            let Installed { distribution, java, .. } = &installed;
            let built = archive::build(distribution, java, &spec.cache, host, &paths, &|| interrupts.any());
            let _ = fs::remove_dir_all(&paths.scratch);
            match built {
                Ok(path) => {
                    // The logs of a node that ended well tell nobody anything.
                    let _ = fs::remove_dir_all(&paths.logs);
                    keep_archive(&mut spec.runs, &installed, &path);
                }
                Err(_) if interrupts.any() => return Err(LabError::Interrupted),
                Err(error) => progress.note(&format!(
                    "no class-data archive, so nodes of Cassandra {} start more slowly: {error} (logs in {})",
                    distribution.version,
                    self.directory.join("logs").display()
                )),
            }
        }
        Ok(())
    }
}

/// What was found, where the lab sees it. Several nodes of one cluster may run different ones.
enum Seen {
    Cassandra(Installed),
    Other(Box<Runs>),
}

/// What the cluster of a layout runs of what was provided.
fn runs(seen: &[(String, Seen)], layout: &Layout) -> Result<Runs, LabError> {
    let cluster = &layout.cluster;
    let find = |wanted: Wanted<'_>| {
        let name = wanted.name();
        let found = seen.iter().find(|(choice, _)| *choice == name).map(|(_, seen)| seen);
        found.ok_or_else(|| LabError::Machine(format!("{name} was not provided for the lab")))
    };
    let installed = match find(Wanted::first(cluster))? {
        Seen::Other(runs) => {
            let mut runs = (**runs).clone();
            if let Runs::External { ground, .. } = &mut runs {
                ground.clone_from(&layout.containers);
            }
            return Ok(runs);
        }
        Seen::Cassandra(installed) => installed.clone(),
    };
    let mut others = BTreeMap::new();
    let other = |choice: &CassandraChoice| find(Wanted::Cassandra(choice.clone()));
    for (node, choice) in &cluster.versions {
        if let Seen::Cassandra(installed) = other(choice)? {
            others.insert(node.clone(), installed.clone());
        }
    }
    Ok(Runs::Cassandra { installed, others })
}

/// Each Cassandra without an archive, once, where its Java can make one.
fn lacking_archive(runs: &Runs) -> Vec<Installed> {
    let Runs::Cassandra { installed, others } = runs else { return Vec::new() };
    let mut lacking: Vec<Installed> = Vec::new();
    for one in std::iter::once(installed).chain(others.values()) {
        if one.archive.is_none() && archive::is_possible(&one.java) && !lacking.contains(one) {
            lacking.push(one.clone());
        }
    }
    lacking
}

/// All nodes that run it have the archive from now on.
fn keep_archive(runs: &mut Runs, of: &Installed, archive: &Path) {
    if let Runs::Cassandra { installed, others } = runs {
        for one in std::iter::once(installed).chain(others.values_mut()).filter(|one| **one == *of) {
            one.archive = Some(archive.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use brownout_cluster::{DatabaseKind, Distribution, Origin};

    use super::*;
    use crate::software::JavaFound;

    fn cassandra(version: &str) -> Software {
        let distribution = Distribution {
            version: version.to_owned(),
            classpath: Vec::new(),
            root: format!("/c/{version}").into(),
            how: Origin::Maven,
        };
        let java = JavaFound { home: "/java".into(), version: "17.0.1".to_owned() };
        let line: Vec<&str> = version.split('.').take(2).collect();
        let choice = format!("Cassandra {}", line.join("."));
        Software { choice, found: software::Found::Cassandra { distribution, java } }
    }

    fn section(json: &str) -> ClusterSection {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn an_archive_is_made_once_and_only_by_a_java_that_can() {
        let installed = |version: &str, java: &str| {
            let java = Java { home: "/java".into(), version: JavaVersion::parse(java).unwrap(), path: "/java".into() };
            let software::Found::Cassandra { distribution, .. } = cassandra(version).found else { unreachable!() };
            Installed { distribution, java, archive: None }
        };
        let others = [("n2", "3.11.19", "1.8.0_392"), ("n3", "5.0.9", "17.0.1"), ("n4", "4.1.10", "11.0.2")];
        let others = others.map(|(node, version, java)| (node.to_owned(), installed(version, java)));
        let runs = Runs::Cassandra { installed: installed("5.0.9", "17.0.1"), others: others.into() };
        assert_eq!(lacking_archive(&runs), [installed("5.0.9", "17.0.1")]);
    }

    #[test]
    fn the_record_names_the_version_of_every_node_and_each_java_once() {
        let software = vec![cassandra("5.0.9"), cassandra("4.1.10")];
        let provided = Provided { directory: "/run".into(), cache: "/cache".into(), software };
        assert_eq!(provided.database_of(&section("{}")), "Cassandra 5.0.9");
        let mixed = section(r#"{"versions":{"n3":"4.1"}}"#);
        assert_eq!(provided.database_of(&mixed), "Cassandra 5.0.9 (n1, n2), 4.1.10 (n3)");
        assert_eq!(provided.java_of(&mixed), "17.0.1, /java");
        assert_eq!(provided.java_of(&section(r#"{"etcd":"3"}"#)), "");
        assert_eq!(provided.database_of(&section(r#"{"etcd":"3"}"#)), DatabaseKind::Etcd.to_string());
    }
}
