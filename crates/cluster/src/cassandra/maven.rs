//! Cassandra's jars through Maven, into the cache.

use std::{
    ffi::{OsStr, OsString},
    fs,
    io::{BufRead, BufReader, Read},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
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
    resolve_with("mvn".as_ref(), release(version)?, cache, progress, interrupted)
}

fn resolve_with(
    mvn: &OsStr,
    release: &Release,
    cache: &Path,
    progress: &dyn Fn(&str),
    interrupted: &dyn Fn() -> bool,
) -> Result<Distribution, ProvisionError> {
    let root = std::path::absolute(folder(release, cache)).map_err(CacheError::files("find a path", cache))?;
    if !root.is_dir() {
        let cache = root.parent().unwrap_or(cache);
        let Some(_lock) = Lock::take(cache, &|| !interrupted())? else { return Err(ProvisionError::Interrupted) };
        // Another process may have been first while we waited.
        if !root.is_dir() {
            remove_unfinished(cache);
            bring(mvn, release, cache, &root, progress, interrupted)?;
        }
    }
    verify(release, &root)?;
    let classpath = jars_in(&root).map_err(CacheError::files("read the jars", &root))?;
    Ok(Distribution { version: release.version.to_owned(), classpath, root, how: How::Maven })
}

/// Where the jars of a release lie once they are in the cache.
pub fn folder(release: &Release, cache: &Path) -> PathBuf {
    cache.join(format!("cassandra-{}", release.version))
}

/// Fills a folder beside `root`, verifies it, and moves it into place in one step.
fn bring(
    mvn: &OsStr,
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
    run_maven(mvn, release, &pom, &jars, progress, interrupted)?;
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
    mvn: &OsStr,
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
    let mut option = OsString::from("-DoutputDirectory=");
    option.push(jars);
    let mut command = Command::new(mvn);
    // Batch mode; -C: a download whose checksum differs is an error, not a warning.
    command
        .args(["-B", "-C", "-Dstyle.color=never", "-f"])
        .arg(pom)
        .args(["dependency:copy-dependencies", "-DincludeScope=runtime"]);
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
            Ok(line) if tells(&line) => words.push(line),
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

/// Whether a line is an error of Maven's, or of the script that starts it (which puts no level in front).
fn tells(line: &str) -> bool {
    !["[INFO]", "[WARNING]"].iter().any(|level| line.contains(level))
        && line.trim_start_matches("[ERROR]").chars().any(char::is_alphabetic)
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
    const KNOWN: [(&str, &str); 6] = [
        ("JAVA_HOME", "Maven itself needs a Java: set JAVA_HOME, or apt-get install openjdk-17-jre-headless"),
        (
            "Could not create local repository",
            "Maven's local repository cannot be written: set MAVEN_OPTS=-Dmaven.repo.local=DIR to a folder that can be",
        ),
        (
            "No plugin found for prefix",
            "Maven cannot get its own plugins: check the network, whether it is set to offline, and its mirrors and proxies",
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

#[cfg(test)]
mod tests {
    use std::{cell::Cell, os::unix::fs::PermissionsExt};

    use super::*;

    /// A release whose only jar is empty.
    const EMPTY: Release = Release {
        series: "0.0",
        version: "0.0.1",
        pins: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  a.jar\n",
    };

    /// A folder for the cache, and a program that is called as Maven would be; `$out` is where jars belong.
    fn maven(script: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mvn");
        let find_out = r#"for a; do case "$a" in -DoutputDirectory=*) out="${a#*=}";; esac; done; mkdir -p "$out""#;
        fs::write(&path, format!("#!/bin/sh\n{find_out}\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        (folder, path)
    }

    fn resolve_empty(
        script: &str,
        interrupted: &dyn Fn() -> bool,
    ) -> (Result<Distribution, ProvisionError>, Vec<String>) {
        let (folder, mvn) = maven(script);
        let cache = folder.path().join("cache");
        let result = resolve_with(mvn.as_os_str(), &EMPTY, &cache, &|_| (), interrupted);
        let mut left: Vec<String> =
            fs::read_dir(cache).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        left.sort();
        (result, left)
    }

    #[test]
    fn the_cache_holds_a_complete_distribution_or_none() {
        let (result, left) = resolve_empty("touch $out/a.jar", &|| false);
        assert_eq!(result.unwrap().classpath.len(), 1);
        assert_eq!(left, ["cassandra-0.0.1", "lock"]);

        for (script, said) in [
            ("echo changed > $out/a.jar", "a.jar has another SHA-256"),
            ("touch $out/a.jar $out/b.jar", "b.jar does not belong there"),
            ("true", "a.jar is missing"),
            (
                "printf '\\033[0m[INFO] Scanning\\n'; echo '[ERROR] '; echo \"[ERROR] No plugin found for prefix 'dependency'\"; exit 1",
                "0.0.1: [ERROR] No plugin",
            ),
            ("touch $out/a.jar; echo '[INFO] x'; echo '[ERROR] Could not transfer artifact x'; exit 1", "proxies"),
            ("echo 'The JAVA_HOME environment variable is not defined correctly' >&2; exit 1", "set JAVA_HOME"),
            ("exit 7", "exit status: 7"),
        ] {
            let (result, left) = resolve_empty(script, &|| false);
            let error = result.unwrap_err().to_string();
            assert!(error.contains(said), "{script}: {error}");
            assert_eq!(left, ["lock"], "{script}");
        }
    }

    #[test]
    fn an_interruption_ends_maven_and_what_it_started() {
        let asked = Cell::new(0);
        let third = || asked.replace(asked.get() + 1) > 2;
        let begun = std::time::Instant::now();
        let (result, left) = resolve_empty("touch $out/a.jar; sleep 300; true", &third);
        assert!(matches!(result, Err(ProvisionError::Interrupted)), "{result:?}");
        assert_eq!(left, ["lock"]);
        assert!(begun.elapsed() < Duration::from_secs(100), "it waited for Maven");
    }

    #[test]
    fn what_a_killed_process_left_is_removed() {
        let (folder, mvn) = maven("touch $out/a.jar");
        let cache = folder.path().join("cache");
        fs::create_dir_all(cache.join(".unfinished-x/jars")).unwrap();
        resolve_with(mvn.as_os_str(), &EMPTY, &cache, &|_| (), &|| false).unwrap();
        assert!(!cache.join(".unfinished-x").exists());
    }

    #[test]
    fn without_maven_the_remedy_is_said() {
        let cache = tempfile::tempdir().unwrap();
        let error = resolve_with("/no/mvn".as_ref(), &EMPTY, cache.path(), &|_| (), &|| false).unwrap_err();
        assert!(error.to_string().contains("apt-get install maven"), "{error}");
    }
}
