//! What has to be known of the machine, and of this process, before containers are judged.

use std::{fs, io, os::unix::fs::MetadataExt, path::Path};

use crate::netlink::{self, Link};

/// The file that names the network namespace of the thread that reads it.
const OWN_NETWORK: &str = "/proc/thread-self/ns/net";

/// Capabilities that diverting packets takes, by their numbers in capability.h; by path instead of by process, the last
/// one is of no use, but other things that are done to containers need it.
const NEEDED: [(u32, &str); 4] =
    [(21, "CAP_SYS_ADMIN"), (12, "CAP_NET_ADMIN"), (13, "CAP_NET_RAW"), (19, "CAP_SYS_PTRACE")];

/// Device and inode of a namespace's file: equal for the same namespace, and only then.
pub(crate) type NamespaceId = (u64, u64);

/// The machine, as far as the calling thread sees it.
pub(crate) struct Machine {
    /// The network that this thread is in.
    pub(crate) network: NamespaceId,
    /// The interfaces there.
    pub(crate) links: Vec<Link>,
    /// What this thread may do, a bit for each capability.
    pub(crate) capabilities: u64,
}

impl Machine {
    /// Looks at it.
    pub(crate) fn look() -> io::Result<Machine> {
        let network = namespace_id(Path::new(OWN_NETWORK))?;
        let capabilities = capabilities(&fs::read_to_string("/proc/thread-self/status")?);
        // Without them nothing leads from a container to the machine's end, which not everything needs.
        let links = netlink::links().unwrap_or_default();
        Ok(Machine { network, links, capabilities: capabilities.unwrap_or(0) })
    }

    /// The capabilities that diverting packets takes and that are not there, in words; none if all are.
    pub(crate) fn lacks(&self) -> Option<String> {
        let lacking = NEEDED.iter().filter(|(bit, _)| self.capabilities & (1u64 << bit) == 0);
        let lacking: Vec<&str> = lacking.map(|(_, name)| *name).collect();
        (!lacking.is_empty()).then(|| lacking.join(" and "))
    }

    /// Whether a file is that of a namespace at all: all of them lie on one file system of the kernel's own.
    pub(crate) fn is_namespace(&self, id: NamespaceId) -> bool {
        id.0 == self.network.0
    }

    /// With these capabilities, and nothing else.
    #[cfg(test)]
    pub(crate) fn with(capabilities: u64) -> Machine {
        Machine { network: (0, 0), links: Vec::new(), capabilities }
    }
}

/// Which namespace a file stands for.
pub(crate) fn namespace_id(path: &Path) -> io::Result<NamespaceId> {
    let metadata = fs::metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

/// The effective ones, of `/proc/PID/status`.
fn capabilities(status: &str) -> Option<u64> {
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(effective.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lacking_is_named() {
        assert_eq!(Machine::with(u64::MAX).lacks(), None);
        assert_eq!(Machine::with(!(1 << 13)).lacks().as_deref(), Some("CAP_NET_RAW"));
        assert_eq!(Machine::with(0).lacks().map(|words| words.matches("CAP_").count()), Some(NEEDED.len()));
    }

    #[test]
    fn capabilities_are_read_as_the_kernel_writes_them() {
        // An unprivileged container of Docker 20.10.
        let status = "Name:\tsh\nCapInh:\t0000000000000000\nCapPrm:\t00000000a80425fb\nCapEff:\t00000000a80425fb\n";
        assert_eq!(capabilities(status), Some(0xa804_25fb));
        let lacking = Machine::with(0xa804_25fb).lacks();
        assert_eq!(lacking.as_deref(), Some("CAP_SYS_ADMIN and CAP_NET_ADMIN and CAP_SYS_PTRACE"));
        assert_eq!(capabilities("Name:\tsh\n"), None);
    }

    #[test]
    fn this_process_is_in_a_network_with_a_loopback() {
        let machine = Machine::look().unwrap();
        assert!(machine.is_namespace(machine.network) && !machine.is_namespace((0, 1)));
        assert!(machine.links.iter().any(|link| link.is_loopback), "{:?}", machine.links);
    }
}
