//! Calls from where almost nothing is allowed.

use std::{
    ffi::c_int,
    mem::zeroed,
    ptr::null_mut,
    sync::atomic::{AtomicI32, Ordering},
};

use libc::CLOCK_REALTIME;

use crate::witness::{time, timespec_get};

/// Calls functions for the first time in a signal handler, while another thread holds the loader's lock: whoever looks
/// anything up there never comes back.
pub fn first_calls() -> String {
    static WRONG: AtomicI32 = AtomicI32::new(-1);

    extern "C" fn handler(_: c_int) {
        unsafe {
            let past = time(1_000_000_000);
            let mut semaphore: libc::sem_t = zeroed();
            let mut mutex = libc::PTHREAD_MUTEX_INITIALIZER;
            let mut condition = libc::PTHREAD_COND_INITIALIZER;
            let (mut message, mut messages): (libc::msghdr, libc::mmsghdr) = (zeroed(), zeroed());
            let (mut zone, mut change): ([c_int; 2], libc::timex) = (zeroed(), zeroed());
            let (mut now, mut byte) = (past, 0);
            let timer = libc::itimerspec { it_interval: time(0), it_value: past };
            libc::sem_init(&mut semaphore, 0, 0);
            libc::pthread_mutex_lock(&mut mutex);
            let answers = [
                libc::clock_nanosleep(CLOCK_REALTIME, libc::TIMER_ABSTIME, &past, null_mut()) == 0,
                libc::sem_timedwait(&mut semaphore, &past) == -1,
                libc::pthread_cond_timedwait(&mut condition, &mut mutex, &past) == libc::ETIMEDOUT,
                libc::pthread_mutex_timedlock(&mut mutex, &past) == libc::ETIMEDOUT,
                libc::mq_timedreceive(-1, &mut byte, 1, null_mut(), &past) == -1,
                libc::mq_timedsend(-1, &byte, 1, 0, &past) == -1,
                libc::timerfd_settime(-1, libc::TFD_TIMER_ABSTIME, &timer, null_mut()) == -1,
                libc::recvmsg(-1, &mut message, 0) == -1,
                libc::recvmmsg(-1, &mut messages, 1, 0, null_mut()) == -1,
                libc::gettimeofday(null_mut(), (&raw mut zone).cast()) == 0,
                timespec_get(&mut now, 77) == 0,
                libc::adjtimex(&mut change) >= 0,
            ];
            WRONG.store(answers.iter().filter(|answer| !**answer).count() as i32, Ordering::SeqCst);
        }
    }

    let path = std::env::temp_dir().join(format!("brownout-clock-{}", std::process::id()));
    let name = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    unsafe {
        assert_eq!(libc::mkfifo(name.as_ptr(), 0o600), 0);
        let mut action: libc::sigaction = zeroed();
        action.sa_sigaction = handler as extern "C" fn(c_int) as usize;
        assert_eq!(libc::sigaction(libc::SIGUSR1, &action, null_mut()), 0);
    }
    // Reads the FIFO, and holds the lock until somebody writes to it.
    let loader = std::thread::spawn(move || unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW).is_null() });
    std::thread::sleep(std::time::Duration::from_millis(300));
    unsafe { libc::raise(libc::SIGUSR1) };
    drop(std::fs::OpenOptions::new().write(true).open(&path).unwrap());
    assert!(loader.join().unwrap(), "a FIFO is no object");
    std::fs::remove_file(path).unwrap();
    WRONG.load(Ordering::SeqCst).to_string()
}
