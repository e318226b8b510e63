//! The files that the kernel knows, by its numbers and by their own.

use std::{
    collections::HashMap,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rustix::{
    fs::{self, Stat},
    io::Errno,
};

use crate::protocol::ROOT;

/// A file that the kernel knows. As long as this is there, its inode number cannot be given to another file.
#[derive(Debug)]
pub(crate) struct Node {
    file: OwnedFd,
    identity: Identity,
}

/// Device and inode number.
type Identity = (u64, u64);

impl Node {
    /// An `O_PATH` descriptor of the file.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[derive(Debug)]
pub(crate) struct Tree(Mutex<Known>);

#[derive(Debug)]
struct Known {
    /// Each with the number of answers that told the kernel of it and that it has not forgotten.
    nodes: HashMap<u64, (Arc<Node>, u64)>,
    numbers: HashMap<Identity, u64>,
    next: u64,
}

impl Tree {
    /// Of a directory, from an `O_PATH` descriptor.
    pub(crate) fn new(root: OwnedFd) -> Result<Tree, Errno> {
        let stat = fs::fstat(&root)?;
        let identity = (stat.st_dev, stat.st_ino);
        // The kernel never forgets the root.
        let nodes = HashMap::from([(ROOT, (Arc::new(Node { file: root, identity }), u64::MAX))]);
        Ok(Tree(Mutex::new(Known { nodes, numbers: HashMap::from([(identity, ROOT)]), next: ROOT + 1 })))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.known().nodes.len()
    }

    /// The node of that number.
    pub(crate) fn get(&self, number: u64) -> Result<Arc<Node>, Errno> {
        self.known().nodes.get(&number).map(|(node, _)| Arc::clone(node)).ok_or(Errno::STALE)
    }

    /// The kernel is about to be told of the file behind this `O_PATH` descriptor: returns its number.
    pub(crate) fn tell(&self, file: OwnedFd, stat: &Stat) -> u64 {
        let identity = (stat.st_dev, stat.st_ino);
        let mut known = self.known();
        let Known { nodes, numbers, next } = &mut *known;
        let number = *numbers.entry(identity).or_insert_with(|| {
            *next += 1;
            *next
        });
        nodes
            .entry(number)
            .and_modify(|(_, lookups)| *lookups = lookups.saturating_add(1))
            .or_insert_with(|| (Arc::new(Node { file, identity }), 1));
        number
    }

    /// The kernel forgets that many of the answers that told it of this node.
    pub(crate) fn forget(&self, number: u64, lookups: u64) {
        let mut known = self.known();
        let Some((_, told)) = known.nodes.get_mut(&number) else { return };
        if number == ROOT {
            return;
        }
        *told = told.saturating_sub(lookups);
        if *told == 0
            && let Some((node, _)) = known.nodes.remove(&number)
        {
            known.numbers.remove(&node.identity);
            drop(known);
            // Closing the last descriptor of an unlinked file frees its space, which may take a while: not under the lock.
            drop(node);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(path: &std::path::Path) -> (OwnedFd, Stat) {
        let file = fs::open(path, fs::OFlags::PATH | fs::OFlags::NOFOLLOW, fs::Mode::empty()).unwrap();
        let stat = fs::fstat(&file).unwrap();
        (file, stat)
    }

    #[test]
    fn a_file_has_one_number_whatever_it_is_called_and_until_it_is_forgotten() {
        let directory = tempfile::tempdir().unwrap();
        let (one, two) = (directory.path().join("one"), directory.path().join("two"));
        std::fs::write(&one, "").unwrap();
        std::fs::hard_link(&one, &two).unwrap();
        let tree = Tree::new(path(directory.path()).0).unwrap();
        let tell = |name| {
            let (file, stat) = path(name);
            tree.tell(file, &stat)
        };
        let number = tell(&one);
        assert_eq!(tell(&two), number);
        tree.forget(number, 1);
        assert!(tree.get(number).is_ok());
        tree.forget(number, 1);
        assert_eq!(tree.get(number).unwrap_err(), Errno::STALE);
        assert_ne!(tell(&one), number);
        tree.forget(ROOT, 1);
        assert_eq!(tree.len(), 2);
    }
}
