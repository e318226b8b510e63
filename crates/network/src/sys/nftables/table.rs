//! Tables that belong to the socket that made them (`NFT_TABLE_F_OWNER`, Linux 5.12), so that they go when that is closed, by
//! whatever end of the process. Where numbers are from: see [`words`](super::words).

use std::{io, os::fd::OwnedFd};

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with};

use super::{
    diverted::{Diverted, Family},
    rules::ALIVE,
    words::{list, text, value},
};
use crate::sys::netlink::{HEADER, Message, acknowledged};

/// How long packets are diverted after they were last told to be; a whole process that hangs for longer lets them pass.
const ALIVE_MS: u64 = 2_000;
/// The type of the one element of that set, an address family, by which nft(8) shows it.
const FAMILY_TYPE: u32 = 2;

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
const RULE_TABLE: u16 = 1;
const RULE_CHAIN: u16 = 2;
const RULE_EXPRESSIONS: u16 = 4;
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

/// `linux/netfilter/nfnetlink.h`.
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
const SUBSYSTEM: u16 = libc::NFNL_SUBSYS_NFTABLES as u16;

/// How libnftnl marks a table's comment among what users may note with it (`NFTNL_UDATA_TABLE_COMMENT`): nft(8) shows it.
const COMMENT: u8 = 0;

/// An attribute has room for some 2,300 addresses of IPv6.
const MOST_IN_A_MESSAGE: usize = 1_000;

/// The socket that tables belong to.
pub(super) struct Owner(OwnedFd);

impl Owner {
    /// One in the calling thread's namespace.
    pub(super) fn open() -> io::Result<Owner> {
        let flags = SocketFlags::CLOEXEC;
        Ok(Owner(socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(netlink::NETFILTER))?))
    }

    /// All of it, or nothing.
    pub(super) fn run(&self, batch: Batch) -> io::Result<()> {
        self.forget_answers();
        send(&self.0, &batch.sealed(), SendFlags::empty())?;
        // The kernel has queued all its answers already: what failed, and an acknowledgement of the last message.
        let mut result = Err(io::Error::new(io::ErrorKind::InvalidData, "nf_tables did not answer"));
        let mut answer = [0u8; 4096];
        while let Ok((length, _)) = recv(&self.0, &mut answer, RecvFlags::DONTWAIT) {
            let answer = acknowledged(&answer[..length]);
            let is_first = result.as_ref().is_err_and(|error: &io::Error| error.raw_os_error().is_none());
            // The first failure says why; the others follow from it.
            if is_first || (answer.is_err() && result.is_ok()) {
                result = answer;
            }
        }
        result
    }

    /// Says of a table for another two seconds that somebody is there, and whether that came in time.
    pub(super) fn refresh(&self, table: &Table) -> io::Result<bool> {
        let mut batch = Batch::new();
        table.lapse(&mut batch);
        table.revive(&mut batch);
        match self.run(batch) {
            // It is forgotten already.
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {
                let mut batch = Batch::new();
                table.revive(&mut batch);
                self.run(batch).map(|()| false)
            }
            refreshed => refreshed.map(|()| true),
        }
    }

    /// Who has made a table of this name, in the words that they left; `None` if there is none.
    pub(super) fn holder(&self, table: &Table) -> io::Result<Option<String>> {
        self.forget_answers();
        let mut question = table.message(libc::NFT_MSG_GETTABLE, 0);
        question.attribute(TABLE_NAME, &text(&table.name));
        send(&self.0, &question.sealed(), SendFlags::empty())?;
        let mut answer = [0u8; 4096];
        let (length, _) = recv(&self.0, &mut answer, RecvFlags::DONTWAIT)?;
        let answer = &answer[..length];
        // An error, most likely that there is no such table.
        if answer.get(4..6).is_none_or(|kind| kind == (libc::NLMSG_ERROR as u16).to_ne_bytes()) {
            return Ok(None);
        }
        Ok(Some(
            noted(answer.get(HEADER + 4..).unwrap_or(&[])).unwrap_or_else(|| "a process that left no word".to_owned()),
        ))
    }

    fn forget_answers(&self) {
        let mut answer = [0u8; 64];
        while recv(&self.0, &mut answer, RecvFlags::DONTWAIT).is_ok() {}
    }
}

/// A table, by the family of its packets and its name.
pub(super) struct Table {
    family: u8,
    name: String,
}

/// Where a chain is asked about packets.
pub(super) struct Hook<'a> {
    pub(super) number: libc::c_int,
    /// Whoever has a lower one is asked before.
    pub(super) priority: i32,
    /// Of chains on an interface alone.
    pub(super) device: Option<&'a str>,
}

impl Table {
    /// One that is still to be added. `family`: `NFPROTO_…`.
    pub(super) fn new(family: libc::c_int, name: String) -> Table {
        Table { family: family as u8, name }
    }

    /// Adds it, with what is told of it, and with the set that says whether somebody is there.
    pub(super) fn add(&self, batch: &mut Batch) {
        let mut table = self.message(libc::NFT_MSG_NEWTABLE, libc::NLM_F_CREATE | libc::NLM_F_EXCL);
        table.attribute(TABLE_NAME, &text(&self.name));
        table.attribute(TABLE_FLAGS, &TABLE_OWNER.to_be_bytes());
        table.attribute(TABLE_USERDATA, &comment(&format!("brownout, process {}", std::process::id())));
        batch.add(table);
        self.add_set(batch, ALIVE, (FAMILY_TYPE, 1), Some(ALIVE_MS));
        self.revive(batch);
    }

    /// Adds a chain in which packets pass, and its rules.
    pub(super) fn add_chain(&self, batch: &mut Batch, name: &str, hook: &Hook<'_>, rules: Vec<Message>) {
        let mut chain = self.message(libc::NFT_MSG_NEWCHAIN, libc::NLM_F_CREATE);
        chain.attribute(CHAIN_TABLE, &text(&self.name));
        chain.attribute(CHAIN_NAME, &text(name));
        let mut place = Message::empty();
        place.attribute(HOOK_NUMBER, &(hook.number as u32).to_be_bytes());
        place.attribute(HOOK_PRIORITY, &hook.priority.to_be_bytes());
        if let Some(device) = hook.device {
            place.attribute(HOOK_DEVICE, &text(device));
        }
        chain.nest(CHAIN_HOOK, &place);
        chain.attribute(CHAIN_POLICY, &(libc::NF_ACCEPT as u32).to_be_bytes());
        chain.attribute(CHAIN_TYPE, &text("filter"));
        batch.add(chain);
        for expressions in rules {
            let mut rule = self.message(libc::NFT_MSG_NEWRULE, libc::NLM_F_CREATE | libc::NLM_F_APPEND);
            rule.attribute(RULE_TABLE, &text(&self.name));
            rule.attribute(RULE_CHAIN, &text(name));
            rule.nest(RULE_EXPRESSIONS, &expressions);
            batch.add(rule);
        }
    }

    /// Adds the sets of a family, with what is in them.
    pub(super) fn add_sets(&self, batch: &mut Batch, family: Family, diverted: &Diverted) {
        for (set, all) in family.sets.into_iter().zip(family.elements(diverted)) {
            self.add_set(batch, set, (family.key_type, family.length), None);
            self.fill(batch, set, &all);
        }
    }

    /// Has them hold something else.
    pub(super) fn change_sets(&self, batch: &mut Batch, family: Family, diverted: &Diverted) {
        for (set, all) in family.sets.into_iter().zip(family.elements(diverted)) {
            let mut old = self.message(libc::NFT_MSG_DELSETELEM, 0);
            old.attribute(ELEMENTS_TABLE, &text(&self.name));
            old.attribute(ELEMENTS_SET, &text(set));
            batch.add(old);
            self.fill(batch, set, &all);
        }
    }

    /// Says that somebody is there, for two seconds.
    pub(super) fn revive(&self, batch: &mut Batch) {
        let mut element = Message::empty();
        element.nest(ELEMENT_KEY, &value(&self.alive()));
        element.attribute(ELEMENT_TIMEOUT, &ALIVE_MS.to_be_bytes());
        batch.add(self.elements(libc::NFT_MSG_NEWSETELEM, libc::NLM_F_CREATE, ALIVE, &list([element])));
    }

    /// Says that nobody is. Fails with `ENOENT` where that has been forgotten already.
    pub(super) fn lapse(&self, batch: &mut Batch) {
        let mut element = Message::empty();
        element.nest(ELEMENT_KEY, &value(&self.alive()));
        batch.add(self.elements(libc::NFT_MSG_DELSETELEM, 0, ALIVE, &list([element])));
    }

    /// The one element of that set: what rules of this table load as the packet's family (`NFT_META_NFPROTO`).
    fn alive(&self) -> [u8; 1] {
        [self.family]
    }

    /// A set by its name, the type and the length of its keys, and how long elements stay.
    fn add_set(&self, batch: &mut Batch, name: &str, (kind, length): (u32, u32), timeout_ms: Option<u64>) {
        let mut set = self.message(libc::NFT_MSG_NEWSET, libc::NLM_F_CREATE);
        set.attribute(SET_TABLE, &text(&self.name));
        set.attribute(SET_NAME, &text(name));
        let flags = if timeout_ms.is_some() { libc::NFT_SET_TIMEOUT as u32 } else { 0 };
        set.attribute(SET_FLAGS, &flags.to_be_bytes());
        set.attribute(SET_KEY_TYPE, &kind.to_be_bytes());
        set.attribute(SET_KEY_LENGTH, &length.to_be_bytes());
        set.attribute(SET_ID, &batch.next_set().to_be_bytes());
        if let Some(timeout_ms) = timeout_ms {
            set.attribute(SET_TIMEOUT, &timeout_ms.to_be_bytes());
        }
        batch.add(set);
    }

    fn fill(&self, batch: &mut Batch, set: &str, all: &[Vec<u8>]) {
        for some in all.chunks(MOST_IN_A_MESSAGE) {
            let elements = some.iter().map(|key| {
                let mut element = Message::empty();
                element.nest(ELEMENT_KEY, &value(key));
                element
            });
            batch.add(self.elements(libc::NFT_MSG_NEWSETELEM, libc::NLM_F_CREATE, set, &list(elements)));
        }
    }

    fn elements(&self, kind: libc::c_int, flags: libc::c_int, set: &str, list: &Message) -> Message {
        let mut message = self.message(kind, flags);
        message.attribute(ELEMENTS_TABLE, &text(&self.name));
        message.attribute(ELEMENTS_SET, &text(set));
        message.nest(ELEMENTS, list);
        message
    }

    fn message(&self, kind: libc::c_int, flags: libc::c_int) -> Message {
        let mut message = Message::unanswered((SUBSYSTEM << 8) | kind as u16, flags);
        // struct nfgenmsg: family, version, nothing.
        message.bytes(&[self.family, 0, 0, 0]);
        message
    }
}

/// Messages that take effect together.
pub(super) struct Batch {
    bytes: Vec<u8>,
    /// The one added last: it alone is acknowledged.
    last: Option<Message>,
    /// Sets have numbers of their own in a batch.
    sets: u32,
}

impl Batch {
    pub(super) fn new() -> Batch {
        Batch { bytes: edge(BATCH_BEGIN).sealed(), last: None, sets: 0 }
    }

    fn add(&mut self, message: Message) {
        self.bytes.extend(self.last.replace(message).map(Message::sealed).unwrap_or_default());
    }

    fn next_set(&mut self) -> u32 {
        self.sets += 1;
        self.sets
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
        let table = Table::new(libc::NFPROTO_NETDEV, "brownout".to_owned());
        batch.add(table.message(libc::NFT_MSG_NEWTABLE, 0));
        batch.add(table.message(libc::NFT_MSG_NEWCHAIN, 0));
        let (bytes, mut at, mut flags) = (batch.sealed(), 0, Vec::new());
        while at < bytes.len() {
            flags.push(u16::from_ne_bytes([bytes[at + 6], bytes[at + 7]]) & libc::NLM_F_ACK as u16 != 0);
            at += u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        }
        assert_eq!((at, flags), (bytes.len(), vec![false, false, true, false]));
    }
}
