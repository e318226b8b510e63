//! What several labs report, one after the other.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::progress::{Progress, Tick};

/// Reports what one of several labs reports, and which it is.
pub(crate) struct Labelled<'a, 'b> {
    lab: u32,
    to: &'a Mutex<&'b mut dyn Progress>,
}

impl<'a, 'b> Labelled<'a, 'b> {
    /// For the lab of this number.
    pub(crate) fn new(lab: u32, to: &'a Mutex<&'b mut dyn Progress>) -> Self {
        Labelled { lab, to }
    }

    fn to(&self) -> MutexGuard<'a, &'b mut dyn Progress> {
        let mut to = self.to.lock().unwrap_or_else(PoisonError::into_inner);
        to.of_lab(self.lab);
        to
    }
}

impl Progress for Labelled<'_, '_> {
    fn of_lab(&mut self, lab: u32) {
        self.lab = lab;
    }

    fn step(&mut self, text: &str) {
        self.to().step(text);
    }

    fn note(&mut self, text: &str) {
        self.to().note(text);
    }

    fn hand_over(&mut self) {
        self.to().hand_over();
    }

    fn tick(&mut self, tick: &Tick) {
        self.to().tick(tick);
    }
}
