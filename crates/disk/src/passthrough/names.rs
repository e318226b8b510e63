//! Requests about names.

use std::{ffi::CStr, os::fd::AsFd, sync::Arc};

use super::{Node, Passthrough, VALID};
use crate::{
    protocol::{Arguments, Header, Reply, opened},
    sys::{self, Errno},
};

/// Bits of a mode that a change of owner takes away.
const SET_ID: u32 = libc::S_ISUID | libc::S_ISGID;

impl Passthrough {
    pub(super) fn lookup(&self, header: &Header, mut arguments: Arguments<'_>, reply: &mut Reply) -> Result<(), Errno> {
        let parent = self.node(header)?;
        self.answer_entry(&parent, arguments.name()?, reply)
    }

    /// Answers with the file of that name, which the kernel thereby knows once more.
    fn answer_entry(&self, parent: &Node, name: &CStr, reply: &mut Reply) -> Result<(), Errno> {
        let file = sys::open_at(parent.fd(), name, libc::O_PATH | libc::O_NOFOLLOW, 0)?;
        let stat = sys::stat(file.as_fd())?;
        reply.entry(self.tree.tell(file, &stat), &stat, VALID);
        Ok(())
    }

    /// What was just made under this name becomes its caller's, and is answered.
    ///
    /// We make it as root, so that the permissions that count are those that the kernel has checked already.
    fn answer_new(
        &self,
        header: &Header,
        parent: &Arc<Node>,
        name: &CStr,
        mode: u32,
        reply: &mut Reply,
    ) -> Result<(), Errno> {
        let file = sys::open_at(parent.fd(), name, libc::O_PATH | libc::O_NOFOLLOW, 0)?;
        self.hand_over(header, parent, file.as_fd(), mode)?;
        let stat = sys::stat(file.as_fd())?;
        reply.entry(self.tree.tell(file, &stat), &stat, VALID);
        Ok(())
    }

    fn hand_over(
        &self,
        header: &Header,
        parent: &Node,
        file: std::os::fd::BorrowedFd<'_>,
        mode: u32,
    ) -> Result<(), Errno> {
        // In a directory with the set-group-ID bit, what is new belongs to the directory's group, and does already.
        let inherits = sys::stat(parent.fd())?.st_mode & libc::S_ISGID != 0;
        let stat = sys::stat(file)?;
        let gid = if inherits { stat.st_gid } else { header.gid };
        if (stat.st_uid, stat.st_gid) == (header.uid, gid) {
            return Ok(());
        }
        sys::change_owner(file, Some(header.uid), Some(gid))?;
        if mode & SET_ID != 0 && stat.st_mode & libc::S_IFMT == libc::S_IFREG {
            sys::change_mode(self.descriptors.as_fd(), &sys::fd_name(file), stat.st_mode & 0o7777)?;
        }
        Ok(())
    }

    pub(super) fn make_directory(
        &self,
        header: &Header,
        mut arguments: Arguments<'_>,
        reply: &mut Reply,
    ) -> Result<(), Errno> {
        let (mode, _umask) = (arguments.u32()?, arguments.u32()?);
        let (parent, name) = (self.node(header)?, arguments.name()?);
        sys::make_directory(parent.fd(), name, mode & 0o7777)?;
        self.answer_new(header, &parent, name, mode, reply).inspect_err(|_| {
            let _ = sys::remove(parent.fd(), name, true);
        })
    }

    pub(super) fn make_node(
        &self,
        header: &Header,
        mut arguments: Arguments<'_>,
        reply: &mut Reply,
    ) -> Result<(), Errno> {
        let (mode, device) = (arguments.u32()?, arguments.u32()?);
        arguments.skip(8)?;
        let (parent, name) = (self.node(header)?, arguments.name()?);
        sys::make_node(parent.fd(), name, mode, device)?;
        self.answer_new(header, &parent, name, mode, reply).inspect_err(|_| {
            let _ = sys::remove(parent.fd(), name, false);
        })
    }

    pub(super) fn make_symlink(
        &self,
        header: &Header,
        mut arguments: Arguments<'_>,
        reply: &mut Reply,
    ) -> Result<(), Errno> {
        let (parent, name, content) = (self.node(header)?, arguments.name()?, arguments.text()?);
        sys::make_symlink(content, parent.fd(), name)?;
        self.answer_new(header, &parent, name, 0, reply).inspect_err(|_| {
            let _ = sys::remove(parent.fd(), name, false);
        })
    }

    pub(super) fn create(&self, header: &Header, mut arguments: Arguments<'_>, reply: &mut Reply) -> Result<(), Errno> {
        let (flags, mode) = (arguments.u32()? as i32, arguments.u32()?);
        arguments.skip(8)?;
        let (parent, name) = (self.node(header)?, arguments.name()?);
        let access = flags & libc::O_ACCMODE;
        let exclusive = access | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW;
        let file = match sys::open_at(parent.fd(), name, exclusive, mode & 0o7777) {
            Ok(file) => {
                self.hand_over(header, &parent, file.as_fd(), mode).inspect_err(|_| {
                    let _ = sys::remove(parent.fd(), name, false);
                })?;
                file
            }
            // It came into being since the kernel looked: it keeps its owner.
            Err(libc::EEXIST) if flags & libc::O_EXCL == 0 => {
                sys::open_at(parent.fd(), name, access | libc::O_NOFOLLOW | flags & libc::O_TRUNC, 0)?
            }
            Err(errno) => return Err(errno),
        };
        // Not by its name, which may mean another file by now.
        let path = sys::open_at(self.descriptors.as_fd(), &sys::fd_name(file.as_fd()), libc::O_PATH, 0)?;
        let stat = sys::stat(path.as_fd())?;
        reply.entry(self.tree.tell(path, &stat), &stat, VALID);
        reply.opened(self.handles.add(file), opened::KEEP_CACHE | opened::NO_FLUSH);
        Ok(())
    }

    pub(super) fn remove(&self, header: &Header, mut arguments: Arguments<'_>, directory: bool) -> Result<(), Errno> {
        sys::remove(self.node(header)?.fd(), arguments.name()?, directory)
    }

    pub(super) fn rename(&self, header: &Header, mut arguments: Arguments<'_>, flagged: bool) -> Result<(), Errno> {
        let to = arguments.u64()?;
        let flags = if flagged { (arguments.u32()?, arguments.u32()?).0 } else { 0 };
        let (from, to) = (self.node(header)?, self.tree.get(to)?);
        let (from_name, to_name) = (arguments.name()?, arguments.name()?);
        sys::rename((from.fd(), from_name), (to.fd(), to_name), flags)
    }

    pub(super) fn link(&self, header: &Header, mut arguments: Arguments<'_>, reply: &mut Reply) -> Result<(), Errno> {
        let file = self.tree.get(arguments.u64()?)?;
        let (parent, name) = (self.node(header)?, arguments.name()?);
        sys::link((self.descriptors.as_fd(), &sys::fd_name(file.fd())), (parent.fd(), name))?;
        self.answer_entry(&parent, name, reply)
    }

    pub(super) fn read_link(&self, header: &Header, reply: &mut Reply) -> Result<(), Errno> {
        reply.bytes(&sys::read_link(self.node(header)?.fd())?);
        Ok(())
    }
}
