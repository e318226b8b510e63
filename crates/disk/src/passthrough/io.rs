//! Requests about what is in files and directories.

use super::{Done, Passthrough};
use crate::{
    protocol::{Arguments, Header, MAX_WRITE, Reply, opened},
    sys::{self, Errno},
};

/// Of `struct fuse_fsync_in`: data only.
const ONLY_DATA: u32 = 1;

impl Passthrough {
    pub(super) fn open_file(
        &self,
        header: &Header,
        mut arguments: Arguments<'_>,
        reply: &mut Reply,
    ) -> Result<(), Errno> {
        // Only the access mode counts here. The kernel sees to appending (it tells offsets), to O_SYNC (it asks for a
        // sync after each write), to truncating (it asks for it), and our buffers do not suit O_DIRECT.
        let access = arguments.u32()? as i32 & libc::O_ACCMODE;
        let file = self.reopen(&*self.node(header)?, access | libc::O_NONBLOCK)?;
        reply.opened(self.handles.add(file), opened::KEEP_CACHE | opened::NO_FLUSH);
        Ok(())
    }

    pub(super) fn open_directory(&self, header: &Header, reply: &mut Reply) -> Result<(), Errno> {
        let directory = self.reopen(&*self.node(header)?, libc::O_RDONLY | libc::O_DIRECTORY)?;
        reply.opened(self.handles.add(directory), 0);
        Ok(())
    }

    pub(super) fn release(&self, mut arguments: Arguments<'_>) -> Result<(), Errno> {
        self.handles.close(arguments.u64()?);
        Ok(())
    }

    pub(super) fn read(&self, mut arguments: Arguments<'_>, reply: &mut Reply) -> Result<Done, Errno> {
        let (handle, offset, size) = (arguments.u64()?, arguments.offset()?, arguments.u32()?.min(MAX_WRITE));
        let handle = self.handles.get(handle)?;
        let bytes = sys::read_at(handle.fd(), reply.room(size as usize), offset)?;
        reply.cut(bytes);
        Ok(Done { bytes: bytes as u64 })
    }

    pub(super) fn write(&self, mut arguments: Arguments<'_>, reply: &mut Reply) -> Result<Done, Errno> {
        let (handle, offset, size) = (arguments.u64()?, arguments.offset()?, arguments.u32()?);
        arguments.skip(20)?;
        let handle = self.handles.get(handle)?;
        let bytes = sys::write_at(handle.fd(), arguments.bytes(size as usize)?, offset)?;
        reply.written(bytes);
        Ok(Done { bytes: bytes as u64 })
    }

    pub(super) fn copy_range(&self, mut arguments: Arguments<'_>, reply: &mut Reply) -> Result<Done, Errno> {
        let (from, from_offset) = (self.handles.get(arguments.u64()?)?, arguments.offset()?);
        let _to_node = arguments.u64()?;
        let (to, to_offset) = (self.handles.get(arguments.u64()?)?, arguments.offset()?);
        // The answer has 32 bits; who wants more asks again.
        let length = arguments.u64()?.min(1 << 30) as usize;
        let bytes = sys::copy_range((from.fd(), from_offset), (to.fd(), to_offset), length)?;
        reply.written(bytes);
        Ok(Done { bytes: bytes as u64 })
    }

    pub(super) fn sync(&self, mut arguments: Arguments<'_>) -> Result<(), Errno> {
        let (handle, flags) = (arguments.u64()?, arguments.u32()?);
        sys::sync(self.handles.get(handle)?.fd(), flags & ONLY_DATA != 0)
    }

    pub(super) fn allocate(&self, mut arguments: Arguments<'_>) -> Result<(), Errno> {
        let (handle, offset, length) = (arguments.u64()?, arguments.offset()?, arguments.offset()?);
        sys::allocate(self.handles.get(handle)?.fd(), arguments.u32()? as i32, offset, length)
    }

    pub(super) fn seek(&self, mut arguments: Arguments<'_>, reply: &mut Reply) -> Result<(), Errno> {
        let (handle, offset, whence) = (arguments.u64()?, arguments.u64()? as i64, arguments.u32()? as i32);
        reply.u64(sys::seek(self.handles.get(handle)?.fd(), offset, whence)? as u64);
        Ok(())
    }

    pub(super) fn read_directory(&self, mut arguments: Arguments<'_>, reply: &mut Reply) -> Result<(), Errno> {
        let (handle, offset, size) = (arguments.u64()?, arguments.u64()?, arguments.u32()? as usize);
        let handle = self.handles.get(handle)?;
        // Offsets are the real directory's own, so that nothing need be remembered between requests. The kernel reads one
        // open directory by one request at a time.
        sys::seek(handle.fd(), offset as i64, libc::SEEK_SET)?;
        let mut buffer = [0; 32 * 1024];
        let room = buffer.len().min(size);
        let length = sys::read_entries(handle.fd(), &mut buffer[..room])?;
        let mut rest = &buffer[..length];
        while let Some((entry, behind)) = take_entry(rest) {
            if !reply.directory_entry(entry.inode, entry.next, entry.kind, entry.name, size) {
                break;
            }
            rest = behind;
        }
        Ok(())
    }
}

/// An entry of a directory.
struct Entry<'a> {
    inode: u64,
    /// Where to go on reading behind it.
    next: u64,
    /// `DT_REG` and its kin.
    kind: u8,
    name: &'a [u8],
}

/// Takes the first `struct linux_dirent64` off: inode, offset (8 bytes each), length (2), kind (1), name.
fn take_entry(bytes: &[u8]) -> Option<(Entry<'_>, &[u8])> {
    let (inode, rest) = bytes.split_first_chunk()?;
    let (next, rest) = rest.split_first_chunk()?;
    let (length, rest) = rest.split_first_chunk()?;
    let (kind, _) = rest.split_first()?;
    let (whole, behind) = bytes.split_at_checked(u16::from_ne_bytes(*length).into())?;
    let name = whole.get(19..)?.split(|byte| *byte == 0).next()?;
    Some((Entry { inode: u64::from_ne_bytes(*inode), next: u64::from_ne_bytes(*next), kind: *kind, name }, behind))
}
