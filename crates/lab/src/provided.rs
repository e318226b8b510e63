//! What a lab is given from the machine: Cassandra, Java, directories. Provided outside, furnished inside; the same for runs
//! and for labs by hand.

use std::{
    fs,
    path::{Path, PathBuf},
};

use brownout_cluster::{
    Distribution, Owner, cache,
    cassandra::{archive, maven, tarball},
    java::{self, Java, JavaVersion},
};
use brownout_network::Network;
use serde::{Deserialize, Serialize};

use crate::{
    LabError,
    experiment::CassandraChoice,
    ground::{self, Furnished, Interrupts, Privilege},
    hosts::Hosts,
    plan::Layout,
    progress::Progress,
    spec::LabSpec,
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

/// A Cassandra, with the Java that runs it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Software {
    /// As the file names it.
    choice: String,
    distribution: Distribution,
    java: JavaFound,
}

/// A name inside the lab; only the first of several does without a number.
fn numbered(name: &str, number: usize) -> String {
    if number == 0 { name.to_owned() } else { format!("{name}-{}", number + 1) }
}

/// A Java of this machine.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct JavaFound {
    pub(crate) home: PathBuf,
    pub(crate) version: String,
}

/// What lies on the machine beside the directory, which is made last.
pub(crate) struct Found {
    cache: PathBuf,
    software: Vec<Software>,
}

impl Found {
    /// Finds it, or fetches it; what is chosen twice is found once.
    pub(crate) fn find(
        choices: &[&CassandraChoice],
        interrupts: Interrupts,
        progress: &mut dyn Progress,
    ) -> Result<Found, LabError> {
        let cache = cache::directory().map_err(|error| LabError::Machine(error.to_string()))?;
        let mut software: Vec<Software> = Vec::new();
        for choice in choices {
            if software.iter().any(|known| known.choice == choice.to_string()) {
                continue;
            }
            let distribution = distribution(choice, &cache, interrupts, progress)?;
            let java = java::find(distribution.java())?;
            let java = JavaFound { home: java.home.clone(), version: java.version.text.clone() };
            software.push(Software { choice: choice.to_string(), distribution, java });
        }
        if interrupts.any() {
            return Err(LabError::Interrupted);
        }
        let cache =
            cache.canonicalize().map_err(|source| LabError::Directory { doing: "find", path: cache, source })?;
        Ok(Found { cache, software })
    }

    /// For a lab in this directory.
    pub(crate) fn in_directory(self, directory: &Path) -> Provided {
        Provided { directory: directory.to_owned(), cache: self.cache, software: self.software }
    }
}

fn distribution(
    choice: &CassandraChoice,
    cache: &Path,
    interrupts: Interrupts,
    progress: &mut dyn Progress,
) -> Result<Distribution, LabError> {
    match choice {
        CassandraChoice::Home(home) => Ok(tarball::open(home)?),
        CassandraChoice::Version(version) => {
            progress.step(&format!("Cassandra {version}: checking the cache"));
            // The callback may not change what it is given, and a progress view must.
            let progress = std::cell::RefCell::new(progress);
            let told = |line: &str| progress.borrow_mut().step(line);
            maven::resolve(version, cache, &told, &|| interrupts.any())
                .map_err(|error| if interrupts.any() { LabError::Interrupted } else { error.into() })
        }
    }
}

impl Provided {
    /// Inside: mounts what labs of these layouts need of the machine, where everyone in them can reach it.
    pub(crate) fn furnish(&self, layouts: &[&Layout]) -> Result<Vec<LabSpec>, LabError> {
        let mut used: Vec<&Path> = vec![&self.directory, &self.cache, Path::new("/proc")];
        for Software { distribution, java, .. } in &self.software {
            used.extend([distribution.root.as_path(), &java.home]);
        }
        let hosts: Vec<&Hosts> = layouts.iter().map(|layout| &layout.hosts).collect();
        let ground: Furnished = ground::furnish(&hosts, &used)?;
        let cache = ground.bind(&self.cache, "cache", false)?;
        let scratch = ground.bind(&self.directory.join("scratch"), "scratch", false)?;
        let logs = ground.bind(&self.directory.join("logs"), "logs", false)?;
        let privilege = Privilege::current_inside();
        let mut seen = Vec::new();
        for (number, Software { choice, distribution, java }) in self.software.iter().enumerate() {
            let root = ground.bind(&distribution.root, &numbered("cassandra", number), true)?;
            let home = ground.bind(&java.home, &numbered("java", number), true)?;
            let version = JavaVersion::parse(&java.version)
                .ok_or_else(|| LabError::Machine(format!("'{}' is not a version of Java", java.version)))?;
            seen.push((choice, distribution.seen_at(&root), Java { path: home.join("bin/java"), home, version }));
        }
        let spec = |layout: &&Layout| {
            let wanted = layout.cluster.cassandra.to_string();
            let (_, distribution, java) = seen
                .iter()
                .find(|(choice, ..)| **choice == wanted)
                .ok_or_else(|| LabError::Machine(format!("Cassandra {wanted} was not provided for the lab")))?;
            let proc = ground.proc.try_clone();
            Ok(LabSpec {
                layout: (*layout).clone(),
                archive: archive::find(distribution, java, &cache),
                distribution: distribution.clone(),
                java: java.clone(),
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

    /// The Java of a Cassandra, for the record: "17.0.15, /usr/lib/jvm/…".
    pub(crate) fn java_of(&self, choice: &CassandraChoice) -> String {
        let found = self.software.iter().find(|known| known.choice == choice.to_string());
        found.map(|found| format!("{}, {}", found.java.version, found.java.home.display())).unwrap_or_default()
    }

    /// The full version of a Cassandra.
    pub(crate) fn version_of(&self, choice: &CassandraChoice) -> String {
        let found = self.software.iter().find(|known| known.choice == choice.to_string());
        found.map(|found| found.distribution.version.clone()).unwrap_or_default()
    }

    /// Inside: makes the class-data archive once per machine; without one, nodes only start more slowly.
    pub(crate) fn provide_archive(
        &self,
        spec: &mut LabSpec,
        interrupts: Interrupts,
        progress: &mut dyn Progress,
    ) -> Result<(), LabError> {
        if spec.archive.is_some() {
            return Ok(());
        }
        progress.step("making the class-data archive that lets nodes start faster (once per machine)");
        let network = Network::start(spec.network(0))?;
        let Some(host) = spec.layout.hosts.nodes().next().and_then(|node| network.host(&node.name)) else {
            return Ok(());
        };
        let paths = spec.paths(0);
        let built = archive::build(&spec.distribution, &spec.java, &spec.cache, host, &paths, &|| interrupts.any());
        let _ = fs::remove_dir_all(&paths.scratch);
        match built {
            Ok(path) => {
                // The logs of a node that ended well tell nobody anything.
                let _ = fs::remove_dir_all(&paths.logs);
                spec.archive = Some(path);
            }
            Err(_) if interrupts.any() => return Err(LabError::Interrupted),
            Err(error) => progress.note(&format!(
                "no class-data archive, so nodes start more slowly: {error} (logs in {})",
                self.directory.join("logs").display()
            )),
        }
        Ok(())
    }
}
