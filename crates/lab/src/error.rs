use std::{io, path::PathBuf};

use brownout_clock::{ClockError, ntp::NtpError};
use brownout_cluster::{ClusterError, cassandra::ProvisionError, etcd, java::JavaError};
use brownout_containers::ContainersError;
use brownout_disk::DiskError;
use brownout_load::LoadError;
use brownout_network::NetworkError;
use brownout_probe::ProbeError;
use brownout_record::RecordError;
use thiserror::Error;

use crate::experiment::FileError;

/// Why a lab could not do what was asked.
#[derive(Debug, Error)]
pub enum LabError {
    /// The experiment file is wrong.
    #[error(transparent)]
    File(#[from] FileError),
    /// The machine lacks something; the text says what to do.
    #[error("{0}")]
    Machine(String),
    /// The kernel gave no namespaces.
    #[error("cannot make the lab's namespaces: {source}; {}", remedy(source))]
    Namespaces {
        /// What the kernel said.
        source: io::Error,
    },
    /// The lab's own surroundings could not be made.
    #[error("cannot {doing}: {source}; {}", remedy(source))]
    Ground {
        /// What was tried.
        doing: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// A directory could not be shown inside the lab.
    #[error("cannot show {directory} inside the lab: {source}", directory = directory.display())]
    Bind {
        /// The directory.
        directory: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// A file or directory of the run.
    #[error("cannot {doing} {path}: {source}; check the space and the rights there, or choose another directory with --out", path = path.display())]
    Directory {
        /// What was tried.
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// No Java that runs this Cassandra.
    #[error(transparent)]
    Java(#[from] JavaError),
    /// Cassandra could not be had.
    #[error(transparent)]
    Provision(#[from] ProvisionError),
    /// Etcd could not be had.
    #[error(transparent)]
    Etcd(#[from] etcd::ProvisionError),
    /// The network could not be made.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// Containers could not be found, entered or touched.
    #[error(transparent)]
    Containers(#[from] ContainersError),
    /// The links could not be measured.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// The cluster could not be started.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// A clock could not be made wrong, or right again.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// The hosts' clocks could not be asked.
    #[error(transparent)]
    Ntp(#[from] NtpError),
    /// A disk could not be made slow, or quick again.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The load could not be started or went wrong.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The run could not be written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A trial went wrong after its load had begun.
    #[error("{0}")]
    Trial(String),
    /// A run cannot go on.
    #[error("this run cannot be resumed: {0}")]
    Resume(String),
    /// The user ended it.
    #[error("interrupted")]
    Interrupted,
}

impl LabError {
    /// The exit code of the command line for this.
    pub fn exit_code(&self) -> u8 {
        match self {
            LabError::File(_) | LabError::Resume(_) => 2,
            LabError::Interrupted => 130,
            LabError::Trial(_) | LabError::Record(_) => 3,
            _ => 4,
        }
    }
}

/// What to do when the kernel refuses a lab's namespaces or mounts: it depends on who holds the reins.
pub(crate) fn remedy(refusal: &io::Error) -> &'static str {
    let refused = matches!(refusal.raw_os_error(), Some(libc::EPERM | libc::EACCES | libc::ENOSPC | libc::EUSERS));
    if !refused {
        return "`brownout doctor` says what this machine can do";
    }
    if rustix::process::geteuid().is_root() {
        "this root lacks capabilities, as in a container: run the container with --privileged, or with --cap-add \
         SYS_ADMIN --cap-add NET_ADMIN --security-opt seccomp=unconfined --security-opt apparmor=unconfined --device \
         /dev/net/tun"
    } else {
        "this user may not use user namespaces freely: as root, sysctl -w \
         kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu), kernel.unprivileged_userns_clone=1 (older Debian), \
         user.max_user_namespaces=10000, whichever there is; or run as root"
    }
}
