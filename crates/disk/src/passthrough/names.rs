//! Requests about names.

use std::{
    ffi::CStr,
    os::fd::{AsFd, OwnedFd},
    sync::Arc,
};

use rustix::{
    fs::{self, AtFlags, FileType, Gid, Mode, OFlags, RenameFlags, Uid},
    io::Errno,
};

use super::{Node, Passthrough, VALID, fd_name, open_at};
use crate::protocol::{Arguments, Header, Reply, opened};

/// Bits of a mode that a change of owner takes away.
const SET_ID: Mode = Mode::SUID.union(Mode::SGID);

impl Passthrough {
    pub(super) fn lookup(&self, header: &Header, mut arguments: Arguments<'_>, reply: &mut Reply) -> Result<(), Errno> {
        let parent = self.node(header)?;
        self.answer_entry(&parent, arguments.name()?, reply)
    }

    /// Answers with the file of that name, which the kernel thereby knows once more.
    fn answer_entry(&self, parent: &Node, name: &CStr, reply: &mut Reply) -> Result<(), Errno> {
        let file = look_at(parent, name)?;
        let stat = fs::fstat(&file)?;
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
        mode: Mode,
        reply: &mut Reply,
    ) -> Result<(), Errno> {
        let file = look_at(parent, name)?;
        self.hand_over(header, parent, &file, mode)?;
        let stat = fs::fstat(&file)?;
        reply.entry(self.tree.tell(file, &stat), &stat, VALID);
        Ok(())
    }

    fn hand_over(&self, header: &Header, parent: &Node, file: impl AsFd + Copy, mode: Mode) -> Result<(), Errno> {
        // In a directory with the set-group-ID bit, what is new belongs to the directory's group, and does already.
        let inherits = Mode::from_raw_mode(fs::fstat(parent.fd())?.st_mode).contains(Mode::SGID);
        let stat = fs::fstat(file)?;
        let gid = if inherits { stat.st_gid } else { header.gid };
        if (stat.st_uid, stat.st_gid) == (header.uid, gid) {
            return Ok(());
        }
        let (uid, gid) = (Uid::from_raw(header.uid), Gid::from_raw(gid));
        fs::chownat(file, c"", Some(uid), Some(gid), AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW)?;
        if mode.intersects(SET_ID) && FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
            fs::chmodat(&self.descriptors, fd_name(file), Mode::from_raw_mode(stat.st_mode), AtFlags::empty())?;
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
        let mode = Mode::from_raw_mode(mode);
        fs::mkdirat(parent.fd(), name, mode)?;
        self.answer_new(header, &parent, name, mode, reply).inspect_err(|_| {
            let _ = fs::unlinkat(parent.fd(), name, AtFlags::REMOVEDIR);
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
        let (kind, mode) = (FileType::from_raw_mode(mode), Mode::from_raw_mode(mode));
        fs::mknodat(parent.fd(), name, kind, mode, device.into())?;
        self.answer_new(header, &parent, name, mode, reply).inspect_err(|_| {
            let _ = fs::unlinkat(parent.fd(), name, AtFlags::empty());
        })
    }

    pub(super) fn make_symlink(
        &self,
        header: &Header,
        mut arguments: Arguments<'_>,
        reply: &mut Reply,
    ) -> Result<(), Errno> {
        let (parent, name, content) = (self.node(header)?, arguments.name()?, arguments.text()?);
        fs::symlinkat(content, parent.fd(), name)?;
        self.answer_new(header, &parent, name, Mode::empty(), reply).inspect_err(|_| {
            let _ = fs::unlinkat(parent.fd(), name, AtFlags::empty());
        })
    }

    pub(super) fn create(&self, header: &Header, mut arguments: Arguments<'_>, reply: &mut Reply) -> Result<(), Errno> {
        let (flags, mode) = (OFlags::from_bits_retain(arguments.u32()?), Mode::from_raw_mode(arguments.u32()?));
        arguments.skip(8)?;
        let (parent, name) = (self.node(header)?, arguments.name()?);
        let access = flags & OFlags::ACCMODE;
        let exclusive = access | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let file = match open_at(parent.fd(), name, exclusive, mode) {
            Ok(file) => {
                self.hand_over(header, &parent, &file, mode).inspect_err(|_| {
                    let _ = fs::unlinkat(parent.fd(), name, AtFlags::empty());
                })?;
                file
            }
            // It came into being since the kernel looked: it keeps its owner.
            Err(Errno::EXIST) if !flags.contains(OFlags::EXCL) => {
                let flags = access | OFlags::NOFOLLOW | flags & OFlags::TRUNC;
                open_at(parent.fd(), name, flags, Mode::empty())?
            }
            Err(errno) => return Err(errno),
        };
        // Not by its name, which may mean another file by now.
        let path = self.reopen(&file, OFlags::PATH)?;
        let stat = fs::fstat(&path)?;
        reply.entry(self.tree.tell(path, &stat), &stat, VALID);
        reply.opened(self.handles.add(file), opened::KEEP_CACHE | opened::NO_FLUSH);
        Ok(())
    }

    pub(super) fn remove(&self, header: &Header, mut arguments: Arguments<'_>, directory: bool) -> Result<(), Errno> {
        let flags = if directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        fs::unlinkat(self.node(header)?.fd(), arguments.name()?, flags)
    }

    pub(super) fn rename(&self, header: &Header, mut arguments: Arguments<'_>, flagged: bool) -> Result<(), Errno> {
        let to = arguments.u64()?;
        let flags = if flagged { (arguments.u32()?, arguments.u32()?).0 } else { 0 };
        let (from, to) = (self.node(header)?, self.tree.get(to)?);
        let (from_name, to_name) = (arguments.name()?, arguments.name()?);
        fs::renameat_with(from.fd(), from_name, to.fd(), to_name, RenameFlags::from_bits_retain(flags))
    }

    pub(super) fn link(&self, header: &Header, mut arguments: Arguments<'_>, reply: &mut Reply) -> Result<(), Errno> {
        let file = self.tree.get(arguments.u64()?)?;
        let (parent, name) = (self.node(header)?, arguments.name()?);
        // By way of its link in /proc, which is followed to the file it stands for.
        fs::linkat(&self.descriptors, fd_name(file.fd()), parent.fd(), name, AtFlags::SYMLINK_FOLLOW)?;
        self.answer_entry(&parent, name, reply)
    }

    pub(super) fn read_link(&self, header: &Header, reply: &mut Reply) -> Result<(), Errno> {
        reply.bytes(fs::readlinkat(self.node(header)?.fd(), c"", Vec::new())?.to_bytes());
        Ok(())
    }
}

/// An `O_PATH` descriptor of the file of that name, of a symbolic link itself.
fn look_at(parent: &Node, name: &CStr) -> Result<OwnedFd, Errno> {
    open_at(parent.fd(), name, OFlags::PATH | OFlags::NOFOLLOW, Mode::empty())
}
