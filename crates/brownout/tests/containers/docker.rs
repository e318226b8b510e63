//! Docker, where a test has one of its own: images made from files of this machine, without a registry, and Compose projects.

use std::{
    collections::BTreeMap,
    fs,
    io::Write,
    net::Ipv4Addr,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

use brownout_cluster::{
    CassandraSpec, Database, Member, Program, Start, cache,
    cassandra::{self, Installed, maven},
    java,
};

use super::{
    apart::network_of,
    common::{both, repository, text},
};

/// Stands in configuration files for the address that a container has.
const PLACEHOLDER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

/// Where nodes work inside of their containers.
const HOME: &str = "/cassandra";

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

/// The jars of Cassandra and a Java for them: from the cache, or brought into it, which takes a way to Maven's repository.
pub fn cassandra() -> Installed {
    let cache = cache::directory().unwrap();
    let distribution = maven::resolve("5.0", &cache, &|line| eprintln!("{line}"), &|| false).unwrap();
    let java = java::find(distribution.java()).unwrap();
    Installed { distribution, java, archive: None }
}

/// Makes the image `cassandra:5.0`, which takes the variables that the example sets as the one of that name in Docker's library
/// does. It holds a start script and a configuration; programs and jars are this machine's, mounted: the mounts are returned.
fn image(directory: &Path) -> Vec<String> {
    let installed = cassandra();
    let database = cassandra::Cassandra::new(&CassandraSpec::default(), &installed, &BTreeMap::new()).unwrap();
    let member = Member {
        name: "node".to_owned(),
        address: PLACEHOLDER,
        client: (PLACEHOLDER, 9042).into(),
        home: HOME.into(),
        logs: format!("{HOME}/logs").into(),
    };
    let members = [member];
    let root = directory.join("image");
    for made in ["usr", "proc", "sys", "dev", "run", "tmp", "etc", "cassandra/conf"] {
        fs::create_dir_all(root.join(made)).unwrap();
    }
    for link in ["bin", "sbin", "lib", "lib64"] {
        symlink(format!("usr/{link}"), root.join(link)).unwrap();
    }
    for (name, text) in database.settings_in_force(&members).files {
        // A container that is started again may have another address.
        let name = if name == "cassandra.yaml" { "template.yaml" } else { name.as_str() };
        fs::write(root.join("cassandra/conf").join(name), text).unwrap();
    }
    // Names are those that Docker knows; without this file they would be asked of it first, and then of /etc/hosts.
    fs::write(root.join("etc/nsswitch.conf"), "hosts: files dns\n").unwrap();
    let start = root.join("docker-entrypoint.sh");
    fs::write(&start, start_script(&database, &members)).unwrap();
    fs::set_permissions(&start, fs::Permissions::from_mode(0o755)).unwrap();

    let mut tar = Command::new("tar").arg("-cC").arg(&root).arg(".").stdout(Stdio::piped()).spawn().unwrap();
    let mut import = Command::new("docker");
    import.args(["import", "--change", "ENTRYPOINT [\"/docker-entrypoint.sh\"]", "-", "cassandra:5.0"]);
    let output = import.stdin(tar.stdout.take().unwrap()).output().unwrap();
    assert!(tar.wait().unwrap().success() && output.status.success(), "{}", both(&output));

    let mut mounts = vec!["/usr".to_owned()];
    // A Java of Debian's has its configuration below /etc; one of others may lie anywhere.
    let etc = fs::read_dir("/etc").unwrap().flatten().map(|entry| entry.path());
    let of_java = etc.filter(|path| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"java")));
    let others = [installed.distribution.root.clone(), fs::canonicalize(&installed.java.home).unwrap()];
    let elsewhere = of_java.chain(others).filter(|path| !path.starts_with("/usr"));
    mounts.extend(elsewhere.map(|path| path.display().to_string()));
    mounts
}

/// Does what the start script of the library's image does with the same variables.
fn start_script(database: &cassandra::Cassandra, members: &[Member]) -> String {
    let command = database.command(members, 0, Start::Again);
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "'\\''"));
    let words: Vec<&str> = command.get_args().map(|word| word.to_str().unwrap()).collect();
    // The heap is said by a variable, and names are known to Docker alone.
    let own = ["-Xms", "-Xmx", "-Djdk.net.hosts.file"];
    let kept = words.into_iter().filter(|word| !own.iter().any(|own| word.starts_with(own)));
    let kept: Vec<String> = kept.map(quoted).collect();
    let directories = database.directories().join(" ");
    format!(
        "#!/bin/sh\n\
         set -eu\n\
         set -- $(hostname -i)\n\
         cd {HOME}\n\
         mkdir -p logs {directories}\n\
         sed -e \"s/{PLACEHOLDER}/$1/g\" -e '/^initial_token:/d' \\\n\
         \x20   -e \"s/^rpc_address:.*/rpc_address: 0.0.0.0\\nbroadcast_rpc_address: $1/\" \\\n\
         \x20   -e \"s/^cluster_name:.*/cluster_name: '$CASSANDRA_CLUSTER_NAME'/\" \\\n\
         \x20   -e \"s/^num_tokens:.*/num_tokens: $CASSANDRA_NUM_TOKENS/\" \\\n\
         \x20   -e \"s/seeds: '[^']*'/seeds: '$CASSANDRA_SEEDS'/\" conf/template.yaml >conf/cassandra.yaml\n\
         exec {} -Xms$MAX_HEAP_SIZE -Xmx$MAX_HEAP_SIZE {}\n",
        quoted(command.get_program().to_str().unwrap()),
        kept.join(" ")
    )
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
