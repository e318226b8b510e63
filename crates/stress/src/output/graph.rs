//! `-graph file=`: a self-contained page that draws one or several runs.
//!
//! The page needs no other files. Its figures stand between `/* stats start */` and `/* stats end */` as `stats =
//! {…};`, in the layout of cassandra-stress's graphs, so that programs which read those can read these, and a run can
//! be added to a file written by either tool. Every interval is a list of the 19 columns of the progress rows, the
//! first of them null; unlike there, `intervals` holds only the totals, and the intervals of each operation are
//! separate under `operations`. An interval in which nothing ended has null latencies.

use std::{fs, io::ErrorKind, path::Path};

use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};

use super::{
    COLUMNS, Interval, Operation, OutputError, Total, rows::Figures, summary::figures, words::without_passwords,
};

const PAGE: &str = include_str!("graph.html");
const START: &str = "/* stats start */";
const END: &str = "/* stats end */";

/// One run of the page (or one step of a run in steps).
#[derive(Debug, Clone)]
pub struct GraphTest {
    test: String,
    revision: String,
    command: String,
    intervals: Vec<Value>,
    operations: Map<String, Value>,
    results: Vec<(String, String)>,
}

impl GraphTest {
    /// Begins a run: `test` is `op=` or the command's name, `revision` what `revision=` says, `command` the words.
    pub fn new(test: &str, revision: &str, command: &str) -> Self {
        GraphTest {
            test: test.to_owned(),
            revision: revision.to_owned(),
            command: without_passwords(command),
            intervals: Vec::new(),
            operations: Map::new(),
            results: Vec::new(),
        }
    }

    /// Adds an interval, even an empty one; `so_far` includes it.
    pub fn interval(&mut self, interval: &Interval, so_far: &Total) {
        let (all, sum) = (interval.all(), so_far.interval.ended());
        self.intervals.push(row(&all, sum, interval, so_far));
        if interval.operations.len() < 2 {
            return;
        }
        for operation in &interval.operations {
            let before = so_far.interval.operations.iter().find(|known| known.name == operation.name);
            let row = row(operation, before.map_or(0, Operation::ended), interval, so_far);
            if let Some(Value::Array(rows)) = self.operations.get_mut(&operation.name) {
                rows.push(row);
            } else {
                self.operations.insert(operation.name.clone(), Value::Array(vec![row]));
            }
        }
    }

    /// How many there are.
    #[cfg(test)]
    pub(crate) fn intervals(&self) -> usize {
        self.intervals.len()
    }

    /// Adds the figures of the `Results:` block.
    pub fn end(&mut self, total: &Total) {
        self.results = figures(total);
    }

    fn value(&self) -> Value {
        let mut test = Map::new();
        for (name, text) in &self.results {
            // cassandra-stress's page looks for these in lower case.
            test.insert(name.to_lowercase(), json!(text.trim()));
        }
        test.insert("metrics".into(), json!(COLUMNS));
        test.insert("population".into(), json!(super::SHOWN.name()));
        test.insert("test".into(), json!(self.test));
        test.insert("revision".into(), json!(self.revision));
        test.insert("command".into(), json!(self.command));
        test.insert("intervals".into(), Value::Array(self.intervals.clone()));
        if !self.operations.is_empty() {
            test.insert("operations".into(), Value::Object(self.operations.clone()));
        }
        Value::Object(test)
    }
}

fn row(operation: &Operation, so_far: u64, interval: &Interval, total: &Total) -> Value {
    let figures = Figures::of(operation, interval.length_ns, interval.measure);
    let rounded = |value: f64| (value * 1e5).round() / 1e5;
    let mut row = vec![Value::Null, json!(so_far)];
    row.extend([figures.operations, figures.partitions, figures.rows].map(|rate| json!(rounded(rate))));
    let timed = operation.ended() > 0;
    row.extend(figures.latencies_ms.map(|latency| if timed { json!(rounded(latency)) } else { Value::Null }));
    row.push(json!(rounded(total.interval.length_ns as f64 * 1e-9)));
    row.push(json!(rounded(total.uncertainty.value())));
    row.push(json!(operation.errors()));
    row.extend([0; 5].map(|nothing| json!(nothing)));
    Value::Array(row)
}

/// The text of the page with these tests added to those of the existing page. `title` replaces that page's title; a new
/// page without one is named after `now`.
///
/// # Errors
/// What is wrong with the existing page, phrased to follow "and".
pub fn page(
    before: Option<&str>,
    title: Option<&str>,
    now: DateTime<Utc>,
    tests: &[GraphTest],
) -> Result<String, String> {
    let mut stats = match before {
        Some(page) => embedded(page)?,
        None => json!({ "title": null, "stats": [] }),
    };
    if let Some(title) = title {
        stats["title"] = json!(title);
    } else if stats["title"].is_null() {
        stats["title"] = json!(format!("brownout stress - {}", now.format("%Y-%m-%d %H:%M:%S")));
    }
    let Some(list) = stats["stats"].as_array_mut() else { return Err("its figures hold no list of tests".to_owned()) };
    list.extend(tests.iter().map(GraphTest::value));
    // Inside a script no text may look like the script's end.
    let text = stats.to_string().replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029");
    let (head, tail) = PAGE.split_once(START).unwrap_or((PAGE, ""));
    let (_, tail) = tail.split_once(END).unwrap_or(("", tail));
    Ok(format!("{head}{START}\nstats = {text};\n{END}{tail}"))
}

/// The figures in a page.
fn embedded(page: &str) -> Result<Value, String> {
    let missing = || "it has no figures between '/* stats start */' and '/* stats end */'".to_owned();
    let (_, rest) = page.split_once(START).ok_or_else(missing)?;
    let (text, _) = rest.rsplit_once(END).ok_or_else(missing)?;
    let text = text.trim().strip_prefix("stats = ").and_then(|text| text.strip_suffix(';')).ok_or_else(missing)?;
    let stats: Value = serde_json::from_str(text).map_err(|error| format!("its figures cannot be read ({error})"))?;
    if stats["stats"].is_array() { Ok(stats) } else { Err("its figures hold no list of tests".to_owned()) }
}

/// Writes the page, or adds the tests to the existing one.
///
/// # Errors
/// The file cannot be read or written, or is not a graph.
pub fn write_graph(
    file: &Path,
    title: Option<&str>,
    now: DateTime<Utc>,
    tests: &[GraphTest],
) -> Result<(), OutputError> {
    let text = added(file, title, now, tests)?;
    // The new page is written to another file and then renamed, so that an interruption does not lose earlier runs.
    let mut name = file.as_os_str().to_owned();
    name.push(".new");
    let beside = Path::new(&name);
    fs::write(beside, text).and_then(|()| fs::rename(beside, file)).map_err(|source| OutputError::File {
        doing: "write the graph",
        path: file.to_owned(),
        source,
    })
}

/// Whether a run can be added to this file: it is a graph, or does not exist.
///
/// # Errors
/// It is something else, or cannot be read.
pub fn check_graph(file: &Path) -> Result<(), OutputError> {
    added(file, None, DateTime::UNIX_EPOCH, &[]).map(drop)
}

/// The page with what is in the file already.
fn added(file: &Path, title: Option<&str>, now: DateTime<Utc>, tests: &[GraphTest]) -> Result<String, OutputError> {
    let failed = |source| OutputError::File { doing: "read the graph", path: file.to_owned(), source };
    let before = match fs::metadata(file) {
        Ok(what) if !what.is_file() => {
            return Err(OutputError::NoGraph { path: file.to_owned(), why: "is no file".to_owned() });
        }
        Ok(_) => Some(fs::read_to_string(file).map_err(failed)?),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(source) => return Err(failed(source)),
    };
    page(before.as_deref(), title, now, tests).map_err(|why| OutputError::NoGraph { path: file.to_owned(), why })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::sample;

    fn test(revision: &str) -> GraphTest {
        let (interval, total) = sample::mixed();
        let mut test = GraphTest::new("MIXED", revision, "mixed n=7 -mode user=me password=s3cret");
        test.interval(&interval, &total);
        test.end(&total);
        test
    }

    fn at() -> DateTime<Utc> {
        DateTime::from_timestamp(1_700_000_000, 0).unwrap()
    }

    #[test]
    fn the_figures_have_the_layout_of_cassandra_stress_s() {
        let page = page(None, Some("A title"), at(), &[test("one")]).unwrap();
        let stats = embedded(&page).unwrap();
        assert_eq!(stats["title"], "A title");
        let test = &stats["stats"][0];
        assert_eq!(test["metrics"].as_array().unwrap().len(), 19);
        assert_eq!((&test["test"], &test["revision"]), (&json!("MIXED"), &json!("one")));
        assert_eq!(test["command"], "mixed n=7 -mode user=me password=*******");
        assert_eq!(test["op rate"], "7 op/s  [READ: 4 op/s, WRITE: 3 op/s]");
        assert_eq!(test["total operation time"], "00:00:01");
        let interval = test["intervals"][0].as_array().unwrap();
        assert_eq!(interval.len(), 19);
        assert_eq!(
            (&interval[0], &interval[1], &interval[11], &interval[13]),
            (&json!(null), &json!(7), &json!(1.0), &json!(2))
        );
        assert_eq!(test["operations"]["READ"][0][1], 4);
    }

    #[test]
    fn the_page_shows_of_which_operations_its_latencies_are() {
        let page = page(None, None, at(), &[test("one")]).unwrap();
        assert_eq!(embedded(&page).unwrap()["stats"][0]["population"], "ok+timed-out");
        // Its script writes that below the latencies, in words that it knows.
        for part in ["<p class=\"note\" id=\"populations\">", "byId(\"populations\")", "test.raw.population"] {
            assert!(page.contains(part), "no {part}");
        }
        assert!(page.contains(&format!("\"{}\": \"operations answered ok and timed out", super::super::SHOWN)));
    }

    #[test]
    fn a_second_run_is_added_and_the_first_stays() {
        let first = page(None, None, at(), &[test("one")]).unwrap();
        let second = page(Some(&first), None, at(), &[test("two")]).unwrap();
        let stats = embedded(&second).unwrap();
        assert_eq!(stats["title"], "brownout stress - 2023-11-14 22:13:20");
        let revisions: Vec<&Value> = stats["stats"].as_array().unwrap().iter().map(|test| &test["revision"]).collect();
        assert_eq!(revisions, ["one", "two"]);
        assert_eq!(second.matches(START).count(), 1);
    }

    #[test]
    fn a_page_of_cassandra_stress_is_added_to() {
        let theirs = "<html><script>\n/* stats start */\nstats = {\"title\":null,\"stats\":[{\"test\":\"WRITE\",\"revision\":\
                      \"x\",\"metrics\":[],\"intervals\":[]}]};\n/* stats end */\n</script></html>";
        let page = page(Some(theirs), None, at(), &[test("two")]).unwrap();
        assert_eq!(embedded(&page).unwrap()["stats"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn no_text_ends_the_script() {
        let page = page(None, Some("</script><b>"), at(), &[]).unwrap();
        assert!(!page.contains("</script><b>"));
        assert_eq!(embedded(&page).unwrap()["title"], "</script><b>");
    }

    #[test]
    fn another_file_is_not_written_over() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("graph.html");
        fs::write(&file, "my thesis").unwrap();
        let error = write_graph(&file, None, at(), &[test("one")]).unwrap_err();
        assert!(error.to_string().contains("it has no figures between"), "{error}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "my thesis");
        fs::remove_file(&file).unwrap();
        write_graph(&file, None, at(), &[test("one")]).unwrap();
        assert!(embedded(&fs::read_to_string(&file).unwrap()).is_ok());
    }
}
