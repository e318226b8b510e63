use std::path::{Path, PathBuf};

use brownout_analysis::{Touched, touchable, words};
use brownout_lab::{Plan, machine, plan::PlannedPeriod};
use brownout_record::{Description, Expectation};
use brownout_units::Delay;
use serde::Serialize;

use crate::{
    load::{RUNS, load},
    output,
};

#[derive(clap::Args)]
pub struct Arguments {
    /// The experiment file.
    file: PathBuf,
    /// Replace a value of the file: faults.0.slow.delay=10ms. May be given more than once.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Print the plan as one JSON object (docs/json.md).
    #[arg(long)]
    json: bool,
}

/// The plan, for `--json`.
#[derive(Serialize)]
struct Checked {
    format: u32,
    plan: Description,
    faults: Vec<CheckedFault>,
    expected_duration_ns: u64,
}

#[derive(Serialize)]
struct CheckedFault {
    kind: String,
    text: String,
    effect: String,
    when: String,
    /// From the start of the phase `fault`.
    starts_ns: u64,
    ends_ns: u64,
    /// The stretches in which it is in force, ns from the start of the phase `fault`.
    periods: Vec<[u64; 2]>,
    /// What has to be seen where it hits and where it must not, at its highest severity.
    expectations: Vec<Expectation>,
    /// The share of the operations that it can touch; empty where that follows from no plan.
    touched: Vec<Touched>,
}

pub fn check(arguments: &Arguments) -> u8 {
    let (_, plan) = match load(&arguments.file, &arguments.set) {
        Ok(loaded) => loaded,
        Err(code) => return code,
    };
    let checked = checked(&plan);
    let printed = if arguments.json { output::print_json(&checked) } else { output::print(&text(&checked)) };
    // The file is right; whether this machine can do it is another question.
    match machine::refuse(&plan, Path::new(RUNS)) {
        Ok(()) => output::code(printed, 0),
        Err(error) => {
            let code = error.exit_code();
            output::fail(error);
            output::code(printed, code)
        }
    }
}

fn checked(plan: &Plan) -> Checked {
    let description = plan.description(&system(plan));
    let faults = plan.faults.iter().enumerate().filter_map(|(index, planned)| {
        let fault = planned.fault()?;
        let period = |period: &PlannedPeriod| [period.starts.ns(), period.ends.ns()];
        Some(CheckedFault {
            kind: fault.kind().to_owned(),
            text: fault.text(),
            effect: fault.effect(),
            when: planned.when(),
            starts_ns: planned.starts().ns(),
            ends_ns: planned.ends().ns(),
            periods: planned.periods.iter().map(period).collect(),
            expectations: fault.expectations(&plan.layout.hosts),
            touched: touchable(&description, &[planned.record(index, &plan.layout.hosts)]).unwrap_or_default(),
        })
    });
    let faults = faults.collect();
    Checked { format: 1, faults, plan: description, expected_duration_ns: Delay::from(plan.expected_duration()).ns() }
}

fn system(plan: &Plan) -> String {
    use brownout_lab::experiment::CassandraChoice;
    match &plan.experiment.cluster.cassandra {
        CassandraChoice::Version(version) => format!("Cassandra {version}"),
        CassandraChoice::Home(home) => format!("Cassandra of {}", home.display()),
    }
}

fn text(checked: &Checked) -> String {
    let Checked { plan, faults, expected_duration_ns, .. } = checked;
    let mut lines = vec![format!("experiment  {}", plan.name)];
    lines.extend(plan.question.iter().map(|question| format!("question    {question}")));
    lines.push(format!("system      {}", plan.system));
    let hosts: Vec<String> = plan.hosts.iter().map(|host| format!("{} ({})", host.name, host.address)).collect();
    lines.push(format!("hosts       {}", hosts.join(", ")));
    lines.extend(plan.network.iter().map(|line| format!("network     {line}")));
    lines.push(format!("load        {}", plan.load.text));
    for (index, phase) in plan.phases.iter().enumerate() {
        let head = if index == 0 { "phases" } else { "" };
        let at_most = if phase.name == "warm-up" { "at most " } else { "" };
        lines.push(format!("{head:<12}{:<9} {at_most}{}", phase.name, Delay::from_ns(phase.length_ns)));
    }
    for fault in faults {
        lines.push(format!("fault       {}", fault.text));
        lines.push(format!("            effect: {}", fault.effect));
        lines.push(format!("            {}", fault.when));
        lines.push(format!("            hits {}", subjects(fault, true)));
        lines.push(format!("            spares {}", subjects(fault, false)));
        for one in &fault.touched {
            let of = one.operation.as_ref().map_or_else(|| "all operations".to_owned(), |name| format!("{name}s"));
            let (must, may) = (one.must * 100.0, one.may * 100.0);
            lines.push(format!("            {must:.1}% of {of} must wait for it, {may:.1}% may"));
        }
        for line in asked(fault) {
            lines.push(format!("            proven if {line}"));
        }
    }
    if faults.is_empty() {
        lines.push("faults      none: an A/A run".to_owned());
    }
    let objective = &plan.objective;
    lines.push(format!(
        "objective   {}% of operations answered within {}; a miss in {} ends with exit code 1",
        objective.share * 100.0,
        Delay::from_ns(objective.response_ns),
        if objective.phases.is_empty() { "no phase".to_owned() } else { objective.phases.join(" or ") }
    ));
    lines.push(format!("trials      {}", plan.trials));
    let minutes = *expected_duration_ns as f64 / 60e9;
    lines.push(format!("duration    about {minutes:.1} min at most, once Cassandra is in the cache"));
    lines.extend(plan.warnings.iter().map(|warning| format!("WARNING     {warning}")));
    lines.join("\n") + "\n"
}

/// Places named in words; a fault on ten hosts would fill the screen.
const NAMED: usize = 12;

fn subjects(fault: &CheckedFault, hit: bool) -> String {
    let mut names: Vec<String> = Vec::new();
    for expectation in fault.expectations.iter().filter(|expectation| expectation.hit == hit) {
        let name = expectation.subject.to_string();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let more = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    match (names.is_empty(), more) {
        (true, _) => "nothing".to_owned(),
        (false, 0) => names.join(", "),
        (false, more) => format!("{} and {more} more", names.join(", ")),
    }
}

/// What has to be seen, one line for each quantity.
fn asked(fault: &CheckedFault) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for Expectation { quantity, asked, tolerance, .. } in fault.expectations.iter().filter(|one| one.hit) {
        let (asked, tolerance) = (words::number(*quantity, *asked), words::number(*quantity, *tolerance));
        let line = format!(
            "{} shows {asked} ± {tolerance} there and nowhere else, and is back to normal afterwards",
            words::name(*quantity)
        );
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}
