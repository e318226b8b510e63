//! Trees of files: a picture of one, to compare, and a random course of operations on one.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    hash::{DefaultHasher, Hash, Hasher},
    io::Write,
    os::unix::fs::{FileExt, MetadataExt, symlink},
    path::{Path, PathBuf},
};

use brownout_base::random::Random;

/// Everything about a tree that must be the same on both sides: by name, the kind and mode, owners, links, size, the time
/// if it was set (long ago), and what is in it.
pub fn picture(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut all = BTreeMap::new();
    let mut todo = vec![root.to_owned()];
    while let Some(path) = todo.pop() {
        let stat = fs::symlink_metadata(&path).unwrap();
        let mut hasher = DefaultHasher::new();
        if stat.is_file() {
            fs::read(&path).unwrap().hash(&mut hasher);
        } else if stat.is_symlink() {
            fs::read_link(&path).unwrap().hash(&mut hasher);
        } else if stat.is_dir() {
            todo.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        let size = if stat.is_dir() { 0 } else { stat.size() };
        let set = stat.mtime() < 1_500_000_000;
        let time = set.then(|| (stat.mtime(), stat.mtime_nsec()));
        let line = format!(
            "{:o} {}:{} {} links {size} bytes {time:?} {:x}",
            stat.mode(),
            stat.uid(),
            stat.gid(),
            stat.nlink(),
            hasher.finish()
        );
        all.insert(path.strip_prefix(root).unwrap().to_owned(), line);
    }
    all
}

/// One of a few names in `root`.
fn name(random: &mut Random, root: &Path) -> PathBuf {
    let names = ["a", "b", "c", "d/a", "d/b", "d/e", "d/e/a", "d", "f"];
    root.join(names[random.below(names.len() as u64) as usize])
}

/// Carries out `steps` random operations in `root`; returns what each answered.
pub fn wander(root: &Path, seed: u64, steps: usize) -> Vec<(&'static str, Result<u64, i32>)> {
    let mut random = Random::new(seed);
    // Files that stay open while others rename, link and unlink them.
    let mut open: Vec<File> = Vec::new();
    (0..steps)
        .map(|_| {
            let (one, two) = (name(&mut random, root), name(&mut random, root));
            let (offset, length) = (random.below(200_000), random.below(30_000) as usize);
            let byte = random.below(256) as u8;
            let pick = random.below(1000) as usize;
            let (what, result): (_, std::io::Result<u64>) = match random.below(16) {
                0 | 1 => (
                    "create",
                    OpenOptions::new().read(true).write(true).create(true).truncate(byte & 1 == 0).open(&one).map(
                        |file| {
                            open.push(file);
                            0
                        },
                    ),
                ),
                2 => (
                    "append",
                    OpenOptions::new()
                        .append(true)
                        .open(&one)
                        .and_then(|mut file| file.write_all(&vec![byte; length]))
                        .map(|()| 0),
                ),
                3 => ("mkdir", fs::create_dir(&one).map(|()| 0)),
                4 => ("rmdir", fs::remove_dir(&one).map(|()| 0)),
                5 => ("unlink", fs::remove_file(&one).map(|()| 0)),
                6 => ("rename", fs::rename(&one, &two).map(|()| 0)),
                7 => ("link", fs::hard_link(&one, &two).map(|()| 0)),
                8 => ("symlink", symlink("b", &one).map(|()| 0)),
                9 => (
                    "read",
                    fs::read(&one).map(|bytes| {
                        let mut hasher = DefaultHasher::new();
                        bytes.hash(&mut hasher);
                        hasher.finish()
                    }),
                ),
                10 => ("list", fs::read_dir(&one).map(|entries| entries.count() as u64)),
                11 => (
                    "stat",
                    fs::symlink_metadata(&one)
                        .map(|stat| if stat.is_dir() { stat.nlink() } else { stat.nlink() << 32 | stat.size() }),
                ),
                kind => {
                    if open.is_empty() {
                        return ("nothing open", Ok(0));
                    }
                    let at = pick % open.len();
                    let file = &open[at];
                    match kind {
                        12 | 13 => ("write", file.write_at(&vec![byte; length], offset).map(|n| n as u64)),
                        14 => (
                            "truncate",
                            file.set_len(offset)
                                .and_then(|()| file.metadata())
                                .map(|stat| stat.nlink() << 32 | stat.size()),
                        ),
                        _ => {
                            let synced = file.sync_data().map(|()| 0);
                            open.swap_remove(at);
                            ("sync and close", synced)
                        }
                    }
                }
            };
            (what, result.map_err(|error| error.raw_os_error().unwrap()))
        })
        .collect()
}
