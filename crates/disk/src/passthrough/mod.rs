//! The real directory: each request carried out on it.
//!
//! Files are known by what they are (device and inode number), not by what they are called: a node holds an `O_PATH`
//! descriptor of its file, so that renaming, linking, unlinking and replacing it mean what they mean on the real directory.

mod attributes;
mod handles;
mod io;
mod names;
mod tree;

use std::{
    ffi::{CStr, CString},
    os::fd::{AsFd, AsRawFd, OwnedFd},
    path::Path,
    sync::Arc,
    time::Duration,
};

use rustix::{
    fs::{self, Mode, OFlags},
    io::Errno,
};

use crate::protocol::{Arguments, Header, Opcode, ROOT, Reply};

use self::{
    handles::Handles,
    tree::{Node, Tree},
};

/// How long the kernel may rely on names and attributes without asking again. It keeps what changes through the mount up
/// to date itself; this is for what changes the source behind its back.
const VALID: Duration = Duration::from_secs(1);

/// A real directory, and what of it the kernel knows.
///
/// All descriptors in here belong to the file table of the serving threads, and must be made and dropped there.
#[derive(Debug)]
pub(crate) struct Passthrough {
    tree: Tree,
    handles: Handles,
    /// `/proc/…/fd` of the serving threads: the way from an `O_PATH` descriptor to an open file.
    descriptors: OwnedFd,
}

/// What became of a request that was carried out.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Done {
    /// Bytes read or written.
    pub(crate) bytes: u64,
}

impl Passthrough {
    /// Opens `source`; to be called on a serving thread.
    pub(crate) fn open(source: &Path) -> Result<Passthrough, Errno> {
        let open = |path| fs::open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
        let (root, descriptors) = (open(source)?, open(Path::new("/proc/thread-self/fd"))?);
        let directory = Passthrough { tree: Tree::new(root)?, handles: Handles::default(), descriptors };
        // Fails here, and not at the first file, when that /proc is of another PID namespace.
        let root = directory.tree.get(ROOT)?;
        directory.reopen(root.fd(), OFlags::RDONLY | OFlags::DIRECTORY)?;
        Ok(directory)
    }

    /// The mode of the directory itself.
    pub(crate) fn mode(&self) -> Result<u32, Errno> {
        Ok(fs::fstat(self.tree.get(ROOT)?.fd())?.st_mode)
    }

    /// Carries out one request and writes the body of its answer.
    pub(crate) fn carry_out(
        &self,
        opcode: Opcode,
        header: &Header,
        arguments: Arguments<'_>,
        reply: &mut Reply,
    ) -> Result<Done, Errno> {
        let done = match opcode {
            Opcode::Lookup => self.lookup(header, arguments, reply),
            Opcode::GetAttributes => self.get_attributes(header, reply),
            Opcode::SetAttributes => self.set_attributes(header, arguments, reply),
            Opcode::ReadLink => self.read_link(header, reply),
            Opcode::Symlink => self.make_symlink(header, arguments, reply),
            Opcode::MakeNode => self.make_node(header, arguments, reply),
            Opcode::MakeDirectory => self.make_directory(header, arguments, reply),
            Opcode::Unlink => self.remove(header, arguments, false),
            Opcode::RemoveDirectory => self.remove(header, arguments, true),
            Opcode::Rename => self.rename(header, arguments, false),
            Opcode::Rename2 => self.rename(header, arguments, true),
            Opcode::Link => self.link(header, arguments, reply),
            Opcode::Create => self.create(header, arguments, reply),
            Opcode::Open => self.open_file(header, arguments, reply),
            Opcode::OpenDirectory => self.open_directory(header, reply),
            Opcode::ReadDirectory => self.read_directory(arguments, reply),
            Opcode::Release | Opcode::ReleaseDirectory => self.release(arguments),
            Opcode::Sync | Opcode::SyncDirectory => self.sync(arguments),
            Opcode::StatFilesystem => self.stat_filesystem(header, reply),
            Opcode::Allocate => self.allocate(arguments),
            Opcode::Seek => self.seek(arguments, reply),
            Opcode::Read => return self.read(arguments, reply),
            Opcode::Write => return self.write(arguments, reply),
            Opcode::CopyRange => return self.copy_range(arguments, reply),
            // The service itself sees to these.
            Opcode::Init | Opcode::Interrupt | Opcode::Destroy | Opcode::Forget | Opcode::ForgetMany => {
                Err(Errno::NOSYS)
            }
        };
        done.map(|()| Done::default())
    }

    /// The kernel no longer knows `node` by `lookups` of the answers that told it.
    pub(crate) fn forget(&self, node: u64, lookups: u64) {
        self.tree.forget(node, lookups);
    }

    /// Opens the file behind a descriptor anew.
    fn reopen(&self, file: impl AsFd, flags: OFlags) -> Result<OwnedFd, Errno> {
        open_at(&self.descriptors, &fd_name(file), flags, Mode::empty())
    }

    fn node(&self, header: &Header) -> Result<Arc<Node>, Errno> {
        self.tree.get(header.node)
    }
}

/// Opens a name in a directory; no program that this process starts gets the descriptor.
fn open_at(directory: impl AsFd, name: &CStr, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    fs::openat(directory, name, flags | OFlags::CLOEXEC, mode)
}

/// The name of a descriptor in `/proc/…/fd`.
fn fd_name(fd: impl AsFd) -> CString {
    // A number holds no zero byte.
    CString::new(fd.as_fd().as_raw_fd().to_string()).unwrap_or_default()
}
