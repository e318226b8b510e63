//! etcd's programs on this machine: built from its Go module into the cache, those of the distribution, or the user's own.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{
    error::ProvisionError,
    go,
    program::{TELLS_WITHIN, executable, told},
};
use crate::cache::{CacheError, Lock, UNFINISHED, open_up};

/// What is meant when nothing else is said: the newest 3.6 where Go is found, else the distribution's package.
pub const DEFAULT: &str = "3";

/// A series of versions that this crate knows how to configure, start and ask.
struct Series {
    name: &'static str,
    /// The version that is built when only the series is asked for; none: its modules cannot be built, so it has to be installed.
    built: Option<&'static str>,
}

/// All that are known, newest first.
const ALL: [Series; 4] = [
    Series { name: "3.7", built: Some("3.7.3") },
    Series { name: "3.6", built: Some("3.6.16") },
    Series { name: "3.5", built: Some("3.5.35") },
    Series { name: "3.4", built: None },
];

/// The series that `"3"` means where Go is found.
const NEWEST_MEANT: &str = "3.6";

/// The file beside the programs that says what they were when they were built.
const SUMS: &str = "sha256";
const SERVER: &str = "etcd";
const CONTROL: &str = "etcdctl";
/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wanted {
    /// `3`, a series (`3.6`) or a full version (`3.6.16`).
    Version(String),
    /// This program.
    Binary(PathBuf),
}

/// etcd on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Installed {
    /// The full version: `3.6.16`.
    pub version: String,
    /// The server. Its tool of administration, `etcdctl`, lies beside it if there is one.
    pub program: PathBuf,
    /// Where it came from: "built from its Go module", "installed", "given".
    pub origin: String,
}

impl Installed {
    /// The directory that holds the programs: what must be readable for the user that the nodes run as.
    pub fn root(&self) -> &Path {
        self.program.parent().unwrap_or(Path::new("/"))
    }

    /// The same where that directory is seen as `root`: a lab mounts it elsewhere.
    pub fn seen_at(&self, root: &Path) -> Installed {
        let name = self.program.file_name().unwrap_or(SERVER.as_ref());
        Installed { program: root.join(name), ..self.clone() }
    }

    /// The tool of administration, if there is one.
    pub(super) fn control(&self) -> Option<PathBuf> {
        executable(CONTROL, [self.root().to_owned()])
    }
}

/// What [`check_version`] knows, for a message: "3.7 (3.7.3), …".
pub fn known() -> String {
    let words = |series: &Series| match series.built {
        Some(version) => format!("{} ({version})", series.name),
        None => format!("{} (where it is installed)", series.name),
    };
    ALL.each_ref().map(words).join(", ")
}

/// Whether `asked` names a version that could be had: `3`, a series, or a full version of one.
///
/// # Errors
/// When it does not; the error lists what does.
pub fn check_version(asked: &str) -> Result<(), ProvisionError> {
    if asked == DEFAULT || series_of(asked).is_some() {
        return Ok(());
    }
    Err(ProvisionError::UnknownVersion { asked: asked.to_owned(), known: known() })
}

/// The series that a version is of, be it the series itself.
fn series_of(version: &str) -> Option<&'static Series> {
    ALL.iter().find(|series| match version.strip_prefix(series.name) {
        Some("") => true,
        Some(rest) => rest
            .strip_prefix('.')
            .is_some_and(|patch| !patch.is_empty() && patch.len() < 5 && patch.chars().all(|c| c.is_ascii_digit())),
        None => false,
    })
}

/// The programs that are asked for: from the cache, built into it by the user's Go with the user's settings and proxies, or those
/// that are installed. What is in the cache is verified against what was built, every time; what was damaged since is built anew.
///
/// Processes that build at the same time take turns. `progress` gets one line now and then; `interrupted` is asked several times
/// a second.
///
/// # Errors
/// When the version is not known or cannot be had, Go fails, the cache cannot be written, or on interruption. The cache holds
/// whole programs or none.
pub fn provide(
    wanted: &Wanted,
    cache: &Path,
    progress: &dyn Fn(&str),
    interrupted: &dyn Fn() -> bool,
) -> Result<Installed, ProvisionError> {
    match wanted {
        Wanted::Binary(program) => given(program, interrupted),
        Wanted::Version(asked) => {
            check_version(asked)?;
            let go = go::find(interrupted)?;
            version(asked, cache, go.as_deref(), on_path().as_deref(), progress, interrupted)
        }
    }
}

/// Refuses what [`provide`] could not find, nor begin to build, on this machine; nothing is built.
///
/// # Errors
/// As those of [`provide`].
pub fn refuse(wanted: &Wanted, cache: &Path) -> Result<(), ProvisionError> {
    let asked = match wanted {
        Wanted::Binary(program) => return given(program, &|| false).map(drop),
        Wanted::Version(asked) => asked,
    };
    check_version(asked)?;
    let go = go::find(&|| false)?;
    possible(asked, cache, go.as_deref(), on_path().as_deref())
}

fn given(program: &Path, interrupted: &dyn Fn() -> bool) -> Result<Installed, ProvisionError> {
    let not = |why: String| ProvisionError::NotEtcd { program: program.to_owned(), why };
    let path = fs::canonicalize(program).map_err(|error| not(error.to_string()))?;
    let version = version_of(&path, interrupted)?.map_err(not)?;
    Ok(Installed { version, program: path, origin: format!("given: {}", program.display()) })
}

/// What a version that is asked for may be.
struct Meant<'a> {
    asked: &'a str,
    series: Option<&'static Series>,
    /// The full version that is built; none: its modules cannot be built.
    full: Option<&'a str>,
}

impl<'a> Meant<'a> {
    fn by(asked: &'a str) -> Self {
        let series = series_of(if asked == DEFAULT { NEWEST_MEANT } else { asked });
        let full = series.and_then(|series| match series.built {
            Some(built) if asked == DEFAULT || asked == series.name => Some(built),
            Some(_) => Some(asked),
            None => None,
        });
        Meant { asked, series, full }
    }

    /// The one on PATH, where none was built.
    fn installed(&self, program: Option<&Path>, interrupted: &dyn Fn() -> bool) -> Result<Installed, ProvisionError> {
        let Meant { asked, series, full } = *self;
        let none = |why: String| {
            let remedy = match series.and_then(|series| series.built) {
                Some(_) => {
                    "Go 1.21 or newer (its archive in /usr/local/go, or the distribution's golang-go), which builds it"
                }
                None => "it (apt-get install etcd-server)",
            };
            ProvisionError::None { asked: asked.to_owned(), why, remedy }
        };
        let go_is_no_help = if full.is_some() { "no Go 1.21 or newer is installed, and " } else { "" };
        let Some(program) = program else { return Err(none(format!("{go_is_no_help}no etcd is on PATH"))) };
        let path = fs::canonicalize(program).map_err(|error| none(format!("{}: {error}", program.display())))?;
        let version = version_of(&path, interrupted)?
            .map_err(|why| none(format!("{go_is_no_help}{} is none: {why}", program.display())))?;
        let of = |series: &Series| series_of(&version).is_some_and(|of| of.name == series.name);
        let fits =
            asked == DEFAULT || version == asked || series.is_some_and(|series| asked == series.name && of(series));
        if !fits {
            return Err(none(format!("{go_is_no_help}{} is {version}", program.display())));
        }
        Ok(Installed { version, program: path, origin: format!("installed: {}", program.display()) })
    }
}

/// Refuses a version that is neither in the cache, nor can be built, nor is installed.
fn possible(asked: &str, cache: &Path, go: Option<&Path>, installed: Option<&Path>) -> Result<(), ProvisionError> {
    let meant = Meant::by(asked);
    match meant.full {
        Some(full) if go.is_some() || is_intact(&root_of(full, cache)) => Ok(()),
        _ => meant.installed(installed, &|| false).map(drop),
    }
}

/// The first etcd on PATH.
fn on_path() -> Option<PathBuf> {
    executable(SERVER, env::split_paths(&env::var_os("PATH").unwrap_or_default()))
}

fn version(
    asked: &str,
    cache: &Path,
    go: Option<&Path>,
    installed: Option<&Path>,
    progress: &dyn Fn(&str),
    interrupted: &dyn Fn() -> bool,
) -> Result<Installed, ProvisionError> {
    let meant = Meant::by(asked);
    if let Some(full) = meant.full
        && let Some(built) = built(full, cache, go, progress, interrupted)?
    {
        return Ok(built);
    }
    meant.installed(installed, interrupted)
}

/// Where a version is kept.
fn root_of(version: &str, cache: &Path) -> PathBuf {
    cache.join(format!("etcd-{version}"))
}

/// That version from the cache, or built into it; none where it is not there and there is no Go.
fn built(
    version: &str,
    cache: &Path,
    go: Option<&Path>,
    progress: &dyn Fn(&str),
    interrupted: &dyn Fn() -> bool,
) -> Result<Option<Installed>, ProvisionError> {
    let root = std::path::absolute(root_of(version, cache)).map_err(CacheError::files("find a path", cache))?;
    let installed = Installed {
        version: version.to_owned(),
        program: root.join(SERVER),
        origin: "built from its Go module, whose checksums Go has verified".to_owned(),
    };
    if is_intact(&root) {
        return Ok(Some(installed));
    }
    let Some(go) = go else { return Ok(None) };
    let cache = root.parent().unwrap_or(cache);
    let Some(_lock) = Lock::take(cache, &|| !interrupted())? else { return Err(ProvisionError::Interrupted) };
    // Another process may have been first while we waited.
    if is_intact(&root) {
        return Ok(Some(installed));
    }
    let unfinished = tempfile::Builder::new()
        .prefix(UNFINISHED)
        .tempdir_in(cache)
        .map_err(CacheError::files("create a directory", cache))?;
    if root.exists() {
        progress(&format!("the programs in {} were changed or damaged: building them again", root.display()));
        fs::rename(&root, unfinished.path().join("damaged"))
            .map_err(CacheError::files("move damaged programs aside", &root))?;
    }
    let programs = unfinished.path().join("programs");
    fs::create_dir(&programs).map_err(CacheError::files("create a directory", &programs))?;
    go::build(go, version, &programs, progress, interrupted)?;
    let is = version_of(&programs.join(SERVER), interrupted)?;
    if is.as_deref() != Ok(version) {
        let what = match is {
            Ok(other) => format!("what it built says that it is {other}"),
            Err(why) => format!("what it built does not run: {why}"),
        };
        return Err(ProvisionError::Build { version: version.to_owned(), what, remedy: None });
    }
    let sums = programs.join(SUMS);
    fs::write(&sums, sums_of(&programs).map_err(CacheError::files("read the programs", &programs))?)
        .map_err(CacheError::files("write", &sums))?;
    for path in [&sums, &programs] {
        open_up(path).map_err(CacheError::files("open up", path))?;
    }
    fs::rename(&programs, &root).map_err(CacheError::files("move the programs into place", &root))?;
    Ok(Some(installed))
}

/// Whether the programs are those that were built.
fn is_intact(root: &Path) -> bool {
    let sums = fs::read_to_string(root.join(SUMS));
    sums.is_ok_and(|sums| sums_of(root).is_ok_and(|now| now == sums) && root.join(SERVER).is_file())
}

/// SHA-256 and name of each program, as `sha256sum` prints them.
fn sums_of(root: &Path) -> std::io::Result<String> {
    let mut sums = String::new();
    for name in [SERVER, CONTROL] {
        let path = root.join(name);
        if path.exists() {
            let sum = Sha256::digest(fs::read(&path)?);
            let hex: String = sum.iter().map(|byte| format!("{byte:02x}")).collect();
            sums.push_str(&format!("{hex}  {name}\n"));
        }
    }
    Ok(sums)
}

/// The version that a server says it has; or why that is none that can be used.
///
/// # Errors
/// On interruption alone.
fn version_of(program: &Path, interrupted: &dyn Fn() -> bool) -> Result<Result<String, String>, ProvisionError> {
    let mut command = Command::new(program);
    // Its own variables would be settings.
    command.arg("--version").env_clear().env("ETCD_UNSUPPORTED_ARCH", goarch());
    let output = told(&mut command, TELLS_WITHIN, interrupted)?;
    Ok(output.and_then(|output| version_in(&output)))
}

/// The same of what it has said.
fn version_in(output: &Output) -> Result<String, String> {
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.lines().find_map(|line| line.trim().strip_prefix("etcd Version: "));
    let Some(version) = version.map(|version| version.trim().to_owned()) else {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = text.lines().chain(said.lines()).find(|line| !line.trim().is_empty()).unwrap_or("nothing");
        return Err(format!("asked for its version, it says {said:?} ({})", output.status));
    };
    if series_of(&version).is_none() {
        return Err(format!("it is etcd {version}"));
    }
    Ok(version)
}

/// This machine's architecture as Go calls it: 3.4 runs on some only when it is told to.
pub(super) fn goarch() -> &'static str {
    match env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::{os::unix::fs::PermissionsExt, time::Duration};

    use super::*;

    fn script(directory: &Path, name: &str, text: &str) -> PathBuf {
        let path = directory.join(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn etcd(directory: &Path, version: &str) -> PathBuf {
        script(directory, "etcd", &format!("echo 'etcd Version: {version}'; echo 'Git SHA: x'"))
    }

    /// A Go that builds servers of 3.6.16, whatever it is asked for.
    fn go(directory: &Path) -> PathBuf {
        let server = "printf '#!/bin/sh\\necho etcd Version: 3.6.16\\n' >\"$out\"; chmod 755 \"$out\"";
        let find_out = "while [ $# -gt 0 ]; do case $1 in -o) out=$2;; esac; shift; done";
        script(directory, "go", &format!("{find_out}; [ -z \"$out\" ] || {{ {server}; }}"))
    }

    fn quietly(asked: &str, cache: &Path, go: Option<&Path>, etcd: Option<&Path>) -> Result<Installed, ProvisionError> {
        version(asked, cache, go, etcd, &|_| (), &|| false)
    }

    #[test]
    fn versions_of_known_series_are_known_and_others_are_refused_with_the_list() {
        for asked in ["3", "3.4", "3.5", "3.6", "3.7", "3.4.23", "3.6.0", "3.6.16", "3.7.3"] {
            check_version(asked).unwrap();
        }
        for asked in ["", "4", "3.3", "3.60", "3.6.", "3.6.x", "3.6.1-rc.1", "latest", "2.3.8", "3.6.16.1"] {
            let error = check_version(asked).unwrap_err().to_string();
            assert!(error.contains("3.6 (3.6.16), 3.5 (3.5.35), 3.4 (where it is installed)"), "{error}");
        }
    }

    #[test]
    fn what_is_asked_for_is_built_once_and_built_again_when_it_was_damaged() {
        let directory = tempfile::tempdir().unwrap();
        let (go, cache) = (go(directory.path()), directory.path().join("cache"));
        let built = quietly("3", &cache, Some(&go), None).unwrap();
        assert_eq!((built.version.as_str(), built.root()), ("3.6.16", cache.join("etcd-3.6.16").as_path()));
        assert!(built.control().is_some());
        assert_eq!(built.seen_at(Path::new("/x")).program, Path::new("/x/etcd"));
        possible("3", &cache, None, None).unwrap();
        possible("3.5", &cache, Some(&go), None).unwrap();
        // From now on no Go is needed.
        assert_eq!(quietly("3.6", &cache, None, None).unwrap(), built);
        fs::write(&built.program, "changed").unwrap();
        assert!(quietly("3.6", &cache, None, None).is_err());
        assert_eq!(quietly("3.6.16", &cache, Some(&go), None).unwrap(), built);
        assert_eq!(version_of(&built.program, &|| false).unwrap().unwrap(), "3.6.16");
        let error = quietly("3.5", &cache, Some(&go), None).unwrap_err().to_string();
        assert!(error.contains("3.5.35: what it built says that it is 3.6.16"), "{error}");
        let mut left: Vec<_> = fs::read_dir(&cache).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["etcd-3.6.16", "lock"]);
    }

    #[test]
    fn without_go_the_installed_one_will_do_if_it_is_of_the_version_that_is_asked_for() {
        let directory = tempfile::tempdir().unwrap();
        let cache = directory.path().join("cache");
        let old = etcd(directory.path(), "3.4.23");
        for asked in ["3", "3.4", "3.4.23"] {
            let found = quietly(asked, &cache, None, Some(&old)).unwrap();
            possible(asked, &cache, None, Some(&old)).unwrap();
            assert_eq!(found.version, "3.4.23");
            assert!(found.origin.starts_with("installed: "), "{}", found.origin);
        }
        for (asked, installed, said) in [
            ("3.6", Some(&old), "no Go 1.21 or newer is installed, and "),
            ("3.6", Some(&old), "is 3.4.23; install Go"),
            ("3.4.9", Some(&old), "is 3.4.23; install it (apt-get install etcd-server)"),
            ("3", None, "no etcd is on PATH; install Go"),
        ] {
            let installed = installed.map(PathBuf::as_path);
            let error = quietly(asked, &cache, None, installed).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
            // What a run would say, a look says before it.
            assert_eq!(possible(asked, &cache, None, installed).unwrap_err().to_string(), error);
        }
    }

    #[test]
    fn a_program_that_is_given_has_to_be_an_etcd_of_a_known_series() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(given(&etcd(directory.path(), "3.5.9"), &|| false).unwrap().version, "3.5.9");
        for (program, said) in [
            (etcd(directory.path(), "3.3.27"), "it is etcd 3.3.27"),
            (script(directory.path(), "other", "echo hello; exit 3"), "it says \"hello\" (exit status: 3)"),
            (directory.path().join("none"), "No such file"),
        ] {
            let error = given(&program, &|| false).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn a_program_that_does_not_tell_its_version_is_ended_and_so_is_one_that_is_interrupted() {
        let directory = tempfile::tempdir().unwrap();
        let silent = script(directory.path(), "etcd", "sleep 300; true");
        let told = told(&mut Command::new(&silent), Duration::from_secs(1), &|| false).unwrap();
        assert_eq!(told.unwrap_err(), "it does not report its version within 1 s");
        let interrupted = given(&silent, &|| true);
        assert!(matches!(interrupted, Err(ProvisionError::Interrupted)), "{interrupted:?}");
    }
}
