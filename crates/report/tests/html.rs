//! The report as text: whole, self-contained, and safe whatever stands in the run.

#![allow(clippy::unwrap_used)] // What supports tests may unwrap, too.

#[path = "../../analysis/tests/common/mod.rs"]
mod common;
#[path = "../../analysis/tests/scenario/mod.rs"]
mod scenario;

use brownout_analysis::findings;
use brownout_record::{Quantity, SearchDescription, Subject};
use brownout_report::{Style, html, summary, svg};
use common::{SECOND, Synthetic, three_copies};
use scenario::{Made, Scenario};

fn report(synthetic: &Synthetic) -> String {
    let directory = tempfile::tempdir().unwrap();
    let run = synthetic.run(directory.path());
    html(&run, &findings(&run).unwrap()).unwrap()
}

fn text(synthetic: &Synthetic, style: Style) -> String {
    let directory = tempfile::tempdir().unwrap();
    summary(&findings(&synthetic.run(directory.path())).unwrap(), style)
}

const PLAIN: Style = Style { color: false, width: 100 };

const FAILURE: &[(Option<u32>, &str, &str)] =
    &[(None, "failed", "n1 died: exit status 1; the last lines of its log:\n  no memory <heap>")];

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
        ("explained", Synthetic { threads: Some(8), placement: Some(three_copies()), ..plan() }),
        ("flooded", Synthetic { flood: Some(30_000), ..plan() }),
        ("killed in the flood", Synthetic { flood: Some(30_000), trials: 1, cut_at: Some(5 * SECOND), ..plan() }),
        ("failed before its first trial", Synthetic { trials: 0, events: FAILURE, ..plan() }),
        ("all fails", Synthetic { failing: |_, _, _| 1.0, death: true, time_outs: 0, ..plan() }),
    ]
}

#[test]
fn a_report_refers_to_nothing_outside_itself() {
    for (kind, synthetic) in kinds() {
        let page = report(&synthetic);
        for outside in ["http://", "https://", "//cdn", "@import", "<link rel=\"stylesheet\"", "src="] {
            assert!(!page.contains(outside), "{kind}: {outside}");
        }
    }
}

#[test]
fn every_coordinate_is_a_number() {
    for (kind, synthetic) in kinds() {
        let page = report(&synthetic);
        for figure in page.split("<svg").skip(1) {
            let (figure, _) = figure.split_once("</svg>").unwrap();
            for broken in ["NaN", "inf", "null"] {
                assert!(!figure.contains(broken), "{kind}: {broken} in {figure}");
            }
        }
    }
}

#[test]
fn elements_are_closed_in_the_order_they_were_opened() {
    for (kind, synthetic) in kinds() {
        let page = report(&synthetic);
        let mut open: Vec<&str> = Vec::new();
        // Style and script hold no markup; nothing else may hold a bare `<`.
        for tag in page.split('<').skip(1) {
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
    let page = report(&Synthetic::default());
    assert!(page.contains("trials: 9 # of the file"));
    assert!(page.contains("what --set changed in it") && page.contains("--set trials=2\n--set question=is 1 &lt; 2?"));
    assert!(text(&Synthetic::default(), PLAIN).contains("set: trials=2\nset: question=is 1 < 2?\n"));
}

#[test]
fn a_search_shows_where_its_thresholds_are_passed_and_what_it_tried() {
    let page = report(&searched(2));
    for part in ["id=\"search\"", "Loss of goodput by delay", "passed between them", "not reached", "surely less at"] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("<h2>All cells</h2>"), "no cell is judged by itself");
    let text = text(&searched(2), PLAIN);
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
    let page = report(&Synthetic::default());
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
        ("paused", html(&run, &found).unwrap(), summary(&found, PLAIN))
    };
    let both = |(kind, synthetic): (&'static str, Synthetic)| (kind, report(&synthetic), text(&synthetic, PLAIN));
    for (kind, page, summary) in kinds().into_iter().map(both).chain([paused]) {
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
    let failed = Synthetic { trials: 0, events: FAILURE, ..Synthetic::default() };
    assert!(report(&failed).contains("no memory &lt;heap&gt;"));
    assert!(text(&failed, PLAIN).contains("no memory <heap>"));
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
    for (kind, synthetic) in kinds() {
        let text = text(&synthetic, PLAIN);
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
    let death = text(&Synthetic { death: true, ..Synthetic::default() }, PLAIN);
    assert!(death.contains("Node n3 died") && death.contains("out of memory <heap>"), "{death}");
}

#[test]
fn what_arithmetic_explains_stands_beside_what_was_measured() {
    let explained = Synthetic { threads: Some(8), placement: Some(three_copies()), ..Synthetic::default() };
    let (page, text) = (report(&explained), text(&explained, PLAIN));
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
    // Nothing is claimed of a run that does not tell where its rows lie.
    assert!(!report(&Synthetic::default()).contains("What arithmetic explains"));
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
