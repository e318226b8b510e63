//! The impairments on one link, one on top of another.

use super::{
    random,
    stages::{Fate, Gate, ORDER, Stage},
};
use crate::{
    impairment::{Impairment, RateLimit},
    link::Link,
};

/// Each impairment has its own stages, with their own memory, as long as it stays. A link without any costs nothing.
pub(super) struct Layers {
    seed: u64,
    link: Link,
    /// The oldest first.
    layers: Vec<Layer>,
    /// In the order in which packets meet them.
    stages: Vec<Placed>,
    /// How many layers there ever were.
    came: u32,
    sabotaged: bool,
    idle: bool,
    gate: Gate,
}

struct Layer {
    name: u64,
    /// How many layers there were on this link before: the same sequence of layers draws the same.
    ordinal: u32,
    asked: Impairment,
}

struct Placed {
    place: Place,
    stage: Box<dyn Stage>,
}

/// Where packets meet a stage: by group, then by layer, then by kind within the group.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    group: u8,
    layer: u32,
    kind: u8,
}

impl Layers {
    pub(super) fn new(seed: u64, link: Link) -> Self {
        let (layers, stages) = (Vec::new(), Vec::new());
        Layers { seed, link, layers, stages, came: 0, sabotaged: false, idle: true, gate: Gate::default() }
    }

    /// True when packets pass as if there were none.
    pub(super) fn is_idle(&self) -> bool {
        self.idle
    }

    /// What does not even enter.
    pub(super) fn gate(&self) -> Gate {
        self.gate
    }

    /// Decides about packets that enter together.
    pub(super) fn decide(&mut self, fates: &mut Vec<Fate>) {
        self.stages.iter_mut().for_each(|placed| placed.stage.decide(fates));
    }

    /// The limits of its bottlenecks, in the order in which packets meet them, each with what tells its layer.
    pub(super) fn limits(&self) -> impl Iterator<Item = (u32, RateLimit)> {
        let limit = |layer: &Layer| self.report(layer).rate.map(|limit| (layer.ordinal, limit));
        self.layers.iter().filter_map(limit)
    }

    /// When the queues of these bottlenecks become empty, in the same order.
    pub(super) fn busy_until_ns(&mut self) -> impl Iterator<Item = (u32, &mut u64)> {
        self.stages.iter_mut().filter_map(|placed| Some((placed.place.layer, placed.stage.busy_until_ns()?)))
    }

    /// What the stages of each layer really do, the oldest first, without those that do nothing.
    pub(super) fn effective(&self) -> impl Iterator<Item = Impairment> {
        self.layers.iter().map(|layer| self.report(layer)).filter(|report| *report != Impairment::NONE)
    }

    pub(super) fn has(&self, name: u64) -> bool {
        self.layers.iter().any(|layer| layer.name == name)
    }

    pub(super) fn add(&mut self, name: u64, asked: Impairment) {
        self.layers.push(Layer { name, ordinal: self.came, asked });
        self.came = self.came.wrapping_add(1);
        self.configure(self.layers.len() - 1);
        self.changed();
    }

    pub(super) fn amend(&mut self, name: u64, asked: Impairment) {
        if let Some(place) = self.layers.iter().position(|layer| layer.name == name) {
            self.layers[place].asked = asked;
            self.configure(place);
            self.changed();
        }
    }

    pub(super) fn remove(&mut self, name: u64) {
        if let Some(place) = self.layers.iter().position(|layer| layer.name == name) {
            let gone = self.layers.remove(place);
            self.stages.retain(|placed| placed.place.layer != gone.ordinal);
            self.changed();
        }
    }

    /// See [`crate::Emulator::sabotage`].
    pub(super) fn sabotage(&mut self, on: bool) {
        self.sabotaged = on;
        (0..self.layers.len()).for_each(|place| self.configure(place));
        self.changed();
    }

    /// Gives a layer's stages their part to do; makes those that it lacks.
    fn configure(&mut self, place: usize) {
        let Layer { ordinal, asked, .. } = self.layers[place];
        let impairment = if self.sabotaged { Impairment::NONE } else { asked };
        let mut stream = 0;
        for (group, kinds) in (0..).zip(ORDER) {
            for (kind, how) in (0..).zip(kinds) {
                let place = Place { group, layer: ordinal, kind };
                match self.stages.binary_search_by_key(&place, |placed| placed.place) {
                    Ok(found) => self.stages[found].stage.configure(&impairment),
                    Err(free) if (how.is_asked)(&impairment) => {
                        let mut stage = (how.make)(random::stream(self.seed, self.link, ordinal, stream));
                        stage.configure(&impairment);
                        self.stages.insert(free, Placed { place, stage });
                    }
                    Err(_) => {}
                }
                stream += 1;
            }
        }
    }

    fn report(&self, layer: &Layer) -> Impairment {
        let mut report = Impairment::NONE;
        let stages = self.stages.iter().filter(|placed| placed.place.layer == layer.ordinal);
        stages.for_each(|placed| placed.stage.report(&mut report));
        report
    }

    fn changed(&mut self) {
        let idle = self.effective().next().is_none();
        self.idle = idle;
        self.gate = Gate::default();
        self.stages.iter().for_each(|placed| placed.stage.gate(&mut self.gate));
    }
}

#[cfg(test)]
#[path = "layers_tests.rs"]
mod tests;
