//! The parts of a cluster that it shares with its controls.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
    path::PathBuf,
    process::{Command, Stdio},
    sync::Arc,
};

use brownout_base::Change;

use crate::{
    ClusterError, Hands, Owner, Variables,
    confine::confine,
    database::{Database, Member, Program, Start},
    host::Network,
    logs,
    process::Process,
    supervisor::Supervisor,
};

/// What the cluster shares with those who control its nodes; one of each per node, in the order of the places.
pub(crate) struct Parts {
    pub(crate) database: Box<dyn Database>,
    pub(crate) members: Vec<Member>,
    pub(crate) networks: Vec<Network>,
    pub(crate) supervisors: Vec<Arc<Supervisor>>,
    /// Of nodes that were not started here: who can touch their processes, if anybody can.
    pub(crate) hands: Vec<Option<Arc<dyn Hands>>>,
    pub(crate) variables: Vec<Variables>,
    pub(crate) owner: Option<Owner>,
}

impl Parts {
    /// How a node is run by us.
    pub(crate) fn program(&self, index: usize) -> Result<&dyn Program, ClusterError> {
        let not_ours = || ClusterError::NotOurs { node: self.members[index].name.clone() };
        self.database.program().ok_or_else(not_ours)
    }

    /// Starts the process of a node that has none; says when its program began to run.
    pub(crate) fn start(&self, index: usize, start: Start) -> Result<Change, ClusterError> {
        let runs = self.program(index)?;
        self.supervisors[index].start(|| {
            let member = &self.members[index];
            let mut command = runs.command(&self.members, index, start);
            command.envs(self.variables[index].iter().map(|(name, value)| (name, value)));
            let (stdout, stderr) = self.console(member)?;
            command.stdin(Stdio::null()).stdout(stdout).stderr(stderr);
            let program = PathBuf::from(command.get_program());
            let failed = |source| ClusterError::Spawn { node: member.name.clone(), program, source };
            let spawn = |mut command: Command| {
                self.confine(index, &mut command)?;
                Process::spawn(command, &member.name)
            };
            spawn(command).map_err(failed)
        })
    }

    /// Makes `command` run as the node does: in its directory, its network, as its user, and without rights.
    pub(crate) fn confine(&self, index: usize, command: &mut Command) -> io::Result<()> {
        let member = &self.members[index];
        command.current_dir(&member.home);
        self.networks[index].prepare(command);
        confine(command, &member.name, self.owner)
    }

    fn console(&self, member: &Member) -> Result<(File, File), ClusterError> {
        let path = member.logs.join(logs::CONSOLE);
        let open = || -> io::Result<(File, File)> {
            // The directory is the node's: what it puts there must not lead us elsewhere.
            let file = OpenOptions::new().create(true).append(true).custom_flags(libc::O_NOFOLLOW).open(&path)?;
            Ok((file.try_clone()?, file))
        };
        open().map_err(ClusterError::files("open", &path))
    }
}
