//! What a host's kernel counted, read from files of its namespace that are held open: they show that
//! namespace to whoever reads them.

use std::{fs::File, io, os::unix::fs::FileExt};

/// Longer than any of these files; the longest, of some 130 counters, has 8 kB.
const LONGEST: usize = 32 << 10;

/// Packets that a host's kernel threw away because a checksum was wrong, since the host was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChecksumErrors {
    /// TCP segments, over IPv4 and IPv6.
    pub tcp: u64,
    /// UDP datagrams, over IPv4 and IPv6.
    pub udp: u64,
    /// IPv4 headers. IPv6 headers have no checksum.
    pub ip_header: u64,
    /// ICMP and ICMPv6 messages.
    pub icmp: u64,
}

impl ChecksumErrors {
    /// All of them.
    pub fn total(&self) -> u64 {
        let ChecksumErrors { tcp, udp, ip_header, icmp } = self;
        tcp + udp + ip_header + icmp
    }

    /// Those that came since `before`.
    pub(super) fn since(self, before: ChecksumErrors) -> ChecksumErrors {
        ChecksumErrors {
            tcp: self.tcp.saturating_sub(before.tcp),
            udp: self.udp.saturating_sub(before.udp),
            ip_header: self.ip_header.saturating_sub(before.ip_header),
            icmp: self.icmp.saturating_sub(before.icmp),
        }
    }
}

/// The files.
#[derive(Debug)]
pub(crate) struct Statistics {
    /// `/proc/net/dev`: interfaces.
    interfaces: io::Result<File>,
    /// `/proc/net/snmp`: protocols of IPv4, and TCP of both.
    ip4: io::Result<File>,
    /// `/proc/net/snmp6`: protocols of IPv6.
    ip6: io::Result<File>,
    /// `/proc/net/netstat`: what the standard's tables have no room for.
    more: io::Result<File>,
}

impl Statistics {
    /// Those of the calling thread's namespace.
    pub(super) fn open() -> Statistics {
        let open = |name: &str| File::open(format!("/proc/thread-self/net/{name}"));
        Statistics { interfaces: open("dev"), ip4: open("snmp"), ip6: open("snmp6"), more: open("netstat") }
    }

    /// Packets that this interface dropped at the tail, since it was made; `None` where the kernel does not tell.
    pub(crate) fn interface_dropped(&self, interface: &str) -> Option<u64> {
        transmit_drops(&read(&self.interfaces).ok()?, interface)
    }

    /// UDP datagrams for which the host's sockets had no room, since it was made; `None` where the kernel does not tell.
    pub(crate) fn datagrams_dropped(&self) -> Option<u64> {
        datagrams_dropped(&read(&self.ip4).ok()?)
    }

    /// See [`ChecksumErrors`].
    pub(crate) fn checksum_errors(&self) -> io::Result<ChecksumErrors> {
        let (ip4, more) = (read(&self.ip4)?, read(&self.more)?);
        // A kernel without IPv6 has no such file, and gets no such packets.
        let ip6 = match read(&self.ip6) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            text => text?,
        };
        checksum_errors(&ip4, &ip6, &more).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, "no InCsumErrors in /proc/net/snmp and /proc/net/netstat")
        })
    }
}

fn read(file: &io::Result<File>) -> io::Result<String> {
    let file = match file {
        Ok(file) => file,
        Err(error) => {
            return Err(error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error));
        }
    };
    let mut text = vec![0; LONGEST];
    let length = file.read_at(&mut text, 0)?;
    text.truncate(length);
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn checksum_errors(ip4: &str, ip6: &str, more: &str) -> Option<ChecksumErrors> {
    const NAME: &str = "InCsumErrors";
    Some(ChecksumErrors {
        tcp: in_table(ip4, "Tcp:", NAME)?,
        udp: in_table(ip4, "Udp:", NAME)? + in_list(ip6, "Udp6InCsumErrors").unwrap_or(0),
        ip_header: in_table(more, "IpExt:", NAME)?,
        icmp: in_table(ip4, "Icmp:", NAME)? + in_list(ip6, "Icmp6InCsumErrors").unwrap_or(0),
    })
}

/// Not those with a wrong checksum: these are among the `InCsumErrors`.
fn datagrams_dropped(ip4: &str) -> Option<u64> {
    in_table(ip4, "Udp:", "RcvbufErrors")
}

/// A number of `/proc/net/snmp` or `netstat` (proc_pid_net(5)): per protocol a line of names, then one of numbers.
fn in_table(text: &str, protocol: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(protocol));
    let (names, numbers) = (lines.next()?, lines.next()?);
    let place = names.split_whitespace().position(|other| other == name)?;
    numbers.split_whitespace().nth(place)?.parse().ok()
}

/// A number of `/proc/net/snmp6`: a line each, name and number.
fn in_list(text: &str, name: &str) -> Option<u64> {
    let mut words = text.lines().map(str::split_whitespace);
    words.find_map(|mut words| (words.next()? == name).then(|| words.next())?)?.parse().ok()
}

/// The twelfth number of an interface's line in `/proc/net/dev`: transmit drops (proc_pid_net(5)).
fn transmit_drops(text: &str, interface: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix(interface)?.strip_prefix(':'))?;
    line.split_whitespace().nth(11)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transmit_drops_are_read_from_our_line() {
        let text = "Inter-|   Receive                                                |  Transmit\n \
            face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n    \
            lo:       1       2    3    4    5     6          7         8        9      10   11   12   13    14      15         16\n  \
            lab0:     21      22   23   24   25    26         27        28       29     30   31   32   33    34      35         36\n";
        assert_eq!(transmit_drops(text, "lab0"), Some(32));
        assert_eq!(transmit_drops("lo: 1 2 3", "lab0"), None);
        assert_eq!(transmit_drops("lab0: 1 2 3", "lab0"), None);
    }

    #[test]
    fn datagrams_without_room_are_told_from_those_with_a_wrong_checksum() {
        let text = "Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors\n\
            Udp: 7 1 9 8 5 2 4\nUdpLite: InDatagrams RcvbufErrors\nUdpLite: 0 6\n";
        assert_eq!(datagrams_dropped(text), Some(5));
        assert_eq!(datagrams_dropped("Udp: InDatagrams\nUdp: 7\n"), None);
    }

    #[test]
    fn checksum_errors_are_read_by_name_and_added_up_over_both_families() {
        let ip4 = "Ip: Forwarding DefaultTTL\nIp: 2 64\nIcmp: InMsgs InErrors InCsumErrors\nIcmp: 1 2 3\n\
            Tcp: RtoMin InErrs OutRsts InCsumErrors\nTcp: 200 0 9 40\n\
            Udp: InDatagrams InCsumErrors IgnoredMulti\nUdp: 7 500 0\n\
            UdpLite: InDatagrams InCsumErrors\nUdpLite: 0 6\n";
        let ip6 = "Icmp6InCsumErrors               \t7\nUdp6InCsumErrors                \t8000\n";
        let more = "TcpExt: A B\nTcpExt: 1 2\nIpExt: InCsumErrors InNoECTPkts\nIpExt: 90000 3\n";
        let errors = checksum_errors(ip4, ip6, more).unwrap();
        assert_eq!(errors, ChecksumErrors { tcp: 40, udp: 8_500, ip_header: 90_000, icmp: 10 });
        assert_eq!(errors.total(), 98_550);
        assert_eq!(checksum_errors(ip4, "", more).unwrap().udp, 500, "without IPv6");
        assert_eq!(checksum_errors("", ip6, more), None);
    }
}
