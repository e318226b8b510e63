//! Values as cassandra-stress makes them.
//!
//! Source: its `generate/values`, one class per type. In short: a column has a salt, the hash of its name; a seed, xored
//! with the salt, starts the *identity* distribution; each value takes the next draw of it. For texts and blobs that draw
//! is the seed of the value: it starts the size distribution, and its complement the generator of bytes.

use super::{ColumnSettings, DEFAULT_SIZE, Origin, ValueError};
use crate::{
    distribution::{Distribution, Spec},
    java::{self, FasterRandom},
    types::{CqlType, compare, wire},
};

/// One column, or the elements of one.
#[derive(Debug, Clone)]
pub(super) struct Compat {
    salt: i64,
    identity: Distribution,
    size: Distribution,
    content: Content,
}

#[derive(Debug, Clone)]
enum Content {
    Text(FasterRandom),
    Blob(FasterRandom),
    /// The predefined key.
    Letters,
    BigInt,
    Int,
    SmallInt,
    TinyInt,
    Varint,
    Decimal,
    Float,
    Double,
    Boolean,
    Date,
    Uuid,
    TimeUuid,
    Inet,
    List(Box<Compat>),
    Set {
        element: Box<Compat>,
        element_type: CqlType,
        bytes: Vec<u8>,
        ends: Vec<(usize, usize)>,
    },
}

/// 50 years of milliseconds, the range of timestamps where none is asked for.
const TIMESTAMPS: Spec = Spec::Uniform { min: 1, max: 50 * 365 * 24 * 60 * 60 * 1000 };
const IDENTITIES: Spec = Spec::Uniform { min: 1, max: 100_000_000_000 };

impl Compat {
    pub(super) fn new(name: &str, cql_type: &CqlType, settings: &ColumnSettings) -> Result<Self, ValueError> {
        for (setting, given) in [
            ("compress", settings.compress.is_some() || settings.repeat.is_some()),
            ("element_size", settings.element_size.is_some()),
            ("element_population", settings.element_population.is_some()),
        ] {
            if given {
                return Err(ValueError::NeedsV2 { column: name.to_owned(), setting });
            }
        }
        let salt = match settings.origin {
            Origin::Profile => java::salt(&format!("seed for stress{name}")),
            Origin::Predefined => java::salt(&format!("randomstr{name}")),
            Origin::PredefinedKey => java::salt("randomstrkey"),
        };
        Compat::of(name, cql_type, cql_type, settings, salt, true)
    }

    /// `whole` is the column's type, for messages. Elements have the salt and the distributions of their collection.
    fn of(
        name: &str,
        whole: &CqlType,
        cql_type: &CqlType,
        settings: &ColumnSettings,
        salt: i64,
        outer: bool,
    ) -> Result<Self, ValueError> {
        let element = |element: &CqlType| Compat::of(name, whole, element, settings, salt, false).map(Box::new);
        let content = match cql_type.unfrozen() {
            CqlType::Blob if settings.origin == Origin::PredefinedKey => Content::Letters,
            CqlType::Ascii | CqlType::Text => Content::Text(FasterRandom::new(0)),
            CqlType::Blob => Content::Blob(FasterRandom::new(0)),
            CqlType::BigInt | CqlType::Counter | CqlType::Time | CqlType::Timestamp => Content::BigInt,
            CqlType::Int => Content::Int,
            CqlType::SmallInt => Content::SmallInt,
            CqlType::TinyInt => Content::TinyInt,
            CqlType::Varint => Content::Varint,
            CqlType::Decimal => Content::Decimal,
            CqlType::Float => Content::Float,
            CqlType::Double => Content::Double,
            CqlType::Boolean => Content::Boolean,
            CqlType::Date => Content::Date,
            CqlType::Uuid => Content::Uuid,
            CqlType::TimeUuid => Content::TimeUuid,
            CqlType::Inet => Content::Inet,
            CqlType::List(inner) if outer => Content::List(element(inner)?),
            CqlType::Set(inner) if outer => Content::Set {
                element: element(inner)?,
                element_type: (**inner).clone(),
                bytes: Vec::new(),
                ends: Vec::new(),
            },
            _ => return Err(ValueError::Unsupported { column: name.to_owned(), cql_type: whole.to_string() }),
        };
        let default = match cql_type.unfrozen() {
            CqlType::Timestamp | CqlType::TimeUuid => &TIMESTAMPS,
            _ => &IDENTITIES,
        };
        Ok(Compat {
            salt,
            identity: settings.population.as_ref().unwrap_or(default).build(0),
            size: settings.size.as_ref().unwrap_or(&DEFAULT_SIZE).build(0),
            content,
        })
    }

    pub(super) fn salt(&self) -> i64 {
        self.salt
    }

    /// Start the values of this seed.
    #[inline]
    pub(super) fn set_seed(&mut self, seed: i64) {
        match &mut self.content {
            Content::List(element) | Content::Set { element, .. } => {
                element.set_seed(seed.wrapping_mul(31));
                // cassandra-stress leaves the sizes of collections to the clock; here they are repeatable.
                self.size.set_seed(seed ^ self.salt);
            }
            _ => self.identity.set_seed(seed ^ self.salt),
        }
    }

    /// Append the next value of the seed.
    #[inline]
    pub(super) fn append_next(&mut self, out: &mut Vec<u8>) {
        match &mut self.content {
            Content::Blob(random) => {
                let seed = self.identity.next();
                let size = sized(&mut self.size, seed);
                random.set_seed(!seed);
                let end = out.len() + size;
                // Whole words, of which what is too much is cut off.
                out.reserve(size + 8);
                while out.len() < end {
                    out.extend_from_slice(&random.next_i64().to_le_bytes());
                }
                out.truncate(end);
            }
            Content::Text(random) => {
                let seed = self.identity.next();
                let size = sized(&mut self.size, seed);
                random.set_seed(!seed);
                let end = out.len() + size;
                out.reserve(size + 8);
                while out.len() < end {
                    // Each byte: seven bits, and 32 added to them modulo 128. On all eight bytes at once: no sum passes
                    // 159, so none carries into its neighbour.
                    let word = random.next_i64() as u64 & 0x7f7f_7f7f_7f7f_7f7f;
                    let letters = (word + 0x2020_2020_2020_2020) & 0x7f7f_7f7f_7f7f_7f7f;
                    out.extend_from_slice(&letters.to_le_bytes());
                }
                out.truncate(end);
            }
            Content::Letters => {
                let seed = self.identity.next();
                let mut left = sized(&mut self.size, seed);
                while left > 0 {
                    let mut draw = self.identity.next();
                    for _ in 0..left.min(16) {
                        let digit = (draw & 15) as u8;
                        // 10 and above become K to P, because 'A' is added to the whole digit.
                        out.push(digit + if digit < 10 { b'0' } else { b'A' });
                        draw = (draw as u64 >> 4) as i64;
                    }
                    left = left.saturating_sub(16);
                }
            }
            Content::BigInt => out.extend_from_slice(&self.identity.next().to_be_bytes()),
            Content::Int => out.extend_from_slice(&(self.identity.next() as i32).to_be_bytes()),
            Content::SmallInt => out.extend_from_slice(&(self.identity.next() as i16).to_be_bytes()),
            Content::TinyInt => out.extend_from_slice(&(self.identity.next() as i8).to_be_bytes()),
            Content::Varint => wire::put_varint(out, i128::from(self.identity.next())),
            Content::Decimal => {
                out.extend_from_slice(&0i32.to_be_bytes());
                wire::put_varint(out, i128::from(self.identity.next()));
            }
            Content::Float => out.extend_from_slice(&(self.identity.next_f64() as f32).to_be_bytes()),
            Content::Double => out.extend_from_slice(&self.identity.next_f64().to_be_bytes()),
            Content::Boolean => {
                // `draw % 1 == 0` is always true; the draw is taken all the same.
                self.identity.next();
                out.push(1);
            }
            // Days since 1970, which travel with 2³¹ added.
            Content::Date => out.extend_from_slice(&(self.identity.next() as u32 ^ 1 << 31).to_be_bytes()),
            Content::Uuid => {
                let half = self.identity.next().to_be_bytes();
                out.extend_from_slice(&half);
                out.extend_from_slice(&half);
            }
            Content::TimeUuid => {
                out.extend_from_slice(&time_uuid_high(self.identity.next()).to_be_bytes());
                out.extend_from_slice(&self.salt.to_be_bytes());
            }
            Content::Inet => out.extend_from_slice(&(self.identity.next() as i32).to_be_bytes()),
            Content::List(element) => {
                let count = self.size.next().max(0);
                wire::put_count(out, count as usize);
                for _ in 0..count {
                    wire::put_bytes(out, |out| element.append_next(out));
                }
            }
            Content::Set { element, element_type, bytes, ends } => {
                bytes.clear();
                ends.clear();
                for _ in 0..self.size.next().max(0) {
                    let start = bytes.len();
                    element.append_next(bytes);
                    ends.push((start, bytes.len()));
                }
                append_set(bytes, ends, element_type, out);
            }
        }
    }
}

/// The size of the value with this seed.
#[inline]
fn sized(size: &mut Distribution, seed: i64) -> usize {
    size.set_seed(seed);
    size.next().max(0) as usize
}

/// A set of the given elements, in the order in which the server keeps and returns them, each once.
pub(super) fn append_set(bytes: &[u8], parts: &mut Vec<(usize, usize)>, element_type: &CqlType, out: &mut Vec<u8>) {
    parts.sort_by(|left, right| compare(&bytes[left.0..left.1], &bytes[right.0..right.1], element_type));
    parts.dedup_by(|left, right| bytes[left.0..left.1] == bytes[right.0..right.1]);
    wire::put_count(out, parts.len());
    for (start, end) in parts {
        wire::put_bytes(out, |out| out.extend_from_slice(&bytes[*start..*end]));
    }
}

/// The first half of a version-1 UUID of this time, in ms since 1970 (RFC 9562, 5.1: low, middle and high part of the time
/// in 100 ns since 1582-10-15, and the version).
pub(super) fn time_uuid_high(milliseconds: i64) -> u64 {
    const SINCE_1582: i64 = 12_219_292_800_000;
    let ticks = milliseconds.wrapping_add(SINCE_1582).wrapping_mul(10_000) as u64;
    ticks << 32 | (ticks >> 16 & 0xffff_0000) | 0x1000 | (ticks >> 48 & 0x0fff)
}
