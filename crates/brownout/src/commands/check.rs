use std::path::{Path, PathBuf};

use brownout_lab::{Plan, experiment::Source};
use brownout_record::Description;
use brownout_units::Delay;
use serde::Serialize;

use crate::output::{self, WRONG};

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
    /// From the start of the phase `fault`.
    starts_ns: u64,
    ends_ns: u64,
    /// Ordered pairs, from → to.
    hit: Vec<[String; 2]>,
    spared: Vec<[String; 2]>,
    tolerance_ns: f64,
}

pub fn check(arguments: &Arguments) -> u8 {
    let (_, plan) = match load(&arguments.file, &arguments.set) {
        Ok(loaded) => loaded,
        Err(code) => return code,
    };
    let checked = checked(&plan);
    let printed = if arguments.json { output::print_json(&checked) } else { output::print(&text(&checked)) };
    output::code(printed, 0)
}

/// Reads and checks an experiment file. The error is already told.
pub fn load(file: &Path, set: &[String]) -> Result<(Source, Plan), u8> {
    let loaded = Source::read(file).and_then(|mut source| {
        set.iter().try_for_each(|assignment| source.set(assignment))?;
        let plan = Plan::new(&source)?;
        Ok((source, plan))
    });
    loaded.map_err(|error| {
        output::fail(error);
        WRONG
    })
}

fn checked(plan: &Plan) -> Checked {
    let faults = plan.faults.iter().map(|planned| {
        let expectations = planned.fault.expectations(&plan.hosts);
        let pairs = |hit: bool| {
            let pairs = expectations.iter().filter(|expectation| expectation.hit == hit);
            pairs.map(|expectation| [expectation.from.clone(), expectation.to.clone()]).collect()
        };
        CheckedFault {
            kind: planned.fault.kind().to_owned(),
            text: planned.fault.text(),
            effect: planned.fault.effect(),
            starts_ns: planned.starts.ns(),
            ends_ns: planned.ends.ns(),
            hit: pairs(true),
            spared: pairs(false),
            tolerance_ns: expectations.first().map_or(0.0, |expectation| expectation.tolerance),
        }
    });
    Checked {
        format: 1,
        plan: plan.description(&system(plan)),
        faults: faults.collect(),
        expected_duration_ns: Delay::from(plan.expected_duration()).ns(),
    }
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
    lines.push(format!("load        {}", plan.load.text));
    for (index, phase) in plan.phases.iter().enumerate() {
        let head = if index == 0 { "phases" } else { "" };
        let at_most = if phase.name == "warm-up" { "at most " } else { "" };
        lines.push(format!("{head:<12}{:<9} {at_most}{}", phase.name, Delay::from_ns(phase.length_ns)));
    }
    for fault in faults {
        lines.push(format!("fault       {}", fault.text));
        lines.push(format!("            effect: {}", fault.effect));
        let (starts, ends) = (Delay::from_ns(fault.starts_ns), Delay::from_ns(fault.ends_ns));
        lines.push(format!("            from {starts} to {ends} of the phase 'fault'"));
        lines.push(format!("            hits {}", pairs(&fault.hit)));
        lines.push(format!("            spares {}", pairs(&fault.spared)));
        let tolerance = brownout_units::format_ns(fault.tolerance_ns);
        lines
            .push(format!("            proven if probes show it within {tolerance} on all of these, and healed after"));
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

fn pairs(pairs: &[[String; 2]]) -> String {
    pairs.iter().map(|[from, to]| format!("{from} → {to}")).collect::<Vec<_>>().join(", ")
}
