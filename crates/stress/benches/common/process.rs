//! Processes: the stub's, and a tool's, watched while it runs.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    num::NonZeroU64,
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use brownout_base::clock::{monotonic_ns, thread_cpu_ns};
use rustix::{
    process::{Signal, set_parent_process_death_signal},
    thread::{CpuSet, clock_nanosleep_absolute, sched_setaffinity, set_current_timer_slack},
    time::{ClockId, Timespec},
};

/// Binds this thread, and what it starts, to one CPU. Where there is no such CPU it stays where it is.
pub fn pin(cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu);
    let _ = sched_setaffinity(None, &set);
}

/// The stub, as a process on CPU 1.
pub struct Stub {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    pub port: u16,
}

impl Stub {
    /// `words`: nodes, ms of slowness, and, if it freezes, ms until it first does, for how long, and in which period.
    pub fn start(words: &[u64]) -> Stub {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg("stub").args(words.iter().map(u64::to_string));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut stub = Stub { child, input, output, port: 0 };
        stub.port = stub.line() as u16;
        stub
    }

    fn line(&mut self) -> u64 {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim().parse().expect("the stub ended")
    }

    /// Writes received so far.
    pub fn executed(&mut self) -> u64 {
        writeln!(self.input).unwrap();
        self.line()
    }

    /// How much too late it has answered at most, ms, where it was to answer late.
    pub fn late_ms(&mut self) -> f64 {
        writeln!(self.input, "late").unwrap();
        self.line() as f64 / 1e3
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        // The child is this benchmark's own.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a process has used so far.
#[derive(Clone, Copy, Default)]
pub struct Used {
    pub cpu_ns: f64,
    pub switches: f64,
    pub executed: f64,
    pub at_ns: f64,
}

/// How a tool has ended.
#[derive(Clone, Copy, PartialEq)]
pub enum End {
    Well,
    /// It says itself that it was too late to be believed: this machine had something else to do.
    Doubtful,
    /// It failed, or was stopped.
    Badly,
}

/// What this machine makes of a thread that only sleeps for 1 ms at a time on CPU 0: the CPU time of a wake-up in µs, and
/// by how much it is late at the median and the 99th percentile, µs. No client on it can be better.
pub fn sleeper() -> [f64; 3] {
    let measured = std::thread::spawn(|| {
        pin(0);
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        const WAKES: u64 = 2_000;
        let (start, cpu) = (monotonic_ns(), thread_cpu_ns());
        let mut late: Vec<u64> = (1..=WAKES)
            .map(|turn| {
                let due = start + turn * 1_000_000;
                let at = Timespec { tv_sec: (due / 1_000_000_000) as i64, tv_nsec: (due % 1_000_000_000) as i64 };
                let _ = clock_nanosleep_absolute(ClockId::Monotonic, &at);
                monotonic_ns().saturating_sub(due)
            })
            .collect();
        let cpu = thread_cpu_ns() - cpu;
        late.sort_unstable();
        let late_us = |percent: usize| late[late.len() * percent / 100] as f64 / 1e3;
        [cpu as f64 / 1e3 / WAKES as f64, late_us(50), late_us(99)]
    });
    measured.join().unwrap()
}

/// A tool that runs.
pub struct Running {
    child: Child,
    since: Instant,
    what: String,
}

impl Running {
    /// Starts it, bound to `cpu` if one is given; what it prints goes to `output`, it stands in `directory`.
    pub fn start(mut command: Command, cpu: Option<usize>, directory: &Path, output: &str) -> Running {
        let file = fs::File::create(directory.join(output)).unwrap();
        command.current_dir(directory).stdin(Stdio::null()).stderr(file.try_clone().unwrap()).stdout(file);
        // SAFETY: sched_setaffinity is async-signal-safe; nothing is allocated between fork and exec.
        unsafe {
            command.pre_exec(move || {
                if let Some(cpu) = cpu {
                    pin(cpu);
                }
                // It should not outlive this program.
                set_parent_process_death_signal(Some(Signal::KILL))?;
                Ok(())
            })
        };
        let what = format!("{command:?}");
        Running { child: command.spawn().unwrap(), since: Instant::now(), what }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the stub has received writes. `false` if the tool ends before, or none come for a minute.
    pub fn writes(&mut self, stub: &mut Stub) -> bool {
        let before = stub.executed();
        while stub.executed() < before + 50 {
            if self.since.elapsed() > Duration::from_secs(60) || self.child.try_wait().unwrap().is_some() {
                return false;
            }
            sleep(Duration::from_millis(20));
        }
        true
    }

    /// CPU time of the whole process to the nanosecond; context switches of the threads it has now.
    pub fn used(&self, stub: &mut Stub) -> Used {
        let executed = stub.executed() as f64;
        let pid = self.pid();
        // SAFETY: both out-pointers are valid.
        let cpu = unsafe {
            let (mut clock, mut time) = (0, std::mem::zeroed::<libc::timespec>());
            libc::clock_getcpuclockid(pid as libc::pid_t, &mut clock);
            libc::clock_gettime(clock, &mut time);
            time
        };
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        let switches = tasks
            .filter_map(|task| fs::read_to_string(task.path().join("status")).ok())
            .map(|status| numbers(&status, "ctxt_switches:").sum::<f64>())
            .sum();
        let at_ns = self.since.elapsed().as_nanos() as f64;
        Used { cpu_ns: cpu.tv_sec as f64 * 1e9 + cpu.tv_nsec as f64, switches, executed, at_ns }
    }

    /// The most memory it has had resident, MiB.
    pub fn memory_mib(&self) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap_or_default();
        numbers(&status, "VmHWM:").sum::<f64>() / 1024.0
    }

    /// System calls that it enters in a second; `None` where the kernel lets nobody count them.
    pub fn syscalls_per_second(&self) -> Option<f64> {
        let words =
            ["stat", "-x", ",", "-e", "raw_syscalls:sys_enter", "-p", &self.pid().to_string(), "--", "sleep", "1"];
        let told = Command::new("perf").args(words).output().ok()?;
        String::from_utf8_lossy(&told.stderr).lines().find_map(|line| {
            let (count, rest) = line.split_once(',')?;
            rest.contains("sys_enter").then(|| count.parse().ok())?
        })
    }

    /// Waits for its end, at most until `limit` after its start.
    pub fn end(mut self, limit: Duration) -> End {
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return match status.code() {
                    Some(0) => End::Well,
                    // Our own word for: done, but the client itself was late in most intervals.
                    Some(3) => End::Doubtful,
                    _ => {
                        eprintln!("{status}: {}", self.what);
                        End::Badly
                    }
                };
            }
            if self.since.elapsed() > limit {
                eprintln!("stopped after {limit:?}: {}", self.what);
                return End::Badly;
            }
            sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The child is this benchmark's own; it has mostly ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The numbers after a word that lines contain.
fn numbers<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = f64> + 'a {
    text.lines().filter_map(move |line| line.split_once(word)?.1.split_whitespace().next()?.parse().ok())
}
