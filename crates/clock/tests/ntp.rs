//! NTP over real sockets of this machine: clients and servers with clocks that are known to differ.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    cell::Cell,
    net::{SocketAddr, UdpSocket},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use brownout_base::random::Random;
use brownout_clock::{
    HostClock,
    ntp::{Mode, NtpError, PACKET_LENGTH, Packet, Responder, Sample, Short, Timestamp, best_of, exchange},
};
use tempfile::TempDir;

const SECOND: i64 = 1_000_000_000;
const HOUR: i64 = 3_600 * SECOND;
const YEAR: i64 = 365 * 24 * HOUR;
/// For what must succeed.
const PATIENCE: Duration = Duration::from_secs(60);
/// For what must not; long enough that a request is sent again, and an answer comes, on a machine that is late.
const BRIEFLY: Duration = Duration::from_secs(3);
const LOCALHOSTS: [&str; 2] = ["127.0.0.1:0", "[::1]:0"];

/// Clocks in a directory of their own.
struct Clocks {
    directory: TempDir,
    number: Cell<u32>,
}

impl Clocks {
    fn new() -> Self {
        Clocks { directory: tempfile::tempdir().unwrap(), number: Cell::new(0) }
    }

    fn off_by(&self, offset_ns: i64) -> HostClock {
        self.number.set(self.number.get() + 1);
        let clock = HostClock::create(self.directory.path().join(self.number.get().to_string())).unwrap();
        clock.shift(offset_ns, 0).unwrap();
        clock
    }
}

fn bound(address: &str) -> (UdpSocket, SocketAddr) {
    let socket = UdpSocket::bind(address).unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

/// A server on a thread that may misbehave. Ended when dropped.
struct Server {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// `answer` gets each datagram with its sender and a socket to answer from.
    fn start(mut answer: impl FnMut(&[u8], SocketAddr, &UdpSocket) + Send + 'static) -> Self {
        let (socket, address) = bound(LOCALHOSTS[0]);
        socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut buffer = [0; 512];
            while !stopped.load(Ordering::Relaxed) {
                if let Ok((length, from)) = socket.recv_from(&mut buffer) {
                    answer(&buffer[..length], from, &socket);
                }
            }
        });
        Server { address, stop, thread: Some(thread) }
    }

    /// Hands requests on to another server and answers back, each late by so much.
    fn relay(to: SocketAddr, there: Duration, back: Duration) -> Self {
        let (onward, _) = bound(LOCALHOSTS[0]);
        onward.set_read_timeout(Some(PATIENCE)).unwrap();
        Server::start(move |request, from, socket| {
            thread::sleep(there);
            onward.send_to(request, to).unwrap();
            let mut buffer = [0; 512];
            let (length, _) = onward.recv_from(&mut buffer).unwrap();
            thread::sleep(back);
            socket.send_to(&buffer[..length], from).unwrap();
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().unwrap().join();
    }
}

fn ask(server: SocketAddr, clock: &HostClock, patience: Duration) -> Result<Sample, NtpError> {
    let (socket, _) = bound(if server.is_ipv4() { LOCALHOSTS[0] } else { LOCALHOSTS[1] });
    exchange(&socket, server, &|| clock.realtime_ns(), patience)
}

fn assert_covers(sample: &Sample, truth: i64) {
    let error = sample.offset_ns.abs_diff(truth);
    let bound = sample.error_bound_ns();
    assert!(error <= bound, "{} ns ± {bound} ns for {truth} ns: wrong by {error} ns", sample.offset_ns);
}

/// A plain answer, as of a server with the machine's clock.
fn answer_to(request: &[u8], now_ns: u64) -> Packet {
    let request = Packet::decode(request).unwrap();
    let now = Timestamp::from_unix_ns(now_ns);
    let mode = Mode::Server;
    Packet { mode, stratum: 2, precision: -20, origin: request.transmit, receive: now, transmit: now, ..request }
}

#[test]
fn the_bound_covers_the_true_offset_in_every_exchange_whichever_clock_is_off() {
    let clocks = Clocks::new();
    for skews in [[0, 0], [HOUR, 0], [0, HOUR], [-HOUR, HOUR], [HOUR, -HOUR], [-1, 1], [0, 123_456_789]] {
        let [asks, answers] = skews.map(|skew| clocks.off_by(skew));
        let truth = skews[1] - skews[0];
        for address in LOCALHOSTS {
            let (socket, server) = bound(address);
            let responder = Responder::start(vec![(socket, answers.clone())]).unwrap();
            let (socket, _) = bound(address);
            for _ in 0..100 {
                let sample = exchange(&socket, server, &|| asks.realtime_ns(), PATIENCE).unwrap();
                assert_covers(&sample, truth);
                assert!(sample.at_ns.abs_diff(asks.realtime_ns()) < HOUR.unsigned_abs() / 2);
            }
            let best = best_of(8, &socket, server, &|| asks.realtime_ns(), PATIENCE).unwrap();
            assert_covers(&best, truth);
            // More, where this machine was so late that a request was sent again.
            assert!(responder.answered(0) >= 108);
            assert_eq!(responder.answered(1), 0);
        }
    }
}

#[test]
fn one_thread_answers_for_many_hosts_each_by_its_own_clock() {
    let clocks = Clocks::new();
    let skews: Vec<i64> = (0..50).map(|number| (number - 25) * HOUR).collect();
    let mut hosts = Vec::new();
    let mut servers = Vec::new();
    for (number, &skew) in skews.iter().enumerate() {
        let (socket, server) = bound(LOCALHOSTS[number % 2]);
        hosts.push((socket, clocks.off_by(skew)));
        servers.push(server);
    }
    let responder = Responder::start(hosts).unwrap();
    let machine = clocks.off_by(0);
    for (server, &skew) in servers.iter().zip(&skews) {
        assert_covers(&ask(*server, &machine, PATIENCE).unwrap(), skew);
    }
    assert!((0..50).all(|number| responder.answered(number) >= 1));
}

#[test]
fn a_change_of_clock_is_in_the_next_answer() {
    let clocks = Clocks::new();
    let [machine, server_clock] = [0, 0].map(|skew| clocks.off_by(skew));
    let (socket, server) = bound(LOCALHOSTS[0]);
    let _responder = Responder::start(vec![(socket, server_clock.clone())]).unwrap();
    for number in 0..50 {
        let offset_ns = (number - 25) * 77_777_777_777;
        server_clock.reset().unwrap();
        server_clock.shift(offset_ns, 0).unwrap();
        assert_covers(&ask(server, &machine, PATIENCE).unwrap(), offset_ns);
    }
}

#[test]
fn delays_of_one_way_shift_the_offset_by_half_and_the_bound_tells() {
    let clocks = Clocks::new();
    let [asks, answers] = [-HOUR, HOUR].map(|skew| clocks.off_by(skew));
    let (socket, server) = bound(LOCALHOSTS[0]);
    let _responder = Responder::start(vec![(socket, answers)]).unwrap();
    let late = Duration::from_millis(40);
    for (there, back, sign) in [(late, Duration::ZERO, 1), (Duration::ZERO, late, -1)] {
        let relay = Server::relay(server, there, back);
        let sample = ask(relay.address, &asks, PATIENCE).unwrap();
        assert_covers(&sample, 2 * HOUR);
        assert!(sample.delay_ns >= 40_000_000);
        // Wrong by 20 ms and by half of what else delayed the two ways unequally.
        let wrong = (sample.offset_ns - 2 * HOUR) * sign;
        let excess = i64::try_from(sample.delay_ns).unwrap() - 40_000_000;
        assert!((wrong - 20_000_000).abs() <= excess / 2 + 1_000, "wrong by {wrong} ns with {excess} ns more delay");
    }
}

#[test]
fn an_answer_that_takes_longer_than_the_next_request_is_still_one() {
    let clocks = Clocks::new();
    let [asks, answers] = [0, HOUR].map(|skew| clocks.off_by(skew));
    let (socket, server) = bound(LOCALHOSTS[0]);
    let _responder = Responder::start(vec![(socket, answers)]).unwrap();
    let relay = Server::relay(server, Duration::from_millis(350), Duration::from_millis(350));
    let sample = ask(relay.address, &asks, PATIENCE).unwrap();
    assert!(sample.delay_ns >= 700_000_000);
    assert_covers(&sample, HOUR);
}

#[test]
fn the_end_of_the_era_in_2036_passes_unnoticed() {
    let clocks = Clocks::new();
    let machine = clocks.off_by(0);
    // From now to the last half hour of era 0, whenever this test runs before that.
    let end = 2_085_978_496 * SECOND;
    let to_end = end - i64::try_from(machine.realtime_ns()).unwrap();
    assert!(to_end > 0, "it is later than 2036: this test must be written anew");
    for (asks, answers) in [(to_end - HOUR, to_end + HOUR), (to_end + HOUR, to_end - HOUR), (0, to_end + YEAR)] {
        let [asking, answering] = [asks, answers].map(|skew| clocks.off_by(skew));
        let (socket, server) = bound(LOCALHOSTS[0]);
        let _responder = Responder::start(vec![(socket, answering.clone())]).unwrap();
        let sample = ask(server, &asking, PATIENCE).unwrap();
        assert_covers(&sample, answers - asks);
        let ago = Timestamp::from_unix_ns(answering.realtime_ns()).since_ns(sample.answer.receive);
        assert!(ago.abs() < HOUR, "{ago}");
    }
}

#[test]
fn requests_that_are_lost_are_sent_again() {
    let clocks = Clocks::new();
    let machine = clocks.off_by(0);
    let mut lost = 0;
    let clock = machine.clone();
    let server = Server::start(move |request, from, socket| {
        lost += 1;
        if lost > 3 {
            socket.send_to(&answer_to(request, clock.realtime_ns()).encode(), from).unwrap();
        }
    });
    assert_covers(&ask(server.address, &machine, PATIENCE).unwrap(), 0);
}

#[test]
fn what_is_no_answer_to_a_request_of_ours_is_ignored() {
    let clocks = Clocks::new();
    let machine = clocks.off_by(0);
    let clock = machine.clone();
    let (stranger, _) = bound(LOCALHOSTS[0]);
    let server = Server::start(move |request, from, socket| {
        let right = answer_to(request, clock.realtime_ns());
        // Each of these would show an offset of an hour.
        let wrong = Timestamp::from_unix_ns(clock.realtime_ns() + HOUR.unsigned_abs());
        let lie = Packet { receive: wrong, transmit: wrong, ..right };
        let send = |packet: Packet| socket.send_to(&packet.encode(), from).unwrap();
        send(Packet { origin: Timestamp(right.origin.0 ^ 1), ..lie });
        send(Packet { origin: Timestamp(0), ..lie });
        send(Packet { origin: Timestamp(0), stratum: 0, reference_id: *b"DENY", ..lie });
        for mode in [Mode::Client, Mode::SymmetricActive, Mode::SymmetricPassive, Mode::Broadcast, Mode::Private] {
            send(Packet { mode, ..lie });
        }
        send(Packet { version: 0, ..lie });
        send(Packet { version: 5, ..lie });
        socket.send_to(&lie.encode()[..PACKET_LENGTH - 1], from).unwrap();
        socket.send_to(&[], from).unwrap();
        stranger.send_to(&lie.encode(), from).unwrap();
        let now = Timestamp::from_unix_ns(clock.realtime_ns());
        send(Packet { receive: now, transmit: now, ..right });
    });
    assert_covers(&ask(server.address, &machine, PATIENCE).unwrap(), 0);
}

#[test]
fn refusals_and_clocks_that_know_no_time_are_errors_of_their_own() {
    let clocks = Clocks::new();
    let machine = clocks.off_by(0);
    let failing = |change: fn(Packet) -> Packet| {
        let clock = machine.clone();
        let server = Server::start(move |request, from, socket| {
            socket.send_to(&change(answer_to(request, clock.realtime_ns())).encode(), from).unwrap();
        });
        ask(server.address, &machine, PATIENCE).unwrap_err()
    };
    let kiss = failing(|answer| Packet { stratum: 0, reference_id: *b"RATE", ..answer });
    assert!(matches!(&kiss, NtpError::Kiss { code, .. } if code == "RATE"), "{kiss}");
    let odd = failing(|answer| Packet { stratum: 0, reference_id: [0, 7, 200, b'X'], ..answer });
    assert!(matches!(&odd, NtpError::Kiss { code, .. } if code == "X"), "{odd}");
    for error in [
        failing(|answer| Packet { leap: 3, ..answer }),
        failing(|answer| Packet { stratum: 16, ..answer }),
        failing(|answer| Packet { transmit: Timestamp(0), ..answer }),
    ] {
        assert!(matches!(error, NtpError::Unsynchronized { .. }), "{error}");
    }
}

#[test]
fn silence_is_an_error_that_says_how_often_was_asked() {
    let clocks = Clocks::new();
    let machine = clocks.off_by(0);
    let (_silent, server) = bound(LOCALHOSTS[0]);
    let error = ask(server, &machine, BRIEFLY).unwrap_err();
    assert!(matches!(error, NtpError::NoAnswer { sent: 2.., .. }), "{error}");
    let (socket, _) = bound(LOCALHOSTS[0]);
    let clock = || machine.realtime_ns();
    assert!(matches!(best_of(3, &socket, server, &clock, BRIEFLY), Err(NtpError::NoAnswer { .. })));
    assert!(matches!(best_of(0, &socket, server, &clock, BRIEFLY), Err(NtpError::NoExchanges)));
    // Nobody there at all, which a connected socket is told.
    let (gone, nobody) = bound(LOCALHOSTS[0]);
    drop(gone);
    socket.connect(nobody).unwrap();
    let error = exchange(&socket, nobody, &clock, BRIEFLY).unwrap_err();
    assert!(error.to_string().contains("refused"), "{error}");
}

#[test]
fn an_exchange_during_which_a_clock_was_stepped_does_not_count() {
    let clocks = Clocks::new();
    let machine = clocks.off_by(0);
    for step in [SECOND, -SECOND] {
        // The client's is stepped after each request.
        let (socket, server) = bound(LOCALHOSTS[0]);
        let _responder = Responder::start(vec![(socket, machine.clone())]).unwrap();
        let (socket, _) = bound(LOCALHOSTS[0]);
        let readings = Cell::new(0);
        let stepping = || {
            readings.set(readings.get() + 1);
            machine.realtime_ns().saturating_add_signed(step * readings.get())
        };
        let error = exchange(&socket, server, &stepping, BRIEFLY).unwrap_err();
        assert!(error.to_string().contains("stepped"), "{error}");
    }
    // The server's is stepped between receiving and sending, the first time.
    let clock = machine.clone();
    let mut first = true;
    let server = Server::start(move |request, from, socket| {
        let mut answer = answer_to(request, clock.realtime_ns());
        if std::mem::take(&mut first) {
            answer.transmit = Timestamp::from_unix_ns(clock.realtime_ns() + HOUR.unsigned_abs());
        }
        socket.send_to(&answer.encode(), from).unwrap();
    });
    assert_covers(&ask(server.address, &machine, PATIENCE).unwrap(), 0);
}

#[test]
fn the_server_answers_clients_of_every_version_and_nothing_else() {
    let clocks = Clocks::new();
    let (socket, server) = bound(LOCALHOSTS[0]);
    let responder = Responder::start(vec![(socket, clocks.off_by(HOUR))]).unwrap();
    let (socket, _) = bound(LOCALHOSTS[0]);
    let mut random = Random::new(1);
    let request = Packet::request(Timestamp(0x0123_4567_89ab_cdef));
    let mut asked = 0;
    for mode in 0..8 {
        for version in 0..8 {
            let mut bytes = request.encode();
            bytes[0] = version << 3 | mode;
            socket.send_to(&bytes, server).unwrap();
            asked += u64::from(mode == 3 && (1..=4).contains(&version));
        }
    }
    // Few enough to fit into the socket, should the server sleep meanwhile.
    for length in (0..200).step_by(4) {
        let garbage: Vec<u8> = (0..length)
            .map(|at| {
                // Never mode 3.
                let byte = random.word() as u8;
                if at == 0 { byte & !3 } else { byte }
            })
            .collect();
        socket.send_to(&garbage, server).unwrap();
        socket.send_to(&request.encode()[..length.min(PACKET_LENGTH - 1)], server).unwrap();
    }
    // With what may follow a header.
    let mut long = Packet { poll: 6, ..request }.encode().to_vec();
    long.extend([7; 1_000]);
    socket.send_to(&long, server).unwrap();
    asked += 1;

    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut buffer = [0; 512];
    for number in 1..=asked {
        let (length, from) = socket.recv_from(&mut buffer).unwrap();
        assert_eq!((length, from), (PACKET_LENGTH, server));
        let answer = Packet::decode(&buffer).unwrap();
        assert_eq!((answer.mode, answer.leap), (Mode::Server, 0));
        assert!((1..=15).contains(&answer.stratum) && (1..=4).contains(&answer.version));
        assert_eq!((answer.origin, answer.poll), (request.transmit, if number == asked { 6 } else { 0 }));
        assert!(answer.transmit.since_ns(answer.receive) >= 0 && answer.receive.since_ns(answer.reference) > 0);
        assert!(answer.root_dispersion <= Short::from_ns(SECOND.unsigned_abs()));
    }
    assert_eq!(responder.answered(0), asked);
    socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    assert!(socket.recv_from(&mut buffer).is_err(), "something else was answered, too");
}

#[test]
fn the_server_ends_with_its_handle_and_gives_its_sockets_back() {
    let clocks = Clocks::new();
    let machine = clocks.off_by(0);
    let (socket, server) = bound(LOCALHOSTS[0]);
    let responder = Responder::start(vec![(socket, machine.clone())]).unwrap();
    ask(server, &machine, PATIENCE).unwrap();
    drop(responder);
    UdpSocket::bind(server).unwrap();
    drop(Responder::start(Vec::new()).unwrap());
}
