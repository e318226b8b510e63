//! Diverting what leaves by an interface to another one, by nf_tables: a table of the family `netdev` with a chain on the
//! interface's way out (`NF_NETDEV_EGRESS`, Linux 5.16; `fwd` there, 5.17). The table belongs to the socket that made it
//! (`NFT_TABLE_F_OWNER`, Linux 5.12), so that it goes when that is closed, by whatever end of the process.
//!
//! Numbers without a source are from `linux/netfilter/nf_tables.h`. Numbers in attributes are in network byte order, what is
//! compared with packets is as it is there, marks and interfaces are in the machine's.

use std::{io, net::IpAddr, os::fd::OwnedFd};

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with};

use super::{
    netlink::{HEADER, Message, acknowledged},
    rules::{self, FAMILY_TYPE, SETS},
};

/// How long packets are diverted after [`Diverter::refresh`]; a whole process that hangs for longer lets them pass.
const ALIVE_MS: u64 = 2_000;

const TABLE_NAME: u16 = 1;
const TABLE_FLAGS: u16 = 2;
const TABLE_USERDATA: u16 = 6;
const TABLE_OWNER: u32 = 2;
const CHAIN_TABLE: u16 = 1;
const CHAIN_NAME: u16 = 3;
const CHAIN_HOOK: u16 = 4;
const CHAIN_POLICY: u16 = 5;
const CHAIN_TYPE: u16 = 7;
const HOOK_NUMBER: u16 = 1;
const HOOK_PRIORITY: u16 = 2;
const HOOK_DEVICE: u16 = 3;
const SET_TABLE: u16 = 1;
const SET_NAME: u16 = 2;
const SET_FLAGS: u16 = 3;
const SET_KEY_TYPE: u16 = 4;
const SET_KEY_LENGTH: u16 = 5;
const SET_ID: u16 = 10;
const SET_TIMEOUT: u16 = 11;
const ELEMENTS_TABLE: u16 = 1;
const ELEMENTS_SET: u16 = 2;
const ELEMENTS: u16 = 3;
const ELEMENT_KEY: u16 = 1;
const ELEMENT_TIMEOUT: u16 = 4;
const DATA_VALUE: u16 = 1;
const LIST_ELEMENT: u16 = 1;

/// `linux/netfilter/nfnetlink.h`.
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
const SUBSYSTEM: u16 = libc::NFNL_SUBSYS_NFTABLES as u16;

/// How libnftnl marks a table's comment among what users may note with it (`NFTNL_UDATA_TABLE_COMMENT`): nft(8) shows it.
const COMMENT: u8 = 0;

/// An attribute has room for some 2,300 addresses of IPv6.
const MOST_IN_A_MESSAGE: usize = 1_000;

/// The chain's name.
const CHAIN: &str = "out";
/// The set whose one element says that somebody is there to carry what is diverted.
pub(super) const ALIVE: &str = "alive";
/// That element: what rules of a table of this family load as the packet's family (`NFT_META_NFPROTO`), whatever the packet.
const ALIVE_KEY: [u8; 1] = [libc::NFPROTO_NETDEV as u8];

/// What of that which leaves by an interface is diverted: IPv4 and IPv6 packets to one receiver, without those of neighbour
/// discovery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Diverted {
    /// Where they come from: from none of these. `None`: from anywhere.
    pub(crate) from_none_of: Option<Vec<IpAddr>>,
    /// Where they go.
    pub(crate) to: Destinations,
}

/// Where packets go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Destinations {
    /// To these.
    These(Vec<IpAddr>),
    /// Anywhere but to these.
    AllBut(Vec<IpAddr>),
}

/// Diverts what leaves by one interface, as long as it is there.
pub(crate) struct Diverter {
    socket: OwnedFd,
    table: String,
}

impl Diverter {
    /// One for the interface of this name in the calling thread's namespace, which diverts nothing yet.
    pub(crate) fn open(interface: &str) -> io::Result<Self> {
        let socket =
            socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, Some(netlink::NETFILTER))?;
        Ok(Diverter { socket, table: format!("brownout-{interface}") })
    }

    /// Diverts from now on what leaves by `interface` to the one with number `to`, but for packets with this mark.
    ///
    /// # Errors
    /// The kernel's: `EPERM`, `EEXIST` or `EBUSY` where somebody else diverts it already (see [`Diverter::holder`]);
    /// `ENOENT` or `EOPNOTSUPP` where it lacks what is needed.
    pub(crate) fn start(&self, interface: &str, to: u32, mark: u32, diverted: &Diverted) -> io::Result<()> {
        let mut batch = Batch::new();
        let mut table = message(libc::NFT_MSG_NEWTABLE, libc::NLM_F_CREATE | libc::NLM_F_EXCL);
        table.attribute(TABLE_NAME, &text(&self.table));
        table.attribute(TABLE_FLAGS, &TABLE_OWNER.to_be_bytes());
        table.attribute(TABLE_USERDATA, &comment(&format!("brownout, process {}", std::process::id())));
        batch.add(table);

        let mut chain = message(libc::NFT_MSG_NEWCHAIN, libc::NLM_F_CREATE);
        chain.attribute(CHAIN_TABLE, &text(&self.table));
        chain.attribute(CHAIN_NAME, &text(CHAIN));
        let mut hook = Message::empty();
        hook.attribute(HOOK_NUMBER, &(libc::NF_NETDEV_EGRESS as u32).to_be_bytes());
        hook.attribute(HOOK_PRIORITY, &0u32.to_be_bytes());
        hook.attribute(HOOK_DEVICE, &text(interface));
        chain.nest(CHAIN_HOOK, &hook);
        chain.attribute(CHAIN_POLICY, &(libc::NF_ACCEPT as u32).to_be_bytes());
        chain.attribute(CHAIN_TYPE, &text("filter"));
        batch.add(chain);

        self.add_set(&mut batch, 1, ALIVE, (FAMILY_TYPE, 1), Some(ALIVE_MS));
        batch.add(self.alive(libc::NFT_MSG_NEWSETELEM, libc::NLM_F_CREATE));
        for (id, set) in (2..).zip(&SETS) {
            self.add_set(&mut batch, id, set.name, (set.key_type, set.key_length), None);
            self.fill(&mut batch, set, diverted);
        }
        for rule in rules::of(diverted, to, mark) {
            let mut message = message(libc::NFT_MSG_NEWRULE, libc::NLM_F_CREATE | libc::NLM_F_APPEND);
            message.attribute(rules::TABLE, &text(&self.table));
            message.attribute(rules::CHAIN, &text(CHAIN));
            message.nest(rules::EXPRESSIONS, &rule);
            batch.add(message);
        }
        self.run(batch)
    }

    /// Diverts from now on other addresses, at once. What kind of [`Destinations`] they are, and whether sources count, has to
    /// be as it was.
    pub(crate) fn change(&self, diverted: &Diverted) -> io::Result<()> {
        let mut batch = Batch::new();
        for set in &SETS {
            let mut all = message(libc::NFT_MSG_DELSETELEM, 0);
            all.attribute(ELEMENTS_TABLE, &text(&self.table));
            all.attribute(ELEMENTS_SET, &text(set.name));
            batch.add(all);
            self.fill(&mut batch, set, diverted);
        }
        self.run(batch)
    }

    /// Diverts for another two seconds. Says whether it came in time: where it did not, packets have passed meanwhile.
    pub(crate) fn refresh(&self) -> io::Result<bool> {
        let mut batch = Batch::new();
        batch.add(self.alive(libc::NFT_MSG_DELSETELEM, 0));
        batch.add(self.alive(libc::NFT_MSG_NEWSETELEM, libc::NLM_F_CREATE));
        match self.run(batch) {
            // It is gone already.
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {
                let mut batch = Batch::new();
                batch.add(self.alive(libc::NFT_MSG_NEWSETELEM, libc::NLM_F_CREATE));
                self.run(batch).map(|()| false)
            }
            refreshed => refreshed.map(|()| true),
        }
    }

    /// Who diverts what leaves by this interface, in the words that they left; `None` if nobody does.
    pub(crate) fn holder(&self) -> io::Result<Option<String>> {
        self.forget_answers();
        let mut question = message(libc::NFT_MSG_GETTABLE, 0);
        question.attribute(TABLE_NAME, &text(&self.table));
        send(&self.socket, &question.sealed(), SendFlags::empty())?;
        let mut answer = [0u8; 4096];
        let (length, _) = recv(&self.socket, &mut answer, RecvFlags::DONTWAIT)?;
        let answer = &answer[..length];
        // An error, most likely that there is no such table.
        if answer.get(4..6).is_none_or(|kind| kind == (libc::NLMSG_ERROR as u16).to_ne_bytes()) {
            return Ok(None);
        }
        Ok(Some(
            noted(answer.get(HEADER + 4..).unwrap_or(&[])).unwrap_or_else(|| "a process that left no word".to_owned()),
        ))
    }

    /// The message about the one element of the set [`ALIVE`].
    fn alive(&self, kind: libc::c_int, flags: libc::c_int) -> Message {
        let mut element = Message::empty();
        element.nest(ELEMENT_KEY, &value(&ALIVE_KEY));
        if kind == libc::NFT_MSG_NEWSETELEM {
            element.attribute(ELEMENT_TIMEOUT, &ALIVE_MS.to_be_bytes());
        }
        let mut list = Message::empty();
        list.nest(LIST_ELEMENT, &element);
        self.elements(kind, flags, ALIVE, &list)
    }

    fn elements(&self, kind: libc::c_int, flags: libc::c_int, set: &str, list: &Message) -> Message {
        let mut message = message(kind, flags);
        message.attribute(ELEMENTS_TABLE, &text(&self.table));
        message.attribute(ELEMENTS_SET, &text(set));
        message.nest(ELEMENTS, list);
        message
    }

    /// A set by its name, the type and the length of its keys, and how long elements stay.
    fn add_set(&self, batch: &mut Batch, id: u32, name: &str, (kind, length): (u32, u32), timeout_ms: Option<u64>) {
        let mut set = message(libc::NFT_MSG_NEWSET, libc::NLM_F_CREATE);
        set.attribute(SET_TABLE, &text(&self.table));
        set.attribute(SET_NAME, &text(name));
        let flags = if timeout_ms.is_some() { libc::NFT_SET_TIMEOUT as u32 } else { 0 };
        set.attribute(SET_FLAGS, &flags.to_be_bytes());
        set.attribute(SET_KEY_TYPE, &kind.to_be_bytes());
        set.attribute(SET_KEY_LENGTH, &length.to_be_bytes());
        set.attribute(SET_ID, &id.to_be_bytes());
        if let Some(timeout_ms) = timeout_ms {
            set.attribute(SET_TIMEOUT, &timeout_ms.to_be_bytes());
        }
        batch.add(set);
    }

    fn fill(&self, batch: &mut Batch, set: &rules::Set, diverted: &Diverted) {
        let mut addresses = set.addresses(diverted);
        addresses.sort_unstable();
        addresses.dedup();
        for some in addresses.chunks(MOST_IN_A_MESSAGE) {
            let mut list = Message::empty();
            for address in some {
                let mut element = Message::empty();
                element.nest(ELEMENT_KEY, &value(address));
                list.nest(LIST_ELEMENT, &element);
            }
            batch.add(self.elements(libc::NFT_MSG_NEWSETELEM, libc::NLM_F_CREATE, set.name, &list));
        }
    }

    /// All of it, or nothing.
    fn run(&self, batch: Batch) -> io::Result<()> {
        self.forget_answers();
        send(&self.socket, &batch.sealed(), SendFlags::empty())?;
        // The kernel has queued all its answers already: what failed, and an acknowledgement of the last message.
        let mut result = Err(io::Error::new(io::ErrorKind::InvalidData, "nf_tables did not answer"));
        let mut answer = [0u8; 4096];
        while let Ok((length, _)) = recv(&self.socket, &mut answer, RecvFlags::DONTWAIT) {
            let answer = acknowledged(&answer[..length]);
            let is_first = result.as_ref().is_err_and(|error: &io::Error| error.raw_os_error().is_none());
            // The first failure says why; the others follow from it.
            if is_first || (answer.is_err() && result.is_ok()) {
                result = answer;
            }
        }
        result
    }

    fn forget_answers(&self) {
        let mut answer = [0u8; 64];
        while recv(&self.socket, &mut answer, RecvFlags::DONTWAIT).is_ok() {}
    }
}

/// Messages that take effect together.
struct Batch {
    bytes: Vec<u8>,
    /// The one added last: it alone is acknowledged.
    last: Option<Message>,
}

impl Batch {
    fn new() -> Batch {
        Batch { bytes: edge(BATCH_BEGIN).sealed(), last: None }
    }

    fn add(&mut self, message: Message) {
        self.bytes.extend(self.last.replace(message).map(Message::sealed).unwrap_or_default());
    }

    fn sealed(mut self) -> Vec<u8> {
        self.bytes.extend(self.last.take().map(|last| last.acknowledged().sealed()).unwrap_or_default());
        self.bytes.extend(edge(BATCH_END).sealed());
        self.bytes
    }
}

/// Where a batch begins or ends.
fn edge(kind: u16) -> Message {
    let mut message = Message::unanswered(kind, 0);
    // struct nfgenmsg: family, version, and for whom it is.
    message.bytes(&[0, 0]);
    message.bytes(&SUBSYSTEM.to_be_bytes());
    message
}

fn message(kind: libc::c_int, flags: libc::c_int) -> Message {
    let mut message = Message::unanswered((SUBSYSTEM << 8) | kind as u16, flags);
    // struct nfgenmsg: family, version, nothing.
    message.bytes(&[libc::NFPROTO_NETDEV as u8, 0, 0, 0]);
    message
}

/// As the kernel wants names: with a zero at their end.
pub(super) fn text(text: &str) -> Vec<u8> {
    text.bytes().chain([0]).collect()
}

pub(super) fn value(bytes: &[u8]) -> Message {
    let mut value = Message::empty();
    value.attribute(DATA_VALUE, bytes);
    value
}

/// A comment as libnftnl writes it: type, length, text.
fn comment(words: &str) -> Vec<u8> {
    let words = text(words);
    let length = words.len().min(255);
    [&[COMMENT, length as u8][..], &words[..length]].concat()
}

/// The comment among a table's attributes.
fn noted(mut attributes: &[u8]) -> Option<String> {
    loop {
        let length = usize::from(u16::from_ne_bytes(attributes.get(..2)?.try_into().ok()?));
        let kind = u16::from_ne_bytes(attributes.get(2..4)?.try_into().ok()?);
        let value = attributes.get(4..length)?;
        if kind == TABLE_USERDATA {
            let (head, words) = value.split_at_checked(2)?;
            let words = words.get(..usize::from(head[1]))?;
            return (head[0] == COMMENT).then(|| String::from_utf8_lossy(words).trim_end_matches('\0').to_owned());
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_is_read_as_it_was_written() {
        let mut attributes = Message::empty();
        attributes.bytes(&[0; 4]);
        attributes.attribute(TABLE_NAME, &text("brownout-eth0"));
        attributes.attribute(TABLE_USERDATA, &comment("brownout, process 77"));
        let bytes = attributes.sealed();
        assert_eq!(noted(&bytes[4..]).as_deref(), Some("brownout, process 77"));
        let mut without = Message::empty();
        without.bytes(&[0; 4]);
        without.attribute(TABLE_NAME, &text("brownout-eth0"));
        assert_eq!(noted(&without.sealed()[4..]), None);
        assert_eq!(noted(&[9, 0, 6, 0, 0, 200, 1, 1, 1]), None, "a length beyond the end");
        assert_eq!(noted(&[0, 0, 1, 0]), None, "a length of nothing is no endless loop");
    }

    #[test]
    fn the_last_message_of_a_batch_is_acknowledged_and_no_other() {
        let mut batch = Batch::new();
        batch.add(message(libc::NFT_MSG_NEWTABLE, 0));
        batch.add(message(libc::NFT_MSG_NEWCHAIN, 0));
        let (bytes, mut at, mut flags) = (batch.sealed(), 0, Vec::new());
        while at < bytes.len() {
            flags.push(u16::from_ne_bytes([bytes[at + 6], bytes[at + 7]]) & libc::NLM_F_ACK as u16 != 0);
            at += u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        }
        assert_eq!((at, flags), (bytes.len(), vec![false, false, true, false]));
    }
}
