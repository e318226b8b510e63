//! Asking a server what time it is.

use std::{
    io,
    net::{SocketAddr, UdpSocket},
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags};

use super::{
    Mode, NtpError, Packet, Timestamp,
    datagram::{self, Received},
    timestamp::units_to_ns,
};

/// After how long a request is sent again; doubled each time, up to [`SLOWEST_AGAIN`]. Answers to all are accepted:
/// on a long link the first may come last.
const AGAIN: Duration = Duration::from_millis(250);
const SLOWEST_AGAIN: Duration = Duration::from_secs(2);

/// A clock that runs differently from the monotonic one by more than this within one exchange was stepped meanwhile,
/// and the exchange says nothing. Half of the time itself is left to drift.
const STEP: Duration = Duration::from_millis(1);

/// What one exchange has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// θ: nanoseconds by which the server's clock is ahead of the client's (negative: behind).
    pub offset_ns: i64,
    /// δ: the round trip without the time at the server, in nanoseconds.
    pub delay_ns: u64,
    /// Resolution of both clocks and the rounding of timestamps, in nanoseconds.
    pub precision_ns: u64,
    /// T4: when the answer came, by the client's clock, in nanoseconds since 1970.
    pub at_ns: u64,
    /// What the server said of itself, and the timestamps T1 (`origin`), T2 (`receive`), T3 (`transmit`).
    pub answer: Packet,
}

impl Sample {
    /// The true offset is within `offset_ns` ± this, however the delay was spread over the two ways: δ/2 and the
    /// resolution of the clocks. Not in it: what the two clocks drifted apart during the exchange.
    pub fn error_bound_ns(&self) -> u64 {
        self.delay_ns.div_ceil(2) + self.precision_ns
    }

    /// RFC 5905, section 8. `None` if these cannot be the four timestamps of one exchange.
    fn of(answer: Packet, t4_ns: u64) -> Option<Self> {
        let Packet { origin: t1, receive: t2, transmit: t3, .. } = answer;
        let t4 = Timestamp::from_unix_ns(t4_ns);
        // First differences in 64 bits, which hold across the end of an era; sums in more.
        let there = i128::from(t2.units_since(t1));
        let back = i128::from(t3.units_since(t4));
        let delay_ns = units_to_ns(i128::from(t4.units_since(t1)) - i128::from(t3.units_since(t2)));
        // Either reading may be off by its resolution, and each of the timestamps is rounded.
        let precision_ns = answer.precision_ns() + 2;
        // Between neighbours a round trip may seem shorter than nothing by as much, but not by more.
        if delay_ns < -i64::try_from(precision_ns).unwrap_or(i64::MAX) {
            return None;
        }
        Some(Sample {
            offset_ns: units_to_ns((there + back) / 2),
            delay_ns: u64::try_from(delay_ns).unwrap_or(0),
            precision_ns,
            at_ns: t4_ns,
            answer,
        })
    }
}

/// A request under way.
struct Asked {
    transmit: Timestamp,
    sent_ns: u64,
    sent: Instant,
}

/// One exchange with `server` over `socket`, by the local clock `clock` (nanoseconds since 1970). A request or an answer
/// that is lost is sent again until `patience` is over.
///
/// The socket must be of the server's family, and may be connected to it. What comes from others or answers nothing
/// that was asked here is ignored.
///
/// # Errors
/// [`NtpError::NoAnswer`], [`NtpError::Kiss`], [`NtpError::Unsynchronized`] for what their names say,
/// [`NtpError::Socket`] if the socket itself fails.
pub fn exchange(
    socket: &UdpSocket,
    server: SocketAddr,
    clock: &dyn Fn() -> u64,
    patience: Duration,
) -> Result<Sample, NtpError> {
    datagram::stamp(socket);
    let began = Instant::now();
    let mut asked: Vec<Asked> = Vec::new();
    let mut again = AGAIN;
    let mut because = String::new();
    let mut next = began;
    loop {
        let now = Instant::now();
        let left = patience.saturating_sub(now - began);
        if left.is_zero() && !asked.is_empty() {
            let sent = u32::try_from(asked.len()).unwrap_or(u32::MAX);
            return Err(NtpError::NoAnswer { server, sent, waited: patience, because });
        }
        if now >= next {
            asked.push(ask(socket, server, clock, &mut because));
            next = now + again;
            again = (again * 2).min(SLOWEST_AGAIN);
        }
        wait_for(socket, left.min(next.saturating_duration_since(Instant::now())))?;
        let mut buffer = [0; 512];
        loop {
            let received = match datagram::receive(socket, &mut buffer) {
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // An ICMP message that an earlier request brought back, for one.
                Err(error) => {
                    because = format!(" (the socket says: {error})");
                    break;
                }
            };
            let t4_ns = clock().saturating_sub(received.age_ns);
            if let Some(answered) = judge(&received, &buffer, server, &asked, t4_ns, &mut because) {
                return answered;
            }
        }
    }
}

/// `count` exchanges one after the other within `patience` in total; gives the one with the shortest round trip, which is
/// the one with the smallest error. Those that fail do not count, as long as one succeeds.
///
/// # Errors
/// As of [`exchange`], if none succeeds; [`NtpError::NoExchanges`] if `count` is zero.
pub fn best_of(
    count: usize,
    socket: &UdpSocket,
    server: SocketAddr,
    clock: &dyn Fn() -> u64,
    patience: Duration,
) -> Result<Sample, NtpError> {
    let began = Instant::now();
    let mut best: Result<Sample, NtpError> = Err(NtpError::NoExchanges);
    for _ in 0..count {
        let left = patience.saturating_sub(began.elapsed());
        if best.is_ok() && left.is_zero() {
            break;
        }
        match (exchange(socket, server, clock, left), &best) {
            (Ok(sample), Ok(so_far)) if sample.delay_ns >= so_far.delay_ns => {}
            (Ok(sample), _) => best = Ok(sample),
            (Err(_), Ok(_)) => {}
            // Refused once is refused: to insist is what the code forbids.
            (Err(error @ (NtpError::Kiss { .. } | NtpError::Socket { .. })), Err(_)) => return Err(error),
            (Err(error), Err(_)) => {
                best = Err(error);
                if began.elapsed() >= patience {
                    break;
                }
            }
        }
    }
    best
}

/// Sends a request. That it cannot be sent now is no reason to give up: a cut link may heal, a full queue empty.
fn ask(socket: &UdpSocket, server: SocketAddr, clock: &dyn Fn() -> u64, because: &mut String) -> Asked {
    // The monotonic reading comes first and, in `judge`, last: it must enclose the wall clock's.
    let sent = Instant::now();
    let sent_ns = clock();
    let transmit = Timestamp::from_unix_ns(sent_ns);
    if let Err(error) = socket.send_to(&Packet::request(transmit).encode(), server) {
        *because = format!(" (sending failed: {error})");
    }
    Asked { transmit, sent_ns, sent }
}

/// Is this the answer? `None` if it is none, or one that says nothing.
fn judge(
    received: &Received,
    buffer: &[u8],
    server: SocketAddr,
    asked: &[Asked],
    t4_ns: u64,
    because: &mut String,
) -> Option<Result<Sample, NtpError>> {
    if received.from.ip() != server.ip() || received.from.port() != server.port() {
        return None;
    }
    let answer = Packet::decode(buffer.get(..received.length)?)?;
    let asked = asked.iter().find(|asked| asked.transmit == answer.origin)?;
    if answer.mode != Mode::Server || !(1..=4).contains(&answer.version) {
        return None;
    }
    if answer.stratum == 0 {
        let code = answer.reference_id.iter().filter(|byte| byte.is_ascii_graphic()).map(|&byte| char::from(byte));
        return Some(Err(NtpError::Kiss { server, code: code.collect() }));
    }
    if answer.leap == 3 || answer.stratum > 15 || answer.transmit.is_zero() || answer.receive.is_zero() {
        return Some(Err(NtpError::Unsynchronized { server }));
    }
    let elapsed = asked.sent.elapsed();
    let shown = Duration::from_nanos(t4_ns.saturating_sub(asked.sent_ns) + received.age_ns);
    let sample = Sample::of(answer, t4_ns);
    if t4_ns < asked.sent_ns || shown.abs_diff(elapsed) > STEP + elapsed.mul_f64(0.95) || sample.is_none() {
        *because = " (it has answered, but a clock was stepped between question and answer)".to_owned();
        return None;
    }
    sample.map(Ok)
}

/// Waits for something to read.
fn wait_for(socket: &UdpSocket, timeout: Duration) -> Result<(), NtpError> {
    datagram::wait(&mut [PollFd::new(socket, PollFlags::IN)], Some(timeout))
        .map_err(|source| NtpError::Socket { action: "wait for an answer by NTP", source })
}
