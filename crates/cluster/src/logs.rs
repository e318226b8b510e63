//! The last lines of a node's logs.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::Path,
};

/// The log of what a node's process prints itself: the JVM's own words, not the database's.
pub(crate) const CONSOLE: &str = "console.log";

/// Lines kept of each log file: etcd says in 13 how it is to be called, after what was wrong with how it was.
const LINES: usize = 20;
/// Characters shown of a line: a JVM logs its whole class path in one.
const WIDTH: usize = 300;
/// Bytes read from a log's end; lines of a Java stack trace are about 100 bytes long.
const BYTES: u64 = 16 * 1024;

/// The last lines of the console's log and of each of `files` in `directory`, under the file's name; what is empty or
/// absent is left out.
pub(crate) fn tail(directory: &Path, files: &[&str]) -> String {
    let mut text = String::new();
    for file in [&CONSOLE].into_iter().chain(files) {
        match last_lines(&directory.join(file)) {
            Ok(lines) if !lines.is_empty() => {
                for line in lines.lines() {
                    let shown: String = line.chars().take(WIDTH).collect();
                    let cut = if shown.len() < line.len() { " …" } else { "" };
                    text.push_str(&format!("  {file}: {shown}{cut}\n"));
                }
            }
            _ => {}
        }
    }
    if text.is_empty() {
        format!("  (nothing was logged in {})", directory.display())
    } else {
        text.trim_end().to_owned()
    }
}

fn last_lines(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(BYTES)))?;
    let mut bytes = Vec::new();
    file.take(BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    Ok(lines[lines.len().saturating_sub(LINES)..].join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_holds_the_last_lines_of_each_log_and_names_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let long: String = (0..2_000).map(|i| format!("line {i} of a rather long log\n")).collect();
        std::fs::write(directory.path().join("system.log"), long).unwrap();
        std::fs::write(directory.path().join("console.log"), format!("{}\nTerminating\n\n", "x".repeat(5_000)))
            .unwrap();
        let tail = tail(directory.path(), &["system.log", "absent.log"]);
        assert_eq!(tail.lines().count(), 2 + LINES);
        assert!(tail.starts_with("  console.log: xxx"), "{tail}");
        assert!(tail.contains("xxx …\n  console.log: Terminating\n") && tail.len() < 2_000, "{tail}");
        assert!(tail.ends_with("line 1999 of a rather long log"), "{tail}");
    }

    #[test]
    fn no_log_at_all_is_said() {
        let directory = tempfile::tempdir().unwrap();
        assert!(tail(directory.path(), &["system.log"]).contains("nothing was logged"));
    }
}
