//! Any bytes of a server are frames or garbage, in every framing and compression, cut anywhere; every answer in them is
//! read whole or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| brownout_load::fuzz::frames(data));
