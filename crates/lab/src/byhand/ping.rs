//! Round trips between two hosts, by NTP requests that every host answers: no program has to be there for it.

use std::{
    collections::BTreeMap,
    io,
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use brownout_clock::ntp::{PORT as NTP_PORT, Packet, Timestamp};
use brownout_network::Host;

use super::Failure;

/// What is not back by then, beside the longest delays in force, is lost.
const LOST_AFTER: Duration = Duration::from_secs(2);
/// Between two looks at whether anybody still listens.
const LOOK: Duration = Duration::from_millis(200);

/// One series of round trips.
pub(super) struct Ping<'a> {
    pub(super) from: &'a Host,
    pub(super) to: &'a Host,
    pub(super) count: u32,
    pub(super) every: Duration,
    /// The longest that the links on the way hold a packet, there and back.
    pub(super) longest: Duration,
}

/// What it came to.
#[derive(Debug, Default, PartialEq)]
struct Summary {
    sent: u32,
    received: u32,
    duplicates: u32,
    rtt_ns: Vec<u64>,
}

impl Ping<'_> {
    /// Runs, telling each line; ends early when `tell` says so. False: nothing came back.
    pub(super) fn run(&self, tell: &mut dyn FnMut(String) -> bool) -> Result<bool, Failure> {
        let failed = |error: io::Error| Failure::failed(format!("cannot ping from {}: {error}", self.from.name()));
        let server = SocketAddr::new(self.to.service().into(), NTP_PORT);
        let socket =
            self.from.run(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))).and_then(|bound| bound).map_err(failed)?;
        let (from, to) = (self.from.name(), self.to.name());
        if !tell(format!("PING {to} ({}) from {from}: NTP requests of 48 bytes over UDP", self.to.service())) {
            return Ok(true);
        }
        let began = Instant::now();
        let mut summary = Summary::default();
        let mut asked: BTreeMap<[u8; 8], (u32, Instant, bool)> = BTreeMap::new();
        let mut next = began;
        let mut last = began;
        loop {
            let now = Instant::now();
            if summary.sent < self.count && now >= next {
                summary.sent += 1;
                // Only a mark by which the answer is known; another one each time.
                let mark = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
                let request = Packet::request(Timestamp::from_unix_ns(mark)).encode();
                let mut key = [0; 8];
                key.copy_from_slice(&request[40..48]);
                asked.insert(key, (summary.sent, Instant::now(), false));
                if let Err(error) = socket.send_to(&request, server)
                    && !tell(format!("seq={} not sent: {error}", summary.sent))
                {
                    return Ok(true);
                }
                last = now;
                next += self.every;
            }
            let all_back = summary.received == self.count;
            if summary.sent == self.count && (all_back || now >= last + LOST_AFTER + self.longest) {
                break;
            }
            let until = if summary.sent < self.count { next } else { last + LOST_AFTER + self.longest };
            let wait = until.saturating_duration_since(Instant::now()).clamp(Duration::from_micros(100), LOOK);
            socket.set_read_timeout(Some(wait)).map_err(failed)?;
            let mut buffer = [0; 512];
            match socket.recv_from(&mut buffer) {
                Ok((length, sender)) if sender == server => {
                    let Some(line) = summary.answer(&buffer[..length], to, &mut asked) else { continue };
                    if !tell(line) {
                        return Ok(true);
                    }
                }
                Ok(_) => {}
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                    // An empty line is nobody's business, but whether it can be told is ours.
                    if !tell(String::new()) {
                        return Ok(true);
                    }
                }
                // What a cut link or a dead service sends back, for one.
                Err(error) => {
                    if !tell(format!("from {to}: {error}")) {
                        return Ok(true);
                    }
                }
            }
        }
        for line in summary.lines(from, to, began.elapsed()) {
            if !tell(line) {
                break;
            }
        }
        Ok(summary.received > 0)
    }
}

impl Summary {
    fn answer(
        &mut self,
        datagram: &[u8],
        to: &str,
        asked: &mut BTreeMap<[u8; 8], (u32, Instant, bool)>,
    ) -> Option<String> {
        let answer = Packet::decode(datagram)?;
        // The origin of the answer is what the request was marked with.
        let (number, sent, answered) = asked.get_mut(datagram.get(24..32)?)?;
        let stayed = u64::try_from(answer.transmit.since_ns(answer.receive)).unwrap_or(0);
        let rtt_ns = u64::try_from(sent.elapsed().as_nanos()).unwrap_or(u64::MAX).saturating_sub(stayed);
        let again = std::mem::replace(answered, true);
        if again {
            self.duplicates += 1;
        } else {
            self.received += 1;
            self.rtt_ns.push(rtt_ns);
        }
        let duplicate = if again { " (DUP!)" } else { "" };
        Some(format!("{} bytes from {to}: seq={number} time={:.3} ms{duplicate}", datagram.len(), rtt_ns as f64 / 1e6))
    }

    fn lines(&self, from: &str, to: &str, took: Duration) -> Vec<String> {
        let lost = 100.0 * f64::from(self.sent - self.received) / f64::from(self.sent.max(1));
        let duplicates =
            if self.duplicates == 0 { String::new() } else { format!(", +{} duplicates", self.duplicates) };
        let mut lines = vec![
            format!("--- {from} → {to} ping statistics ---"),
            format!(
                "{} sent, {} received{duplicates}, {lost:.1}% lost, time {} ms",
                self.sent,
                self.received,
                took.as_millis()
            ),
        ];
        if !self.rtt_ns.is_empty() {
            let ms = |ns: f64| ns / 1e6;
            let count = self.rtt_ns.len() as f64;
            let mean = self.rtt_ns.iter().map(|ns| *ns as f64).sum::<f64>() / count;
            let variance = self.rtt_ns.iter().map(|ns| (*ns as f64 - mean).powi(2)).sum::<f64>() / count;
            let least = self.rtt_ns.iter().min().copied().unwrap_or(0) as f64;
            let most = self.rtt_ns.iter().max().copied().unwrap_or(0) as f64;
            lines.push(format!(
                "rtt min/avg/max/mdev = {:.3}/{:.3}/{:.3}/{:.3} ms",
                ms(least),
                ms(mean),
                ms(most),
                ms(variance.sqrt())
            ));
        }
        lines
    }
}
