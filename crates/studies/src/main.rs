//! `brownout-studies`: reduces runs to what a study keeps of them, makes a study's tables and plots, counts A/A pairs.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use brownout_analysis::Findings;
use brownout_record::Run;
use brownout_statistics::{Outcome, median};
use brownout_studies::{
    StudyError,
    beside::beside,
    overhead::{Overheads, overheads},
    pairs::{self, Judged},
    reduce,
    reuse::{Reused, differing, reuse},
    same::{Fit, same},
    stored::Crossing,
    study::Study,
};
use brownout_units::{Share, format_ns};
use clap::{Parser, Subcommand};

/// What studies of published measurements need beside `brownout`.
#[derive(Parser)]
#[command(version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Print what a study keeps of a run, as JSON.
    Reduce {
        /// The run: its directory or its run.db.
        run: PathBuf,
        /// The command that made it, for whoever wants to repeat it.
        #[arg(long)]
        command: String,
    },
    /// Make the tables of a study's README, and its plots, from its findings.
    Tables {
        /// The study's directory.
        study: PathBuf,
        /// Write nothing; exit with 1 if a table or a plot is not what the findings say.
        #[arg(long, conflicts_with_all = ["print", "findings"])]
        check: bool,
        /// Print the tables instead of writing them.
        #[arg(long)]
        print: bool,
        /// Findings of another directory than the study's own.
        #[arg(long, value_name = "DIRECTORY", requires = "print")]
        findings: Option<PathBuf>,
    },
    /// Judge A/A pairs of a run's trials without a fault; exit with 1 if more than one of 20 designs of three blocks is called
    /// different in goodput, or later trials on a stand differ from the first, with 3 if there are too few trials.
    NoiseFloor {
        /// The run: its directory or its run.db.
        run: PathBuf,
    },
    /// Compare the danger zone that a search has found with that of a grid; exit with 1 if they have nothing in common, the search's
    /// is wider by more than a step of the grid, or it took more than a third of the grid's trials, with 3 if one of them is undetermined.
    Beside {
        /// The search: its directory or its run.db.
        search: PathBuf,
        /// The grid.
        grid: PathBuf,
    },
    /// Compare what two runs of the same design say of its cells; exit with 1 if they contradict each other anywhere, with 3 if they
    /// are not of the same design or have no judged cell in common.
    SameVerdicts {
        /// One of them: its directory or its run.db.
        one: PathBuf,
        /// The other.
        other: PathBuf,
    },
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Reduce { run, command } => reduced(&run, &command),
        Command::Tables { study, check: true, .. } => checked(&study),
        Command::Tables { study, print, findings, .. } => tables(&study, print, findings.as_deref()),
        Command::NoiseFloor { run } => noise_floor(&run),
        Command::Beside { search, grid } => search_beside_grid(&search, &grid),
        Command::SameVerdicts { one, other } => same_verdicts(&one, &other),
    };
    ExitCode::from(done.unwrap_or_else(|error| {
        eprintln!("brownout-studies: {error}");
        2
    }))
}

fn reduced(run: &Path, command: &str) -> Result<u8, StudyError> {
    let stored = reduce(&Run::open(run)?, command)?;
    let text = stored.text().map_err(|error| StudyError::File { path: run.to_owned(), why: error.to_string() })?;
    print!("{text}");
    Ok(0)
}

fn tables(study: &Path, print: bool, findings: Option<&Path>) -> Result<u8, StudyError> {
    let study = Study::read(study, findings)?;
    if print {
        print!("{}", study.printed());
    } else {
        study.write()?;
    }
    Ok(0)
}

fn checked(directory: &Path) -> Result<u8, StudyError> {
    let differences = Study::read(directory, None)?.differences()?;
    for difference in &differences {
        eprintln!("{difference}");
    }
    if !differences.is_empty() {
        eprintln!("to make them anew: brownout-studies tables {}", directory.display());
    }
    Ok(u8::from(!differences.is_empty()))
}

fn noise_floor(path: &Path) -> Result<u8, StudyError> {
    let findings = findings(path)?;
    let judged = pairs::pairs(&findings);
    println!("A/A pairs of {}: trials without a fault, each used once, judged as cells are", findings.name);
    println!("  blocks  figure   pairs  different  no difference  inconclusive  smallest change seen (median)");
    for one in &judged {
        let count = |is: Outcome| one.pairs.iter().filter(|pair| pair.outcome == is).count();
        let seen: Vec<f64> = one.pairs.iter().map(|pair| pair.smallest_seen).collect();
        let seen = if seen.is_empty() { "–".to_owned() } else { format!("{:.1}%", median(&seen) * 100.0) };
        println!(
            "  {:>6}  {:<7}  {:>5}  {:>9}  {:>13}  {:>12}  {seen}",
            one.blocks,
            one.figure,
            one.pairs.len(),
            one.different(),
            count(Outcome::NoDifference),
            count(Outcome::Inconclusive)
        );
    }
    for one in &judged {
        for pair in one.pairs.iter().filter(|pair| pair.is_different()) {
            let trials: Vec<String> =
                pair.trials.iter().map(|(played, beside)| format!("{played} beside {beside}")).collect();
            let change = pair.change * 100.0;
            println!("  called different in {}, {change:+.1}%: trials {}", one.figure, trials.join(", "));
        }
    }
    let biased = told_of_reuse(&findings);
    let Overheads { fresh, reused } = overheads(&findings);
    for (what, mut took) in [("the first on its stand", fresh), ("on a stand that has served before", reused)] {
        took.sort_unstable();
        if let Some(longest) = took.last() {
            let middle = median(&took.iter().map(|ns| *ns as f64).collect::<Vec<_>>());
            println!(
                "beyond its own phases a trial that is {what} took {} (median of {}; {} at most)",
                format_ns(middle),
                took.len(),
                format_ns(*longest as f64)
            );
        }
    }
    if let Some(cell) = findings.cells.first() {
        println!("beside them, the fault of the same run: {}", cell.sentence);
    }
    Ok(told(&judged).max(u8::from(biased)))
}

/// Prints it; returns whether verdicts would depend on it.
fn told_of_reuse(findings: &Findings) -> bool {
    println!("The first trials on their stands, and those on stands that have served before, a value a stand");
    println!("  figure                          first  later   later ÷ first        interval  no larger than");
    let all = reuse(findings);
    for Reused { what, fresh, reused, difference, .. } in &all {
        let percent = |log: f64| format!("{:+.1}%", log.exp_m1() * 100.0);
        let told = difference.map_or_else(
            || format!("{:>14}  {:>16}  {:>14}", "–", "–", "–"),
            |difference| {
                let (low, high) = difference.interval(pairs::ALPHA);
                let interval = format!("{} … {}", percent(low), percent(high));
                let most = format!("{:.1}%", difference.no_larger_than().exp_m1() * 100.0);
                format!("{:>14}  {interval:>16}  {most:>14}", percent(difference.effect))
            },
        );
        println!("  {what:<30}  {fresh:>5}  {reused:>5}  {told}");
    }
    let differing: Vec<&str> = differing(&all).iter().map(|one| one.what.as_str()).collect();
    if !differing.is_empty() {
        println!("Whether a stand has served before changes what verdicts rest on: {}.", differing.join(", "));
    }
    !differing.is_empty()
}

/// Says whether the criterion is met; the other counts stand beside it.
fn told(judged: &[Judged]) -> u8 {
    let (most, of) = (pairs::MOST_DIFFERENT, pairs::PAIRS);
    let Some(counted) = pairs::criterion(judged) else {
        println!(
            "There are too few valid trials for {of} pairs: nothing follows. Run what is missing: brownout run --resume RUN; if \
             nothing is, more: brownout extend RUN --trials +1"
        );
        return 3;
    };
    let (figure, blocks, different) = (counted.figure, counted.blocks, counted.different());
    let promise = format!("At most {most} of {of} designs of {blocks} blocks is called different in {figure}");
    if counted.is_met() {
        println!("{promise}: met ({different}).");
        return 0;
    }
    let by_chance = pairs::at_least(most + 1, of, pairs::ALPHA) * 100.0;
    println!(
        "{promise}: not met ({different}). A rule that errs in exactly 5% does so in {by_chance:.0}% of such counts."
    );
    1
}

fn findings(run: &Path) -> Result<Findings, StudyError> {
    Ok(brownout_analysis::findings(&Run::open(run)?)?)
}

fn search_beside_grid(search: &Path, grid: &Path) -> Result<u8, StudyError> {
    let Some(both) = beside(&findings(search)?, &findings(grid)?) else {
        println!(
            "One of them does not vary one severity, or has too few valid trials without a fault: nothing follows."
        );
        return Ok(3);
    };
    println!("Where the loss of throughput passes a threshold, by a search and by the grid beside it");
    println!("  loss  by the search           by the grid             in common     as narrow");
    for found in &both.crossings {
        let word = |is: Option<bool>| match is {
            Some(true) => "yes",
            Some(false) => "no",
            None => "undetermined",
        };
        let loss = Share::new(found.search.loss).map_or_else(String::new, |loss| loss.to_string());
        println!(
            "  {loss:<4}  {:<22}  {:<22}  {:<12}  {}",
            told_of_crossing(&found.search),
            told_of_crossing(&found.grid),
            word(found.agree()),
            word(found.is_narrow(both.place))
        );
    }
    let (of_search, of_grid) = (both.search, both.grid);
    println!(
        "trials with a fault: {} beside {}, {:.0}%; without one {} beside {}",
        of_search.fault,
        of_grid.fault,
        both.share() * 100.0,
        of_search.without,
        of_grid.without
    );
    let promise =
        "The search finds the grid's severities, as narrowly, with at most a third of its trials with a fault";
    match both.is_met() {
        Some(true) => println!("{promise}: met."),
        Some(false) => println!("{promise}: not met."),
        None => println!("{promise}: undetermined; an interval is open at an end."),
    }
    Ok(both.is_met().map_or(3, |met| u8::from(!met)))
}

fn same_verdicts(one: &Path, other: &Path) -> Result<u8, StudyError> {
    let Some(cells) = same(&findings(one)?, &findings(other)?) else {
        println!("They are not of the same design: nothing follows.");
        return Ok(3);
    };
    let width = cells.iter().map(|both| both.cell.len()).max().unwrap_or(0);
    println!("What the faults did to goodput, by one run and by the other");
    for both in &cells {
        let told = [0, 1].map(|run| match both.intervals[run] {
            Some((low, high)) => {
                format!("{:<14} {:+6.1}% … {:+6.1}%", both.outcomes[run].name(), low * 100.0, high * 100.0)
            }
            None => format!("{:<14} {:>19}", both.outcomes[run].name(), "–"),
        });
        let fit = match both.fit() {
            Fit::Same => "the same",
            Fit::Open => "",
            Fit::Contradiction => "a contradiction",
        };
        println!("  {:<width$}  {}   {}   {fit}", both.cell, told[0], told[1]);
    }
    let count = |fit| cells.iter().filter(|both| both.fit() == fit).count();
    let (same, against) = (count(Fit::Same), count(Fit::Contradiction));
    println!("{same} of {} cells have the same verdict, and {against} contradict each other.", cells.len());
    if same + against == 0 {
        println!("They have no judged cell in common: nothing follows.");
        return Ok(3);
    }
    println!("{}", if against == 0 { "No cell contradicts: met." } else { "Not met." });
    Ok(u8::from(against > 0))
}

/// "4.64ms … 6.81ms", of severities that are delays (ns) or shares.
fn told_of_crossing(crossing: &Crossing) -> String {
    let severity = |at: f64| match at {
        share if share <= 1.0 => Share::new(share).map_or_else(String::new, |share| share.to_string()),
        ns => format_ns(ns),
    };
    let end = |at: Option<f64>| at.map_or_else(|| "?".to_owned(), severity);
    format!("{} … {}", end(crossing.low), end(crossing.high))
}
