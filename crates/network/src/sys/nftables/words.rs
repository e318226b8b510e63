//! The words of nf_tables: expressions that load from a packet into a register, compare it, and say what becomes of the
//! packet; and what rules and sets are written with.
//!
//! Numbers without a source are from `linux/netfilter/nf_tables.h`. Numbers in attributes are in network byte order, what is
//! compared with packets is as it is there, marks and interfaces are in the machine's.

use crate::sys::netlink::Message;

const LIST_ELEMENT: u16 = 1;
const EXPRESSION_NAME: u16 = 1;
const EXPRESSION_DATA: u16 = 2;
const DATA_VALUE: u16 = 1;
const DATA_VERDICT: u16 = 2;
const VERDICT_CODE: u16 = 1;

/// The one register that is used: 16 bytes.
const REGISTER: u32 = libc::NFT_REG_1 as u32;

/// As the kernel wants names: with a zero at their end.
pub(super) fn text(text: &str) -> Vec<u8> {
    text.bytes().chain([0]).collect()
}

pub(super) fn value(bytes: &[u8]) -> Message {
    let mut value = Message::empty();
    value.attribute(DATA_VALUE, bytes);
    value
}

/// A list of what is alike: the expressions of a rule, the elements of a set.
pub(super) fn list(all: impl IntoIterator<Item = Message>) -> Message {
    let mut list = Message::empty();
    all.into_iter().for_each(|one| list.nest(LIST_ELEMENT, &one));
    list
}

/// An expression with numbers as its data, by their attributes.
fn expression(name: &str, numbers: &[(u16, u32)], more: impl FnOnce(&mut Message)) -> Message {
    let mut data = Message::empty();
    for (attribute, number) in numbers {
        data.attribute(*attribute, &number.to_be_bytes());
    }
    more(&mut data);
    named(name, &data)
}

/// Loads what the kernel knows of a packet.
pub(super) fn meta(key: libc::c_int) -> Message {
    // NFTA_META_DREG, NFTA_META_KEY.
    expression("meta", &[(1, REGISTER), (2, key as u32)], |_| {})
}

/// Loads bytes of a packet.
pub(super) fn payload(base: libc::c_int, offset: u32, length: u32) -> Message {
    // NFTA_PAYLOAD_DREG, _BASE, _OFFSET, _LEN.
    expression("payload", &[(1, REGISTER), (2, base as u32), (3, offset), (4, length)], |_| {})
}

/// Loads a constant.
pub(super) fn load(bytes: &[u8]) -> Message {
    // NFTA_IMMEDIATE_DREG, _DATA.
    expression("immediate", &[(1, REGISTER)], |data| data.nest(2, &value(bytes)))
}

/// Keeps these bits of one byte.
pub(super) fn mask(bits: u8) -> Message {
    // NFTA_BITWISE_SREG, _DREG, _LEN, _MASK, _XOR.
    expression("bitwise", &[(1, REGISTER), (2, REGISTER), (3, 1)], |data| {
        data.nest(4, &value(&[bits]));
        data.nest(5, &value(&[0]));
    })
}

/// Goes on if what is loaded compares so.
pub(super) fn compare(operation: libc::c_int, bytes: &[u8]) -> Message {
    // NFTA_CMP_SREG, _OP, _DATA.
    expression("cmp", &[(1, REGISTER), (2, operation as u32)], |data| data.nest(3, &value(bytes)))
}

/// Goes on if what is loaded is in a set, or is not.
pub(super) fn look_up(set: &str, is_in: bool) -> Message {
    let inverted = if is_in { 0 } else { libc::NFT_LOOKUP_F_INV as u32 };
    // NFTA_LOOKUP_SET, _SREG, _FLAGS.
    expression("lookup", &[(2, REGISTER), (5, inverted)], |data| data.attribute(1, &text(set)))
}

/// Lets the packet pass.
pub(super) fn accept() -> Message {
    let mut code = Message::empty();
    code.attribute(VERDICT_CODE, &(libc::NF_ACCEPT as u32).to_be_bytes());
    let mut verdict = Message::empty();
    verdict.nest(DATA_VERDICT, &code);
    expression("immediate", &[(1, libc::NFT_REG_VERDICT as u32)], |data| data.nest(2, &verdict))
}

/// Forwards the packet to the interface whose number is loaded.
pub(super) fn forward() -> Message {
    // NFTA_FWD_SREG_DEV.
    expression("fwd", &[(1, REGISTER)], |_| {})
}

/// Has the packet wait in the queue of this number; where nobody reads that, the packet passes.
pub(super) fn queue(number: u16) -> Message {
    let mut data = Message::empty();
    // NFTA_QUEUE_NUM, _TOTAL, _FLAGS (NFT_QUEUE_FLAG_BYPASS).
    data.attribute(1, &number.to_be_bytes());
    data.attribute(2, &1u16.to_be_bytes());
    data.attribute(3, &1u16.to_be_bytes());
    named("queue", &data)
}

/// The same in the words of xtables, for kernels that have no word for it in nf_tables.
pub(super) fn queue_by_xtables(number: u16) -> Message {
    let mut data = Message::empty();
    // NFTA_TARGET_NAME, _REV, _INFO: struct xt_NFQ_info_v3 (`linux/netfilter/xt_NFQUEUE.h`), that is the queue, of one, and
    // NFQ_FLAG_BYPASS, in the machine's byte order; in whole words of eight bytes.
    data.attribute(1, &text("NFQUEUE"));
    data.attribute(2, &3u32.to_be_bytes());
    data.attribute(3, &[number, 1, 1, 0].map(u16::to_ne_bytes).concat());
    named("target", &data)
}

fn named(name: &str, data: &Message) -> Message {
    let mut expression = Message::empty();
    expression.attribute(EXPRESSION_NAME, &text(name));
    expression.nest(EXPRESSION_DATA, data);
    expression
}
