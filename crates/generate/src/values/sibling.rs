//! Values that must differ: partition keys of different partitions, clustering values of different rows.
//!
//! The values of a column are thought of as numbered, from the smallest to the largest. A *position* is such a number; other
//! positions give other values, and greater positions greater ones. So distinct values in their order cost no memory, and the
//! n-th row of a partition can be made without the rows before it.

use brownout_base::random::{below, derive};

use super::{
    content::LETTERS,
    v2::{DAYS, MILLISECONDS, NANOSECONDS, Node, Shape, Source},
};
use crate::{permute::permute, types::CqlType};

/// The number of positions of types whose values are not to be counted: as good as endless.
const MANY: u64 = 1 << 60;

impl Node {
    /// The number of positions.
    pub(super) fn domain(&self) -> u64 {
        let of_type = self.capacity();
        match &self.population {
            None => of_type,
            Some(population) => {
                // In 128 bits: a range may be as wide as the type.
                let range = i128::from(population.max()) - i128::from(population.min()) + 1;
                u64::try_from(range).unwrap_or(u64::MAX).min(of_type)
            }
        }
    }

    /// How many values the type has that positions can be given to.
    fn capacity(&self) -> u64 {
        match &self.cql_type {
            CqlType::Boolean => 2,
            CqlType::TinyInt => self.up_to(i64::from(i8::MAX)),
            CqlType::SmallInt => self.up_to(i64::from(i16::MAX)),
            CqlType::Int => self.up_to(i64::from(i32::MAX)),
            // Whole numbers that the type still distinguishes.
            CqlType::Float => 1 << 24,
            CqlType::Double => 1 << 53,
            CqlType::Timestamp | CqlType::TimeUuid if self.population.is_none() => MILLISECONDS,
            CqlType::Date if self.population.is_none() => DAYS,
            CqlType::Time => self.up_to(NANOSECONDS as i64 - 1),
            CqlType::Ascii | CqlType::Text => 1 << (6 * self.shortest(10)),
            CqlType::Blob | CqlType::Custom(_) => 1 << (8 * self.shortest(7)),
            CqlType::List(_) | CqlType::Vector(..) | CqlType::Set(_) | CqlType::Map(..) => match &self.shape {
                Shape::Elements(element) => {
                    let count = match self.cql_type {
                        CqlType::Vector(_, count) => count as u32,
                        _ => self.shortest(64),
                    };
                    element.domain().saturating_pow(count).clamp(1, MANY)
                }
                Shape::Set(element, _) | Shape::Map(element, ..) if self.shortest(1) > 0 => element.domain(),
                _ => 1,
            },
            CqlType::Tuple(_) | CqlType::Udt(_) => match &self.shape {
                Shape::Fields(fields) => {
                    fields.iter().fold(1, |all: u64, field| all.saturating_mul(field.domain())).clamp(1, MANY)
                }
                _ => 1,
            },
            _ => MANY,
        }
    }

    /// How many whole numbers there are from the first that is asked for to the type's last.
    fn up_to(&self, last: i64) -> u64 {
        let count = i128::from(last) - i128::from(self.number_at(0)) + 1;
        u64::try_from(count).unwrap_or(1).max(1)
    }

    /// The least size, at most `most`.
    fn shortest(&self, most: u32) -> u32 {
        u32::try_from(self.size.min().max(0)).unwrap_or(u32::MAX).min(most)
    }

    /// Whether other positions surely give other values: the types whose values are made from a position, not drawn for it.
    pub(super) fn counts_through(&self) -> bool {
        matches!(self.shape, Shape::Plain | Shape::Content(_)) && self.cql_type != CqlType::Duration
    }

    /// The whole number at a position.
    pub(super) fn number_at(&self, position: u64) -> i64 {
        let first = match &self.population {
            Some(population) => population.min(),
            None if matches!(self.cql_type, CqlType::Timestamp | CqlType::TimeUuid) => 1,
            None => 0,
        };
        first.wrapping_add(position as i64)
    }

    /// A position, spread over `bits` bits: what is left between two positions is filled at random, so that a few positions do not
    /// all begin alike.
    pub(super) fn spread(&self, position: u64, bits: u32, random: u64) -> u64 {
        let step = ((1u128 << bits) / u128::from(self.domain())).max(1) as u64;
        position.wrapping_mul(step).wrapping_add(below(random, step))
    }

    /// Append the value at a position below [`Self::domain`].
    pub(super) fn append_position(&mut self, position: u64, out: &mut Vec<u8>) {
        self.emit(Source::Position(position), out);
    }

    /// Append the key of the partition of this seed.
    pub(super) fn append_key(&mut self, seed: i64, out: &mut Vec<u8>) {
        let domain = self.domain();
        let position = match &mut self.population {
            None => permute(seed as u64, domain, self.salt),
            Some(population) => {
                population.set_seed((derive(seed as u64, self.salt) >> 1) as i64);
                (population.next().wrapping_sub(population.min()) as u64).min(domain - 1)
            }
        };
        self.append_position(position, out);
    }

    /// A text or blob.
    pub(super) fn emit_content(&mut self, source: Source, out: &mut Vec<u8>) {
        let bits = self.bits(source);
        let mut size = self.sized(bits);
        if let Source::Position(position) = source {
            // The position itself, most significant part first, then contents made from it.
            let text = matches!(self.cql_type, CqlType::Ascii | CqlType::Text);
            let (digits, width) = if text { (self.shortest(10), 6) } else { (self.shortest(7), 8) };
            let code = self.spread(position, digits * width, bits);
            for digit in (0..digits).rev() {
                let digit = (code >> (digit * width)) as u8;
                out.push(if text { LETTERS[usize::from(digit & 63)] } else { digit });
            }
            size = size.saturating_sub(digits as usize);
        }
        if let Shape::Content(content) = &self.shape {
            content.append(size, bits, out);
        }
    }
}
