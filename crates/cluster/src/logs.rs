//! The last lines of a node's logs.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::Path,
};

/// Lines kept of each log file.
const LINES: usize = 20;
/// Bytes read from a log's end; lines of a Java stack trace are about 100 bytes long.
const BYTES: u64 = 16 * 1024;

/// The last lines of each of `files` in `folder`, under the file's name; files that are empty or absent are left out.
pub(crate) fn tail(folder: &Path, files: &[&str]) -> String {
    let mut text = String::new();
    for file in files {
        match last_lines(&folder.join(file)) {
            Ok(lines) if !lines.is_empty() => {
                for line in lines.lines() {
                    text.push_str(&format!("  {file}: {line}\n"));
                }
            }
            _ => {}
        }
    }
    if text.is_empty() { format!("  (nothing was logged in {})", folder.display()) } else { text.trim_end().to_owned() }
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
        let folder = tempfile::tempdir().unwrap();
        let long: String = (0..2_000).map(|i| format!("line {i} of a rather long log\n")).collect();
        std::fs::write(folder.path().join("system.log"), long).unwrap();
        std::fs::write(folder.path().join("console.log"), "Terminating\n\n").unwrap();
        let tail = tail(folder.path(), &["console.log", "system.log", "absent.log"]);
        assert_eq!(tail.lines().count(), 1 + LINES);
        assert!(tail.starts_with("  console.log: Terminating\n"), "{tail}");
        assert!(tail.ends_with("line 1999 of a rather long log"), "{tail}");
    }

    #[test]
    fn no_log_at_all_is_said() {
        let folder = tempfile::tempdir().unwrap();
        assert!(tail(folder.path(), &["system.log"]).contains("nothing was logged"));
    }
}
