//! What is measured between two hosts.

use std::{
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream, UdpSocket},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use super::Hosts;

/// A datagram whose answer takes longer was lost.
const LOST_AFTER: Duration = Duration::from_millis(200);

pub struct Round {
    pub gbit_per_s: f64,
    /// Seconds that any processor was busy with anything but other programs, per Gbit: with this
    /// process, interrupts and kernel threads.
    pub machine_cpu_per_gbit: f64,
    /// Seconds that the kernel charged to this process: sender, receiver and emulator.
    pub process_cpu_per_gbit: f64,
    /// Of these, what the emulator's thread took in its own code.
    pub emulator_user_cpu_per_gbit: f64,
    /// And what it took in the kernel: reading and writing TUNs, with the receiving host's protocols; waiting.
    pub emulator_kernel_cpu_per_gbit: f64,
    pub rtt_p50_us: f64,
    pub rtt_p99_us: f64,
}

pub fn round(hosts: &impl Hosts, seconds: Duration) -> Round {
    let (gbit_per_s, per_gbit) = bulk(hosts, seconds);
    let [machine_cpu_per_gbit, process_cpu_per_gbit, emulator_user_cpu_per_gbit, emulator_kernel_cpu_per_gbit] =
        per_gbit;
    let (rtt_p50_us, rtt_p99_us) = ping(hosts, Duration::from_secs(1));
    Round {
        gbit_per_s,
        machine_cpu_per_gbit,
        process_cpu_per_gbit,
        emulator_user_cpu_per_gbit,
        emulator_kernel_cpu_per_gbit,
        rtt_p50_us,
        rtt_p99_us,
    }
}

/// Lets TCP have as much under way as 20 Gbit/s for some milliseconds need. A kernel's usual 4 MiB of unacknowledged data
/// (`tcp_wmem`) are 15 Gbit/s at a round trip of 2.2 ms: that would be a measurement of this limit.
pub fn widen_windows(hosts: &impl Hosts) {
    for host in 0..2 {
        hosts.run(host, || {
            for name in ["tcp_wmem", "tcp_rmem"] {
                let path = format!("/proc/sys/net/ipv4/{name}");
                fs::write(&path, "4096 131072 67108864").unwrap_or_else(|error| panic!("{path}: {error}"));
            }
        });
    }
}

/// One TCP stream from host 0 to host 1, at full speed: Gbit/s, and CPU seconds per Gbit, as [`Round`] has them.
fn bulk(hosts: &impl Hosts, seconds: Duration) -> (f64, [f64; 4]) {
    let listener = hosts.run(1, || TcpListener::bind((hosts.address(1), 0)).unwrap());
    let target = listener.local_addr().unwrap();
    let received = Arc::new(AtomicU64::new(0));
    let stop = Arc::new(AtomicBool::new(false));
    let receiver = thread::spawn({
        let received = Arc::clone(&received);
        move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut buffer = vec![0; 256 << 10];
            while let Ok(length @ 1..) = stream.read(&mut buffer) {
                received.fetch_add(length as u64, Ordering::Relaxed);
            }
        }
    });
    let mut stream = hosts.run(0, || TcpStream::connect(target).unwrap());
    let sender = thread::spawn({
        let stop = Arc::clone(&stop);
        move || {
            let block = vec![7; 128 << 10];
            while !stop.load(Ordering::Relaxed) {
                stream.write_all(&block).unwrap();
            }
        }
    });
    thread::sleep(Duration::from_millis(500));
    let measure = || {
        let [user, kernel] = emulator_cpu();
        (Instant::now(), received.load(Ordering::Relaxed), [busy_cpu(), process_cpu(), user, kernel])
    };
    let before = measure();
    thread::sleep(seconds);
    let after = measure();
    stop.store(true, Ordering::Relaxed);
    sender.join().unwrap();
    receiver.join().unwrap();
    let gbit = (after.1 - before.1) as f64 * 8.0 / 1e9;
    let cpu = std::array::from_fn(|n| (after.2[n] - before.2[n]) / gbit);
    (gbit / (after.0 - before.0).as_secs_f64(), cpu)
}

/// Round trips of a 64-byte datagram between two waiting threads: median and 99th percentile, µs.
fn ping(hosts: &impl Hosts, time: Duration) -> (f64, f64) {
    let socket = |host: usize| {
        let socket = hosts.run(host, || UdpSocket::bind((hosts.address(host), 0)).unwrap());
        socket.set_read_timeout(Some(LOST_AFTER)).unwrap();
        socket
    };
    let (client, server) = (socket(0), socket(1));
    client.connect(server.local_addr().unwrap()).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let echo = thread::spawn({
        let stop = Arc::clone(&stop);
        move || {
            let mut buffer = [0; 64];
            while !stop.load(Ordering::Relaxed) {
                if let Ok((length, from)) = server.recv_from(&mut buffer) {
                    server.send_to(&buffer[..length], from).unwrap();
                }
            }
        }
    });
    let (mut trips, mut question, mut answer) = (Vec::new(), [1; 64], [0; 64]);
    let (mut asked, end) = (0u64, Instant::now() + time);
    while Instant::now() < end {
        asked += 1;
        question[..8].copy_from_slice(&asked.to_be_bytes());
        let sent = Instant::now();
        client.send(&question).unwrap();
        // Lost on the way: the next is sent. An answer that comes after all is not taken for the next one's.
        while client.recv(&mut answer).is_ok() {
            if answer == question {
                trips.push(sent.elapsed().as_nanos() as f64 / 1e3);
                break;
            }
        }
    }
    stop.store(true, Ordering::Relaxed);
    echo.join().unwrap();
    assert!(!trips.is_empty(), "no datagram came back");
    trips.sort_by(f64::total_cmp);
    (trips[trips.len() / 2], trips[trips.len() * 99 / 100])
}

/// The share of the machine that other programs take.
pub fn others_share(time: Duration) -> f64 {
    let (before, began) = (others_cpu(), Instant::now());
    thread::sleep(time);
    let processors = thread::available_parallelism().map_or(1, |processors| processors.get());
    (others_cpu() - before) / began.elapsed().as_secs_f64() / processors as f64
}

/// Seconds that all processors were busy since boot (proc_stat(5)), but for what other programs took.
fn busy_cpu() -> f64 {
    let text = fs::read_to_string("/proc/stat").expect("/proc is mounted");
    let numbers = text.lines().next().into_iter().flat_map(str::split_whitespace).skip(1);
    // user nice system idle iowait irq softirq; steal is nobody's, and guests are in user already.
    let ticks: Vec<f64> = numbers.filter_map(|number| number.parse().ok()).collect();
    let busy = ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6];
    busy / ticks_per_second() - others_cpu()
}

/// Seconds charged to all other programs and the children that they have waited for (proc_pid_stat(5)).
fn others_cpu() -> f64 {
    const KERNEL_THREADS: &str = "2";
    let own = std::process::id().to_string();
    let stat = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let foreign = name.starts_with(|c: char| c.is_ascii_digit()) && name != own && name != KERNEL_THREADS;
        let text = foreign.then(|| fs::read_to_string(entry.path().join("stat")).ok())??;
        // What follows the program's name in parentheses: state, parent, and from the twelfth on utime,
        // stime, cutime, cstime.
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks = fields.get(11..15)?.iter().filter_map(|field| field.parse::<f64>().ok()).sum::<f64>();
        (fields[1] != KERNEL_THREADS).then_some(ticks)
    };
    let processes = fs::read_dir("/proc").expect("/proc is mounted");
    processes.flatten().filter_map(stat).sum::<f64>() / ticks_per_second()
}

/// The emulator's thread of this process, in /proc; none: there is no emulator.
pub fn emulator_task() -> Option<PathBuf> {
    let mut tasks = fs::read_dir("/proc/self/task").expect("/proc is mounted").flatten();
    let is_it =
        |task: &fs::DirEntry| fs::read_to_string(task.path().join("comm")).is_ok_and(|comm| comm == "emulator\n");
    tasks.find(is_it).map(|task| task.path())
}

/// Seconds that the emulator's thread has run in its own code, and in the kernel (proc_pid_stat(5)); none without an emulator.
fn emulator_cpu() -> [f64; 2] {
    let Some(task) = emulator_task() else { return [0.0; 2] };
    let text = fs::read_to_string(task.join("stat")).expect("the emulator runs");
    let (_, fields) = text.rsplit_once(')').expect("a name in parentheses");
    let ticks = fields.split_whitespace().skip(11).filter_map(|field| field.parse::<f64>().ok()).take(2);
    let seconds: Vec<f64> = ticks.map(|ticks| ticks / ticks_per_second()).collect();
    [seconds[0], seconds[1]]
}

fn ticks_per_second() -> f64 {
    // SAFETY: no memory is involved.
    unsafe { libc::sysconf(libc::_SC_CLK_TCK) as f64 }
}

/// Seconds charged to this process.
fn process_cpu() -> f64 {
    // SAFETY: a zeroed rusage is valid and writable.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}
