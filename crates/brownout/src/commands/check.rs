use std::path::{Path, PathBuf};

use brownout_analysis::{Candidate, Touched, UnderTest, Visible, touchable, touchable_by_role, words};
use brownout_lab::{
    Design, Plan,
    design::Cell,
    experiment::ClusterSection,
    faults::{Fault, Role},
    hosts::HostPlan,
    labs::{self, Labs, Room},
    machine,
    plan::{PlannedFault, PlannedPeriod},
    planner,
};
use brownout_record::{
    CellRow, Description, DesignDescription, Expectation, Quantity, Run, SearchDescription, Subject,
};
use brownout_units::Delay;
use serde::Serialize;

use crate::{
    load::{RUNS, load, with_ground},
    output::{self, INVALID, WRONG},
};

#[derive(clap::Args)]
pub struct Arguments {
    /// The experiment file.
    file: PathBuf,
    /// Replace a value of the file: faults.0.slow.delay=10ms. May be given more than once.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Check it for this ground instead of the file's: 'containers: { project: shop }'.
    #[arg(long, value_name = "GROUND")]
    ground: Option<String>,
    /// An earlier run whose trials without a fault show the noise: says what effect this design can detect.
    #[arg(long, value_name = "RUN")]
    pilot: Option<PathBuf>,
    /// Print the plan as one JSON object (docs/json.md).
    #[arg(long)]
    json: bool,
}

/// The plan, for `--json`.
#[derive(Serialize)]
struct Checked {
    format: u32,
    design: DesignDescription,
    cells: Vec<CheckedCell>,
    expected_duration_ns: u64,
    /// How many labs work at once on this machine; none: it has no room for as many as are asked for.
    labs: Option<CheckedLabs>,
    /// What the design can see, by the noise of the pilot.
    visible: Option<Visible>,
}

#[derive(Serialize)]
struct CheckedLabs {
    at_once: u32,
    /// Of each, as lists: "0-3,8".
    processors: Vec<String>,
    /// Why so many.
    reason: String,
    /// All of it in words.
    #[serde(skip)]
    text: String,
    warning: Option<String>,
}

#[derive(Serialize)]
struct CheckedCell {
    cell: u32,
    /// Its levels in words; empty where nothing varies.
    text: String,
    levels: Vec<String>,
    plan: Description,
    /// What its overlay means for what happens below it, in words.
    overlay: Vec<String>,
    faults: Vec<CheckedFault>,
}

#[derive(Serialize)]
struct CheckedFault {
    kind: String,
    text: String,
    effect: String,
    /// The role that it follows: who has it is known when it is injected. None: it hits by name.
    role: Option<&'static str>,
    when: String,
    /// From the start of the phase `fault`.
    starts_ns: u64,
    ends_ns: u64,
    /// The stretches in which it is in force, ns from the start of the phase `fault`.
    periods: Vec<[u64; 2]>,
    /// What has to be seen where it hits and where it must not, at its highest severity; of one that follows a role, where
    /// it hits each node that may have it.
    expectations: Vec<Expectation>,
    /// The share of the operations that it can touch; empty where that follows from no plan.
    touched: Vec<Touched>,
}

/// What a warning's line begins with.
const WARNING: &str = "WARNING";

pub fn check(arguments: &Arguments) -> u8 {
    let set = with_ground(&arguments.set, arguments.ground.as_deref());
    let (_, design) = match load(&arguments.file, &set) {
        Ok(loaded) => loaded,
        Err(code) => return code,
    };
    if design.search.is_some() && arguments.pilot.is_some() {
        output::fail("--pilot: what blocks can see says nothing of a search; leave it out");
        return WRONG;
    }
    let visible = match arguments.pilot.as_deref().map(|pilot| visible(pilot, &design)).transpose() {
        Ok(visible) => visible,
        Err(code) => return code,
    };
    let labs = labs::of(&design, &Room::of_this_machine(Path::new(RUNS)), None);
    let checked = checked(&design, labs.as_ref().ok(), visible);
    let printed = if arguments.json { output::print_json(&checked) } else { output::print(&text(&checked)) };
    // The file is right; whether this machine can do it is another question.
    let refused = design.cells.iter().try_for_each(|cell| machine::refuse(&cell.plan, Path::new(RUNS)));
    match refused.and_then(|()| machine::refuse_without_software(&design)).and(labs.map(drop)) {
        Ok(()) => output::code(printed, 0),
        Err(error) => {
            let code = error.exit_code();
            output::fail(error);
            output::code(printed, code)
        }
    }
}

/// What the design can see. The error is already printed.
fn visible(pilot: &Path, design: &Design) -> Result<Visible, u8> {
    let run = Run::open(pilot).map_err(|error| {
        output::fail(error);
        WRONG
    })?;
    let cells = design.cells.iter().filter(|cell| !cell.plan.faults.is_empty()).count() as u32;
    let seen = brownout_analysis::visible(&run, design.blocks, design.without_fault, cells).map_err(|error| {
        output::fail(error);
        INVALID
    })?;
    seen.ok_or_else(|| {
        let pilot = pilot.display();
        output::fail(format!(
            "{pilot} shows no noise: it has fewer than two valid trials without a fault; use a run with trials: 2 or more"
        ));
        WRONG
    })
}

fn checked(design: &Design, labs: Option<&Labs>, visible: Option<Visible>) -> Checked {
    let of_labs = |labs: &Labs| CheckedLabs {
        at_once: labs.count(),
        processors: labs.lists(),
        reason: labs.reason.clone(),
        text: labs.words(),
        warning: labs.warning(),
    };
    let cell = |(row, cell): (CellRow, &Cell)| CheckedCell {
        cell: row.cell,
        text: design.variation.words(row.cell as usize - 1),
        levels: row.levels,
        faults: faults(&cell.plan, &row.description),
        overlay: cell.plan.layout.overlay_words(),
        plan: row.description,
    };
    Checked {
        format: 3,
        design: planner::description(design, None, labs.map_or(1, Labs::count)),
        cells: design.cell_rows(ClusterSection::words).into_iter().zip(&design.cells).map(cell).collect(),
        expected_duration_ns: Delay::from(planner::expected_duration(design, labs)).ns(),
        labs: labs.map(of_labs),
        visible,
    }
}

fn faults(plan: &Plan, description: &Description) -> Vec<CheckedFault> {
    let faults = plan.faults.iter().enumerate().filter_map(|(index, planned)| {
        let fault = planned.fault()?;
        let period = |period: &PlannedPeriod| [period.starts.ns(), period.ends.ns()];
        Some(CheckedFault {
            kind: fault.kind().to_owned(),
            text: fault.text(),
            effect: fault.effect(),
            role: fault.role().map(Role::word),
            when: planned.when(),
            starts_ns: planned.starts().ns(),
            ends_ns: planned.ends().ns(),
            periods: planned.periods.iter().map(period).collect(),
            expectations: expectations(plan, fault),
            touched: touched(plan, description, index, planned),
        })
    });
    faults.collect()
}

/// What has to be seen of a fault; of one that follows a role where it hits each node that it may be drawn to hit, for what one
/// of them spares another one hits.
fn expectations(plan: &Plan, fault: &dyn Fault) -> Vec<Expectation> {
    let hosts = &plan.layout.hosts;
    let of = |fault: &dyn Fault| hosts.with_overlay(fault.expectations(hosts));
    if fault.role().is_none() {
        return of(fault);
    }
    let mut all: Vec<Expectation> = Vec::new();
    for candidate in hosts.nodes().filter_map(|node| fault.on_node(&node.name)) {
        for one in of(candidate.as_ref()).into_iter().filter(|one| one.hit) {
            // A way between two of them is hit whichever of the two it is.
            if !all.contains(&one) {
                all.push(one);
            }
        }
    }
    all
}

/// The share of the operations that a fault can touch; of one that follows a role, on each node that it may be drawn to hit.
fn touched(plan: &Plan, description: &Description, index: usize, planned: &PlannedFault) -> Vec<Touched> {
    let hosts = &plan.layout.hosts;
    let Some(role) = planned.fault().and_then(|fault| fault.role()) else {
        return touchable(description, &[planned.record(index, hosts)]).unwrap_or_default();
    };
    let candidate = |host: &HostPlan| {
        let fault = planned.record_on(index, hosts, &host.name)?;
        Some(Candidate { node: host.name.clone(), leads: role == Role::Leader, fault })
    };
    let candidates: Vec<Candidate> = hosts.nodes().filter_map(candidate).collect();
    touchable_by_role(description, &candidates).unwrap_or_default()
}

fn text(checked: &Checked) -> String {
    let Checked { design, cells, expected_duration_ns, .. } = checked;
    let mut lines = Vec::new();
    if let Some(first) = cells.first() {
        lines.push(format!("experiment  {}", first.plan.name));
        lines.extend(first.plan.question.iter().map(|question| format!("question    {question}")));
    }
    for (at, factor) in design.factors.iter().enumerate() {
        let head = if at == 0 { "varies" } else { "" };
        lines.push(match &design.search {
            Some(search) => format!("searches    {}", searched(&factor.name, search)),
            None => format!("{head:<12}{}: {}", factor.name, factor.levels.join(", ")),
        });
    }
    for (at, cell) in cells.iter().enumerate() {
        if cells.len() > 1 {
            lines.push(format!("\ncell {:<7}{}", cell.cell, cell.text));
        }
        // Of what is as in the first cell nothing is said again, and no warning twice.
        let before = if at > 0 { of_cell(&cells[0]) } else { Vec::new() };
        let is_told = |line: &String| before.contains(line) || line.starts_with(WARNING) && lines.contains(line);
        let new: Vec<String> = of_cell(cell).into_iter().filter(|line| !is_told(line)).collect();
        lines.extend(new);
    }
    if cells.len() > 1 {
        lines.push(String::new());
    }
    lines.push(match &design.search {
        Some(search) => of_search(design, search),
        None => trials(design, cells),
    });
    lines.extend(checked.labs.iter().map(|labs| format!("labs        {}", labs.text)));
    lines.extend(checked.labs.iter().filter_map(|labs| Some(format!("WARNING     {}", labs.warning.as_ref()?))));
    let minutes = *expected_duration_ns as f64 / 60e9;
    let at_most = if design.search.is_some() { " at most" } else { "" };
    let is_external = cells.iter().any(|cell| cell.plan.external);
    let cached = if is_external { "" } else { "once its database is in the cache and " };
    lines.push(format!("duration    about {minutes:.1} min{at_most}, {cached}if no trial has to be repeated"));
    lines.extend(sees(checked));
    lines.join("\n") + "\n"
}

fn trials(design: &DesignDescription, cells: &[CheckedCell]) -> String {
    let DesignDescription { blocks, without_fault, attempts, trials, .. } = design;
    let s = if *blocks == 1 { "" } else { "s" };
    let blocks = match cells {
        _ if *trials == 1 => String::new(),
        [cell] if cell.faults.is_empty() => format!(": {blocks} block{s} of one, without a fault"),
        [_] => {
            format!(": {blocks} block{s}, in each a trial with the faults and {without_fault} without, in random order")
        }
        _ => format!(
            ": {blocks} block{s}, in each the {} cells and {} without a fault ({without_fault} for all those together that \
             differ in nothing but their faults), in random order",
            cells.len(),
            (*trials / *blocks) as usize - cells.len()
        ),
    };
    format!("trials      {trials}{blocks}; one that is not valid is tried up to {attempts} times")
}

/// What is looked for, and where.
fn searched(factor: &str, search: &SearchDescription) -> String {
    match search {
        SearchDescription::DangerZone { thresholds, from, to } => {
            let losses: Vec<String> = thresholds.iter().map(|loss| format!("{:.4}", loss * 100.0)).collect();
            let losses: Vec<&str> =
                losses.iter().map(|loss| loss.trim_end_matches('0').trim_end_matches('.')).collect();
            format!("{factor} from {from} to {to}, where the loss of goodput passes {}%", losses.join("% and "))
        }
        SearchDescription::MaxRate { share, response_ns, from, to, precision } => format!(
            "{factor} from {from} up to {to} or down, for the largest one at which {:.1}% of the operations are answered within {}, to {:.0}% of it",
            share * 100.0,
            Delay::from_ns(*response_ns),
            precision * 100.0
        ),
    }
}

/// How many trials a search takes.
fn of_search(design: &DesignDescription, search: &SearchDescription) -> String {
    let DesignDescription { without_fault, attempts, trials, .. } = design;
    let which = match search {
        SearchDescription::DangerZone { .. } => {
            format!(
                ": {without_fault} without a fault among one at each of 13 severities, in random order, then where it is least sure"
            )
        }
        SearchDescription::MaxRate { .. } => {
            ": the rate doubles, or halves, until it has missed and kept; then where it is least sure".to_owned()
        }
    };
    format!("trials      at most {trials}{which}; one that is not valid is tried up to {attempts} times")
}

/// What effect so many trials can see.
fn sees(checked: &Checked) -> Option<String> {
    let DesignDescription { blocks, without_fault, .. } = checked.design;
    let faulty = checked.cells.iter().any(|cell| !cell.faults.is_empty());
    if !faulty || checked.design.search.is_some() {
        return None;
    }
    let cells = checked.cells.iter().filter(|cell| !cell.faults.is_empty()).count();
    let of_one = |how_much: String| match cells {
        0 | 1 => String::new(),
        _ => format!(" (in the only one of {cells} cells that changes, {how_much})"),
    };
    Some(match &checked.visible {
        _ if without_fault == 0 => {
            "sees        what single trials show, without a verdict: there are no trials without a fault to compare with".to_owned()
        }
        _ if blocks < 2 => "sees        what single trials show, without a verdict: that takes two blocks (trials: 2)".to_owned(),
        None => {
            let factor = |cells: usize| brownout_analysis::factor_of_one(blocks as usize, cells as u32);
            format!(
                "sees        in four of five runs a change of {:.1} times what one block's difference scatters by{}; --pilot RUN \
                 (an earlier run) says how much that is",
                factor(1),
                of_one(format!("{:.1} times", factor(cells)))
            )
        }
        Some(visible) => {
            let five = visible.blocks_for_5_percent;
            // Falls and rises that are as large a factor.
            let beyond = |change: Option<f64>| match change {
                Some(rise) => words::relative_range((-rise / (1.0 + rise), rise)),
                None => "any factor".to_owned(),
            };
            format!(
                "sees        in four of five runs a change of goodput beyond {}{}, by the noise of {} trials of the pilot \
                 (they scatter by {}); for 5% it takes {}",
                beyond(visible.change),
                of_one(format!("beyond {}", beyond(visible.change_of_one))),
                visible.pilot_trials,
                words::share(visible.deviation),
                five.map_or_else(|| "more blocks than anyone runs".to_owned(), |blocks| format!("trials: {blocks}"))
            )
        }
    })
}

/// What a run leaves of itself in a cluster that is not its own.
const LEAVES: &str =
    "nothing: what the load makes is dropped at the end, also after Ctrl-C; a name that is taken is refused";

/// What is planned for a cell.
fn of_cell(cell: &CheckedCell) -> Vec<String> {
    let (plan, faults) = (&cell.plan, &cell.faults);
    let tested = UnderTest::planned(plan);
    let mut lines = vec![format!("database    {}", tested.database)];
    if !plan.external {
        let hosts: Vec<String> = plan.hosts.iter().map(|host| format!("{} ({})", host.name, host.address)).collect();
        lines.push(format!("hosts       {}", hosts.join(", ")));
    }
    for (what, line) in tested.lines() {
        lines.push(format!("{what:<12}{line}"));
        if what == "overlay" {
            lines.extend(cell.overlay.iter().map(|means| format!("            {means}")));
        }
    }
    if plan.external {
        lines.push(format!("{:<12}{LEAVES}", "leaves"));
    }
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
        match fault.role {
            Some(role) => {
                let among = subjects(fault, true);
                lines.push(format!("            hits whoever is {role} when it is injected, among {among}"));
            }
            None => {
                lines.push(format!("            hits {}", subjects(fault, true)));
                lines.push(format!("            spares {}", subjects(fault, false)));
            }
        }
        for one in &fault.touched {
            let named = |name: &String| words::operations(name);
            let of = one.operation.as_ref().map_or_else(|| "all operations".to_owned(), named);
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
    lines.extend(plan.warnings.iter().map(|warning| format!("{WARNING:<12}{warning}")));
    lines
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
    for Expectation { subject, quantity, asked, tolerance, .. } in fault.expectations.iter().filter(|one| one.hit) {
        let (asked, tolerance) = (words::number(*quantity, *asked), words::number(*quantity, *tolerance));
        let place = match subject {
            // A limit is measured below alone.
            Subject::Overlay { .. } if *quantity == Quantity::Rate => continue,
            Subject::Overlay { .. } => "there, through the overlay,",
            _ => "there",
        };
        let line = format!(
            "{} shows {asked} ± {tolerance} {place} and nowhere else, and is back to normal afterwards",
            words::name(*quantity)
        );
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}
