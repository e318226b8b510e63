//! The first request, in which the kernel and we agree on a version of the protocol and its options.

use rustix::io::Errno;

use crate::protocol::{Arguments, MAJOR, MAX_PAGES, MAX_WRITE, MINOR, OLDEST_MINOR, Reply, init};

/// Requests that the kernel has under way on its own account (readahead, writing back mapped pages), at most. It is 12 by
/// default; then a few slow ones would hold up all others, which no real disk with a queue of 32 or more does.
const BACKGROUND: u16 = 1024;

/// Answers `FUSE_INIT`.
///
/// What is not asked for matters as much. No `WRITEBACK_CACHE`: every `write` reaches us when it is made, as one made on
/// a real directory reaches its page cache; with it, the kernel would answer from memory, a fault on writes would hit only
/// what it writes back later, and an error would reach nobody. Mappings that are shared and written to work without it.
/// No `PASSTHROUGH`: reads and `msync` would go past us. No `ATOMIC_O_TRUNC`: the kernel then asks for the truncation by
/// itself, and that is an operation that can be slow or fail. No locks: the kernel keeps them.
pub(super) fn agree(mut arguments: Arguments<'_>, reply: &mut Reply) -> Result<(), Errno> {
    let (major, minor, readahead, offered) = (arguments.u32()?, arguments.u32()?, arguments.u32()?, arguments.u32()?);
    if major < MAJOR || (major == MAJOR && minor < OLDEST_MINOR) {
        return Err(Errno::PROTO);
    }
    reply.u32(MAJOR);
    reply.u32(MINOR);
    if major > MAJOR {
        // It will ask again in our version.
        return Ok(());
    }
    reply.u32(readahead);
    reply.u32(offered & (init::ASYNC_READ | init::BIG_WRITES | init::PARALLEL_DIROPS | init::MAX_PAGES));
    reply.u16(BACKGROUND);
    reply.u16(BACKGROUND / 4 * 3);
    reply.u32(MAX_WRITE);
    // Times in nanoseconds.
    reply.u32(1);
    reply.u16(MAX_PAGES);
    // No alignment of mappings; no further flags; unused.
    reply.u16(0);
    for _ in 0..8 {
        reply.u32(0);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Header;

    fn ask(major: u32, minor: u32) -> (Result<(), Errno>, Vec<u8>) {
        let mut bytes = vec![0; Header::SIZE];
        for number in [major, minor, 131_072, u32::MAX] {
            bytes.extend(number.to_ne_bytes());
        }
        let length = bytes.len() as u32;
        bytes[..4].copy_from_slice(&length.to_ne_bytes());
        let mut reply = Reply::new();
        let agreed = agree(Header::parse(&bytes).unwrap().1, &mut reply);
        (agreed, reply.finish(1, Ok(())).to_vec())
    }

    #[test]
    fn the_answer_is_as_long_as_the_kernels_struct() {
        let (agreed, bytes) = ask(7, 45);
        assert_eq!((agreed, bytes.len()), (Ok(()), 16 + 64));
    }

    #[test]
    fn a_newer_kernel_is_told_our_version_and_an_older_one_refused() {
        let (agreed, bytes) = ask(8, 0);
        assert_eq!((agreed, bytes.len()), (Ok(()), 16 + 8));
        assert_eq!(ask(7, 22).0, Err(Errno::PROTO));
    }
}
