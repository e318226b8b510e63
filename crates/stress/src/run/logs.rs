//! What a run writes besides its account: rows, HdrHistogram log, series, endpoint, graph, run file.

use std::{
    fs::File,
    io::BufWriter,
    path::Path,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use brownout_base::clock::monotonic_ns;
use brownout_load::{Balance, Bucket, ConnectionEvent, Live};

use super::{RunError, console::Console, phase::Watch, plan};
use crate::{
    output::{
        Bar, Csv, Ended, Exporter, GraphTest, HdrLog, Interval, Measure, Meter, Now, OutputError, Rows, RunFile,
        RunPlan, Total, Width, run_path,
    },
    settings::{Level, Settings},
};

/// All outputs that are written during a run. It lives through all steps of the run.
pub struct Logs {
    rows: Rows,
    /// Time between two headers, and when the last was printed.
    header: Option<Duration>,
    headed: Instant,
    hdr: Option<HdrLog<BufWriter<File>>>,
    csv: Option<Csv<BufWriter<File>>>,
    exporter: Option<Exporter>,
    record: Option<RunFile>,
    graph: Option<GraphTest>,
    graphs: Vec<GraphTest>,
    graphs_wanted: bool,
    revision: String,
    command: String,
    quiet: bool,
    /// Outputs that could not be written: they are given up, and the run continues.
    broken: Vec<String>,
    now: Now,
    meter: Meter,
    /// When the load ended, if it has.
    over_ns: Option<u64>,
    /// The name of the current step, if there are several.
    label: String,
    /// The step whose figures stand for the run, counted from 0, if it is not the last.
    shown: Option<usize>,
    /// The sum of earlier steps, for outputs that cover all of them.
    before: Option<Interval>,
}

fn create(path: &Path) -> Result<BufWriter<File>, RunError> {
    let made = File::create(path).map_err(|source| RunError::File { path: path.to_owned(), source });
    Ok(BufWriter::new(made?))
}

/// The current time on both clocks: CLOCK_MONOTONIC in ns, and ms since 1970.
pub fn both_clocks() -> (u64, u64) {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (monotonic_ns(), unix.as_millis() as u64)
}

impl Logs {
    /// Opens everything that the settings name. `open`: the loop is open, so that an interval in which nothing ended
    /// deserves a row.
    ///
    /// # Errors
    /// A file cannot be made; the endpoint cannot be listened on.
    pub fn open(settings: &Settings, plan: &RunPlan, open: bool) -> Result<Self, RunError> {
        let (now_ns, unix_ms) = both_clocks();
        let log = &settings.log;
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| RunError::File { path, source }
        };
        let hdr = match &log.hdr_file {
            Some(path) => Some(
                HdrLog::begin(create(path)?, plan::has_schedule(settings), now_ns, unix_ms).map_err(failed(path))?,
            ),
            None => None,
        };
        let csv = match &log.csv {
            Some(path) => Some(Csv::begin(create(path)?, now_ns, unix_ms).map_err(failed(path))?),
            None => None,
        };
        let record = match &settings.extras.record {
            Some(path) => {
                let path = run_path(&path.to_string_lossy());
                Some(RunFile::begin(&path, plan, now_ns, unix_ms)?)
            }
            None => None,
        };
        let now = Now { in_flight: 0, waiting: 0 };
        let exporter = log.prometheus.map(Exporter::listen).transpose()?;
        if let Some(exporter) = &exporter {
            // A scrape during the warm-up finds all metrics at 0.
            exporter.publish(&Total::new(now_ns, Measure::Service), now);
        }
        Ok(Logs {
            rows: Rows {
                width: if settings.extras.apache { Width::Wide } else { Width::Narrow },
                empty: open || log.level == Level::Verbose,
            },
            header: settings.reporting.header,
            headed: Instant::now(),
            hdr,
            csv,
            exporter,
            record,
            graph: None,
            graphs: Vec::new(),
            graphs_wanted: settings.graph.file.is_some(),
            revision: settings.graph.revision.clone(),
            command: settings.words.join(" "),
            // As in cassandra-stress, where the level silences only ignored errors.
            quiet: log.level == Level::Minimal && settings.errors.ignore,
            broken: Vec::new(),
            now,
            meter: Meter::new(),
            over_ns: None,
            label: String::new(),
            shown: None,
            before: None,
        })
    }

    /// How rows are printed.
    pub fn rows(&self) -> Rows {
        self.rows
    }

    /// A step begins. `threads` distinguishes it from other steps in the graph.
    pub fn begin(&mut self, test: &str, threads: Option<u32>) {
        let revision = match threads {
            Some(threads) => {
                self.label = format!("{threads} threads");
                format!("{} - {threads} threads", self.revision)
            }
            None => self.revision.clone(),
        };
        // Rows are kept only for the graph.
        self.graph = self.graphs_wanted.then(|| GraphTest::new(test, &revision, &self.command));
        self.meter = Meter::new();
    }

    /// Measuring begins, or continues in another step.
    pub fn measure(&mut self, start_ns: u64) {
        if let Some(record) = &mut self.record {
            let done = record.measure(start_ns, self.over_ns.take().unwrap_or(start_ns), &self.label);
            self.check(done);
        }
    }

    /// Sets the name of the next step, if there are several.
    pub fn label(&mut self, label: String) {
        self.label = label;
    }

    /// The part of the current step that counts.
    pub fn stretch(&mut self, from_ns: u64, to_ns: u64) {
        if let Some(record) = &mut self.record {
            record.narrow(from_ns);
        }
        self.over_ns = Some(to_ns);
    }

    /// Sets the step, counted from 0, whose figures stand for the run, instead of the last.
    pub fn show(&mut self, step: usize) {
        self.shown = Some(step);
    }

    /// Prints the header of rows.
    pub fn head(&mut self, console: &mut Console) {
        self.headed = Instant::now();
        console.line(self.rows.header(""));
    }

    /// An interval has ended: writes it to all outputs except rows.
    pub fn interval(&mut self, interval: &Interval, total: &Total) {
        if let Some(hdr) = &mut self.hdr {
            let done = hdr.interval(interval);
            if !self.check_io("-log hdrfile=", done) {
                self.hdr = None;
            }
        }
        if let Some(graph) = &mut self.graph {
            graph.interval(interval, total);
        }
        if let Some(exporter) = &self.exporter {
            // Counters must only grow, whichever step they belong to.
            let all = self.before.as_ref().map(|before| {
                let mut all = before.clone();
                all.add(&total.interval);
                Total { interval: all, ..total.clone() }
            });
            exporter.publish(all.as_ref().unwrap_or(total), self.now);
        }
    }

    /// A step has ended.
    pub fn end(&mut self, total: &Total) {
        if let Some(mut graph) = self.graph.take() {
            graph.end(total);
            self.graphs.push(graph);
        }
        match &mut self.before {
            Some(before) => before.add(&total.interval),
            None => self.before = Some(total.interval.clone()),
        }
    }

    /// Closes all of them; returns the tests of the graph, and the outputs that could not be written.
    pub fn close(mut self, ended: Ended<'_>, warnings: &[String], sheet: &Balance) -> (Vec<GraphTest>, Vec<String>) {
        if let Some(csv) = self.csv.take() {
            self.check_io("-log csv=", csv.end());
        }
        if let Some(mut record) = self.record.take() {
            let warned = warnings.iter().try_for_each(|text| record.warning(text, monotonic_ns()));
            let over_ns = self.over_ns.unwrap_or_else(monotonic_ns);
            let done = warned.and_then(|()| record.end(over_ns, monotonic_ns(), ended, sheet, self.shown));
            self.check(done);
        }
        (self.graphs, self.broken)
    }

    fn check(&mut self, done: Result<(), OutputError>) {
        if let Err(error) = done {
            self.broken.push(error.to_string());
            self.record = None;
        }
    }

    /// Checks that it was written.
    fn check_io(&mut self, option: &str, done: std::io::Result<()>) -> bool {
        if let Err(error) = &done {
            self.broken.push(format!("{option} could not be written and ends here: {error}"));
        }
        done.is_ok()
    }
}

/// [`Logs`] and the console, for the messages of a phase.
pub struct Telling<'a> {
    /// What is written.
    pub logs: &'a mut Logs,
    /// Where output goes.
    pub console: &'a mut Console,
}

impl Watch for Telling<'_> {
    fn begun(&mut self, start_ns: u64) {
        self.logs.measure(start_ns);
    }

    fn over(&mut self, end_ns: u64) {
        self.logs.over_ns = Some(end_ns);
    }

    fn buckets(&mut self, buckets: &[Bucket], load_cpu_ns: u64, connections: &[ConnectionEvent]) {
        let at = monotonic_ns();
        if let Some(csv) = &mut self.logs.csv {
            let done = csv.buckets(buckets);
            if !self.logs.check_io("-log csv=", done) {
                self.logs.csv = None;
            }
        }
        if let Some(record) = &mut self.logs.record {
            let done = record.buckets(at, buckets, load_cpu_ns).and_then(|()| record.connections(connections));
            self.logs.check(done);
        }
    }

    fn interval(&mut self, interval: &Interval, total: &Total) {
        let rows = self.logs.rows.interval(interval, total);
        if !rows.is_empty() && self.logs.header.is_some_and(|every| self.logs.headed.elapsed() >= every) {
            self.logs.head(self.console);
        }
        for row in rows {
            self.console.line(row);
        }
        self.logs.interval(interval, total);
    }

    fn complaint(&mut self, line: &str) {
        if !self.logs.quiet {
            self.console.aside(line);
        }
    }

    fn live(&mut self, live: &Live, share: Option<f64>) {
        let progress = self.logs.meter.look(live, share);
        self.logs.now = Now { in_flight: live.in_flight, waiting: live.waiting };
        self.console.bar().draw(&progress);
    }

    fn wants_live(&self) -> bool {
        self.logs.exporter.is_some() || Bar::is_seen()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many rows of a run of ten intervals are kept for its end.
    fn kept(words: &[&str]) -> usize {
        let settings = Settings::parse(words).unwrap();
        let mut logs = Logs::open(&settings, &RunPlan::default(), false).unwrap();
        logs.begin("WRITE", None);
        let mut total = Total::new(0, Measure::Service);
        for second in 0..10 {
            let interval = Interval::new(second * 1_000_000_000, 1_000_000_000, Measure::Service);
            total.add(&interval);
            logs.interval(&interval, &total);
        }
        logs.end(&total);
        let (graphs, broken) = logs.close(Ended::Done, &[], &Balance::default());
        assert!(broken.is_empty(), "{broken:?}");
        graphs.iter().map(GraphTest::intervals).sum()
    }

    #[test]
    fn rows_are_kept_only_for_a_graph() {
        let directory = tempfile::tempdir().unwrap();
        let file = format!("file={}", directory.path().join("graph.html").display());
        assert_eq!(kept(&["write", "n=1"]), 0);
        assert_eq!(kept(&["write", "n=1", "-graph", &file]), 10);
    }
}
