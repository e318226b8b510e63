//! Datagrams for which a host's sockets had no room.

use std::{fs::File, os::unix::fs::FileExt};

/// More than the table has.
const LONGEST: usize = 32 << 10;

/// What one host's kernel says of them. A socket's own count of what it dropped (`SO_RXQ_OVFL`) has those with a wrong
/// checksum in it, too.
#[derive(Debug)]
pub(super) struct Room {
    /// `/proc/net/snmp` of the host.
    table: Option<File>,
    /// The count when it was last read.
    seen: Option<u64>,
}

impl Room {
    /// Of the host that the calling thread is in.
    pub(super) fn here() -> Room {
        let table = File::open("/proc/thread-self/net/snmp").ok();
        let mut room = Room { table, seen: None };
        room.seen = room.read();
        room
    }

    /// Of a host on another machine: nobody knows.
    pub(super) fn elsewhere() -> Room {
        Room { table: None, seen: None }
    }

    /// Whether some datagram had no room since this was last asked; also where the kernel does not tell.
    pub(super) fn lacked(&mut self) -> bool {
        let now = self.read();
        now.is_none() || std::mem::replace(&mut self.seen, now) != now
    }

    fn read(&self) -> Option<u64> {
        let mut text = vec![0; LONGEST];
        let length = self.table.as_ref()?.read_at(&mut text, 0).ok()?;
        without_room(&String::from_utf8_lossy(&text[..length]))
    }
}

/// In `/proc/net/snmp` (proc_pid_net(5)): per protocol a line of names, then one of numbers.
fn without_room(table: &str) -> Option<u64> {
    let mut lines = table.lines().filter_map(|line| line.strip_prefix("Udp:"));
    let (names, numbers) = (lines.next()?, lines.next()?);
    let of = |name: &str| {
        let place = names.split_whitespace().position(|other| other == name)?;
        numbers.split_whitespace().nth(place)?.parse::<u64>().ok()
    };
    // Where all sockets together have no room, Linux 5.11 and later count apart.
    Some(of("RcvbufErrors")? + of("MemErrors").unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_without_room_are_counted_apart_from_those_with_a_wrong_checksum() {
        let table = "Tcp: RcvbufErrors\nTcp: 9\n\
            Udp: InDatagrams InErrors RcvbufErrors InCsumErrors MemErrors\nUdp: 7 1230 200 1000 30\n\
            UdpLite: RcvbufErrors\nUdpLite: 4\n";
        assert_eq!(without_room(table), Some(230));
        assert_eq!(without_room("Udp: InErrors RcvbufErrors\nUdp: 1 5\n"), Some(5), "before Linux 5.11");
        assert_eq!(without_room("Udp: InErrors\nUdp: 1\n"), None);
        assert_eq!(without_room(""), None);
        assert!(Room::here().seen.is_some());
        assert!(Room::elsewhere().lacked(), "nobody knows");
    }
}
