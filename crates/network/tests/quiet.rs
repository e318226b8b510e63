//! How measurements that a busy machine can spoil are repeated.

// Helpers outside of a #[test] may fail it just as well.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod machine;

use std::panic::{AssertUnwindSafe, catch_unwind};

use machine::{Failed, repeat_if_disturbed};

/// How often it is tried, and whether it passes in the end.
fn tried(mut outcome: impl FnMut(usize) -> Result<(), Failed>) -> (usize, bool) {
    let mut tries = 0;
    let count = |number: usize| {
        tries = number;
        outcome(number)
    };
    let passed = catch_unwind(AssertUnwindSafe(|| repeat_if_disturbed("tried", count))).is_ok();
    (tries, passed)
}

#[test]
fn what_fails_on_a_quiet_machine_is_not_tried_again() {
    let fails_once = |number: usize| if number == 1 { Err(Failed::Quiet) } else { Ok(()) };
    assert_eq!(tried(fails_once), (1, false));
    let fails_when_quiet = |number: usize| Err(if number < 3 { Failed::Disturbed } else { Failed::Quiet });
    assert_eq!(tried(fails_when_quiet), (3, false));
}

#[test]
fn what_was_disturbed_is_tried_again_but_not_for_ever() {
    assert_eq!(tried(|_| Ok(())), (1, true));
    assert_eq!(tried(|number| if number < 3 { Err(Failed::Disturbed) } else { Ok(()) }), (3, true));
    let (tries, passed) = tried(|_| Err(Failed::Disturbed));
    assert!(tries > 1 && !passed, "{tries} tries");
}
