//! Requests about attributes.

use std::os::fd::AsFd;

use super::{Passthrough, VALID};
use crate::{
    protocol::{Arguments, Header, Reply, attribute},
    sys::{self, Errno},
};

impl Passthrough {
    pub(super) fn get_attributes(&self, header: &Header, reply: &mut Reply) -> Result<(), Errno> {
        reply.attributes_for(&sys::stat(self.node(header)?.fd())?, VALID);
        Ok(())
    }

    /// `struct fuse_setattr_in`: chmod, chown, truncate and utimens in one.
    pub(super) fn set_attributes(
        &self,
        header: &Header,
        mut arguments: Arguments<'_>,
        reply: &mut Reply,
    ) -> Result<(), Errno> {
        let valid = (arguments.u32()?, arguments.u32()?).0;
        let (handle, size) = (arguments.u64()?, arguments.u64()?);
        let _lock_owner = arguments.u64()?;
        let [atime, mtime, _ctime] = [arguments.u64()?, arguments.u64()?, arguments.u64()?];
        let [atime_ns, mtime_ns, _ctime_ns] = [arguments.u32()?, arguments.u32()?, arguments.u32()?];
        let mode = arguments.u32()?;
        arguments.skip(4)?;
        let (uid, gid) = (arguments.u32()?, arguments.u32()?);
        let set = |field| valid & field != 0;

        let node = self.node(header)?;
        if set(attribute::UID) || set(attribute::GID) {
            sys::change_owner(node.fd(), set(attribute::UID).then_some(uid), set(attribute::GID).then_some(gid))?;
        }
        // After the owner, because a new owner takes the set-ID bits away.
        if set(attribute::MODE) {
            sys::change_mode(self.descriptors.as_fd(), &sys::fd_name(node.fd()), mode & 0o7777)?;
        }
        if set(attribute::SIZE) {
            let size = i64::try_from(size).map_err(|_| libc::EFBIG)?;
            if set(attribute::HANDLE) {
                sys::truncate(self.handles.get(handle)?.fd(), size)?;
            } else {
                sys::truncate(self.reopen(&node, libc::O_WRONLY | libc::O_NONBLOCK)?.as_fd(), size)?;
            }
        }
        if set(attribute::ATIME) || set(attribute::MTIME) {
            let time = |given, now, seconds: u64, nanoseconds: u32| libc::timespec {
                tv_sec: seconds as i64,
                tv_nsec: match (set(given), set(now)) {
                    (false, _) => libc::UTIME_OMIT,
                    (true, true) => libc::UTIME_NOW,
                    (true, false) => nanoseconds.into(),
                },
            };
            let atime = time(attribute::ATIME, attribute::ATIME_NOW, atime, atime_ns);
            let mtime = time(attribute::MTIME, attribute::MTIME_NOW, mtime, mtime_ns);
            sys::change_times(node.fd(), [atime, mtime])?;
        }
        reply.attributes_for(&sys::stat(node.fd())?, VALID);
        Ok(())
    }

    pub(super) fn stat_filesystem(&self, header: &Header, reply: &mut Reply) -> Result<(), Errno> {
        reply.filesystem(&sys::stat_filesystem(self.node(header)?.fd())?);
        Ok(())
    }
}
