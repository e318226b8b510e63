//! Rows against cassandra-stress's own.

use std::{collections::HashSet, sync::Arc};

use super::{
    compat::{Walk, Wanted},
    generator::Steps,
    roll::Rolls,
    *,
};
use crate::{
    distribution::{RatioSpec, Spec},
    seeds::Seed,
    types::{CqlType, TableDefinition, UserTypes},
    values::{ColumnSettings, Flavour},
};

mod distinct;

/// Printed by cassandra-stress's own classes; `golden/README.md` says how.
const ROWS: &str = include_str!("../../golden/rows/rows.tsv");
const BOUNDS: &str = include_str!("../../golden/rows/bounds.tsv");

/// The table that a `profile` and its `column` lines describe.
#[derive(Default)]
struct Profile {
    name: String,
    order: Order,
    columns: Vec<Column>,
}

impl Profile {
    fn column(&mut self, fields: &[&str]) {
        let [kind, name, cql_type, size, population, cluster] = fields else { panic!("{fields:?}") };
        let spec = |text: &str| (text != "-").then(|| text.parse::<Spec>().unwrap());
        self.columns.push(Column {
            name: (*name).to_owned(),
            spelled: (*name).to_owned(),
            cql_type: CqlType::parse(cql_type, &UserTypes::new()).unwrap(),
            kind: match *kind {
                "k" => crate::types::ColumnKind::PartitionKey,
                "c" => crate::types::ColumnKind::Clustering { descending: false },
                _ => crate::types::ColumnKind::Regular,
            },
            settings: ColumnSettings {
                size: spec(size),
                population: spec(population),
                cluster: spec(cluster),
                flavour: Flavour::Compat,
                ..ColumnSettings::default()
            },
        });
    }

    fn generator(&self, select: f64, populated: f64) -> PartitionGenerator {
        let layout = PartitionLayout { columns: self.columns.clone(), flavour: Flavour::Compat, sizes: None };
        let settings = RowSettings {
            order: self.order,
            select: hundredths(select),
            populated: hundredths(populated),
            ..RowSettings::new(7)
        };
        PartitionGenerator::new(&Arc::new(layout), &settings).unwrap()
    }

    /// Cells from `first` on as the vectors write them, where a date is the four bytes of the draw, without the 2³¹ that is
    /// added on the wire.
    fn text(&self, cells: &Cells, first: usize, count: usize) -> String {
        let cell = |index: usize| match cells.get(index) {
            Cell::Value([]) => "empty".to_owned(),
            Cell::Value(bytes) => {
                let mut bytes = bytes.to_vec();
                if self.columns[index].cql_type == CqlType::Date {
                    bytes[0] ^= 0x80;
                }
                bytes.iter().map(|byte| format!("{byte:02x}")).collect()
            }
            Cell::Null => "null".to_owned(),
            Cell::Unset => "unset".to_owned(),
        };
        (first..first + count).map(cell).collect::<Vec<_>>().join(",")
    }
}

fn hundredths(ratio: f64) -> RatioSpec {
    let spec = RatioSpec { spec: Spec::Fixed((ratio * 100.0).round() as i64), divisor: 100 };
    assert_eq!(spec.build(0).next(), ratio);
    spec
}

fn bits(text: &str) -> f64 {
    f64::from_bits(u64::from_str_radix(text, 16).unwrap())
}

fn ints(values: &[i32]) -> String {
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

fn walk(generator: &mut PartitionGenerator) -> &mut Walk {
    match &mut generator.walk {
        Steps::Compat(walk) => walk,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_row_of_every_visit_is_cassandra_stresss() {
    let mut profile = Profile::default();
    let mut lines = ROWS.lines().filter(|line| !line.starts_with('#')).peekable();
    let (mut visits, mut rows) = (0, 0);
    while let Some(line) = lines.next() {
        let fields: Vec<&str> = line.split('\t').collect();
        match fields[0] {
            "profile" => {
                let order = if fields[2] == "SORTED" { Order::Sorted } else { Order::Arbitrary };
                profile = Profile { name: fields[1].to_owned(), order, columns: Vec::new() };
            }
            "column" => profile.column(&fields[1..]),
            "counts" => {
                let mut generator = profile.generator(1.0, 1.0);
                assert_eq!(generator.row_counts(), (bits(fields[1]), bits(fields[2])), "{}", profile.name);
                if fields[3] != "-" {
                    let (descendants, averages) = walk(&mut generator).counts();
                    assert_eq!((ints(descendants), ints(averages)), (fields[3].to_owned(), fields[4].to_owned()));
                }
            }
            "partition" => {
                let visit: Vec<&str> = lines.next().unwrap().split('\t').collect();
                let ["visit", kind, wanted, populated, position] = visit[..] else { panic!("{visit:?}") };
                let what = format!("{} {:?} {fields:?} {visit:?}", profile.name, profile.order);
                let select = if kind == "write" { bits(wanted) } else { 1.0 };
                let mut generator = profile.generator(select, bits(populated));
                let mut script = Vec::new();
                if let Some(rolls) = lines.next_if(|line| line.starts_with("rolls\t")) {
                    script.extend(rolls["rolls\t".len()..].split(',').map(bits));
                }
                if let Steps::Compat(walk) = &mut generator.walk {
                    walk.rolls = Rolls::Script(script.into());
                }
                let mut seed = Seed::new(fields[1].parse().unwrap(), fields[2].parse().unwrap());
                seed.move_forwards(position.parse().unwrap());
                let begun = match (kind, wanted.strip_prefix('#')) {
                    ("write", _) => generator.write(&mut seed),
                    (_, Some(target)) => generator.begin_read(&seed, Wanted::Rows(target.parse().unwrap())),
                    _ => generator.begin_read(&seed, Wanted::Chance(bits(wanted))),
                };
                assert_eq!(generator.base.to_string(), fields[3], "{what}");
                let (keys, columns) = (generator.layout().key_columns(), profile.columns.len());
                assert_eq!(profile.text(generator.set_key(seed.value()), 0, keys), fields[4], "{what}");
                while begun && let Some(row) = generator.next_row() {
                    let expected = lines.next().unwrap();
                    assert_eq!(format!("row\t{}", profile.text(row, keys, columns - keys)), expected, "{what}");
                    rows += 1;
                }
                assert_eq!(lines.next().unwrap(), format!("end\t{begun}\t{}", seed.position()), "{what}");
                if let Steps::Compat(walk) = &generator.walk {
                    assert!(matches!(&walk.rolls, Rolls::Script(left) if left.is_empty()), "rolls are left: {what}");
                }
                visits += 1;
            }
            other => panic!("{other} in {line}"),
        }
    }
    assert!(visits > 1000 && rows > 4000, "{visits} {rows}");
}

#[test]
fn every_range_that_validation_reads_is_cassandra_stresss() {
    let mut profile = Profile::default();
    let mut lines = BOUNDS.lines().filter(|line| !line.starts_with('#')).peekable();
    let mut ranges = 0;
    while let Some(line) = lines.next() {
        let fields: Vec<&str> = line.split('\t').collect();
        match fields[0] {
            "profile" => profile = Profile { name: fields[1].to_owned(), ..Profile::default() },
            "column" => profile.column(&fields[1..]),
            "partition" => {
                let bounds: Vec<&str> = lines.next().unwrap().split('\t').collect();
                let ["bounds", depth, last, lower, upper] = bounds[..] else { panic!("{bounds:?}") };
                let mut expected = Vec::new();
                while let Some(row) = lines.next_if(|line| line.starts_with("row\t")) {
                    expected.push(row["row\t".len()..].to_owned());
                }
                let seed = Seed::new(fields[1].parse().unwrap(), 1);
                let found = range(&profile, &seed, depth.parse().unwrap(), (lower, upper));
                let (found_last, rows) = found.unwrap_or_else(|| panic!("no such bounds: {bounds:?}"));
                assert_eq!(found_last, last, "{fields:?} {bounds:?}");
                if depth == "0" {
                    assert_eq!(rows, expected, "{fields:?} {bounds:?}");
                } else {
                    // Below the whole partition cassandra-stress forgets the value columns: it expects nulls.
                    let keys = |rows: &[String]| -> Vec<String> {
                        rows.iter().map(|row| row.rsplit_once(',').unwrap().0.to_owned()).collect()
                    };
                    assert_eq!(keys(&rows), keys(&expected), "{fields:?} {bounds:?}");
                    assert!(rows.iter().all(|row| !row.contains("null")));
                }
                ranges += 1;
            }
            "counts" => {}
            other => panic!("{other}"),
        }
    }
    assert!(ranges >= 20, "{ranges}");
}

/// The range with these bounds: all choices are tried until one gives them. Its last row's position, and its rows.
fn range(profile: &Profile, seed: &Seed, depth: usize, wanted: (&str, &str)) -> Option<(String, Vec<String>)> {
    for choice in 0..40usize.pow(2 * depth.min(2) as u32) * 36usize.pow(2 * depth.saturating_sub(2) as u32) {
        let mut generator = profile.generator(1.0, 1.0);
        generator.set_key(seed.value());
        let base = generator.base;
        let (mut lower, mut upper) = (Cells::new(), Cells::new());
        let mut left = choice;
        let PartitionGenerator { clustering, walk: Steps::Compat(walk), .. } = &mut generator else { panic!() };
        let pick = |count: usize| {
            let picked = left % count;
            left /= count;
            picked
        };
        let begun = walk.bounds(clustering, base, seed, depth, pick, [&mut lower, &mut upper]);
        if left > 0 {
            return None;
        }
        let text = |cells: &Cells| {
            // Bounds begin with the clustering columns; none of these tables' is a date.
            if depth == 0 { "-".to_owned() } else { profile.text(cells, 0, depth) }
        };
        if (text(&lower).as_str(), text(&upper).as_str()) == wanted {
            let last = ints(walk.last());
            let (keys, columns) = (generator.layout().key_columns(), profile.columns.len());
            let mut rows = Vec::new();
            while begun && let Some(row) = generator.next_row() {
                rows.push(profile.text(row, keys, columns - keys));
            }
            return Some((last, rows));
        }
    }
    None
}

#[test]
fn the_token_is_that_of_the_serialized_key() {
    let table = |cql: &str| TableDefinition::parse(cql, &UserTypes::new()).unwrap();
    let generator = |cql: &str| {
        let layout = PartitionLayout::new(&table(cql), Flavour::V2, |_| (None, ColumnSettings::default()));
        PartitionGenerator::new(&Arc::new(layout), &RowSettings::new(1)).unwrap()
    };
    let mut single = generator("CREATE TABLE t (k text PRIMARY KEY, v int)");
    let key = single.set_key(5).get(0).value().unwrap().to_vec();
    assert_eq!(single.routing_key(), key);
    assert_eq!(single.token(), crate::java::token(&key));
    let mut composite = generator("CREATE TABLE t (a int, b text, v int, PRIMARY KEY ((a, b)))");
    let cells = composite.set_key(5).clone();
    let text = cells.get(1).value().unwrap();
    let mut expected = vec![0, 4];
    expected.extend_from_slice(cells.get(0).value().unwrap());
    expected.extend_from_slice(&[0, 0, text.len() as u8]);
    expected.extend_from_slice(text);
    expected.push(0);
    assert_eq!(composite.routing_key(), expected);
    assert_ne!(composite.token(), {
        composite.set_key(6);
        composite.token()
    });
}

#[test]
fn shuffled_contents_are_the_same_rows_in_an_order_of_the_runs_seed() {
    let mut profile = Profile { order: Order::Shuffled, ..Profile::default() };
    for column in [["k", "k", "int", "-", "-", "-"], ["c", "c", "int", "-", "-", "fixed(20)"]] {
        profile.column(&column);
    }
    let rows = |order: Order, seed: u64| {
        let layout = PartitionLayout { columns: profile.columns.clone(), flavour: Flavour::Compat, sizes: None };
        let settings = RowSettings { order, ..RowSettings::new(seed) };
        let mut generator = PartitionGenerator::new(&Arc::new(layout), &settings).unwrap();
        let mut rows = Vec::new();
        assert!(generator.write(&mut Seed::new(3, 1)));
        while let Some(row) = generator.next_row() {
            rows.push(row.get(1).value().unwrap().to_vec());
        }
        assert_eq!(generator.marks(), Some((true, true)));
        rows
    };
    assert_eq!(rows(Order::Shuffled, 1), rows(Order::Shuffled, 1));
    assert_ne!(rows(Order::Shuffled, 1), rows(Order::Shuffled, 2));
    let set = |rows: Vec<Vec<u8>>| rows.into_iter().collect::<HashSet<_>>();
    assert_eq!(set(rows(Order::Shuffled, 1)), set(rows(Order::Arbitrary, 1)));
}

#[test]
fn what_cannot_be_made_is_refused_with_the_remedy() {
    let mut profile = Profile::default();
    profile.column(&["k", "k", "int", "-", "-", "-"]);
    profile.column(&["c", "c", "boolean", "-", "-", "uniform(1..5)"]);
    let error = |change: fn(&mut PartitionLayout)| {
        let mut layout = PartitionLayout { columns: profile.columns.clone(), flavour: Flavour::Compat, sizes: None };
        change(&mut layout);
        PartitionGenerator::new(&Arc::new(layout), &RowSettings::new(1)).map(|_| ()).unwrap_err().to_string()
    };
    let too_few = error(|layout| {
        layout.flavour = Flavour::V2;
        layout.columns.iter_mut().for_each(|column| column.settings.flavour = Flavour::V2);
    });
    assert!(too_few.contains("'c' (boolean) has 2 values") && too_few.contains("up to 5 rows"), "{too_few}");
    let mixed = error(|layout| layout.columns[1].settings.flavour = Flavour::V2);
    assert!(mixed.contains("'c' is part of the primary key and is generated as v2, the table as compat"), "{mixed}");
    let none = error(|layout| layout.columns[1].settings.cluster = Some(Spec::Fixed(0)));
    assert!(none.contains("'c' has on average 0 values"), "{none}");
    let no_key = error(|layout| layout.columns.truncate(0));
    assert!(no_key.contains("no partition key"), "{no_key}");
    let layout = PartitionLayout { columns: profile.columns.clone(), flavour: Flavour::Compat, sizes: None };
    let unknown = Binding::new(&layout, &["k", "d"], Fields::SameRow, 1).map(|_| ()).unwrap_err().to_string();
    assert!(unknown.contains("binds 'd'") && unknown.contains("did you mean"), "{unknown}");
}

#[test]
fn a_visit_made_again_has_the_same_rows_whatever_was_made_in_between() {
    let mut profile = Profile { order: Order::Shuffled, ..Profile::default() };
    for column in [
        ["k", "k", "int", "-", "-", "-"],
        ["c", "a", "int", "-", "-", "uniform(1..9)"],
        ["c", "b", "text", "uniform(3..9)", "-", "uniform(1..9)"],
        ["v", "v", "blob", "fixed(40)", "-", "-"],
        ["v", "w", "int", "-", "-", "-"],
    ] {
        profile.column(&column);
    }
    for flavour in [Flavour::Compat, Flavour::V2] {
        let mut columns = profile.columns.clone();
        columns.iter_mut().for_each(|column| column.settings.flavour = flavour);
        let layout = Arc::new(PartitionLayout { columns, flavour, sizes: None });
        let half = RatioSpec { spec: Spec::Uniform { min: 30, max: 70 }, divisor: 100 };
        let settings =
            RowSettings { order: Order::Shuffled, select: half.clone(), populated: half, ..RowSettings::new(5) };
        let mut first = PartitionGenerator::new(&layout, &settings).unwrap();
        // Another thread's, whose own chance differs.
        let mut second = PartitionGenerator::new(&layout, &RowSettings { seed: 6, ..settings }).unwrap();
        let rows = |generator: &mut PartitionGenerator| {
            std::iter::from_fn(|| generator.next_row().cloned()).collect::<Vec<_>>()
        };
        let binding = Binding::new(&layout, &["k", "a", "b", "w"], Fields::MultiRow, 3).unwrap();
        let bound = |generator: &mut PartitionGenerator| binding.clone().bind(generator).cloned();
        let (mut written, mut read, mut checked) = (Vec::new(), Vec::new(), Vec::new());
        for value in 1..60 {
            // One and the same seed is visited until nothing is left: the visits differ in their positions.
            let visits = 1 + value as i32 % 4;
            let mut seed = Seed::new(value, visits).share();
            // One that takes a single visit may be made whole any number of times.
            for _ in 0..visits {
                if !first.write(&mut seed) {
                    break;
                }
                let visit = first.visit();
                written.push((visit, rows(&mut first), first.marks()));
            }
            let seed = Seed::new(value, -1);
            if first.read(&seed, 3) {
                let visit = first.visit();
                read.push((visit, bound(&mut first)));
            }
            if let Some(range) = first.validate(&seed, 1) {
                checked.push((first.visit(), range, rows(&mut first).len()));
            }
        }
        assert!(written.len() > 80 && read.len() > 50 && checked.len() > 50, "{flavour:?}");
        assert!(written.iter().any(|(visit, ..)| visit.position > 0), "{flavour:?}: visits to later parts");
        // From the last to the first, so that the generator comes to each from elsewhere.
        for (visit, expected, marks) in written.iter().rev() {
            assert!(second.write_again(visit));
            assert_eq!(rows(&mut second), *expected, "{flavour:?} {visit:?}");
            assert!(first.write_again(visit));
            assert_eq!(std::iter::from_fn(|| first.skip_row().then_some(())).count(), expected.len());
            assert_eq!(first.marks(), *marks);
        }
        for (visit, expected) in read.iter().rev() {
            assert!(second.read_again(visit, 3));
            assert_eq!(bound(&mut second), *expected, "{flavour:?} {visit:?}");
        }
        for (visit, expected, count) in checked.iter().rev() {
            assert_eq!(second.validate_again(visit, 1).as_ref(), Some(expected), "{flavour:?} {visit:?}");
            assert_eq!(rows(&mut second).len(), *count);
        }
    }
}
