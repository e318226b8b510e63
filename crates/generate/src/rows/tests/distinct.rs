//! Rows of v2.

use std::{cmp::Ordering, collections::HashMap};

use super::*;
use crate::{
    sizes::{PartitionSizes, RowSize, SizeTarget},
    types::compare,
};

/// A table, and what its columns' names say of them: `name: size, population, cluster` (`-`: not given).
fn layout(cql: &str, specs: &[(&str, &str, &str, &str)]) -> PartitionLayout {
    let spec = |text: &str| (text != "-").then(|| text.parse::<Spec>().unwrap());
    let table = TableDefinition::parse(cql, &UserTypes::new()).unwrap();
    PartitionLayout::new(&table, Flavour::V2, |name| {
        let (_, size, population, cluster) = specs.iter().find(|spec| spec.0 == name).unwrap_or(&("", "-", "-", "-"));
        let settings = ColumnSettings {
            size: spec(size),
            population: spec(population),
            cluster: spec(cluster),
            ..ColumnSettings::default()
        };
        (None, settings)
    })
}

const UNEVEN: &str =
    "CREATE TABLE t (k text, a int, b text, c timeuuid, s text STATIC, v blob, w int, PRIMARY KEY (k, a, b, c))
     WITH CLUSTERING ORDER BY (a DESC, b DESC, c ASC)";

fn uneven() -> PartitionLayout {
    layout(
        UNEVEN,
        &[
            ("a", "-", "uniform(1..100)", "uniform(1..6)"),
            ("b", "uniform(2..9)", "-", "uniform(1..5)"),
            ("c", "-", "-", "exp(1..9)"),
        ],
    )
}

fn generator(layout: PartitionLayout, settings: &RowSettings) -> PartitionGenerator {
    PartitionGenerator::new(&Arc::new(layout), settings).unwrap()
}

fn rows(generator: &mut PartitionGenerator) -> Vec<Cells> {
    let mut rows = Vec::new();
    while let Some(row) = generator.next_row() {
        rows.push(row.clone());
    }
    rows
}

fn written(generator: &mut PartitionGenerator, seed: i64) -> Vec<Cells> {
    assert!(generator.write(&mut Seed::new(seed, 1)));
    rows(generator)
}

/// How the table orders two rows of one partition.
fn clustering_order(layout: &PartitionLayout, left: &Cells, right: &Cells) -> Ordering {
    let first = layout.key_columns();
    layout.clustering().iter().enumerate().fold(Ordering::Equal, |order, (place, column)| {
        order.then_with(|| {
            let [left, right] = [left, right].map(|row| row.get(first + place).value().unwrap());
            let order = compare(left, right, &column.cql_type);
            if column.kind == (crate::types::ColumnKind::Clustering { descending: true }) {
                order.reverse()
            } else {
                order
            }
        })
    })
}

#[test]
fn rows_of_a_partition_differ_and_so_do_their_values() {
    for seed in 1..200 {
        let rows = written(&mut generator(uneven(), &RowSettings::new(1)), seed);
        let keys: HashSet<Vec<Option<&[u8]>>> =
            rows.iter().map(|row| (1..4).map(|cell| row.get(cell).value()).collect()).collect();
        assert_eq!(keys.len(), rows.len(), "partition {seed}");
        let layout = uneven();
        let (w, s) = (layout.index_of("w").unwrap(), layout.index_of("s").unwrap());
        let values: HashSet<&[u8]> = rows.iter().map(|row| row.get(w).value().unwrap()).collect();
        assert_eq!(values.len(), rows.len(), "siblings have values of their own");
        assert!(rows.iter().all(|row| row.get(s) == rows[0].get(s)), "a static column has one value");
    }
}

#[test]
fn how_many_siblings_there_are_differs_from_place_to_place() {
    let rows = written(&mut generator(uneven(), &RowSettings::new(1)), 12);
    let mut below: HashMap<Vec<u8>, HashSet<Vec<u8>>> = HashMap::new();
    for row in &rows {
        let [a, b] = [1, 2].map(|cell| row.get(cell).value().unwrap().to_vec());
        below.entry(a).or_default().insert(b);
    }
    let counts: HashSet<usize> = below.values().map(HashSet::len).collect();
    assert!(below.len() > 2 && counts.len() > 1, "{counts:?}");
}

#[test]
fn contents_change_the_order_and_not_the_rows() {
    let of = |order| {
        let settings = RowSettings { order, ..RowSettings::new(1) };
        (1..50).map(|seed| written(&mut generator(uneven(), &settings), seed)).collect::<Vec<_>>()
    };
    let (arbitrary, sorted) = (of(Order::Arbitrary), of(Order::Sorted));
    assert_ne!(arbitrary, sorted);
    for (mut arbitrary, sorted) in arbitrary.into_iter().zip(sorted) {
        assert!(sorted.windows(2).all(|pair| clustering_order(&uneven(), &pair[0], &pair[1]) == Ordering::Less));
        arbitrary.sort_by(|left, right| clustering_order(&uneven(), left, right));
        assert_eq!(arbitrary, sorted);
    }
}

#[test]
fn visits_over_time_write_each_row_once() {
    for order in [Order::Arbitrary, Order::Sorted] {
        for select in [1.0, 0.4] {
            let settings = RowSettings { order, select: hundredths(select), ..RowSettings::new(1) };
            for visits in [2, 3, 10, 500] {
                let mut generator = generator(uneven(), &settings);
                let all = written(&mut generator, 77);
                let mut seed = Seed::new(77, visits);
                let (mut parts, mut marks) = (Vec::new(), Vec::new());
                let mut largest = 0;
                while generator.write(&mut seed) {
                    // Another partition in between leaves no trace.
                    let part = rows(&mut generator);
                    marks.push(generator.marks().unwrap());
                    written(&mut generator, 78);
                    largest = largest.max(part.len());
                    parts.extend(part);
                    if marks.last().unwrap().1 {
                        break;
                    }
                }
                assert_eq!(parts, all, "{visits} visits");
                assert!(marks.iter().skip(1).all(|(first, _)| !first), "{marks:?}");
                assert!(marks[..marks.len() - 1].iter().all(|(_, last)| !last), "{marks:?}");
                assert!(largest <= all.len().div_ceil(visits as usize) * if select < 1.0 { 3 } else { 1 }, "{largest}");
                assert!(!generator.write(&mut seed), "nothing is left");
            }
        }
    }
}

#[test]
fn readers_ask_for_rows_that_writers_wrote() {
    let settings = RowSettings { select: hundredths(0.3), ..RowSettings::new(5) };
    let mut generator = generator(uneven(), &settings);
    let mut asked: HashMap<Vec<u8>, usize> = HashMap::new();
    for seed in (1..60).cycle().take(3000) {
        let all = if generator.write(&mut Seed::new(seed, 1)) { rows(&mut generator) } else { Vec::new() };
        assert_eq!(generator.read(&Seed::new(seed, -1), 3), !all.is_empty());
        let read = rows(&mut generator);
        assert!(read.len() <= 3 && read.iter().all(|row| all.contains(row)), "partition {seed}");
        assert!(generator.marks().is_none());
        if seed == 10 {
            read.iter().for_each(|row| *asked.entry(row.get(3).value().unwrap().to_vec()).or_default() += 1);
        }
    }
    // All rows of a partition come up, not its first ones only.
    let all = written(&mut generator, 10);
    assert_eq!(asked.len(), all.len(), "{asked:?}");
}

#[test]
fn readers_of_a_partition_written_in_part_see_what_was_taken() {
    let mut generator = generator(uneven(), &RowSettings::new(5));
    let all = written(&mut generator, 21);
    let mut walk = match &generator.walk {
        Steps::Distinct(walk) => walk.clone(),
        other => panic!("{other:?}"),
    };
    for taken in [0u64, 1, 4] {
        walk.partition(generator.base as u64, None, 1.0);
        let mut seen = HashSet::new();
        for _ in 0..200 {
            assert_eq!(walk.read(&mut generator.clustering, 2, Some(taken)), taken > 0);
            while walk.has_row() {
                let mut cells = Cells::new();
                walk.row(&mut generator.clustering, &mut cells);
                seen.insert(cells.get(2).value().unwrap().to_vec());
                walk.advance(&mut generator.clustering);
            }
        }
        let expected: HashSet<Vec<u8>> =
            all[..taken as usize].iter().map(|row| row.get(3).value().unwrap().to_vec()).collect();
        assert_eq!(seen, expected, "{taken} rows taken");
    }
}

#[test]
fn a_validated_range_is_what_the_server_would_return() {
    let layout = uneven();
    let settings = RowSettings { select: hundredths(0.7), ..RowSettings::new(3) };
    let mut generator = generator(uneven(), &settings);
    let mut partial = 0;
    for seed in 1..150 {
        let mut all = if generator.write(&mut Seed::new(seed, 1)) { rows(&mut generator) } else { Vec::new() };
        all.sort_by(|left, right| clustering_order(&layout, left, right));
        for depth in 0..=3 {
            let Some(range) = generator.validate(&Seed::new(seed, -1), depth) else {
                assert!(all.is_empty());
                continue;
            };
            // a and b are kept descending, c ascending: a range over all three is none of rows.
            assert_eq!(range.depth, depth.min(2));
            let inside = |row: &Cells| {
                let against = |bound: &Cells| {
                    (0..range.depth).fold(Ordering::Equal, |order, place| {
                        let [cell, bound] = [row.get(1 + place), bound.get(place)].map(|cell| cell.value().unwrap());
                        order.then_with(|| compare(cell, bound, &layout.clustering()[place].cql_type))
                    })
                };
                range.depth == 0 || (against(&range.lower).is_ge() && against(&range.upper).is_le())
            };
            let expected: Vec<Cells> = all.iter().filter(|row| inside(row)).cloned().collect();
            assert_eq!(rows(&mut generator), expected, "partition {seed}, {range:?}");
            partial += usize::from(!expected.is_empty() && expected.len() < all.len());
        }
    }
    assert!(partial > 50, "{partial}");
}

#[test]
fn columns_left_out_are_not_set_and_the_same_ones_for_all() {
    let settings = RowSettings { populated: hundredths(0.5), ..RowSettings::new(3) };
    let mut first = generator(uneven(), &settings);
    let (mut set, mut unset) = (0, 0);
    for seed in 1..200 {
        let rows = written(&mut first, seed);
        assert_eq!(written(&mut generator(uneven(), &RowSettings { seed: 99, ..settings.clone() }), seed), rows);
        for row in &rows {
            // v and w; the static column is always set.
            assert!(matches!(row.get(4), Cell::Value(_)));
            for cell in [row.get(5), row.get(6)] {
                match cell {
                    Cell::Value(_) => set += 1,
                    Cell::Unset => unset += 1,
                    Cell::Null => panic!("a tombstone"),
                }
            }
        }
    }
    assert!((0.9..1.1).contains(&(f64::from(set) / f64::from(unset))), "{set} {unset}");
}

#[test]
fn partitions_have_the_sizes_that_a_histogram_asks_for() {
    let row = RowSize { partition: 50.0, row: 80.0, cells: 2.0 };
    let target =
        SizeTarget::from_entries([("min", "1 row"), ("50%", "10 rows"), ("99%", "400 rows"), ("max", "5000 rows")])
            .unwrap();
    let sizes = PartitionSizes::new(&target, row).unwrap();
    for (cql, specs) in [
        ("CREATE TABLE t (k int, a bigint, v int, PRIMARY KEY (k, a))", &[][..]),
        (
            "CREATE TABLE t (k int, a bigint, b int, v int, PRIMARY KEY (k, a, b))",
            &[("b", "-", "-", "uniform(1..4)")][..],
        ),
    ] {
        let mut layout = layout(cql, specs);
        layout.sizes = Some(sizes.clone());
        let mut generator = generator(layout, &RowSettings::new(1));
        assert_eq!(generator.row_counts(), (1.0, 5000.0));
        for seed in 1..300 {
            let asked = sizes.rows(seed) as usize;
            let all = written(&mut generator, seed);
            assert_eq!(all.len(), asked);
            let mut parts = Seed::new(seed, 3);
            let mut visited = Vec::new();
            while generator.write(&mut parts) {
                visited.extend(rows(&mut generator));
            }
            assert_eq!(visited, all);
            if seed < 20 {
                assert_eq!(generator.validate(&Seed::new(seed, -1), 0).unwrap().depth, 0);
                assert_eq!(rows(&mut generator).len(), asked);
            }
        }
    }
    let mut flat = layout("CREATE TABLE t (k int PRIMARY KEY, v int)", &[]);
    flat.sizes = Some(sizes.clone());
    let error = PartitionGenerator::new(&Arc::new(flat), &RowSettings::new(1)).map(|_| ()).unwrap_err();
    assert!(matches!(error, RowError::SizesNeedClustering), "{error}");
    let mut few = layout("CREATE TABLE t (k int, a tinyint, v int, PRIMARY KEY (k, a))", &[]);
    few.sizes = Some(sizes);
    let error = PartitionGenerator::new(&Arc::new(few), &RowSettings::new(1)).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("up to 5000 rows"), "{error}");
}

#[test]
fn a_partition_of_a_billion_rows_is_read_anywhere_at_once() {
    let layout =
        layout("CREATE TABLE t (k int, a bigint, v int, PRIMARY KEY (k, a))", &[("a", "-", "-", "fixed(1000000000)")]);
    let mut generator = generator(layout, &RowSettings::new(1));
    let mut seed = Seed::new(1, 1_000_000);
    seed.move_forwards(999_999_000);
    assert!(generator.write(&mut seed));
    assert_eq!(rows(&mut generator).len(), 1000);
    assert_eq!(generator.marks(), Some((false, true)));
    assert!(generator.read(&Seed::new(1, -1), 5));
    assert_eq!(rows(&mut generator).len(), 5);
}

#[test]
fn a_query_binds_one_row_or_several() {
    let layout = uneven();
    let mut same = Binding::new(&layout, &["k", "b", "w"], Fields::SameRow, 1).unwrap();
    let mut many = Binding::new(&layout, &["k", "a", "b", "c", "w"], Fields::MultiRow, 1).unwrap();
    assert_eq!((same.rows(), many.rows()), (1, 5));
    let mut generator = generator(uneven(), &RowSettings::new(4));
    let mut mixed = 0;
    for seed in 1..200 {
        let all = written(&mut generator, seed);
        assert!(generator.read(&Seed::new(seed, -1), same.rows()));
        let bound = same.bind(&mut generator).unwrap();
        let cells = |row: &Cells, columns: &[usize]| {
            columns.iter().map(|c| row.get(*c).value().map(<[u8]>::to_vec)).collect::<Vec<_>>()
        };
        assert!(all.iter().any(|row| cells(row, &[0, 2, 6]) == cells(bound, &[0, 1, 2])));
        assert!(generator.read(&Seed::new(seed, -1), many.rows()));
        let bound = many.bind(&mut generator).unwrap();
        for (place, column) in [0, 1, 2, 3, 6].into_iter().enumerate() {
            assert!(all.iter().any(|row| row.get(column) == bound.get(place)), "variable {place}");
        }
        mixed += usize::from(!all.iter().any(|row| cells(row, &[0, 1, 2, 3, 6]) == cells(bound, &[0, 1, 2, 3, 4])));
    }
    assert!(mixed > 100, "variables of several rows: {mixed}");
}

#[test]
fn cells_are_put_with_their_lengths() {
    let layout = layout("CREATE TABLE t (k int PRIMARY KEY, v int)", &[]);
    let settings = RowSettings { populated: hundredths(0.0), ..RowSettings::new(1) };
    let mut generator = generator(layout, &settings);
    let row = written(&mut generator, 3).remove(0);
    let mut out = Vec::new();
    (0..2).for_each(|cell| row.put(cell, &mut out));
    assert_eq!((&out[..4], &out[8..]), (&[0, 0, 0, 4][..], &(-2i32).to_be_bytes()[..]));
}
