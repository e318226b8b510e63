//! The compressors of tables.

use std::{fmt, io::Write};

use super::CompressError;
use crate::types::{OptionValue, TableDefinition};

/// A table's compressor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Compressor {
    /// `LZ4Compressor`, Cassandra's default. (Its slow variant, `high`, finds the same repeats in generated data.)
    #[default]
    Lz4,
    /// `SnappyCompressor`
    Snappy,
    /// `DeflateCompressor`, level 6 as Java's
    Deflate,
    /// `ZstdCompressor` at a level, by default 3
    Zstd {
        /// `compression_level`
        level: i32,
    },
}

impl fmt::Display for Compressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Compressor::Lz4 => "LZ4Compressor",
            Compressor::Snappy => "SnappyCompressor",
            Compressor::Deflate => "DeflateCompressor",
            Compressor::Zstd { .. } => "ZstdCompressor",
        })
    }
}

/// How a table is compressed: in chunks, each by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Compression {
    /// With what.
    pub compressor: Compressor,
    /// Bytes of a chunk before compression.
    pub chunk: usize,
}

impl Default for Compression {
    /// That of a table that says nothing: LZ4 in chunks of 16 KiB.
    fn default() -> Self {
        Compression { compressor: Compressor::Lz4, chunk: 16 * 1024 }
    }
}

impl Compression {
    /// From the table's option `compression`, as a map (also as `system_schema.tables` has it). `None`: not compressed.
    pub fn from_options<'a>(options: impl Fn(&str) -> Option<&'a str>) -> Result<Option<Self>, CompressError> {
        let enabled = options("enabled").is_none_or(|enabled| !enabled.eq_ignore_ascii_case("false"));
        let class = options("class").or_else(|| options("sstable_compression")).filter(|class| !class.is_empty());
        let Some(class) = class.filter(|_| enabled) else { return Ok(None) };
        let level = options("compression_level").and_then(|level| level.parse().ok()).unwrap_or(3);
        let compressor = match class.rsplit('.').next().unwrap_or(class) {
            "LZ4Compressor" => Compressor::Lz4,
            "SnappyCompressor" => Compressor::Snappy,
            "DeflateCompressor" => Compressor::Deflate,
            "ZstdCompressor" => Compressor::Zstd { level },
            "NoopCompressor" => return Ok(None),
            other => return Err(CompressError::UnknownClass(other.to_owned())),
        };
        let chunk = match options("chunk_length_in_kb").or_else(|| options("chunk_length_kb")) {
            None => Compression::default().chunk,
            Some(text) => {
                let kilobytes: Option<usize> = text.parse().ok();
                kilobytes
                    .filter(|kilobytes| kilobytes.is_power_of_two() && *kilobytes <= 65_536)
                    .map(|kilobytes| kilobytes * 1024)
                    .ok_or_else(|| CompressError::Chunk(text.to_owned()))?
            }
        };
        Ok(Some(Compression { compressor, chunk }))
    }

    /// As a `CREATE TABLE` says. `None`: not compressed.
    pub fn from_table(table: &TableDefinition) -> Result<Option<Self>, CompressError> {
        match table.options.iter().find(|(name, _)| name == "compression") {
            None => Ok(Some(Compression::default())),
            Some((_, OptionValue::Text(text))) => Err(CompressError::UnknownClass(text.clone())),
            Some(_) => Compression::from_options(|key| table.option("compression", key)),
        }
    }

    /// The bytes that all chunks of `data` come to, as a part of its length. The last chunk, if it is not full, is left out.
    pub(super) fn ratio(&self, data: &[u8]) -> Result<f64, CompressError> {
        let mut squeeze = Squeeze::new(self.compressor);
        let (mut raw, mut compressed) = (0, 0);
        for chunk in data.chunks_exact(self.chunk) {
            raw += chunk.len();
            compressed += squeeze.length(chunk)?;
        }
        Ok(compressed as f64 / raw.max(1) as f64)
    }
}

/// A compressor with its buffer.
struct Squeeze {
    compressor: Compressor,
    out: Vec<u8>,
}

impl Squeeze {
    fn new(compressor: Compressor) -> Self {
        Squeeze { compressor, out: Vec::new() }
    }

    /// What the chunk is compressed to, in bytes, as it stands in the file (without the checksum of four bytes).
    fn length(&mut self, chunk: &[u8]) -> Result<usize, CompressError> {
        let failed =
            |reason: String| CompressError::Failed { compressor: self.compressor, length: chunk.len(), reason };
        self.out.clear();
        match self.compressor {
            // Cassandra writes the raw length in four bytes before the block.
            Compressor::Lz4 => {
                self.out.resize(lz4_flex::block::get_maximum_output_size(chunk.len()), 0);
                lz4_flex::block::compress_into(chunk, &mut self.out)
                    .map(|length| length + 4)
                    .map_err(|error| failed(error.to_string()))
            }
            Compressor::Snappy => {
                self.out.resize(snap::raw::max_compress_len(chunk.len()), 0);
                snap::raw::Encoder::new().compress(chunk, &mut self.out).map_err(|error| failed(error.to_string()))
            }
            Compressor::Deflate => {
                let mut encoder = flate2::write::ZlibEncoder::new(&mut self.out, flate2::Compression::new(6));
                encoder
                    .write_all(chunk)
                    .and_then(|()| encoder.finish().map(|out| out.len()))
                    .map_err(|error| failed(error.to_string()))
            }
            Compressor::Zstd { level } => zstd::bulk::compress(chunk, level)
                .map(|compressed| compressed.len())
                .map_err(|error| failed(error.to_string())),
        }
    }
}
