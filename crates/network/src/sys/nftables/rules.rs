//! Which packets are diverted, as rules: each is a list of expressions.

use super::{
    diverted::{Addresses, Diverted, Family},
    words::{accept, compare, forward, list, load, look_up, mask, meta, payload},
};
use crate::sys::netlink::Message;

/// The set whose one element says that somebody is there to carry what is diverted.
pub(super) const ALIVE: &str = "alive";

/// Neighbour discovery (RFC 4861): ICMPv6 of these types.
const NEIGHBOURS: (u8, u8) = (133, 137);
/// Set in the first byte of an Ethernet address of a group of receivers.
const GROUP: u8 = 1;
/// In every namespace, `lo` has this number.
const LOOPBACK: u32 = 1;
/// A packet to this host and to nobody else (`PACKET_HOST`, `linux/if_packet.h`).
const TO_THIS_HOST: u8 = 0;

/// At the way out with number `at`: forwards to the interface with number `to`, but for packets with this mark, which were carried
/// already.
pub(super) fn forwarding(diverted: &Diverted, at: u32, to: u32, mark: u32) -> Vec<Message> {
    // Linux 6.16 and later hooks a chain again to an interface of the same name, of which nobody here knows anything.
    let another = [meta(libc::NFT_META_OIF), compare(libc::NFT_CMP_NEQ, &at.to_ne_bytes()), accept()];
    let carried = [meta(libc::NFT_META_MARK), compare(libc::NFT_CMP_EQ, &mark.to_ne_bytes()), accept()];
    let group = [payload(libc::NFT_PAYLOAD_LL_HEADER, 0, 1), mask(GROUP), compare(libc::NFT_CMP_NEQ, &[0]), accept()];
    let neighbours = is_protocol(&Family::V6).into_iter().chain(neighbours());
    let mut rules = vec![list(another), list(carried), list(alone()), list(group), list(neighbours)];
    for family in [Family::V4, Family::V6] {
        let mut rule = is_protocol(&family).to_vec();
        rule.extend(is_diverted(&family, diverted));
        rule.extend([load(&to.to_ne_bytes()), forward()]);
        rules.push(list(rule));
    }
    rules
}

/// At a way in, in a table of one family: does so to packets that have come from elsewhere.
pub(super) fn queueing(family: Family, diverted: &Diverted, queue: Message) -> Vec<Message> {
    let own = [meta(libc::NFT_META_IIF), compare(libc::NFT_CMP_EQ, &LOOPBACK.to_ne_bytes()), accept()];
    let group = [meta(libc::NFT_META_PKTTYPE), compare(libc::NFT_CMP_NEQ, &[TO_THIS_HOST]), accept()];
    let mut rules = vec![list(alone()), list(own), list(group)];
    if family == Family::V6 {
        rules.push(list(neighbours()));
    }
    let mut rule = is_diverted(&family, diverted);
    rule.push(queue);
    rules.push(list(rule));
    rules
}

/// Where nobody is there to carry packets, they pass.
fn alone() -> [Message; 3] {
    [meta(libc::NFT_META_NFPROTO), look_up(ALIVE, false), accept()]
}

/// Of IPv6 packets.
fn neighbours() -> [Message; 6] {
    [
        payload(libc::NFT_PAYLOAD_NETWORK_HEADER, 6, 1),
        compare(libc::NFT_CMP_EQ, &[libc::IPPROTO_ICMPV6 as u8]),
        payload(libc::NFT_PAYLOAD_NETWORK_HEADER, 40, 1),
        compare(libc::NFT_CMP_GTE, &[NEIGHBOURS.0]),
        compare(libc::NFT_CMP_LTE, &[NEIGHBOURS.1]),
        accept(),
    ]
}

fn is_protocol(family: &Family) -> [Message; 2] {
    [meta(libc::NFT_META_PROTOCOL), compare(libc::NFT_CMP_EQ, &family.protocol.to_be_bytes())]
}

/// Goes on with packets that come from where they have to, and go there.
fn is_diverted(family: &Family, diverted: &Diverted) -> Vec<Message> {
    let sides = [&diverted.from, &diverted.to].into_iter().zip(family.places).zip(family.sets);
    let looked_up = |((side, place), set): ((&Addresses, u32), &str)| {
        let (_, is_in) = side.listed()?;
        Some([payload(libc::NFT_PAYLOAD_NETWORK_HEADER, place, family.length), look_up(set, is_in)])
    };
    sides.filter_map(looked_up).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::{super::words, *};

    #[test]
    fn a_side_that_may_be_any_is_not_looked_up() {
        let any = Diverted { from: Addresses::Any, to: Addresses::Any };
        let one = Diverted { from: Addresses::Any, to: Addresses::These(Vec::new()) };
        let both = Diverted { from: Addresses::AllBut(Vec::new()), ..one.clone() };
        let counts = [&any, &one, &both].map(|diverted| is_diverted(&Family::V4, diverted).len());
        assert_eq!(counts, [0, 2, 4]);
        assert_eq!(forwarding(&both, 1, 2, 3).len(), 7);
        let queues = [Family::V4, Family::V6].map(|family| queueing(family, &both, words::queue(1)).len());
        assert_eq!(queues, [4, 5]);
    }
}
