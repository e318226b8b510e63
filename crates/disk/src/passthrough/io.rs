//! Requests about what is in files and directories.

use std::{mem::MaybeUninit, os::fd::BorrowedFd};

use rustix::{
    fs::{self, FallocateFlags, FileType, OFlags, RawDir, SeekFrom},
    io::{self, Errno},
};

use super::{Done, Passthrough};
use crate::protocol::{Arguments, Header, MAX_WRITE, Reply, opened};

/// Of `struct fuse_fsync_in`: data only.
const ONLY_DATA: u32 = 1;
/// Of `struct fuse_lseek_in`, as in lseek(2).
const SEEK_DATA: u32 = 3;
const SEEK_HOLE: u32 = 4;

impl Passthrough {
    pub(super) fn open_file(
        &self,
        header: &Header,
        mut arguments: Arguments<'_>,
        reply: &mut Reply,
    ) -> Result<(), Errno> {
        // Only the access mode counts here. The kernel sees to appending (it tells offsets), to O_SYNC (it asks for a
        // sync after each write), to truncating (it asks for it), and our buffers do not suit O_DIRECT.
        let access = OFlags::from_bits_retain(arguments.u32()?) & OFlags::ACCMODE;
        let file = self.reopen(self.node(header)?.fd(), access | OFlags::NONBLOCK)?;
        reply.opened(self.handles.add(file), opened::KEEP_CACHE | opened::NO_FLUSH);
        Ok(())
    }

    pub(super) fn open_directory(&self, header: &Header, reply: &mut Reply) -> Result<(), Errno> {
        let directory = self.reopen(self.node(header)?.fd(), OFlags::RDONLY | OFlags::DIRECTORY)?;
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
        let bytes = read_at(handle.fd(), reply.room(size as usize), offset)?;
        reply.cut(bytes);
        Ok(Done { bytes: bytes as u64 })
    }

    pub(super) fn write(&self, mut arguments: Arguments<'_>, reply: &mut Reply) -> Result<Done, Errno> {
        let (handle, offset, size) = (arguments.u64()?, arguments.offset()?, arguments.u32()?);
        arguments.skip(20)?;
        let handle = self.handles.get(handle)?;
        let bytes = write_at(handle.fd(), arguments.bytes(size as usize)?, offset)?;
        reply.written(bytes);
        Ok(Done { bytes: bytes as u64 })
    }

    pub(super) fn copy_range(&self, mut arguments: Arguments<'_>, reply: &mut Reply) -> Result<Done, Errno> {
        let (from, mut from_offset) = (self.handles.get(arguments.u64()?)?, arguments.offset()?);
        let _to_node = arguments.u64()?;
        let (to, mut to_offset) = (self.handles.get(arguments.u64()?)?, arguments.offset()?);
        // The answer has 32 bits; who wants more asks again.
        let length = arguments.u64()?.min(1 << 30) as usize;
        let bytes = fs::copy_file_range(from.fd(), Some(&mut from_offset), to.fd(), Some(&mut to_offset), length)?;
        reply.written(bytes);
        Ok(Done { bytes: bytes as u64 })
    }

    pub(super) fn sync(&self, mut arguments: Arguments<'_>) -> Result<(), Errno> {
        let (handle, flags) = (arguments.u64()?, arguments.u32()?);
        let handle = self.handles.get(handle)?;
        if flags & ONLY_DATA != 0 { fs::fdatasync(handle.fd()) } else { fs::fsync(handle.fd()) }
    }

    pub(super) fn allocate(&self, mut arguments: Arguments<'_>) -> Result<(), Errno> {
        let (handle, offset, length) = (arguments.u64()?, arguments.offset()?, arguments.offset()?);
        let mode = FallocateFlags::from_bits_retain(arguments.u32()?);
        fs::fallocate(self.handles.get(handle)?.fd(), mode, offset, length)
    }

    pub(super) fn seek(&self, mut arguments: Arguments<'_>, reply: &mut Reply) -> Result<(), Errno> {
        let (handle, offset, whence) = (arguments.u64()?, arguments.u64()?, arguments.u32()?);
        // The kernel sees to all others itself.
        let to = match whence {
            SEEK_DATA => SeekFrom::Data(offset),
            SEEK_HOLE => SeekFrom::Hole(offset),
            _ => return Err(Errno::INVAL),
        };
        reply.u64(fs::seek(self.handles.get(handle)?.fd(), to)?);
        Ok(())
    }

    pub(super) fn read_directory(&self, mut arguments: Arguments<'_>, reply: &mut Reply) -> Result<(), Errno> {
        let (handle, offset, size) = (arguments.u64()?, arguments.u64()?, arguments.u32()? as usize);
        let handle = self.handles.get(handle)?;
        // Offsets are the real directory's own, so that nothing need be remembered between requests. The kernel reads one
        // open directory by one request at a time.
        fs::seek(handle.fd(), SeekFrom::Start(offset))?;
        let mut buffer = [MaybeUninit::uninit(); 32 * 1024];
        let room = buffer.len().min(size);
        let mut entries = RawDir::new(handle.fd(), &mut buffer[..room]);
        while let Some(entry) = entries.next() {
            let entry = entry?;
            // The kernel wants `DT_REG` and so on here, which are these bits of the mode.
            let kind = match entry.file_type() {
                FileType::Unknown => 0,
                known => known.as_raw_mode() >> 12,
            };
            let (next, name) = (entry.next_entry_cookie(), entry.file_name().to_bytes());
            let fits = reply.directory_entry(entry.ino(), next, kind as u8, name, size);
            if !fits || entries.is_buffer_empty() {
                break;
            }
        }
        Ok(())
    }
}

/// Reads from `offset` until `buffer` is full or the file ends, and says how much.
fn read_at(file: BorrowedFd<'_>, buffer: &mut [u8], offset: u64) -> Result<usize, Errno> {
    all(buffer.len(), |done| io::pread(file, &mut buffer[done..], offset.saturating_add(done as u64)))
}

/// Writes all of `bytes` at `offset`; says how much was written, which is less only when the directory's disk failed midway.
fn write_at(file: BorrowedFd<'_>, bytes: &[u8], offset: u64) -> Result<usize, Errno> {
    all(bytes.len(), |done| io::pwrite(file, &bytes[done..], offset.saturating_add(done as u64)))
}

/// Does `part` of what is left, again and again, until nothing is done any more.
fn all(length: usize, mut part: impl FnMut(usize) -> Result<usize, Errno>) -> Result<usize, Errno> {
    let mut done = 0;
    while done < length {
        match part(done) {
            Ok(0) => break,
            Ok(more) => done += more,
            Err(Errno::INTR) => {}
            Err(_) if done > 0 => break,
            Err(errno) => return Err(errno),
        }
    }
    Ok(done)
}
