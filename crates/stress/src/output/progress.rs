//! A progress line on the terminal. Not for scripts: it goes to stderr, and only if that is a terminal.

use std::{
    io::{self, IsTerminal, Write},
    time::{Duration, Instant},
};

use brownout_load::Live;
use rustix::termios::tcgetwinsize;

use super::{
    SHOWN, ms,
    number::{count, fixed},
    percentile,
};

/// Progress of the run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Time since its start.
    pub elapsed: Duration,
    /// The share that is done, 0 to 1; none for a run without a known end.
    pub share: Option<f64>,
    /// Operations answered per second, recently.
    pub rate: f64,
    /// Operations in flight.
    pub in_flight: u64,
    /// Operations due and not yet sent.
    pub waiting: u64,
    /// Recent 99th percentile of response times, ns; none without operations.
    pub p99_ns: Option<u64>,
    /// Failed, timed out and never sent, since the start.
    pub errors: u64,
}

/// Turns readings of the engine into [`Progress`].
#[derive(Debug)]
pub struct Meter {
    begun: Instant,
    looked: Instant,
    errors: u64,
}

impl Meter {
    /// Begins now.
    pub fn new() -> Self {
        let now = Instant::now();
        Meter { begun: now, looked: now, errors: 0 }
    }

    /// Takes a reading of the engine; `share` as in [`Progress`].
    pub fn look(&mut self, live: &Live, share: Option<f64>) -> Progress {
        let now = Instant::now();
        let seconds = now.duration_since(self.looked).as_secs_f64();
        self.looked = now;
        let progress = Progress::of(live, now.duration_since(self.begun), seconds, share, self.errors);
        self.errors = progress.errors;
        progress
    }
}

impl Default for Meter {
    fn default() -> Self {
        Meter::new()
    }
}

impl Progress {
    /// From a reading of the engine; `seconds` since the previous one, `errors` before it.
    pub fn of(live: &Live, elapsed: Duration, seconds: f64, share: Option<f64>, errors: u64) -> Self {
        Progress {
            elapsed,
            share,
            rate: if seconds > 0.0 { live.delivered as f64 / seconds } else { 0.0 },
            in_flight: live.in_flight,
            waiting: live.waiting,
            p99_ns: (!live.response.is_empty()).then(|| percentile(&live.response, 99.0)),
            errors: errors + live.failed + live.timed_out + live.never_sent,
        }
    }

    /// The line, at most this many characters wide.
    pub fn line(&self, width: usize) -> String {
        let mut text = match self.share {
            Some(share) => {
                let share = share.clamp(0.0, 1.0);
                const PARTS: usize = 20;
                let full = (share * PARTS as f64) as usize;
                let left = match self.left(share) {
                    Some(left) => format!("{} left", clock(left)),
                    None => "– left".to_owned(),
                };
                format!("[{}{}] {:>3.0} %  {left}", "█".repeat(full), "░".repeat(PARTS - full), (share * 100.0).floor())
            }
            None => format!("{} so far", clock(self.elapsed)),
        };
        text.push_str(&format!("  {} op/s  {} in flight", count(self.rate.round() as u64), count(self.in_flight)));
        if self.waiting > 0 {
            text.push_str(&format!("  {} waiting", count(self.waiting)));
        }
        if let Some(p99_ns) = self.p99_ns {
            text.push_str(&format!("  p99 {} ms ({SHOWN})", fixed(ms(p99_ns as f64), 1)));
        }
        text.push_str(&format!("  {} errors", count(self.errors)));
        text.chars().take(width).collect()
    }

    /// The remaining time at the rate so far; unknown during the first hundredth.
    fn left(&self, share: f64) -> Option<Duration> {
        (share >= 0.01).then(|| self.elapsed.mul_f64((1.0 - share) / share))
    }
}

/// `0:05`, `12:34`, `1:02:03`.
fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds / 3600 {
        0 => format!("{}:{:02}", seconds / 60, seconds % 60),
        hours => format!("{hours}:{:02}:{:02}", seconds / 60 % 60, seconds % 60),
    }
}

/// Where the line is drawn.
pub struct Bar {
    shown: bool,
    drawn: bool,
}

impl Bar {
    /// A bar on stderr, or one that draws nothing if that is no terminal.
    pub fn new() -> Self {
        Bar { shown: Bar::is_seen(), drawn: false }
    }

    /// Whether there is a terminal to draw on.
    pub fn is_seen() -> bool {
        io::stderr().is_terminal()
    }

    /// Draws it in place of the previous one. Errors of a terminal that is gone are ignored.
    pub fn draw(&mut self, progress: &Progress) {
        if self.shown {
            let _ = write!(io::stderr(), "\r\x1b[2K{}", progress.line(width()));
            self.drawn = true;
        }
    }

    /// Removes it: before anything else is printed, and at the end.
    pub fn clear(&mut self) {
        if self.drawn {
            let _ = write!(io::stderr(), "\r\x1b[2K");
            self.drawn = false;
        }
    }
}

impl Default for Bar {
    fn default() -> Self {
        Bar::new()
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Columns of the terminal on stderr, minus one because some terminals wrap in the last column; 79 if it does not say.
fn width() -> usize {
    let columns = tcgetwinsize(io::stderr()).map_or(0, |size| size.ws_col);
    if columns > 1 { usize::from(columns) - 1 } else { 79 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(share: Option<f64>) -> Progress {
        Progress {
            elapsed: Duration::from_secs(30),
            share,
            rate: 11_448.6,
            in_flight: 1_024,
            waiting: 0,
            p99_ns: Some(12_345_678),
            errors: 3,
        }
    }

    #[test]
    fn the_line_tells_share_time_left_rate_open_operations_tail_and_errors() {
        assert_eq!(
            progress(Some(0.25)).line(200),
            "[█████░░░░░░░░░░░░░░░]  25 %  1:30 left  11,449 op/s  1,024 in flight  p99 12.3 ms (ok+timed-out)  3 errors"
        );
        assert_eq!(
            progress(None).line(200),
            "0:30 so far  11,449 op/s  1,024 in flight  p99 12.3 ms (ok+timed-out)  3 errors"
        );
        assert!(progress(Some(0.0)).line(200).contains("– left"));
    }

    #[test]
    fn the_line_is_no_wider_than_the_terminal() {
        assert_eq!(progress(Some(0.5)).line(24).chars().count(), 24);
    }
}
