//! A real Cassandra of one node on the loopback of this machine: for what needs a database and no lab.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs, io,
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output},
    thread,
    time::{Duration, Instant},
};

use brownout_cluster::{
    CassandraSpec, Cluster, EnterableHost, Jit, Paths, cache,
    cassandra::{self, Installed, maven},
    java,
};
use brownout_units::Bytes;
use scylla::{client::session::Session, client::session_builder::SessionBuilder, value::Row};

/// For one node on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// The name of the node.
const NAME: &str = "n1";

struct Loopback(Ipv4Addr);

impl EnterableHost for Loopback {
    fn name(&self) -> &str {
        NAME
    }

    fn address(&self) -> Ipv4Addr {
        self.0
    }

    fn enter(&self) -> io::Result<()> {
        Ok(())
    }
}

/// A node that runs until it is dropped; it dies with the test, however that ends.
pub struct Cassandra {
    cluster: Cluster,
    directory: tempfile::TempDir,
    address: Ipv4Addr,
    credentials: Option<(String, String)>,
    has_vectors: bool,
}

impl Cassandra {
    /// Starts a node of this version (`5.0`, `4.1`), resolved by Maven into the user's cache, at this address of the
    /// loopback network, and waits until it answers.
    pub fn start(version: &str, address: Ipv4Addr) -> Cassandra {
        Cassandra::start_with(version, address, "", None)
    }

    /// The same with further lines of cassandra.yaml, and with the name and password that it asks for.
    pub fn start_with(version: &str, address: Ipv4Addr, lines: &str, login: Option<(&str, &str)>) -> Cassandra {
        let cache = cache::directory().unwrap();
        let distribution = maven::resolve(version, &cache, &|line| eprintln!("{line}"), &|| false).unwrap();
        let java = java::find(distribution.java()).unwrap();
        let directory = tempfile::Builder::new().prefix("stress-").tempdir().unwrap();
        let paths =
            Paths { scratch: directory.path().join("scratch"), logs: directory.path().join("logs"), owner: None };
        // What another Cassandra of this machine may have is left to it.
        let jmx_port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let spec = CassandraSpec { jit: Jit::C1, heap: Bytes(448 << 20), jmx_port, ..CassandraSpec::default() };
        let mut prepare = |directories: &brownout_cluster::NodeDirectories| {
            let path = directories.home.join("conf/cassandra.yaml");
            let text = fs::read_to_string(&path)?;
            fs::write(&path, format!("{text}{lines}\n"))?;
            Ok(Vec::new())
        };
        let place = Loopback(address);
        let installed = Installed { distribution, java, archive: None };
        let database = cassandra::Cassandra::new(&spec, &installed, &BTreeMap::new()).unwrap();
        let mut cluster = Cluster::start(Box::new(database), &[&place], &paths, &mut prepare).unwrap();
        let credentials = login.map(|(user, password)| (user.to_owned(), password.to_owned()));
        // Readiness is asked for without a name, or a key.
        if lines.is_empty() {
            cluster.wait_ready(PATIENCE, &|| false, &mut |line| eprintln!("{version}: waiting: {line}")).unwrap();
        }
        let has_vectors = !version.starts_with('4');
        let node = Cassandra { cluster, directory, address, credentials, has_vectors };
        node.wait_listening();
        node
    }

    /// Until it takes connections.
    pub fn wait_listening(&self) {
        let begun = Instant::now();
        while TcpStream::connect_timeout(&self.socket(), Duration::from_secs(1)).is_err() {
            assert!(begun.elapsed() < PATIENCE, "no connection to {}", self.socket());
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// Whether it has the type `vector`: since 5.0.
    pub fn has_vectors(&self) -> bool {
        self.has_vectors
    }

    /// What `-node` is to say.
    pub fn host(&self) -> String {
        self.address.to_string()
    }

    /// Where it answers CQL.
    pub fn socket(&self) -> SocketAddr {
        (self.address, 9042).into()
    }

    /// A directory that goes with the node.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Ends it by SIGKILL.
    pub fn kill(&self) {
        self.cluster.control().kill(NAME, libc::SIGKILL).unwrap();
    }

    /// Starts it again after it was killed, on the same data.
    pub fn start_again(&self) {
        self.cluster.control().start(NAME).unwrap();
        self.wait_listening();
    }

    /// Its own nodetool, run to its end; what it printed.
    pub fn nodetool(&self, arguments: &[&str]) -> String {
        let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let output = self.cluster.control().tool(NAME, &arguments).unwrap().output().unwrap();
        assert!(output.status.success(), "nodetool {arguments:?}: {}", super::both(&output));
        super::text(&output.stdout)
    }

    /// A program that runs nodetool for this node, for `--nodetool`.
    pub fn nodetool_program(&self) -> PathBuf {
        let command: Command = self.cluster.control().tool(NAME, &[]).unwrap();
        let quoted = |text: &OsStr| format!("'{}'", text.to_str().unwrap().replace('\'', "'\\''"));
        let mut script = "#!/bin/sh\n".to_owned();
        for (name, value) in command.get_envs() {
            if let Some(value) = value {
                script.push_str(&format!("export {}={}\n", name.to_str().unwrap(), quoted(value)));
            }
        }
        script.push_str(&format!("exec {}", quoted(command.get_program())));
        for argument in command.get_args() {
            script.push_str(&format!(" {}", quoted(argument)));
        }
        script.push_str(" \"$@\"\n");
        let path = self.directory.path().join("nodetool");
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// Runs statements of CQL, one after the other; the rows of the last.
    pub fn cql(&self, statements: &[&str]) -> Vec<Row> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let session = self.session().await;
            let mut rows = Vec::new();
            for statement in statements {
                let result = session.query_unpaged(*statement, ()).await;
                let result = result.unwrap_or_else(|error| panic!("{statement}: {error}"));
                rows = match result.into_rows_result() {
                    Ok(result) => result.rows::<Row>().unwrap().map(Result::unwrap).collect(),
                    Err(_) => Vec::new(),
                };
            }
            rows
        })
    }

    async fn session(&self) -> Session {
        let mut builder = SessionBuilder::new().known_node_addr(self.socket());
        if let Some((user, password)) = &self.credentials {
            builder = builder.user(user, password);
        }
        let begun = Instant::now();
        loop {
            match builder.build().await {
                Ok(session) => return session,
                Err(error) => assert!(begun.elapsed() < PATIENCE, "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// `brownout stress` with these words, and with `-node` if they have none.
    pub fn stress(&self, words: &[&str]) -> Command {
        let mut command = Command::new(super::BROWNOUT);
        let host = self.host();
        command.arg("stress").args(words).stdin(std::process::Stdio::null());
        if !words.contains(&"-node") {
            command.args(["-node", &host]);
        }
        command
    }

    /// The same, run to its end.
    pub fn run(&self, words: &[&str]) -> Output {
        self.stress(words).output().unwrap()
    }
}
