//! The summary on the terminal.

use brownout_analysis::{
    Cpu, FaultFindings, Findings, Part, PhaseFindings, Proof, SearchFindings, TrialFindings, UnderTest, Validity, phase,
};
use brownout_units::{Delay, format_ns};

use crate::{
    cells, detectors, explained,
    page::{Page, Style},
    proofs,
    scope::Scope,
    search,
    table::{Paint, Table},
    tables, text, under_test,
};

/// What a run says, as text. Ends with a line feed; where files lie is the caller's to add.
pub fn summary(findings: &Findings, style: Style) -> String {
    let mut page = Page::new(style);
    let scopes = Scope::all(findings);
    page.title(findings);
    match (&findings.search, &scopes[..]) {
        (Some(found), scopes) => page.search(found, scopes),
        (None, [scope]) => page.cell(scope, &scope.brief()),
        (None, scopes) => page.cells(findings, scopes),
    }
    page.notes(findings);
    page.verdict(findings);
    page.out
}

/// What a run says of one of its cells; none if it has no such cell.
pub fn cell(findings: &Findings, number: u32, style: Style) -> Option<String> {
    let scope = Scope::all(findings).into_iter().find(|scope| scope.cell == number)?;
    let mut page = Page::new(style);
    page.title(findings);
    page.cell(&scope, &scope);
    page.section("Verdict");
    page.line(Paint::Plain, &scope.sentence);
    Some(page.out)
}

/// The parts of a summary.
impl Page {
    fn title(&mut self, findings: &Findings) {
        self.line(Paint::Bold, findings.question.as_ref().unwrap_or(&findings.name));
        for set in &findings.set {
            self.line(Paint::Plain, &format!("set: {set}"));
        }
        let date = text::date(findings.started_unix_ms);
        self.line(Paint::Dim, &format!("{} · {} · {date}", findings.name, text::trials(findings)));
        text::labs(findings).iter().for_each(|labs| self.line(Paint::Dim, labs));
    }

    /// All of one cell; of its trials `few` are shown with all their figures.
    fn cell(&mut self, scope: &Scope<'_>, few: &Scope<'_>) {
        self.head(scope);
        if few.trials.len() < scope.trials.len() {
            self.line(
                Paint::Dim,
                &format!(
                    "of {} attempts at trials {} are shown with all their figures: the first valid ones with the faults and \
                     without, and those that no attempt has made valid; all of them: brownout show RUN --cell {}, the report, \
                     and --json",
                    scope.trials.len(),
                    few.trials.len(),
                    scope.cell
                ),
            );
        }
        self.phases(few);
        self.coordinators(scope);
        // Without a fault there is nothing to compare the baseline with.
        if !scope.planned_faults.is_empty() {
            self.goodput(scope);
            self.operations(scope);
        }
        self.closed_loop(few);
        self.standstill(few);
        self.explained(few);
        detectors::summary(self, few);
        self.proofs(few);
        self.encryption(few);
        self.database(few.trials.iter().map(|trial| (few.name(trial), *trial)));
        self.clocks(few.trials.iter().map(|trial| (few.name(trial), *trial)));
        self.machines(few.trials.iter().map(|trial| (few.name(trial), *trial)));
        self.meanwhile(few.trials.iter().map(|trial| (few.name(trial), *trial)));
        self.balance(few);
        self.instrument(few);
    }

    /// Many of them beside each other.
    fn cells(&mut self, findings: &Findings, scopes: &[Scope<'_>]) {
        for factor in &findings.design.factors {
            self.line(Paint::Plain, &format!("varies: {}: {}", factor.name, factor.levels.join(", ")));
        }
        self.section(under_test::CAPTION);
        under_test::lines(scopes).iter().for_each(|line| self.line(Paint::Plain, line));
        self.section(&cells::caption(findings));
        self.painted(&cells::HEADINGS, cells::rows(scopes));
        self.factors(findings);
        let losses = explained::beside(scopes);
        if !losses.is_empty() {
            self.section(explained::BESIDE);
            self.painted(&explained::BESIDE_HEADINGS, losses);
        }
        self.detectors(scopes);
        self.section("One by one (all of a cell: brownout show RUN --cell N)");
        for scope in scopes {
            self.line(Paint::Plain, &format!("{:>3}  {}: {}", scope.cell, scope.text, scope.sentence));
        }
    }

    /// What each factor does to each figure, and what two do together where that is significant.
    fn factors(&mut self, findings: &Findings) {
        let all = cells::factors(findings);
        if all.is_empty() {
            return;
        }
        self.section(&cells::factors_caption());
        for factors in all {
            self.line(Paint::Plain, &format!("{}:", factors.caption()));
            self.painted(&cells::FACTOR_HEADINGS, factors.telling());
            if factors.left_out() > 0 {
                let text = format!(
                    "  of {} pairs no joint effect was found; all are in the report and in --json",
                    factors.left_out()
                );
                self.line(Paint::Dim, &text);
            }
        }
    }

    /// What a search has found, and what it tried.
    fn search(&mut self, found: &SearchFindings, scopes: &[Scope<'_>]) {
        if let Some(first) = scopes.first() {
            self.head(first);
        }
        self.section(&search::caption(found));
        self.painted(&search::answer_headings(found), search::answers(found));
        self.section("What was tried (all of a cell: brownout show RUN --cell N)");
        self.painted(&search::level_headings(found), search::levels(found));
        for scope in scopes {
            self.line(Paint::Dim, &format!("{:>3}  {}: {}", scope.cell, scope.text, scope.sentence));
        }
        self.detectors(scopes);
    }

    /// Whether anyone would have noticed, by cell.
    fn detectors(&mut self, scopes: &[Scope<'_>]) {
        for beside in detectors::beside(scopes) {
            self.section(beside.caption);
            self.painted(&beside.headings, beside.rows);
        }
    }

    fn painted(&mut self, headings: &[&str], rows: Vec<(Paint, Vec<String>)>) {
        let mut table = Table::new(headings).left(headings.len() - 1);
        rows.into_iter().for_each(|(paint, cells)| table.row(paint, cells));
        self.table(&table);
    }

    fn head(&mut self, scope: &Scope<'_>) {
        if !scope.text.is_empty() {
            self.line(Paint::Bold, &format!("cell {}: {}", scope.cell, scope.text));
        }
        let (tested, load) = (UnderTest::of_cell(scope), &scope.load);
        let time_out = Delay::from_ns(load.timeout_ns);
        self.line(Paint::Plain, &format!("{} · load: {} · time-out {time_out}", tested.database, load.text));
        let objective = &scope.objective;
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
        for (what, line) in tested.lines() {
            self.line(Paint::Plain, &format!("{what}: {line}"));
        }
        for fault in &scope.planned_faults {
            self.line(Paint::Plain, &format!("fault: {fault}"));
        }
    }

    fn phases(&mut self, scope: &Scope<'_>) {
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
        for union in scope.phases.iter().filter(|phase| phase.name != phase::SET_UP) {
            table.row(Paint::Plain, phase_cells(&union.name, union));
            if scope.trials.len() > 1 {
                for trial in &scope.trials {
                    if let Some(own) = trial.phases.iter().find(|own| own.name == union.name) {
                        table.row(Paint::Dim, phase_cells(&format!("  {}", scope.name(trial)), own));
                    }
                }
            }
        }
        self.table(&table);
        for trial in &scope.trials {
            if let Some(warm_up) = trial.phases.iter().find(|phase| phase.name == phase::WARM_UP) {
                let length = text::seconds(warm_up.duration_ns as f64);
                self.line(
                    Paint::Dim,
                    &format!("  {}: the warm-up ended after {length}: {}", scope.name(trial), text::ended(warm_up)),
                );
            }
        }
    }

    fn coordinators(&mut self, scope: &Scope<'_>) {
        let phases: Vec<&PhaseFindings> =
            scope.phases.iter().filter(|phase| phase::MEASURED.contains(&phase.name.as_str())).collect();
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

    fn goodput(&mut self, scope: &Scope<'_>) {
        let within = Delay::from_ns(scope.objective.response_ns);
        let whose = text::whose(&scope.objective);
        self.section(&format!("Goodput ({whose} answered ok within {within}, per second)"));
        let mut table =
            Table::new(&["trial", "baseline", "fault", "degradation", "residual", "back to normal after healing"])
                .left(5);
        for trial in &scope.trials {
            let effect = &trial.effect;
            table.row(
                Paint::Plain,
                vec![
                    scope.name(trial),
                    text::or_none(effect.baseline, text::rate),
                    text::or_none(effect.fault, text::rate),
                    text::or_none(effect.degradation, text::share),
                    text::or_none(effect.residual, |residual| format!("{residual:.3}")),
                    text::recovery(effect),
                ],
            );
        }
        self.table(&table);
        if let Some(over) = &scope.recovery {
            let text = text::recovery_over_trials(over);
            self.line(Paint::Dim, &format!("  back to normal, of {} trials: {text}", over.trials));
        }
        let figures = cells::figures(scope);
        if !figures.is_empty() {
            self.section(&cells::figures_caption());
            self.painted(&cells::FIGURE_HEADINGS, figures);
        }
    }

    /// What the fault took from each operation, where there are several.
    fn operations(&mut self, scope: &Scope<'_>) {
        if scope.operations.len() < 2 {
            return;
        }
        let within = Delay::from_ns(scope.objective.response_ns);
        self.section(&format!("Goodput by operation (answered ok within {within}, per second)"));
        let mut table =
            Table::new(&["operation", "baseline", "fault", "degradation", "by trial, least and most"]).left(4);
        for one in &scope.operations {
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

    fn closed_loop(&mut self, scope: &Scope<'_>) {
        let Some(words) = tables::closed_loop_words(&scope.load) else { return };
        self.section(&format!("Closed loop: {words}"));
        let mut table = Table::new(&[
            "trial",
            "loss of throughput",
            "loss that the delay alone explains",
            "extra delay of a mean operation",
        ]);
        for (trial, own) in scope.trials.iter().filter_map(|trial| Some((trial, trial.closed_loop.as_ref()?))) {
            table.row(
                Paint::Plain,
                vec![
                    trial.label(),
                    text::or_none(own.measured_loss, text::share),
                    text::or_none(own.predicted_loss, text::share),
                    text::or_none(own.extra_delay_ns, format_ns),
                ],
            );
        }
        // Beside an open load nothing is told of single trials.
        if scope.load.closed_beside_open().is_empty() {
            self.table(&table);
        }
        let why = scope.trials.iter().find_map(|trial| trial.closed_loop.as_ref()?.inapplicable.clone());
        if let Some(why) = why {
            self.line(Paint::Dim, &format!("  no prediction: {why}"));
        }
    }

    fn standstill(&mut self, scope: &Scope<'_>) {
        let all = || scope.trials.iter().filter_map(|trial| Some((trial, trial.standstill.as_ref()?)));
        if all().next().is_none() {
            return;
        }
        self.section(&tables::standstill_caption());
        let mut table = Table::new(&tables::STANDSTILL_HEADINGS);
        for (trial, own) in all() {
            for cells in tables::standstill_cells(&trial.label(), own) {
                table.row(Paint::Plain, cells.to_vec());
            }
        }
        self.table(&table);
        for (trial, own) in all() {
            self.line(Paint::Dim, &format!("  {}: {}", scope.name(trial), tables::standstill_words(own)));
        }
    }

    fn proofs(&mut self, scope: &Scope<'_>) {
        for trial in &scope.trials {
            for fault in &trial.faults {
                self.proof(scope, trial, fault);
            }
        }
    }

    fn encryption(&mut self, scope: &Scope<'_>) {
        for trial in &scope.trials {
            if let Some((verdict, line)) = under_test::encrypted(trial) {
                let of = if scope.trials.len() > 1 { format!(", {}", scope.name(trial)) } else { String::new() };
                self.section(&format!("Encryption{of}"));
                self.line(proof_paint(verdict), &format!("  {}: {line}", text::proof(verdict)));
            }
        }
    }

    fn proof(&mut self, scope: &Scope<'_>, trial: &TrialFindings, fault: &FaultFindings) {
        let of = if scope.trials.len() > 1 { format!(", {}", scope.name(trial)) } else { String::new() };
        self.section(&format!("Proof{of}: {}", fault.text));
        let ramp = fault.severities.len() > 1;
        let last = if ramp { "severity" } else { "after" };
        let mut table = Table::new(&["what", "where", "asked", "measured", "±", last, "verdict"]).left(1).left(6);
        for line in proofs::lines(fault) {
            let row = line.row;
            let last = if ramp { text::shorten(line.severity, 14) } else { proofs::after(row) };
            let cells = vec![
                line.what.to_owned(),
                text::shorten(&line.subject, 34),
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

    fn balance(&mut self, scope: &Scope<'_>) {
        self.section("Balance sheet (scheduled = sent + never sent; sent = ok + failed + timed out)");
        let headings = ["trial", "scheduled", "sent", "never sent", "ok", "failed", "timed out", "late", "open", ""];
        let mut table = Table::new(&headings).left(9);
        for trial in &scope.trials {
            let sheet = &trial.balance;
            let mut cells = vec![trial.label()];
            cells.extend([sheet.scheduled, sheet.sent].map(text::count));
            cells.push(text::not_sent(sheet.never_sent, sheet.withheld));
            let open = sheet.open_sent + sheet.open_unsent;
            cells.extend([sheet.ok, sheet.failed, sheet.timed_out, sheet.late, open].map(text::count));
            cells.push(if sheet.balances { "balances" } else { "DOES NOT BALANCE" }.to_owned());
            table.row(if sheet.balances { Paint::Plain } else { Paint::Bad }, cells);
        }
        self.table(&table);
        for error in scope.trials.iter().flat_map(|trial| &trial.balance.errors) {
            self.line(Paint::Bad, &format!("  {error}"));
        }
    }

    fn instrument(&mut self, scope: &Scope<'_>) {
        self.section("The instrument's own error, and who used the machine");
        let mut table = Table::new(&["trial", "error of", "p50", "p99", "p99.9", "max", "late intervals"]).left(1);
        for trial in &scope.trials {
            let own = &trial.instrument;
            let late = format!("{} of {}", own.late_intervals.len(), own.intervals);
            for (what, errors) in [("release of packets", own.release_error), ("start of operations", own.lateness)] {
                let Some(errors) = errors else { continue };
                let mut cells = vec![trial.label(), what.to_owned()];
                let values = [errors.p50_ns, errors.p99_ns, errors.p999_ns, errors.max_ns];
                cells.extend(values.map(|value| format_ns(value as f64)));
                cells.push(late.clone());
                table.row(if own.too_late { Paint::Bad } else { Paint::Plain }, cells);
            }
        }
        self.table(&table);
        for trial in &scope.trials {
            let cpu = &trial.instrument.cpu;
            let Some(nodes) = cpu.iter().map(|row| row.nodes.keys().cloned().collect::<Vec<_>>()).max_by_key(Vec::len)
            else {
                continue;
            };
            let title = if scope.trials.len() > 1 { format!("CPU, {}", scope.name(trial)) } else { "CPU".to_owned() };
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
            // One column more would not fit.
            if cpu.iter().any(|row| row.overlay > 0.0) {
                let of = |row: &Cpu| format!("{:.0}% ({})", row.overlay * 100.0, row.phase);
                let shares: Vec<String> = cpu.iter().map(of).collect();
                self.line(Paint::Plain, &format!("  the overlay, of the instrument's: {}", shares.join(", ")));
            }
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
            let (paint, why) = if death.of_its_disk { (Paint::Warn, text::OF_ITS_DISK) } else { (Paint::Bad, "") };
            self.section(&format!("Node {}{why} died", death.node));
            let at = text::seconds(death.at_ns.saturating_sub(trial.starts_ns) as f64);
            self.line(paint, &format!("  trial {}, {at} after its start; its last lines:", trial.label()));
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
        if let (Validity::Valid, [cell], None) = (verdict.validity, &findings.cells[..], &findings.search) {
            self.line(Paint::Dim, &format!("  {}", cell.effect.reason));
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
