//! The preloaded object in a Java machine. Takes a Java from 11 on (`java` on the PATH), with its compiler.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use brownout_clock::{HostClock, write_object};

const MILLISECOND: i64 = 1_000_000;
const HOUR: i64 = 3_600_000 * MILLISECOND;

/// Answers each line with: `currentTimeMillis`, `Instant.now()` and `nanoTime` in ns; then the shortest and the longest
/// that it waited by `nanoTime`, in ms, when each of six kinds of wait was asked for 50 ms.
const PROGRAM: &str = r#"
import java.time.Instant;
import java.util.Date;
import java.util.Scanner;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.*;

public class Witness {
    interface Wait { void until() throws Exception; }

    static long shortest, longest;

    static void measure(Wait wait) throws Exception {
        long began = System.nanoTime();
        wait.until();
        long took = (System.nanoTime() - began) / 1_000_000;
        shortest = Math.min(shortest, took);
        longest = Math.max(longest, took);
    }

    public static void main(String[] arguments) throws Exception {
        ReentrantLock lock = new ReentrantLock();
        lock.lock();
        Condition condition = lock.newCondition();
        Object monitor = new Object();
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            lines.nextLine();
            Instant now = Instant.now();
            long instant = now.getEpochSecond() * 1_000_000_000L + now.getNano();
            String clocks = System.currentTimeMillis() * 1_000_000L + " " + instant + " " + System.nanoTime();
            shortest = Long.MAX_VALUE;
            longest = 0;
            measure(() -> Thread.sleep(50));
            measure(() -> { synchronized (monitor) { monitor.wait(50); } });
            measure(() -> LockSupport.parkNanos(50_000_000));
            measure(() -> LockSupport.parkUntil(System.currentTimeMillis() + 50));
            measure(() -> condition.awaitUntil(new Date(System.currentTimeMillis() + 50)));
            measure(() -> condition.await(50, TimeUnit.MILLISECONDS));
            System.out.println(clocks + " " + shortest + " " + longest);
        }
    }
}
"#;

struct Java {
    child: Child,
    questions: ChildStdin,
    answers: mpsc::Receiver<String>,
}

impl Java {
    fn ask(&mut self) -> Vec<i64> {
        writeln!(self.questions).unwrap();
        // A deadline that is not translated is an hour away.
        let answer = self.answers.recv_timeout(Duration::from_secs(180));
        let answer = answer.expect("Java ended, or waits for ever");
        answer.split(' ').map(|word| word.parse().unwrap()).collect()
    }
}

impl Drop for Java {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lines(output: ChildStdout) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

fn machine_ns(clock: libc::clockid_t) -> i64 {
    if clock == libc::CLOCK_REALTIME {
        return SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as i64;
    }
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    assert_eq!(unsafe { libc::clock_gettime(clock, &mut time) }, 0);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

#[test]
fn java_sees_its_wall_clock_shifted_while_it_runs_and_measures_and_waits_as_ever() {
    let directory = tempfile::tempdir().unwrap();
    let object = write_object(directory.path()).unwrap();
    let clock = HostClock::create(directory.path().join("clock")).unwrap();
    let source = directory.path().join("Witness.java");
    fs::write(&source, PROGRAM).unwrap();
    let mut child = Command::new("java")
        .arg(&source)
        .envs(clock.environment(&object))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("this test takes a JDK from 11 on, as `java` on the PATH");
    let questions = child.stdin.take().unwrap();
    let answers = lines(child.stdout.take().unwrap());
    let mut java = Java { child, questions, answers };

    for skew in [0, HOUR, -HOUR, 1_500 * MILLISECOND, 0] {
        clock.reset().unwrap();
        clock.shift(skew, 0).unwrap();
        let (wall_before, before) = (machine_ns(libc::CLOCK_REALTIME), machine_ns(libc::CLOCK_MONOTONIC));
        let answer = java.ask();
        let (wall_after, after) = (machine_ns(libc::CLOCK_REALTIME), machine_ns(libc::CLOCK_MONOTONIC));
        let [millis, instant, nano, shortest, longest] = answer[..] else { panic!("{answer:?}") };

        let shown = wall_before + skew..=wall_after + skew;
        assert!(shown.contains(&instant), "Instant.now() says {instant}, not in {shown:?}");
        // It is cut to milliseconds.
        let shown = wall_before + skew - MILLISECOND..=wall_after + skew;
        assert!(shown.contains(&millis), "currentTimeMillis() says {millis}, not in {shown:?}");
        assert!((before..=after).contains(&nano), "nanoTime() says {nano}, not in {before}..={after}");

        // `parkUntil` and `awaitUntil` take whole milliseconds, of which one may have begun.
        assert!(shortest >= 48, "a wait of 50 ms took {shortest} ms with the clock {skew} ns off");
        assert!(longest * MILLISECOND < HOUR / 10, "a wait of 50 ms took {longest} ms with the clock {skew} ns off");
    }
}
