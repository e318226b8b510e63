//! A disk serves a database, takes bounded memory and descriptors, and works where a lab runs.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::{
    env,
    fs::{self, File},
    io::Write,
    path::Path,
    process::Command,
};

use brownout_disk::{Disk, DiskFault, Operations};
use brownout_units::{Delay, Share};
use rusqlite::Connection;

use common::{Mounted, SYNC, WRITE, descriptors_of_service, eventually, failing, own_mounts, settled, slower};

#[test]
fn a_database_on_a_disk_that_is_slow_at_times_stays_whole() {
    let mounted = Mounted::new();
    let share = "20%".parse::<Share>().unwrap();
    let fault = DiskFault { share, ..slower(Operations::ALL, Delay::from_ms(3)) };
    let guard = mounted.control().impair(&fault).unwrap();
    let path = mounted.target.join("database");
    let write = |connection: &Connection, from: i64| {
        for n in from..from + 100 {
            connection.execute("INSERT INTO rows VALUES (?1, ?2)", (n, vec![n as u8; 5000])).unwrap();
            connection.execute("DELETE FROM rows WHERE key = ?1", [n - 20]).unwrap();
        }
    };
    let open = || {
        let connection = Connection::open(&path).unwrap();
        // A write-ahead log, with its shared memory in a mapped file, and the database mapped, too.
        let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)).unwrap();
        assert_eq!(mode, "wal");
        connection
            .execute_batch("PRAGMA synchronous = FULL; PRAGMA mmap_size = 10000000; PRAGMA busy_timeout = 60000")
            .unwrap();
        connection
    };
    let connection = open();
    connection.execute_batch("CREATE TABLE rows (key INTEGER PRIMARY KEY, value BLOB)").unwrap();
    std::thread::scope(|scope| {
        for n in 0..2 {
            scope.spawn(move || write(&open(), 1000 * (n + 1)));
        }
    });
    drop((connection, guard));
    // As the mount shows it, and as the real directory holds it.
    for path in [&path, &mounted.source.join("database")] {
        let connection = Connection::open(path).unwrap();
        let check: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        let rows: i64 = connection.query_row("SELECT count(*) FROM rows", [], |row| row.get(0)).unwrap();
        assert_eq!((check.as_str(), rows), ("ok", 40));
    }
    let counters = settled(&mounted.control());
    assert!(counters.of(SYNC).received >= 360 && counters.of(WRITE).delayed > 100, "{counters:?}");
}

#[test]
fn what_is_forgotten_and_closed_takes_no_descriptor_any_more() {
    let mounted = Mounted::new();
    fs::create_dir(mounted.target.join("directory")).unwrap();
    let before = descriptors_of_service(&mounted.source);
    for round in 0..20 {
        let names: Vec<_> = (0..200).map(|n| mounted.target.join(format!("directory/{round}-{n}"))).collect();
        for name in &names {
            let mut file = File::create(name).unwrap();
            file.write_all(b"text").unwrap();
            fs::hard_link(name, name.with_extension("linked")).unwrap();
            fs::rename(name.with_extension("linked"), name.with_extension("moved")).unwrap();
            assert!(fs::metadata(name.with_extension("none")).is_err());
        }
        assert_eq!(fs::read_dir(mounted.target.join("directory")).unwrap().count(), 400);
        for name in &names {
            fs::remove_file(name).unwrap();
            fs::remove_file(name.with_extension("moved")).unwrap();
        }
    }
    // 4,000 files have been; the kernel tells of its forgetting a little later.
    eventually("the descriptors to be closed", || descriptors_of_service(&mounted.source) <= before + 2);
}

#[test]
fn the_process_shares_no_descriptor_with_the_threads_that_serve() {
    let mounted = Mounted::new();
    let files: Vec<_> = (0..50).map(|n| mounted.create(&n.to_string())).collect();
    let links = |directory: &Path| -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap().flatten();
        entries.filter_map(|entry| Some(fs::read_link(entry.path()).ok()?.to_str()?.to_owned())).collect()
    };
    let ours = links(Path::new("/proc/self/fd"));
    let source = mounted.source.to_str().unwrap();
    assert!(!ours.iter().any(|link| link.contains("/dev/fuse") || link.starts_with(source)), "{ours:?}");
    // A child, whatever it inherits, does not keep the disk alive either.
    let child = Command::new("ls").args(["-l", "/proc/self/fd"]).output().unwrap();
    assert!(!String::from_utf8(child.stdout).unwrap().contains("fuse"));
    // Each open file and each known one takes a descriptor of theirs.
    assert!(descriptors_of_service(&mounted.source) >= 100);
    drop(files);
}

#[test]
fn a_disk_can_cover_its_own_source() {
    own_mounts();
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("file"), "text").unwrap();
    let disk = Disk::mount(directory.path(), directory.path()).unwrap();
    assert_eq!(fs::read_to_string(directory.path().join("file")).unwrap(), "text");
    fs::write(directory.path().join("new"), "new").unwrap();
    assert_eq!(disk.control().take_counters().of(WRITE).bytes, 3);
    disk.unmount().unwrap();
    assert_eq!(fs::read_to_string(directory.path().join("new")).unwrap(), "new");
}

#[test]
fn many_disks_are_independent() {
    let (one, two) = (Mounted::new(), Mounted::new());
    let _guard = one.control().impair(&failing(WRITE, brownout_disk::DiskErrno::Io)).unwrap();
    assert!(fs::write(one.target.join("file"), "text").is_err());
    fs::write(two.target.join("file"), "text").unwrap();
    assert_eq!(one.control().take_counters().of(WRITE).failed, 1);
    assert_eq!(two.control().take_counters().of(WRITE).failed, 0);
}

/// Not a test: what the child of the next one does, as the mapped root of a user namespace.
#[test]
#[ignore = "run by another test, as a child"]
fn what_a_child_in_a_user_namespace_does() {
    let Some(directory) = env::var_os("DISK_TEST_DIRECTORY") else { return };
    let directory = Path::new(&directory);
    Disk::available().unwrap();
    let target = directory.join("target");
    let disk = Disk::mount(&directory.join("source"), &target).unwrap();
    let guard = disk.control().impair(&slower(SYNC, Delay::from_secs(60))).unwrap();
    let file = File::create(target.join("file")).unwrap();
    let waiting = std::thread::spawn(move || file.sync_all());
    eventually("the fsync to wait", || disk.control().waiting() == 1);
    fs::create_dir(target.join("directory")).unwrap();
    disk.unmount().unwrap();
    assert!(waiting.join().unwrap().is_err());
    drop(guard);
    println!("all is well");
}

#[test]
fn it_works_without_root_in_a_user_namespace() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["source", "target"] {
        fs::create_dir(directory.path().join(name)).unwrap();
    }
    let mut child = Command::new("unshare");
    child.args(["--user", "--map-root-user", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]);
    child.arg(env::current_exe().unwrap());
    child.args(["--exact", "what_a_child_in_a_user_namespace_does", "--ignored", "--nocapture"]);
    let output = child.env("DISK_TEST_DIRECTORY", directory.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("all is well"), "{text}");
    assert!(directory.path().join("source/directory").is_dir());
}
