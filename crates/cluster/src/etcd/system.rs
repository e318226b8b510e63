use std::{collections::BTreeMap, path::PathBuf, process::Command};

use super::{Beating, Door, Installed, Plain, Watcher, ask, flags, provision::goarch};
use crate::{
    ClusterError,
    database::{
        ClusterView, Database, Heartbeat, Led, Looker, Member, Program, Question, Roles, Start, SystemSettings,
        version_words,
    },
    kind::DatabaseKind,
    logs,
};

/// Resident memory of a server: 60 to 120 MiB with a small database, more with much to write at once; and some to spare.
const OF_SERVER: u64 = 256 << 20;

/// Memory that `nodes` servers need when loaded, in bytes: to be compared with what is available before anything starts.
pub fn memory_needed(nodes: usize) -> u64 {
    (nodes as u64).saturating_mul(OF_SERVER)
}

/// How an etcd cluster is to be; one server runs on each host it is started on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EtcdSpec {
    /// Flags of every server, without their dashes.
    pub settings: BTreeMap<String, String>,
    /// Flags of single servers, by their names; they come before those of all.
    pub settings_of: BTreeMap<String, BTreeMap<String, String>>,
}

/// etcd, with all that is decided before it starts.
pub struct Etcd {
    spec: EtcdSpec,
    installed: Installed,
    door: Door,
}

impl Etcd {
    /// A cluster of these programs.
    ///
    /// # Errors
    /// When a setting is not allowed.
    pub fn new(spec: &EtcdSpec, installed: &Installed) -> Result<Etcd, ClusterError> {
        for settings in [&spec.settings].into_iter().chain(spec.settings_of.values()) {
            flags::check(settings)?;
        }
        Ok(Etcd { spec: spec.clone(), installed: installed.clone(), door: Door::new(Plain) })
    }

    fn arguments(&self, members: &[Member], index: usize) -> Vec<String> {
        flags::arguments(&self.spec.settings, self.spec.settings_of.get(&members[index].name), members, index)
    }

    /// A program that is told nothing yet.
    fn run(&self, program: PathBuf, member: &Member) -> Command {
        let mut command = Command::new(program);
        // ETCD_NAME and its kind would be settings behind everyone's back. Times of the log are in UTC.
        command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", &member.home).env("TZ", "UTC");
        command
    }
}

impl Database for Etcd {
    fn kind(&self) -> DatabaseKind {
        DatabaseKind::Etcd
    }

    fn program(&self) -> Option<&dyn Program> {
        Some(self)
    }

    fn roles(&self) -> Option<&dyn Roles> {
        Some(&self.door)
    }

    fn answers(&self, members: &[Member], index: usize) -> Result<(), String> {
        ask::answers(&self.door, members[index].client)
    }

    fn view(&self, members: &[Member], index: usize) -> ClusterView {
        ask::view(&self.door, members, index)
    }

    fn rest(&self, members: &[Member], index: usize) -> ClusterView {
        ask::rest(&self.door, members, index)
    }

    fn heartbeat(&self, members: &[Member], index: usize, _: Question) -> Box<dyn Heartbeat> {
        Box::new(Beating::new(self.door.clone(), members[index].client))
    }

    fn looker(&self, members: &[Member], index: usize, clock_is_right: bool) -> Option<Box<dyn Looker>> {
        let log = members[index].logs.join(logs::CONSOLE);
        Some(Box::new(Watcher::new(self.door.clone(), members, index, Some((log, clock_is_right)))))
    }

    fn settings_in_force(&self, members: &[Member]) -> SystemSettings {
        let version = self.installed.version.as_str();
        let of_nodes = members.iter().map(|member| (member.name.as_str(), version));
        let own = self.spec.settings_of.iter().flat_map(|(node, settings)| {
            settings.iter().map(move |(key, value)| (format!("{key} of {node}"), value.clone()))
        });
        SystemSettings {
            system: DatabaseKind::Etcd.word().to_owned(),
            version: version_words(of_nodes.clone()),
            versions: of_nodes.map(|(node, version)| (node.to_owned(), version.to_owned())).collect(),
            origin: self.installed.origin.clone(),
            settings: self.spec.settings.clone().into_iter().chain(own).collect(),
            deviations: flags::deviations(),
            options: self.arguments(members, 0),
            files: BTreeMap::new(),
        }
    }
}

impl Program for Etcd {
    fn directories(&self) -> &[&str] {
        DatabaseKind::Etcd.disks()
    }

    fn reads(&self) -> Vec<PathBuf> {
        vec![self.installed.program.clone()]
    }

    fn check(&self, members: &[Member]) -> Result<(), ClusterError> {
        let unknown =
            self.spec.settings_of.iter().find(|(name, _)| !members.iter().any(|member| member.name == **name));
        if let Some((name, settings)) = unknown {
            let names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
            let why = format!("there is no node '{name}'; the nodes are {}", names.join(", "));
            let key = settings.keys().next().cloned().unwrap_or_default();
            return Err(ClusterError::Setting { database: DatabaseKind::Etcd, key, why });
        }
        match members.iter().find(|member| !flags::is_text(&member.home)) {
            Some(member) => {
                let why = std::io::Error::new(std::io::ErrorKind::InvalidInput, "the path has to be text (UTF-8)");
                Err(ClusterError::files("tell etcd of", &member.home)(why))
            }
            None => Ok(()),
        }
    }

    fn configure(&self, _: &[Member], _: usize) -> Result<(), ClusterError> {
        // All that it is told stands on its command line.
        Ok(())
    }

    fn command(&self, members: &[Member], index: usize, _: Start) -> Command {
        let mut command = self.run(self.installed.program.clone(), &members[index]);
        command.args(self.arguments(members, index)).env("ETCD_UNSUPPORTED_ARCH", goarch());
        command
    }

    fn tool(&self, members: &[Member], index: usize, arguments: &[String]) -> Option<Command> {
        let member = &members[index];
        let mut command = self.run(self.installed.control()?, member);
        let endpoint = flags::client_url(member.address, member.client.port());
        command.arg(format!("--endpoints={endpoint}")).args(arguments).env("ETCDCTL_API", "3");
        Some(command)
    }

    fn log_files(&self) -> &'static [&'static str] {
        &[]
    }
}

impl Roles for Door {
    fn leader(&self, members: &[Member], index: usize) -> Result<Option<Led>, String> {
        ask::leader(self, members, index)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use super::*;

    fn etcd(spec: &EtcdSpec) -> Result<Etcd, ClusterError> {
        let installed = Installed {
            version: "3.6.16".to_owned(),
            program: "/cache/etcd-3.6.16/etcd".into(),
            origin: "built from its Go module".to_owned(),
        };
        Etcd::new(spec, &installed)
    }

    fn members(count: u8) -> Vec<Member> {
        let member = |index: u8| Member {
            name: format!("n{index}"),
            address: Ipv4Addr::new(10, 77, 0, index),
            client: SocketAddr::new(Ipv4Addr::new(10, 77, 0, index).into(), 2379),
            home: format!("/scratch/n{index}").into(),
            logs: format!("/logs/n{index}").into(),
        };
        (1..=count).map(member).collect()
    }

    fn settings(key: &str, value: &str) -> BTreeMap<String, String> {
        BTreeMap::from([(key.to_owned(), value.to_owned())])
    }

    #[test]
    fn what_is_in_force_is_told_with_the_settings_of_single_nodes() {
        let of = |node: &str| BTreeMap::from([(node.to_owned(), settings("snapshot-count", "5000"))]);
        let spec = EtcdSpec { settings: settings("heartbeat-interval", "50"), settings_of: of("n2") };
        let database = etcd(&spec).unwrap();
        let told = database.settings_in_force(&members(3));
        assert_eq!((told.system.as_str(), told.version.as_str(), told.versions.len()), ("etcd", "3.6.16", 3));
        assert_eq!(told.settings["heartbeat-interval"], "50");
        assert_eq!(told.settings["snapshot-count of n2"], "5000");
        assert!(told.options.contains(&"--name=n1".to_owned()));
        assert!(!told.options.iter().any(|option| option.starts_with("--snapshot-count")), "it is n2's alone");
        let command = database.command(&members(3), 1, Start::Again);
        assert!(command.get_args().any(|argument| argument == "--snapshot-count=5000"));
        assert!(database.check(&members(3)).is_ok());
        let error = etcd(&EtcdSpec { settings_of: of("n9"), ..spec }).unwrap().check(&members(3)).unwrap_err();
        assert!(error.to_string().contains("no node 'n9'; the nodes are n1, n2, n3"), "{error}");
    }

    #[test]
    fn the_labs_own_flags_are_refused_for_all_and_for_one() {
        for spec in [
            EtcdSpec { settings: settings("data-dir", "/x"), ..EtcdSpec::default() },
            EtcdSpec { settings_of: BTreeMap::from([("n1".to_owned(), settings("name", "x"))]), ..EtcdSpec::default() },
        ] {
            assert!(matches!(etcd(&spec), Err(ClusterError::Setting { .. })));
        }
    }

    #[test]
    fn directories_of_disk_faults_are_the_servers_own() {
        let database = etcd(&EtcdSpec::default()).unwrap();
        assert_eq!(database.directories(), ["data", "wal"]);
        let flags = database.arguments(&members(1), 0);
        for directory in database.directories() {
            assert!(flags.contains(&format!("--{directory}-dir=/scratch/n1/{directory}/etcd")), "{flags:?}");
        }
    }
}
