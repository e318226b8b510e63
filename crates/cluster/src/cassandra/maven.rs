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

use rustix::process::{Pid, Signal, kill_process_group};

use super::{
    Distribution, Origin, ProvisionError, Release,
    distribution::{jars_in, release},
    manifest,
};
use crate::{
    cache::{CacheError, Lock, UNFINISHED, open_up},
    confine::die_with_us,
};

/// The jars of `version` (a series or a full version), from the cache, or brought into it by the user's Maven with the
/// user's settings, mirrors and proxies. All are verified against pinned checksums, every time; jars in the cache that
/// were damaged since are thrown away and brought anew, once. Of a release without such checksums nothing can be
/// verified but that its own jars are there; `progress` is told.
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
    let root = std::path::absolute(directory(release, cache)).map_err(CacheError::files("find a path", cache))?;
    if !is_intact(release, &root)? {
        let cache = root.parent().unwrap_or(cache);
        let Some(_lock) = Lock::take(cache, &|| !interrupted())? else { return Err(ProvisionError::Interrupted) };
        // Another process may have been first while we waited.
        if !is_intact(release, &root)? {
            if root.is_dir() {
                progress(&format!("the jars in {} were changed or damaged: fetching them again", root.display()));
                throw_away(cache, &root)?;
            }
            bring(mvn, release, cache, &root, progress, interrupted)?;
        }
    }
    let how = match release.pins {
        Some(_) => Origin::Maven,
        None => {
            progress(&format!(
                "Cassandra {}: this version of Brownout has no checksums of its jars; they are what Maven fetched",
                release.version
            ));
            Origin::MavenUnpinned
        }
    };
    let classpath = jars_in(&root).map_err(CacheError::files("read the jars", &root))?;
    Ok(Distribution { version: release.version.to_owned(), classpath, root, how })
}

/// Where the jars of a release lie once they are in the cache.
pub fn directory(release: &Release, cache: &Path) -> PathBuf {
    cache.join(format!("cassandra-{}", release.version))
}

/// Fills a directory beside `root`, verifies it, and moves it into place in one step.
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
        .map_err(CacheError::files("create a directory", cache))?;
    let pom = unfinished.path().join("pom.xml");
    let jars = unfinished.path().join("jars");
    fs::write(&pom, pom_text(release)).map_err(CacheError::files("write", &pom))?;
    progress(&format!("resolving Cassandra {} with Maven (up to 67 MB when nothing is there yet)", release.version));
    run_maven(mvn, release, &pom, &jars, progress, interrupted)?;
    let what = differences(release, &jars)?;
    if !what.is_empty() {
        return Err(ProvisionError::Altered { version: release.version.to_owned(), directory: jars, what });
    }
    for path in jars_in(&jars).map_err(CacheError::files("read the jars", &jars))?.iter().chain([&jars]) {
        open_up(path).map_err(CacheError::files("open up", path))?;
    }
    fs::rename(&jars, root).map_err(CacheError::files("move the jars into place", root))?;
    Ok(())
}

/// Whether `directory` is there and holds the jars that were published.
fn is_intact(release: &Release, directory: &Path) -> Result<bool, ProvisionError> {
    Ok(directory.is_dir() && differences(release, directory)?.is_empty())
}

fn differences(release: &Release, directory: &Path) -> Result<Vec<String>, CacheError> {
    let read = CacheError::files("read the jars", directory);
    match release.pins {
        Some(pins) => manifest::differences(directory, pins).map_err(read),
        None => own_jars_missing(release, directory).map_err(read),
    }
}

/// What can be told without checksums: the jars of the release itself have to be there.
fn own_jars_missing(release: &Release, directory: &Path) -> std::io::Result<Vec<String>> {
    let jars = jars_in(directory)?;
    let own = release.artifacts().iter().map(|artifact| format!("{artifact}-{}.jar", release.version));
    let is_there = |name: &String| jars.iter().any(|jar| jar.file_name().is_some_and(|own| own == name.as_str()));
    Ok(own.filter(|name| !is_there(name)).map(|name| format!("{name} is missing")).collect())
}

/// Moves `root` aside, in one step, before its files go: nobody sees half a distribution.
fn throw_away(cache: &Path, root: &Path) -> Result<(), CacheError> {
    let aside = tempfile::Builder::new()
        .prefix(UNFINISHED)
        .tempdir_in(cache)
        .map_err(CacheError::files("create a directory", cache))?;
    fs::rename(root, aside.path().join("damaged")).map_err(CacheError::files("move damaged jars aside", root))?;
    Ok(())
}

fn pom_text(release: &Release) -> String {
    let version = release.version;
    let dependency = |artifact: &&str| {
        format!(
            r#"    <dependency>
      <groupId>org.apache.cassandra</groupId>
      <artifactId>{artifact}</artifactId>
      <version>{version}</version>
    </dependency>
"#
        )
    };
    let dependencies: String = release.artifacts().iter().map(dependency).collect();
    format!(
        r#"<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>brownout</groupId>
  <artifactId>cassandra-class-path</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
{dependencies}  </dependencies>
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
    // A group of its own: whatever `mvn` starts has to end on interruption.
    command.process_group(0);
    // If we are killed, nobody interrupts. Maven's script ends by an exec of Java, so that the one process has the
    // death signal; it is tied to this thread, which stays until Maven has ended.
    die_with_us(&mut command);
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
            // The child was not reaped, so the group is still its own.
            let _ = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
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
            "Maven's local repository cannot be written: set MAVEN_OPTS=-Dmaven.repo.local=DIR to a directory that can be",
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
    use std::{cell::Cell, cell::RefCell, env, os::unix::fs::PermissionsExt, time::Instant};

    use super::*;

    /// A release whose only jar is empty.
    const EMPTY: Release = Release {
        series: "0.0",
        version: "0.0.1",
        pins: Some("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  a.jar\n"),
    };
    /// One of which nobody knows what its jars should be.
    const UNPINNED: Release = Release { series: "3.11", version: "3.11.1", pins: None };

    /// A directory for the cache, and a program that is called as Maven would be; `$out` is where jars belong.
    fn maven(script: &str) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("mvn");
        let find_out = r#"for a; do case "$a" in -DoutputDirectory=*) out="${a#*=}";; esac; done; mkdir -p "$out""#;
        fs::write(&path, format!("#!/bin/sh\n{find_out}\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        (directory, path)
    }

    fn resolve_empty(
        script: &str,
        interrupted: &dyn Fn() -> bool,
    ) -> (Result<Distribution, ProvisionError>, Vec<String>) {
        let (directory, mvn) = maven(script);
        let cache = directory.path().join("cache");
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
    fn a_release_without_checksums_is_taken_if_its_own_jars_are_there_and_that_is_told() {
        let resolve = |script: &str| {
            let (directory, mvn) = maven(script);
            let told = RefCell::new(Vec::new());
            let told_to = |line: &str| told.borrow_mut().push(line.to_owned());
            let cache = directory.path().join("cache");
            let resolved = resolve_with(mvn.as_os_str(), &UNPINNED, &cache, &told_to, &|| false);
            (resolved.map(|distribution| distribution.how), told.into_inner().join("; "))
        };
        let (how, told) = resolve("touch $out/cassandra-all-3.11.1.jar $out/cassandra-thrift-3.11.1.jar $out/x.jar");
        assert_eq!(how.unwrap(), Origin::MavenUnpinned);
        assert!(told.contains("3.11.1: this version of Brownout has no checksums"), "{told}");
        let (how, _) = resolve("touch $out/cassandra-all-3.11.1.jar");
        let error = how.unwrap_err().to_string();
        assert!(error.contains("cassandra-thrift-3.11.1.jar is missing"), "{error}");
    }

    #[test]
    fn the_pom_asks_for_all_that_a_release_needs() {
        let of = |release: &Release| pom_text(release).matches("<artifactId>cassandra-").count();
        // The project's own name begins in the same way.
        assert_eq!((of(&EMPTY), of(&UNPINNED)), (2, 3));
        let thrift = "<artifactId>cassandra-thrift</artifactId>\n      <version>3.11.1</version>";
        assert!(pom_text(&UNPINNED).contains(thrift));
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
    fn damaged_jars_in_the_cache_are_brought_anew_once_and_said_to_be() {
        let (directory, mvn) = maven("echo run >> ${0%/*}/runs; touch $out/a.jar");
        let cache = directory.path().join("cache");
        let told = RefCell::new(Vec::new());
        let told_to = |line: &str| told.borrow_mut().push(line.to_owned());
        let resolve = || resolve_with(mvn.as_os_str(), &EMPTY, &cache, &told_to, &|| false);
        let jar = cache.join("cassandra-0.0.1/a.jar");
        let runs = || fs::read_to_string(directory.path().join("runs")).unwrap().lines().count();
        resolve().unwrap();
        assert!(!told.borrow().iter().any(|line| line.contains("damaged")), "{told:?}");

        fs::write(&jar, "damaged").unwrap();
        fs::write(jar.with_file_name("stranger.jar"), "").unwrap();
        assert_eq!(resolve().unwrap().classpath, [jar.as_path()]);
        assert_eq!((fs::read(&jar).unwrap().len(), runs()), (0, 2));
        assert!(told.borrow().iter().any(|line| line.contains("damaged")), "{told:?}");

        // What comes is no better: the advice is about Maven, and nothing damaged stays.
        fs::write(&jar, "damaged").unwrap();
        fs::write(&mvn, "#!/bin/sh\nexit 7\n").unwrap();
        assert!(resolve().unwrap_err().to_string().contains("exit status: 7"));
        let mut left: Vec<_> = fs::read_dir(&cache).unwrap().map(|e| e.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["lock"]);
    }

    /// Resolves in the cache beside the program `mvn` of this directory, when it is given.
    const DIRECTORY: &str = "BROWNOUT_TEST_DIRECTORY";

    /// Not a test but the process that the two below watch.
    #[test]
    #[ignore = "other tests run it, in a process of its own"]
    fn resolve_in_a_process_of_its_own() {
        let Some(directory) = env::var_os(DIRECTORY).map(PathBuf::from) else { return };
        let mvn = directory.join("mvn");
        resolve_with(mvn.as_os_str(), &EMPTY, &directory.join("cache"), &|_| (), &|| false).unwrap();
    }

    fn own_process(directory: &Path) -> Command {
        let mut command = Command::new(env::current_exe().unwrap());
        let name = concat!(module_path!(), "::resolve_in_a_process_of_its_own");
        command.args(["--ignored", "--exact", name.split_once("::").unwrap().1]).env(DIRECTORY, directory);
        command.stdout(Stdio::null());
        command
    }

    #[test]
    fn maven_dies_with_a_killed_process() {
        // As Maven's script does: it makes itself known, and becomes the program that works.
        let (directory, _mvn) = maven("echo $$ > ${0%/*}/pid.part; mv ${0%/*}/pid.part ${0%/*}/pid; exec sleep 600");
        let mut us = own_process(directory.path()).spawn().unwrap();
        let patience = Instant::now() + Duration::from_secs(60);
        let pid: libc::pid_t = loop {
            if let Ok(text) = fs::read_to_string(directory.path().join("pid")) {
                break text.trim().parse().unwrap();
            }
            assert!(Instant::now() < patience, "Maven was not started");
            thread::sleep(Duration::from_millis(5));
        };
        us.kill().unwrap();
        us.wait().unwrap();
        // Dead, though perhaps not yet reaped by whoever inherited it: `Z`, or gone.
        let runs = || {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
        };
        let patience = Instant::now() + Duration::from_secs(30);
        while runs() {
            if Instant::now() > patience {
                // SAFETY: kill has no memory effects; the process is the one that this test started.
                unsafe { libc::kill(pid, libc::SIGKILL) };
                panic!("Maven outlived the process that had started it");
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn the_cache_is_readable_for_the_nodes_whatever_the_umask_is() {
        let (directory, _mvn) = maven("touch $out/a.jar");
        let mut command = own_process(directory.path());
        // SAFETY: umask is async-signal-safe and cannot fail.
        unsafe {
            command.pre_exec(|| {
                libc::umask(0o077);
                Ok(())
            })
        };
        assert!(command.status().unwrap().success());
        for (path, mode) in [("cache", 0o755), ("cache/cassandra-0.0.1", 0o755), ("cache/cassandra-0.0.1/a.jar", 0o644)]
        {
            let found = fs::metadata(directory.path().join(path)).unwrap().permissions().mode() & 0o777;
            assert_eq!(found, mode, "{path}: {found:o}");
        }
    }

    #[test]
    fn what_a_killed_process_left_is_removed() {
        let (directory, mvn) = maven("touch $out/a.jar");
        let cache = directory.path().join("cache");
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
