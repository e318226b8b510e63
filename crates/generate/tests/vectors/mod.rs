//! Reads the files of `golden/`.
#![allow(clippy::expect_used, reason = "a helper of tests, outside any test of its own")]

use std::path::Path;

/// The rows of a file: its cells, without the lines that explain them.
pub fn rows(file: &str) -> Vec<Vec<String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden").join(file);
    let text = std::fs::read_to_string(&path).expect(file);
    let rows: Vec<Vec<String>> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split('\t').map(str::to_owned).collect())
        .collect();
    assert!(!rows.is_empty(), "{file} is empty");
    rows
}

/// A double of its bits in hexadecimal.
#[allow(dead_code, reason = "not every test has reals")]
pub fn real(cell: &str) -> f64 {
    f64::from_bits(u64::from_str_radix(cell, 16).expect(cell))
}

/// The entries of a cell, separated by commas.
#[allow(dead_code, reason = "not every test has lists")]
pub fn list<T>(cell: &str, read: impl Fn(&str) -> T) -> Vec<T> {
    cell.split(',').filter(|entry| !entry.is_empty()).map(read).collect()
}
