//! Any command line is answered, accepted or refused; what is accepted has a block of settings, and its words mean the
//! same again.
#![no_main]

use std::io;

use brownout_stress::settings::{Invocation, Settings};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    // A newline separates arguments.
    let arguments: Vec<&str> = text.split('\n').collect();
    let files = |_: &std::path::Path| -> io::Result<String> { Ok("a\nb\n".to_owned()) };
    match Invocation::parse_with(&arguments, &files) {
        Ok(Invocation::Answer(text)) => assert!(!text.is_empty()),
        Ok(Invocation::Run(settings)) => {
            assert!(settings.block().starts_with("******************** Stress Settings"));
            let again = Settings::parse_with(&settings.words, &files).expect("its own words");
            assert_eq!(again.rate, settings.rate);
            assert_eq!(again.command, settings.command);
            assert_eq!(again.block().len(), settings_without_extras(&settings).block().len());
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});

/// `--flush` and the like are not among the words.
fn settings_without_extras(settings: &Settings) -> Settings {
    Settings { extras: Default::default(), ..settings.clone() }
}
