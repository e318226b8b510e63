//! Looking at networks from within them: what is set up there, and how long something takes from one to another.

use std::{
    fs::File,
    io::{self, Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    os::fd::AsRawFd,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use super::common::{both, text};

/// Moves the calling thread into a network namespace.
pub fn enter(namespace: &Path) -> io::Result<()> {
    let file = File::open(namespace)?;
    // SAFETY: a system call on a descriptor that is open.
    if unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) } == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Does `work` in a network namespace.
pub fn within<T: Send>(namespace: &Path, work: impl FnOnce() -> T + Send) -> T {
    let there = || {
        enter(namespace).unwrap();
        work()
    };
    thread::scope(|scope| scope.spawn(there).join().unwrap())
}

/// All that attaching could change of a network. Counters are left out; reading some settings is an error by itself.
const ALL: &str = "\
    ip -o address; ip -o link; ip -4 route show table all; ip -6 route show table all; ip -4 rule; ip -6 rule
    tc qdisc show; nft --stateless list ruleset
    cd /proc/sys/net; grep -rs . core ipv4 ipv6 | sort";

/// What is set up in these networks.
#[derive(PartialEq, Eq, Clone)]
pub struct Setup(Vec<(PathBuf, String)>);

impl Setup {
    pub fn of(namespaces: &[PathBuf]) -> Setup {
        Setup(namespaces.iter().map(|namespace| (namespace.clone(), settled(namespace))).collect())
    }

    fn now(&self) -> Setup {
        Setup::of(&self.0.iter().map(|(namespace, _)| namespace.clone()).collect::<Vec<_>>())
    }

    /// Something is set up that was not.
    pub fn assert_is_changed(&self) {
        assert!(self.now() != *self, "nothing was added: what would be left cannot be seen");
    }

    /// Within ten seconds all is as it was.
    pub fn assert_is_back(&self) {
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let now = self.now();
            if now == *self {
                return;
            }
            assert!(Instant::now() < deadline, "still after 10 s: {}", differences(self, &now));
            thread::sleep(Duration::from_millis(100));
        }
    }
}

/// What is set up in a network, once IPv6 has found its own addresses to be nobody else's.
fn settled(namespace: &Path) -> String {
    let network = format!("--net={}", namespace.display());
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let output = Command::new("nsenter").arg(&network).args(["sh", "-euc", ALL]).output().unwrap();
        let seen = text(&output.stdout);
        let is_whole = output.status.success() && seen.contains("lo") && seen.contains("ipv4/conf/all/rp_filter:");
        assert!(is_whole, "a network is not seen as a whole: {}", both(&output));
        if !seen.contains(" tentative") {
            return seen;
        }
        assert!(Instant::now() < deadline, "an address is tentative for 10 s: {seen}");
        thread::sleep(Duration::from_millis(100));
    }
}

/// Lines that one has and the other has not.
fn differences(before: &Setup, now: &Setup) -> String {
    let mut all = String::new();
    for ((namespace, before), (_, now)) in before.0.iter().zip(&now.0) {
        let gone = before.lines().filter(|line| !now.lines().any(|other| other == *line));
        let new = now.lines().filter(|line| !before.lines().any(|other| other == *line));
        let (gone, new) = (gone.map(|line| format!("\n-{line}")), new.map(|line| format!("\n+{line}")));
        all.push_str(&format!("\n{}:", namespace.display()));
        all.extend(gone.chain(new));
    }
    all
}

/// A connection between two hosts that was made before anything was attached, and is there until the end.
pub struct Connection(TcpStream);

impl Connection {
    /// From one network to an address in another one.
    pub fn between(from: &Path, to: &Path, address: Ipv4Addr) -> Connection {
        let listener = within(to, || TcpListener::bind((address, 0)).unwrap());
        let goal = listener.local_addr().unwrap();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_nodelay(true).unwrap();
            let mut byte = [0];
            // Its other end closes it.
            while stream.read_exact(&mut byte).is_ok() && stream.write_all(&byte).is_ok() {}
        });
        let stream = within(from, || TcpStream::connect(goal).unwrap());
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        Connection(stream)
    }

    /// How long a byte takes there and back.
    pub fn round_trip(&mut self) -> Duration {
        let begun = Instant::now();
        self.0.write_all(&[7]).unwrap();
        self.0.read_exact(&mut [0]).unwrap_or_else(|error| panic!("the connection does not live: {error}"));
        begun.elapsed()
    }

    /// The shortest of ten: what else goes on makes some longer, and none shorter.
    pub fn shortest(&mut self) -> Duration {
        (0..10).map(|_| self.round_trip()).min().unwrap()
    }

    /// Within ten seconds round trips take at least so long.
    pub fn assert_slow(&mut self, least: Duration) {
        self.until(&format!("at least {least:?}"), |shortest| shortest >= least);
    }

    /// Within ten seconds nothing delays them.
    pub fn assert_fast(&mut self) {
        self.until("less than 20 ms", |shortest| shortest < Duration::from_millis(20));
    }

    fn until(&mut self, what: &str, is_so: impl Fn(Duration) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let shortest = self.shortest();
            if is_so(shortest) {
                return;
            }
            assert!(Instant::now() < deadline, "the shortest round trip is {shortest:?}, not {what}");
        }
    }

    /// Whether a byte comes back within that time. Nothing may be on its way before.
    pub fn is_silent_for(&mut self, time: Duration) -> bool {
        self.0.set_read_timeout(Some(time)).unwrap();
        self.0.write_all(&[7]).unwrap();
        let is_silent = match self.0.read_exact(&mut [0]) {
            Ok(()) => false,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => true,
            Err(error) => panic!("the connection does not live: {error}"),
        };
        self.0.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        is_silent
    }

    /// Waits for the byte that did not come.
    pub fn catch_up(&mut self) {
        self.0.read_exact(&mut [0]).unwrap_or_else(|error| panic!("the connection does not live: {error}"));
    }
}
