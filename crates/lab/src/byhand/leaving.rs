//! The end of a lab that is attached to containers: what commands have put in force is taken back before it goes, for the containers
//! stay. (A lab of its own ends with all that is in it.) What a killed lab cannot do here, the kernel does: links are whole again when
//! its descriptors close, and what it had paused or slowed goes on.

use std::{
    sync::{Arc, PoisonError, mpsc},
    thread,
    time::Duration,
};

use super::lab::Lab;

/// All is taken back by then, or told: a container that was stopped has been started again, though its database may not answer yet.
const HEALS_WITHIN: Duration = Duration::from_secs(12);
/// Packets that were held when the links were healed have left by then; what is held for longer is lost, and sent again by TCP.
const DRAINS_WITHIN: Duration = Duration::from_secs(2);
/// For those that are on their way through the emulator.
const ON_THE_WAY: Duration = Duration::from_millis(20);

impl Lab {
    /// Whether its hosts are containers that were there before.
    pub(super) fn is_attached(&self) -> bool {
        self.layout.is_attached()
    }

    /// Takes back all that commands and chaos have put in force, and lets the packets go that were held. Says what could not be taken
    /// back, or not yet.
    pub(super) fn let_go(self: &Arc<Self>, by: &str) -> Vec<String> {
        let held = Duration::from_nanos(self.testbed.controls.control.longest_hold_ns()).min(DRAINS_WITHIN);
        let (sender, healed) = mpsc::channel();
        let (lab, who) = (Arc::clone(self), by.to_owned());
        // In a thread of its own: a database that has to start may take longer than anybody waits.
        let heal = move || {
            // Outside of the lock: its last fault is healed first.
            let chaos = lab.chaos.lock().unwrap_or_else(PoisonError::into_inner).take();
            drop(chaos);
            // Whoever did not wait for it has gone.
            let _ = sender.send(lab.heal_keys(|_| true, &who));
        };
        if let Err(error) = thread::Builder::new().name("leave".to_owned()).spawn(heal) {
            return vec![format!("nothing was healed in order: no thread can be started ({error})")];
        }
        let told = match healed.recv_timeout(HEALS_WITHIN) {
            Ok(Ok(_)) => Vec::new(),
            Ok(Err(failure)) => vec![format!("not all could be taken back: {failure}")],
            Err(_) => {
                vec!["a container that was stopped was told to start, and its database does not answer yet".to_owned()]
            }
        };
        thread::sleep(held + ON_THE_WAY);
        told
    }
}
