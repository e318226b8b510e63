//! etcd built from its Go module.
//!
//! `go install` of it fails: its `go.mod` replaces modules. So a module of our own, whose only program calls etcd's main
//! function, requires it; Go verifies what it fetches against its checksum database.

use std::{
    env,
    ffi::OsStr,
    fs,
    io::{BufRead, BufReader},
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process_group};

use super::{
    error::ProvisionError,
    program::{TELLS_WITHIN, executable, told},
};
use crate::{cache::CacheError, confine::die_with_us};

/// The programs: what each is called, the module that has its main function, and a program that calls it.
const SERVER: Program = Program {
    name: "etcd",
    module: "go.etcd.io/etcd/server/v3",
    text: "package main\n\nimport (\n\t\"os\"\n\n\t\"go.etcd.io/etcd/server/v3/etcdmain\"\n)\n\nfunc main() {\n\tetcdmain.Main(os.Args)\n}\n",
};
const CONTROL: Program = Program {
    name: "etcdctl",
    module: "go.etcd.io/etcd/etcdctl/v3",
    text: "package main\n\nimport \"go.etcd.io/etcd/etcdctl/v3/ctlv3\"\n\nfunc main() {\n\tctlv3.MustStart()\n}\n",
};

struct Program {
    name: &'static str,
    module: &'static str,
    text: &'static str,
}

/// The first minor version of Go 1 that fetches the Go which a module needs, if that is a newer one.
const SINCE: u32 = 21;

/// Go 1.21 or newer, if it is installed: on PATH, or where its own archive and Debian put it.
///
/// # Errors
/// On interruption alone.
pub(super) fn find(interrupted: &dyn Fn() -> bool) -> Result<Option<PathBuf>, ProvisionError> {
    let path = env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/local/go/bin", "/usr/lib/go/bin"].map(PathBuf::from);
    for go in env::split_paths(&path).chain(usual).filter_map(|directory| executable("go", [directory])) {
        if is_new_enough(&go, interrupted)? {
            return Ok(Some(go));
        }
    }
    Ok(None)
}

fn is_new_enough(go: &Path, interrupted: &dyn Fn() -> bool) -> Result<bool, ProvisionError> {
    let output = told(Command::new(go).arg("version"), TELLS_WITHIN, interrupted)?;
    let version = |output: Output| minor(&String::from_utf8_lossy(&output.stdout));
    Ok(output.ok().and_then(version).is_some_and(|minor| minor >= SINCE))
}

/// 26 of `go version go1.26.8 linux/amd64`.
fn minor(version: &str) -> Option<u32> {
    let (_, rest) = version.split_once(" go1.")?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// Builds etcd, and its tool of administration if that can be built, in `directory`, which is empty and will hold nothing else than
/// these two programs and what Go needs to build them.
pub(super) fn build(
    go: &Path,
    version: &str,
    directory: &Path,
    progress: &dyn Fn(&str),
    interrupted: &dyn Fn() -> bool,
) -> Result<(), ProvisionError> {
    let work = directory.join("module");
    fs::create_dir(&work).map_err(CacheError::files("create a directory", &work))?;
    let module = work.join("go.mod");
    fs::write(&module, "module brownout/etcd\n\ngo 1.21\n").map_err(CacheError::files("write", &module))?;
    progress(&format!(
        "building etcd {version} with Go (up to a minute, and some 100 MB of modules when nothing is there yet)"
    ));
    let run = |arguments: &[&OsStr]| run(go, version, &work, arguments, progress, interrupted);
    for program in [SERVER, CONTROL] {
        let main = work.join(program.name);
        let source = main.join("main.go");
        fs::create_dir(&main).map_err(CacheError::files("create a directory", &main))?;
        fs::write(&source, program.text).map_err(CacheError::files("write", &source))?;
        let wanted = format!("{}@v{version}", program.module);
        let (target, package) = (directory.join(program.name), format!("./{}", program.name));
        let built = run(&[OsStr::new("get"), OsStr::new(&wanted)]).and_then(|()| {
            let [build, update, trim, to] = ["build", "-mod=mod", "-trimpath", "-o"].map(OsStr::new);
            run(&[build, update, trim, to, target.as_os_str(), OsStr::new(&package)])
        });
        match built {
            Ok(()) => {}
            Err(ProvisionError::Interrupted) => return Err(ProvisionError::Interrupted),
            // Servers run without it.
            Err(error) if program.name == CONTROL.name => {
                progress(&format!("etcdctl {version} could not be built ({error}); there is none in the lab"));
                continue;
            }
            Err(error) => return Err(error),
        }
        fs::set_permissions(&target, fs::Permissions::from_mode(0o755))
            .map_err(CacheError::files("open up", &target))?;
    }
    fs::remove_dir_all(&work).map_err(CacheError::files("remove a directory", &work))?;
    Ok(())
}

fn run(
    go: &Path,
    version: &str,
    directory: &Path,
    arguments: &[&OsStr],
    progress: &dyn Fn(&str),
    interrupted: &dyn Fn() -> bool,
) -> Result<(), ProvisionError> {
    let failed = |what: String| {
        let remedy = remedy(&what);
        ProvisionError::Build { version: version.to_owned(), what, remedy }
    };
    let mut command = Command::new(go);
    command.args(arguments).current_dir(directory);
    // What stands around the cache is no part of this module; and a program without C runs wherever it is seen.
    command.envs([("GOWORK", "off"), ("GO111MODULE", "on"), ("CGO_ENABLED", "0")]).env_remove("GOFLAGS");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    // A group of its own: whatever Go starts has to end on interruption.
    command.process_group(0);
    die_with_us(&mut command);
    let child = command.spawn().map_err(|error| failed(format!("{}: {error}", go.display())))?;
    let mut group = Group(child);
    let (to_us, lines) = mpsc::channel();
    let output = group.0.stderr.take();
    thread::spawn(move || {
        let lines = output.into_iter().flat_map(|output| BufReader::new(output).lines());
        lines.map_while(Result::ok).try_for_each(|line| to_us.send(line))
    });
    let (mut fetched, mut words) = (0, Vec::new());
    loop {
        if interrupted() {
            return Err(ProvisionError::Interrupted);
        }
        match lines.recv_timeout(Duration::from_millis(200)) {
            Ok(line) if line.starts_with("go: downloading ") => {
                fetched += 1;
                if fetched % 20 == 0 {
                    progress(&format!("Go has fetched {fetched} modules"));
                }
            }
            // What it does to go.mod, and which Go it takes, is no error.
            Ok(line) if ["go: added ", "go: upgraded ", "; switching to "].iter().any(|sign| line.contains(sign)) => {}
            Ok(line) => words.push(line),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    match group.0.wait() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) if words.is_empty() => Err(failed(status.to_string())),
        Ok(_) => Err(failed(words.into_iter().take(6).collect::<Vec<_>>().join("\n"))),
        Err(error) => Err(failed(error.to_string())),
    }
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
        (
            "checksum mismatch",
            "a module is not what was published: try again; if it stays, the proxy (GOPROXY) alters modules",
        ),
        (
            "GOTOOLCHAIN",
            "this Go is too old for that version and may not fetch another: install a newer one, or unset GOTOOLCHAIN",
        ),
        ("unknown revision", "there is no such version: write etcd: \"3.6\""),
        ("dial tcp", "no connection: check the network, or the proxy that GOPROXY names"),
        ("no such host", "no connection: check the network, or the proxy that GOPROXY names"),
        ("no space left", "the disk of Go's caches is full: set GOCACHE and GOMODCACHE to directories on another"),
    ];
    KNOWN.iter().find(|(sign, _)| words.contains(sign)).map(|(_, remedy)| *remedy)
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    /// A program that is called as Go would be.
    fn go(script: &str) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("go");
        let find_out = "while [ $# -gt 0 ]; do case $1 in get) get=1;; -o) out=$2;; esac; last=$1; shift; done";
        fs::write(&path, format!("#!/bin/sh\n{find_out}\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(directory.path().join("out")).unwrap();
        (directory, path)
    }

    fn built(script: &str, interrupted: &dyn Fn() -> bool) -> (Result<(), ProvisionError>, Vec<String>, String) {
        let (directory, go) = go(script);
        let (out, said) = (directory.path().join("out"), RefCell::new(String::new()));
        let result = build(&go, "3.6.16", &out, &|line| said.borrow_mut().push_str(line), interrupted);
        let mut left: Vec<String> =
            fs::read_dir(out).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        left.sort();
        (result, left, said.into_inner())
    }

    #[test]
    fn a_go_that_is_too_old_to_fetch_a_newer_one_is_passed_by() {
        assert_eq!(minor("go version go1.26.8 linux/amd64\n"), Some(26));
        assert_eq!(minor("go version devel go1.25-a1b2c3 linux/arm64"), Some(25));
        assert_eq!(minor("no go"), None);
        for (version, fits) in [("1.19.8", false), ("1.21", true)] {
            let (_directory, go) = go(&format!("echo go version go{version} linux/amd64"));
            assert_eq!(is_new_enough(&go, &|| false).unwrap(), fits, "{version}");
        }
    }

    #[test]
    fn both_programs_are_built_and_nothing_else_is_left() {
        let (result, left, _) = built("[ -z \"$out\" ] || : >\"$out\"", &|| false);
        result.unwrap();
        assert_eq!(left, ["etcd", "etcdctl"]);
    }

    #[test]
    fn servers_can_be_had_without_the_tool_of_administration_and_not_the_other_way_round() {
        let script = "case $last in *etcdctl*) echo no >&2; exit 1;; esac; [ -z \"$out\" ] || : >\"$out\"";
        let (result, left, said) = built(script, &|| false);
        result.unwrap();
        assert_eq!(left, ["etcd"]);
        assert!(said.contains("etcdctl 3.6.16 could not be built"), "{said}");
        let checksum = ("verifying: checksum mismatch", "GOPROXY");
        for (words, remedy) in [("dial tcp: lookup", "check the network"), checksum, ("x", "3.6.16: x")] {
            let (result, ..) = built(&format!("echo '{words}' >&2; exit 1"), &|| false);
            let error = result.unwrap_err().to_string();
            assert!(error.contains(remedy) && error.contains(words), "{error}");
        }
    }

    #[test]
    fn an_interruption_ends_go_and_what_it_started() {
        let asked = Cell::new(0);
        let third = || asked.replace(asked.get() + 1) > 2;
        let (result, ..) = built("sleep 300; true", &third);
        assert!(matches!(result, Err(ProvisionError::Interrupted)), "{result:?}");
    }
}
