//! Frames on a lab's socket: a length, then JSON. Descriptors may come with the first byte (unix(7), SCM_RIGHTS).

use std::{
    io::{self, IoSlice, IoSliceMut, Read, Write},
    mem::MaybeUninit,
    os::{
        fd::{AsRawFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
    time::Duration,
};

use rustix::{
    cmsg_space,
    event::{PollFd, PollFlags, Timespec, poll},
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
        recvmsg, sendmsg,
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
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(STREAMS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(io::Error::other("there is no room for the descriptors"));
    }
    let sent = sendmsg(stream, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL)?;
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

/// The user at the other end, as the kernel knows it (unix(7), SO_PEERCRED). Not rustix's: a client in another PID namespace
/// has no number here, and its type cannot hold that 0.
pub fn peer_user(stream: &UnixStream) -> io::Result<u32> {
    // SAFETY: a zeroed ucred of the length given is a valid place for the answer.
    unsafe {
        let mut who: libc::ucred = std::mem::zeroed();
        let mut length = size_of::<libc::ucred>() as libc::socklen_t;
        let place = (&raw mut who).cast();
        match libc::getsockopt(stream.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, place, &raw mut length) {
            0 => Ok(who.uid),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Waits until there is something to read, or the other end has gone. False: not yet.
pub fn wait_readable(descriptor: BorrowedFd<'_>, patience: Duration) -> bool {
    let mut waiting = [PollFd::from_borrowed_fd(descriptor, PollFlags::IN | PollFlags::RDHUP)];
    let patience = Timespec { tv_sec: patience.as_secs() as i64, tv_nsec: patience.subsec_nanos().into() };
    poll(&mut waiting, Some(&patience)).is_ok_and(|ready| ready > 0)
}

fn encoded(frame: &impl Serialize) -> io::Result<Vec<u8>> {
    let body = serde_json::to_vec(frame)?;
    let length = u32::try_from(body.len()).ok().filter(|length| *length <= LONGEST);
    let length = length.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the answer is too long"))?;
    let mut bytes = length.to_le_bytes().to_vec();
    bytes.extend(body);
    Ok(bytes)
}

fn receive_some(stream: &UnixStream, buffer: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(STREAMS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(stream, &mut [IoSliceMut::new(buffer)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let descriptors = control.drain().flat_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => descriptors.collect(),
        _ => Vec::new(),
    });
    Ok((received.bytes, descriptors.collect()))
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
