//! The clock of a container that was started with one of its own, as `brownout wrap` prints it: its programs' loader was given
//! the object that shifts clocks, and a file that says by how much. Who changes the file on this machine changes the clock.
//!
//! The kernel tells all of it: what the main process was started with, where the file lies that it names, and who has it mapped.
//! So it does not matter who started the container, nor by what it was selected.

use std::{
    ffi::OsStr,
    fs::{self, OpenOptions},
    io::{BufRead, BufReader},
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
};

use brownout_clock::{FILE_VARIABLE, OBJECT_NAME};

/// What the loader is told of objects by.
const PRELOAD: &str = "LD_PRELOAD";

/// The file of its clock, where this machine has it; else why it has none that can be changed, as the end of a sentence.
pub(crate) fn file_of(pid: u32) -> Result<PathBuf, String> {
    let environment = fs::read(format!("/proc/{pid}/environ")).map_err(|error| {
        format!("what it was started with cannot be read ({error}); run as root, outside of any container")
    })?;
    let inside = named(&environment).ok_or_else(|| {
        "it was started without a clock of its own; start it with the override that `brownout wrap` prints".to_owned()
    })?;
    let lost = || {
        format!(
            "the file of its clock ({}) is not to be found on this machine; print the override anew (`brownout wrap`), and \
             start the container with it",
            inside.display()
        )
    };
    let meant = identity(&seen_by(pid, &inside)).ok_or_else(lost)?;
    let table = |of: &str| fs::read_to_string(format!("/proc/{of}/mountinfo")).unwrap_or_default();
    let candidates = candidates(&inside, &table(&pid.to_string()), &table("self"));
    let file = candidates.into_iter().find(|path| identity(path) == Some(meant)).ok_or_else(lost)?;
    OpenOptions::new().write(true).open(&file).map_err(|error| {
        format!(
            "the file of its clock, {}, cannot be written ({error}); run as root, or mount it writable",
            file.display()
        )
    })?;
    if !is_read(pid, &file) {
        return Err(format!(
            "none of its processes has loaded {OBJECT_NAME}: its programs are linked statically, or its C library is another \
             one than glibc; `brownout wrap` names whom it does not reach"
        ));
    }
    if let Some(other) = other_reader(pid, meant) {
        return Err(format!(
            "its clock is that of another container, too (of process {other}), as replicas of one service have it: `brownout \
             wrap` gives each service one; write a service for each"
        ));
    }
    Ok(file)
}

/// A file of a process, as this one reaches it.
fn seen_by(pid: u32, path: &Path) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/root")).join(path.strip_prefix("/").unwrap_or(path))
}

/// The file that a process was told of, if it was told of the object as well.
fn named(environment: &[u8]) -> Option<PathBuf> {
    let value = |name: &str| {
        let mut all = environment.split(|byte| *byte == 0);
        all.find_map(|one| one.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
    };
    let preload = String::from_utf8_lossy(value(PRELOAD)?);
    let has_object = preload.split([':', ' ']).any(|path| path.rsplit('/').next() == Some(OBJECT_NAME));
    let file = value(FILE_VARIABLE).filter(|file| has_object && !file.is_empty())?;
    Some(PathBuf::from(OsStr::from_bytes(file)))
}

/// Device and inode: equal for one file, by whatever path.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

/// A mount, of `/proc/PID/mountinfo` (proc_pid_mountinfo(5)).
struct Mount {
    device: String,
    root: PathBuf,
    point: PathBuf,
}

fn mounts(table: &str) -> impl Iterator<Item = Mount> {
    table.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(2);
        let (device, root, point) = (fields.next()?, fields.next()?, fields.next()?);
        Some(Mount { device: device.to_owned(), root: unescaped(root), point: unescaped(point) })
    })
}

/// A path as that file writes it: a space is `\040`.
fn unescaped(text: &str) -> PathBuf {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, after @ ..] = rest {
        let code = after.get(..3).filter(|_| *first == b'\\').and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(3..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    PathBuf::from(OsStr::from_bytes(&bytes))
}

/// Where a file of a container may lie on this machine: below each mount here of the filesystem that it lies on there.
fn candidates(inside: &Path, theirs: &str, ours: &str) -> Vec<PathBuf> {
    // Of mounts at one point the last covers the others; of several points, the longest has the file.
    let holding = mounts(theirs).filter(|mount| inside.starts_with(&mount.point));
    let Some(holding) = holding.max_by_key(|mount| mount.point.as_os_str().len()) else { return Vec::new() };
    let Ok(below) = inside.strip_prefix(&holding.point) else { return Vec::new() };
    let on_device = holding.root.join(below);
    let here = mounts(ours).filter(|mount| mount.device == holding.device);
    here.filter_map(|mount| Some(mount.point.join(on_device.strip_prefix(&mount.root).ok()?))).collect()
}

/// Whether a process of the container has mapped the file: the object does so when it is loaded. The main process may be one that
/// only starts others; these are known by their mounts, unless those are everybody's.
fn is_read(pid: u32, file: &Path) -> bool {
    if has_mapped(pid, file) {
        return true;
    }
    let own = mounts_of(pid);
    let is_apart = own.is_some() && own != mounts_of(std::process::id());
    is_apart && processes().filter(|other| mounts_of(*other) == own).any(|other| has_mapped(other, file))
}

/// A process with other mounts that was told of the same file: so it is in another container.
fn other_reader(pid: u32, meant: (u64, u64)) -> Option<u32> {
    let own = mounts_of(pid).filter(|own| Some(own) != mounts_of(std::process::id()).as_ref())?;
    let mut others = processes().filter(|other| mounts_of(*other).is_some_and(|other| other != own));
    let reads = |other: &u32| {
        let told = fs::read(format!("/proc/{other}/environ")).ok();
        let file = told.and_then(|environment| named(&environment));
        file.is_some_and(|file| identity(&seen_by(*other, &file)) == Some(meant))
    };
    others.find(reads)
}

/// Which mounts a process sees: its namespace of them.
fn mounts_of(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/ns/mnt")).ok()
}

fn processes() -> impl Iterator<Item = u32> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn has_mapped(pid: u32, file: &Path) -> bool {
    let (Ok(maps), Some(name)) = (fs::File::open(format!("/proc/{pid}/maps")), file.file_name()) else { return false };
    let name = name.to_string_lossy();
    BufReader::new(maps).lines().map_while(Result::ok).any(|line| is_of(&line, &name))
}

/// A line of maps: range, rights, offset, device, inode, path (proc_pid_maps(5)). Device and inode are not compared: on btrfs and
/// overlayfs they are written otherwise than files have them.
fn is_of(line: &str, name: &str) -> bool {
    line.split_ascii_whitespace().nth(1).is_some_and(|rights| rights.ends_with('s'))
        && line.rsplit('/').next() == Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_known_by_what_the_main_process_was_started_with() {
        let both =
            b"PATH=/bin\0LD_PRELOAD=/brownout/libbrownout-clock.so:/lib/x.so\0BROWNOUT_CLOCK_FILE=/brownout/db.clock\0";
        assert_eq!(named(both), Some("/brownout/db.clock".into()));
        for other in [
            &b"PATH=/bin\0"[..],
            b"LD_PRELOAD=/lib/x.so\0BROWNOUT_CLOCK_FILE=/brownout/db.clock\0",
            b"LD_PRELOAD=/brownout/libbrownout-clock.so\0BROWNOUT_CLOCK_FILE=\0",
            b"XLD_PRELOAD=/brownout/libbrownout-clock.so\0BROWNOUT_CLOCK_FILE=/brownout/db.clock\0",
        ] {
            assert_eq!(named(other), None, "{}", String::from_utf8_lossy(other));
        }
    }

    #[test]
    fn its_file_is_looked_for_below_the_mounts_of_its_filesystem() {
        let theirs = "612 600 0:50 / / rw,relatime - overlay overlay rw\n\
                      630 612 8:1 /home/u/my\\040shop/.brownout /brownout ro,relatime - ext4 /dev/sda1 rw\n";
        let ours = "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n\
                    40 22 8:1 /home /data rw,relatime - ext4 /dev/sda1 rw\n\
                    41 22 8:1 /var /other rw,relatime - ext4 /dev/sda1 rw\n\
                    42 22 0:50 / /x rw,relatime - overlay overlay rw\n";
        let found = candidates(Path::new("/brownout/db.clock"), theirs, ours);
        assert_eq!(
            found,
            [Path::new("/home/u/my shop/.brownout/db.clock"), Path::new("/data/u/my shop/.brownout/db.clock")]
        );
        assert!(candidates(Path::new("/brownout/db.clock"), "", ours).is_empty());
    }

    #[test]
    fn who_has_the_file_mapped_is_seen() {
        let line = "7f00-7f01 r--s 00000000 08:01 4711                    /brownout/db.clock";
        assert!(is_of(line, "db.clock") && !is_of(line, "web.clock"));
        assert!(!is_of(&line.replace("r--s", "r--p"), "db.clock"), "a copy of its own");
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("own.clock");
        let clock = brownout_clock::HostClock::create(&path).unwrap();
        assert!(is_read(std::process::id(), &path));
        drop(clock);
        assert!(!is_read(std::process::id(), &path));
    }

    #[test]
    fn who_was_started_without_one_is_told_what_to_start_it_with() {
        let refused = file_of(std::process::id()).unwrap_err();
        assert!(refused.contains("brownout wrap"), "{refused}");
    }
}
