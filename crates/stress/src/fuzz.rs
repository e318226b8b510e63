//! Called by the fuzz targets in `fuzz/` and by the tests with their corpora: arbitrary command lines and profiles.

use std::{io, path::Path};

use crate::{
    profile::{Profile, resolve},
    settings::{Extras, Invocation, Op, Settings, SettingsError, Share},
};

/// Parses `text` as a command line; a newline separates arguments. It is answered, accepted or refused; an accepted one
/// has a block of settings, and parsing its words again gives the same settings.
///
/// # Panics
/// When that does not hold.
pub fn arguments(text: &str) {
    let arguments: Vec<&str> = text.split('\n').collect();
    let files = |_: &Path| -> io::Result<String> { Ok("a\nb\n".to_owned()) };
    match Invocation::parse_with(&arguments, &files) {
        Ok(Invocation::Answer(text)) => assert!(!text.is_empty()),
        Ok(Invocation::Run(settings)) => {
            assert!(settings.block().starts_with("******************** Stress Settings"));
            let again: Result<Settings, SettingsError> = Settings::parse_with(&settings.words, &files);
            // --flush and the like are not part of the words.
            let bare = Settings { extras: Extras::default(), ..*settings };
            assert_eq!(again.as_ref().map(|again| &again.rate), Ok(&bare.rate));
            assert_eq!(again.as_ref().map(|again| &again.command), Ok(&bare.command));
            assert_eq!(again.map(|again| again.block().len()), Ok(bare.block().len()));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Parses `text` as a profile. It is either a valid one, which can be shown and queried, or refused with a message.
///
/// # Panics
/// When that does not hold.
pub fn profile(text: &str) {
    let files = |_: &Path| -> io::Result<String> { Err(io::Error::from(io::ErrorKind::NotFound)) };
    match Profile::from_text("profile.yaml", text.to_owned(), &files) {
        Ok(profile) => {
            assert!(profile.block().starts_with("  Keyspace Name: "));
            let plain = Settings::parse(&["user profile=profile.yaml ops(insert=1) n=1"]);
            assert!(plain.is_ok_and(|plain| !profile.batch(&plain.insert).name().is_empty()));
            let _ = (profile.generator(None, false), profile.needs_v2());
            let ops = [Op { name: "insert".to_owned(), share: Share::Weight(1.0) }];
            assert!(resolve(&ops, &[profile]).is_ok());
        }
        Err(error) => {
            assert!(error.to_string().starts_with("profile.yaml"));
            assert!(error.place.is_none_or(|(line, column)| line >= 1 && column >= 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use brownout_base::random::Random;

    /// Calls `target` with every file of a corpus, and with mutations that remove pieces or insert pieces of other
    /// files.
    fn replay(corpus: &str, least: usize, target: fn(&str)) {
        let directory = format!("{}/fuzz/corpus/{corpus}", env!("CARGO_MANIFEST_DIR"));
        let entries = std::fs::read_dir(&directory).unwrap();
        let mut seeds: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        seeds.sort();
        let seeds: Vec<String> = seeds.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
        assert!(seeds.len() >= least, "{} files in {directory}", seeds.len());
        let mut random = Random::new(7);
        let mut below = |bound: usize| random.below(bound as u64) as usize;
        for seed in &seeds {
            target(seed);
            for _ in 0..50 {
                let mut near: Vec<char> = seed.chars().collect();
                for _ in 0..=below(3) {
                    let start = below(near.len() + 1);
                    let end = (start + below(8)).min(near.len());
                    let other: Vec<char> = seeds[below(seeds.len())].chars().collect();
                    let from = below(other.len() + 1);
                    let to = (from + below(12)).min(other.len());
                    near.splice(start..end, other[from..to].iter().copied());
                }
                target(&near.into_iter().collect::<String>());
            }
        }
    }

    #[test]
    fn the_corpus_of_command_lines_and_what_is_near_it_is_read() {
        replay("arguments", 300, super::arguments);
    }

    #[test]
    fn the_corpus_of_profiles_and_what_is_near_it_is_read() {
        replay("profile", 300, super::profile);
    }
}
