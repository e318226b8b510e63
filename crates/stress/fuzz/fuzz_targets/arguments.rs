//! Any command line is answered, accepted or refused; what is accepted has a block of settings, and its words mean the
//! same again.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| brownout_stress::fuzz::arguments(text));
