//! Hosts of a lab by hand whose network interface failed: an event when it is noticed, and part of `status` from then
//! on.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use brownout_base::Change;

use super::events::Events;
use crate::host_failures::FailedHost;

/// What happened to each of them, by name.
#[derive(Debug, Default)]
pub(super) struct FailedHosts(Mutex<BTreeMap<String, String>>);

impl FailedHosts {
    /// Notes those that have failed since the last call.
    pub(super) fn note(&self, failed: Vec<FailedHost>, events: &Events) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for FailedHost { name, at_ns, text } in failed {
            events.note(Change::between(at_ns, at_ns), FailedHost::EVENT, &name, &text, "seen by the lab");
            known.insert(name, text);
        }
    }

    /// Whether this host has no network any more.
    pub(super) fn contains(&self, host: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains_key(host)
    }

    /// What happened to all of them, in words.
    pub(super) fn texts(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_host_that_failed_is_an_event_and_stays_known() {
        let (failed, events) = (FailedHosts::default(), Events::default());
        failed.note(Vec::new(), &events);
        assert!(!failed.contains("n2") && events.after(0, Duration::ZERO).is_empty());
        failed.note(vec![FailedHost::new("n2", 7, "File descriptor in bad state")], &events);
        failed.note(Vec::new(), &events);
        let told = events.after(0, Duration::ZERO);
        assert_eq!((told.len(), told[0].kind.as_str(), told[0].subject.as_str()), (1, "host-failed", "n2"));
        assert_eq!(told[0].at_ns, 7);
        assert!(failed.contains("n2") && !failed.contains("n1"));
        assert!(failed.texts()[0].contains("interface of n2 failed (File descriptor in bad state)"));
    }
}
