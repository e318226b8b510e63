//! A thread's driver and the requests it has in flight.

use super::connection::Open;
use crate::{
    EngineConfig, LoadError,
    driver::{Chosen, Completion, Driver},
    sys::Epoll,
    wire,
};

/// A request that the driver has.
pub(super) struct Slot {
    pub(super) open: Option<Open>,
    pub(super) chosen: Chosen,
}

/// A thread's driver, and the requests that it has.
pub(super) struct Driven {
    pub(super) driver: Driver,
    pub(super) slots: Vec<Slot>,
    pub(super) free: Vec<u32>,
    /// Limit of requests in flight.
    most: usize,
    /// Reused buffers: completed requests, and the body of an answer.
    pub(super) done: Vec<Completion>,
    pub(super) body: Vec<u8>,
}

impl Driven {
    pub(super) fn new(epoll: &Epoll, config: &EngineConfig) -> Result<Self, LoadError> {
        let driver = Driver::new(epoll).map_err(LoadError::system("a runtime for the driver"))?;
        let per_connection = config.max_pending.map_or(usize::from(wire::LAST_STREAM), |most| most as usize);
        let most = per_connection.saturating_mul(config.connections).saturating_mul(config.coordinators.len());
        Ok(Driven { driver, slots: Vec::new(), free: Vec::new(), most, done: Vec::new(), body: Vec::new() })
    }

    pub(super) fn has_room(&self) -> bool {
        self.slots.len() - self.free.len() < self.most
    }

    pub(super) fn slot(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { open: None, chosen: Chosen::new() });
            (self.slots.len() - 1) as u32
        })
    }

    /// The operation no longer waits for this request; it is still measured. Returns it, and the coordinator it went
    /// to, if known.
    pub(super) fn give_up(&mut self, slot: u32) -> (Option<Open>, Option<u16>) {
        let Some(slot) = self.slots.get_mut(slot as usize) else { return (None, None) };
        if let Some(open) = &mut slot.open {
            open.late = true;
        }
        (slot.open, slot.chosen.get())
    }

    /// Forgets all requests, and returns them.
    pub(super) fn close(&mut self) -> Vec<Open> {
        self.free.clear();
        self.slots.drain(..).filter_map(|slot| slot.open).collect()
    }
}
