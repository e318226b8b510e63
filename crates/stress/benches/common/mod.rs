//! What the benches share.
#![allow(dead_code, reason = "each bench uses a part of it")]

pub mod process;
pub mod stub;
pub mod tools;

use std::time::Duration;

/// Runs as the stub if the first argument says so.
pub fn is_stub() -> bool {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_none_or(|first| first != "stub") {
        return false;
    }
    let numbers: Vec<u64> = arguments.iter().filter_map(|argument| argument.parse().ok()).collect();
    let ms = |place: usize| Duration::from_millis(numbers[place]);
    let freezes = (numbers.len() > 2).then(|| stub::Freezes { first: ms(2), length: ms(3), period: ms(4) });
    stub::serve(numbers[0] as u8, freezes, ms(1));
    true
}

/// Whether a word is among the arguments.
pub fn asked(word: &str) -> bool {
    std::env::args().any(|argument| argument == word)
}
