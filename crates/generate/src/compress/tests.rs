use std::sync::Arc;

use super::*;
use crate::{
    distribution::Spec,
    rows::{PartitionGenerator, PartitionLayout, RowSettings},
    seeds::Seed,
    types::{CqlType, TableDefinition, UserTypes, wire},
    values::{ColumnSettings, Flavour},
};

const COMPRESSORS: [Compressor; 4] =
    [Compressor::Lz4, Compressor::Snappy, Compressor::Deflate, Compressor::Zstd { level: 3 }];

fn layout(cql: &str, size: &str) -> PartitionLayout {
    let table = TableDefinition::parse(cql, &UserTypes::new()).unwrap();
    let size: Spec = size.parse().unwrap();
    PartitionLayout::new(&table, Flavour::V2, |name| {
        let sized = name.starts_with('v').then(|| size.clone());
        let cluster = (name == "c").then_some(Spec::Fixed(10));
        (None, ColumnSettings { size: sized, cluster, ..ColumnSettings::default() })
    })
}

const BLOBS: &str = "CREATE TABLE t (k bigint, c timeuuid, v1 blob, v2 blob, n int, PRIMARY KEY (k, c))";
const TEXTS: &str = "CREATE TABLE t (k uuid PRIMARY KEY, v1 text, v2 ascii, w double)";

/// Partitions that the calibration did not look at, plainly put one after the other.
fn plain_rows(layout: &PartitionLayout, length: usize) -> Vec<u8> {
    let mut generator = PartitionGenerator::new(&Arc::new(layout.clone()), &RowSettings::new(9)).unwrap();
    let mut data = Vec::new();
    for seed in 1_000_000.. {
        assert!(generator.write(&mut Seed::new(seed, 1)));
        while let Some(row) = generator.next_row() {
            for cell in row.iter() {
                let bytes = cell.value().unwrap();
                wire::put_unsigned_vint(&mut data, bytes.len() as u64);
                data.extend_from_slice(bytes);
            }
        }
        if data.len() > length {
            return data;
        }
    }
    data
}

/// The compressors that a table's `at`-th ratio is tried under: all, or one of them, in turn.
fn compressors(at: usize, all: bool) -> impl Iterator<Item = Compressor> {
    let chosen = move |number: &usize| all || *number == at % COMPRESSORS.len();
    COMPRESSORS.into_iter().enumerate().filter(move |(number, _)| chosen(number)).map(|(_, compressor)| compressor)
}

#[test]
fn tables_reach_the_ratio_asked_for() {
    tables_reach_their_ratio(false);
}

#[test]
#[ignore = "each of them under every compressor: make test-long"]
fn tables_reach_the_ratio_asked_for_under_every_compressor() {
    tables_reach_their_ratio(true);
}

fn tables_reach_their_ratio(all: bool) {
    let mut at = 0;
    for (cql, size, ratios) in [
        (BLOBS, "fixed(1000)", &[0.1, 0.2, 0.3, 0.5, 0.7, 0.9][..]),
        (BLOBS, "uniform(100..600)", &[0.15, 0.4, 0.8][..]),
        (BLOBS, "fixed(40000)", &[0.1, 0.5, 0.9][..]),
        (TEXTS, "uniform(200..900)", &[0.1, 0.25, 0.5, 0.75][..]),
    ] {
        for (asked, chunk) in ratios.iter().flat_map(|asked| [4096, 16_384].map(|chunk| (asked, chunk))) {
            // Of the two sizes the one is for the next compressor, so that each has both.
            at += usize::from(chunk == 4096);
            for compressor in compressors(at + usize::from(chunk > 4096), all) {
                let compression = Compression { compressor, chunk };
                let mut layout = layout(cql, size);
                let done = calibrate(&mut layout, compression, Some(*asked)).unwrap();
                assert_eq!(done.len(), 1);
                assert!((done[0].ratio - asked).abs() < 0.01, "{compressor} {chunk} {size}: {done:?}");
                let length = (chunk * 40).max(1 << 20);
                let other = sstable::sample(&layout, length, 1_000_000).unwrap().data;
                let other = compression.ratio(&other).unwrap();
                assert!((other - asked).abs() < 0.02, "{compressor} {chunk} {size} {asked}: {other}");
                // Even without all that is around the values the ratio is near.
                let plain = compression.ratio(&plain_rows(&layout, length)).unwrap();
                assert!((plain - asked).abs() < 0.04, "{compressor} {chunk} {size} {asked}: {plain}");
            }
        }
    }
}

/// The rows of a table whose texts and blobs are inside of other types.
fn nested(columns: &str, element_size: &str) -> PartitionLayout {
    let mut types = UserTypes::new();
    types.define("CREATE TYPE person (name text, photo blob, born date)").unwrap();
    let cql = format!("CREATE TABLE t (k bigint, c timeuuid, {columns}, PRIMARY KEY (k, c))");
    let table = TableDefinition::parse(&cql, &types).unwrap();
    let element_size: Spec = element_size.parse().unwrap();
    PartitionLayout::new(&table, Flavour::V2, |name| {
        let cluster = (name == "c").then_some(Spec::Fixed(10));
        (None, ColumnSettings { cluster, element_size: Some(element_size.clone()), ..ColumnSettings::default() })
    })
}

/// The columns of a table, the bytes of their parts, and ratios that they can reach.
const NESTED: [(&str, &str, &[f64]); 9] = [
    ("v map<int, text>", "uniform(100..300)", &[0.2, 0.5, 0.75]),
    // Half of it is keys, which stay as they are.
    ("v map<text, text>", "uniform(100..300)", &[0.6, 0.75]),
    ("v list<text>", "uniform(200..500)", &[0.2, 0.5, 0.75]),
    ("v frozen<list<blob>>", "uniform(100..300)", &[0.15, 0.5, 0.9]),
    ("v person", "uniform(200..500)", &[0.2, 0.5, 0.8]),
    ("v list<frozen<person>>, s person static", "uniform(200..500)", &[0.2, 0.5, 0.8]),
    ("v tuple<int, text, blob>", "uniform(200..500)", &[0.2, 0.5, 0.8]),
    ("v map<int, frozen<tuple<text, uuid>>>", "uniform(200..500)", &[0.25, 0.5]),
    ("v vector<text, 3>, w set<int>", "uniform(200..500)", &[0.3, 0.6]),
];

#[test]
fn tables_of_collections_tuples_and_types_reach_their_ratio() {
    nested_tables_reach_their_ratio(false);
}

#[test]
#[ignore = "each of them under every compressor: make test-long"]
fn tables_of_collections_tuples_and_types_reach_their_ratio_under_every_compressor() {
    nested_tables_reach_their_ratio(true);
}

fn nested_tables_reach_their_ratio(all: bool) {
    let of = |(columns, size, ratios): (_, _, &'static [f64])| ratios.iter().map(move |asked| (columns, size, asked));
    let ratios = NESTED.into_iter().flat_map(of);
    for (at, (columns, element_size, asked)) in ratios.enumerate() {
        for compressor in compressors(at, all) {
            let compression = Compression { compressor, ..Compression::default() };
            let mut layout = nested(columns, element_size);
            let done = calibrate(&mut layout, compression, Some(*asked)).unwrap();
            assert!((done[0].ratio - asked).abs() < 0.01, "{compressor} {columns}: {done:?}");
            let other = sstable::sample(&layout, 1 << 20, 1_000_000).unwrap().data;
            let other = compression.ratio(&other).unwrap();
            assert!((other - asked).abs() < 0.02, "{compressor} {columns} {asked}: {other}");
        }
    }
}

#[test]
fn a_column_of_maps_reaches_its_own_ratio() {
    for compressor in COMPRESSORS {
        let compression = Compression { compressor, ..Compression::default() };
        let mut layout = nested("v map<int, text>, w list<blob>", "uniform(100..300)");
        let (v, w) = (layout.index_of("v").unwrap(), layout.index_of("w").unwrap());
        layout.columns[v].settings.compress = Some(0.2);
        let done = calibrate(&mut layout, compression, None).unwrap();
        assert_eq!(done[0].column.as_deref(), Some("v"));
        assert!((done[0].ratio - 0.2).abs() < 0.01, "{done:?}");
        assert_eq!(layout.columns[w].settings.repeat, None, "the other column stays random");
        // The rest of the table makes up for it.
        calibrate(&mut layout, compression, Some(0.4)).unwrap();
        assert!((measure(&layout, compression).unwrap() - 0.4).abs() < 0.01);
    }
}

#[test]
fn what_must_differ_does_not_repeat() {
    let ratio = |columns: &str, column: &str| {
        let mut layout = nested(columns, "fixed(100)");
        let place = layout.index_of(column).unwrap();
        layout.columns[place].settings.compress = Some(0.5);
        calibrate(&mut layout, Compression::default(), None).unwrap_err().to_string()
    };
    for columns in ["v set<text>", "v map<text, int>", "v list<frozen<set<blob>>>"] {
        let error = calibrate(&mut nested(columns, "fixed(100)"), Compression::default(), Some(0.5)).unwrap_err();
        assert!(matches!(error, CompressError::NoColumns), "{columns}: {error}");
        let error = ratio(columns, "v");
        assert!(error.contains("keys of maps and elements of sets must differ"), "{error}");
    }
    // Half of the bytes are keys.
    let error = calibrate(&mut nested("v map<text, text>", "fixed(100)"), Compression::default(), Some(0.2));
    let error = error.unwrap_err().to_string();
    assert!(error.contains("keys of maps") && error.contains("only 0."), "{error}");
    // A key that differs from others by the content of its parts.
    let mut layout = nested("v int", "fixed(100)");
    layout.columns[1].cql_type = CqlType::parse("frozen<list<text>>", &UserTypes::new()).unwrap();
    layout.columns[1].settings.compress = Some(0.5);
    let error = calibrate(&mut layout, Compression::default(), None).unwrap_err();
    assert!(matches!(&error, CompressError::Key { column, .. } if column == "c"), "{error}");
}

#[test]
fn a_column_reaches_its_own_ratio_beside_others() {
    for compressor in COMPRESSORS {
        let compression = Compression { compressor, ..Compression::default() };
        let mut layout = layout(BLOBS, "fixed(500)");
        let (v1, v2) = (layout.index_of("v1").unwrap(), layout.index_of("v2").unwrap());
        layout.columns[v1].settings.compress = Some(0.2);
        let done = calibrate(&mut layout, compression, None).unwrap();
        assert_eq!(done[0].column.as_deref(), Some("v1"));
        assert!((done[0].ratio - 0.2).abs() < 0.01, "{done:?}");
        assert_eq!(layout.columns[v2].settings.repeat, None, "the other column stays random");
        // Half of the bytes at 0.2, the other half incompressible.
        let table = measure(&layout, compression).unwrap();
        assert!((0.55..0.68).contains(&table), "{compressor} {table}");
        // The rest of the table makes up for it.
        let done = calibrate(&mut layout, compression, Some(0.4)).unwrap();
        assert_eq!(done.len(), 2);
        assert!((measure(&layout, compression).unwrap() - 0.4).abs() < 0.01, "{done:?}");
    }
}

#[test]
fn calibration_is_the_same_every_time() {
    let once = || {
        let mut layout = layout(TEXTS, "fixed(300)");
        calibrate(&mut layout, Compression::default(), Some(0.3)).unwrap()
    };
    assert_eq!(once(), once());
}

#[test]
fn what_is_out_of_reach_says_what_is_in_reach() {
    let reach = |cql: &str, size: &str, asked: f64| {
        calibrate(&mut layout(cql, size), Compression::default(), Some(asked)).unwrap_err()
    };
    // Rows of which most is key, timestamp and length.
    let error = reach(BLOBS, "fixed(4)", 0.05);
    let CompressError::Unreachable { least, most, .. } = error else { panic!("{error}") };
    assert!(least > 0.2 && most > least, "{error}");
    assert!(error.to_string().contains("only 0."), "{error}");
    assert!(matches!(reach(BLOBS, "fixed(400)", 1.5), CompressError::Ratio(_)));
    assert!(matches!(reach("CREATE TABLE t (k text PRIMARY KEY, v int)", "fixed(4)", 0.5), CompressError::NoColumns));
    let mut texts = layout(TEXTS, "fixed(300)");
    texts.columns[1].settings.compress = Some(0.99);
    let zstd = Compression { compressor: Compressor::Zstd { level: 3 }, ..Compression::default() };
    let error = calibrate(&mut texts, zstd, None).unwrap_err().to_string();
    assert!(error.contains("blobs further up than texts"), "{error}");
}

#[test]
fn compression_is_read_from_the_tables_options() {
    let of = |options: &str| {
        let cql = format!("CREATE TABLE t (k int PRIMARY KEY){options}");
        Compression::from_table(&TableDefinition::parse(&cql, &UserTypes::new()).unwrap())
    };
    assert_eq!(of("").unwrap(), Some(Compression { compressor: Compressor::Lz4, chunk: 16_384 }));
    assert_eq!(of(" WITH compression = {}").unwrap(), None);
    assert_eq!(of(" WITH compression = {'class': 'LZ4Compressor', 'enabled': 'false'}").unwrap(), None);
    assert_eq!(
        of(" WITH compression = {'class': 'org.apache.cassandra.io.compress.ZstdCompressor', 'chunk_length_in_kb': 64, 'compression_level': '5'}").unwrap(),
        Some(Compression { compressor: Compressor::Zstd { level: 5 }, chunk: 65_536 })
    );
    assert_eq!(
        of(" WITH compression = {'sstable_compression': 'SnappyCompressor', 'chunk_length_kb': '4'}").unwrap(),
        Some(Compression { compressor: Compressor::Snappy, chunk: 4096 })
    );
    assert!(matches!(of(" WITH compression = {'class': 'FooCompressor'}"), Err(CompressError::UnknownClass(_))));
    assert!(matches!(
        of(" WITH compression = {'class': 'LZ4Compressor', 'chunk_length_in_kb': 3}"),
        Err(CompressError::Chunk(_))
    ));
}

#[test]
fn a_rows_size_is_its_values_and_what_is_around_them() {
    let size = row_size(&layout(BLOBS, "fixed(100)")).unwrap();
    // Key: length, 8 bytes, deletion time, end.
    assert_eq!(size.partition, 2.0 + 8.0 + 12.0 + 1.0);
    assert_eq!(size.cells, 3.0);
    // Flags, clustering, two sizes; three cells with flags, timestamp and length.
    assert!((size.row - (1.0 + 17.0 + 4.0 + 3.0 * 5.0 + 2.0 * 101.0 + 4.0)).abs() < 4.0, "{size:?}");
}
