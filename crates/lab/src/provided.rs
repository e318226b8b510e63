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
    /// Cassandra.
    pub(crate) distribution: Distribution,
    /// Java.
    pub(crate) java: JavaFound,
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
    distribution: Distribution,
    java: JavaFound,
}

impl Found {
    /// Finds it, or fetches it.
    pub(crate) fn find(
        choice: &CassandraChoice,
        interrupts: Interrupts,
        progress: &mut dyn Progress,
    ) -> Result<Found, LabError> {
        let cache = cache::directory().map_err(|error| LabError::Machine(error.to_string()))?;
        let distribution = distribution(choice, &cache, interrupts, progress)?;
        let java = java::find(distribution.java())?;
        if interrupts.any() {
            return Err(LabError::Interrupted);
        }
        let cache =
            cache.canonicalize().map_err(|source| LabError::Directory { doing: "find", path: cache, source })?;
        Ok(Found {
            cache,
            distribution,
            java: JavaFound { home: java.home.clone(), version: java.version.text.clone() },
        })
    }

    /// For a lab in this directory.
    pub(crate) fn in_directory(self, directory: &Path) -> Provided {
        let Found { cache, distribution, java } = self;
        Provided { directory: directory.to_owned(), cache, distribution, java }
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
    /// Inside: mounts what the lab needs of the machine, where everyone in it can reach it.
    pub(crate) fn furnish(&self, layout: &Layout) -> Result<LabSpec, LabError> {
        let used: [&Path; 5] =
            [&self.directory, &self.cache, &self.distribution.root, &self.java.home, Path::new("/proc")];
        let ground: Furnished = ground::furnish(&layout.hosts, &used)?;
        let proc =
            ground.proc.try_clone().map_err(|source| LabError::Ground { doing: "keep the machine's /proc", source })?;
        let root = ground.bind(&self.distribution.root, "cassandra", true)?;
        let java_home = ground.bind(&self.java.home, "java", true)?;
        let cache = ground.bind(&self.cache, "cache", false)?;
        let scratch = ground.bind(&self.directory.join("scratch"), "scratch", false)?;
        let logs = ground.bind(&self.directory.join("logs"), "logs", false)?;
        let distribution = self.distribution.seen_at(&root);
        let java = Java {
            path: java_home.join("bin/java"),
            home: java_home,
            version: JavaVersion::parse(&self.java.version)
                .ok_or_else(|| LabError::Machine(format!("'{}' is not a version of Java", self.java.version)))?,
        };
        let privilege = Privilege::current_inside();
        let owner = (privilege == Privilege::Root).then_some(Owner::NOBODY);
        let archive = archive::find(&distribution, &java, &cache);
        let layout = layout.clone();
        Ok(LabSpec { layout, distribution, java, cache, archive, scratch, logs, owner, proc, privilege })
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
