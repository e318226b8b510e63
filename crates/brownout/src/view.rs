//! Live progress: a block of lines that is drawn again each second on a terminal, else one plain line a second.

use std::{
    collections::BTreeMap,
    io::{self, IsTerminal, Write},
    time::{Duration, Instant},
};

use brownout_lab::progress::{OperationTick, Progress, Tick};
use brownout_units::format_ns;

/// How progress is shown. Goes to the lab's first process as a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// A block on the terminal, drawn again.
    Terminal,
    /// Lines on stdout.
    Lines,
    /// Lines on stderr, so that stdout has only JSON.
    LinesOnStderr,
}

impl View {
    /// What suits the streams.
    pub fn suitable(json: bool) -> View {
        match (json, io::stdout().is_terminal()) {
            (true, _) => View::LinesOnStderr,
            (false, true) => View::Terminal,
            (false, false) => View::Lines,
        }
    }

    /// For [`from_text`].
    pub fn text(self) -> &'static str {
        match self {
            View::Terminal => "terminal",
            View::Lines => "lines",
            View::LinesOnStderr => "lines-on-stderr",
        }
    }
}

/// The view of that name.
pub fn from_text(text: &str) -> Box<dyn Progress> {
    let views = [View::Terminal, View::Lines, View::LinesOnStderr];
    new(views.into_iter().find(|view| view.text() == text).unwrap_or(View::Lines))
}

/// A view.
pub fn new(view: View) -> Box<dyn Progress> {
    match view {
        View::Terminal => Box::new(Block { began: Instant::now(), drawn: 0, lab: 0, bodies: BTreeMap::new() }),
        View::Lines => Box::new(Lines { began: Instant::now(), lab: 0, to: Box::new(io::stdout()) }),
        View::LinesOnStderr => Box::new(Lines { began: Instant::now(), lab: 0, to: Box::new(io::stderr()) }),
    }
}

/// The operations whose response times are shown.
const OF: &str = "ok and timed out";

/// A line for each thing reported.
struct Lines {
    began: Instant,
    /// Of which lab it is, of several; 0: there is one.
    lab: u32,
    to: Box<dyn Write + Send>,
}

impl Lines {
    fn line(&mut self, text: &str) {
        // A reader that went away does not end a run.
        let _ = writeln!(self.to, "{:>6.1}s  {}{text}", self.began.elapsed().as_secs_f64(), of_lab(self.lab));
        let _ = self.to.flush();
    }
}

/// "lab 2: ", where there are several.
fn of_lab(lab: u32) -> String {
    if lab == 0 { String::new() } else { format!("lab {lab}: ") }
}

impl Progress for Lines {
    fn of_lab(&mut self, lab: u32) {
        self.lab = lab;
    }

    fn step(&mut self, text: &str) {
        self.line(text);
    }

    fn note(&mut self, text: &str) {
        self.line(&format!("* {text}"));
    }

    fn hand_over(&mut self) {}

    fn tick(&mut self, tick: &Tick) {
        let faults = in_force(tick);
        self.line(&format!(
            "trial {}/{}  {}  {} left, {} of all  offered {:.0}/s  delivered {:.0}/s  failed {}  {OF} p50 {}  p99 {}  p50 by coordinator {}  by operation {}  busy {:.0}%  fault {faults}",
            tick.course.trial,
            tick.course.trials,
            tick.phase,
            seconds(tick.left),
            minutes(tick.left_of_run),
            tick.offered,
            tick.delivered,
            tick.failed,
            format_ns(tick.p50_ns as f64),
            format_ns(tick.p99_ns as f64),
            coordinators(tick),
            operations(tick),
            tick.busy * 100.0,
        ));
    }
}

/// The last lines of the terminal, drawn over themselves; notes scroll away above them.
struct Block {
    began: Instant,
    drawn: usize,
    /// Of which lab it is, of several; 0: there is one.
    lab: u32,
    /// What each of them reported last.
    bodies: BTreeMap<u32, Vec<String>>,
}

impl Block {
    /// Moves to the block's first line and clears from there, prints `above` for good, then the block.
    fn draw(&mut self, above: Option<&str>) {
        let mut text = String::new();
        if self.drawn > 0 {
            text.push_str(&format!("\x1b[{}A", self.drawn));
        }
        text.push_str("\r\x1b[J");
        if let Some(above) = above {
            text.push_str(above);
            text.push('\n');
        }
        let width = columns();
        self.drawn = 0;
        for line in self.bodies.values().flatten() {
            // A line that wraps would be counted as one and drawn over wrongly.
            text.extend(line.chars().take(width.saturating_sub(1)));
            text.push('\n');
            self.drawn += 1;
        }
        let mut out = io::stdout().lock();
        let _ = out.write_all(text.as_bytes());
        let _ = out.flush();
    }

    fn stamped(&self, text: &str) -> String {
        format!("{:>6.1}s  {}{text}", self.began.elapsed().as_secs_f64(), of_lab(self.lab))
    }
}

impl Progress for Block {
    fn of_lab(&mut self, lab: u32) {
        // What was reported before there were labs is over.
        self.bodies.remove(&0);
        self.lab = lab;
    }

    fn step(&mut self, text: &str) {
        let line = self.stamped(text);
        self.bodies.insert(self.lab, vec![line]);
        self.draw(None);
    }

    fn note(&mut self, text: &str) {
        let line = self.stamped(text);
        self.draw(Some(&line));
    }

    fn hand_over(&mut self) {
        self.bodies.clear();
        self.draw(None);
    }

    fn tick(&mut self, tick: &Tick) {
        let body = if self.lab == 0 { body(tick) } else { brief(self.lab, tick) };
        self.bodies.insert(self.lab, body);
        self.draw(None);
    }
}

/// All of a second.
fn body(tick: &Tick) -> Vec<String> {
    vec![
        format!("  {}", course(tick)),
        format!(
            "  offered {:>6.0}/s   delivered {:>6.0}/s   failed {:>4}   machine {:>3.0}% busy",
            tick.offered,
            tick.delivered,
            tick.failed,
            tick.busy * 100.0
        ),
        format!(
            "  response p50 {:>8}   p99 {:>8}   of those {OF}",
            format_ns(tick.p50_ns as f64),
            format_ns(tick.p99_ns as f64)
        ),
        format!("  p50 of the same   by coordinator   {}", coordinators(tick)),
        format!("  p50 of the same   by operation     {}", operations(tick)),
        format!("  fault in force   {}", in_force(tick)),
    ]
}

/// Where in the run it is.
fn course(tick: &Tick) -> String {
    let (left, of_all) = (seconds(tick.left), minutes(tick.left_of_run));
    format!("trial {} of {}    {}    {left} left, {of_all} of all", tick.course.trial, tick.course.trials, tick.phase)
}

fn in_force(tick: &Tick) -> String {
    if tick.faults.is_empty() { "none".to_owned() } else { tick.faults.join("; ") }
}

/// The same in two lines, where several labs have to find room.
fn brief(lab: u32, tick: &Tick) -> Vec<String> {
    vec![
        format!("  lab {lab}    {}    fault in force   {}", course(tick), in_force(tick)),
        format!(
            "          delivered {:>6.0}/s of {:>6.0}/s   failed {:>4}   {OF} p50 {:>8}   p99 {:>8}   its processors {:>3.0}% busy",
            tick.delivered,
            tick.offered,
            tick.failed,
            format_ns(tick.p50_ns as f64),
            format_ns(tick.p99_ns as f64),
            tick.busy * 100.0
        ),
    ]
}

impl Drop for Block {
    fn drop(&mut self) {
        self.hand_over();
    }
}

fn coordinators(tick: &Tick) -> String {
    let part = |(name, p50): &(String, u64)| format!("{name} {}", format_ns(*p50 as f64));
    tick.coordinators.iter().map(part).collect::<Vec<_>>().join("  ")
}

fn operations(tick: &Tick) -> String {
    let part = |operation: &OperationTick| {
        let OperationTick { name, ok, timed_out, p50_ns } = operation;
        format!("{name} {} ({ok} ok, {timed_out} timed out)", format_ns(*p50_ns as f64))
    };
    tick.operations.iter().map(part).collect::<Vec<_>>().join("  ")
}

fn seconds(left: Duration) -> String {
    format!("{:.0}s", left.as_secs_f64())
}

/// `12 min`, or seconds where it is less than two.
fn minutes(left: Duration) -> String {
    let whole = left.as_secs();
    match whole {
        0..120 => format!("{whole}s"),
        120..7200 => format!("{} min", whole / 60),
        _ => format!("{}h {:02} min", whole / 3600, whole / 60 % 60),
    }
}

fn columns() -> usize {
    crate::output::terminal_width().unwrap_or(100)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use brownout_lab::progress::Course;

    use super::*;

    fn tick() -> Tick {
        let read = OperationTick { name: "read".to_owned(), ok: 0, timed_out: 3, p50_ns: 5_000_000_000 };
        Tick {
            course: Course { trial: 1, trials: 1, behind: Duration::ZERO },
            left_of_run: Duration::ZERO,
            phase: "fault".to_owned(),
            left: Duration::ZERO,
            offered: 3.0,
            delivered: 0.0,
            failed: 3,
            p50_ns: 5_000_000_000,
            p99_ns: 5_000_000_000,
            coordinators: vec![("n1".to_owned(), 5_000_000_000)],
            operations: vec![read],
            faults: Vec::new(),
            busy: 0.0,
        }
    }

    #[test]
    fn a_count_beside_a_percentile_is_of_the_same_operations() {
        assert_eq!(operations(&tick()), "read 5.00s (0 ok, 3 timed out)");
    }

    /// What a view of lines writes.
    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn every_view_says_of_which_operations_its_latencies_are() {
        let written = Written::default();
        Lines { began: Instant::now(), lab: 0, to: Box::new(written.clone()) }.tick(&tick());
        let line = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        for shown in [line, body(&tick()).join("\n"), brief(2, &tick()).join("\n")] {
            assert!(shown.contains("p99") && shown.contains("ok and timed out"), "{shown}");
        }
    }
}
