//! Values of columns: from a seed to the bytes that travel in a request.
//!
//! A [`ColumnGenerator`] is made from a column's type and what a profile says about it ([`ColumnSettings`]). There are two
//! flavours. [`Flavour::Compat`] is cassandra-stress, bit for bit, for the types it knows. [`Flavour::V2`] knows every
//! type, gives valid UUIDs and both booleans, and makes siblings that differ.
//!
//! A value is a pure function of its seed and its column: of the name as the profile spells it, the type and the
//! distributions. Nothing of the run, of the thread or of the values before it goes in.

mod compat;
mod content;
mod error;
mod sibling;
mod v2;

pub(crate) use content::has_free_content;
pub use error::ValueError;

use compat::Compat;
use v2::Node;

use crate::{
    distribution::{Distribution, Spec},
    types::CqlType,
};

/// By which rules values are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Flavour {
    /// As cassandra-stress makes them, its faults included.
    Compat,
    /// Our own: every type, valid, distinct where it matters, fast.
    #[default]
    V2,
}

/// Where a column comes from; in [`Flavour::Compat`] this decides what its values are seeded with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Origin {
    /// A column of a profile's table.
    #[default]
    Profile,
    /// A value column (`C0`, `C1` …) of the commands `write`, `read`, `mixed` and their counters.
    Predefined,
    /// The key of these commands: letters and digits in a blob.
    PredefinedKey,
}

/// What a profile says about a column. What is not given has the flavour's default.
#[derive(Debug, Clone, Default)]
pub struct ColumnSettings {
    /// Bytes of a text, blob or varint; elements of a collection. Default: `uniform(4..8)`.
    pub size: Option<Spec>,
    /// Which values there are, and how often each: numbers are the values themselves; of other types each number stands
    /// for one value. Default in compat: `uniform(1..100B)`, for timestamps 50 years of milliseconds; in v2: all values of
    /// the type.
    pub population: Option<Spec>,
    /// How many values a clustering column has under one value of the column before it. Default: `fixed(1)`.
    pub cluster: Option<Spec>,
    /// v2: bytes of the texts, blobs and varints inside a collection, tuple or user-defined type, and elements of the
    /// collections inside. Default: `uniform(4..8)`, and `uniform(1..4)` for collections.
    pub element_size: Option<Spec>,
    /// v2: the population of what is inside a collection, tuple or user-defined type.
    pub element_population: Option<Spec>,
    /// v2: the ratio, compressed to raw, that the column's own bytes should reach, above 0 and below 1; for text and blob, and
    /// for what holds them other than as keys of maps and elements of sets. It takes effect through [`crate::compress::calibrate`].
    pub compress: Option<f64>,
    /// v2: the share of the bytes of texts and blobs that repeat what other rows have, 0 to 1. Set by
    /// [`crate::compress::calibrate`]; `None` leaves all bytes random.
    pub repeat: Option<f64>,
    /// By which rules.
    pub flavour: Flavour,
    /// Where the column comes from.
    pub origin: Origin,
}

/// Makes the values of one column.
#[derive(Debug, Clone)]
pub struct ColumnGenerator {
    name: String,
    cql_type: CqlType,
    cluster: Distribution,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Compat(Box<Compat>),
    V2(Box<Node>),
}

/// What cassandra-stress assumes where a profile says nothing.
const DEFAULT_SIZE: Spec = Spec::Uniform { min: 4, max: 8 };

impl ColumnGenerator {
    /// For the column `name` (as the profile spells it; that is what compat values depend on).
    pub fn new(name: &str, cql_type: &CqlType, settings: &ColumnSettings) -> Result<Self, ValueError> {
        if let Some(size) = &settings.size
            && size.min() < 0
        {
            return Err(ValueError::NegativeSize { column: name.to_owned(), size: size.to_string() });
        }
        let kind = match settings.flavour {
            Flavour::Compat => Kind::Compat(Box::new(Compat::new(name, cql_type, settings)?)),
            Flavour::V2 => Kind::V2(Box::new(Node::column(name, cql_type, settings)?)),
        };
        let cluster = settings.cluster.as_ref().unwrap_or(&Spec::Fixed(1)).build(0);
        Ok(ColumnGenerator { name: name.to_owned(), cql_type: cql_type.clone(), cluster, kind })
    }

    /// The column's name as given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The column's type.
    pub fn cql_type(&self) -> &CqlType {
        &self.cql_type
    }

    /// The distribution of the number of values under one value of the column before it.
    pub fn cluster(&self) -> &Distribution {
        &self.cluster
    }

    /// Append the value of this seed: the bytes of a [value] without their length.
    #[inline]
    pub fn append(&mut self, seed: i64, out: &mut Vec<u8>) {
        match &mut self.kind {
            Kind::Compat(compat) => {
                compat.set_seed(seed);
                compat.append_next(out);
            }
            Kind::V2(node) => node.append(seed as u64, out),
        }
    }

    /// Append the value of this seed for a partition key. In v2, where no population limits them, partitions of different
    /// seeds get different values as far as the type has so many.
    #[inline]
    pub fn append_key(&mut self, seed: i64, out: &mut Vec<u8>) {
        match &mut self.kind {
            Kind::Compat(_) => self.append(seed, out),
            Kind::V2(node) => node.append_key(seed, out),
        }
    }

    /// compat: start the values of this seed over, and return how many there are of a clustering column.
    pub(crate) fn start_siblings(&mut self, seed: i64) -> i64 {
        if let Kind::Compat(compat) = &mut self.kind {
            compat.set_seed(seed);
            // cassandra-stress forgets to seed this one for timeuuids; the time of day decides there.
            self.cluster.set_seed(seed ^ !compat.salt());
        }
        self.cluster.next()
    }

    /// compat: append the next value of the seed given to [`Self::start_siblings`].
    pub(crate) fn append_next(&mut self, out: &mut Vec<u8>) {
        if let Kind::Compat(compat) = &mut self.kind {
            compat.append_next(out);
        }
    }

    /// v2: how many values the siblings of a clustering column can be chosen from.
    pub(crate) fn domain(&self) -> u64 {
        match &self.kind {
            Kind::Compat(_) => u64::MAX,
            Kind::V2(node) => node.domain(),
        }
    }

    /// Whether other positions surely give other values.
    pub(crate) fn counts_through(&self) -> bool {
        match &self.kind {
            Kind::Compat(_) => false,
            Kind::V2(node) => node.counts_through(),
        }
    }

    /// v2: append the value at `position` of [`Self::domain`]. Other positions give other values, and greater ones greater
    /// values, for all types that can be counted through (not for collections, tuples and user-defined types).
    pub(crate) fn append_position(&mut self, position: u64, out: &mut Vec<u8>) {
        if let Kind::V2(node) = &mut self.kind {
            node.append_position(position, out);
        }
    }

    /// v2: how many siblings this column has under the seed.
    pub(crate) fn cluster_count(&mut self, seed: u64) -> i64 {
        self.cluster.set_seed((seed >> 1) as i64);
        self.cluster.next()
    }
}

#[cfg(test)]
mod tests;
