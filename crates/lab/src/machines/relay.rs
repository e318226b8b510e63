//! What has arrived on one machine of what another has sent to measure: told over TCP, in the other's own time.
//!
//! Each machine listens; to each of the others it has one connection, made when there is something to tell. What cannot be told is
//! lost to whoever has sent it, and counts as such: a machine that is not reached shows as loss on all of its links, and in
//! [`Relay::untold`].

use std::{
    collections::{BTreeMap, VecDeque},
    io::{self, Read, Write},
    net::{IpAddr, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use brownout_base::{ArrivalElsewhere, ArrivalsElsewhere, HostId};
use brownout_clock::offset::{Asker, Offsets};
use brownout_probe::FarArrival;

use crate::LabError;

/// How long it is tried to reach a machine, and to tell it something.
const WITHIN: Duration = Duration::from_millis(500);
/// How soon a thread notices that it is to end.
const LOOK: Duration = Duration::from_millis(50);
/// Arrivals that are kept for one who does not take them: some minutes' worth.
const KEPT: usize = 200_000;
/// The newest exchanges say most of a clock: a minute of them.
const EXCHANGES: usize = 256;

/// Which of the streams of [`brownout_probe::FarEnd`] is whose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Probes,
    Trains,
}

impl Stream {
    pub(crate) const COUNT: u16 = 2;

    pub(crate) fn number(self) -> u16 {
        match self {
            Stream::Probes => 0,
            Stream::Trains => 1,
        }
    }
}

/// What arrives at one host of another machine on one stream.
#[derive(Debug)]
pub(crate) struct Told {
    address: Mutex<SocketAddr>,
    arrivals: Mutex<VecDeque<ArrivalElsewhere>>,
}

impl Told {
    fn at(address: SocketAddr) -> Told {
        Told { address: Mutex::new(address), arrivals: Mutex::default() }
    }

    fn arrivals(&self) -> MutexGuard<'_, VecDeque<ArrivalElsewhere>> {
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ArrivalsElsewhere for Told {
    fn address(&self) -> SocketAddr {
        *self.address.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self) -> Option<ArrivalElsewhere> {
        self.arrivals().pop_front()
    }
}

/// All of them, by host and stream.
#[derive(Debug, Default)]
pub(crate) struct AllTold(Mutex<BTreeMap<(HostId, u16), Arc<Told>>>);

impl AllTold {
    fn all(&self) -> MutexGuard<'_, BTreeMap<(HostId, u16), Arc<Told>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where a host's streams are from now on.
    pub(crate) fn are_at(&self, host: HostId, addresses: &[SocketAddr]) {
        let mut all = self.all();
        for (stream, address) in (0..).zip(addresses) {
            match all.get(&(host, stream)) {
                Some(told) => *told.address.lock().unwrap_or_else(PoisonError::into_inner) = *address,
                None => drop(all.insert((host, stream), Arc::new(Told::at(*address)))),
            }
        }
    }

    pub(crate) fn of(&self, host: HostId, stream: Stream) -> Option<Arc<Told>> {
        self.all().get(&(host, stream.number())).cloned()
    }

    fn put(&self, host: HostId, stream: u16, arrival: ArrivalElsewhere) {
        let told = self.all().get(&(host, stream)).cloned();
        if let Some(told) = told {
            let mut arrivals = told.arrivals();
            if arrivals.len() < KEPT {
                arrivals.push_back(arrival);
            }
        }
    }
}

/// What is known of the clocks of the other machines, by name.
#[derive(Debug, Default)]
pub(crate) struct Clocks {
    askers: BTreeMap<String, Asker>,
}

impl Clocks {
    /// Begins to ask these, from `from`.
    pub(crate) fn ask(
        peers: impl Iterator<Item = (String, SocketAddr)>,
        from: IpAddr,
        realtime: bool,
    ) -> Result<Clocks, LabError> {
        let failed = |source| LabError::Ground { doing: "ask for the clocks of other machines", source };
        let asker = |(machine, server): (String, SocketAddr)| {
            let socket = std::net::UdpSocket::bind((from, 0)).map_err(failed)?;
            Ok((machine, Asker::start(socket, server, realtime)?))
        };
        Ok(Clocks { askers: peers.map(asker).collect::<Result<_, LabError>>()? })
    }

    /// What is known of a machine's clock by now, from the newest exchanges.
    pub(crate) fn newest(&self, machine: &str) -> Option<Offsets> {
        let exchanges = self.askers.get(machine)?.exchanges();
        Some(Offsets::of(exchanges[exchanges.len().saturating_sub(EXCHANGES)..].to_vec()))
    }

    /// All machines that are asked.
    pub(crate) fn machines(&self) -> impl Iterator<Item = &str> {
        self.askers.keys().map(String::as_str)
    }

    /// All exchanges with a machine.
    pub(crate) fn exchanges(&self, machine: &str) -> Vec<brownout_clock::offset::Exchange> {
        self.askers.get(machine).map(Asker::exchanges).unwrap_or_default()
    }
}

/// Tells other machines, and hears from them, until this is dropped.
pub(crate) struct Relay {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    untold: Arc<AtomicU64>,
}

impl Relay {
    /// Hears from others on a port of this address: what is told is put into `told`, with its time by this machine's clock.
    pub(crate) fn listen(
        listener: TcpListener,
        told: Arc<AllTold>,
        clocks: Arc<Mutex<Clocks>>,
    ) -> Result<Relay, LabError> {
        let failed = |source| LabError::Ground { doing: "hear from other machines", source };
        let address = listener.local_addr().map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let accept = move || {
            let mut hearers: Vec<JoinHandle<()>> = Vec::new();
            while !stopped.load(Ordering::Relaxed) {
                match listener.accept() {
                    Ok((stream, _)) => {
                        let (stopped, told, clocks) = (Arc::clone(&stopped), Arc::clone(&told), Arc::clone(&clocks));
                        let hear = move || hear(stream, &stopped, &told, &clocks);
                        // One that cannot be heard is one that cannot be reached.
                        hearers.extend(thread::Builder::new().name("relay-in".to_owned()).spawn(hear));
                        hearers.retain(|hearer| !hearer.is_finished());
                    }
                    Err(_) => thread::sleep(LOOK),
                }
            }
            for hearer in hearers {
                // A panic has been printed by the thread itself.
                let _ = hearer.join();
            }
        };
        let thread = thread::Builder::new().name("relay".to_owned()).spawn(accept).map_err(failed)?;
        Ok(Relay { address, stop, threads: vec![thread], untold: Arc::default() })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Arrivals that could not be told to those who had sent what arrived.
    pub(crate) fn untold(&self) -> u64 {
        self.untold.load(Ordering::Relaxed)
    }

    /// Who tells the others, as of [`brownout_probe::FarEnd`]: `machine_of` knows on which machine a host is, `machine` is this one.
    pub(crate) fn teller(
        &mut self,
        machine: &str,
        peers: BTreeMap<String, SocketAddr>,
        machine_of: BTreeMap<HostId, String>,
    ) -> Result<Box<brownout_probe::Tell>, LabError> {
        let mut lines = BTreeMap::new();
        for (peer, address) in peers {
            let (sender, receiver) = std::sync::mpsc::sync_channel::<Vec<u8>>(64);
            let (stopped, untold) = (Arc::clone(&self.stop), Arc::clone(&self.untold));
            let greeting = machine.to_owned();
            let tell = move || {
                let mut line: Option<TcpStream> = None;
                while !stopped.load(Ordering::Relaxed) {
                    let Ok(batch) = receiver.recv_timeout(LOOK) else { continue };
                    if line.is_none() {
                        line = connect(address, &greeting).ok();
                    }
                    let sent = line.as_mut().is_some_and(|line| line.write_all(&batch).is_ok());
                    if !sent {
                        line = None;
                        untold.fetch_add(count(&batch), Ordering::Relaxed);
                    }
                }
            };
            let failed = |source| LabError::Ground { doing: "tell other machines", source };
            self.threads.push(thread::Builder::new().name("relay-out".to_owned()).spawn(tell).map_err(failed)?);
            lines.insert(peer, sender);
        }
        let untold = Arc::clone(&self.untold);
        Ok(Box::new(move |arrivals: Vec<FarArrival>| {
            let mut batches: BTreeMap<&String, Vec<u8>> = BTreeMap::new();
            for arrival in &arrivals {
                if let Some(machine) = machine_of.get(&arrival.from) {
                    encode(arrival, batches.entry(machine).or_default());
                }
            }
            for (machine, batch) in batches {
                let arrivals = count(&batch);
                // Whoever does not take it in time is not waited for: its probes count as lost, and that is told.
                if lines.get(machine).is_none_or(|line| line.try_send(batch).is_err()) {
                    untold.fetch_add(arrivals, Ordering::Relaxed);
                }
            }
        }))
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A panic has been printed by the thread itself.
            let _ = thread.join();
        }
    }
}

/// Bytes of an arrival: host, stream, time (0: unknown), dropped, length of the datagram and the datagram, of which more than this
/// is not told.
const DATAGRAM: usize = 32;
const ARRIVAL: usize = 2 + 2 + 8 + 4 + 1 + DATAGRAM;

fn encode(far: &FarArrival, to: &mut Vec<u8>) {
    let FarArrival { to: host, stream, arrival, .. } = far;
    let length = arrival.datagram.len().min(DATAGRAM);
    let mut datagram = [0; DATAGRAM];
    datagram[..length].copy_from_slice(&arrival.datagram[..length]);
    to.extend(host.0.to_be_bytes());
    to.extend(stream.to_be_bytes());
    to.extend(arrival.at_ns.unwrap_or(0).to_be_bytes());
    to.extend(arrival.dropped.to_be_bytes());
    to.push(length as u8);
    to.extend(datagram);
}

fn decode(bytes: &[u8; ARRIVAL]) -> (HostId, u16, ArrivalElsewhere) {
    let number = |from: usize, to: usize| bytes[from..to].iter().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
    let at_ns = Some(number(4, 12)).filter(|at| *at > 0);
    let length = usize::from(bytes[16]).min(DATAGRAM);
    let arrival = ArrivalElsewhere { datagram: bytes[17..17 + length].to_vec(), at_ns, dropped: number(12, 16) as u32 };
    (HostId(number(0, 2) as u16), number(2, 4) as u16, arrival)
}

/// How many arrivals a batch has.
fn count(batch: &[u8]) -> u64 {
    (batch.len() / ARRIVAL) as u64
}

/// A name, as a line begins with it.
const NAME: usize = 253;

fn connect(address: SocketAddr, machine: &str) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect_timeout(&address, WITHIN)?;
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(WITHIN))?;
    let name = machine.as_bytes().get(..machine.len().min(NAME)).unwrap_or_default();
    stream.write_all(&[&[name.len() as u8], name].concat())?;
    Ok(stream)
}

/// Hears from one machine until it goes.
fn hear(mut stream: TcpStream, stopped: &AtomicBool, told: &AllTold, clocks: &Mutex<Clocks>) {
    if stream.set_nonblocking(false).and_then(|()| stream.set_read_timeout(Some(LOOK))).is_err() {
        return;
    }
    let mut read = |into: &mut [u8]| -> io::Result<()> {
        let mut filled = 0;
        while filled < into.len() {
            match stream.read(&mut into[filled..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(more) => filled += more,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && !stopped.load(Ordering::Relaxed) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    };
    let Some(machine) = name(&mut read) else { return };
    let mut offsets = clocks.lock().unwrap_or_else(PoisonError::into_inner).newest(&machine);
    let mut at_ns = brownout_base::clock::monotonic_ns();
    let mut bytes = [0; ARRIVAL];
    while read(&mut bytes).is_ok() {
        // What is known of its clock is looked at again four times a second.
        let now_ns = brownout_base::clock::monotonic_ns();
        if now_ns - at_ns > 250_000_000 {
            offsets = clocks.lock().unwrap_or_else(PoisonError::into_inner).newest(&machine);
            at_ns = now_ns;
        }
        let (host, stream, mut arrival) = decode(&bytes);
        arrival.at_ns = arrival.at_ns.and_then(|theirs| Some(offsets.as_ref()?.on_asking(theirs)?.0));
        told.put(host, stream, arrival);
    }
}

/// Who is at the other end of a line.
fn name(read: &mut impl FnMut(&mut [u8]) -> io::Result<()>) -> Option<String> {
    let mut length = [0];
    read(&mut length).ok()?;
    let mut name = vec![0; usize::from(length[0])];
    read(&mut name).ok()?;
    String::from_utf8(name).ok()
}

#[cfg(test)]
mod tests {
    use std::{
        net::{Ipv4Addr, UdpSocket},
        time::Instant,
    };

    use brownout_base::clock::monotonic_ns;
    use brownout_clock::offset::Server;

    use super::*;

    #[test]
    fn an_arrival_is_told_as_it_was() {
        let far = FarArrival {
            from: HostId(1),
            to: HostId(0x0203),
            stream: 1,
            arrival: ArrivalElsewhere { datagram: vec![7; 28], at_ns: Some(5), dropped: 9 },
        };
        let mut bytes = Vec::new();
        encode(&far, &mut bytes);
        assert_eq!(count(&bytes), 1);
        assert_eq!(decode(bytes[..].try_into().unwrap()), (HostId(0x0203), 1, far.arrival.clone()));
        let unknown = ArrivalElsewhere { at_ns: None, datagram: Vec::new(), ..far.arrival };
        bytes.clear();
        encode(&FarArrival { arrival: unknown.clone(), ..far }, &mut bytes);
        assert_eq!(decode(bytes[..].try_into().unwrap()).2, unknown);
    }

    #[test]
    fn what_arrives_on_one_machine_is_known_to_the_other_in_its_own_time() {
        let listener = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let clock = socket.local_addr().unwrap();
        let _server = Server::start(socket, false).unwrap();
        let peers = [("b".to_owned(), clock)].into_iter();
        let clocks = Arc::new(Mutex::new(Clocks::ask(peers, Ipv4Addr::LOCALHOST.into(), false).unwrap()));
        let told = Arc::<AllTold>::default();
        let nowhere: SocketAddr = (Ipv4Addr::LOCALHOST, 9).into();
        told.are_at(HostId(4), &[nowhere, nowhere]);
        let until = |is_so: &mut dyn FnMut() -> bool| {
            let begun = Instant::now();
            while !is_so() {
                assert!(begun.elapsed() < Duration::from_secs(60));
                thread::sleep(Duration::from_millis(20));
            }
        };
        let known = || clocks.lock().unwrap().newest("b").is_some_and(|offsets| offsets.count() >= 8);
        until(&mut || known());

        let a = Relay::listen(listener(), Arc::clone(&told), Arc::clone(&clocks)).unwrap();
        let mut b = Relay::listen(listener(), Arc::default(), Arc::default()).unwrap();
        let (to_a, of_a) =
            (BTreeMap::from([("a".to_owned(), a.address())]), BTreeMap::from([(HostId(1), "a".to_owned())]));
        let mut tell = b.teller("b", to_a, of_a).unwrap();
        let at_ns = monotonic_ns();
        let arrival = ArrivalElsewhere { datagram: vec![1, 2, 3], at_ns: Some(at_ns), dropped: 0 };
        tell(vec![FarArrival { from: HostId(1), to: HostId(4), stream: 0, arrival }]);
        let mut heard = None;
        until(&mut || {
            heard = told.of(HostId(4), Stream::Probes).and_then(|told| told.next());
            heard.is_some()
        });
        let heard = heard.unwrap();
        assert_eq!(heard.datagram, [1, 2, 3]);
        // Both machines are this one.
        assert!(heard.at_ns.unwrap().abs_diff(at_ns) < 20_000_000, "{heard:?} at {at_ns}");
        assert!(told.of(HostId(4), Stream::Trains).unwrap().next().is_none());
        assert_eq!(b.untold(), 0);

        drop(a);
        let lost = || ArrivalElsewhere { datagram: Vec::new(), at_ns: None, dropped: 0 };
        until(&mut || {
            tell(vec![FarArrival { from: HostId(1), to: HostId(4), stream: 0, arrival: lost() }]);
            b.untold() > 0
        });
    }
}
