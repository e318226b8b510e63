//! Cuts an IPv4 packet into fragments (RFC 791, sections 2.3 and 3.2).

use super::checksum::{put, seal_ipv4};

const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const OFFSET: u16 = 0x1FFF;
/// Option types: the end of the list, no operation, and the bit of those that every fragment repeats.
const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const COPIED: u8 = 0x80;

/// Whether a router may cut this packet: IPv4 without DF.
pub(in crate::emulator) fn is_allowed(packet: &[u8]) -> bool {
    packet.len() >= 20 && packet[0] >> 4 == 4 && flags(packet) & DONT_FRAGMENT == 0
}

/// Cuts `packet` into fragments of at most `mtu` bytes, each written into what `room` gives for its length, and given
/// to `done`. False if it cannot be cut: its header is malformed, or leaves no room for eight bytes.
pub(in crate::emulator) fn cut<Room: AsMut<[u8]>>(
    packet: &[u8],
    mtu: usize,
    mut room: impl FnMut(usize) -> Room,
    mut done: impl FnMut(Room),
) -> bool {
    let header = usize::from(packet.first().unwrap_or(&0) & 0xF) * 4;
    let (Some(payload), most) = (packet.get(header..), mtu.saturating_sub(header) / 8 * 8) else { return false };
    if header < 20 || most == 0 {
        return false;
    }
    let (first, last) = (usize::from(flags(packet) & OFFSET), payload.len().div_ceil(most).saturating_sub(1));
    if first + last * most / 8 > usize::from(OFFSET) {
        return false;
    }
    for (n, part) in payload.chunks(most).enumerate() {
        let mut fragment = room(header + part.len());
        let bytes = fragment.as_mut();
        bytes[..header].copy_from_slice(&packet[..header]);
        bytes[header..].copy_from_slice(part);
        if n > 0 {
            blank_options(&mut bytes[20..header]);
        }
        // A fragment that is cut again stays in the middle if it was there.
        let more = if n < last { MORE_FRAGMENTS } else { flags(packet) & MORE_FRAGMENTS };
        put(bytes, 2, (header + part.len()) as u16);
        put(bytes, 6, more | (first + n * most / 8) as u16);
        seal_ipv4(&mut bytes[..header]);
        done(fragment);
    }
    true
}

fn flags(packet: &[u8]) -> u16 {
    u16::from_be_bytes([packet[6], packet[7]])
}

/// Options that only the first fragment has become no operations in the others.
fn blank_options(options: &mut [u8]) {
    let mut at = 0;
    while at < options.len() && options[at] != END {
        let length = match options[at] {
            NO_OPERATION => 1,
            _ => options.get(at + 1).map_or(0, |length| usize::from(*length)),
        };
        if length == 0 || at + length > options.len() {
            // Malformed: the receiver judges.
            return;
        }
        if options[at] & COPIED == 0 {
            options[at..at + length].fill(NO_OPERATION);
        }
        at += length;
    }
}

#[cfg(test)]
mod tests {
    use super::{super::checksum, *};

    fn packet(options: &[u8], flags: u16, payload: usize) -> Vec<u8> {
        let header = 20 + options.len();
        let mut packet = vec![0x40 | (header / 4) as u8, 0, 0, 0, 0xAB, 0xCD, 0, 0, 64, 17, 0, 0];
        packet.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        packet.extend(options);
        packet.extend((0..payload).map(|n| (n % 251) as u8));
        let length = packet.len() as u16;
        put(&mut packet, 2, length);
        put(&mut packet, 6, flags);
        seal_ipv4(&mut packet[..header]);
        packet
    }

    fn fragments(packet: &[u8], mtu: usize) -> Vec<Vec<u8>> {
        let mut fragments = Vec::new();
        assert!(cut(packet, mtu, |length| vec![0; length], |fragment| fragments.push(fragment)));
        fragments
    }

    /// Puts fragments together again, as a receiver does; says payload, and whether the last one came.
    fn reassemble(fragments: &[Vec<u8>]) -> (Vec<u8>, bool) {
        let (mut payload, mut whole) = (Vec::new(), false);
        for fragment in fragments {
            let header = usize::from(fragment[0] & 0xF) * 4;
            assert_eq!(checksum::fold(checksum::sum(&fragment[..header])), 0xFFFF, "header checksum");
            assert_eq!(usize::from(u16::from_be_bytes([fragment[2], fragment[3]])), fragment.len());
            assert_eq!(fragment[4..6], [0xAB, 0xCD]);
            assert_eq!(usize::from(flags(fragment) & OFFSET) * 8, payload.len());
            payload.extend(&fragment[header..]);
            whole = flags(fragment) & MORE_FRAGMENTS == 0;
        }
        (payload, whole)
    }

    #[test]
    fn fragments_fit_and_make_the_packet_again() {
        for (payload, mtu, count) in
            [(1_480, 600, 3), (1_480, 1_499, 2), (8_000, 576, 15), (560, 576, 2), (552, 572, 1)]
        {
            let whole = packet(&[], 0, payload);
            let fragments = fragments(&whole, mtu);
            assert_eq!(fragments.len(), count, "{payload} through {mtu}");
            assert!(fragments.iter().all(|fragment| fragment.len() <= mtu));
            assert_eq!(reassemble(&fragments), (whole[20..].to_vec(), true));
        }
    }

    #[test]
    fn fragments_cut_again_are_as_if_cut_once() {
        let whole = packet(&[], 0, 4_000);
        let once = fragments(&whole, 1_500);
        let twice: Vec<_> = once.iter().flat_map(|fragment| fragments(fragment, 576)).collect();
        assert!(twice.len() > once.len());
        assert_eq!(reassemble(&twice), (whole[20..].to_vec(), true));
        let without_the_end = &twice[..twice.len() - 1];
        assert!(!reassemble(without_the_end).1);
    }

    #[test]
    fn only_copied_options_are_repeated() {
        // A security option (copied), a record route (not), and padding.
        let options = [0x82, 4, 1, 2, 7, 3, 4, END];
        let fragments = fragments(&packet(&options, 0, 2_000), 1_000);
        assert_eq!(fragments[0][20..28], options);
        assert_eq!(fragments[1][20..28], [0x82, 4, 1, 2, NO_OPERATION, NO_OPERATION, NO_OPERATION, END]);
    }

    #[test]
    fn what_must_not_be_cut_is_not() {
        assert!(is_allowed(&packet(&[], 0, 8)));
        assert!(!is_allowed(&packet(&[], DONT_FRAGMENT, 8)));
        assert!(!is_allowed(&[0x60; 40]));
        assert!(!is_allowed(&[0x45; 4]));
        let refused = |packet: &[u8], mtu| !cut(packet, mtu, |length| vec![0; length], drop);
        assert!(refused(&packet(&[], 0, 100), 27));
        assert!(refused(&[], 576));
        assert!(refused(&[0x4F; 30], 576));
        // A fragment whose end would be beyond the largest offset.
        assert!(refused(&packet(&[], OFFSET, 100), 68));
    }
}
