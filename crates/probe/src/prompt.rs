//! A thread that takes each datagram of a socket as soon as it may be read, and says when that was.
//!
//! For hosts in which packets are held back after the kernel has stamped their arrival: how long they were held is not in those stamps.

use std::{
    io,
    net::UdpSocket,
    os::fd::AsFd,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, SyncSender, TryRecvError},
    },
    thread,
    time::Duration,
};

use brownout_base::clock::realtime_ns;
use brownout_machine::run_urgently;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::{
    socket::{Received, receive},
    stamps::Stamp,
};

/// As urgent as the probes.
const FIFO_PRIORITY: u8 = 19;
/// Datagrams that may wait to be collected: as many as a socket has room for.
const ROOM: usize = 5_000;
/// Longer than any datagram that somebody here reads to its end.
const LONGEST: usize = 128;
/// How soon it sees that nobody wants any more.
const LOOK: Duration = Duration::from_millis(100);

/// What it has taken; it ends soon after this is dropped.
#[derive(Debug)]
pub(crate) struct Prompt {
    taken: Receiver<(Received, [u8; LONGEST])>,
    ends: Arc<AtomicBool>,
}

impl Prompt {
    pub(crate) fn start(socket: &Arc<UdpSocket>) -> io::Result<Prompt> {
        let (taking, taken) = mpsc::sync_channel(ROOM);
        let ends = Arc::new(AtomicBool::new(false));
        let (socket, its_end) = (Arc::clone(socket), Arc::clone(&ends));
        thread::Builder::new().name("arrivals".to_owned()).spawn(move || {
            run_urgently(FIFO_PRIORITY);
            take(&socket, &its_end, &taking);
        })?;
        Ok(Prompt { taken, ends })
    }

    /// The next one, in the order of their coming.
    pub(crate) fn next(&self, buffer: &mut [u8]) -> Result<Option<Received>, io::Error> {
        match self.taken.try_recv() {
            Ok((received, datagram)) => {
                let length = received.length.min(buffer.len()).min(datagram.len());
                buffer[..length].copy_from_slice(&datagram[..length]);
                Ok(Some(Received { length, ..received }))
            }
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(io::Error::other("the thread that takes datagrams has ended")),
        }
    }
}

impl Drop for Prompt {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
    }
}

fn take(socket: &UdpSocket, ends: &AtomicBool, taking: &SyncSender<(Received, [u8; LONGEST])>) {
    let within = Timespec { tv_sec: 0, tv_nsec: LOOK.subsec_nanos().into() };
    while !ends.load(Ordering::Relaxed) {
        let mut socket_ready = [PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN)];
        // What is wrong with a socket, receiving says as well, and that it then is about an earlier datagram of ours.
        let _ = poll(&mut socket_ready, Some(&within));
        let mut datagram = [0; LONGEST];
        while let Ok(Some(received)) = receive(socket, &mut datagram) {
            let now = Received { arrived: Some(Stamp::Realtime(realtime_ns())), ..received };
            // Without room here, the socket has soon none either, and that is counted.
            if taking.send((now, datagram)).is_err() {
                return;
            }
        }
    }
}
