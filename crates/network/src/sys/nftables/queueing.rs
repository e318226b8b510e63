//! Having what comes to a namespace wait in a queue of the kernel's: a table for each of IPv4 and IPv6, with a chain at the way
//! in, where packets have left their sender's sockets for good. At its way out a packet that waits would count against what its
//! sender may have under way, and TCP would hardly send.

use std::{io, path::Path};

use super::{
    diverted::{Diverted, Family},
    rules,
    table::{Batch, Hook, Owner, Table},
    words::{queue, queue_by_xtables},
};
use crate::sys::netlink::Message;

/// Both tables'.
const TABLE: &str = "brownout";
/// Behind the packet filters of the host itself (0): what these throw away does not wait before.
const PRIORITY: i32 = 10;
/// There where the thread's namespace knows IPv6.
const HAS_IPV6: &str = "/proc/thread-self/net/if_inet6";

/// Has packets wait, as long as it is there.
pub(crate) struct Queueing {
    owner: Owner,
    tables: Vec<(Family, Table)>,
    /// Whether packets that pass through wait, too.
    is_router: bool,
}

impl Queueing {
    /// In the calling thread's namespace, where nothing waits yet. `is_router`: not only for what comes to it waits, but for
    /// what it sends on.
    pub(crate) fn open(is_router: bool) -> io::Result<Self> {
        let table = |protocol| Table::new(protocol, TABLE.to_owned());
        let mut tables = vec![(Family::V4, table(libc::NFPROTO_IPV4))];
        if Path::new(HAS_IPV6).exists() {
            tables.push((Family::V6, table(libc::NFPROTO_IPV6)));
        }
        Ok(Queueing { owner: Owner::open()?, tables, is_router })
    }

    /// Has packets wait from now on in the queue of this number.
    ///
    /// # Errors
    /// The kernel's, as of [`Diverter::start`](super::Diverter::start).
    pub(crate) fn start(&self, number: u16, diverted: &Diverted) -> io::Result<()> {
        let by = |word: fn(u16) -> Message| {
            let mut batch = Batch::new();
            for (family, table) in &self.tables {
                table.add(&mut batch);
                table.add_sets(&mut batch, *family, diverted);
                let mut chain = |name, hook| {
                    let hook = Hook { number: hook, priority: PRIORITY, device: None };
                    table.add_chain(&mut batch, name, &hook, rules::queueing(*family, diverted, word(number)));
                };
                chain("in", libc::NF_INET_LOCAL_IN);
                if self.is_router {
                    chain("through", libc::NF_INET_FORWARD);
                }
            }
            self.owner.run(batch)
        };
        match by(queue) {
            // No kernel has both of necessity.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EOPNOTSUPP)) => by(queue_by_xtables),
            started => started,
        }
    }

    /// Other addresses from now on, at once; as [`Diverter::change`](super::Diverter::change).
    pub(crate) fn change(&self, diverted: &Diverted) -> io::Result<()> {
        let mut batch = Batch::new();
        self.tables.iter().for_each(|(family, table)| table.change_sets(&mut batch, *family, diverted));
        self.owner.run(batch)
    }

    /// For another two seconds. Says whether it came in time: where it did not, packets have passed meanwhile.
    pub(crate) fn refresh(&self) -> io::Result<bool> {
        self.tables.iter().try_fold(true, |in_time, (_, table)| Ok(self.owner.refresh(table)? && in_time))
    }

    /// Lets pass what comes from now on. What waits already still does.
    pub(crate) fn lapse(&self) -> io::Result<()> {
        for (_, table) in &self.tables {
            let mut batch = Batch::new();
            table.lapse(&mut batch);
            match self.owner.run(batch) {
                // So it is already.
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {}
                lapsed => lapsed?,
            }
        }
        Ok(())
    }

    /// Who has packets wait here, in the words that they left; `None` if nobody does.
    pub(crate) fn holder(&self) -> io::Result<Option<String>> {
        self.tables.first().map_or(Ok(None), |(_, table)| self.owner.holder(table))
    }
}
