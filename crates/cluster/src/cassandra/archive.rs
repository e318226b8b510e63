//! The class-data archive: Cassandra's classes as the JVM keeps them in memory, made once per machine.
//!
//! Three nodes that start from it on two cores are ready some two seconds earlier (JEP 350, Java 13 and later).
//!
//! An archive is tied to the paths, sizes and times of the jars: a cache that is seen at another path, as through a
//! bind mount, needs one of its own.

use std::{
    fs,
    os::unix::ffi::OsStrExt,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::Duration,
};

use sha2::{Digest, Sha256};

use super::{Cassandra, CassandraSpec, Distribution, Jit, manifest::hex};
use crate::{
    Cluster, ClusterError, EnterableHost, Paths,
    cache::{CacheError, Lock, UNFINISHED, open_up},
    java::Java,
};

/// The first Java that makes such an archive.
const SINCE: u32 = 13;
/// For a lone node to answer; ten times what it takes.
const READY_WITHIN: Duration = Duration::from_secs(90);
/// For it to end and write the archive.
const ENDED_WITHIN: Duration = Duration::from_secs(90);

/// The archive for this Java and these jars, if it was made.
pub fn find(distribution: &Distribution, java: &Java, cache: &Path) -> Option<PathBuf> {
    let path = path(distribution, java, cache).ok()?;
    path.is_file().then_some(path)
}

/// Whether this Java makes such archives.
pub fn is_possible(java: &Java) -> bool {
    java.version.major >= SINCE
}

/// Makes the archive in the cache, unless it is there: starts one node alone on `host`, waits until it answers,
/// ends it, and keeps what the JVM wrote. Takes about ten seconds, once.
///
/// # Errors
/// When Java is too old, the node does not start or end, or the cache cannot be written. None of these stops
/// anybody from starting nodes without an archive.
pub fn build(
    distribution: &Distribution,
    java: &Java,
    cache: &Path,
    host: &dyn EnterableHost,
    paths: &Paths,
    interrupted: &dyn Fn() -> bool,
) -> Result<PathBuf, ClusterError> {
    if !is_possible(java) {
        return Err(ClusterError::Archive(format!("it needs Java {SINCE}, and this is {}", java.version)));
    }
    let target = path(distribution, java, cache).map_err(ClusterError::Cache)?;
    let Some(_lock) = Lock::take(cache, &|| !interrupted())? else { return Err(ClusterError::Interrupted) };
    if target.is_file() {
        return Ok(target);
    }
    // The node can write to its own directories only.
    let written = paths.scratch.join(host.name()).join("tmp/classes.jsa");
    let spec = CassandraSpec { jit: Jit::C1, ..CassandraSpec::default() };
    let database = Cassandra::archiving(&spec, distribution, java, written.clone())?;
    let mut alone = Cluster::start(Box::new(database), &[host], paths, &mut |_| Ok(Vec::new()))?;
    alone.wait_ready(READY_WITHIN, interrupted, &mut |_| {})?;
    if !alone.stop(ENDED_WITHIN) {
        return Err(ClusterError::Archive(format!("the node did not end in {} s", ENDED_WITHIN.as_secs())));
    }
    if !written.is_file() {
        return Err(ClusterError::Archive("the JVM wrote none".to_owned()));
    }
    move_into(cache, &written, &target).map_err(CacheError::files("keep the class-data archive", &target))?;
    Ok(target)
}

/// In one step, so that no other process ever maps half an archive.
fn move_into(cache: &Path, written: &Path, target: &Path) -> std::io::Result<()> {
    let copy = tempfile::Builder::new().prefix(UNFINISHED).suffix(".jsa").tempfile_in(cache)?;
    fs::copy(written, copy.path())?;
    fs::remove_file(written)?;
    open_up(copy.path())?;
    copy.persist(target)?;
    Ok(())
}

/// Where the archive for this Java and these jars lies: its name holds a hash of all that the JVM checks it against.
fn path(distribution: &Distribution, java: &Java, cache: &Path) -> Result<PathBuf, CacheError> {
    let mut hash = Sha256::new();
    let java_file = fs::metadata(&java.path).map_err(CacheError::files("look at Java for the archive", &java.path))?;
    hash.update(format!("{}\0{}\0{}\0", java.version, java_file.len(), java_file.mtime()));
    hash.update(java.path.as_os_str().as_bytes());
    for jar in &distribution.classpath {
        let file = fs::metadata(jar).map_err(CacheError::files("look at a jar for the archive", jar))?;
        hash.update(jar.as_os_str().as_bytes());
        hash.update(format!("\0{}\0{}\0{}\0", file.len(), file.mtime(), file.mtime_nsec()));
    }
    let cache = std::path::absolute(cache).map_err(CacheError::files("find a path", cache))?;
    Ok(cache.join(format!("cassandra-{}-{}.jsa", distribution.version, &hex(&hash.finalize())[..16])))
}
