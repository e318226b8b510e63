//! What a disk without faults costs, beside the real directory behind it.
//!
//! Both are measured in turn, in one run, in a mount namespace of this program's own. Read the ratios; the absolute
//! numbers are this machine's and its disk's, at this moment.
//!
//! Needs root. Options after `cargo bench -p brownout-disk --`: `--rounds 5`, `--directory /tmp` (on the disk to be measured).

// A program may end with a message; what it needs, it names.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    fs::{self, File, OpenOptions},
    os::{fd::AsRawFd, unix::fs::FileExt},
    path::{Path, PathBuf},
    time::Instant,
};

use brownout_disk::Disk;

const MIB: usize = 1 << 20;
/// Of the file that is read and written as a whole.
const LARGE: usize = 128 * MIB;
const SMALL_OPERATIONS: usize = 500;

/// What is measured: its name, its unit, whether more is better, and how.
type Measure = (&'static str, &'static str, bool, fn(&Path, &Path) -> Vec<f64>);

/// Each gets the directory to work in, and the same directory past the mount, whose pages have to be forgotten as well.
const MEASURES: [Measure; 7] = [
    ("write 512 B", "µs", false, |directory, _| {
        let file = open(&directory.join("log"));
        each(SMALL_OPERATIONS, |n| file.write_all_at(&[1; 512], n as u64 * 512).unwrap())
    }),
    ("write 512 B + fdatasync", "µs", false, |directory, _| {
        let file = open(&directory.join("log"));
        each(SMALL_OPERATIONS, |n| {
            file.write_all_at(&[1; 512], n as u64 * 512).unwrap();
            file.sync_data().unwrap();
        })
    }),
    ("read 4 KiB, uncached", "µs", false, |directory, source| {
        let file = large(directory);
        forget(&[directory, source]);
        // A stride that no readahead follows.
        each(SMALL_OPERATIONS, |n| {
            file.read_exact_at(&mut [0; 4096], ((n * 7_919_000) % LARGE) as u64 & !4095).unwrap()
        })
    }),
    ("read 4 KiB, cached", "µs", false, |directory, _| {
        let file = large(directory);
        let mut buffer = [0; 4096];
        file.read_exact_at(&mut buffer, 0).unwrap();
        each(SMALL_OPERATIONS, |_| file.read_exact_at(&mut buffer, 0).unwrap())
    }),
    ("create + unlink", "µs", false, |directory, _| {
        let path = directory.join("new");
        each(SMALL_OPERATIONS, |_| {
            File::create(&path).unwrap();
            fs::remove_file(&path).unwrap();
        })
    }),
    ("sequential write", "MiB/s", true, |directory, _| {
        let file = open(&directory.join("stream"));
        let piece = vec![1; MIB];
        let begun = Instant::now();
        (0..LARGE / MIB).for_each(|n| file.write_all_at(&piece, (n * MIB) as u64).unwrap());
        vec![(LARGE / MIB) as f64 / begun.elapsed().as_secs_f64()]
    }),
    ("sequential read, uncached", "MiB/s", true, |directory, source| {
        let file = large(directory);
        forget(&[directory, source]);
        let mut piece = vec![0; MIB];
        let begun = Instant::now();
        (0..LARGE / MIB).for_each(|n| file.read_exact_at(&mut piece, (n * MIB) as u64).unwrap());
        vec![(LARGE / MIB) as f64 / begun.elapsed().as_secs_f64()]
    }),
];

fn open(path: &Path) -> File {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).unwrap()
}

fn large(directory: &Path) -> File {
    open(&directory.join("large"))
}

/// The pages of the large file leave the page cache, on every way to it.
fn forget(directories: &[&Path]) {
    for directory in directories {
        // SAFETY: no memory is involved.
        unsafe { libc::posix_fadvise(large(directory).as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    }
}

/// Microseconds of each of so many operations.
fn each(count: usize, mut operation: impl FnMut(usize)) -> Vec<f64> {
    let timed = |n| {
        let begun = Instant::now();
        operation(n);
        begun.elapsed().as_secs_f64() * 1e6
    };
    (0..count).map(timed).collect()
}

fn quantile(values: &mut [f64], q: f64) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * q).round() as usize]
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let option = |name: &str| Some(arguments.get(arguments.iter().position(|argument| argument == name)? + 1)?.clone());
    let rounds: usize = option("--rounds").map_or(5, |text| text.parse().expect("--rounds takes a number"));
    let parent = option("--directory").map_or_else(std::env::temp_dir, PathBuf::from);

    // SAFETY: constants only.
    unsafe {
        assert_eq!(libc::unshare(libc::CLONE_NEWNS), 0, "this needs root: {}", std::io::Error::last_os_error());
        let none = std::ptr::null();
        libc::mount(none, c"/".as_ptr(), none, libc::MS_REC | libc::MS_PRIVATE, none.cast());
    }
    let directory = tempfile::tempdir_in(parent).unwrap();
    let [plain, source, target] = ["plain", "source", "target"].map(|name| directory.path().join(name));
    for directory in [&plain, &source, &target] {
        fs::create_dir(directory).unwrap();
    }
    let disk = Disk::mount(&source, &target).unwrap();
    for directory in [&plain, &target] {
        let file = large(directory);
        (0..LARGE / MIB).for_each(|n| file.write_all_at(&vec![n as u8; MIB], (n * MIB) as u64).unwrap());
        file.sync_all().unwrap();
    }

    println!(
        "{rounds} rounds; median over all operations (p99 behind it), through the mount and on the real directory"
    );
    println!("{:<26} {:>20} {:>20} {:>8}", "", "mount", "real directory", "ratio");
    for (name, unit, more_is_better, measure) in MEASURES {
        let (mut served, mut real) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            served.extend(measure(&target, &source));
            real.extend(measure(&plain, &plain));
        }
        let worst = if more_is_better { 0.01 } else { 0.99 };
        let [served, real] = [&mut served, &mut real].map(|values| (quantile(values, 0.5), quantile(values, worst)));
        let cell = |(middle, worst): (f64, f64)| format!("{middle:.0} ({worst:.0}) {unit}");
        println!("{name:<26} {:>20} {:>20} {:>8.2}", cell(served), cell(real), served.0 / real.0);
    }
    disk.unmount().unwrap();
}
