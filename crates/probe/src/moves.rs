//! Hosts that are away for a while and then somewhere else, as a container is that is started again: those who measure are told, and
//! go on with other sockets.

use std::sync::{Mutex, PoisonError};

use brownout_base::HostId;

/// What became of a host. `T` is what it is measured with.
#[derive(Debug)]
pub(crate) enum Move<T> {
    /// Its network is gone.
    Left {
        /// Which.
        host: HostId,
        /// Since when, on the monotonic clock.
        since_ns: u64,
    },
    /// It is there again.
    Came {
        /// Which.
        host: HostId,
        /// With this.
        there: T,
    },
    /// It is there again, on another machine, with what it had.
    Back {
        /// Which.
        host: HostId,
    },
}

/// What was told and not yet heard.
#[derive(Debug)]
pub(crate) struct Moves<T>(Mutex<Vec<Move<T>>>);

impl<T> Default for Moves<T> {
    fn default() -> Self {
        Moves(Mutex::new(Vec::new()))
    }
}

impl<T> Moves<T> {
    pub(crate) fn tell(&self, told: Move<T>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(told);
    }

    /// All that were told since this was last called, in order. Who tells at this moment is heard next time: a real-time thread
    /// must not wait for one that is not.
    pub(crate) fn take(&self) -> Vec<Move<T>> {
        self.0.try_lock().map(|mut told| std::mem::take(&mut *told)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_heard_once_and_in_order() {
        let moves = Moves::default();
        moves.tell(Move::Left { host: HostId(1), since_ns: 7 });
        moves.tell(Move::Came { host: HostId(1), there: "socket" });
        let heard = moves.take();
        assert!(matches!(heard[..], [Move::Left { since_ns: 7, .. }, Move::Came { there: "socket", .. }]), "{heard:?}");
        assert!(moves.take().is_empty());
    }
}
