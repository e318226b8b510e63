//! The report: one HTML file that refers to nothing outside itself.

use brownout_analysis::{Factor, Findings, Outcome, TrialEvidence, TrialFindings, UnderTest, Validity};
use brownout_record::{Event, Run};

use crate::{
    ReportError, charts, clocks, database, detectors,
    escape::{escape, script_json},
    explained,
    figure::Figure,
    glossary, machines,
    markup::{details, terms},
    matrix,
    scope::Scope,
    search, svg, tables, text, tiles, under_test,
};

const STYLE: &str = include_str!("../assets/style.css");
const FIGURE_STYLE: &str = include_str!("../assets/figure.css");
const SCRIPT: &str = include_str!("../assets/script.js");

/// What a run says, as one HTML file.
pub fn html(run: &Run, findings: &Findings) -> Result<String, ReportError> {
    let experiment = run.document("experiment")?;
    let title = findings.question.as_ref().unwrap_or(&findings.name);
    let scopes = Scope::all(findings);
    let mut body = header(findings, &scopes) + &banner(findings);
    if let Some(found) = &findings.search {
        let drawn = search::figure(found).map(|drawn| figure(&drawn)).unwrap_or_default();
        body += &section("Search", &(drawn + &tables::search(found)));
    }
    match &scopes[..] {
        [scope] => {
            let evidence = read(run, scope)?;
            body += &(tiles::tiles(scope) + &warnings(findings) + &of_cell(scope, &evidence, usize::MAX));
        }
        scopes => {
            body += &warnings(findings);
            body += &section(under_test::CAPTION, &tables::under_test(scopes));
            // A search judges no cell by itself.
            if findings.search.is_none() {
                body += &section("All cells", &beside(findings, scopes));
            }
            body += &tables::detectors(scopes).map(|html| section(NOTICED, &html)).unwrap_or_default();
            for scope in scopes {
                let evidence = read(run, scope)?;
                let inner = format!("<p>{}</p>", escape(&scope.sentence)) + &tiles::tiles(scope);
                let inner = inner + &of_cell(scope, &evidence, DRAWN);
                body += &section(&format!("Cell {}", scope.cell), &details(&scope.text, &inner));
            }
        }
    }
    body += &background(findings, &run.events()?, experiment.as_deref());
    Ok(format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\">\
         <link rel=\"icon\" href=\"data:,\"><title>{}</title><style>{STYLE}{FIGURE_STYLE}</style></head>\
         <body><main>{body}</main><script>{SCRIPT}</script></body></html>\n",
        escape(title)
    ))
}

/// The title of what detectors made of the trials.
const NOTICED: &str = "Would anyone have noticed?";

/// Trials of a cell that are drawn over time where there are many cells: a page of all of them could not be opened.
const DRAWN: usize = 1;

/// What there is of a cell's trials.
pub fn read(run: &Run, scope: &Scope<'_>) -> Result<Vec<TrialEvidence>, ReportError> {
    let rows = run.trials()?;
    let own = rows.iter().filter(|row| scope.trials.iter().any(|trial| trial.trial == row.trial));
    Ok(own.map(|row| TrialEvidence::read(run, row)).collect::<Result<Vec<_>, _>>()?)
}

fn of_cell(scope: &Scope<'_>, evidence: &[TrialEvidence], drawn: usize) -> String {
    let mut body = over_time(scope, evidence, drawn);
    body += &section("Phases", &tables::phases(scope));
    body += &two_columns(scope, evidence);
    body += &explained::html(scope).unwrap_or_default();
    body += &detectors::html(scope).map(|table| section(NOTICED, &table)).unwrap_or_default();
    body += &proofs(scope);
    body += &encryption(scope);
    body += &database(scope);
    body += &clocks(scope);
    body += &machines(scope);
    body += &section("Balance sheet", &tables::balance(scope));
    body + &instrument(scope)
}

/// The cells beside each other, and what their factors do.
fn beside(findings: &Findings, scopes: &[Scope<'_>]) -> String {
    let sentences = scopes.iter().map(|scope| format!("<li>{}: {}</li>", escape(&scope.text), escape(&scope.sentence)));
    let sentences = format!("<ul>{}</ul>", sentences.collect::<String>());
    let factors = tables::factors(findings).unwrap_or_default();
    tables::cells_beside(findings, scopes) + &sentences + &factors + &tables::explained(scopes).unwrap_or_default()
}

fn section(title: &str, html: &str) -> String {
    format!("<section><h2>{}</h2>{html}</section>", escape(title))
}

fn header(findings: &Findings, scopes: &[Scope<'_>]) -> String {
    let mut facts = Vec::new();
    let mut lines = Vec::new();
    if let [scope] = scopes {
        let tested = UnderTest::of_cell(scope);
        lines.extend(tested.lines().into_iter().map(|(what, line)| format!("{what}: {line}")));
        facts.push(tested.database);
        facts.push(format!("load: {}", scope.load.text));
        lines.extend(scope.planned_faults.iter().cloned());
    } else {
        facts.push(format!("{} cells", scopes.len()));
        let of = |factor: &Factor| format!("{}: {}", factor.name, factor.levels.join(", "));
        if findings.search.is_none() {
            lines.extend(findings.design.factors.iter().map(of));
        }
    }
    facts.push(text::trials(findings));
    facts.push(text::date(findings.started_unix_ms));
    lines.extend(text::labs(findings));
    let lines = lines.iter().map(|line| format!("<p class=\"fault\">{}</p>", escape(line)));
    format!(
        "<header><p class=\"name\">Brownout · {}</p><h1>{}</h1><p class=\"facts\">{}</p>{}</header>",
        escape(&findings.name),
        escape(findings.question.as_ref().unwrap_or(&findings.name)),
        facts.iter().map(|fact| format!("<span>{}</span>", escape(fact))).collect::<String>(),
        lines.collect::<String>()
    )
}

fn banner(findings: &Findings) -> String {
    let verdict = &findings.verdict;
    let (class, sign, badge) = match (verdict.validity, verdict.exit_code) {
        (Validity::Valid, 0) => ("good", "✓", "valid evidence"),
        (Validity::Valid, 1) => ("warn", "!", "valid evidence, objective missed"),
        (Validity::Valid, _) => ("warn", "?", "valid evidence, no conclusion"),
        (Validity::Disturbed, _) => ("bad", "✗", "disturbed by other work"),
        (Validity::Invalid, _) => ("bad", "✗", "invalid evidence"),
        (Validity::Interrupted, _) => ("warn", "…", "interrupted"),
    };
    let mut more = text::more_reasons(verdict).to_vec();
    if let (Validity::Valid, [cell], None) = (verdict.validity, &findings.cells[..], &findings.search)
        && cell.effect.outcome != Outcome::NotJudged
    {
        more.push(cell.effect.reason.clone());
    }
    let more = more.iter().map(|reason| format!("<li>{}</li>", escape(reason))).collect::<String>();
    format!(
        "<section class=\"banner {class}\" aria-label=\"verdict\"><span class=\"sign\" aria-hidden=\"true\">{sign}</span>\
         <div><p class=\"badge\">{badge}</p><p class=\"sentence\">{}</p><ul>{more}</ul></div></section>",
        escape(&verdict.sentence)
    )
}

fn warnings(findings: &Findings) -> String {
    let deaths = findings.trials.iter().flat_map(|trial| {
        trial.deaths.iter().map(move |death| {
            let (class, why) = if death.of_its_disk { ("warn", text::OF_ITS_DISK) } else { ("bad", "") };
            format!(
                "<div class=\"note {class}\"><strong>Node {}{why} died in trial {}</strong><pre>{}</pre></div>",
                escape(&death.node),
                trial.label(),
                escape(&death.text)
            )
        })
    });
    let mut out: String = deaths.collect();
    if !findings.warnings.is_empty() {
        let items: String = findings.warnings.iter().map(|text| format!("<li>{}</li>", escape(text))).collect();
        out += &format!(
            "<div class=\"note warn\"><strong>Check before you trust the result</strong><ul>{items}</ul></div>"
        );
    }
    out
}

/// A figure with its title above and its values beneath the pointer.
fn figure(figure: &Figure) -> String {
    format!(
        "<figure class=\"card\"><figcaption>{}</figcaption>{}<script type=\"application/json\">{}</script></figure>",
        escape(&figure.title),
        svg::draw(figure),
        script_json(&svg::read_out(figure))
    )
}

/// One part per trial; the script turns them into tabs, without it they stand below each other.
fn per_trial(scope: &Scope<'_>, html: impl Fn(&TrialFindings) -> String) -> String {
    let part = |trial: &&TrialFindings| {
        let (number, name, html) = (trial.trial, escape(&scope.name(trial)), html(trial));
        format!("<div class=\"trial\" data-trial=\"{number}\" data-name=\"{name}\" aria-label=\"{name}\">{html}</div>")
    };
    scope.telling_first().trials.iter().map(part).collect()
}

fn over_time(scope: &Scope<'_>, evidence: &[TrialEvidence], most: usize) -> String {
    let mut shown = scope.telling_first();
    shown.trials.truncate(most);
    let drawn = |trial: &TrialFindings| {
        let evidence = evidence.iter().find(|evidence| evidence.row.trial == trial.trial);
        let figures = evidence.map(|evidence| charts::over_time(scope, evidence, trial));
        figures.iter().flatten().map(figure).collect::<String>()
    };
    let left = scope.trials.len() - shown.trials.len();
    let note = match left {
        0 => String::new(),
        left => format!(
            "<p>One trial is drawn; the other {left} can be had as files: brownout report RUN --figure trial-N-latency</p>"
        ),
    };
    section("Over time", &(per_trial(&shown, drawn) + &note))
}

/// Percentile curves of a cell: of its valid trials with its faults.
pub fn percentiles(scope: &Scope<'_>, evidence: &[TrialEvidence]) -> Figure {
    let valid = |evidence: &&TrialEvidence| scope.valid_trials.contains(&evidence.row.trial);
    let mut own: Vec<&TrialEvidence> = evidence.iter().filter(valid).collect();
    if own.is_empty() {
        own = evidence.iter().filter(|evidence| scope.own().any(|trial| trial.trial == evidence.row.trial)).collect();
    }
    let mut figure = charts::percentiles(scope, &own);
    if scope.findings.cells.len() > 1 {
        figure.id = format!("cell-{}-{}", scope.cell, figure.id);
    }
    figure
}

fn two_columns(scope: &Scope<'_>, evidence: &[TrialEvidence]) -> String {
    let curves = figure(&percentiles(scope, evidence));
    let mut right = tables::parts(scope, "coordinator", |phase| &phase.coordinators);
    right += &tables::parts(scope, "operation", |phase| &phase.statements);
    // Without a fault there is nothing to compare the baseline with.
    if !scope.planned_faults.is_empty() {
        right += &tables::goodput(scope);
    }
    right += &tables::figures(scope).unwrap_or_default();
    right += &tables::operations(scope).unwrap_or_default();
    right += &tables::closed_loop(scope).unwrap_or_default();
    right += &tables::standstill(scope).unwrap_or_default();
    section("Latency and goodput", &format!("<div class=\"columns\">{curves}<div class=\"card\">{right}</div></div>"))
}

fn encryption(scope: &Scope<'_>) -> String {
    if scope.trials.iter().all(|trial| trial.encryption.is_none()) {
        return String::new();
    }
    let panel = |trial: &TrialFindings| {
        let found = under_test::encrypted(trial).map(|(verdict, line)| {
            let class = tables::proof_class(verdict);
            format!("<p><span class=\"{class}\">{}</span>: {}</p>", text::proof(verdict), escape(&line))
        });
        found.unwrap_or_default()
    };
    section("Encryption", &per_trial(scope, panel))
}

fn proofs(scope: &Scope<'_>) -> String {
    if scope.trials.iter().all(|trial| trial.faults.is_empty()) {
        return String::new();
    }
    let panel = |trial: &TrialFindings| {
        let mut out = String::new();
        if let Some(delays) = matrix::delays(scope, trial) {
            out += &format!("<h3>One-way delays, {} (medians of the probes)</h3>{delays}", scope.name(trial));
        }
        for fault in &trial.faults {
            let class = tables::proof_class(fault.verdict);
            out += &format!(
                "<h3>Proof, {}: <span class=\"{class}\">{}</span></h3>",
                scope.name(trial),
                text::proof(fault.verdict)
            );
            let reasons = fault.reasons.iter().map(|reason| format!("<li class=\"bad\">{}</li>", escape(reason)));
            out += &format!("<ul>{}</ul>", reasons.collect::<String>());
            out += &tables::proof(fault);
        }
        out
    };
    section("Was the fault in force?", &per_trial(scope, panel))
}

fn database(scope: &Scope<'_>) -> String {
    if scope.trials.iter().all(|trial| trial.database.is_none()) {
        return String::new();
    }
    section("What the database says", &per_trial(scope, |trial| database::html(trial).unwrap_or_default()))
}

fn clocks(scope: &Scope<'_>) -> String {
    if scope.trials.iter().all(|trial| trial.clocks.is_empty()) {
        return String::new();
    }
    let of = |trial: &TrialFindings| clocks::html(trial).unwrap_or_default();
    section("How far hosts and their clocks are apart", &per_trial(scope, of))
}

fn machines(scope: &Scope<'_>) -> String {
    if scope.trials.iter().all(|trial| trial.machines.is_empty()) {
        return String::new();
    }
    section("Machines", &per_trial(scope, |trial| machines::html(trial).unwrap_or_default()))
}

fn instrument(scope: &Scope<'_>) -> String {
    let cpu = per_trial(scope, |trial| tables::cpu(trial, &scope.name(trial)));
    section("The instrument itself", &(tables::instrument(scope) + &cpu))
}

fn background(findings: &Findings, events: &[Event], experiment: Option<&str>) -> String {
    let mut out = details("All events", &tables::events(events));
    if let Some(environment) = &findings.environment {
        let rows = [
            ("Brownout", environment.version.clone()),
            ("Kernel", environment.kernel.clone()),
            ("Processor", format!("{} × {}", environment.cores, environment.cpu)),
            ("Memory", format!("{:.1} GiB", environment.memory as f64 / f64::from(1 << 30))),
            ("Clock source", environment.clock_source.clone()),
            ("Privilege", environment.privilege.clone()),
            ("Emulator's scheduling", environment.emulator_scheduling.clone()),
            ("Idle processors", environment.idle.clone()),
            ("Congestion control", environment.congestion_control.clone()),
            ("Java", environment.java.clone()),
            ("Seed", environment.seed.to_string()),
        ];
        // Not every database runs on Java, nor every cluster on a lab's network.
        let rows = rows.into_iter().filter(|(_, value)| !value.is_empty());
        let settings = format!(
            "<h3>{} settings</h3><pre>{}</pre>",
            escape(findings.cells.first().map_or("", |cell| &cell.database)),
            escape(&environment.system_settings)
        );
        out += &details("Environment and settings", &(terms(rows) + &settings));
    }
    if let Some(experiment) = experiment {
        let file = format!("<pre>{}</pre>", escape(experiment));
        out += &if findings.set.is_empty() {
            details("The experiment file", &file)
        } else {
            let set: String = findings.set.iter().map(|set| format!("--set {}\n", escape(set))).collect();
            let set = format!("<p>Changed for this run, after the file was read:</p><pre>{set}</pre>");
            details("The experiment file, and what --set changed in it", &(set + &file))
        };
    }
    out += &details("What the words mean", &terms(glossary::TERMS.map(|(term, meaning)| (term, meaning.to_owned()))));
    section("Background", &out)
}
