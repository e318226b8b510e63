//! The tables of the HTML report.

use brownout_analysis::{
    FaultFindings, Findings, Part, PhaseFindings, Proof, SearchFindings, Standstill, TrialFindings, phase, words,
};
use brownout_record::{LoadDescription, LoadPart};
use brownout_units::{Delay, format_ns};

use crate::{
    cells, detectors,
    escape::escape,
    explained,
    markup::{Cell, cell, details, marked, markup, table},
    proofs,
    scope::Scope,
    search,
    table::Paint,
    text, under_test,
};

/// All cells beside each other.
pub fn cells_beside(findings: &Findings, scopes: &[Scope<'_>]) -> String {
    painted("wide", &cells::caption(findings), &cells::HEADINGS, cells::rows(scopes))
}

/// What the cells ran on.
pub fn under_test(scopes: &[Scope<'_>]) -> String {
    painted("wide", under_test::CAPTION, &under_test::HEADINGS, under_test::rows(scopes))
}

/// What the faults did to each figure; none if nothing is judged.
pub fn figures(scope: &Scope<'_>) -> Option<String> {
    let rows = cells::figures(scope);
    (!rows.is_empty()).then(|| painted("", &cells::figures_caption(), &cells::FIGURE_HEADINGS, rows))
}

/// What the factors do; none if nothing varies.
pub fn factors(findings: &Findings) -> Option<String> {
    let all = cells::factors(findings);
    let of = |factors: cells::Factors| {
        let caption = factors.caption();
        let alone = painted("wide", &caption, &cells::FACTOR_HEADINGS, factors.alone);
        if factors.together.is_empty() {
            return alone;
        }
        let title = format!("{caption}: {} pairs of factors together", factors.together.len());
        let together = painted("wide", &caption, &cells::FACTOR_HEADINGS, factors.together);
        alone + &details(&title, &together)
    };
    let caption = format!("<p>{}</p>", escape(&cells::factors_caption()));
    (!all.is_empty()).then(|| caption + &all.into_iter().map(of).collect::<String>())
}

/// The losses of the cells beside what arithmetic says of them; none where nothing is predicted.
pub fn explained(scopes: &[Scope<'_>]) -> Option<String> {
    let rows = explained::beside(scopes);
    (!rows.is_empty()).then(|| painted("wide", explained::BESIDE, &explained::BESIDE_HEADINGS, rows))
}

/// Whether anyone would have noticed, by cell; none where no cell has detectors.
pub fn detectors(scopes: &[Scope<'_>]) -> Option<String> {
    let beside = detectors::beside(scopes);
    let one = |one: detectors::Beside| painted("wide", one.caption, &one.headings, one.rows);
    (!beside.is_empty()).then(|| beside.into_iter().map(one).collect())
}

/// What a search has found, and what it tried.
pub fn search(found: &SearchFindings) -> String {
    let answers = painted("", &search::caption(found), &search::answer_headings(found), search::answers(found));
    answers + &painted("", "What was tried", &search::level_headings(found), search::levels(found))
}

fn painted(class: &str, caption: &str, headings: &[&str], rows: Vec<(Paint, Vec<String>)>) -> String {
    let row = |(paint, texts): (Paint, Vec<String>)| {
        let last = texts.len() - 1;
        let class = match paint {
            Paint::Good => "good words",
            Paint::Bad => "bad words",
            Paint::Warn => "warn words",
            _ => "words",
        };
        let of = |(at, text): (usize, String)| match at {
            0 => marked("words", text),
            at if at == last => marked(class, text),
            _ => cell(text),
        };
        ("", texts.into_iter().enumerate().map(of).collect())
    };
    table(class, caption, headings, rows.into_iter().map(row).collect())
}

/// The load by phase: all trials together, then each.
pub fn phases(scope: &Scope<'_>) -> String {
    let headings = [
        "phase",
        "offered/s",
        "ok/s",
        "good/s",
        "failed",
        "timed out",
        "never sent",
        "p50",
        "p95",
        "p99",
        "p99.9",
        "max",
        "p99 of all due",
        "objective met by",
    ];
    let mut rows = Vec::new();
    for union in scope.phases.iter().filter(|phase| phase.name != phase::SET_UP) {
        rows.push(("", phase_cells(&union.name, union)));
        if scope.trials.len() > 1 {
            for trial in &scope.trials {
                let own = trial.phases.iter().find(|own| own.name == union.name);
                rows.extend(own.map(|own| ("sub", phase_cells(&scope.name(trial), own))));
            }
        }
    }
    let caption = "Operations by intended start, response time from the intended start, of those answered ok and those that timed out. ≥: among these ranks are operations that timed out. Of all due: failed and never sent ones are beyond every limit.";
    table("wide", caption, &headings, rows)
}

fn phase_cells(name: &str, phase: &PhaseFindings) -> Vec<Cell> {
    let rates = phase.rates;
    let mut cells = vec![cell(name)];
    cells.push(cell(text::or_none(rates, |rates| text::rate(rates.offered))));
    cells.push(cell(text::or_none(rates, |rates| text::rate(rates.delivered))));
    cells.push(cell(text::or_none(rates, |rates| text::rate(rates.good))));
    let counts = &phase.counts;
    for (count, told) in [
        (counts.failed, text::count(counts.failed)),
        (counts.timed_out, text::count(counts.timed_out)),
        (counts.never_sent + counts.withheld, text::not_sent(counts.never_sent, counts.withheld)),
    ] {
        cells.push(marked(if count > 0 { "bad" } else { "" }, told));
    }
    let values = phase.response.map(|response| [response.p50, response.p95, response.p99, response.p999, response.max]);
    cells.extend((0..5).map(|at| cell(text::or_none(values, |values| text::quantile(values[at])))));
    cells.push(cell(text::or_none(phase.due, |due| text::limit(due.p99))));
    let class = if phase.objective_met == Some(false) { "warn" } else { "" };
    cells.push(marked(class, text::or_none(phase.objective_share, text::share)));
    cells
}

/// Response times by coordinator or statement, phases side by side.
pub fn parts(scope: &Scope<'_>, what: &str, parts: fn(&PhaseFindings) -> &[Part]) -> String {
    let phases: Vec<&PhaseFindings> =
        scope.phases.iter().filter(|phase| phase::MEASURED.contains(&phase.name.as_str())).collect();
    let mut names: Vec<&str> = phases.iter().flat_map(|phase| parts(phase)).map(|part| part.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let headings: Vec<&str> = [what].into_iter().chain(phases.iter().map(|phase| phase.name.as_str())).collect();
    let row = |name: &str| {
        let of = phases.iter().map(|phase| parts(phase).iter().find(|part| part.name == name));
        let cells = of.map(|part| cell(text::or_none(part, text::part)));
        ("", [cell(name)].into_iter().chain(cells).collect())
    };
    table(
        "",
        &format!("Response p50 / p99 by {what}, of those {}", text::SHOWN),
        &headings,
        names.into_iter().map(row).collect(),
    )
}

/// Goodput, degradation, recovery and residual of each trial.
pub fn goodput(scope: &Scope<'_>) -> String {
    let rows = scope.trials.iter().map(|trial| {
        let effect = &trial.effect;
        let cells = vec![
            cell(scope.name(trial)),
            cell(text::or_none(effect.baseline, text::rate)),
            cell(text::or_none(effect.fault, text::rate)),
            cell(text::or_none(effect.degradation, text::share)),
            cell(text::or_none(effect.delivered_degradation, text::share)),
            cell(text::recovery(effect)),
            cell(text::or_none(effect.lost_ns, |ns| text::seconds(ns as f64))),
            cell(text::or_none(effect.residual, |residual| format!("{residual:.3}"))),
        ];
        ("", cells)
    });
    let over = scope.recovery.as_ref().map(|over| {
        let mut cells = vec![cell(format!("{} trials", over.trials))];
        cells.extend((0..4).map(|_| cell("")));
        cells.extend([cell(text::recovery_over_trials(over)), cell(""), cell("")]);
        ("", cells)
    });
    let rows = rows.chain(over);
    let caption = format!(
        "Goodput: {} answered ok within {}, per second",
        text::whose(&scope.objective),
        Delay::from_ns(scope.objective.response_ns)
    );
    let headings = [
        "",
        "baseline/s",
        "fault/s",
        "degradation",
        "of delivered",
        "back after healing",
        "lost after healing",
        "residual",
    ];
    table("", &caption, &headings, rows.collect())
}

/// What the fault took from each operation, if there are several.
pub fn operations(scope: &Scope<'_>) -> Option<String> {
    if scope.planned_faults.is_empty() || scope.operations.len() < 2 {
        return None;
    }
    let rows = scope.operations.iter().map(|one| {
        let trials = text::or_none(one.trials, text::shares);
        let cells = vec![
            cell(&one.name),
            cell(text::or_none(one.baseline, text::rate)),
            cell(text::or_none(one.fault, text::rate)),
            cell(text::or_none(one.degradation, text::share)),
            cell(trials),
        ];
        ("", cells)
    });
    let within = Delay::from_ns(scope.objective.response_ns);
    let caption = format!("Goodput by operation: answered ok within {within}, per second; all trials together");
    let headings = ["operation", "baseline/s", "fault/s", "degradation", "single trials"];
    Some(table("", &caption, &headings, rows.collect()))
}

/// What arithmetic alone says about a closed loop; none of a load that is open.
pub fn closed_loop_words(load: &LoadDescription) -> Option<String> {
    let beside = load.closed_beside_open();
    if !beside.is_empty() {
        let users = |part: &&LoadPart| match part.threads {
            Some(1) => format!("{} 1 thread", part.operation),
            threads => format!("{} {} threads", part.operation, threads.unwrap_or_default()),
        };
        return Some(format!("{}, beside an open load", beside.iter().map(users).collect::<Vec<_>>().join(", ")));
    }
    let threads = load.threads?;
    Some(format!(
        "{threads} threads complete {threads} ÷ mean response time, both of those {}, whatever the database does",
        text::SHOWN
    ))
}

/// What arithmetic alone says about a closed loop, if it is one.
pub fn closed_loop(scope: &Scope<'_>) -> Option<String> {
    let words = closed_loop_words(&scope.load)?;
    let rows = scope.trials.iter().filter_map(|trial| {
        let own = trial.closed_loop.as_ref()?;
        let cells = vec![
            cell(scope.name(trial)),
            cell(text::or_none(own.measured_loss, text::share)),
            cell(text::or_none(own.predicted_loss, text::share)),
            cell(text::or_none(own.extra_delay_ns, format_ns)),
        ];
        Some(("", cells))
    });
    let caption = words;
    let why = scope.trials.iter().find_map(|trial| trial.closed_loop.as_ref()?.inapplicable.clone());
    let caption = why.map_or(caption.clone(), |why| format!("{caption}; no prediction: {why}"));
    if !scope.load.closed_beside_open().is_empty() {
        return Some(format!("<p>{}</p>", escape(&format!("Closed loop: {caption}"))));
    }
    let headings = ["", "loss of throughput", "explained by the delay alone", "extra delay of a mean operation"];
    Some(table("", &caption, &headings, rows.collect()))
}

/// The caption of what arithmetic alone says about nodes that stood still.
pub fn standstill_caption() -> String {
    format!("Stalls (response times, {}): who starts in one waits for its end, whatever the database does", text::SHOWN)
}

/// The headings of its table.
pub const STANDSTILL_HEADINGS: [&str; 5] =
    ["trial", "of the fault phase", "measured", "if its coordinator stood still", "if any replica it needs did"];

/// The rows of that table for one trial.
pub fn standstill_cells(trial: &str, own: &Standstill) -> Vec<[String; 5]> {
    let slower = [
        trial.to_string(),
        format!("slower than {}", format_ns(own.slower_than_ns as f64)),
        text::share(own.measured_share),
        text::share(own.least_share),
        text::or_none(own.most_share, text::share),
    ];
    let quantiles = own.quantiles.iter().map(|one| {
        let name = if one.quantile < 1.0 { format!("p{}", one.quantile * 100.0) } else { "max".to_owned() };
        let time = |ns: u64| format_ns(ns as f64);
        [trial.to_string(), name, time(one.measured_ns), time(one.least_ns), text::or_none(one.most_ns, time)]
    });
    std::iter::once(slower).chain(quantiles).collect()
}

/// What was in force, in words.
pub fn standstill_words(own: &Standstill) -> String {
    let needed = own.needed.map_or(String::new(), |needed| {
        format!(", and {} with those that need its answer if replicas are chosen evenly", text::share(needed))
    });
    format!(
        "{} stalls of {} (median), {} of the phase; a node that stands still coordinates {} of the operations{needed}",
        own.stalls,
        format_ns(own.length_ns as f64),
        text::share(own.stalled),
        text::share(own.coordinated)
    )
}

/// What arithmetic alone says about nodes that stood still, if nothing else was in force.
pub fn standstill(scope: &Scope<'_>) -> Option<String> {
    let own: Vec<(String, &Standstill)> =
        scope.trials.iter().filter_map(|trial| Some((trial.label(), trial.standstill.as_ref()?))).collect();
    let rows = own.iter().flat_map(|(trial, own)| standstill_cells(trial, own));
    let rows = rows.map(|cells| ("", Vec::from(cells.map(cell))));
    let words: Vec<String> =
        own.iter().map(|(trial, own)| format!("trial {trial}: {}", standstill_words(own))).collect();
    let caption = format!("{}; {}", standstill_caption(), words.join("; "));
    (!own.is_empty()).then(|| table("", &caption, &STANDSTILL_HEADINGS, rows.collect()))
}

/// The proof of one fault: the worst subjects, and all of them on demand.
pub fn proof(fault: &FaultFindings) -> String {
    let ramp = fault.severities.len() > 1;
    let rows = proofs::lines(fault).into_iter().map(|line| {
        let row = line.row;
        let mut cells = vec![cell(line.what), marked("words", &line.subject)];
        if ramp {
            cells.push(marked("words", line.severity));
        }
        cells.extend([proofs::asked(row), proofs::measured(row), format!("± {}", proofs::allowed(row))].map(cell));
        cells.push(cell(proofs::after(row)));
        let by: Vec<&str> =
            row.sources.iter().filter(|source| source.tells).map(|source| source.source.as_str()).collect();
        cells.push(marked("words", by.join(", ")));
        cells.push(marked(proof_class(row.verdict), text::proof(row.verdict)));
        (if row.hit { "hit" } else { "" }, cells)
    });
    let mut headings = vec!["what", "where"];
    if ramp {
        headings.push("severity");
    }
    headings.extend(["asked", "measured", "tolerance", "after healing", "shown by", "verdict"]);
    let worst = table("wide", &format!("{} — {}", fault.text, fault.effect), &headings, rows.collect());
    worst + &details(&format!("All {} subjects and sources", fault.rows.len()), &all_sources(fault))
}

/// Spared subjects that are as they should be and stand in the table of all; a lab of 50 hosts has thousands of them.
const LISTED: usize = 150;

fn all_sources(fault: &FaultFindings) -> String {
    let mut spared = 0;
    let mut left = 0;
    let mut rows = Vec::new();
    for row in &fault.rows {
        let well = !row.hit && row.verdict == Proof::Proven;
        spared += usize::from(well);
        if well && spared > LISTED {
            left += 1;
            continue;
        }
        for (at, source) in row.sources.iter().enumerate() {
            let value = |value: Option<f64>| cell(text::or_none(value, |value| words::number(row.quantity, value)));
            let severity = fault.severities.get(row.severity as usize).map_or("", String::as_str);
            let seen = if row.change { source.change } else { source.during };
            let show = if row.change { text::change } else { words::number };
            let shown = |value: Option<f64>| cell(text::or_none(value, |value| show(row.quantity, value)));
            let first = at == 0;
            let role = if row.hit { "hit" } else { "spared" };
            rows.push((
                if row.hit { "hit" } else { "" },
                vec![
                    cell(if first { row.subject.to_string() } else { String::new() }),
                    marked("words", if first { words::name(row.quantity) } else { "" }),
                    marked("words", if first { severity } else { "" }),
                    marked("words", if first { role } else { "" }),
                    marked("words", &source.source),
                    value(source.before),
                    value(source.during),
                    value(source.after),
                    shown(seen),
                    shown(source.expected),
                    value(source.allowed),
                    cell(source.samples.map(|count| count.to_string()).join(" ")),
                    marked(proof_class(row.verdict), if first { text::proof(row.verdict) } else { "" }),
                ],
            ));
        }
    }
    let caption = match left {
        0 => "Every subject, by every source".to_owned(),
        left => format!("Every subject, by every source; {left} more spared ones, all proven, are in the JSON"),
    };
    let headings = [
        "where", "what", "severity", "", "by", "before", "during", "after", "seen", "expected", "±", "samples",
        "verdict",
    ];
    table("wide", &caption, &headings, rows)
}

/// The class of a verdict.
pub fn proof_class(verdict: Proof) -> &'static str {
    match verdict {
        Proof::Proven => "good words",
        Proof::Refuted => "bad words",
        Proof::Unproven => "warn words",
    }
}

/// The balance sheet of every trial.
pub fn balance(scope: &Scope<'_>) -> String {
    let rows = scope.trials.iter().map(|trial| {
        let sheet = &trial.balance;
        let mut cells = vec![cell(scope.name(trial))];
        let (open, between) = (sheet.open_sent + sheet.open_unsent, sheet.between_phases);
        cells.extend([sheet.scheduled, sheet.sent].map(|count| cell(text::count(count))));
        cells.push(cell(text::not_sent(sheet.never_sent, sheet.withheld)));
        let counts = [sheet.ok, sheet.failed, sheet.timed_out, sheet.late, open, between];
        cells.extend(counts.map(|count| cell(text::count(count))));
        cells.push(if sheet.balances {
            marked("good words", "balances")
        } else {
            marked("bad words", "does not balance")
        });
        ("", cells)
    });
    let headings = [
        "",
        "scheduled",
        "sent",
        "never sent",
        "ok",
        "failed",
        "timed out",
        "answered late",
        "open",
        "between phases",
        "",
    ];
    let caption = "scheduled = sent + never sent (+ open) · sent = ok + failed + timed out (+ open) · answered late is part of timed out · withheld: due beside those scheduled, and no user was free";
    table("wide", caption, &headings, rows.collect())
}

/// The instrument's own errors.
pub fn instrument(scope: &Scope<'_>) -> String {
    let rows = scope.trials.iter().flat_map(|trial| {
        let own = &trial.instrument;
        let late = format!("{} of {}", own.late_intervals.len(), own.intervals);
        let errors = [("release of packets", own.release_error), ("start of operations", own.lateness)];
        errors.into_iter().filter_map(move |(what, errors)| {
            let errors = errors?;
            let mut cells = vec![cell(scope.name(trial)), marked("words", what)];
            let values = [errors.p50_ns, errors.p99_ns, errors.p999_ns, errors.max_ns];
            cells.extend(values.map(|value| cell(format_ns(value as f64))));
            cells.push(marked(if own.too_late { "bad" } else { "" }, &late));
            Some(("", cells))
        })
    });
    let headings = ["", "error of", "p50", "p99", "p99.9", "max", "late intervals"];
    table("", "How late the emulator released packets and the generator started operations", &headings, rows.collect())
}

/// Who used the machine in each phase, as bars and numbers.
pub fn cpu(trial: &TrialFindings, name: &str) -> String {
    const NODES: [&str; 6] = ["blue", "orange", "green", "purple", "sky", "red"];
    let bar = |class: &str, what: &str, share: f64| {
        let title = format!("{what}: {:.1}%", share * 100.0);
        format!(
            r#"<i class="{class}" style="width:{:.2}%" title="{}"></i>"#,
            share.clamp(0.0, 1.0) * 100.0,
            escape(&title)
        )
    };
    let has_overlay = trial.instrument.cpu.iter().any(|row| row.overlay > 0.0);
    let rows = trial.instrument.cpu.iter().map(|row| {
        let mut parts = Vec::new();
        for ((node, share), class) in row.nodes.iter().zip(NODES.into_iter().cycle()) {
            parts.push((class, node.as_str(), *share));
        }
        parts.push(("ink-emulator", "emulator", row.emulator));
        parts.push(("ink-load", "load", row.load));
        parts.extend(has_overlay.then_some(("ink-overlay", "overlay", row.overlay)));
        let rest = row.instrument - row.emulator - row.load - row.overlay;
        parts.push(("ink-rest", "rest of Brownout", rest.max(0.0)));
        let programs = row.programs.unwrap_or(0.0);
        parts.push(("gray", "other", (row.other - programs).max(0.0)));
        parts.push(("ink-programs", "programs outside of the lab", programs));
        parts.push(("ink-stolen", "stolen", row.stolen));
        let bars: String = parts.iter().map(|(class, what, share)| bar(class, what, *share)).collect();
        let said: Vec<String> = parts.iter().map(|(_, what, share)| format!("{what} {:.0}%", share * 100.0)).collect();
        let full = if trial.instrument.saturated.contains(&row.phase) { "warn" } else { "" };
        let cells = vec![
            cell(&row.phase),
            marked(full, format!("{:.0}%", row.busy * 100.0)),
            markup(
                "bars",
                format!(r#"<div class="bar" role="img" aria-label="{}">{bars}</div>"#, escape(&said.join(", "))),
            ),
            marked("words small", said.join(" · ")),
            cell(text::or_none(row.hindered, |share| format!("{:.0}%", share * 100.0))),
        ];
        ("", cells)
    });
    let caption = format!(
        "CPU by phase, {name}: shares of the lab's processors; hindered: by how much longer the nodes' work took because of others"
    );
    table("wide", &caption, &["phase", "busy", "of the lab's processors", "", "hindered"], rows.collect())
}

/// All events of the run.
pub fn events(events: &[brownout_record::Event]) -> String {
    let rows = events.iter().map(|event| {
        let cells = vec![
            cell(format!("{:.3}s", event.at_ns as f64 / 1e9)),
            cell(format!("± {}", format_ns(event.error_ns as f64))),
            cell(event.trial.map_or(String::new(), |trial| trial.to_string())),
            marked("words", &event.kind),
            marked("words", &event.subject),
            marked("words log", &event.text),
        ];
        ("", cells)
    });
    table("wide", "Since the run's zero", &["at", "", "trial", "what", "whom", ""], rows.collect())
}

#[cfg(test)]
mod tests {
    use brownout_analysis::StandstillQuantile;

    use super::*;

    /// Ten stalls of 200 ms in a phase of 32 s.
    fn stalls() -> Standstill {
        let quantile =
            |quantile, least_ns, most_ns, measured_ns| StandstillQuantile { quantile, least_ns, most_ns, measured_ns };
        Standstill {
            stalls: 10,
            length_ns: 200_000_000,
            stalled: 0.0625,
            coordinated: 1.0 / 3.0,
            needed: Some(0.5),
            slower_than_ns: 50_000_000,
            least_share: 0.0156,
            most_share: Some(0.0234),
            measured_share: 0.0201,
            quantiles: vec![
                quantile(0.99, 104_000_000, Some(136_000_000), 117_000_000),
                quantile(1.0, 200_000_000, None, 203_000_000),
            ],
        }
    }

    #[test]
    fn what_stalls_cost_is_shown_beside_what_arithmetic_makes_of_it() {
        let rows = standstill_cells("3", &stalls());
        let rows: Vec<Vec<&str>> = rows.iter().map(|row| row.iter().map(String::as_str).collect()).collect();
        assert_eq!(rows[0], ["3", "slower than 50.0ms", "2.0%", "1.6%", "2.3%"]);
        assert_eq!(rows[1], ["3", "p99", "117ms", "104ms", "136ms"]);
        assert_eq!(rows[2][..4], ["3", "max", "203ms", "200ms"]);
        let words = standstill_words(&stalls());
        assert!(words.starts_with("10 stalls of 200ms (median), 6.2% of the phase"), "{words}");
        assert!(words.contains("coordinates 33.3% of the operations, and 50.0% with those"), "{words}");
        let alone = standstill_words(&Standstill { needed: None, ..stalls() });
        assert!(alone.ends_with("coordinates 33.3% of the operations"), "{alone}");
    }
}
