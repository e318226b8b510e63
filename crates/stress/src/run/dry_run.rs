//! `--dry-run`: what would be done.

use super::{
    plan::{self, Source},
    predefined::Predefined,
    stage::Stage,
};
use crate::settings::{Length, Settings};

/// The plan of a predefined command; returns the exit code.
pub fn predefined(predefined: &Predefined<'_>, settings: &Settings, stage: &mut Stage) -> u8 {
    stage.line("Plan (nothing is done):");
    if predefined.updates() {
        for cql in predefined.definitions(false) {
            stage.line(format!("  define  {cql}"));
        }
    }
    tell_plan(predefined, settings, stage);
    0
}

/// The part of a plan that all commands have.
pub fn tell_plan(source: &dyn Source, settings: &Settings, stage: &mut Stage) {
    for cql in source.statements() {
        stage.line(format!("  prepare {cql}"));
    }
    stage.line(format!("  load    {} by {}", source.description(), plan::words(settings)));
    stage.line(format!("  until   {}", until(settings)));
}

/// What a run line says after the threads.
pub fn until(settings: &Settings) -> String {
    match settings.command.length {
        Length::Time(time) => match settings.command.written_duration() {
            Some((number, unit)) => format!("{number} {}", unit.to_ascii_lowercase()),
            None => format!("{} seconds", time.as_secs_f64()),
        },
        Length::Count(count) => format!("for {count} iteration"),
        Length::Uncertainty(uncertainty) => format!("until stderr of mean < {}", uncertainty.target),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_lasts_as_long_as_was_written_in_the_unit_that_was_written() {
        for (length, said) in [
            ("duration=30s", "30 seconds"),
            ("duration=90s", "90 seconds"),
            ("duration=5m", "5 minutes"),
            ("duration=1M", "1 minutes"),
            ("duration=2h", "2 hours"),
            ("duration=1000s", "1000 seconds"),
            ("duration=1.5s", "1.5 seconds"),
            ("duration=500ms", "0.5 seconds"),
            ("duration=2min", "120 seconds"),
            ("n=1500", "for 1500 iteration"),
            ("err<0.05", "until stderr of mean < 0.05"),
        ] {
            let settings = Settings::parse(&["write", length]).unwrap();
            assert_eq!(until(&settings), said, "{length}");
        }
    }
}
