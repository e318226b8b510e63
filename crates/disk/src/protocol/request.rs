//! What the kernel asks.

use std::ffi::CStr;

use rustix::io::Errno;

/// What every request begins with (`struct fuse_in_header`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) opcode: u32,
    /// The number by which it is answered. Never used again.
    pub(crate) unique: u64,
    /// The file or directory it is about.
    pub(crate) node: u64,
    /// Who asks, in our user namespace.
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// The thread that asks, in our PID namespace; 0: the kernel itself, or one that has no number there.
    pub(crate) thread: u32,
}

impl Header {
    pub(crate) const SIZE: usize = 40;

    /// Takes a request apart. `None` if it is none.
    pub(crate) fn parse(bytes: &[u8]) -> Option<(Header, Arguments<'_>)> {
        let mut head = Arguments(bytes);
        let length = head.u32().ok()? as usize;
        let header = Header {
            opcode: head.u32().ok()?,
            unique: head.u64().ok()?,
            node: head.u64().ok()?,
            uid: head.u32().ok()?,
            gid: head.u32().ok()?,
            thread: head.u32().ok()?,
        };
        (length == bytes.len()).then_some((header, Arguments(bytes.get(Self::SIZE..)?)))
    }
}

/// The rest of a request, taken apart from its front. What is shorter than it must be is answered `EIO`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arguments<'a>(&'a [u8]);

impl<'a> Arguments<'a> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Errno> {
        let (first, rest) = self.0.split_first_chunk().ok_or(Errno::IO)?;
        self.0 = rest;
        Ok(*first)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Errno> {
        self.array().map(u32::from_ne_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Errno> {
        self.array().map(u64::from_ne_bytes)
    }

    /// An offset or a length in a file, which the system takes as a signed number.
    pub(crate) fn offset(&mut self) -> Result<u64, Errno> {
        Some(self.u64()?).filter(|offset| i64::try_from(*offset).is_ok()).ok_or(Errno::INVAL)
    }

    /// Leaves out so many bytes.
    pub(crate) fn skip(&mut self, bytes: usize) -> Result<(), Errno> {
        self.0 = self.0.get(bytes..).ok_or(Errno::IO)?;
        Ok(())
    }

    /// A string that ends with a zero byte.
    pub(crate) fn text(&mut self) -> Result<&'a CStr, Errno> {
        let text = CStr::from_bytes_until_nul(self.0).map_err(|_| Errno::IO)?;
        self.0 = &self.0[text.to_bytes_with_nul().len()..];
        Ok(text)
    }

    /// The name of an entry of a directory.
    pub(crate) fn name(&mut self) -> Result<&'a CStr, Errno> {
        let name = self.text()?;
        // The kernel never asks for these; a name that led out of the directory must not depend on that.
        let leads_out = matches!(name.to_bytes(), b"" | b"." | b"..") || name.to_bytes().contains(&b'/');
        if leads_out { Err(Errno::INVAL) } else { Ok(name) }
    }

    /// Of a write (`struct fuse_write_in`): whether the kernel writes back pages of a mapping, on its own account.
    pub(crate) fn writes_back(mut self) -> bool {
        const WRITE_CACHE: u32 = 1;
        self.skip(20).and_then(|()| self.u32()).is_ok_and(|flags| flags & WRITE_CACHE != 0)
    }

    /// So many bytes.
    pub(crate) fn bytes(&mut self, length: usize) -> Result<&'a [u8], Errno> {
        let bytes = self.0.get(..length).ok_or(Errno::IO)?;
        self.0 = &self.0[length..];
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A lookup of "data" in the root, as `linux/fuse.h` lays it out.
    fn lookup(name: &[u8]) -> Vec<u8> {
        let length = (Header::SIZE + name.len()) as u32;
        let mut bytes = Vec::new();
        for number in [length, 1] {
            bytes.extend(number.to_ne_bytes());
        }
        for number in [6_u64, 1] {
            bytes.extend(number.to_ne_bytes());
        }
        for number in [1000_u32, 100, 4711, 0] {
            bytes.extend(number.to_ne_bytes());
        }
        bytes.extend(name);
        bytes
    }

    #[test]
    fn a_request_is_taken_apart() {
        let bytes = lookup(b"data\0");
        let (header, mut arguments) = Header::parse(&bytes).unwrap();
        assert_eq!(header, Header { opcode: 1, unique: 6, node: 1, uid: 1000, gid: 100, thread: 4711 });
        assert_eq!(arguments.name().unwrap(), c"data");
        assert_eq!(arguments.u32(), Err(Errno::IO));
    }

    #[test]
    fn what_is_cut_short_is_no_request() {
        let bytes = lookup(b"data\0");
        for length in 0..bytes.len() {
            assert!(Header::parse(&bytes[..length]).is_none());
        }
    }

    #[test]
    fn no_name_leads_out_of_its_directory() {
        for name in [&b".\0"[..], b"..\0", b"a/b\0", b"/\0", b"\0", b"endless"] {
            let bytes = lookup(name);
            let (_, mut arguments) = Header::parse(&bytes).unwrap();
            assert!(arguments.name().is_err(), "{name:?}");
        }
    }
}
