//! The directories of a cluster's nodes.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt, chown},
    path::PathBuf,
};

use crate::{ClusterError, DatabaseKind, EnterableHost, Owner, database::Member};

/// Where a cluster's files go, and whose they are.
#[derive(Debug, Clone)]
pub struct Paths {
    /// A directory per node is made here, for its configuration and data. Must be reachable for `owner`.
    pub scratch: PathBuf,
    /// A directory per node is made here, for its logs, which outlive the cluster. Must be reachable for `owner`.
    pub logs: PathBuf,
    /// The user that the nodes run as; `None`: the one we are. Anything but `None` takes root.
    pub owner: Option<Owner>,
}

/// The directories of one node. They are there, belong to the user that the node will run as, and are empty but for its
/// configuration in `home`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeDirectories {
    /// The node's name.
    pub name: String,
    /// All that is its own but for its logs.
    pub home: PathBuf,
    /// Those in it that a disk fault can name ([`DatabaseKind::disks`]), by that name.
    pub disks: Vec<(&'static str, PathBuf)>,
    /// Its logs, which outlive it.
    pub logs: PathBuf,
}

impl NodeDirectories {
    pub(crate) fn of(kind: DatabaseKind, member: &Member) -> NodeDirectories {
        NodeDirectories {
            name: member.name.clone(),
            home: member.home.clone(),
            disks: kind.disks().iter().map(|name| (*name, member.home.join(name))).collect(),
            logs: member.logs.clone(),
        }
    }
}

/// Environment variables, by name.
pub type Variables = Vec<(OsString, OsString)>;

pub(crate) fn check_names(hosts: &[&dyn EnterableHost]) -> Result<(), ClusterError> {
    if hosts.is_empty() {
        return Err(ClusterError::NoHosts);
    }
    let (mut names, mut addresses) = (BTreeSet::new(), BTreeSet::new());
    for host in hosts {
        // The name becomes a directory and a host name.
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if host.name().is_empty() || host.name().len() > 63 || !host.name().chars().all(plain) {
            return Err(ClusterError::Name(host.name().to_owned()));
        }
        if !names.insert(host.name()) {
            return Err(ClusterError::SameHost(format!("the name {}", host.name())));
        }
        if !addresses.insert(host.address()) {
            return Err(ClusterError::SameHost(format!("the address {}", host.address())));
        }
    }
    Ok(())
}

/// Makes a member's directories. Its home must be new: data of an earlier cluster would change this one's behaviour.
pub(crate) fn make_directories(
    member: &Member,
    directories: &[&str],
    owner: Option<Owner>,
) -> Result<(), ClusterError> {
    for parent in [&member.home, &member.logs].into_iter().filter_map(|path| path.parent()) {
        fs::create_dir_all(parent).map_err(ClusterError::files("create", parent))?;
    }
    fs::create_dir(&member.home).map_err(ClusterError::files("create", &member.home))?;
    fs::create_dir_all(&member.logs).map_err(ClusterError::files("create", &member.logs))?;
    let mut own = vec![member.home.clone(), member.logs.clone()];
    for directory in directories {
        let path = member.home.join(directory);
        fs::create_dir_all(&path).map_err(ClusterError::files("create", &path))?;
        own.push(path);
    }
    for path in &own {
        // Whatever our umask is, the owner must get in.
        fs::set_permissions(path, Permissions::from_mode(0o755)).map_err(ClusterError::files("open up", path))?;
        if let Some(Owner { uid, gid }) = owner {
            chown(path, Some(uid), Some(gid))
                .map_err(ClusterError::files(format!("give to user {uid}, group {gid},"), path))?;
        }
    }
    Ok(())
}
