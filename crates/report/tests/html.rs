//! The report as text: whole, self-contained, and safe whatever stands in the run.

#![allow(clippy::unwrap_used)] // What supports tests may unwrap, too.

#[path = "../../analysis/tests/common/mod.rs"]
mod common;
#[path = "../../analysis/tests/scenario/mod.rs"]
mod scenario;

use std::sync::{LazyLock, OnceLock};

use brownout_analysis::findings;
use brownout_record::{EvidenceRow, LoadPart, Quantity, SearchDescription, Subject};
use brownout_report::{Style, cell, html, summary, svg};
use common::{SECOND, Synthetic, three_copies};
use scenario::{Made, Scenario};

fn report(synthetic: &Synthetic) -> String {
    Shown::of(synthetic).page
}

fn text(synthetic: &Synthetic, style: Style) -> String {
    let directory = tempfile::tempdir().unwrap();
    summary(&findings(&synthetic.run(directory.path())).unwrap(), style)
}

const PLAIN: Style = Style { color: false, width: 100 };

const FAILURE: &[(Option<u32>, &str, &str)] =
    &[(None, "failed", "n1 died: exit status 1; the last lines of its log:\n  no memory <heap>")];

fn evidence(at: u64, node: &str, name: &str, subject: &str, value: f64) -> EvidenceRow {
    EvidenceRow {
        at_ns: at * SECOND + 900_000_000,
        error_ns: 2_000_000,
        node: node.to_owned(),
        source: "jmx".to_owned(),
        subject: subject.to_owned(),
        name: name.to_owned(),
        value,
    }
}

/// In the fault phase (16 s to 26 s) n1 goes on reading from n2, and n3 does not; n2 does not answer in the recovery.
fn told() -> Vec<EvidenceRow> {
    let mut all: Vec<EvidenceRow> = ["n1", "n3"]
        .into_iter()
        .flat_map(|node| (2..36).map(move |at| evidence(at, node, "reading", "", 2e6)))
        .chain((2..26).map(|at| evidence(at, "n2", "reading", "", 2e6)))
        .collect();
    for (coordinator, others) in [("n1", 0.6), ("n3", 0.02)] {
        all.push(evidence(2, coordinator, "snitch-badness-threshold", "", 1.0));
        for of in ["n1", "n2", "n3"] {
            all.push(evidence(2, coordinator, "snitch-score", of, 0.9));
            all.push(evidence(15, coordinator, "snitch-score", of, if of == "n2" { 1.0 } else { others }));
        }
        all.push(evidence(15, coordinator, "messages-sent", "n2", 100.0));
        all.push(evidence(25, coordinator, "messages-sent", "n2", 2_600.0));
    }
    all.push(evidence(20, "n1", "speculative-retries", "", 1_234.0));
    all.push(evidence(20, "n2", "dropped-messages", "<MUTATION_REQ>", 7.0));
    all.push(evidence(20, "n2", "pause", "G1CollectForAllocation", 120e6));
    all.push(evidence(22, "n1", "marked-down", "n2", 1.0));
    all
}

fn told_by_twelve() -> Vec<EvidenceRow> {
    let names: Vec<String> = (1..=12).map(|number| format!("node-{number}")).collect();
    let mut all = Vec::new();
    for node in &names {
        all.extend((2..36).map(|at| evidence(at, node, "reading", "", 2e6)));
        all.extend(names.iter().map(|of| evidence(2, node, "snitch-score", of, 0.5)));
    }
    all.push(evidence(20, "node-7", "speculative-retries", "", 5.0));
    all
}

/// Writes by users beside reads by a clock.
fn beside() -> Vec<LoadPart> {
    let part = |operation: &str, rate, threads| LoadPart { operation: operation.to_owned(), rate, threads };
    vec![part("read", Some(150.0), None), part("write", None, Some(4))]
}

/// Everything n2 sends is late: from 56 ms on a third of the operations is lost.
fn searched(times: u32) -> Synthetic {
    let (from, to) = ("10ms".to_owned(), "112ms".to_owned());
    Synthetic {
        trials: times,
        planned_trials: times,
        without: 6,
        levels: &[10, 14, 20, 28, 40, 56, 79, 112, 50, 45, 60, 70, 90],
        search: Some(SearchDescription::DangerZone { thresholds: vec![0.1, 0.5], from, to }),
        seconds: [1, 2, 5, 6, 3],
        ..Synthetic::default()
    }
}

/// Three blocks of three delays, each block with a trial without a fault.
fn many_cells() -> Synthetic {
    Synthetic { trials: 3, planned_trials: 3, without: 1, levels: &[5, 10, 100], ..Synthetic::default() }
}

/// All kinds of runs that a report must survive.
fn kinds() -> Vec<(&'static str, Synthetic)> {
    let plan = Synthetic::default;
    vec![
        ("whole", plan()),
        ("without a fault", Synthetic { no_fault: true, ..plan() }),
        ("refuted", Synthetic { shown: 0, ..plan() }),
        ("killed in the set-up", Synthetic { trials: 1, cut_at: Some(SECOND), ..plan() }),
        ("killed before its first second", Synthetic { trials: 1, cut_at: Some(0), ..plan() }),
        ("killed in the fault", Synthetic { cut_at: Some(20 * SECOND), ..plan() }),
        ("no trial", Synthetic { trials: 0, ..plan() }),
        ("a search", searched(2)),
        ("a search that was cut short", searched(1)),
        ("a search without a trial", Synthetic { trials: 0, ..searched(1) }),
        ("closed loop", Synthetic { threads: Some(8), ..plan() }),
        ("closed beside open", Synthetic { parts: beside(), ..plan() }),
        ("explained", Synthetic { threads: Some(8), placement: Some(three_copies()), ..plan() }),
        ("flooded", Synthetic { flood: Some(30_000), ..plan() }),
        ("killed in the flood", Synthetic { flood: Some(30_000), trials: 1, cut_at: Some(5 * SECOND), ..plan() }),
        ("failed before its first trial", Synthetic { trials: 0, events: FAILURE, ..plan() }),
        ("with what the database says", Synthetic { database: told, ..plan() }),
        ("with twelve nodes' worth of it", Synthetic { database: told_by_twelve, ..plan() }),
        ("many cells", many_cells()),
        ("an overlay", Synthetic { overlay: "wireguard", carrying: 0.1, ..plan() }),
        ("all fails", Synthetic { failing: |_, _, _| 1.0, death: true, time_outs: 0, ..plan() }),
    ]
}

/// A run as it is shown.
struct Shown {
    page: String,
    summary: String,
}

impl Shown {
    fn of(synthetic: &Synthetic) -> Shown {
        let directory = tempfile::tempdir().unwrap();
        let run = synthetic.run(directory.path());
        let found = findings(&run).unwrap();
        Shown { page: html(&run, &found).unwrap(), summary: summary(&found, PLAIN) }
    }
}

/// Each kind, by its name.
fn all_kinds() -> Vec<&'static str> {
    kinds().into_iter().map(|(kind, _)| kind).collect()
}

/// A run of this kind, made once: that takes longer than to look at it.
fn shown(kind: &str) -> &'static Shown {
    static SHOWN: LazyLock<Vec<(&str, Synthetic, OnceLock<Shown>)>> =
        LazyLock::new(|| kinds().into_iter().map(|(kind, made)| (kind, made, OnceLock::new())).collect());
    let (_, made, shown) = SHOWN.iter().find(|(name, ..)| *name == kind).unwrap();
    shown.get_or_init(|| Shown::of(made))
}

#[test]
fn a_report_refers_to_nothing_outside_itself() {
    for kind in all_kinds() {
        let page = &shown(kind).page;
        for outside in ["http://", "https://", "//cdn", "@import", "<link rel=\"stylesheet\"", "src="] {
            assert!(!page.contains(outside), "{kind}: {outside}");
        }
    }
}

#[test]
fn every_coordinate_is_a_number() {
    for kind in all_kinds() {
        for figure in shown(kind).page.split("<svg").skip(1) {
            let (figure, _) = figure.split_once("</svg>").unwrap();
            for broken in ["NaN", "inf", "null"] {
                assert!(!figure.contains(broken), "{kind}: {broken} in {figure}");
            }
        }
    }
}

#[test]
fn elements_are_closed_in_the_order_they_were_opened() {
    for kind in all_kinds() {
        let mut open: Vec<&str> = Vec::new();
        // Style and script hold no markup; nothing else may hold a bare `<`.
        for tag in shown(kind).page.split('<').skip(1) {
            let (tag, _) = tag.split_once('>').unwrap_or((tag, ""));
            let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap();
            let void = ["!doctype", "meta", "link", "br"].contains(&name) || tag.ends_with('/');
            if open.last() == Some(&"script") && name != "script" || void {
                continue;
            }
            match tag.strip_prefix('/') {
                Some(name) => assert_eq!(open.pop(), Some(name), "{kind}"),
                None => open.push(name),
            }
        }
        assert_eq!(open, [""; 0], "{kind}");
    }
}

#[test]
fn text_of_the_run_is_never_markup() {
    // The processor's name and a node's last words hold signs that HTML knows.
    let page = report(&Synthetic { death: true, ..Synthetic::default() });
    assert!(page.contains("Example CPU &lt;with&gt; &amp; &quot;signs&quot;"));
    assert!(page.contains("out of memory &lt;heap&gt;") && !page.contains("<heap>"));
}

#[test]
fn the_experiment_is_shown_with_what_was_set_in_it() {
    let Shown { page, summary } = shown("whole");
    assert!(page.contains("trials: 9 # of the file"));
    assert!(page.contains("what --set changed in it") && page.contains("--set trials=2\n--set question=is 1 &lt; 2?"));
    assert!(summary.contains("set: trials=2\nset: question=is 1 < 2?\n"));
}

#[test]
fn a_search_shows_where_its_thresholds_are_passed_and_what_it_tried() {
    let Shown { page, summary: text } = shown("a search");
    for part in ["id=\"search\"", "Loss of goodput by delay", "passed between them", "not reached", "surely less at"] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("<h2>All cells</h2>"), "no cell is judged by itself");
    for part in [
        "Search: the loss of goodput by delay; 38 trials",
        "passed between them",
        "112ms",
        "passes 10% between delay 4",
    ] {
        assert!(text.contains(part), "'{part}' is not in:\n{text}");
    }
    let directory = tempfile::tempdir().unwrap();
    let run = searched(2).run(directory.path());
    assert!(svg(&run, &findings(&run).unwrap(), "search").unwrap().is_some_and(|file| file.contains("rule-name")));
}

#[test]
fn figures_have_a_line_for_each_thing_they_show() {
    let page = &shown("whole").page;
    for id in ["trial-1-throughput", "trial-1-latency", "trial-2-coordinators", "percentiles"] {
        assert!(page.contains(&format!("id=\"{id}\"")), "{id}");
    }
    for name in ["n1 p50", "n2 p50", "n3 p50", "offered", "p99"] {
        assert!(page.contains(&format!("<title>{name}</title>")), "{name}");
    }
}

#[test]
fn every_latency_says_of_which_operations_it_is() {
    let paused = {
        let host = vec![Subject::host("n2")];
        let pause = Made::new(Quantity::Running, host, -1.0, 0.05).during(&[(0, 0.0, 8.0)]);
        let directory = tempfile::tempdir().unwrap();
        let run = Scenario { looks: 1_000, ..Scenario::of(vec![pause]) }.run(directory.path());
        let found = findings(&run).unwrap();
        Shown { page: html(&run, &found).unwrap(), summary: summary(&found, PLAIN) }
    };
    let mut all: Vec<(&str, &Shown)> = all_kinds().into_iter().map(|kind| (kind, shown(kind))).collect();
    all.push(("paused", &paused));
    for (kind, Shown { page, summary }) in all {
        let between = |from: &str, to: &str| {
            let parts = page.split(from).skip(1).map(|rest| rest.split(to).next().unwrap().to_owned());
            parts.collect::<Vec<_>>()
        };
        let of_times = |texts: Vec<String>| {
            let tells = |text: &String| text.to_lowercase().contains("response ");
            texts.into_iter().filter(tells)
        };
        let titles: Vec<String> = of_times(between("<figcaption>", "</figcaption>")).collect();
        let (tiles, tables) = (of_times(between("<div class=\"tile\">", "</div>")), between("<caption>", "</caption>"));
        // A run that was killed early has no trial to draw.
        assert!(!titles.is_empty(), "{kind}");
        for text in titles.into_iter().chain(tiles).chain(of_times(tables)) {
            let named = ["ok and timed out", "answered ok and those that timed out"];
            assert!(named.iter().any(|name| text.contains(name)), "{kind}: {text}");
        }
        let tells = |line: &&str| {
            let line = line.to_lowercase();
            line.contains("response p50") || line.contains("response time") || line.starts_with("phases (")
        };
        for heading in summary.lines().filter(tells) {
            assert!(heading.contains("ok and timed out"), "{kind}: {heading}");
        }
        // Percentiles are told of who waited for a stall's end, too.
        assert_eq!(page.contains("Stalls (") && summary.contains("Stalls ("), kind == "paused", "{kind}");
    }
}

#[test]
fn every_table_with_percentiles_names_their_population() {
    // What the instrument erred by, and what the database counted, are no latencies of the load.
    const OTHERS: [&str; 2] = ["How late the emulator", "What it served"];
    let is_percentile = |text: &str| {
        ["p50", "p95", "p99", "p99.9"].iter().any(|name| text == *name || text.starts_with(&format!("{name}, ")))
    };
    let mut seen: Vec<String> = Vec::new();
    for kind in all_kinds() {
        let tables = shown(kind).page.split("<caption>").skip(1).map(|rest| rest.split("</table>").next().unwrap());
        for (caption, cells) in tables.map(|table| table.split_once("</caption>").unwrap()) {
            let mut texts = cells.split('>').map(|part| part.split('<').next().unwrap());
            let is_other = OTHERS.iter().any(|begins| caption.starts_with(begins));
            if is_other || !(is_percentile(caption) || texts.any(is_percentile)) {
                continue;
            }
            let named = ["ok and timed out", "answered ok and those that timed out"];
            assert!(named.iter().any(|name| caption.contains(name)), "{kind}: {caption}");
            seen.push(caption.to_owned());
        }
    }
    for begins in ["Cells: ", "Operations by ", "What the faults did", "p50, baseline", "p99, baseline"] {
        assert!(seen.iter().any(|caption| caption.starts_with(begins)), "{begins}: {seen:?}");
    }
}

#[test]
fn the_warm_ups_flood_does_not_dwarf_what_is_measured() {
    let figure = |synthetic: &Synthetic, which: &str| {
        let directory = tempfile::tempdir().unwrap();
        let run = synthetic.run(directory.path());
        svg(&run, &findings(&run).unwrap(), which).unwrap().unwrap()
    };
    let flooded = Synthetic { flood: Some(30_000), ..Synthetic::default() };
    let throughput = figure(&flooded, "trial-1-throughput");
    assert!(throughput.contains("the warm-up&#39;s flood: up to 30\u{202f}000/s"), "{throughput}");
    assert!(
        throughput.contains(">400</text>") && !throughput.contains(">10\u{202f}000</text>"),
        "the axis ends at 400"
    );
    // Nothing to cut off, or nothing measured to make room for: no mark.
    assert!(!figure(&Synthetic::default(), "trial-1-throughput").contains("class=\"beyond\""));
    let killed = Synthetic { trials: 1, cut_at: Some(5 * SECOND), ..flooded };
    assert!(!figure(&killed, "trial-1-throughput").contains("class=\"beyond\""));
    // The first second of the warm-up takes 7 ms, with a tail up to ten times of that; without a fault nothing else does.
    let slow_start = Synthetic { no_fault: true, objective_ns: 5_000_000, ..Synthetic::default() };
    let latency = figure(&slow_start, "trial-1-latency");
    assert!(latency.contains("the warm-up: up to ") && !latency.contains(">100ms</text>"), "{latency}");
}

#[test]
fn what_failed_is_told_with_its_log() {
    let Shown { page, summary } = shown("failed before its first trial");
    assert!(page.contains("no memory &lt;heap&gt;") && summary.contains("no memory <heap>"));
}

#[test]
fn a_figure_can_be_had_as_a_file_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let run = Synthetic::default().run(directory.path());
    let found = findings(&run).unwrap();
    let file = svg(&run, &found, "trial-2-latency").unwrap().unwrap();
    assert!(file.starts_with("<svg xmlns=") && file.contains("<style>") && file.ends_with("</svg>"));
    assert_eq!(svg(&run, &found, "trial-9-latency").unwrap(), None);
}

#[test]
fn the_summary_fits_100_columns_and_is_plain_without_colour() {
    for kind in all_kinds() {
        let text = &shown(kind).summary;
        assert!(!text.contains('\x1b'), "{kind}");
        for line in text.lines() {
            assert!(line.chars().count() <= 100, "{kind}: {line}");
        }
        assert!(text.contains("Verdict"), "{kind}");
    }
    assert!(text(&Synthetic::default(), Style { color: true, width: 100 }).contains("\x1b["));
}

#[test]
fn the_summary_says_what_happened() {
    let whole = text(&Synthetic { without: 1, ..Synthetic::default() }, PLAIN);
    for part in [
        "What does one slow replica cost",
        "every RTT to and from n2 grows by as much",
        "the warm-up ended after 4.0s: latency was stationary",
        "9 spared, worst",
        "proven: every RTT to and from n2 grows by 100ms",
        "balances",
        "Worse: the fault costs 33.3% of the goodput",
        "trial 2, no fault",
        "2 × (1 + 1)",
    ] {
        assert!(whole.contains(part), "{part}\n{whole}");
    }
    let refuted = text(&Synthetic { also_slow: Some(("n3", "n1")), ..Synthetic::default() }, PLAIN);
    assert!(refuted.contains("9 spared, worst n3 → n1") && refuted.contains("refuted"), "{refuted}");
    assert!(!whole.contains("the overlay, of the instrument's"), "{whole}");
    let Shown { page, summary: carried } = shown("an overlay");
    assert!(carried.contains("the overlay, of the instrument's:") && carried.contains("10% (baseline)"), "{carried}");
    assert!(page.contains("overlay 10%") && !shown("whole").page.contains("ink-overlay\""));
    let death = text(&Synthetic { death: true, ..Synthetic::default() }, PLAIN);
    assert!(death.contains("Node n3 died") && death.contains("out of memory <heap>"), "{death}");
}

#[test]
fn a_node_that_ended_itself_because_a_fault_made_its_disk_fail_is_no_alarm() {
    let directory = tempfile::tempdir().unwrap();
    let run = Synthetic { death: true, ..Synthetic::default() }.run(directory.path());
    let mut found = findings(&run).unwrap();
    assert!(!found.trials[0].deaths[0].of_its_disk, "a slow link is no disk");
    assert!(html(&run, &found).unwrap().contains("note bad\"><strong>Node n3 died"));
    found.trials.iter_mut().flat_map(|trial| &mut trial.deaths).for_each(|death| death.of_its_disk = true);
    let (page, text) = (html(&run, &found).unwrap(), summary(&found, PLAIN));
    assert!(page.contains("note warn\"><strong>Node n3, whose disk a fault made fail, died in trial"));
    assert!(text.contains("Node n3, whose disk a fault made fail, died\n"), "{text}");
}

#[test]
fn cells_and_factors_stand_beside_each_other_with_their_intervals_and_what_would_tell() {
    let Shown { page, summary: text } = shown("many cells");
    for part in ["delay 100ms / 5ms", "goodput, fault ÷ baseline", "level / first level", "not by "] {
        assert!(page.contains(part) && text.contains(part), "{part}\n{text}");
    }
    let row = |start: &str| {
        let line = text.lines().find(|line| line.trim_start().starts_with(start)).unwrap();
        line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    let worse = row("3: delay 100ms  ");
    assert_eq!((worse[1].as_str(), worse[6].as_str()), ("3 + 3", "worse"), "{worse:?}");
    assert!(worse[3].contains(" → 1") && worse[4].starts_with("-33.") && worse[5].contains(" … "), "{worse:?}");
    let same = row("1: delay 5ms  ");
    assert_eq!(same[6], "no difference", "{same:?}");
    let sentence = "Of 3 cells 1 is worse with the fault, 2 show no difference of 1% or more.";
    assert!(page.contains(sentence) && text.contains(sentence), "{text}");
}

#[test]
fn database_network_overlay_and_encryption_of_every_cell_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let run = many_cells().run(directory.path());
    let mut found = findings(&run).unwrap();
    let last = found.cells.last_mut().unwrap();
    last.database = "etcd 3.6.16".to_owned();
    last.network = vec!["east ↔ west: delay 40ms".to_owned()];
    last.overlay = "wireguard".to_owned();
    last.encryption = vec!["between all nodes".to_owned(), "to clients".to_owned()];
    let wide = Style { color: false, width: 1_000 };
    for text in [summary(&found, wide), html(&run, &found).unwrap()] {
        for words in [
            "Cassandra 5.0.6 on n1",
            "one LAN without limits",
            "etcd 3.6.16 on n1",
            "east ↔ west: delay 40ms",
            "wireguard",
            "between all nodes; to clients",
        ] {
            assert!(text.contains(words), "{words} in {text}");
        }
    }
    // Of one cell in its head.
    let directory = tempfile::tempdir().unwrap();
    let run = Synthetic::default().run(directory.path());
    let found = findings(&run).unwrap();
    for text in [summary(&found, wide), html(&run, &found).unwrap()] {
        for words in ["Cassandra 5.0.6 on n1", "network: one LAN without limits", "overlay: none", "encryption: none"] {
            assert!(text.contains(words), "{words} in {text}");
        }
    }
}

#[test]
fn of_many_trials_the_terminal_shows_a_few_and_says_where_the_others_are() {
    let many = Synthetic { trials: 5, planned_trials: 5, without: 1, ..Synthetic::default() };
    let directory = tempfile::tempdir().unwrap();
    let findings = findings(&many.run(directory.path())).unwrap();
    let (few, all) = (summary(&findings, PLAIN), cell(&findings, 1, PLAIN).unwrap());
    let proofs = |text: &str| text.lines().filter(|line| line.starts_with("Proof, trial")).count();
    assert_eq!((proofs(&few), proofs(&all)), (1, 5), "{few}");
    assert!(
        few.contains("of 10 attempts at trials 2 are shown") && few.contains("brownout show RUN --cell 1"),
        "{few}"
    );
    // What nobody can use is not left out: each of them says why.
    let directory = tempfile::tempdir().unwrap();
    let invalid = Synthetic { invented: 1, ..many }.run(directory.path());
    let invalid = summary(&brownout_analysis::findings(&invalid).unwrap(), PLAIN);
    assert_eq!(proofs(&invalid), 5, "{invalid}");
    // What is small is of all of them, and so is what follows.
    let goodput = few.split("\nGoodput (").nth(1).unwrap().split("\n\n").next().unwrap();
    assert_eq!(goodput.lines().filter(|line| line.trim_start().starts_with("trial ")).count(), 11, "{goodput}");
}

#[test]
fn labs_that_worked_at_once_are_told_with_their_processors_and_one_alone_is_not() {
    let beside = Synthetic { trials: 3, planned_trials: 3, labs: 2, ..Synthetic::default() };
    let said = "2 labs at once: lab 1 on processors 0-1 (2 trials), lab 2 on 2-3 (1 trial)";
    let Shown { page, summary } = &Shown::of(&beside);
    for text in [page, summary] {
        assert!(text.contains(said), "{text}");
    }
    let Shown { page, summary } = shown("whole");
    for text in [page, summary] {
        assert!(!text.contains("at once"), "{text}");
    }
}

#[test]
fn what_arithmetic_explains_stands_beside_what_was_measured() {
    let Shown { page, summary: text } = shown("explained");
    for part in [
        "What arithmetic explains",
        // Reads may ask n2 or leave it; writes have enough answers without it.
        "must wait for it",
        "loss of throughput",
        "loss of goodput",
        "p99 of reads",
        "33.3% of the operations meet 200ms if it chooses the best replicas for each",
    ] {
        assert!(page.contains(part), "{part}");
        assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains(part), "{part}\n{text}");
    }
    let row = |name: &str| {
        let fault = text.split_once("must wait for it").unwrap().1;
        let line = fault.lines().find(|line| line.contains(&format!("  {name} "))).unwrap();
        line.split_whitespace().rev().take(2).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(row("reads"), ["100.0%", "33.3%"], "{text}");
    assert_eq!(row("writes"), ["33.3%", "33.3%"], "{text}");
    // Of many cells, beside the loss of each.
    let Shown { page, summary: text } = &Shown::of(&Synthetic { placement: Some(three_copies()), ..many_cells() });
    let section = text.split_once("What arithmetic explains of the losses").unwrap().1;
    let line = section.lines().find(|line| line.trim_start().starts_with("3: delay 100ms")).unwrap();
    assert!(line.contains("goodput") && line.contains("33.3%"), "{line}");
    assert!(page.contains("What arithmetic explains of the losses"));
    // Nothing is claimed of a run that does not tell where its rows lie.
    assert!(!shown("whole").page.contains("What arithmetic explains"));
}

#[test]
fn a_closed_load_beside_an_open_one_is_named_and_it_is_said_that_nothing_is_predicted() {
    let Shown { page, summary: text } = shown("closed beside open");
    for part in ["Closed loop: write 4 threads, beside an open load", "no prediction: only write is closed"] {
        assert!(page.contains(part), "{part}");
        assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains(part), "{part}\n{text}");
    }
    for told in ["extra delay of a mean operation", "÷ mean response time"] {
        assert!(!page.contains(told) && !text.contains(told), "{told}");
    }
}

#[test]
fn many_faults_are_told_in_few_lines_that_fit() {
    let directory = tempfile::tempdir().unwrap();
    let text = summary(&findings(&scenario::many().run(directory.path())).unwrap(), PLAIN);
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    let proofs: Vec<&str> = text.split("\nProof: ").skip(1).collect();
    assert_eq!(proofs.len(), 9);
    // The heading, a line for each of four steps and one for all that is spared, the verdict.
    assert!(proofs[0].lines().count() <= 9, "{}", proofs[0]);
    for (at, part) in [(1, "11 spared, worst"), (2, "2 hit, worst"), (3, "clock drift"), (5, "rate"), (7, "≤20.00%")]
    {
        assert!(proofs[at].contains(part), "{}", proofs[at]);
    }
}

#[test]
fn the_end_of_the_load_is_not_drawn_as_a_fall() {
    let directory = tempfile::tempdir().unwrap();
    let run = scenario::Scenario { idle: 5, ..scenario::Scenario::default() }.run(directory.path());
    let figure = svg(&run, &findings(&run).unwrap(), "trial-1-throughput").unwrap().unwrap();
    let (line, _) = figure.split_once("\"><title>delivered").unwrap();
    let (_, end) = line.rsplit_once('H').unwrap();
    // The plot is 1150 wide from 72 on; the recovery ends after 60 of 65 seconds.
    assert_eq!(end, format!("{:.1}", 72.0 + 1150.0 * 60.0 / 65.0));
}

/// The line of a summary or page that begins with this, its cells apart by two spaces or more.
fn cells<'a>(text: &'a str, begins: &str) -> Vec<&'a str> {
    let line = text.lines().find(|line| line.trim_start().starts_with(begins));
    line.unwrap_or_default().split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect()
}

#[test]
fn what_the_database_says_stands_beside_what_was_measured_and_shows_who_read_on_from_a_slow_replica() {
    let summary = text(&Synthetic { trials: 1, planned_trials: 1, database: told, ..Synthetic::default() }, PLAIN);
    assert!(summary.contains("What the database says, trial 1 (n1 / n2 / n3)"), "{summary}");
    // The node that did not answer is not one that counted nothing.
    let retries = cells(&summary, "speculative retries");
    assert_eq!(retries, ["speculative retries", "0 / 0 / 0", "1\u{202f}234 / 0 / 0", "0 / – / 0"], "{summary}");
    // A score keeps a coordinator away if it is more than twice the second best.
    let (stays, leaves) = (cells(&summary, "n1 → n2"), cells(&summary, "n3 → n2"));
    assert_eq!((stays[2], leaves[2]), ("1.00 · 0.0% · 250/s", "1.00 · 100.0% · 250/s"), "{summary}");
    assert!(summary.contains("n1 took n2 for down at 22.900s ± 2.00ms of the trial (fault)"), "{summary}");
    let why = "n1 was free to read from n2 for 100.0% of the fault phase: it scored that 1.00, and";
    let lines = summary.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(lines.contains(why) && !lines.contains("n3 was free to read from n2"), "{summary}");
    assert!(
        lines.contains(
            "0.60, unchanged (one that is not asked keeps its score); it is kept only from one more than 2 times"
        ),
        "{lines}"
    );
    assert_eq!(cells(&summary, "… longest pause, ms")[2], "0 / 120 / 0", "{summary}");
    let page = &shown("with what the database says").page;
    assert!(page.contains(why));
    // A line for each coordinator and each other node that it scored, and none where nothing was in force.
    let figure =
        |page: &str| page.split("<figure").filter(|one| one.contains("Snitch scores of replicas, trial 1")).count();
    let without = report(&Synthetic { database: told, no_fault: true, ..Synthetic::default() });
    assert_eq!((figure(page), figure(&without)), (1, 0));
    for line in ["n1&#39;s of n2", "n1&#39;s of n3", "n3&#39;s of n1", "n3&#39;s of n2"] {
        assert!(page.contains(line) || page.contains(&line.replace("&#39;", "'")), "{line}");
    }
    assert!(!page.contains("n1's of n1") && !page.contains("n1&#39;s of n1"));
    assert!(page.contains("dropped: &lt;MUTATION_REQ&gt;") && page.contains("kept away 100.0%, 250/s"));
}

#[test]
fn of_many_nodes_only_those_with_something_to_say_are_shown_and_what_is_left_out_is_said() {
    let summary = text(&Synthetic { database: told_by_twelve, trials: 3, ..Synthetic::default() }, PLAIN);
    assert_eq!(cells(&summary, "speculative retries"), ["speculative retries", "0", "node-7 5", "0"], "{summary}");
    assert!(summary.contains("… and 132 more pairs, in the report"), "{summary}");
    assert!(summary.contains("the same of 1 more trials is in the report"), "{summary}");
}
