//! Whether a container is there, and whether it was started again: by its processes, or, where it was named by its network namespace
//! and no process of it is known, by the file of that.

use std::{fs, os::unix::fs::MetadataExt, path::PathBuf, sync::Arc};

use brownout_base::clock::monotonic_ns;
use brownout_cluster::{Hands, NodeState};
use brownout_containers::{Container, Runtime};

/// How one container is looked at.
pub(super) enum Eyes {
    Processes(Arc<dyn Hands>),
    Namespace(NamespaceFile),
}

/// A start of a container; times are of `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Start {
    /// When.
    pub(super) at_ns: u64,
    /// For how long it had been away.
    pub(super) gap_ns: u64,
}

/// What a look shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Glimpse {
    /// The last start that was not told of yet.
    pub(super) start: Option<Start>,
    /// Whether it is there; none where that cannot be told at the moment.
    pub(super) is_there: Option<bool>,
}

impl Eyes {
    /// On a container; none where nobody can tell.
    pub(super) fn on(container: &Container, hands: &[(String, Arc<dyn Hands>)]) -> Option<Eyes> {
        let own = hands.iter().find(|(name, _)| *name == container.name);
        match own {
            Some((_, hands)) => Some(Eyes::Processes(Arc::clone(hands))),
            None if container.runtime == Runtime::None && container.pid.is_none() => {
                NamespaceFile::of(PathBuf::from(&container.id)).map(Eyes::Namespace)
            }
            None => None,
        }
    }

    pub(super) fn look(&mut self) -> Glimpse {
        match self {
            Eyes::Processes(hands) => {
                let start = hands.restarted().map(|restart| Start { at_ns: restart.at_ns, gap_ns: restart.gap_ns });
                let is_there = hands.state().ok().map(|state| state != NodeState::Down);
                Glimpse { start, is_there }
            }
            Eyes::Namespace(file) => file.look(monotonic_ns(), file.found()),
        }
    }
}

/// The file that a network namespace is mounted on: device and inode are the namespace's own.
pub(super) struct NamespaceFile {
    path: PathBuf,
    known: (u64, u64),
    /// When that was last seen there.
    seen_ns: u64,
    /// It was not, at the last look.
    is_gone: bool,
}

impl NamespaceFile {
    fn of(path: PathBuf) -> Option<NamespaceFile> {
        let file = fs::metadata(&path).ok()?;
        Some(NamespaceFile { path, known: (file.dev(), file.ino()), seen_ns: monotonic_ns(), is_gone: false })
    }

    /// What is mounted there now; none where the file is no namespace's, or is not there.
    fn found(&self) -> Option<(u64, u64)> {
        let file = fs::metadata(&self.path).ok()?;
        // All namespaces are of one device.
        Some((file.dev(), file.ino())).filter(|(device, _)| *device == self.known.0)
    }

    fn look(&mut self, now_ns: u64, found: Option<(u64, u64)>) -> Glimpse {
        let was_gone = std::mem::replace(&mut self.is_gone, found.is_none());
        let Some(found) = found else { return Glimpse { start: None, is_there: Some(false) } };
        let before_ns = std::mem::replace(&mut self.seen_ns, now_ns);
        let is_another = std::mem::replace(&mut self.known, found) != found;
        let start = (is_another || was_gone).then(|| Start { at_ns: now_ns, gap_ns: now_ns.saturating_sub(before_ns) });
        Glimpse { start, is_there: Some(true) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_that_is_another_one_is_a_start_and_one_that_is_gone_is_away() {
        let mut file = NamespaceFile { path: PathBuf::new(), known: (4, 100), seen_ns: 10, is_gone: false };
        let glimpse = |start, is_there| Glimpse { start, is_there: Some(is_there) };
        assert_eq!(file.look(20, Some((4, 100))), glimpse(None, true));
        assert_eq!(file.look(30, None), glimpse(None, false));
        assert_eq!(file.look(40, None), glimpse(None, false));
        assert_eq!(file.look(50, Some((4, 101))), glimpse(Some(Start { at_ns: 50, gap_ns: 30 }), true));
        assert_eq!(file.look(60, Some((4, 101))), glimpse(None, true), "told once");
        assert_eq!(file.look(70, None), glimpse(None, false));
        assert_eq!(
            file.look(80, Some((4, 101))),
            glimpse(Some(Start { at_ns: 80, gap_ns: 20 }), true),
            "the same again"
        );
        assert_eq!(
            file.look(90, Some((4, 102))),
            glimpse(Some(Start { at_ns: 90, gap_ns: 10 }), true),
            "between two looks"
        );
    }

    #[test]
    fn only_files_of_namespaces_are_looked_at_as_such() {
        let mut own = NamespaceFile::of(PathBuf::from("/proc/self/ns/net")).unwrap();
        assert!(own.found().is_some());
        own.path = PathBuf::from("/");
        assert_eq!(own.found(), None);
        assert!(NamespaceFile::of(PathBuf::from("/nowhere")).is_none());
    }
}
