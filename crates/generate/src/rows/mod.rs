//! Partitions and their rows from seeds.
