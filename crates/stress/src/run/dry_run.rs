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
        Length::Time(time) => format!("{} seconds", time.as_secs_f64()),
        Length::Count(count) => format!("for {count} iteration"),
        Length::Uncertainty(uncertainty) => format!("until stderr of mean < {}", uncertainty.target),
    }
}
