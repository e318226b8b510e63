//! Any text is a profile or is refused with a message; a profile can be shown and asked.
#![no_main]

use std::io;

use brownout_stress::{
    profile::{Profile, resolve},
    settings::{Op, Share},
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let files = |_: &std::path::Path| -> io::Result<String> { Err(io::Error::from(io::ErrorKind::NotFound)) };
    match Profile::from_text("profile.yaml", text.to_owned(), &files) {
        Ok(profile) => {
            assert!(profile.block().starts_with("  Keyspace Name: "));
            let _ = (profile.generator(None, false), profile.batch(None), profile.needs_v2());
            let ops = [Op { name: "insert".to_owned(), share: Share::Weight(1.0) }];
            assert!(resolve(&ops, &[profile]).is_ok());
        }
        Err(error) => {
            assert!(error.to_string().starts_with("profile.yaml"));
            if let Some((line, column)) = error.place {
                assert!(line >= 1 && column >= 1);
            }
        }
    }
});
