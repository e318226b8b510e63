//! Values of every type.

use std::net::Ipv6Addr;

use brownout_base::random::{Random, below, derive, fraction, scramble};

use super::{
    ColumnSettings, DEFAULT_SIZE, ValueError,
    compat::{append_set, time_uuid_high},
    content::{Alphabet, Content, has_free_content},
};
use crate::{
    distribution::{Distribution, Spec},
    java,
    types::{CqlType, compare, wire},
};

/// 50 years of milliseconds: timestamps from 1970 to 2019, as cassandra-stress has them.
pub(super) const MILLISECONDS: u64 = 50 * 365 * 24 * 60 * 60 * 1000;
/// Days from 1970 to 2038.
pub(super) const DAYS: u64 = 25_000;
/// Nanoseconds of a day.
pub(super) const NANOSECONDS: u64 = 86_400_000_000_000;
/// Digits after the point of a decimal, as of money. One scale for all, because 1.0 and 1.00 are one key to Cassandra.
const SCALE: i32 = 2;
/// How often a duplicate element of a set is drawn anew before the set is left smaller.
const TRIES: u64 = 20;

/// A type with what it needs to make values: a column, or a part of one.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) salt: u64,
    pub(super) cql_type: CqlType,
    pub(super) size: Distribution,
    pub(super) population: Option<Distribution>,
    pub(super) shape: Shape,
}

#[derive(Debug, Clone)]
pub(super) enum Shape {
    /// The type itself says all.
    Plain,
    /// Text, ascii, blob, custom.
    Content(Content),
    /// List, vector: elements one after the other.
    Elements(Box<Node>),
    /// Set: elements that differ, and room to sort them in.
    Set(Box<Node>, Room),
    /// Map: keys that differ, and values.
    Map(Box<Node>, Box<Node>, Room),
    /// Tuple, user-defined type.
    Fields(Vec<Node>),
}

/// Room for elements while they are sorted; kept, so that no value allocates.
#[derive(Debug, Clone, Default)]
pub(super) struct Room {
    bytes: Vec<u8>,
    parts: Vec<(usize, usize)>,
}

/// Where a value comes from.
#[derive(Debug, Clone, Copy)]
pub(super) enum Source {
    /// 64 random bits: any value of the type.
    Free(u64),
    /// A draw of the population, and its fraction.
    Draw(i64, f64),
    /// A position among the values of the type or population.
    Position(u64),
}

impl Node {
    /// For a column.
    pub(super) fn column(name: &str, cql_type: &CqlType, settings: &ColumnSettings) -> Result<Self, ValueError> {
        if let Some(ratio) = settings.compress {
            if !has_free_content(cql_type) {
                return Err(ValueError::NotCompressible { column: name.to_owned(), cql_type: cql_type.to_string() });
            }
            if !(ratio > 0.0 && ratio < 1.0) {
                return Err(ValueError::Ratio { column: name.to_owned(), ratio: ratio.to_string() });
            }
        }
        if let Some(size) = &settings.element_size
            && size.min() < 0
        {
            return Err(ValueError::NegativeSize { column: name.to_owned(), size: size.to_string() });
        }
        let salt = scramble(java::salt(name) as u64);
        let size = settings.size.as_ref().unwrap_or(&DEFAULT_SIZE);
        Ok(Node::of(cql_type, salt, size, settings.population.as_ref(), settings))
    }

    fn of(cql_type: &CqlType, salt: u64, size: &Spec, population: Option<&Spec>, settings: &ColumnSettings) -> Self {
        // What repeats could not differ.
        let distinct = ColumnSettings { repeat: None, ..settings.clone() };
        let mut parts = 0;
        let mut part = |part: &CqlType, settings: &ColumnSettings| {
            parts += 1;
            let few = Spec::Uniform { min: 1, max: 4 };
            let size = match (&settings.element_size, part.unfrozen()) {
                (Some(size), _) => size,
                (None, CqlType::List(_) | CqlType::Set(_) | CqlType::Map(..)) => &few,
                (None, _) => &DEFAULT_SIZE,
            };
            Node::of(part, derive(parts, salt), size, settings.element_population.as_ref(), settings)
        };
        let shape = match cql_type.unfrozen() {
            CqlType::Ascii | CqlType::Text => Shape::Content(Content::new(Alphabet::Letters, settings.repeat)),
            CqlType::Blob | CqlType::Custom(_) => Shape::Content(Content::new(Alphabet::Bytes, settings.repeat)),
            CqlType::List(element) | CqlType::Vector(element, _) => Shape::Elements(Box::new(part(element, settings))),
            CqlType::Set(element) => Shape::Set(Box::new(part(element, &distinct)), Room::default()),
            CqlType::Map(key, value) => {
                let key = part(key, &distinct);
                Shape::Map(Box::new(key), Box::new(part(value, settings)), Room::default())
            }
            CqlType::Tuple(fields) => Shape::Fields(fields.iter().map(|field| part(field, settings)).collect()),
            CqlType::Udt(udt) => Shape::Fields(udt.fields.iter().map(|(_, field)| part(field, settings)).collect()),
            _ => Shape::Plain,
        };
        Node {
            salt,
            cql_type: cql_type.unfrozen().clone(),
            size: size.build(0),
            population: population.map(|population| population.build(0)),
            shape,
        }
    }

    /// Append the value of this seed.
    #[inline]
    pub(super) fn append(&mut self, seed: u64, out: &mut Vec<u8>) {
        let word = derive(seed, self.salt);
        let source = match &mut self.population {
            None => Source::Free(word),
            Some(population) => draw(population, word, &self.cql_type),
        };
        self.emit(source, out);
    }

    /// The random bits that the contents of a value are made from.
    pub(super) fn bits(&self, source: Source) -> u64 {
        match source {
            Source::Free(word) => word,
            Source::Draw(draw, _) => derive(draw as u64, self.salt),
            Source::Position(position) => derive(!position, self.salt),
        }
    }

    pub(super) fn sized(&mut self, bits: u64) -> usize {
        self.size.set_seed((bits >> 1) as i64);
        self.size.next().max(0) as usize
    }

    /// Append the value of this source.
    pub(super) fn emit(&mut self, source: Source, out: &mut Vec<u8>) {
        match self.shape {
            Shape::Plain => return self.emit_plain(source, out),
            Shape::Content(_) => return self.emit_content(source, out),
            _ => {}
        }
        let bits = self.bits(source);
        let count = match self.cql_type {
            CqlType::Vector(_, count) => count,
            _ => self.sized(bits),
        };
        match &mut self.shape {
            Shape::Elements(element) => match self.cql_type {
                CqlType::Vector(_, _) => append_vector(element, count, bits, out),
                _ => {
                    wire::put_count(out, count);
                    for place in 0..count as u64 {
                        wire::put_bytes(out, |out| element.append(derive(place, bits), out));
                    }
                }
            },
            Shape::Set(element, room) => {
                distinct(element, count, bits, room);
                append_set(&room.bytes, &mut room.parts, &element.cql_type, out);
            }
            Shape::Map(key, value, room) => {
                distinct(key, count, bits, room);
                wire::put_count(out, room.parts.len());
                for (place, (start, end)) in room.parts.iter().enumerate() {
                    wire::put_bytes(out, |out| out.extend_from_slice(&room.bytes[*start..*end]));
                    wire::put_bytes(out, |out| value.append(derive(place as u64, bits), out));
                }
            }
            Shape::Fields(fields) => {
                for field in fields {
                    wire::put_bytes(out, |out| field.append(bits, out));
                }
            }
            Shape::Plain | Shape::Content(_) => {}
        }
    }

    /// A type that has one number, or a few, as its value.
    fn emit_plain(&mut self, source: Source, out: &mut Vec<u8>) {
        let bits = self.bits(source);
        // A whole number: of the population, of the position, or of `free`.
        let number = |free: i64| match source {
            Source::Free(_) => free,
            Source::Draw(draw, _) => draw,
            Source::Position(position) => self.number_at(position),
        };
        let real = || match source {
            Source::Free(word) => fraction(word) * 2.0 - 1.0,
            Source::Draw(_, real) => real,
            Source::Position(position) => self.number_at(position) as f64,
        };
        match self.cql_type {
            CqlType::BigInt => out.extend_from_slice(&number(bits as i64).to_be_bytes()),
            // An increment.
            CqlType::Counter => out.extend_from_slice(&number(1).to_be_bytes()),
            CqlType::Int => out.extend_from_slice(&(number((bits >> 32) as i64) as i32).to_be_bytes()),
            CqlType::SmallInt => out.extend_from_slice(&(number((bits >> 48) as i64) as i16).to_be_bytes()),
            CqlType::TinyInt => out.extend_from_slice(&(number((bits >> 56) as i64) as i8).to_be_bytes()),
            CqlType::Varint => match source {
                Source::Free(_) => {
                    let size = self.sized(bits).max(1);
                    let at = out.len();
                    Content::new(Alphabet::Bytes, None).append(size, bits, out);
                    // The number may be shorter than its bytes; Cassandra keeps the shortest form.
                    let short = wire::minimal(&out[at..]).len();
                    out.drain(at..out.len() - short);
                }
                _ => wire::put_varint(out, i128::from(number(0))),
            },
            CqlType::Decimal => {
                out.extend_from_slice(&SCALE.to_be_bytes());
                wire::put_varint(out, i128::from(number((bits as i64) >> 24)));
            }
            CqlType::Float => out.extend_from_slice(&(real() as f32).to_be_bytes()),
            CqlType::Double => out.extend_from_slice(&real().to_be_bytes()),
            CqlType::Boolean => out.push(match source {
                Source::Position(position) => position as u8 & 1,
                _ => (number((bits >> 63) as i64) & 1) as u8,
            }),
            CqlType::Timestamp => {
                out.extend_from_slice(&number(1 + below(bits, MILLISECONDS) as i64).to_be_bytes());
            }
            CqlType::Date => {
                let days = number(below(bits, DAYS) as i64) as u32;
                out.extend_from_slice(&(days ^ 1 << 31).to_be_bytes());
            }
            CqlType::Time => {
                let time = number(below(bits, NANOSECONDS) as i64).rem_euclid(NANOSECONDS as i64);
                out.extend_from_slice(&time.to_be_bytes());
            }
            CqlType::Uuid => {
                // Version 4, variant 1 (RFC 9562, 5.4).
                let high = match source {
                    Source::Position(position) => self.spread(position, 60, bits) << 4,
                    _ => scramble(bits),
                };
                // The version stands below the first 48 bits.
                let high = (high & !0xffff) | 0x4000 | (high >> 4 & 0x0fff);
                let low = scramble(!bits) >> 2 | 1 << 63;
                out.extend_from_slice(&high.to_be_bytes());
                out.extend_from_slice(&low.to_be_bytes());
            }
            CqlType::TimeUuid => {
                let time = number(1 + below(bits, MILLISECONDS) as i64);
                // Variant 1, and a node with the bit that says that it is no network card (RFC 9562, 6.10).
                let low = (scramble(!bits) >> 2 | 1 << 63) | 1 << 40;
                out.extend_from_slice(&time_uuid_high(time).to_be_bytes());
                out.extend_from_slice(&low.to_be_bytes());
            }
            CqlType::Inet => match source {
                Source::Position(position) => append_v6(self.spread(position, 62, bits), out),
                _ if bits >> 63 == 0 => out.extend_from_slice(&(scramble(bits) as u32).to_be_bytes()),
                _ => append_v6(scramble(bits), out),
            },
            CqlType::Duration => {
                let mut stream = Random::new(bits);
                wire::put_vint(out, stream.below(24) as i64);
                wire::put_vint(out, stream.below(31) as i64);
                wire::put_vint(out, stream.below(NANOSECONDS) as i64);
            }
            // The other types have shapes of their own.
            _ => {}
        }
    }
}

/// The next draw of a population for this seed.
fn draw(population: &mut Distribution, word: u64, cql_type: &CqlType) -> Source {
    // Not negative, so that a sequence stays in its range.
    population.set_seed((word >> 1) as i64);
    match cql_type {
        CqlType::Float | CqlType::Double => {
            let real = population.next_f64();
            Source::Draw(real as i64, real)
        }
        _ => {
            let draw = population.next();
            Source::Draw(draw, draw as f64)
        }
    }
}

/// An address of the documentation's prefix 2001:db8::/32 (RFC 3849), so that no real host is meant.
fn append_v6(host: u64, out: &mut Vec<u8>) {
    let address = Ipv6Addr::from_bits(0x2001_0db8 << 96 | u128::from(host));
    out.extend_from_slice(&address.octets());
}

fn append_vector(element: &mut Node, count: usize, bits: u64, out: &mut Vec<u8>) {
    if element.cql_type.fixed_length().is_some() {
        (0..count as u64).for_each(|place| element.append(derive(place, bits), out));
        return;
    }
    for place in 0..count as u64 {
        let at = out.len();
        element.append(derive(place, bits), out);
        // The length stands before the element, and is itself of variable length: it is put behind and turned round.
        let length = out.len() - at;
        wire::put_unsigned_vint(out, length as u64);
        out[at..].rotate_right(wire::unsigned_vint_length(length as u64));
    }
}

/// Up to `count` elements that differ, in the order in which the server keeps them.
fn distinct(element: &mut Node, count: usize, bits: u64, room: &mut Room) {
    room.bytes.clear();
    room.parts.clear();
    for place in 0..count as u64 {
        for attempt in 0..TRIES {
            let start = room.bytes.len();
            element.append(derive(place + (attempt << 32), bits), &mut room.bytes);
            let made = &room.bytes[start..];
            let order = |part: &(usize, usize)| compare(&room.bytes[part.0..part.1], made, &element.cql_type);
            match room.parts.binary_search_by(order) {
                Err(at) => {
                    room.parts.insert(at, (start, room.bytes.len()));
                    break;
                }
                Ok(_) => room.bytes.truncate(start),
            }
        }
    }
}
