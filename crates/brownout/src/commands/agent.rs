use std::{thread, time::Duration};

/// Waits to be ended: in Kubernetes, where parts of runs are started as commands in the containers of such processes.
pub fn agent() -> u8 {
    let interrupts = brownout_lab::catch_interrupts();
    while !interrupts.any() {
        thread::sleep(Duration::from_millis(200));
    }
    0
}
