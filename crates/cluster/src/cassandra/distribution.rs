use std::{
    ops::RangeInclusive,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::dialect::Series;
use crate::cache::CacheError;

/// The version that is meant when none is named.
pub const DEFAULT: &str = "5.0";

/// A version of Cassandra that this crate knows how to get, configure and start.
#[derive(Debug, PartialEq, Eq)]
pub struct Release {
    /// What selects the newest of its line: `5.0`.
    pub series: &'static str,
    /// The full version: `5.0.9`.
    pub version: &'static str,
    /// SHA-256 and name of every jar of its class path, as `sha256sum` prints them; none: not pinned yet, so that
    /// Maven's own checksums have to do.
    ///
    /// The versions in Cassandra's own pom and in those below it are fixed, so the whole class path can be pinned.
    pub(crate) pins: Option<&'static str>,
}

impl Release {
    /// The major versions of Java that it runs on.
    pub fn java(&self) -> RangeInclusive<u32> {
        Series::of_known(self.version).java()
    }

    /// Whether its jars can be verified by checksums of this crate.
    pub fn is_pinned(&self) -> bool {
        self.pins.is_some()
    }

    /// Artifacts of its version that its nodes need: 3.11 has its old protocol in one of its own.
    pub(crate) fn artifacts(&self) -> &'static [&'static str] {
        if Series::of(self.version) == Some(Series::V3_11) {
            &["cassandra-all", "cassandra-thrift"]
        } else {
            &["cassandra-all"]
        }
    }
}

/// All that are known, newest first.
const RELEASES: [Release; 4] = [
    Release { series: "5.0", version: "5.0.9", pins: Some(include_str!("pins/5.0.9.sha256")) },
    Release { series: "4.1", version: "4.1.10", pins: Some(include_str!("pins/4.1.10.sha256")) },
    Release { series: "4.0", version: "4.0.19", pins: Some(include_str!("pins/4.0.19.sha256")) },
    Release { series: "3.11", version: "3.11.19", pins: Some(include_str!("pins/3.11.19.sha256")) },
];

/// The release that `asked` names: a series (`5.0`: its newest) or a full version (`5.0.9`).
///
/// # Errors
/// When it is not in the table; the error lists what is.
pub fn release(asked: &str) -> Result<&'static Release, ProvisionError> {
    RELEASES
        .iter()
        .find(|release| asked == release.series || asked == release.version)
        .ok_or_else(|| ProvisionError::UnknownVersion { asked: asked.to_owned(), known: known() })
}

/// What [`release`] knows, for a message: "5.0 (5.0.9)".
pub fn known() -> String {
    RELEASES.each_ref().map(|release| format!("{} ({})", release.series, release.version)).join(", ")
}

/// Cassandra's jars on this machine, verified or as the user gave them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Distribution {
    /// The full version: `5.0.9`.
    pub version: String,
    /// Its jars, sorted by name.
    pub classpath: Vec<PathBuf>,
    /// The directory that holds them: what must be readable for the user that the nodes run as.
    pub root: PathBuf,
    /// Where it came from.
    pub how: Origin,
}

/// Where a distribution came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// Resolved by Maven and verified against the checksums pinned in this crate.
    Maven,
    /// Resolved by Maven, which has verified what it fetched against the checksums of its repository; this crate has
    /// none.
    MavenUnpinned,
    /// An unpacked tarball of the user's, taken as it is.
    Tarball,
}

impl Distribution {
    /// The major versions of Java that it runs on.
    pub fn java(&self) -> RangeInclusive<u32> {
        Series::of_known(&self.version).java()
    }

    /// The same jars where their directory is seen as `root`: a lab mounts it elsewhere.
    pub fn seen_at(&self, root: &Path) -> Distribution {
        let seen = |jar: &PathBuf| root.join(jar.strip_prefix(&self.root).unwrap_or(jar));
        Distribution { classpath: self.classpath.iter().map(seen).collect(), root: root.to_owned(), ..self.clone() }
    }
}

/// Why no distribution could be had.
#[derive(Debug, Error)]
pub enum ProvisionError {
    /// A version that is not in the table.
    #[error("Cassandra '{asked}' is not known; known are: {known}")]
    UnknownVersion {
        /// What was asked for.
        asked: String,
        /// What there is.
        known: String,
    },
    /// Maven is not installed.
    #[error(
        "Maven (mvn) is not on PATH: apt-get install maven, or give an unpacked tarball (cassandra: {{ home: DIR }})"
    )]
    NoMaven,
    /// Maven failed.
    #[error("Maven could not resolve Cassandra {version}: {what}{}", .remedy.map(|r| format!("\n{r}")).unwrap_or_default())]
    Maven {
        /// What it was to resolve.
        version: String,
        /// Its own words.
        what: String,
        /// What to do about it, when its words are known.
        remedy: Option<&'static str>,
    },
    /// What Maven brought is not what was published.
    #[error(
        "the jars of Cassandra {version} that Maven fetched differ from those that were published: {}; if \
         they come through a mirror, it alters them; remove them from Maven's local repository and try again",
        .what.join("; ")
    )]
    Altered {
        /// What was verified.
        version: String,
        /// Where they were verified; gone by now.
        directory: PathBuf,
        /// What differs, one half sentence each.
        what: Vec<String>,
    },
    /// The directory given is not an unpacked Cassandra.
    #[error("{home} is not an unpacked Cassandra: {why}; give the directory that holds lib/ and conf/")]
    NotCassandra {
        /// The directory given.
        home: PathBuf,
        /// What was looked for and not found.
        why: String,
    },
    /// The caller asked to stop; nothing half-made remains.
    #[error("interrupted while resolving Cassandra")]
    Interrupted,
    /// The cache cannot be used.
    #[error(transparent)]
    Cache(#[from] CacheError),
}

/// The jars directly in `directory`, sorted; the order of a class path must not depend on the file system.
pub(crate) fn jars_in(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut jars = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "jar") {
            jars.push(path);
        }
    }
    jars.sort();
    Ok(jars)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_names_its_pinned_release_and_so_does_the_full_version() {
        assert_eq!(release(DEFAULT).unwrap().version, "5.0.9");
        assert_eq!(release("5.0.9").unwrap().version, "5.0.9");
        assert_eq!(release("4.1").unwrap().version, "4.1.10");
        assert_eq!(release("4.0").unwrap().version, "4.0.19");
        assert_eq!(release("3.11").unwrap().version, "3.11.19");
    }

    #[test]
    fn an_unknown_version_is_refused_with_the_list_of_known_ones() {
        for asked in ["3.0", "4.1.9", "5.0.8", "5", "", "5.0.99", "latest"] {
            let error = release(asked).unwrap_err().to_string();
            assert!(error.contains("5.0 (5.0.9), 4.1 (4.1.10)") && error.contains(&format!("'{asked}'")), "{error}");
        }
    }

    #[test]
    fn every_release_is_of_the_series_that_it_is_listed_under() {
        for release in &RELEASES {
            assert_eq!(Series::of(release.version).map(Series::word), Some(release.series));
        }
        let of = |version: &str| Distribution {
            version: version.to_owned(),
            classpath: Vec::new(),
            root: PathBuf::new(),
            how: Origin::Tarball,
        };
        assert_eq!((of("3.11.19").java(), of("4.0.19").java(), of("5.0.9").java()), (8..=8, 8..=17, 11..=17));
        assert_eq!(RELEASES.map(|release| release.artifacts().len()), [1, 1, 1, 2]);
    }
}
