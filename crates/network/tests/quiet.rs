//! How measurements that a busy machine can spoil are judged.

// Helpers outside of a #[test] may fail it just as well.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod machine;

use std::panic::{AssertUnwindSafe, catch_unwind};

use machine::{MOST_TRIES, Machine, Try, is_good};

/// How often it is tried, and what is found: whether it is good, or that nobody knows; none if it fails. Each try is
/// good or bad, with a machine as it is told; `alone` is the machine while nothing is tried.
fn tried(alone: Machine, mut outcome: impl FnMut(usize) -> (bool, Machine)) -> (usize, Option<bool>) {
    let mut tries = 0;
    let attempt = |number: usize| {
        tries = number;
        let (is_good, machine) = outcome(number);
        Try { is_good, machine }
    };
    let found = catch_unwind(AssertUnwindSafe(|| is_good("tried", attempt, || alone))).ok();
    (tries, found)
}

#[test]
fn on_a_quiet_machine_one_try_decides() {
    assert_eq!(tried(Machine::Quiet, |_| (true, Machine::Quiet)), (1, Some(true)));
    assert_eq!(tried(Machine::Quiet, |_| (false, Machine::Quiet)), (1, None));
    // Whatever there was before.
    let quiet_later = |number: usize| if number < 3 { Machine::Busy } else { Machine::Quiet };
    assert_eq!(tried(Machine::Busy, |number| (false, quiet_later(number))), (3, None));
    assert_eq!(tried(Machine::Busy, |number| (number == 2, quiet_later(number))), (3, None));
}

#[test]
fn what_was_bad_on_a_busy_machine_is_outweighed_by_four_good_tries_or_one_on_a_quiet_machine() {
    let then = |machine: Machine| move |number: usize| (number > 1, if number == 1 { Machine::Late } else { machine });
    assert_eq!(tried(Machine::Quiet, then(Machine::Quiet)), (2, Some(true)));
    assert_eq!(tried(Machine::Quiet, then(Machine::Busy)), (5, Some(true)));
}

#[test]
fn what_is_good_however_busy_the_machine_is_needs_no_quiet_one() {
    for machine in [Machine::Late, Machine::Busy] {
        assert_eq!(tried(Machine::Quiet, |_| (true, machine)), (1, Some(true)));
    }
}

#[test]
fn nobody_knows_only_if_the_machine_says_by_itself_that_it_is_busy() {
    assert_eq!(tried(Machine::Quiet, |_| (false, Machine::Busy)), (MOST_TRIES, Some(false)));
    assert_eq!(tried(Machine::Late, |_| (false, Machine::Late)), (MOST_TRIES, Some(false)));
    assert_eq!(tried(Machine::Quiet, |_| (false, Machine::Late)), (MOST_TRIES, None));
}

#[test]
fn a_defect_in_half_of_all_tries_passes_hardly_more_often_than_if_there_were_one_try() {
    // All ways in which the tries can come out, each as likely as any other.
    let all = 0..1_u32 << MOST_TRIES;
    let passes = |machine: Machine| {
        let is_passed = |way: &u32| {
            let is_good = |number: usize| way >> (number - 1) & 1 == 1;
            tried(Machine::Busy, |number| (is_good(number), machine)).1 == Some(true)
        };
        all.clone().filter(is_passed).count() as f64 / all.len() as f64
    };
    for machine in [Machine::Late, Machine::Busy] {
        // A single try passes half of the time.
        assert!((0.5..0.55).contains(&passes(machine)), "{machine:?}: {}", passes(machine));
    }
}
