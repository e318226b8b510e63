//! Docker, where a test has one of its own: images made from files of this machine, without a registry, and Compose projects.

use std::{
    fs,
    io::Write,
    net::Ipv4Addr,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

use super::{
    apart::network_of,
    common::{both, packed, repository, text},
};

/// Open files that the example allows each of its nodes.
const FILES: u64 = 100_000;

/// Runs to its end, and has to end well.
pub fn done(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", both(&output));
    text(&output.stdout)
}

pub fn docker(words: &[&str]) -> String {
    done(Command::new("docker").args(words))
}

/// Makes the image `cassandra:5.0`, which takes the variables that the example sets as the one of that name in Docker's library
/// does. It holds a start script and a configuration; programs and jars are this machine's, mounted: the mounts are returned.
fn image(directory: &Path) -> Vec<String> {
    let root = directory.join("image");
    for made in ["usr", "proc", "sys", "dev", "run", "tmp", "etc"] {
        fs::create_dir_all(root.join(made)).unwrap();
    }
    for link in ["bin", "sbin", "lib", "lib64"] {
        symlink(format!("usr/{link}"), root.join(link)).unwrap();
    }
    // Names are those that Docker knows; without this file they would be asked of it first, and then of /etc/hosts.
    fs::write(root.join("etc/nsswitch.conf"), "hosts: files dns\n").unwrap();
    let mounts = packed::write(&root);

    let mut tar = Command::new("tar").arg("-cC").arg(&root).arg(".").stdout(Stdio::piped()).spawn().unwrap();
    let mut import = Command::new("docker");
    import.args(["import", "--change", "ENTRYPOINT [\"/cassandra/start\"]", "-", "cassandra:5.0"]);
    let output = import.stdin(tar.stdout.take().unwrap()).output().unwrap();
    assert!(tar.wait().unwrap().success() && output.status.success(), "{}", both(&output));

    mounts.iter().map(|mount| mount.display().to_string()).collect()
}

/// The Compose project of the example, named `shop`, which is up until this is dropped.
pub struct Project {
    directory: tempfile::TempDir,
    files: Vec<PathBuf>,
}

impl Project {
    /// Starts it as it is, on an image made here, and waits until all nodes answer.
    pub fn up() -> Project {
        Project::up_with(&[])
    }

    /// The same with these overrides.
    pub fn up_with(overrides: &[PathBuf]) -> Project {
        let directory = tempfile::tempdir().unwrap();
        let mounts = image(directory.path());
        let example = repository().join("examples/compose/docker-compose.yml");
        let own = directory.path().join("mounts.yml");
        let mut file = fs::File::create(&own).unwrap();
        writeln!(file, "services:").unwrap();
        for service in SERVICES {
            writeln!(file, "  {service}:\n    volumes:").unwrap();
            mounts.iter().for_each(|mount| writeln!(file, "      - {mount}:{mount}:ro").unwrap());
            // A Docker that may not raise the machine's own limit cannot give a container more.
            let files = most_open_files().min(FILES);
            writeln!(file, "    ulimits:\n      nofile: {{ soft: {files}, hard: {files} }}").unwrap();
        }
        let files = [&[example, own][..], overrides].concat();
        let project = Project { directory, files };
        let output = project.compose(&["up", "-d"]);
        assert!(output.status.success(), "{}", both(&output));
        let begun = Instant::now();
        for service in SERVICES {
            while docker(&["inspect", "--format", "{{.State.Health.Status}}", service]).trim() != "healthy" {
                let logs = || both(&project.compose(&["logs", "--tail=50"]));
                assert!(begun.elapsed() < Duration::from_secs(600), "{service} is not healthy: {}", logs());
                std::thread::sleep(Duration::from_secs(1));
            }
        }
        project
    }

    /// Docker's own Compose, or the program of that name that was before.
    pub fn compose(&self, words: &[&str]) -> Output {
        let is_plugin = Command::new("docker").args(["compose", "version"]).output().unwrap().status.success();
        let mut command = Command::new(if is_plugin { "docker" } else { "docker-compose" });
        command.args(is_plugin.then_some("compose"));
        command.args(["--project-name", "shop"]);
        for file in &self.files {
            command.arg("--file").arg(file);
        }
        command.args(words).stdin(Stdio::null()).output().unwrap()
    }

    /// A directory that goes with the project.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        self.compose(&["down", "--volumes", "-t", "2"]);
    }
}

/// Open files that a process of this machine may have at most, as it is limited (proc_pid_limits(5)).
fn most_open_files() -> u64 {
    let limits = fs::read_to_string("/proc/self/limits").unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    line.split_whitespace().nth(4).unwrap().parse().unwrap_or(u64::MAX)
}

/// The services of the example, which are its containers' names, too.
pub const SERVICES: [&str; 3] = ["cassandra_a", "cassandra_b", "cassandra_c"];

/// The network namespace that a container has now.
pub fn network(container: &str) -> PathBuf {
    network_of(docker(&["inspect", "--format", "{{.State.Pid}}", container]).trim().parse().unwrap())
}

/// The address of a container.
pub fn address(container: &str) -> Ipv4Addr {
    let told = docker(&["inspect", "--format", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", container]);
    told.trim().parse().unwrap_or_else(|_| panic!("{container} has the address '{told}'"))
}
