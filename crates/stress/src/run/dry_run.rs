//! `--dry-run`: shows what would be done.

use brownout_load::{Consistency, SerialConsistency};

use super::{
    RunError,
    console::Console,
    nodetool::Nodetool,
    plan::{self, Source},
    predefined::Predefined,
};
use crate::settings::{Length, Rate, Settings, Truncate, consistency_name, serial_name};

/// Shows the plan of a predefined command; returns the exit code.
///
/// # Errors
/// An empty nodetool command.
pub fn predefined(predefined: &Predefined<'_>, settings: &Settings, console: &mut Console) -> Result<u8, RunError> {
    console.line("Plan (nothing is done):");
    if predefined.updates() {
        for cql in predefined.definitions(false) {
            console.line(format!("  define  {cql}"));
        }
    }
    for cql in predefined.statements() {
        console.line(format!("  prepare {cql}"));
    }
    let command = &settings.command;
    console.line(format!("  ask     {}", levels(command.consistency, command.serial_consistency)));
    tell_load(&predefined.description(), settings, console)?;
    Ok(0)
}

/// Consistency levels of an operation, as text.
pub fn levels(consistency: Consistency, serial: SerialConsistency) -> String {
    format!("at {}, conditions at {}", consistency_name(consistency), serial_name(serial))
}

/// The part of a plan that all commands share: what comes before the load, the load, its end.
///
/// # Errors
/// An empty nodetool command.
pub fn tell_load(description: &str, settings: &Settings, console: &mut Console) -> Result<(), RunError> {
    if settings.command.length == Length::Count(0) {
        console.line("  end     with the schema: n=0 asks for no load");
        return Ok(());
    }
    for line in before(settings)? {
        console.line(format!("  {line}"));
    }
    console.line(format!("  load    {description} by {}", plan::words(settings)));
    console.line(format!("  until   {}", end(settings)));
    Ok(())
}

/// What is done before the load, in this order.
fn before(settings: &Settings) -> Result<Vec<String>, RunError> {
    let extras = &settings.extras;
    let mut lines = Vec::new();
    if let Some(host) = &settings.node.pin {
        lines.push(format!("pin     {host} coordinates every operation that a profile does not pin"));
    }
    let (iterations, threads) = plan::warm_up(settings);
    if iterations > 0 {
        lines.push(format!("warm up {iterations} partitions of each operation by {threads} threads, not measured"));
    }
    match settings.command.truncate {
        Truncate::Never => {}
        Truncate::Always if matches!(settings.rate, Rate::Steps { .. }) => {
            lines.push("empty   the tables before each step".to_owned());
        }
        Truncate::Once | Truncate::Always => lines.push("empty   the tables, after the warm-up".to_owned()),
    }
    let by = Nodetool::asked(extras)?.map(|nodetool| nodetool.template()).unwrap_or_default();
    for (asked, what) in [(extras.flush, "flush  "), (extras.compact, "compact")] {
        if asked {
            lines.push(format!("{what} the tables on every node, by '{by}'"));
        }
    }
    if extras.wait_compactions {
        lines.push("wait    until no node compacts anything for 2 s".to_owned());
    }
    Ok(lines)
}

/// What ends the load.
fn end(settings: &Settings) -> String {
    if let Rate::Search(search) = &settings.rate {
        let percent = (search.precision * 1e6).round() / 1e4;
        return format!(
            "the 95 % interval of that rate is narrower than {percent} % of it, or the steps for it are used up"
        );
    }
    match settings.command.length {
        Length::Count(count) => format!("{count} partitions are visited"),
        Length::Time(_) => format!("{} are over", plan::until(settings)),
        Length::Uncertainty(sure) => format!(
            "the standard error of the mean row rate is below {} of it: after {} intervals at the least, {} at the most",
            sure.target, sure.least, sure.most
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_says_what_ends_the_load() {
        for (words, said) in [
            ("write n=10", "10 partitions are visited"),
            ("write duration=5m", "5 minutes are over"),
            ("write err<0.05 n>5 n<9", "below 0.05 of it: after 5 intervals at the least, 9 at the most"),
            (
                "write n=10 -rate search(slo=p99<1s,precision=2%)",
                "the 95 % interval of that rate is narrower than 2 % of it",
            ),
        ] {
            let end = end(&Settings::parse(&[words]).unwrap());
            assert!(end.contains(said), "{words}: {end}");
        }
    }

    #[test]
    fn a_plan_has_all_that_comes_before_the_load_in_its_order() {
        let before = |words: &[&str]| before(&Settings::parse(words).unwrap()).unwrap();
        let words =
            ["write n=400 truncate=once -node a,b pin=a -rate threads=7", "--flush", "--compact", "--wait-compactions"];
        let all = before(&words);
        let begin: Vec<&str> = all.iter().map(|line| line.split(' ').next().unwrap_or_default()).collect();
        assert_eq!(begin, ["pin", "warm", "empty", "flush", "compact", "wait"], "{all:?}");
        assert!(all[1].contains("200 partitions of each operation by 7 threads"), "{all:?}");
        assert!(all[3].contains("'nodetool -h {host}'"), "{all:?}");
        assert!(before(&["write n=400 no-warmup"]).is_empty());
        assert!(before(&["write n=4 no-warmup truncate=always -rate auto"])[0].contains("before each step"));
        assert!(before(&["write duration=1s -rate open=1/s"])[0].contains("50000 partitions of each operation by 100"));
    }
}
