//! Any text is a profile or is refused with a message; a profile can be shown and asked.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| brownout_stress::fuzz::profile(text));
