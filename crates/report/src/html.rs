//! The report: one HTML file that refers to nothing outside itself.

use brownout_analysis::{Findings, Outcome, TrialEvidence, TrialFindings, Validity};
use brownout_record::{Event, Run};

use crate::{
    ReportError, charts,
    escape::{escape, script_json},
    explained,
    figure::Figure,
    glossary,
    markup::{details, terms},
    matrix, svg, tables, text, tiles,
};

const STYLE: &str = include_str!("../assets/style.css");
const FIGURE_STYLE: &str = include_str!("../assets/figure.css");
const SCRIPT: &str = include_str!("../assets/script.js");

/// What a run says, as one HTML file.
pub fn html(run: &Run, findings: &Findings) -> Result<String, ReportError> {
    let rows = run.trials()?;
    let evidence = rows.iter().map(|row| TrialEvidence::read(run, row)).collect::<Result<Vec<_>, _>>()?;
    let experiment = run.document("experiment")?;
    let title = findings.question.as_ref().unwrap_or(&findings.name);
    let mut body = header(findings) + &banner(findings) + &tiles::tiles(findings) + &warnings(findings);
    body += &over_time(findings, &evidence);
    body += &section("Phases", &tables::phases(findings));
    body += &two_columns(findings, &evidence);
    body += &explained::html(findings).unwrap_or_default();
    body += &proofs(findings);
    body += &section("Balance sheet", &tables::balance(findings));
    body += &instrument(findings);
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

fn section(title: &str, html: &str) -> String {
    format!("<section><h2>{}</h2>{html}</section>", escape(title))
}

fn header(findings: &Findings) -> String {
    let load = &findings.load;
    let nodes = findings.hosts.iter().filter(|host| host.role == "node").count();
    let facts = [
        format!("{} on {nodes} nodes", findings.system),
        format!("load: {}", load.text),
        format!("{} of {} trials", findings.trials.len(), findings.planned_trials),
        text::date(findings.started_unix_ms),
    ];
    let lines = findings.network.iter().chain(&findings.planned_faults);
    let faults = lines.map(|line| format!("<p class=\"fault\">{}</p>", escape(line)));
    format!(
        "<header><p class=\"name\">Brownout · {}</p><h1>{}</h1><p class=\"facts\">{}</p>{}</header>",
        escape(&findings.name),
        escape(findings.question.as_ref().unwrap_or(&findings.name)),
        facts.map(|fact| format!("<span>{}</span>", escape(&fact))).concat(),
        faults.collect::<String>()
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
    if verdict.validity == Validity::Valid && verdict.effect.outcome != Outcome::NotJudged {
        more.push(verdict.effect.reason.clone());
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
            format!(
                "<div class=\"note bad\"><strong>Node {} died in trial {}</strong><pre>{}</pre></div>",
                escape(&death.node),
                trial.trial,
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
fn per_trial(findings: &Findings, html: impl Fn(usize, &TrialFindings) -> String) -> String {
    let part = |(at, trial): (usize, &TrialFindings)| {
        let (number, html) = (trial.trial, html(at, trial));
        format!("<div class=\"trial\" data-trial=\"{number}\" aria-label=\"trial {number}\">{html}</div>")
    };
    findings.trials.iter().enumerate().map(part).collect()
}

fn over_time(findings: &Findings, evidence: &[TrialEvidence]) -> String {
    let drawn = |at: usize, trial: &TrialFindings| {
        let evidence = evidence.get(at).map(|evidence| charts::over_time(findings, evidence, trial));
        evidence.iter().flatten().map(figure).collect::<String>()
    };
    section("Over time", &per_trial(findings, drawn))
}

fn two_columns(findings: &Findings, evidence: &[TrialEvidence]) -> String {
    let curves = figure(&charts::percentiles(findings, evidence));
    let mut right = tables::parts(findings, "coordinator", |phase| &phase.coordinators);
    right += &tables::parts(findings, "operation", |phase| &phase.statements);
    // Without a fault there is nothing to compare the baseline with.
    if !findings.planned_faults.is_empty() {
        right += &tables::goodput(findings);
    }
    right += &tables::operations(findings).unwrap_or_default();
    right += &tables::closed_loop(findings).unwrap_or_default();
    right += &tables::standstill(findings).unwrap_or_default();
    section("Latency and goodput", &format!("<div class=\"columns\">{curves}<div class=\"card\">{right}</div></div>"))
}

fn proofs(findings: &Findings) -> String {
    if findings.trials.iter().all(|trial| trial.faults.is_empty()) {
        return String::new();
    }
    let panel = |_, trial: &TrialFindings| {
        let mut out = String::new();
        if let Some(delays) = matrix::delays(findings, trial) {
            out += &format!("<h3>One-way delays, trial {} (medians of the probes)</h3>{delays}", trial.trial);
        }
        for fault in &trial.faults {
            let class = tables::proof_class(fault.verdict);
            out += &format!(
                "<h3>Proof, trial {}: <span class=\"{class}\">{}</span></h3>",
                trial.trial,
                text::proof(fault.verdict)
            );
            let reasons = fault.reasons.iter().map(|reason| format!("<li class=\"bad\">{}</li>", escape(reason)));
            out += &format!("<ul>{}</ul>", reasons.collect::<String>());
            out += &tables::proof(fault);
        }
        out
    };
    section("Was the fault in force?", &per_trial(findings, panel))
}

fn instrument(findings: &Findings) -> String {
    let cpu = per_trial(findings, |_, trial| tables::cpu(trial));
    section("The instrument itself", &(tables::instrument(findings) + &cpu))
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
            ("Congestion control", environment.congestion_control.clone()),
            ("Java", environment.java.clone()),
            ("Seed", environment.seed.to_string()),
        ];
        let settings = format!(
            "<h3>{} settings</h3><pre>{}</pre>",
            escape(&findings.system),
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
