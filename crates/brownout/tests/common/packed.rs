//! Cassandra as the image has it that people run in containers: told by variables, at the address that the container has. It is made
//! of files of this machine, since there is no registry.

use std::{
    collections::BTreeMap,
    fs,
    net::Ipv4Addr,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use brownout_cluster::{
    CassandraSpec, Database, Member, Program, Start, cache,
    cassandra::{self, Installed, maven},
    java,
};

/// Stands in configuration files for the address that a container has.
const PLACEHOLDER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// Where nodes work inside of their containers.
const HOME: &str = "/cassandra";

/// The jars of Cassandra and a Java for them: from the cache, or brought into it, which takes a way to Maven's repository.
pub fn cassandra() -> Installed {
    let cache = cache::directory().unwrap();
    let distribution = maven::resolve("5.0", &cache, &|line| eprintln!("{line}"), &|| false).unwrap();
    let java = java::find(distribution.java()).unwrap();
    Installed { distribution, java, archive: None }
}

/// Writes what a container has to have below its root: `/cassandra/start`, which starts a node, and a configuration. Programs and jars
/// are this machine's: the directories are returned that have to be mounted where they are.
pub fn write(root: &Path) -> Vec<PathBuf> {
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
    let home = root.join(HOME.trim_start_matches('/'));
    fs::create_dir_all(home.join("conf")).unwrap();
    for (name, text) in database.settings_in_force(&members).files {
        // A container that is started again may have another address.
        let name = if name == "cassandra.yaml" { "template.yaml" } else { name.as_str() };
        fs::write(home.join("conf").join(name), text).unwrap();
    }
    let start = home.join("start");
    fs::write(&start, start_script(&database, &members)).unwrap();
    fs::set_permissions(&start, fs::Permissions::from_mode(0o755)).unwrap();

    // A Java of Debian's has its configuration below /etc; one of others may lie anywhere.
    let etc = fs::read_dir("/etc").unwrap().flatten().map(|entry| entry.path());
    let of_java = etc.filter(|path| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"java")));
    let others = [installed.distribution.root.clone(), fs::canonicalize(&installed.java.home).unwrap()];
    let elsewhere = of_java.chain(others).filter(|path| !path.starts_with("/usr"));
    std::iter::once(PathBuf::from("/usr")).chain(elsewhere).collect()
}

/// Does what the start script of that image does with the same variables.
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
