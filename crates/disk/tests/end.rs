//! Nothing hangs: not who is killed while the disk is slow, not when the disk goes, not when its process is killed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::{
    env,
    ffi::CString,
    fs,
    io::{BufRead, BufReader, Write},
    os::{
        fd::AsRawFd,
        unix::{ffi::OsStrExt, process::ExitStatusExt},
    },
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use brownout_disk::{Disk, DiskError};
use brownout_units::Delay;

use common::{
    METADATA, Mounted, PATIENCE, READ, SYNC, WRITE, delayed, errno, eventually, own_mounts, settled, slower, timed,
};

/// What a child of these tests is to do; it runs this same program.
const TASK: &str = "DISK_TEST_TASK";
const DIRECTORY: &str = "DISK_TEST_DIRECTORY";
const MINUTE: Delay = Delay::from_secs(60);

/// Kills a child that a failed test leaves behind.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        // Not for ever: a child that cannot be killed is what some of these tests would find.
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE / 2 && self.0.try_wait().is_ok_and(|status| status.is_none()) {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The directories of a disk that another process serves. Killed, it leaves its mount behind, under which nothing can be
/// removed.
struct Served(Option<tempfile::TempDir>);

impl Served {
    fn new() -> Served {
        let directory = tempfile::tempdir().unwrap();
        for name in ["source", "target"] {
            fs::create_dir(directory.path().join(name)).unwrap();
        }
        Served(Some(directory))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let Some(directory) = self.0.take() else { return };
        let target = CString::new(directory.path().join("target").as_os_str().as_bytes()).unwrap();
        // SAFETY: the path ends with a zero. Refused where nothing is mounted.
        unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) };
        let removed = directory.close();
        // A second panic would hide the first.
        assert!(thread::panicking() || removed.is_ok(), "{removed:?}");
    }
}

fn child(task: &str, directory: &Path) -> Killed {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "what_a_child_does", "--ignored", "--nocapture"]);
    command
        .env(TASK, task)
        .env(DIRECTORY, directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    Killed(command.spawn().unwrap())
}

impl Killed {
    /// Waits until the child says so.
    fn says(&mut self, word: &str) {
        let lines = BufReader::new(self.0.stdout.as_mut().unwrap()).lines();
        assert!(lines.map_while(Result::ok).any(|line| line.ends_with(word)), "the child never said {word}");
    }

    fn signal(&self, signal: i32) {
        // SAFETY: no memory is involved; it is our child, and not waited for yet.
        unsafe { libc::kill(self.0.id() as i32, signal) };
    }

    /// Waits for its end; fails when it hangs.
    fn end(&mut self) -> (std::process::ExitStatus, Duration) {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return (status, begun.elapsed());
            }
            assert!(begun.elapsed() < PATIENCE / 2, "the child hangs");
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Not a test: what the children of the others do, in the mount namespace of the test that started them.
#[test]
#[ignore = "run by the other tests, as a child"]
fn what_a_child_does() {
    let Some(directory) = env::var_os(DIRECTORY) else { return };
    let directory = Path::new(&directory);
    let say = |word: &str| {
        println!("{word}");
        std::io::stdout().flush().unwrap();
    };
    match env::var(TASK).unwrap().as_str() {
        "fsync" => {
            let file = fs::File::create(directory.join("child")).unwrap();
            say("ready");
            std::io::stdin().read_line(&mut String::new()).unwrap();
            let result = file.sync_all();
            say(if result.is_ok() { "synced" } else { "failed" });
        }
        "write" => {
            let mut file = fs::File::create(directory.join("child")).unwrap();
            say("ready");
            std::io::stdin().read_line(&mut String::new()).unwrap();
            file.write_all(b"text").unwrap();
        }
        "mkdir" => {
            say("ready");
            std::io::stdin().read_line(&mut String::new()).unwrap();
            let _ = fs::create_dir(directory.join("made by the child"));
        }
        task @ ("write to a mapping" | "sync a mapping" | "read a mapping" | "read") => {
            let file = fs::OpenOptions::new().read(true).write(true).open(directory.join("file")).unwrap();
            let (shared, both) = (libc::MAP_SHARED, libc::PROT_READ | libc::PROT_WRITE);
            // SAFETY: the mapping is as long as the file and stays until the child is killed.
            let map = unsafe {
                let map = libc::mmap(std::ptr::null_mut(), 1 << 20, both, shared, file.as_raw_fd(), 0);
                std::slice::from_raw_parts_mut(map.cast::<u8>(), 1 << 20)
            };
            say("ready");
            std::io::stdin().read_line(&mut String::new()).unwrap();
            match task {
                "read" => drop(fs::read(directory.join("file"))),
                "read a mapping" => assert_eq!(map.iter().map(|byte| u32::from(*byte)).sum::<u32>(), 1 << 20),
                _ => map.fill(7),
            }
            say("written");
            if task == "sync a mapping" {
                // SAFETY: the whole mapping.
                unsafe { libc::msync(map.as_mut_ptr().cast(), map.len(), libc::MS_SYNC) };
            }
            thread::sleep(PATIENCE * 2);
        }
        "serve" => {
            let disk = Disk::mount(&directory.join("source"), &directory.join("target")).unwrap();
            let _guard = disk.control().impair(&slower(SYNC, MINUTE)).unwrap();
            // It uses the disk itself, too: a thread of its own hangs in it, and a child of it has all it could inherit.
            let file = fs::File::create(directory.join("target/own")).unwrap();
            let _own = thread::spawn(move || file.sync_all());
            #[allow(clippy::zombie_processes, reason = "it is there to outlive this process")]
            let sleeper = Command::new("sleep").arg("120").spawn().unwrap();
            eventually("its own fsync to wait", || disk.control().waiting() == 1);
            println!("{}", sleeper.id());
            say("serving");
            thread::sleep(PATIENCE * 2);
        }
        task => panic!("{task}"),
    }
}

fn go(child: &mut Killed) {
    child.0.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
}

#[test]
fn a_process_that_is_killed_while_its_operation_waits_dies_at_once() {
    let mounted = Mounted::new();
    let control = mounted.control();
    for (task, operation) in [("fsync", SYNC), ("mkdir", METADATA), ("write", WRITE)] {
        for signal in [libc::SIGKILL, libc::SIGTERM] {
            let mut child = child(task, &mounted.target);
            child.says("ready");
            let guard = control.impair(&slower(operation, MINUTE)).unwrap();
            settled(&control);
            go(&mut child);
            eventually("its operation to wait", || control.waiting() == 1);
            child.signal(signal);
            let (status, took) = child.end();
            assert_eq!(status.signal(), Some(signal));
            // Far from the minute; the bound is for a machine that stands still for seconds.
            assert!(took < Duration::from_secs(20), "{took:?}");
            assert_eq!(control.waiting(), 0);
            let counters = settled(&control);
            assert_eq!((counters.of(operation).interrupted, counters.of(operation).answered), (1, 0));
            // What it asked for did not happen.
            assert!(!mounted.source.join("made by the child").exists());
            assert!(task != "write" || fs::read(mounted.source.join("child")).unwrap().is_empty());
            drop(guard);
        }
    }
}

#[test]
fn a_process_that_has_mapped_a_file_dies_at_once_whatever_it_waits_for() {
    let mounted = Mounted::new();
    for (task, operation) in
        [("write to a mapping", WRITE), ("sync a mapping", WRITE), ("read a mapping", READ), ("read", READ)]
    {
        fs::write(mounted.target.join("file"), vec![1; 1 << 20]).unwrap();
        let mut child = child(task, &mounted.target);
        child.says("ready");
        common::uncached(&fs::File::open(mounted.target.join("file")).unwrap());
        let guard = mounted.control().impair(&slower(operation, MINUTE)).unwrap();
        go(&mut child);
        if task == "write to a mapping" {
            child.says("written");
        } else {
            eventually("it to wait", || mounted.control().waiting() > 0);
        }
        child.signal(libc::SIGKILL);
        let (status, took) = child.end();
        assert_eq!(status.signal(), Some(libc::SIGKILL));
        assert!(took < Duration::from_secs(20), "{task}: {took:?}");
        if task == "write to a mapping" {
            // What it had written is in the file, as the kernel promises.
            assert_eq!(fs::read(mounted.source.join("file")).unwrap(), [7; 1 << 20]);
        }
        drop(guard);
        eventually("nothing to wait", || mounted.control().waiting() == 0);
    }
}

#[test]
fn a_signal_that_does_not_kill_cuts_no_wait_short() {
    let mounted = Mounted::new();
    let control = mounted.control();
    let mut child = child("fsync", &mounted.target);
    child.says("ready");
    let guard = control.impair(&slower(SYNC, MINUTE)).unwrap();
    go(&mut child);
    eventually("its fsync to wait", || control.waiting() == 1);
    // Ignored by default, and the thread would not even notice; stopped and continued, it must.
    for signal in [libc::SIGSTOP, libc::SIGCONT, libc::SIGSTOP, libc::SIGCONT] {
        child.signal(signal);
        thread::sleep(Duration::from_millis(50));
        assert_eq!(control.waiting(), 1);
    }
    // The kernel tells of the first signal only. It must still die of a later one.
    child.signal(libc::SIGKILL);
    assert_eq!(child.end().0.signal(), Some(libc::SIGKILL));
    drop(guard);
}

#[test]
fn a_signal_with_a_handler_lets_the_operation_finish() {
    let mounted = Mounted::new();
    let control = mounted.control();
    extern "C" fn nothing(_: i32) {}
    // SAFETY: the handler does nothing, and no other test in this program uses the signal.
    unsafe { libc::signal(libc::SIGUSR1, nothing as *const () as libc::sighandler_t) };
    let guard = control.impair(&slower(SYNC, Delay::from_ms(500))).unwrap();
    let file = mounted.create("log");
    let (announce, announced) = std::sync::mpsc::channel();
    let syncing = thread::spawn(move || {
        // SAFETY: it only answers.
        announce.send(unsafe { libc::pthread_self() }).unwrap();
        timed(|| errno(file.sync_all()))
    });
    let thread = announced.recv().unwrap();
    delayed(&control, SYNC);
    for _ in 0..10 {
        // SAFETY: the thread has not been joined.
        unsafe { libc::pthread_kill(thread, libc::SIGUSR1) };
        thread::sleep(Duration::from_millis(10));
    }
    let (result, took) = syncing.join().unwrap();
    assert_eq!(result, Ok(()));
    assert!(took >= Duration::from_millis(500), "{took:?}");
    drop(guard);
}

#[test]
fn what_waits_fails_when_the_disk_is_unmounted_and_its_threads_end() {
    let mut mounted = Mounted::new();
    let control = mounted.control();
    let files: Vec<_> = [SYNC, WRITE, READ].iter().map(|operation| mounted.create(operation.name())).collect();
    (&files[2]).write_all(&[1; 4096]).unwrap();
    common::uncached(&files[2]);
    let guard = control.impair(&slower(brownout_disk::Operations::ALL, MINUTE)).unwrap();
    let mut waiting = Vec::new();
    for (n, mut file) in files.into_iter().enumerate() {
        waiting.push(thread::spawn(move || match n {
            0 => errno(file.sync_all()),
            1 => errno(file.write_all(b"late")),
            _ => errno(std::os::unix::fs::FileExt::read_exact_at(&file, &mut [0; 10], 0)),
        }));
    }
    eventually("all to wait", || control.waiting() >= 3);
    mounted.disk.take().unwrap().unmount().unwrap();
    for thread in waiting {
        assert!(thread.join().unwrap().is_err());
    }
    assert_eq!(common::count(&mounted.target), 0);
    assert!(matches!(control.effective(), Err(DiskError::Gone(_))));
    assert!(matches!(guard.heal(), Err(DiskError::Gone(_))));
    assert!(control.impair(&slower(SYNC, MINUTE)).is_err());
    let ours = |name: &str| name.starts_with("disk") && name.trim() != "disk-probe";
    eventually("the threads to end", || {
        let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
        !tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok()).any(|name| ours(&name))
    });
}

#[test]
fn a_disk_ends_from_any_mount_namespace() {
    let directories = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    thread::scope(|scope| {
        // Mounted where only that thread, which is gone then, and those that serve can see it.
        let mount = scope.spawn(|| {
            own_mounts();
            Disk::mount(directories[0].path(), directories[1].path()).unwrap()
        });
        let disk = mount.join().unwrap();
        let control = disk.control();
        own_mounts();
        assert_eq!(common::count(directories[1].path()), 0);
        assert!(control.effective().is_ok() && disk.threads() > 0);
        disk.unmount().unwrap();
        assert!(control.effective().is_err());
    });
    eventually("the threads to end", || {
        let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
        let mounts = tasks.filter_map(|task| fs::read_to_string(task.path().join("mountinfo")).ok());
        let target = directories[1].path().to_str().unwrap();
        !mounts.into_iter().any(|mounts| mounts.contains(target))
    });
}

#[test]
fn killing_the_process_that_serves_hangs_nobody_not_even_itself() {
    own_mounts();
    let served = Served::new();
    let directory = served.0.as_ref().unwrap().path().to_owned();
    let mut server = child("serve", &directory);
    let mut sleeper = String::new();
    BufReader::new(server.0.stdout.as_mut().unwrap())
        .lines()
        .map_while(Result::ok)
        .take_while(|line| !line.ends_with("serving"))
        .for_each(|line| sleeper = line);
    let target = directory.join("target");
    let file = fs::File::create(target.join("ours")).unwrap();
    let (announce, announced) = std::sync::mpsc::channel();
    let client = thread::spawn(move || {
        let _ = announce.send(());
        errno(file.sync_all())
    });
    announced.recv().unwrap();
    thread::sleep(Duration::from_millis(200));
    assert!(!client.is_finished());
    server.signal(libc::SIGKILL);
    let (status, _) = server.end();
    assert_eq!(status.signal(), Some(libc::SIGKILL));
    let error = client.join().unwrap().unwrap_err();
    assert!([libc::ECONNABORTED, libc::ENOTCONN, libc::EIO].contains(&error), "{error}");
    assert_eq!(errno(fs::metadata(target.join("ours"))).unwrap_err(), libc::ENOTCONN);
    let sleeper: i32 = sleeper.trim().rsplit(' ').next().unwrap().parse().unwrap();
    // SAFETY: no memory is involved; it is the sleeper that our child started and told us of.
    assert_eq!(unsafe { libc::kill(sleeper, libc::SIGKILL) }, 0);
    drop(served);
    assert!(!directory.exists(), "{} stays behind", directory.display());
}

#[test]
fn a_directory_that_cannot_be_used_is_refused() {
    own_mounts();
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::create_dir_all(at("source/inside")).unwrap();
    fs::create_dir_all(at("full/of")).unwrap();
    fs::write(at("file"), "").unwrap();
    let refused =
        [("none", "full"), ("source", "none"), ("source", "full"), ("file", "full/of"), ("source", "source/inside")];
    for (source, target) in refused {
        let error = Disk::mount(&at(source), &at(target)).unwrap_err();
        assert!(matches!(error, DiskError::Directory { .. }), "{source} at {target}: {error}");
    }
}
