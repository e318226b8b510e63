//! Data that a compressor shrinks to a ratio asked for.
