//! One link as the emulator's thread sees it.

use super::{queue::Queue, stages::Stages};
use crate::{clock::monotonic_ns, impairment::Impairment};

/// A link's impairments, one on top of another, and what it holds.
pub(super) struct Line {
    /// The receiving host.
    pub(super) to: usize,
    pub(super) stages: Stages,
    pub(super) queue: Queue,
    layers: Vec<(u64, Impairment)>,
    sabotaged: bool,
}

impl Line {
    pub(super) fn new(to: usize, stages: Stages) -> Self {
        Line { to, stages, queue: Queue::default(), layers: Vec::new(), sabotaged: false }
    }

    /// True when a packet that comes now leaves now.
    pub(super) fn is_clear(&self) -> bool {
        self.stages.is_idle() && self.queue.is_empty()
    }

    pub(super) fn add_layer(&mut self, layer: u64, impairment: Impairment) {
        self.layers.push((layer, impairment));
        self.reconfigure();
    }

    pub(super) fn amend_layer(&mut self, layer: u64, impairment: Impairment) {
        for (other, asked) in &mut self.layers {
            if *other == layer {
                *asked = impairment;
            }
        }
        self.reconfigure();
    }

    pub(super) fn remove_layer(&mut self, layer: u64) {
        let before = self.layers.len();
        self.layers.retain(|(other, _)| *other != layer);
        if self.layers.len() != before {
            self.reconfigure();
        }
    }

    /// See [`crate::Emulator::sabotage`].
    pub(super) fn sabotage(&mut self, on: bool) {
        self.sabotaged = on;
        self.reconfigure();
    }

    fn reconfigure(&mut self) {
        let layers = self.layers.iter().filter(|_| !self.sabotaged);
        let effective = layers.fold(Impairment::NONE, |_, (_, layer)| *layer);
        let before = self.stages.report().longest_hold_ns();
        self.stages.configure(&effective);
        if effective.longest_hold_ns() < before {
            self.queue.hurry(monotonic_ns(), effective.longest_hold_ns());
        }
    }
}
