//! A program that reads its clocks and waits by them, in every way that the C library offers, and tells what it
//! saw beside the machine's own clocks (which it asks the kernel for).

use std::{
    ffi::{c_int, c_long, c_void},
    io::BufRead,
    mem::zeroed,
    ptr::{null, null_mut},
};

use libc::{CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_REALTIME_COARSE, CLOCK_TAI, timespec};

pub const VARIABLE: &str = "BROWNOUT_CLOCK_WITNESS";

const SECOND: i64 = 1_000_000_000;
/// How long a wait takes.
const WAIT_NS: i64 = 30_000_000;

// Not in libc's crate.
unsafe extern "C" {
    pub fn timespec_get(time: *mut timespec, base: c_int) -> c_int;
    fn pthread_mutex_clocklock(mutex: *mut c_void, clock: c_int, deadline: *const timespec) -> c_int;
    fn pthread_rwlock_timedrdlock(lock: *mut c_void, deadline: *const timespec) -> c_int;
    fn pthread_rwlock_timedwrlock(lock: *mut c_void, deadline: *const timespec) -> c_int;
    fn pthread_rwlock_clockrdlock(lock: *mut c_void, clock: c_int, deadline: *const timespec) -> c_int;
    fn pthread_rwlock_clockwrlock(lock: *mut c_void, clock: c_int, deadline: *const timespec) -> c_int;
    fn pthread_cond_clockwait(
        condition: *mut c_void,
        mutex: *mut c_void,
        clock: c_int,
        deadline: *const timespec,
    ) -> c_int;
    fn sem_clockwait(semaphore: *mut c_void, clock: c_int, deadline: *const timespec) -> c_int;
    fn pthread_timedjoin_np(thread: libc::pthread_t, result: *mut *mut c_void, deadline: *const timespec) -> c_int;
    fn pthread_clockjoin_np(
        thread: libc::pthread_t,
        result: *mut *mut c_void,
        clock: c_int,
        deadline: *const timespec,
    ) -> c_int;
    fn cnd_timedwait(condition: *mut c_void, mutex: *mut c_void, deadline: *const timespec) -> c_int;
    fn mtx_timedlock(mutex: *mut c_void, deadline: *const timespec) -> c_int;
}

pub fn main() {
    if std::env::var_os(VARIABLE).is_none() {
        return;
    }
    for question in std::io::stdin().lock().lines() {
        let answer = match question.unwrap().as_str() {
            "shown" => shown(CLOCK_REALTIME).to_string(),
            "skew" => {
                let (low, high) = between(CLOCK_REALTIME, || shown(CLOCK_REALTIME), 1);
                format!("{low} {high}")
            }
            "readings" => readings(),
            "waits" => waits(),
            "stamps" => stamps(),
            "set" => set(),
            "handler" => crate::handler::first_calls(),
            other => panic!("asked for {other:?}"),
        };
        // The harness may have left its line open.
        println!("\nwitness: {answer}");
    }
}

fn ns(time: timespec) -> i64 {
    time.tv_sec * SECOND + time.tv_nsec
}

pub fn time(ns: i64) -> timespec {
    timespec { tv_sec: ns.div_euclid(SECOND), tv_nsec: ns.rem_euclid(SECOND) }
}

fn shown(clock: c_int) -> i64 {
    let mut time = time(0);
    assert_eq!(unsafe { libc::clock_gettime(clock, &mut time) }, 0);
    ns(time)
}

/// The machine's.
fn real(clock: c_int) -> i64 {
    let mut time = time(0);
    assert_eq!(unsafe { libc::syscall(libc::SYS_clock_gettime, c_long::from(clock), &raw mut time) }, 0);
    ns(time)
}

/// By how much is this reading at least and at most ahead of the machine's `clock`, if it was cut to `unit` ns?
fn between(clock: c_int, read: impl Fn() -> i64, unit: i64) -> (i64, i64) {
    let before = real(clock);
    let read = read();
    let after = real(clock);
    (read - after, read + unit - 1 - before)
}

fn readings() -> String {
    let of_day = || {
        let mut of_day = libc::timeval { tv_sec: 0, tv_usec: 0 };
        assert_eq!(unsafe { libc::gettimeofday(&mut of_day, null_mut()) }, 0);
        of_day.tv_sec * SECOND + of_day.tv_usec * 1000
    };
    let of_c = || {
        let mut time = time(0);
        assert_eq!(unsafe { timespec_get(&mut time, 1) }, 1);
        ns(time)
    };
    let stored = || {
        let mut stored = 0;
        let returned = unsafe { libc::time(&mut stored) };
        assert_eq!(stored, returned);
        stored * SECOND
    };
    let clock = |clock| between(clock, || shown(clock), 1);
    let rows = [
        ("clock_gettime", true, clock(CLOCK_REALTIME)),
        ("coarse", true, clock(CLOCK_REALTIME_COARSE)),
        ("tai", true, clock(CLOCK_TAI)),
        ("gettimeofday", true, between(CLOCK_REALTIME, of_day, 1000)),
        ("timespec_get", true, between(CLOCK_REALTIME, of_c, 1)),
        ("time", true, between(CLOCK_REALTIME_COARSE, stored, SECOND)),
        ("monotonic", false, clock(CLOCK_MONOTONIC)),
        ("raw", false, clock(libc::CLOCK_MONOTONIC_RAW)),
        ("boottime", false, clock(libc::CLOCK_BOOTTIME)),
        ("process", false, clock(libc::CLOCK_PROCESS_CPUTIME_ID)),
    ];
    let row = |(name, is_wall, (low, high)): (&str, bool, (i64, i64))| {
        format!("{name} {} {low} {high}", if is_wall { "wall" } else { "other" })
    };
    rows.map(row).join(" ")
}

/// Waits in each way until a time of a clock, and tells by how much too early the wait ended: by the clock that it
/// was meant by, and by the time it must have taken.
fn waits() -> String {
    let mut rows = Vec::new();
    let mut wait = |name: &str, clock: c_int, how: &mut dyn FnMut(*const timespec)| {
        let began = real(CLOCK_MONOTONIC);
        let deadline = shown(clock) + WAIT_NS;
        how(&time(deadline));
        // A clock that is a tenth too fast ends the wait a tenth earlier.
        let least = WAIT_NS * 10 / 11 - 1;
        let early = (deadline - shown(clock)).max(least - (real(CLOCK_MONOTONIC) - began));
        rows.push(format!("{name} {early}"));
    };
    // Locked by this thread; a wait for it ends with an error.
    let mut mutex = libc::PTHREAD_MUTEX_INITIALIZER;
    let mutex_at = (&raw mut mutex).cast::<c_void>();
    let mut condition = libc::PTHREAD_COND_INITIALIZER;
    let condition_at = (&raw mut condition).cast::<c_void>();
    unsafe {
        libc::pthread_mutex_lock(&mut mutex);
        let late = |code| assert_eq!(code, libc::ETIMEDOUT);
        let failed = |code, error| {
            assert_eq!((code, std::io::Error::last_os_error().raw_os_error()), (-1, Some(error)));
        };

        for clock in [CLOCK_REALTIME, CLOCK_MONOTONIC] {
            let mut attributes: libc::pthread_condattr_t = zeroed();
            libc::pthread_condattr_init(&mut attributes);
            libc::pthread_condattr_setclock(&mut attributes, clock);
            let mut of_clock: libc::pthread_cond_t = zeroed();
            libc::pthread_cond_init(&mut of_clock, &attributes);
            wait("cond_timedwait", clock, &mut |until| {
                late(libc::pthread_cond_timedwait(&mut of_clock, &mut mutex, until));
            });
            wait("cond_clockwait", clock, &mut |until| {
                late(pthread_cond_clockwait(condition_at, mutex_at, clock, until));
            });
            wait("mutex_clocklock", clock, &mut |until| late(pthread_mutex_clocklock(mutex_at, clock, until)));
            wait("nanosleep", clock, &mut |until| {
                assert_eq!(libc::clock_nanosleep(clock, libc::TIMER_ABSTIME, until, null_mut()), 0);
            });
            wait("timerfd", clock, &mut |until| {
                let timer = libc::timerfd_create(clock, libc::TFD_CLOEXEC);
                let setting = libc::itimerspec { it_interval: time(0), it_value: *until };
                assert_eq!(libc::timerfd_settime(timer, libc::TFD_TIMER_ABSTIME, &setting, null_mut()), 0);
                let mut ticks = 0_u64;
                assert_eq!(libc::read(timer, (&raw mut ticks).cast(), 8), 8);
                libc::close(timer);
            });
        }
        wait("mutex_timedlock", CLOCK_REALTIME, &mut |until| late(libc::pthread_mutex_timedlock(&mut mutex, until)));
        wait("nanosleep_tai", CLOCK_TAI, &mut |until| {
            assert_eq!(libc::clock_nanosleep(CLOCK_TAI, libc::TIMER_ABSTIME, until, null_mut()), 0);
        });

        // glibc's objects of C11 and of POSIX are the same; a result of 4 is `thrd_timedout`.
        wait("mtx_timedlock", CLOCK_REALTIME, &mut |until| assert_eq!(mtx_timedlock(mutex_at, until), 4));
        wait("cnd_timedwait", CLOCK_REALTIME, &mut |until| {
            assert_eq!(cnd_timedwait(condition_at, mutex_at, until), 4);
        });

        let mut lock = libc::PTHREAD_RWLOCK_INITIALIZER;
        let lock_at = (&raw mut lock).cast::<c_void>();
        libc::pthread_rwlock_rdlock(&mut lock);
        wait("rwlock_timedwrlock", CLOCK_REALTIME, &mut |until| late(pthread_rwlock_timedwrlock(lock_at, until)));
        wait("rwlock_clockwrlock", CLOCK_REALTIME, &mut |until| {
            late(pthread_rwlock_clockwrlock(lock_at, CLOCK_REALTIME, until));
        });
        libc::pthread_rwlock_unlock(&mut lock);
        // A reader does not wait for a writer that is itself: another thread holds this one until the process ends.
        libc::pthread_rwlock_init(&mut lock, null());
        let address = lock_at as usize;
        std::thread::spawn(move || libc::pthread_rwlock_wrlock(address as *mut _)).join().unwrap();
        wait("rwlock_timedrdlock", CLOCK_REALTIME, &mut |until| late(pthread_rwlock_timedrdlock(lock_at, until)));
        wait("rwlock_clockrdlock", CLOCK_REALTIME, &mut |until| {
            late(pthread_rwlock_clockrdlock(lock_at, CLOCK_REALTIME, until));
        });

        let mut semaphore: libc::sem_t = zeroed();
        libc::sem_init(&mut semaphore, 0, 0);
        let semaphore_at = (&raw mut semaphore).cast::<c_void>();
        wait("sem_timedwait", CLOCK_REALTIME, &mut |until| {
            failed(libc::sem_timedwait(&mut semaphore, until), libc::ETIMEDOUT);
        });
        wait("sem_clockwait", CLOCK_REALTIME, &mut |until| {
            failed(sem_clockwait(semaphore_at, CLOCK_REALTIME, until), libc::ETIMEDOUT);
        });

        extern "C" fn sleeper(_: *mut c_void) -> *mut c_void {
            unsafe { libc::sleep(1) };
            null_mut()
        }
        let mut thread: libc::pthread_t = 0;
        libc::pthread_create(&mut thread, null(), sleeper, null_mut());
        wait("timedjoin", CLOCK_REALTIME, &mut |until| {
            // On a machine that stood still for a second, the thread may have ended: no wait then, and nothing to judge.
            let code = pthread_timedjoin_np(thread, null_mut(), until);
            assert!(code == libc::ETIMEDOUT || code == 0);
        });
        let mut thread: libc::pthread_t = 0;
        libc::pthread_create(&mut thread, null(), sleeper, null_mut());
        wait("clockjoin", CLOCK_REALTIME, &mut |until| {
            let code = pthread_clockjoin_np(thread, null_mut(), CLOCK_REALTIME, until);
            assert!(code == libc::ETIMEDOUT || code == 0);
        });
        libc::pthread_mutex_unlock(&mut mutex);

        let name = std::ffi::CString::new(format!("/brownout-clock-{}", std::process::id())).unwrap();
        let mut of_one: libc::mq_attr = zeroed();
        (of_one.mq_maxmsg, of_one.mq_msgsize) = (1, 1);
        let queue = libc::mq_open(name.as_ptr(), libc::O_CREAT | libc::O_RDWR, 0o600, &raw mut of_one);
        assert!(queue >= 0, "{}", std::io::Error::last_os_error());
        libc::mq_unlink(name.as_ptr());
        let mut byte: libc::c_char = 0;
        wait("mq_timedreceive", CLOCK_REALTIME, &mut |until| {
            let code = libc::mq_timedreceive(queue, &mut byte, 1, null_mut(), until);
            failed(code as c_int, libc::ETIMEDOUT);
        });
        assert_eq!(libc::mq_send(queue, &byte, 1, 0), 0);
        wait("mq_timedsend", CLOCK_REALTIME, &mut |until| {
            failed(libc::mq_timedsend(queue, &byte, 1, 0, until), libc::ETIMEDOUT);
        });
        libc::mq_close(queue);

        let mut event: libc::sigevent = zeroed();
        event.sigev_notify = libc::SIGEV_NONE;
        let mut timer: libc::timer_t = null_mut();
        assert_eq!(libc::timer_create(CLOCK_REALTIME, &mut event, &mut timer), 0);
        wait("timer_settime", CLOCK_REALTIME, &mut |until| {
            let setting = libc::itimerspec { it_interval: time(0), it_value: *until };
            assert_eq!(libc::timer_settime(timer, libc::TIMER_ABSTIME, &setting, null_mut()), 0);
            // What is left of it is zero once it has fired.
            let mut left: libc::itimerspec = zeroed();
            while libc::timer_gettime(timer, &mut left) == 0 && ns(left.it_value) > 0 {
                libc::usleep(1_000);
            }
        });
        libc::timer_delete(timer);
    }
    rows.join(" ")
}

/// Sends itself a datagram in each way that the kernel stamps, and in both ways to receive, and tells by how much the
/// stamp is at least and at most ahead of the machine's clock.
fn stamps() -> String {
    let mut rows = Vec::new();
    let software = libc::SOF_TIMESTAMPING_RX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE;
    for many in [false, true] {
        for (option, value) in [(libc::SO_TIMESTAMP, 1), (libc::SO_TIMESTAMPNS, 1), (libc::SO_TIMESTAMPING, software)] {
            let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            let descriptor = std::os::fd::AsRawFd::as_raw_fd(&socket);
            let reading = || unsafe {
                let before = real(CLOCK_REALTIME);
                socket.send_to(b"x", socket.local_addr().unwrap()).unwrap();
                let mut byte = 0_u8;
                let mut vector = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
                let mut control = [0_u64; 32];
                let mut messages: [libc::mmsghdr; 2] = zeroed();
                messages[0].msg_hdr.msg_iov = &raw mut vector;
                messages[0].msg_hdr.msg_iovlen = 1;
                messages[0].msg_hdr.msg_control = control.as_mut_ptr().cast();
                messages[0].msg_hdr.msg_controllen = size_of_val(&control);
                let received = if many {
                    libc::recvmmsg(descriptor, messages.as_mut_ptr(), 2, libc::MSG_WAITFORONE, null_mut()) as isize
                } else {
                    libc::recvmsg(descriptor, &mut messages[0].msg_hdr, 0)
                };
                let after = real(CLOCK_REALTIME);
                assert_eq!(received, 1);
                let header = libc::CMSG_FIRSTHDR(&messages[0].msg_hdr);
                // The kernel begins to stamp a while after the first socket on the machine has asked for it.
                if header.is_null() {
                    return None;
                }
                assert_eq!((*header).cmsg_type, option);
                let data = libc::CMSG_DATA(header);
                let (stamp, unit) = if option == libc::SO_TIMESTAMP {
                    let stamp = data.cast::<libc::timeval>().read_unaligned();
                    (stamp.tv_sec * SECOND + stamp.tv_usec * 1000, 1000)
                } else {
                    (ns(data.cast::<timespec>().read_unaligned()), 1)
                };
                Some((stamp - after, stamp + unit - 1 - before))
            };
            let size = size_of::<c_int>() as libc::socklen_t;
            let code =
                unsafe { libc::setsockopt(descriptor, libc::SOL_SOCKET, option, (&raw const value).cast(), size) };
            assert_eq!(code, 0);
            let readings = std::iter::repeat_with(|| {
                std::thread::sleep(std::time::Duration::from_millis(1));
                reading()
            });
            let (low, high) = readings.take(10_000).flatten().next().expect("the kernel stamps what is received");
            rows.push(format!("{low} {high}"));
        }
    }
    rows.join(" ")
}

/// Tries to set the clock (to what the machine's says, in case that it works).
fn set() -> String {
    let refused = |code: c_int| match (code, std::io::Error::last_os_error().raw_os_error()) {
        (-1, Some(libc::EPERM)) => "EPERM",
        _ => "allowed",
    };
    unsafe {
        let now = time(real(CLOCK_REALTIME));
        let of_day = libc::timeval { tv_sec: now.tv_sec, tv_usec: now.tv_nsec / 1000 };
        let nothing = libc::timeval { tv_sec: 0, tv_usec: 0 };
        let mut change: libc::timex = zeroed();
        // Reading is allowed.
        assert!(libc::adjtimex(&mut change) >= 0);
        assert!(libc::clock_adjtime(CLOCK_REALTIME, &mut change) >= 0);
        // Sets the time constant to what it is.
        change.modes = libc::ADJ_TIMECONST;
        change.constant = 0;
        let mut answers = vec![
            refused(libc::clock_settime(CLOCK_REALTIME, &now)),
            refused(libc::settimeofday(&of_day, null())),
            refused(libc::adjtime(&nothing, null_mut())),
        ];
        // Only these, refused before, tell whether the next would be: the kernel would take them.
        if answers.iter().all(|answer| *answer == "EPERM") {
            answers.push(refused(libc::adjtimex(&mut change)));
            answers.push(refused(libc::clock_adjtime(CLOCK_REALTIME, &mut change)));
        }
        answers.join(" ")
    }
}
