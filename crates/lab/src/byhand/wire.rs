//! Frames on a lab's socket: a length, then JSON. Descriptors may come with the first byte (unix(7), SCM_RIGHTS).

use std::{
    io::{self, Read, Write},
    os::{
        fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
        unix::net::UnixStream,
    },
};

use serde::{Serialize, de::DeserializeOwned};

/// No reply is longer, bytes: that of a large table.
const LONGEST: u32 = 64 << 20;
/// No request is longer, bytes.
pub const LONGEST_REQUEST: u32 = 1 << 20;
/// stdin, stdout, stderr.
const STREAMS: usize = 3;

/// Sends one frame.
pub fn send(mut stream: &UnixStream, frame: &impl Serialize) -> io::Result<()> {
    stream.write_all(&encoded(frame)?)
}

/// Sends one frame, and these descriptors with it.
pub fn send_with(
    stream: &UnixStream,
    frame: &impl Serialize,
    descriptors: [BorrowedFd<'_>; STREAMS],
) -> io::Result<()> {
    let bytes = encoded(frame)?;
    let raw: [RawFd; STREAMS] = descriptors.map(|descriptor| descriptor.as_raw_fd());
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let mut control = Control::new();
    // SAFETY: the message points at live buffers of the lengths given; `Control` has room for exactly this header and
    // these descriptors, at the alignment that CMSG_FIRSTHDR wants.
    let sent = unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = Control::SPACE;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(size_of_val(&raw) as u32) as _;
        libc::CMSG_DATA(header).cast::<[RawFd; STREAMS]>().write_unaligned(raw);
        libc::sendmsg(stream.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL)
    };
    let sent = usize::try_from(sent).map_err(|_| io::Error::last_os_error())?;
    let mut rest = stream;
    rest.write_all(&bytes[sent..])
}

/// Receives one frame, and the descriptors that came with it. `None`: the other end has closed.
pub fn receive<T: DeserializeOwned>(stream: &UnixStream) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    receive_up_to(stream, LONGEST)
}

/// The same; a frame of more bytes is an error.
pub fn receive_up_to<T: DeserializeOwned>(stream: &UnixStream, longest: u32) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    let mut length = [0_u8; 4];
    let mut have = 0;
    let mut descriptors = Vec::new();
    while have < length.len() {
        let (read, mut came) = receive_some(stream, &mut length[have..])?;
        descriptors.append(&mut came);
        match read {
            0 if have == 0 => return Ok(None),
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => have += read,
        }
    }
    let length = u32::from_le_bytes(length);
    if length > longest {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("a frame of {length} bytes; at most {longest}"),
        ));
    }
    // Grows as the bytes come: a length alone costs nothing.
    let mut bytes = Vec::new();
    if Read::take(stream, length.into()).read_to_end(&mut bytes)? < length as usize {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let frame = serde_json::from_slice(&bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    Ok(Some((frame, descriptors)))
}

/// The user at the other end, as the kernel knows it (unix(7), SO_PEERCRED).
pub fn peer_user(stream: &UnixStream) -> io::Result<libc::uid_t> {
    // SAFETY: a zeroed ucred of the length given is a valid place for the answer.
    unsafe {
        let mut who: libc::ucred = std::mem::zeroed();
        let mut length = size_of::<libc::ucred>() as libc::socklen_t;
        let registry = (&raw mut who).cast();
        match libc::getsockopt(stream.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, registry, &raw mut length) {
            0 => Ok(who.uid),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Waits until there is something to read, or the other end has gone. False: not yet.
pub fn wait_readable(descriptor: BorrowedFd<'_>, ms: i32) -> bool {
    let mut waiting = libc::pollfd { fd: descriptor.as_raw_fd(), events: libc::POLLIN | libc::POLLRDHUP, revents: 0 };
    // SAFETY: one valid pollfd.
    unsafe { libc::poll(&raw mut waiting, 1, ms) > 0 }
}

fn encoded(frame: &impl Serialize) -> io::Result<Vec<u8>> {
    let body = serde_json::to_vec(frame)?;
    let length = u32::try_from(body.len()).ok().filter(|length| *length <= LONGEST);
    let length = length.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the answer is too long"))?;
    let mut bytes = length.to_le_bytes().to_vec();
    bytes.extend(body);
    Ok(bytes)
}

/// Room for one control message with the streams' descriptors.
#[repr(align(8))]
struct Control([u8; 64]);

impl Control {
    /// Of the control message.
    // SAFETY: CMSG_SPACE only computes.
    const SPACE: usize = unsafe { libc::CMSG_SPACE((STREAMS * size_of::<RawFd>()) as u32) } as usize;

    fn new() -> Control {
        const { assert!(Control::SPACE <= 64) };
        Control([0; 64])
    }
}

fn receive_some(stream: &UnixStream, buffer: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let mut control = Control::new();
    let mut descriptors = Vec::new();
    // SAFETY: as in `send_with`; the kernel fills in at most the lengths given, and every descriptor that it hands over
    // belongs to nobody else yet.
    let read = unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = Control::SPACE;
        let read = libc::recvmsg(stream.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC);
        if read < 0 {
            return Err(io::Error::last_os_error());
        }
        let mut header = libc::CMSG_FIRSTHDR(&raw const message);
        while !header.is_null() {
            if (*header).cmsg_level == libc::SOL_SOCKET && (*header).cmsg_type == libc::SCM_RIGHTS {
                let bytes = (*header).cmsg_len as usize - libc::CMSG_LEN(0) as usize;
                let first = libc::CMSG_DATA(header).cast::<RawFd>();
                for index in 0..bytes / size_of::<RawFd>() {
                    descriptors.push(OwnedFd::from_raw_fd(first.add(index).read_unaligned()));
                }
            }
            header = libc::CMSG_NXTHDR(&raw const message, header);
        }
        read
    };
    Ok((usize::try_from(read).unwrap_or(0), descriptors))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn frames_come_as_they_were_sent_with_their_descriptors() {
        let (one, other) = UnixStream::pair().unwrap();
        let (mut reader, writer) = io::pipe().unwrap();
        send_with(&one, &"first", [writer.as_fd(), writer.as_fd(), writer.as_fd()]).unwrap();
        send(&one, &"second").unwrap();
        drop((one, writer));
        let (text, descriptors) = receive::<String>(&other).unwrap().unwrap();
        assert_eq!((text.as_str(), descriptors.len()), ("first", 3));
        std::fs::File::from(descriptors.into_iter().next().unwrap()).write_all(b"through").unwrap();
        let mut seen = String::new();
        reader.read_to_string(&mut seen).unwrap();
        assert_eq!(seen, "through");
        assert_eq!(receive::<String>(&other).unwrap().unwrap().0, "second");
        assert!(receive::<String>(&other).unwrap().is_none());
    }

    #[test]
    fn garbage_is_an_error_and_allocates_nothing() {
        for bytes in [&[255_u8, 255, 255, 255][..], &[4, 0, 0, 0, b'n', b'o', b'p', b'e'], &[9, 0, 0, 0, b'"'], &[1, 0]]
        {
            let (one, other) = UnixStream::pair().unwrap();
            (&one).write_all(bytes).unwrap();
            drop(one);
            assert!(receive::<String>(&other).is_err(), "{bytes:?}");
        }
    }
}
