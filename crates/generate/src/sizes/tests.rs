use super::*;

const ROW: RowSize = RowSize { partition: 40.0, row: 100.0, cells: 3.0 };

/// As Cassandra 5.0.9 prints it (`%-10s%18s…`), for a table with data.
const MODERN: &str = "ks/readings histograms
Percentile      Read Latency     Write Latency          SSTables    Partition Size        Cell Count
                    (micros)          (micros)                             (bytes)                  
50%                   126.93             20.50              1.00              1916                60
75%                   152.32             24.60              1.00              4768               149
95%                   379.02             51.01              2.00             20501               642
98%                   654.95             73.46              2.00             24601               770
99%                  1131.75            105.78              2.00             35425              1109
Min                    61.21              3.31              0.00               216                 5
Max                 24601.00           1955.67              2.00            105778              3311

";

/// The older order of columns and widths, as a German machine prints them; the first table has nothing on disk.
const GERMAN: &str = "$ nodetool tablehistograms
No SSTables exists, unable to calculate 'Partition Size' and 'Cell Count' percentiles
ks/empty histograms
Percentile  SSTables     Write Latency      Read Latency    Partition Size        Cell Count
                              (micros)          (micros)           (bytes)                  
50%             0,00              0,00              0,00               NaN               NaN
Max             0,00              0,00              0,00               NaN               NaN

ks/full histograms
Percentile  SSTables     Write Latency      Read Latency    Partition Size        Cell Count
                              (micros)          (micros)           (bytes)                  
50%             1,50             20,50            126,93               149                 3
99%             2,00             20,50            126,93               310                 6
Min             0,00              3,31             61,21               125                 3
Max             2,00           1955,67          24601,00               310                 6
";

/// What nodetool prints for partitions of these sizes: of every percentile the upper boundary of its bucket.
fn nodetool(mut sizes: Vec<u64>) -> Vec<(f64, Option<u64>)> {
    sizes.sort_unstable();
    let at = |share: f64| sizes[((sizes.len() as f64 * share).ceil() as usize).clamp(1, sizes.len()) - 1];
    let shares = [0.5, 0.75, 0.95, 0.98, 0.99];
    let mut printed: Vec<_> = shares.iter().map(|share| (*share, Some(bucket_of(at(*share)).to))).collect();
    printed.insert(0, (0.0, Some(bucket_of(sizes[0]).above + 1)));
    printed.push((1.0, Some(bucket_of(sizes[sizes.len() - 1]).to)));
    printed
}

fn loaded(sizes: &PartitionSizes, row: RowSize, partitions: i64) -> TableHistogram {
    let rows: Vec<u64> = (1..=partitions).map(|seed| sizes.rows(seed)).collect();
    let bytes = rows.iter().map(|rows| (row.partition + *rows as f64 * row.row).round() as u64).collect();
    let cells = rows.iter().map(|rows| rows * row.cells as u64).collect();
    TableHistogram {
        table: "ks/t".to_owned(),
        partition_size: nodetool(bytes),
        cell_count: nodetool(cells),
        sstables: Vec::new(),
    }
}

#[test]
fn partitions_meet_the_percentiles_asked_of_them() {
    let targets = [
        SizeTarget::from_entries([("50%", "2KiB"), ("95%", "20KiB"), ("99%", "300 rows"), ("max", "1MiB")]).unwrap(),
        SizeTarget::from_entries([("50%", "10 rows")]).unwrap(),
        SizeTarget::from_entries([("99.9%", "1MiB"), ("min", "500B"), ("10%", "600B")]).unwrap(),
        SizeTarget::from_entries([("50%", "30 cells"), ("99%", "3000 cells")]).unwrap(),
        SizeTarget::from_partition_size(&parse_tablehistograms(MODERN).unwrap()[0]).unwrap(),
        SizeTarget::from_cell_count(&parse_tablehistograms(MODERN).unwrap()[0]).unwrap(),
    ];
    for target in targets {
        let sizes = PartitionSizes::new(&target, ROW).unwrap();
        for partitions in [300, 20_000] {
            let compared = compare(&target, &sizes, &ROW, &loaded(&sizes, ROW, partitions));
            let (printed, others): (Vec<_>, Vec<_>) = compared.into_iter().partition(|percentile| percentile.printed);
            assert_eq!(printed.len(), 7);
            assert!(others.iter().all(|percentile| percentile.met() && percentile.got.is_none()), "{others:?}");
            for percentile in printed {
                assert!(percentile.met(), "{partitions} partitions: {percentile:?}");
                assert_eq!(percentile.judged, !["min", "max"].contains(&percentile.share.as_str()));
                // Rows of one size, and enough partitions: even the extremes are what was asked.
                if partitions > 1000 {
                    assert!(percentile.buckets_off.unwrap().abs() <= 1, "{percentile:?}");
                }
            }
        }
    }
}

#[test]
fn what_was_asked_is_shown_even_where_nodetool_prints_nothing_of_it() {
    let target = SizeTarget::from_entries([("50%", "10 rows"), ("90%", "60 rows"), ("99.9%", "90 rows")]).unwrap();
    let sizes = PartitionSizes::new(&target, ROW).unwrap();
    let compared = compare(&target, &sizes, &ROW, &loaded(&sizes, ROW, 1000));
    let told: Vec<(&str, &str)> = compared.iter().map(|one| (one.share.as_str(), one.remark())).collect();
    let unprinted = "nodetool does not print it";
    assert_eq!(
        told,
        [
            ("min", "not judged"),
            ("50%", ""),
            ("75%", ""),
            ("90%", unprinted),
            ("95%", ""),
            ("98%", ""),
            ("99%", ""),
            ("99.9%", unprinted),
            ("max", "not judged"),
        ]
    );
    assert_eq!(compared[3].asked, Amount::Rows(60));
}

#[test]
fn a_table_that_missed_its_sizes_is_told_by_how_much() {
    let target = SizeTarget::from_entries([("50%", "2KiB"), ("max", "2KiB")]).unwrap();
    let sizes = PartitionSizes::new(&target, ROW).unwrap();
    // Rows twice as large as thought: 1.2^4 is 2.07.
    let got = loaded(&sizes, RowSize { row: 200.0, ..ROW }, 1000);
    let median = compare(&target, &sizes, &ROW, &got).into_iter().find(|p| p.share == "50%").unwrap();
    assert!(!median.met() && (3..=4).contains(&median.buckets_off.unwrap()), "{median:?}");
    assert_eq!(median.remark(), "NOT MET");
    assert_eq!(median.asked, Amount::Bytes(2048));
    let nothing = parse_tablehistograms(GERMAN).unwrap().remove(0);
    assert!(compare(&target, &sizes, &ROW, &nothing).iter().all(|p| p.got.is_none() && !p.met()));
}

#[test]
fn quantiles_rise_and_pass_through_the_points() {
    let target = SizeTarget::from_entries([("50%", "2KiB"), ("95%", "20KiB"), ("99%", "300 rows")]).unwrap();
    let sizes = PartitionSizes::new(&target, ROW).unwrap();
    assert!((sizes.quantile(0.5) - 2048.0).abs() < 1e-6);
    assert!((sizes.quantile(0.95) - 20480.0).abs() < 1e-6);
    assert!((sizes.quantile(0.99) - 30040.0).abs() < 1e-6);
    assert_eq!(sizes.rows_at(0.99), 300);
    assert_eq!(sizes.most_rows(), 300, "above the last point sizes stay");
    assert_eq!(sizes.rows_at(0.0), 1, "below the first they rise from one row");
    let quantiles: Vec<f64> = (0..=1000).map(|place| sizes.quantile(f64::from(place) / 1000.0)).collect();
    assert!(quantiles.windows(2).all(|pair| pair[0] <= pair[1]));
    // Halfway between two points on the scale of ratios.
    assert!((sizes.quantile(0.725) - (2048.0f64 * 20480.0).sqrt()).abs() < 1e-6);
    let mean = (1..=100_000).map(|seed| sizes.rows(seed) as f64).sum::<f64>() / 1e5;
    assert!((mean / sizes.mean_rows() - 1.0).abs() < 0.01, "{mean} {}", sizes.mean_rows());
}

#[test]
fn nodetools_output_is_read_in_both_orders_and_any_locale() {
    let modern = parse_tablehistograms(MODERN).unwrap();
    assert_eq!(modern[0].table, "ks/readings");
    assert_eq!(modern[0].partition_size[0], (0.0, Some(216)));
    assert_eq!(modern[0].partition_size[3], (0.95, Some(20501)));
    assert_eq!(modern[0].cell_count[6], (1.0, Some(3311)));
    assert_eq!(modern[0].sstables[5], (0.99, Some(2.0)));
    let german = parse_tablehistograms(GERMAN).unwrap();
    assert_eq!(german.len(), 2);
    assert_eq!(german[1].partition_size, [(0.0, Some(125)), (0.5, Some(149)), (0.99, Some(310)), (1.0, Some(310))]);
    assert_eq!(german[1].sstables[1], (0.5, Some(1.5)));
    let error = SizeTarget::from_partition_size(&german[0]).unwrap_err().to_string();
    assert!(error.contains("no Partition Size of ks/empty") && error.contains("nodetool flush"), "{error}");
    // Nodetool prints boundaries; what is aimed at is inside the bucket.
    let point = SizeTarget::from_partition_size(&modern[0]).unwrap().points()[1];
    assert_eq!(point.amount, Amount::Bytes(1916));
    assert!(point.aim > 1597.0 && point.aim < 1916.0);
}

#[test]
fn the_smallest_partition_that_nodetool_printed_may_be_smaller_than_a_row_is_on_average() {
    let text = "Percentile  Partition Size  Cell Count\n50%  2299 10\nMin  61 1\nMax  4768 20";
    let target = SizeTarget::from_partition_size(&parse_tablehistograms(text).unwrap()[0]).unwrap();
    let sizes = PartitionSizes::new(&target, ROW).unwrap();
    assert_eq!((sizes.rows_at(0.0), sizes.quantile(0.0).round()), (1, 140.0));
    // A median so small cannot be met all the same.
    let text = text.replace("2299", "61").replace("4768", "61");
    let target = SizeTarget::from_partition_size(&parse_tablehistograms(&text).unwrap()[0]).unwrap();
    assert!(PartitionSizes::new(&target, ROW).is_err());
}

#[test]
fn what_cannot_be_read_or_met_says_so() {
    let entries = |entries: &[(&'static str, &'static str)]| SizeTarget::from_entries(entries.to_vec());
    for (given, message) in [
        (&[][..], "names no sizes"),
        (&[("half", "2KiB")], "'half' is not a share"),
        (&[("50%", "2 apples")], "'2 apples' is not a partition's size"),
        (&[("50%", "0 rows")], "'0 rows' is not"),
        (&[("50%", "2KiB"), ("95%", "1KiB")], "95% is given as 1KiB, but 50% as 2KiB"),
        (&[("50%", "2KiB"), ("50%", "3KiB")], "must grow"),
    ] {
        let error = entries(given).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
    let build = |given| PartitionSizes::new(&entries(given).unwrap(), ROW).map(|_| ()).unwrap_err().to_string();
    let error = build(&[("50%", "60B"), ("99%", "1KiB")]);
    assert!(error.contains("50%") && error.contains("one row of this table takes 140 bytes"), "{error}");
    let error = build(&[("min", "60B"), ("99%", "1KiB")]);
    assert!(error.contains("min of the partitions should have at most 60B"), "{error}");
    let error = build(&[("50%", "100 rows"), ("99%", "1KiB")]);
    assert!(error.contains("99% is given as 1KiB, but 50% as 100 rows"), "{error}");
    for (text, message) in [
        ("", "no line that starts with 'Percentile'"),
        ("Percentile  SSTables", "no column 'Partition Size'"),
        ("Percentile  Partition Size  Cell Count\n50%  1", "has 1 numbers for 2 columns"),
        ("Percentile  Partition Size  Cell Count\n50%  1 x", "'x' is not a number"),
        ("Percentile  Partition Size  Cell Count", "has no rows"),
    ] {
        let error = parse_tablehistograms(text).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}
