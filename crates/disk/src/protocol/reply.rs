//! What the kernel is answered.

use std::time::Duration;

use rustix::{
    fs::{Stat, StatVfs, major, minor},
    io::Errno,
};

/// An answer in the making: 16 bytes of header (`struct fuse_out_header`), then the body. Its buffer is used again.
#[derive(Debug)]
pub(crate) struct Reply {
    buffer: Vec<u8>,
    length: usize,
}

const HEADER: usize = 16;

impl Reply {
    pub(crate) fn new() -> Self {
        Reply { buffer: vec![0; 4096], length: HEADER }
    }

    /// Begins anew.
    pub(crate) fn clear(&mut self) {
        self.length = HEADER;
    }

    /// Length of the body.
    pub(crate) fn len(&self) -> usize {
        self.length - HEADER
    }

    /// Appends so many bytes, which the caller fills; then [`Reply::cut`] takes back what was not needed. The buffer is
    /// only ever grown, so that it is cleared once and not for each read.
    pub(crate) fn room(&mut self, bytes: usize) -> &mut [u8] {
        let start = self.length;
        self.length += bytes;
        if self.buffer.len() < self.length {
            self.buffer.resize(self.length, 0);
        }
        &mut self.buffer[start..self.length]
    }

    /// Makes the body this long.
    pub(crate) fn cut(&mut self, body: usize) {
        self.length = self.length.min(HEADER + body);
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.room(bytes.len()).copy_from_slice(bytes);
    }

    pub(crate) fn u16(&mut self, number: u16) {
        self.bytes(&number.to_ne_bytes());
    }

    pub(crate) fn u32(&mut self, number: u32) {
        self.bytes(&number.to_ne_bytes());
    }

    pub(crate) fn u64(&mut self, number: u64) {
        self.bytes(&number.to_ne_bytes());
    }

    /// `struct fuse_attr`.
    pub(crate) fn attributes(&mut self, stat: &Stat) {
        self.u64(stat.st_ino);
        self.u64(stat.st_size as u64);
        self.u64(stat.st_blocks as u64);
        for seconds in [stat.st_atime, stat.st_mtime, stat.st_ctime] {
            self.u64(seconds as u64);
        }
        for nanoseconds in [stat.st_atime_nsec, stat.st_mtime_nsec, stat.st_ctime_nsec] {
            self.u32(nanoseconds as u32);
        }
        self.u32(stat.st_mode);
        self.u32(stat.st_nlink as u32);
        self.u32(stat.st_uid);
        self.u32(stat.st_gid);
        // In the kernel's own 32-bit form: 12 bits of major number between 8 and 12 bits of minor.
        let (major, minor) = (major(stat.st_rdev), minor(stat.st_rdev));
        self.u32((minor & 0xff) | (major << 8) | ((minor & !0xff) << 12));
        self.u32(stat.st_blksize as u32);
        self.u32(0);
    }

    /// `struct fuse_attr_out`.
    pub(crate) fn attributes_for(&mut self, stat: &Stat, valid: Duration) {
        self.u64(valid.as_secs());
        self.u32(valid.subsec_nanos());
        self.u32(0);
        self.attributes(stat);
    }

    /// `struct fuse_entry_out`.
    pub(crate) fn entry(&mut self, node: u64, stat: &Stat, valid: Duration) {
        self.u64(node);
        // Generations tell apart files that had the same number one after the other; ours are never used again.
        self.u64(0);
        self.u64(valid.as_secs());
        self.u64(valid.as_secs());
        self.u32(valid.subsec_nanos());
        self.u32(valid.subsec_nanos());
        self.attributes(stat);
    }

    /// `struct fuse_open_out`.
    pub(crate) fn opened(&mut self, handle: u64, flags: u32) {
        self.u64(handle);
        self.u32(flags);
        self.u32(0);
    }

    /// `struct fuse_write_out`.
    pub(crate) fn written(&mut self, bytes: usize) {
        self.u32(bytes as u32);
        self.u32(0);
    }

    /// `struct fuse_statfs_out`.
    pub(crate) fn filesystem(&mut self, stat: &StatVfs) {
        for number in [stat.f_blocks, stat.f_bfree, stat.f_bavail, stat.f_files, stat.f_ffree] {
            self.u64(number);
        }
        self.u32(stat.f_bsize as u32);
        self.u32(stat.f_namemax as u32);
        self.u32(stat.f_frsize as u32);
        for _ in 0..7 {
            self.u32(0);
        }
    }

    /// `struct fuse_dirent`; false, and nothing added, if the body would become longer than `limit`.
    #[must_use]
    pub(crate) fn directory_entry(&mut self, inode: u64, next: u64, kind: u8, name: &[u8], limit: usize) -> bool {
        let padding = name.len().next_multiple_of(8) - name.len();
        if self.len() + 24 + name.len() + padding > limit {
            return false;
        }
        self.u64(inode);
        self.u64(next);
        self.u32(name.len() as u32);
        self.u32(kind.into());
        self.bytes(name);
        self.room(padding).fill(0);
        true
    }

    /// The whole answer to request `unique`; with an error, it has no body.
    pub(crate) fn finish(&mut self, unique: u64, result: Result<(), Errno>) -> &[u8] {
        let error = match result {
            Ok(()) => 0,
            Err(errno) => {
                self.clear();
                -errno.raw_os_error()
            }
        };
        self.buffer[0..4].copy_from_slice(&(self.length as u32).to_ne_bytes());
        self.buffer[4..8].copy_from_slice(&error.to_ne_bytes());
        self.buffer[8..16].copy_from_slice(&unique.to_ne_bytes());
        &self.buffer[..self.length]
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{fstat, fstatvfs};

    use super::*;

    #[test]
    fn bodies_have_the_sizes_of_the_kernels_structs() {
        let root = std::fs::File::open("/").unwrap();
        let (stat, filesystem) = (fstat(&root).unwrap(), fstatvfs(&root).unwrap());
        let mut reply = Reply::new();
        let mut size = |fill: &dyn Fn(&mut Reply)| {
            reply.clear();
            fill(&mut reply);
            reply.len()
        };
        assert_eq!(size(&|reply| reply.attributes(&stat)), 88);
        assert_eq!(size(&|reply| reply.attributes_for(&stat, Duration::ZERO)), 104);
        assert_eq!(size(&|reply| reply.entry(1, &stat, Duration::ZERO)), 128);
        assert_eq!(size(&|reply| reply.opened(1, 0)), 16);
        assert_eq!(size(&|reply| reply.filesystem(&filesystem)), 80);
        assert_eq!(size(&|reply| assert!(reply.directory_entry(1, 2, 4, b"123456789", 40))), 40);
        assert_eq!(size(&|reply| assert!(!reply.directory_entry(1, 2, 4, b"123456789", 39))), 0);
    }

    #[test]
    fn an_error_has_no_body() {
        let mut reply = Reply::new();
        reply.bytes(b"half an answer");
        let bytes = reply.finish(7, Err(Errno::NOSPC)).to_vec();
        assert_eq!(bytes.len(), 16);
        assert_eq!(bytes[4..8], (-Errno::NOSPC.raw_os_error()).to_ne_bytes());
        assert_eq!(bytes[8..], 7_u64.to_ne_bytes());
    }

    #[test]
    fn bytes_of_an_earlier_answer_do_not_leak_into_a_later_one() {
        let mut reply = Reply::new();
        reply.bytes(&[0xff; 100]);
        reply.clear();
        assert!(reply.directory_entry(1, 2, 4, b"a", 1000));
        assert_eq!(reply.finish(1, Ok(()))[16 + 25..], [0; 7]);
    }
}
