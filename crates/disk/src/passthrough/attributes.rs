//! Requests about attributes.

use rustix::{
    fs::{self, AtFlags, Gid, Mode, OFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, Uid},
    io::Errno,
};

use super::{Passthrough, VALID, fd_name};
use crate::protocol::{Arguments, Header, Reply, attribute};

impl Passthrough {
    pub(super) fn get_attributes(&self, header: &Header, reply: &mut Reply) -> Result<(), Errno> {
        reply.attributes_for(&fs::fstat(self.node(header)?.fd())?, VALID);
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
            let uid = set(attribute::UID).then(|| Uid::from_raw(uid));
            let gid = set(attribute::GID).then(|| Gid::from_raw(gid));
            fs::chownat(node.fd(), c"", uid, gid, AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW)?;
        }
        // After the owner, because a new owner takes the set-ID bits away.
        if set(attribute::MODE) {
            let name = fd_name(node.fd());
            fs::chmodat(&self.descriptors, &name, Mode::from_raw_mode(mode), AtFlags::empty())?;
        }
        if set(attribute::SIZE) {
            if i64::try_from(size).is_err() {
                return Err(Errno::FBIG);
            }
            if set(attribute::HANDLE) {
                fs::ftruncate(self.handles.get(handle)?.fd(), size)?;
            } else {
                fs::ftruncate(self.reopen(node.fd(), OFlags::WRONLY | OFlags::NONBLOCK)?, size)?;
            }
        }
        if set(attribute::ATIME) || set(attribute::MTIME) {
            let time = |given, now, seconds: u64, nanoseconds: u32| Timespec {
                tv_sec: seconds as i64,
                tv_nsec: match (set(given), set(now)) {
                    (false, _) => UTIME_OMIT,
                    (true, true) => UTIME_NOW,
                    (true, false) => nanoseconds.into(),
                },
            };
            let times = Timestamps {
                last_access: time(attribute::ATIME, attribute::ATIME_NOW, atime, atime_ns),
                last_modification: time(attribute::MTIME, attribute::MTIME_NOW, mtime, mtime_ns),
            };
            fs::utimensat(node.fd(), c"", &times, AtFlags::EMPTY_PATH)?;
        }
        reply.attributes_for(&fs::fstat(node.fd())?, VALID);
        Ok(())
    }

    pub(super) fn stat_filesystem(&self, header: &Header, reply: &mut Reply) -> Result<(), Errno> {
        reply.filesystem(&fs::fstatvfs(self.node(header)?.fd())?);
        Ok(())
    }
}
