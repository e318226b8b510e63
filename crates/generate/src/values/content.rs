//! The bytes of texts and blobs in v2.

use brownout_base::random::{Random, scramble};

use crate::types::CqlType;

/// Whether values of the type hold texts or blobs whose content is free, so that a share of it can repeat. Keys of maps and
/// elements of sets are not: they must differ.
pub(crate) fn has_free_content(cql_type: &CqlType) -> bool {
    match cql_type.unfrozen() {
        CqlType::Ascii | CqlType::Text | CqlType::Blob => true,
        CqlType::List(element) | CqlType::Vector(element, _) => has_free_content(element),
        CqlType::Map(_, value) => has_free_content(value),
        CqlType::Tuple(fields) => fields.iter().any(has_free_content),
        CqlType::Udt(udt) => udt.fields.iter().any(|(_, field)| has_free_content(field)),
        _ => false,
    }
}

/// Which bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Alphabet {
    /// Any byte.
    Bytes,
    /// 64 printable letters in ascending order: six bits a letter, quick to make.
    Letters,
    /// All 94 printable letters of ASCII but the space: as little compressible as plain text can be.
    Printable,
}

/// 64 letters, in the order of their codes, so that numbers written with them are in the order of the texts.
pub(super) const LETTERS: &[u8; 64] = b"-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";

/// Two letters for twelve bits, the low six first.
static PAIRS: [[u8; 2]; 4096] = {
    let mut pairs = [[0; 2]; 4096];
    let mut bits = 0;
    while bits < pairs.len() {
        pairs[bits] = [LETTERS[bits & 63], LETTERS[bits >> 6]];
        bits += 1;
    }
    pairs
};

/// Fresh bytes and repeated ones take turns in blocks of this size, so that a value larger than a chunk of the compressor
/// compresses alike in all its parts.
const BLOCK: usize = 1024;

/// What is repeated: so short that a small chunk does not consist of its first occurrence, and long enough to be found.
const PHRASE: usize = 32;

/// Makes contents of a given size, a given share of which repeats what all other contents have.
#[derive(Debug, Clone)]
pub(super) struct Content {
    alphabet: Alphabet,
    /// Share of repeated bytes; zero: all are fresh.
    repeat: f64,
    /// What is repeated.
    phrase: Vec<u8>,
}

impl Content {
    pub(super) fn new(alphabet: Alphabet, repeat: Option<f64>) -> Self {
        // With the dial in use a text must be able to be incompressible, as far as texts can.
        let alphabet = if repeat.is_some() && alphabet == Alphabet::Letters { Alphabet::Printable } else { alphabet };
        let mut content = Content { alphabet, repeat: repeat.unwrap_or(0.0).clamp(0.0, 1.0), phrase: Vec::new() };
        if content.repeat > 0.0 {
            let mut phrase = Vec::with_capacity(PHRASE);
            content.fresh(PHRASE, &mut Random::new(scramble(0x0009_7a5e)), &mut phrase);
            content.phrase = phrase.into_iter().cycle().take(BLOCK).collect();
        }
        content
    }

    /// Append `size` bytes made from `seed`.
    #[inline]
    pub(super) fn append(&self, size: usize, seed: u64, out: &mut Vec<u8>) {
        let mut stream = Random::new(seed);
        if self.repeat <= 0.0 {
            return self.fresh(size, &mut stream, out);
        }
        let mut left = size;
        while left > 0 {
            let block = left.min(BLOCK);
            // Rounded up or down by chance, so that short values have the share in the mean.
            let repeated = ((block as f64 * self.repeat + stream.fraction()) as usize).min(block);
            self.fresh(block - repeated, &mut stream, out);
            out.extend_from_slice(&self.phrase[..repeated]);
            left -= block;
        }
    }

    fn fresh(&self, size: usize, stream: &mut Random, out: &mut Vec<u8>) {
        let end = out.len() + size;
        // Whole words, of which what is too much is cut off: no copy of a length that is only known here.
        out.reserve(size + 8);
        match self.alphabet {
            Alphabet::Bytes => {
                while out.len() < end {
                    out.extend_from_slice(&stream.word().to_le_bytes());
                }
            }
            Alphabet::Letters => {
                while out.len() < end {
                    let word = stream.word();
                    let pair = |place: u32| PAIRS[(word >> (12 * place)) as usize & 4095];
                    let [[a, b], [c, d], [e, f], [g, h]] = [pair(0), pair(1), pair(2), pair(3)];
                    out.extend_from_slice(&[a, b, c, d, e, f, g, h]);
                }
            }
            Alphabet::Printable => {
                while out.len() < end {
                    let mut word = stream.word();
                    // 94⁸ is 2⁵²: eight letters to a word leave no visible bias.
                    let letters: [u8; 8] = std::array::from_fn(|_| {
                        let letter = b'!' + (word % 94) as u8;
                        word /= 94;
                        letter
                    });
                    out.extend_from_slice(&letters);
                }
            }
        }
        out.truncate(end);
    }
}
