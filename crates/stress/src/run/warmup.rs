//! The warm-up.

use brownout_load::{Live, Pace};

use super::{
    RunError,
    console::Console,
    execution::Run,
    phase::{End, How, Watch},
    plan,
};
use crate::output::{Bar, Meter};

impl Run<'_> {
    /// As in cassandra-stress: for every operation a quarter of the run, at most 50,000, for each node of `-node`; at
    /// most 100 threads, as fast as they can; the first partitions of the run.
    ///
    /// # Errors
    /// An operation failed; the user interrupts; a load thread died.
    pub(super) fn warm_up(&mut self) -> Result<(), RunError> {
        let settings = self.settings;
        let (iterations, threads) = plan::warm_up(settings);
        if iterations == 0 {
            return Ok(());
        }
        for (place, (name, _)) in self.source.operations().into_iter().enumerate() {
            self.console.line(format!("Warming up {name} with {iterations} iterations..."));
            let mut phase = self.phase(Some(place), Some(iterations), vec![Pace::Closed { threads }], Some(threads))?;
            phase.end = End::Dry;
            let mut telling = Unmeasured { console: &mut *self.console, meter: Meter::new() };
            match phase.run(&mut telling, self.interrupted)?.how {
                How::Done => {}
                How::Failed => return Err(RunError::Warmup),
                How::Interrupted => return Err(RunError::Interrupted { what: "the warm-up" }),
            }
        }
        Ok(())
    }
}

/// Of a warm-up, only failures and progress are reported.
struct Unmeasured<'a> {
    console: &'a mut Console,
    meter: Meter,
}

impl Watch for Unmeasured<'_> {
    fn complaint(&mut self, line: &str) {
        self.console.aside(line);
    }

    fn live(&mut self, live: &Live, share: Option<f64>) {
        let progress = self.meter.look(live, share);
        self.console.bar().draw(&progress);
    }

    fn wants_live(&self) -> bool {
        Bar::is_seen()
    }
}
