/// Waits to be ended: in Kubernetes, where parts of runs are started as commands in the containers of such processes.
pub fn agent() -> u8 {
    brownout_lab::machines::wait_in_pod(brownout_lab::catch_interrupts());
    0
}
