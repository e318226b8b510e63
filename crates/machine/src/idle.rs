//! How deeply processors sleep while nobody needs them.

use std::{
    fmt,
    fs::{self, File, OpenOptions},
    io::{self, Write},
};

/// Whoever holds this open has said how late, in µs, processors may wake: the kernel's "PM Quality of Service" interface.
const ASKED_OF: &str = "/dev/cpu_dma_latency";
/// Who puts processors to sleep.
const DRIVER: &str = "/sys/devices/system/cpu/cpuidle/current_driver";

/// Processors that wait instead of sleeping, as long as this is held.
///
/// A processor that sleeps has to be woken, and the longer it slept the longer that takes: on a virtual machine with two
/// processors 3 µs (median) after 200 µs of sleep, 41 µs after 1 ms and 79 µs after 5 ms, against 3, 4 and 6 µs if it waits
/// (`benches/idle.rs`). An operation of a cluster is a chain of such wake-ups, and a delay makes the sleeps before them longer. So a
/// delay of 0.1 ms would cost some times of itself, of which the network has no part.
#[derive(Debug)]
pub struct Awake {
    _held: File,
    driver: String,
}

impl Awake {
    /// Asks for it, of all processors of the machine. The kernel takes it back when the holder ends, however it does.
    ///
    /// # Errors
    /// This process may not (only root may), or the kernel puts processors to sleep without asking anybody, as where it has
    /// no driver for that.
    pub fn hold() -> io::Result<Awake> {
        let driver = fs::read_to_string(DRIVER).unwrap_or_default().trim().to_owned();
        if driver.is_empty() || driver == "none" {
            return Err(io::Error::other("the kernel has no driver for idle processors that could be asked"));
        }
        let mut held = OpenOptions::new().write(true).open(ASKED_OF)?;
        held.write_all(&0_i32.to_ne_bytes())?;
        Ok(Awake { _held: held, driver })
    }
}

/// What a record says of it: "awake (haltpoll)".
impl fmt::Display for Awake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "awake ({})", self.driver)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

    use std::{thread, time::Duration};

    use super::*;

    /// How often processors went to sleep in a state that takes time to wake from.
    fn slept() -> u64 {
        let read = |path: std::path::PathBuf| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
        let processors = fs::read_dir("/sys/devices/system/cpu").unwrap().map(|entry| entry.unwrap().path());
        let states = processors.filter_map(|cpu| fs::read_dir(cpu.join("cpuidle")).ok()).flatten();
        let deep = states.map(|state| state.unwrap().path()).filter(|state| read(state.join("latency")) > Some(0));
        deep.filter_map(|state| read(state.join("usage"))).sum()
    }

    /// While it is held no processor goes to sleep: counted by the kernel, not concluded from what was asked.
    #[test]
    fn while_it_is_held_no_processor_sleeps() {
        let awake = match Awake::hold() {
            Ok(awake) => awake,
            // Root on a kernel with a driver may.
            Err(error) => {
                let driver = fs::read_to_string(DRIVER).unwrap_or_default();
                assert!(!rustix::process::geteuid().is_root() || ["", "none"].contains(&driver.trim()), "{error}");
                return;
            }
        };
        assert!(awake.to_string().starts_with("awake ("), "{awake}");
        // Those that sleep already are woken by it.
        thread::sleep(Duration::from_millis(50));
        let before = slept();
        thread::sleep(Duration::from_millis(200));
        assert_eq!(slept(), before);
    }
}
