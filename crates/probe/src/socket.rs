//! Sockets inside of hosts that know when a datagram arrived, and what is known of those inside of hosts of other machines.

use std::{
    fmt,
    io::{self, IoSlice},
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    os::fd::AsRawFd,
    sync::Arc,
    thread,
};

use brownout_base::{ArrivalsElsewhere, EnterableHost, HostId, Mesh};
use rustix::net::{
    MMsgHdr, SendAncillaryBuffer, SendFlags, SocketAddrAny, sendmmsg,
    sockopt::{
        Ipv4PathMtuDiscovery, set_ip_mtu_discover, set_socket_recv_buffer_size, set_socket_recv_buffer_size_force,
        set_socket_send_buffer_size, set_socket_send_buffer_size_force,
    },
};

use crate::{error::ProbeError, prompt::Prompt, stamps::Stamp};

/// What a socket may hold, in bytes of kernel memory: some 5,000 probes, two seconds and a half of the whole
/// budget at one host. The kernel's default holds 300.
const RECEIVE_BUFFER: usize = 4 << 20;

/// What may wait in the sending host for whoever carries it, in bytes of kernel memory: some 1,000 full packets.
const SEND_BUFFER: usize = 4 << 20;

/// A datagram's length, and what the kernel says beside it.
pub(crate) struct Received {
    pub(crate) length: usize,
    /// When it arrived; `None` if nobody says.
    pub(crate) arrived: Option<Stamp>,
    /// How many datagrams the socket had dropped when this one arrived, since it was made (modulo 2³²): for want of
    /// room, or, if they are longer than 76 bytes with their UDP header, because of a wrong checksum.
    pub(crate) overflowed: u32,
}

/// Where datagrams arrive: each with the time at which it did.
pub(crate) enum Socket {
    /// Inside of a host of this machine.
    Here(Inside),
    /// At a host of another machine, which tells of it. Nothing is sent from there.
    Elsewhere(Arc<dyn ArrivalsElsewhere>),
}

/// A non-blocking UDP socket: times are the kernel's, but for hosts in which datagrams are held back after that.
#[derive(Debug)]
pub(crate) struct Inside {
    socket: Arc<UdpSocket>,
    prompt: Option<Prompt>,
    address: SocketAddr,
}

impl Socket {
    /// One of each host, in their order; they can be used from anywhere.
    pub(crate) fn open_all(network: &dyn Mesh) -> Result<Vec<Socket>, ProbeError> {
        Ok(Self::open_with(network, || (), || ())?.into_iter().map(|(socket, ())| socket).collect())
    }

    /// The same, each with what `more` makes inside of the same host, or `without` of one that is elsewhere.
    pub(crate) fn open_with<T: Send>(
        network: &dyn Mesh,
        more: impl Fn() -> T + Sync,
        without: impl Fn() -> T + Sync,
    ) -> Result<Vec<(Socket, T)>, ProbeError> {
        let open = |(id, host): (HostId, &dyn EnterableHost)| match network.elsewhere(id) {
            Some(arrivals) => Ok((Socket::Elsewhere(arrivals), without())),
            None => Self::open_there(host, &more),
        };
        wandering(|| (0..).map(HostId).zip(network.enterable_hosts()).map(open).collect())
    }

    /// The same inside of one host.
    pub(crate) fn open_in<T: Send>(
        host: &dyn EnterableHost,
        more: impl Fn() -> T + Sync,
    ) -> Result<(Socket, T), ProbeError> {
        wandering(|| Self::open_there(host, &more))
    }

    /// Takes the calling thread along.
    fn open_there<T>(host: &dyn EnterableHost, more: &impl Fn() -> T) -> Result<(Socket, T), ProbeError> {
        let failed = |action| {
            move |source| {
                let (host, address) = (host.name().to_owned(), host.address());
                ProbeError::Socket { host, address, action, source }
            }
        };
        host.enter().map_err(failed("enter the host"))?;
        let mut inside = Inside::bind(host.address()).map_err(failed("open a UDP socket with receive times"))?;
        if host.holds_arrived() {
            inside.prompt = Some(Prompt::start(&inside.socket).map_err(failed("start a thread that takes datagrams"))?);
        }
        Ok((Socket::Here(inside), more()))
    }

    /// Where it is reached from other hosts.
    pub(crate) fn address(&self) -> SocketAddr {
        match self {
            Socket::Here(inside) => inside.address,
            Socket::Elsewhere(arrivals) => arrivals.address(),
        }
    }

    pub(crate) fn send(&self, datagram: &[u8], to: SocketAddr) -> io::Result<()> {
        self.inside()?.socket.send_to(datagram, to).map(drop)
    }

    /// Sends the datagrams of `size` bytes that `datagrams` consists of, back to back, and says how many the kernel
    /// took at once.
    pub(crate) fn send_burst(&self, datagrams: &[u8], size: usize, to: SocketAddr) -> io::Result<usize> {
        let to = SocketAddrAny::from(to);
        let parts: Vec<_> = datagrams.chunks(size).map(|datagram| [IoSlice::new(datagram)]).collect();
        let mut controls: Vec<_> = parts.iter().map(|_| SendAncillaryBuffer::default()).collect();
        let message = |(part, control)| MMsgHdr::new_with_addr(&to, part, control);
        let mut messages: Vec<_> = parts.iter().map(<[_; 1]>::as_slice).zip(&mut controls).map(message).collect();
        Ok(sendmmsg(&self.inside()?.socket, &mut messages, SendFlags::empty())?)
    }

    /// How many datagrams the socket has dropped by now, counted like [`Received::overflowed`]. One with a wrong
    /// checksum is dropped when its turn to be received has come.
    ///
    /// # Errors
    /// Also for one of another machine: what it had dropped comes with each datagram.
    pub(crate) fn dropped(&self) -> io::Result<u32> {
        // The C library's names are not everywhere: asm-generic/socket.h, linux/sock_diag.h.
        const SO_MEMINFO: libc::c_int = 55;
        const SK_MEMINFO_DROPS: usize = 8;
        let inside = self.inside()?;
        let mut counts = [0u32; SK_MEMINFO_DROPS + 1];
        let mut length = size_of_val(&counts) as libc::socklen_t;
        // SAFETY: `counts` is writable for the length stated.
        let got = unsafe {
            let into = counts.as_mut_ptr().cast();
            libc::getsockopt(inside.socket.as_raw_fd(), libc::SOL_SOCKET, SO_MEMINFO, into, &mut length)
        };
        if got == 0 { Ok(counts[SK_MEMINFO_DROPS]) } else { Err(io::Error::last_os_error()) }
    }

    /// The next datagram; `None` when there is none at the moment.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<Received>> {
        match self {
            Socket::Here(Inside { prompt: Some(prompt), .. }) => prompt.next(buffer),
            Socket::Here(inside) => receive(&inside.socket, buffer),
            Socket::Elsewhere(arrivals) => Ok(arrivals.next().map(|arrival| {
                let length = arrival.datagram.len().min(buffer.len());
                buffer[..length].copy_from_slice(&arrival.datagram[..length]);
                let arrived = arrival.at_ns.map(Stamp::Monotonic);
                Received { length, arrived, overflowed: arrival.dropped }
            })),
        }
    }

    fn inside(&self) -> io::Result<&Inside> {
        match self {
            Socket::Here(inside) => Ok(inside),
            Socket::Elsewhere(_) => Err(io::Error::new(io::ErrorKind::Unsupported, "the host is on another machine")),
        }
    }
}

impl Inside {
    /// A socket on `address`, any port, in the calling thread's namespace.
    fn bind(address: Ipv4Addr) -> io::Result<Self> {
        let socket = UdpSocket::bind((address, 0))?;
        socket.set_nonblocking(true)?;
        set_option(&socket, libc::SO_TIMESTAMPNS)?;
        set_option(&socket, libc::SO_RXQ_OVFL)?;
        // What a path once let pass, the kernel remembers for minutes: a train would be sent in fragments long after a fault of
        // sizes has been healed, and would show half of the rate. While it lasts, links cut packets that may be cut.
        set_ip_mtu_discover(&socket, Ipv4PathMtuDiscovery::INTERFACE)?;
        // Beyond net.core.rmem_max takes real root; below that, as much as it allows.
        set_socket_recv_buffer_size_force(&socket, RECEIVE_BUFFER)
            .or_else(|_| set_socket_recv_buffer_size(&socket, RECEIVE_BUFFER))?;
        set_socket_send_buffer_size_force(&socket, SEND_BUFFER)
            .or_else(|_| set_socket_send_buffer_size(&socket, SEND_BUFFER))?;
        let address = socket.local_addr()?;
        Ok(Inside { socket: Arc::new(socket), prompt: None, address })
    }
}

impl fmt::Debug for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Socket::Here(inside) => inside.fmt(f),
            Socket::Elsewhere(arrivals) => write!(f, "at {} elsewhere", arrivals.address()),
        }
    }
}

/// The next datagram of a socket, with what the kernel says; `None` when there is none at the moment.
pub(crate) fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<Option<Received>> {
    // Room for one timestamp and one count; u64 for the alignment that control messages need. rustix reads neither.
    let mut control = [0u64; 8];
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: all bytes zero is a valid `msghdr`.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    // SAFETY: `message` points to buffers that are writable for the lengths it states.
    let length = unsafe { libc::recvmsg(socket.as_raw_fd(), &mut message, 0) };
    match usize::try_from(length).map_err(|_| io::Error::last_os_error()) {
        Ok(length) => {
            let mut received = Received { length, arrived: None, overflowed: 0 };
            read_control(&message, &mut received);
            Ok(Some(received))
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

/// Does `work` on a thread of its own, which may go from host to host: the caller's stays where it is.
fn wandering<T: Send>(work: impl FnOnce() -> Result<T, ProbeError> + Send) -> Result<T, ProbeError> {
    thread::scope(|scope| {
        thread::Builder::new()
            .name("sockets".to_owned())
            .spawn_scoped(scope, work)
            .map_err(|source| ProbeError::Thread { does: "opens sockets", source })?
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Reads `SCM_TIMESTAMPNS` and `SO_RXQ_OVFL` (socket(7)) among the control messages of a received `message`. The latter
/// is left out by the kernel while it is zero.
fn read_control(message: &libc::msghdr, received: &mut Received) {
    // SAFETY: the kernel filled the control buffer in, and the CMSG functions stay inside of it;
    // a SCM_TIMESTAMPNS carries one timespec, a SO_RXQ_OVFL one u32, which may be unaligned.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(message);
        while let Some(control) = header.as_ref() {
            let data = libc::CMSG_DATA(control);
            match (control.cmsg_level, control.cmsg_type) {
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                    let time = data.cast::<libc::timespec>().read_unaligned();
                    let realtime_ns = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
                    received.arrived = Some(Stamp::Realtime(realtime_ns));
                }
                (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => received.overflowed = data.cast::<u32>().read_unaligned(),
                _ => {}
            }
            header = libc::CMSG_NXTHDR(message, control);
        }
    }
}

/// Whether what the kernel says to a send is that there is no room at the moment.
pub(crate) fn can_pass(error: &io::Error) -> bool {
    [libc::EAGAIN, libc::ENOBUFS, libc::EINTR].map(Some).contains(&error.raw_os_error())
}

/// Switches an option on that rustix does not have.
fn set_option(socket: &UdpSocket, option: libc::c_int) -> io::Result<()> {
    let (on, length): (libc::c_int, _) = (1, size_of::<libc::c_int>() as libc::socklen_t);
    // SAFETY: `on` is readable for the length stated.
    let set = unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, std::ptr::from_ref(&on).cast(), length)
    };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_socket_holds_what_comes_in_seconds_and_counts_what_it_cannot() {
        let inside = Inside::bind(Ipv4Addr::LOCALHOST).unwrap();
        let kernel = Arc::clone(&inside.socket);
        let socket = Socket::Here(inside);
        let to = socket.address();
        let sender = Socket::Here(Inside::bind(Ipv4Addr::LOCALHOST).unwrap());
        let send = |count: u32| (0..count).for_each(|_| sender.send(&[7; 28], to).unwrap());
        let drain = || std::iter::from_fn(|| socket.receive(&mut [0; 64]).unwrap()).collect::<Vec<_>>();

        send(2_000);
        let received = drain();
        assert_eq!(received.len(), 2_000, "the kernel allows no larger buffer: see net.core.rmem_max");
        assert!(received.iter().all(|one| one.overflowed == 0 && matches!(one.arrived, Some(Stamp::Realtime(_)))));

        // The kernel makes the smallest buffer of it that it has.
        set_socket_recv_buffer_size(&kernel, 1).unwrap();
        send(100);
        let before = drain().len() as u32;
        assert!(before < 100);
        send(1);
        assert_eq!(drain()[0].overflowed, 100 - before);
        assert_eq!(socket.dropped().unwrap(), 100 - before);
    }
}
