//! Who impairs links, and what keeps an impairment in force.

use std::fmt;

use brownout_base::{Change, Link};

use crate::{counters::LinkCounters, error::NetworkError, impairment::Impairment};

/// Who impairs links: here the emulator; elsewhere it may be the kernel of a host that was only entered.
pub trait LinkControl: Send + Sync {
    /// Adds `impairment` to whatever is on `links` already, until the guard goes.
    ///
    /// # Errors
    /// When a link does not exist, none is named, or the controller cannot be reached.
    fn impair(&self, links: &[Link], impairment: &Impairment) -> Result<ImpairmentGuard, NetworkError>;

    /// What `link` really does to packets at this moment, read back from where it is done: the impairments on it, the
    /// oldest first, without those that do nothing. Each is exactly as it was asked for, if it is in force.
    ///
    /// # Errors
    /// When the link does not exist or the controller cannot be reached.
    fn effective(&self, link: Link) -> Result<Vec<Impairment>, NetworkError>;

    /// What every link counted since this was last called, by whomever.
    ///
    /// # Errors
    /// When the controller cannot be reached.
    fn take_counters(&self) -> Result<Vec<LinkCounters>, NetworkError>;
}

type Heal = Box<dyn FnOnce() -> Result<Change, NetworkError> + Send>;
type Amend = Box<dyn FnMut(&Impairment) -> Result<Change, NetworkError> + Send>;

/// An impairment in force. The links heal when this is dropped, or by [`ImpairmentGuard::heal`],
/// which says when. Both return only once it is done.
#[must_use = "the links heal as soon as the guard is dropped"]
pub struct ImpairmentGuard {
    change: Change,
    amend: Option<Amend>,
    heal: Option<Heal>,
}

impl ImpairmentGuard {
    /// For those who implement [`LinkControl`]: an impairment in force since `change`, taken back by `heal`.
    pub fn new(change: Change, heal: impl FnOnce() -> Result<Change, NetworkError> + Send + 'static) -> Self {
        ImpairmentGuard { change, amend: None, heal: Some(Box::new(heal)) }
    }

    /// For those who implement [`LinkControl`]: with a way to change the impairment in place.
    #[must_use = "the links heal as soon as the guard is dropped"]
    pub fn with_amend(
        mut self,
        amend: impl FnMut(&Impairment) -> Result<Change, NetworkError> + Send + 'static,
    ) -> Self {
        self.amend = Some(Box::new(amend));
        self
    }

    /// When it came into force.
    pub fn change(&self) -> Change {
        self.change
    }

    /// Changes it in place, on all its links, and says when that was done: what the links remember (the state of a
    /// loss model, what waits for a bottleneck) goes on. No packet in flight is later than the new impairment makes it,
    /// and none overtakes another because of the change.
    ///
    /// # Errors
    /// When the controller cannot be reached, or cannot change impairments in place.
    pub fn amend(&mut self, impairment: &Impairment) -> Result<Change, NetworkError> {
        self.amend.as_mut().map_or(Err(NetworkError::CannotAmend), |amend| amend(impairment))
    }

    /// Takes it back, and says when.
    ///
    /// # Errors
    /// When the controller cannot be reached; with the emulator gone, its links are cut, not healed.
    pub fn heal(mut self) -> Result<Change, NetworkError> {
        self.heal.take().map_or(Ok(self.change), |heal| heal())
    }
}

impl Drop for ImpairmentGuard {
    fn drop(&mut self) {
        if let Some(heal) = self.heal.take() {
            // The only failure is a controller that has ended, and then there is nothing to heal.
            let _ = heal();
        }
    }
}

impl fmt::Debug for ImpairmentGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ImpairmentGuard").field("change", &self.change).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    };

    use super::*;

    #[test]
    fn a_change_spans_from_asking_to_done() {
        assert_eq!(Change::between(100, 201), Change { at_ns: 150, error_ns: 51 });
        assert_eq!(Change::between(100, 100), Change { at_ns: 100, error_ns: 0 });
    }

    #[test]
    fn a_guard_heals_once() {
        let healed = Arc::new(AtomicU64::new(0));
        let guard = |at_ns| {
            let healed = Arc::clone(&healed);
            ImpairmentGuard::new(Change { at_ns, error_ns: 0 }, move || {
                healed.fetch_add(1, Ordering::Relaxed);
                Ok(Change { at_ns: at_ns + 1, error_ns: 0 })
            })
        };
        assert_eq!(guard(1).heal().unwrap().at_ns, 2);
        assert_eq!(healed.load(Ordering::Relaxed), 1);
        drop(guard(1));
        assert_eq!(healed.load(Ordering::Relaxed), 2);
    }
}
