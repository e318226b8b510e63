//! Cassandra's jars through Maven, into the cache.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

use super::{
    Distribution, How, ProvisionError, Release,
    distribution::{jars_in, release},
    manifest,
};
use crate::cache::{CacheError, Lock};

/// Begins the names of unfinished folders in the cache.
const UNFINISHED: &str = ".unfinished-";

/// The jars of `version` (a series or a full version), from the cache, or brought into it by the user's Maven with
/// the user's settings, mirrors and proxies. All are verified against pinned checksums, every time.
///
/// Processes that resolve at the same time take turns. `progress` gets one line now and then; `interrupted` is asked
/// several times a second.
///
/// # Errors
/// When the version is not known, Maven is missing or fails, the jars are not those that were published, the cache
/// cannot be written, or on interruption. The cache holds a complete distribution or none.
pub fn resolve(
    version: &str,
    cache: &Path,
    progress: &dyn Fn(&str),
    interrupted: &dyn Fn() -> bool,
) -> Result<Distribution, ProvisionError> {
    let release = release(version)?;
    let root = std::path::absolute(cache)
        .map_err(CacheError::files("find a path", cache))?
        .join(format!("cassandra-{}", release.version));
    if !root.is_dir() {
        let cache = root.parent().unwrap_or(cache);
        let Some(_lock) = Lock::take(cache, &|| !interrupted())? else { return Err(ProvisionError::Interrupted) };
        // Another process may have been first while we waited.
        if !root.is_dir() {
            remove_unfinished(cache);
            bring(release, cache, &root, progress, interrupted)?;
        }
    }
    verify(release, &root)?;
    let classpath = jars_in(&root).map_err(CacheError::files("read the jars", &root))?;
    Ok(Distribution { version: release.version.to_owned(), classpath, root, how: How::Maven })
}

/// Fills a folder beside `root`, verifies it, and moves it into place in one step.
fn bring(
    release: &Release,
    cache: &Path,
    root: &Path,
    progress: &dyn Fn(&str),
    interrupted: &dyn Fn() -> bool,
) -> Result<(), ProvisionError> {
    let unfinished = tempfile::Builder::new()
        .prefix(UNFINISHED)
        .tempdir_in(cache)
        .map_err(CacheError::files("create a folder", cache))?;
    let pom = unfinished.path().join("pom.xml");
    let jars = unfinished.path().join("jars");
    fs::write(&pom, pom_text(release.version)).map_err(CacheError::files("write", &pom))?;
    progress(&format!("resolving Cassandra {} with Maven (67 MB when nothing is there yet)", release.version));
    run_maven(release, &pom, &jars, progress, interrupted)?;
    verify(release, &jars)?;
    fs::rename(&jars, root).map_err(CacheError::files("move the jars into place", root))?;
    Ok(())
}

fn verify(release: &Release, folder: &Path) -> Result<(), ProvisionError> {
    let what = manifest::differences(folder, release.pins).map_err(CacheError::files("read the jars", folder))?;
    if what.is_empty() {
        return Ok(());
    }
    Err(ProvisionError::Altered { version: release.version.to_owned(), folder: folder.to_owned(), what })
}

/// What a killed process left; only with the lock held, so that nobody is still at work in it.
fn remove_unfinished(cache: &Path) {
    for entry in fs::read_dir(cache).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            // What cannot be removed is only a waste of space.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn pom_text(version: &str) -> String {
    format!(
        r#"<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>brownout</groupId>
  <artifactId>cassandra-class-path</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.cassandra</groupId>
      <artifactId>cassandra-all</artifactId>
      <version>{version}</version>
    </dependency>
  </dependencies>
</project>
"#
    )
}

fn run_maven(
    release: &Release,
    pom: &Path,
    jars: &Path,
    progress: &dyn Fn(&str),
    interrupted: &dyn Fn() -> bool,
) -> Result<(), ProvisionError> {
    let failed = |what: String| {
        let remedy = remedy(&what);
        ProvisionError::Maven { version: release.version.to_owned(), what, remedy }
    };
    let mut option = std::ffi::OsString::from("-DoutputDirectory=");
    option.push(jars);
    let mut command = Command::new("mvn");
    // Batch mode; -C: a download whose checksum differs is an error, not a warning.
    command.args(["-B", "-C", "-f"]).arg(pom).args(["dependency:copy-dependencies", "-DincludeScope=runtime"]);
    command.arg(option).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // A group of its own: `mvn` is a script that starts a JVM, and both have to end on interruption.
    command.process_group(0);
    let child = command.spawn().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => ProvisionError::NoMaven,
        _ => failed(error.to_string()),
    })?;
    let mut maven = Group(child);
    let (to_us, lines) = mpsc::channel();
    let outputs: [Option<Box<dyn Read + Send>>; 2] =
        [maven.0.stdout.take().map(|o| Box::new(o) as _), maven.0.stderr.take().map(|o| Box::new(o) as _)];
    for output in outputs.into_iter().flatten() {
        let to_us = to_us.clone();
        thread::spawn(move || {
            BufReader::new(output).lines().map_while(Result::ok).try_for_each(|line| to_us.send(line))
        });
    }
    drop(to_us);

    let (mut fetched, mut words) = (0, Vec::new());
    loop {
        if interrupted() {
            return Err(ProvisionError::Interrupted);
        }
        match lines.recv_timeout(Duration::from_millis(200)) {
            Ok(line) if line.contains("Downloaded from ") => {
                fetched += 1;
                if fetched % 20 == 0 {
                    progress(&format!("Maven has fetched {fetched} files"));
                }
            }
            Ok(line) if line.contains("ERROR") || !line.starts_with('[') => words.push(line),
            Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    match maven.0.wait() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) if words.is_empty() => Err(failed(status.to_string())),
        // The first words tell what happened, the rest how to read a stack trace.
        Ok(_) => Err(failed(words.into_iter().take(6).collect::<Vec<_>>().join("\n"))),
        Err(error) => Err(failed(error.to_string())),
    }
}

/// A child that leads a process group; dropping it ends the group.
struct Group(Child);

impl Drop for Group {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            // SAFETY: kill has no memory effects; the child was not reaped, so the group is still its own.
            unsafe { libc::kill(-(self.0.id() as libc::pid_t), libc::SIGKILL) };
            let _ = self.0.wait();
        }
    }
}

/// What to do, for failures whose words are known.
fn remedy(words: &str) -> Option<&'static str> {
    const KNOWN: [(&str, &str); 5] = [
        ("JAVA_HOME", "Maven itself needs a Java: set JAVA_HOME, or apt-get install openjdk-17-jre-headless"),
        (
            "Could not create local repository",
            "Maven's local repository cannot be written: check HOME, or set maven.repo.local",
        ),
        ("Checksum validation failed", "a download was damaged: try again; if it stays, the mirror alters files"),
        (
            "in offline mode",
            "Maven is set to offline: connect once, or give an unpacked tarball (cassandra: { home: DIR })",
        ),
        (
            "Could not transfer artifact",
            "no connection to a repository: check the network, or the mirrors and proxies in Maven's settings.xml",
        ),
    ];
    KNOWN.iter().find(|(sign, _)| words.contains(sign)).map(|(_, remedy)| *remedy)
}
