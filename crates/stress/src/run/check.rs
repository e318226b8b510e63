//! Finds what is wrong before any server is contacted; a dry run does this, too.

use brownout_load::Pace;

use super::{RunError, connect, files, nodetool::Nodetool, plan, tls};
use crate::settings::{Rate, Search, Settings};

/// Checks everything that the settings require of this machine, and of one another; `operations` are the names of the
/// load's operations.
///
/// # Errors
/// The first requirement that cannot be met.
pub fn check(settings: &Settings, operations: &[String]) -> Result<(), RunError> {
    files::check(settings)?;
    connect::check_path(settings)?;
    connect::check_engine(settings)?;
    tls::check(settings)?;
    if let Some(nodetool) = Nodetool::needed(settings)? {
        nodetool.check()?;
    }
    for pace in plan::paces(operations, settings)? {
        pace.check()?;
    }
    // Those that it comes to later.
    match &settings.rate {
        Rate::Steps { most, .. } => Pace::Closed { threads: *most }.check()?,
        Rate::Search(Search { to: Some(rate), arrivals, .. }) => {
            Pace::Open { rate: *rate, arrivals: *arrivals }.check()?;
        }
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_engine_would_refuse_is_refused_before_anything_is_made() {
        let told = |words: &str| {
            let words: Vec<&str> = words.split(' ').collect();
            check(&Settings::parse(&words).unwrap(), &["WRITE".to_owned()])
        };
        for (words, why) in [
            ("write n=1 -rate open=20000000/s", "beyond what any client can send"),
            ("write n=1 -rate search(slo=p99<1s,to=20000000/s)", "beyond what any client can send"),
            ("write n=1 -mode requestTimeout=4000000", "the timeout of operations is out of range"),
            ("write n=1 -log interval=7200s", "the length of a bucket is out of range"),
        ] {
            let error = told(words).unwrap_err();
            assert!(error.to_string().contains(why), "{words}: {error}");
            assert_eq!(error.exit_code(), 2, "{words}");
        }
        told("write n=1 -rate search(slo=p99<1s) -log interval=7200s").unwrap();
        told("write n=1 -rate open=500/s").unwrap();
    }
}
