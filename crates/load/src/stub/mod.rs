//! A small CQL server (being written).
