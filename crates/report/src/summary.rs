//! The summary on the terminal.

use brownout_analysis::{FaultFindings, Findings, Part, PhaseFindings, Proof, TrialFindings, Validity, phase};
use brownout_units::{Delay, format_ns};

use crate::{
    page::{Page, Style},
    proofs,
    table::{Paint, Table},
    tables, text,
};

/// What a run says, as text. Ends with a line feed; where files lie is the caller's to add.
pub fn summary(findings: &Findings, style: Style) -> String {
    let mut page = Page::new(style);
    page.head(findings);
    page.phases(findings);
    page.coordinators(findings);
    // Without a fault there is nothing to compare the baseline with.
    if !findings.planned_faults.is_empty() {
        page.goodput(findings);
        page.operations(findings);
    }
    page.closed_loop(findings);
    page.standstill(findings);
    page.explained(findings);
    page.proofs(findings);
    page.balance(findings);
    page.instrument(findings);
    page.notes(findings);
    page.verdict(findings);
    page.out
}

/// The parts of a summary.
impl Page {
    fn head(&mut self, findings: &Findings) {
        self.line(Paint::Bold, findings.question.as_ref().unwrap_or(&findings.name));
        let nodes: Vec<&str> =
            findings.hosts.iter().filter(|host| host.role == "node").map(|host| host.name.as_str()).collect();
        let load = &findings.load;
        self.line(
            Paint::Plain,
            &format!(
                "{} on {} · load: {} · time-out {}",
                findings.system,
                nodes.join(" "),
                load.text,
                Delay::from_ns(load.timeout_ns)
            ),
        );
        let objective = &findings.objective;
        let within = Delay::from_ns(objective.response_ns);
        let whose = text::whose(objective);
        let text = if objective.share > 0.0 {
            let phases = if objective.phases.is_empty() { "no phase".to_owned() } else { objective.phases.join(", ") };
            format!(
                "objective: {} of {whose} answered within {within} of their intended start (must hold in: {phases})",
                text::share(objective.share)
            )
        } else {
            format!("objective: none; good is what is answered within {within} of its intended start")
        };
        self.line(Paint::Plain, &text);
        for line in &findings.network {
            self.line(Paint::Plain, &format!("network: {line}"));
        }
        for fault in &findings.planned_faults {
            self.line(Paint::Plain, &format!("fault: {fault}"));
        }
        for set in &findings.set {
            self.line(Paint::Plain, &format!("set: {set}"));
        }
        let date = text::date(findings.started_unix_ms);
        self.line(
            Paint::Dim,
            &format!("{} · {} of {} trials · {date}", findings.name, findings.trials.len(), findings.planned_trials),
        );
    }

    fn phases(&mut self, findings: &Findings) {
        self.section(&format!(
            "Phases (by intended start; response times from it, of those {}; p99 due: of all due)",
            text::SHOWN
        ));
        let mut table = Table::new(&[
            "phase",
            "offered/s",
            "ok/s",
            "failed",
            "timed out",
            "p50",
            "p95",
            "p99",
            "p99.9",
            "max",
            "p99 due",
        ]);
        for union in findings.phases.iter().filter(|phase| phase.name != phase::SET_UP) {
            table.row(Paint::Plain, phase_cells(&union.name, union));
            if findings.trials.len() > 1 {
                for trial in &findings.trials {
                    if let Some(own) = trial.phases.iter().find(|own| own.name == union.name) {
                        table.row(Paint::Dim, phase_cells(&format!("  trial {}", trial.trial), own));
                    }
                }
            }
        }
        self.table(&table);
        for trial in &findings.trials {
            if let Some(warm_up) = trial.phases.iter().find(|phase| phase.name == phase::WARM_UP) {
                let length = text::seconds(warm_up.duration_ns as f64);
                self.line(
                    Paint::Dim,
                    &format!("  trial {}: the warm-up ended after {length}: {}", trial.trial, text::ended(warm_up)),
                );
            }
        }
    }

    fn coordinators(&mut self, findings: &Findings) {
        let phases: Vec<&PhaseFindings> =
            findings.phases.iter().filter(|phase| phase::MEASURED.contains(&phase.name.as_str())).collect();
        for (what, parts) in
            [("coordinator", coordinators as fn(&PhaseFindings) -> &[Part]), ("operation", |phase| &phase.statements)]
        {
            let mut names: Vec<&str> =
                phases.iter().flat_map(|phase| parts(phase)).map(|part| part.name.as_str()).collect();
            names.sort_unstable();
            names.dedup();
            if names.is_empty() {
                continue;
            }
            self.section(&format!("Response p50 / p99 by {what}, of those {}", text::SHOWN));
            let headings = phases.iter().map(|phase| phase.name.as_str());
            let mut table = Table::new(&[what].into_iter().chain(headings).collect::<Vec<_>>());
            for name in names {
                let mut cells = vec![name.to_owned()];
                for phase in &phases {
                    let part = parts(phase).iter().find(|part| part.name == name);
                    cells.push(text::or_none(part, text::part));
                }
                table.row(Paint::Plain, cells);
            }
            self.table(&table);
        }
    }

    fn goodput(&mut self, findings: &Findings) {
        let within = Delay::from_ns(findings.objective.response_ns);
        let whose = text::whose(&findings.objective);
        self.section(&format!("Goodput ({whose} answered ok within {within}, per second)"));
        let mut table =
            Table::new(&["trial", "baseline", "fault", "degradation", "residual", "back to normal after healing"])
                .left(5);
        for trial in &findings.trials {
            let effect = &trial.effect;
            table.row(
                Paint::Plain,
                vec![
                    trial.trial.to_string(),
                    text::or_none(effect.baseline, text::rate),
                    text::or_none(effect.fault, text::rate),
                    text::or_none(effect.degradation, text::share),
                    text::or_none(effect.residual, |residual| format!("{residual:.3}")),
                    text::recovery(effect),
                ],
            );
        }
        self.table(&table);
        let effect = &findings.verdict.effect;
        if let Some((low, high)) = effect.interval {
            let (low, high) = (text::share(low), text::share(high));
            self.line(Paint::Dim, &format!("  95% interval of the mean degradation: {low} … {high}"));
        }
        self.line(
            Paint::Dim,
            &format!(
                "  noise floor (halves of the same baseline differ by up to): {}; differences count from {}",
                text::share(effect.noise_floor),
                text::share(effect.threshold)
            ),
        );
    }

    /// What the fault took from each operation, where there are several.
    fn operations(&mut self, findings: &Findings) {
        if findings.operations.len() < 2 {
            return;
        }
        let within = Delay::from_ns(findings.objective.response_ns);
        self.section(&format!("Goodput by operation (answered ok within {within}, per second)"));
        let mut table =
            Table::new(&["operation", "baseline", "fault", "degradation", "by trial, least and most"]).left(4);
        for one in &findings.operations {
            let trials = text::or_none(one.trials, text::shares);
            table.row(
                Paint::Plain,
                vec![
                    one.name.clone(),
                    text::or_none(one.baseline, text::rate),
                    text::or_none(one.fault, text::rate),
                    text::or_none(one.degradation, text::share),
                    trials,
                ],
            );
        }
        self.table(&table);
    }

    fn closed_loop(&mut self, findings: &Findings) {
        let Some(threads) = findings.load.threads else { return };
        self.section(&format!("Closed loop: {}", tables::closed_loop_words(threads)));
        let mut table = Table::new(&[
            "trial",
            "loss of throughput",
            "loss that the delay alone explains",
            "extra delay of a mean operation",
        ]);
        for (trial, own) in findings.trials.iter().filter_map(|trial| Some((trial, trial.closed_loop.as_ref()?))) {
            table.row(
                Paint::Plain,
                vec![
                    trial.trial.to_string(),
                    text::or_none(own.measured_loss, text::share),
                    text::or_none(own.predicted_loss, text::share),
                    text::or_none(own.extra_delay_ns, format_ns),
                ],
            );
        }
        self.table(&table);
        let why = findings.trials.iter().find_map(|trial| trial.closed_loop.as_ref()?.inapplicable.clone());
        if let Some(why) = why {
            self.line(Paint::Dim, &format!("  no prediction: {why}"));
        }
    }

    fn standstill(&mut self, findings: &Findings) {
        let all = || findings.trials.iter().filter_map(|trial| Some((trial, trial.standstill.as_ref()?)));
        if all().next().is_none() {
            return;
        }
        self.section(&tables::standstill_caption());
        let mut table = Table::new(&tables::STANDSTILL_HEADINGS);
        for (trial, own) in all() {
            for cells in tables::standstill_cells(trial.trial, own) {
                table.row(Paint::Plain, cells.to_vec());
            }
        }
        self.table(&table);
        for (trial, own) in all() {
            self.line(Paint::Dim, &format!("  trial {}: {}", trial.trial, tables::standstill_words(own)));
        }
    }

    fn proofs(&mut self, findings: &Findings) {
        for trial in &findings.trials {
            for fault in &trial.faults {
                self.proof(findings, trial, fault);
            }
        }
    }

    fn proof(&mut self, findings: &Findings, trial: &TrialFindings, fault: &FaultFindings) {
        let of = if findings.trials.len() > 1 { format!(", trial {}", trial.trial) } else { String::new() };
        self.section(&format!("Proof{of}: {}", fault.text));
        let ramp = fault.severities.len() > 1;
        let last = if ramp { "severity" } else { "after" };
        let mut table = Table::new(&["what", "where", "asked", "measured", "±", last, "verdict"]).left(1).left(6);
        for line in proofs::lines(fault) {
            let row = line.row;
            let last = if ramp { text::shorten(line.severity, 14) } else { proofs::after(row) };
            let cells = vec![
                line.what.to_owned(),
                text::shorten(&line.place, 34),
                proofs::asked(row),
                proofs::measured(row),
                proofs::allowed(row),
                last,
                text::proof(row.verdict).to_owned(),
            ];
            table.row(proof_paint(row.verdict), cells);
        }
        self.table(&table);
        let verdict = format!("  {}: {}", text::proof(fault.verdict), fault.effect);
        self.line(if fault.verdict == Proof::Proven { Paint::Good } else { Paint::Bad }, &verdict);
        for reason in &fault.reasons {
            self.line(Paint::Bad, &format!("  {reason}"));
        }
    }

    fn balance(&mut self, findings: &Findings) {
        self.section("Balance sheet (scheduled = sent + never sent; sent = ok + failed + timed out)");
        let headings = ["trial", "scheduled", "sent", "never sent", "ok", "failed", "timed out", "late", "open", ""];
        let mut table = Table::new(&headings).left(9);
        for trial in &findings.trials {
            let sheet = &trial.balance;
            let mut cells = vec![trial.trial.to_string()];
            cells.extend([sheet.scheduled, sheet.sent].map(text::count));
            cells.push(text::not_sent(sheet.never_sent, sheet.withheld));
            let open = sheet.open_sent + sheet.open_unsent;
            cells.extend([sheet.ok, sheet.failed, sheet.timed_out, sheet.late, open].map(text::count));
            cells.push(if sheet.balances { "balances" } else { "DOES NOT BALANCE" }.to_owned());
            table.row(if sheet.balances { Paint::Plain } else { Paint::Bad }, cells);
        }
        self.table(&table);
        for error in findings.trials.iter().flat_map(|trial| &trial.balance.errors) {
            self.line(Paint::Bad, &format!("  {error}"));
        }
    }

    fn instrument(&mut self, findings: &Findings) {
        self.section("The instrument's own error, and who used the machine");
        let mut table = Table::new(&["trial", "error of", "p50", "p99", "p99.9", "max", "late intervals"]).left(1);
        for trial in &findings.trials {
            let own = &trial.instrument;
            let late = format!("{} of {}", own.late_intervals.len(), own.intervals);
            for (what, errors) in [("release of packets", own.release_error), ("start of operations", own.lateness)] {
                let Some(errors) = errors else { continue };
                let mut cells = vec![trial.trial.to_string(), what.to_owned()];
                let values = [errors.p50_ns, errors.p99_ns, errors.p999_ns, errors.max_ns];
                cells.extend(values.map(|value| format_ns(value as f64)));
                cells.push(late.clone());
                table.row(if own.too_late { Paint::Bad } else { Paint::Plain }, cells);
            }
        }
        self.table(&table);
        for trial in &findings.trials {
            let cpu = &trial.instrument.cpu;
            let Some(nodes) = cpu.iter().map(|row| row.nodes.keys().cloned().collect::<Vec<_>>()).max_by_key(Vec::len)
            else {
                continue;
            };
            let title =
                if findings.trials.len() > 1 { format!("CPU, trial {}", trial.trial) } else { "CPU".to_owned() };
            let mut headings = vec![title.as_str(), "busy"];
            headings.extend(nodes.iter().map(String::as_str));
            headings.extend(["emulator", "load", "instrument", "programs", "other", "stolen", "hindered"]);
            let mut table = Table::new(&headings);
            for row in cpu {
                let mut shares = vec![Some(row.busy)];
                shares.extend(nodes.iter().map(|node| row.nodes.get(node).copied()));
                let rest = row.other - row.programs.unwrap_or(0.0);
                shares.extend([row.emulator, row.load, row.instrument].map(Some));
                shares.extend([row.programs, Some(rest.max(0.0)), Some(row.stolen), row.hindered]);
                let mut cells = vec![row.phase.clone()];
                cells.extend(
                    shares.into_iter().map(|share| text::or_none(share, |share| format!("{:.0}%", share * 100.0))),
                );
                let full = trial.instrument.saturated.contains(&row.phase);
                table.row(if full { Paint::Warn } else { Paint::Plain }, cells);
            }
            self.table(&table);
        }
        self.line(
            Paint::Dim,
            "  programs: those outside of the lab; hindered: by how much longer the nodes' work took because of others",
        );
    }

    fn notes(&mut self, findings: &Findings) {
        let deaths: Vec<_> =
            findings.trials.iter().flat_map(|trial| trial.deaths.iter().map(move |death| (trial, death))).collect();
        for (trial, death) in deaths {
            self.section(&format!("Node {} died", death.node));
            let at = text::seconds(death.at_ns.saturating_sub(trial.starts_ns) as f64);
            self.line(Paint::Bad, &format!("  trial {}, {at} after its start; its last lines:", trial.trial));
            for line in death.text.lines() {
                self.line(Paint::Dim, &format!("  {line}"));
            }
        }
        if !findings.warnings.is_empty() {
            self.section("Check before you trust the result");
            for warning in &findings.warnings {
                self.line(Paint::Warn, &format!("- {warning}"));
            }
        }
    }

    fn verdict(&mut self, findings: &Findings) {
        let verdict = &findings.verdict;
        self.section("Verdict");
        let paint = match (verdict.validity, verdict.exit_code) {
            (Validity::Valid, 0) => Paint::Good,
            (Validity::Interrupted, _) => Paint::Warn,
            _ => Paint::Bad,
        };
        self.line(paint, &verdict.sentence);
        for reason in text::more_reasons(verdict) {
            self.line(paint, &format!("- {reason}"));
        }
        for miss in verdict.objective_misses.iter().skip(1) {
            let (share, asked) = miss.percents();
            self.line(paint, &format!("- trial {}, {}: {share} good of {asked} asked", miss.trial, miss.phase));
        }
        if verdict.validity == Validity::Valid {
            self.line(Paint::Dim, &format!("  {}", verdict.effect.reason));
        }
    }
}

fn coordinators(phase: &PhaseFindings) -> &[Part] {
    &phase.coordinators
}

fn phase_cells(name: &str, phase: &PhaseFindings) -> Vec<String> {
    let mut cells = vec![name.to_owned()];
    let rates = phase.rates;
    cells.push(text::or_none(rates, |rates| text::rate(rates.offered)));
    cells.push(text::or_none(rates, |rates| text::rate(rates.delivered)));
    cells.extend([text::count(phase.counts.failed), text::count(phase.counts.timed_out)]);
    let response = phase.response;
    let values = response.map(|response| [response.p50, response.p95, response.p99, response.p999, response.max]);
    cells.extend((0..5).map(|at| text::or_none(values, |values| text::quantile(values[at]))));
    cells.push(text::or_none(phase.due, |due| text::limit(due.p99)));
    cells
}

fn proof_paint(verdict: Proof) -> Paint {
    if verdict == Proof::Proven { Paint::Plain } else { Paint::Bad }
}
