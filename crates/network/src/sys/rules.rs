//! Which packets are diverted, in the words of nf_tables: rules, of expressions that load from a packet into a register,
//! compare it, and say what becomes of the packet. See [`nftables`](super::nftables) for where numbers are from.

use std::net::IpAddr;

use super::{
    netlink::Message,
    nftables::{ALIVE, Destinations, Diverted, text, value},
};

pub(super) const TABLE: u16 = 1;
pub(super) const CHAIN: u16 = 2;
pub(super) const EXPRESSIONS: u16 = 4;

const LIST_ELEMENT: u16 = 1;
const EXPRESSION_NAME: u16 = 1;
const EXPRESSION_DATA: u16 = 2;
const DATA_VERDICT: u16 = 2;
const VERDICT_CODE: u16 = 1;

/// The one register that is used: 16 bytes.
const REGISTER: u32 = libc::NFT_REG_1 as u32;

/// Types of sets' keys, by which nft(8) shows them (`enum datatypes` of nftables).
pub(super) const FAMILY_TYPE: u32 = 2;
const IPV4_TYPE: u32 = 7;
const IPV6_TYPE: u32 = 8;

/// Neighbour discovery (RFC 4861): ICMPv6 of these types.
const NEIGHBOURS: (u8, u8) = (133, 137);
/// Set in the first byte of an Ethernet address of a group of receivers.
const GROUP: u8 = 1;

/// A set of addresses.
pub(super) struct Set {
    pub(super) name: &'static str,
    pub(super) key_type: u32,
    /// Bytes.
    pub(super) key_length: u32,
    /// Whether it has what packets come from, rather than where they go.
    has_sources: bool,
}

pub(super) const SETS: [Set; 4] = [
    Set { name: "from4", key_type: IPV4_TYPE, key_length: 4, has_sources: true },
    Set { name: "from6", key_type: IPV6_TYPE, key_length: 16, has_sources: true },
    Set { name: "to4", key_type: IPV4_TYPE, key_length: 4, has_sources: false },
    Set { name: "to6", key_type: IPV6_TYPE, key_length: 16, has_sources: false },
];

impl Set {
    /// What is in it.
    pub(super) fn addresses(&self, diverted: &Diverted) -> Vec<Vec<u8>> {
        let all = match (self.has_sources, &diverted.to) {
            (true, _) => diverted.from_none_of.as_deref().unwrap_or(&[]),
            (false, Destinations::These(all) | Destinations::AllBut(all)) => all.as_slice(),
        };
        let octets = |address: &IpAddr| match address {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        all.iter().map(octets).filter(|octets| octets.len() == self.key_length as usize).collect()
    }
}

/// The rules, each a list of expressions.
pub(super) fn of(diverted: &Diverted, to: u32, mark: u32) -> Vec<Message> {
    // What was carried already leaves.
    let carried = [meta(libc::NFT_META_MARK), compare(libc::NFT_CMP_EQ, &mark.to_ne_bytes()), accept()];
    // Nobody is there to carry it.
    let alone = [meta(libc::NFT_META_NFPROTO), look_up(ALIVE, false), accept()];
    let group = [payload(libc::NFT_PAYLOAD_LL_HEADER, 0, 1), mask(GROUP), compare(libc::NFT_CMP_NEQ, &[0]), accept()];
    let neighbours = [
        meta(libc::NFT_META_PROTOCOL),
        compare(libc::NFT_CMP_EQ, &(libc::ETH_P_IPV6 as u16).to_be_bytes()),
        payload(libc::NFT_PAYLOAD_NETWORK_HEADER, 6, 1),
        compare(libc::NFT_CMP_EQ, &[libc::IPPROTO_ICMPV6 as u8]),
        payload(libc::NFT_PAYLOAD_NETWORK_HEADER, 40, 1),
        compare(libc::NFT_CMP_GTE, &[NEIGHBOURS.0]),
        compare(libc::NFT_CMP_LTE, &[NEIGHBOURS.1]),
        accept(),
    ];
    let is_listed = matches!(diverted.to, Destinations::These(_));
    let mut rules = vec![list(carried), list(alone), list(group), list(neighbours)];
    let families = [(libc::ETH_P_IP, "from4", "to4", (12, 16), 4), (libc::ETH_P_IPV6, "from6", "to6", (8, 24), 16)];
    for (protocol, from_set, to_set, (source, destination), length) in families {
        let mut rule = vec![meta(libc::NFT_META_PROTOCOL), compare(libc::NFT_CMP_EQ, &(protocol as u16).to_be_bytes())];
        if diverted.from_none_of.is_some() {
            rule.push(payload(libc::NFT_PAYLOAD_NETWORK_HEADER, source, length));
            rule.push(look_up(from_set, false));
        }
        rule.push(payload(libc::NFT_PAYLOAD_NETWORK_HEADER, destination, length));
        rule.push(look_up(to_set, is_listed));
        rule.extend([load(&to.to_ne_bytes()), forward()]);
        rules.push(list(rule));
    }
    rules
}

fn list(expressions: impl IntoIterator<Item = Message>) -> Message {
    let mut list = Message::empty();
    expressions.into_iter().for_each(|expression| list.nest(LIST_ELEMENT, &expression));
    list
}

/// An expression with numbers as its data, by their attributes.
fn expression(name: &str, numbers: &[(u16, u32)], more: impl FnOnce(&mut Message)) -> Message {
    let mut data = Message::empty();
    for (attribute, number) in numbers {
        data.attribute(*attribute, &number.to_be_bytes());
    }
    more(&mut data);
    let mut expression = Message::empty();
    expression.attribute(EXPRESSION_NAME, &text(name));
    expression.nest(EXPRESSION_DATA, &data);
    expression
}

/// Loads what the kernel knows of a packet.
fn meta(key: libc::c_int) -> Message {
    // NFTA_META_DREG, NFTA_META_KEY.
    expression("meta", &[(1, REGISTER), (2, key as u32)], |_| {})
}

/// Loads bytes of a packet.
fn payload(base: libc::c_int, offset: u32, length: u32) -> Message {
    // NFTA_PAYLOAD_DREG, _BASE, _OFFSET, _LEN.
    expression("payload", &[(1, REGISTER), (2, base as u32), (3, offset), (4, length)], |_| {})
}

/// Loads a constant.
fn load(bytes: &[u8]) -> Message {
    // NFTA_IMMEDIATE_DREG, _DATA.
    expression("immediate", &[(1, REGISTER)], |data| data.nest(2, &value(bytes)))
}

/// Keeps these bits of one byte.
fn mask(bits: u8) -> Message {
    // NFTA_BITWISE_SREG, _DREG, _LEN, _MASK, _XOR.
    expression("bitwise", &[(1, REGISTER), (2, REGISTER), (3, 1)], |data| {
        data.nest(4, &value(&[bits]));
        data.nest(5, &value(&[0]));
    })
}

/// Goes on if what is loaded compares so.
fn compare(operation: libc::c_int, bytes: &[u8]) -> Message {
    // NFTA_CMP_SREG, _OP, _DATA.
    expression("cmp", &[(1, REGISTER), (2, operation as u32)], |data| data.nest(3, &value(bytes)))
}

/// Goes on if what is loaded is in a set, or is not.
fn look_up(set: &str, is_in: bool) -> Message {
    let inverted = if is_in { 0 } else { libc::NFT_LOOKUP_F_INV as u32 };
    // NFTA_LOOKUP_SET, _SREG, _FLAGS.
    expression("lookup", &[(2, REGISTER), (5, inverted)], |data| data.attribute(1, &text(set)))
}

/// Lets the packet pass.
fn accept() -> Message {
    let mut code = Message::empty();
    code.attribute(VERDICT_CODE, &(libc::NF_ACCEPT as u32).to_be_bytes());
    let mut verdict = Message::empty();
    verdict.nest(DATA_VERDICT, &code);
    expression("immediate", &[(1, libc::NFT_REG_VERDICT as u32)], |data| data.nest(2, &verdict))
}

/// Forwards the packet to the interface whose number is loaded.
fn forward() -> Message {
    // NFTA_FWD_SREG_DEV.
    expression("fwd", &[(1, REGISTER)], |_| {})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_go_into_the_set_of_their_family_and_side() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let diverted = Diverted {
            from_none_of: Some(vec![ip("10.0.0.1"), ip("fd00::1")]),
            to: Destinations::AllBut(vec![ip("10.0.0.2"), ip("10.0.0.3")]),
        };
        let found = SETS.each_ref().map(|set| set.addresses(&diverted));
        let v6 = "fd00::1".parse::<std::net::Ipv6Addr>().unwrap().octets().to_vec();
        assert_eq!(found, [vec![vec![10, 0, 0, 1]], vec![v6], vec![vec![10, 0, 0, 2], vec![10, 0, 0, 3]], vec![]]);
        let anyone = Diverted { from_none_of: None, to: Destinations::These(vec![ip("fd00::1")]) };
        assert!(SETS[0].addresses(&anyone).is_empty() && SETS[2].addresses(&anyone).is_empty());
        assert_eq!(SETS[3].addresses(&anyone).len(), 1);
        assert_eq!(of(&diverted, 1, 2).len(), 6);
    }
}
