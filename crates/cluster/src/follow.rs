//! A log file, followed while another process writes it.

use std::{
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom},
    os::unix::fs::MetadataExt,
    path::PathBuf,
};

/// Bytes taken at once; the rest is taken the next time.
const AT_ONCE: u64 = 4 << 20;
/// A line longer than this is given up: none that is looked for is.
const LONGEST_LINE: usize = 64 << 10;

/// The lines that come into a file, from where it stood when it was first looked at. A file that is not there yet is read from
/// its beginning; so is one that takes the place of another (a log that is rotated, a program that starts again), after what
/// was left in that.
#[derive(Debug)]
pub(crate) struct Follower {
    path: PathBuf,
    open: Option<Open>,
    /// A line that has not ended yet.
    begun: Vec<u8>,
}

#[derive(Debug)]
struct Open {
    file: File,
    identity: (u64, u64),
    read: u64,
}

impl Follower {
    /// From here on: what the file holds already is left out.
    pub(crate) fn from_now(path: PathBuf) -> Follower {
        let mut follower = Follower { path, open: None, begun: Vec::new() };
        if let Ok(mut open) = follower.open_now() {
            open.read = open.file.seek(SeekFrom::End(0)).unwrap_or(0);
            follower.open = Some(open);
        }
        follower
    }

    /// The lines that have ended since the last call. What cannot be read is as if it were not there.
    pub(crate) fn lines(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut bytes = self.rest();
        let there = fs::metadata(&self.path).map(|found| (found.dev(), found.ino())).ok();
        if there.is_some() && there != self.open.as_ref().map(|open| open.identity) {
            // What was begun in the old one stays without an end.
            self.end_lines(&bytes, &mut lines);
            self.begun.clear();
            self.open = self.open_now().ok();
            bytes = self.rest();
        }
        self.end_lines(&bytes, &mut lines);
        lines
    }

    fn open_now(&self) -> io::Result<Open> {
        let file = File::open(&self.path)?;
        let found = file.metadata()?;
        Ok(Open { file, identity: (found.dev(), found.ino()), read: 0 })
    }

    fn rest(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let Some(open) = &mut self.open else { return bytes };
        if open.file.metadata().is_ok_and(|found| found.len() < open.read) && open.file.rewind().is_ok() {
            // Emptied and begun anew.
            open.read = 0;
            self.begun.clear();
        }
        // What was read before an error is kept.
        let _ = (&mut open.file).take(AT_ONCE).read_to_end(&mut bytes);
        open.read += bytes.len() as u64;
        bytes
    }

    fn end_lines(&mut self, bytes: &[u8], lines: &mut Vec<String>) {
        let mut parts = bytes.split(|byte| *byte == b'\n').peekable();
        while let Some(part) = parts.next() {
            if self.begun.len() < LONGEST_LINE {
                self.begun.extend_from_slice(part);
            }
            if parts.peek().is_some() {
                lines.push(String::from_utf8_lossy(&self.begun).into_owned());
                self.begun.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

    use std::io::Write;

    use super::*;

    #[test]
    fn only_lines_that_came_and_ended_since_are_told_each_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("system.log");
        let mut file = File::create(&path).unwrap();
        writeln!(file, "before").unwrap();
        let mut follower = Follower::from_now(path);
        assert!(follower.lines().is_empty());
        write!(file, "one\ntwo\nthr").unwrap();
        assert_eq!(follower.lines(), ["one", "two"]);
        writeln!(file, "ee").unwrap();
        assert_eq!(follower.lines(), ["three"]);
        assert!(follower.lines().is_empty());
    }

    #[test]
    fn a_file_that_comes_later_is_rotated_or_emptied_is_read_from_its_beginning_and_the_old_one_to_its_end() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("gc.log");
        let mut follower = Follower::from_now(path.clone());
        assert!(follower.lines().is_empty());
        let mut old = File::create(&path).unwrap();
        writeln!(old, "a").unwrap();
        assert_eq!(follower.lines(), ["a"]);
        write!(old, "b\nunended").unwrap();
        fs::rename(&path, directory.path().join("gc.log.0")).unwrap();
        fs::write(&path, "c\n").unwrap();
        assert_eq!(follower.lines(), ["b", "c"]);
        fs::write(&path, "d\n").unwrap();
        fs::write(&path, "").unwrap();
        assert!(follower.lines().is_empty());
        fs::write(&path, "e\n").unwrap();
        assert_eq!(follower.lines(), ["e"]);
    }
}
