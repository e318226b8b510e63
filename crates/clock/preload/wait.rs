//! Sleeping and waiting until a time of the wall clock.
//!
//! A shifted process computes its deadlines from the shifted clock, but the kernel measures
//! them by its own: unless translated, a process an hour ahead would wait an hour too long. The translation
//! is made once, when the wait begins: a clock that is stepped during a wait does not shorten it.
//! Relative times and other clocks need nothing.

use core::{
    ffi::{c_char, c_int, c_uint, c_void},
    mem::transmute,
    ptr::{from_ref, null},
};

use crate::{
    __errno_location, CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_REALTIME_ALARM, CLOCK_TAI, SECOND, Timespec, parameters,
    real::next, real_ns,
};

const EINVAL: c_int = 22;
const ENOSYS: c_int = 38;
/// In `clock_nanosleep`, `timer_settime` and `timerfd_settime`: the time is a deadline, not a span.
const ABSOLUTE: c_int = 1;

/// `struct itimerspec`: when first, and how often from then on (which is a span and needs nothing).
#[repr(C)]
#[derive(Clone, Copy)]
struct Timer {
    interval: Timespec,
    value: Timespec,
}

/// By which clock is a deadline meant?
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    /// The one of this number.
    Clock(c_int),
    /// The wall clock or the monotonic one, as was chosen when the object was made: see [`is_wall_time`].
    Either,
}

/// Tells times of the wall clock from monotonic ones, by which is nearer. The choice lies in objects
/// whose layout is the C library's secret, but the two clocks are decades apart. A deadline that is
/// judged wrongly is decades away from now by either clock, so that its shift matters to nobody.
fn is_wall_time(ns: i64) -> bool {
    let wall = real_ns(CLOCK_REALTIME);
    let wall = wall.saturating_add(parameters().load().skew_at(wall));
    ns.abs_diff(wall) < ns.abs_diff(real_ns(CLOCK_MONOTONIC))
}

/// When a deadline comes, by the machine's clock.
fn real_deadline(by: By, deadline: Timespec) -> Timespec {
    let ns = deadline.to_ns();
    // What is no time must be refused as it came; what is beyond all time stays there.
    if !(0..SECOND).contains(&deadline.nanoseconds) || deadline.seconds < 0 || ns == i64::MAX {
        return deadline;
    }
    let real = match by {
        By::Clock(CLOCK_REALTIME | CLOCK_REALTIME_ALARM) => parameters().load().real_at(ns),
        By::Clock(CLOCK_TAI) => {
            let tai_ahead = real_ns(CLOCK_TAI).saturating_sub(real_ns(CLOCK_REALTIME));
            parameters().load().real_at(ns.saturating_sub(tai_ahead)).saturating_add(tai_ahead)
        }
        By::Either if is_wall_time(ns) => parameters().load().real_at(ns),
        _ => return deadline,
    };
    // Before 1970 is as much in the past as 1970 is, and no error.
    Timespec::from_ns(real.max(0))
}

/// What a function answers that this C library does not have.
#[derive(Clone, Copy)]
enum Failing {
    /// The error, as `pthread_*` does.
    Code,
    /// -1 and `errno`, as system calls do.
    Errno,
}

fn missing(failing: Failing) -> c_int {
    match failing {
        Failing::Code => ENOSYS,
        Failing::Errno => {
            // SAFETY: `errno` is this thread's.
            unsafe { *__errno_location() = ENOSYS };
            -1
        }
    }
}

/// A function whose last argument is a deadline.
macro_rules! until {
    ($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),+), by $by:expr, $failing:ident $(, $version:literal)?) => {
        $(#[$doc])*
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($argument: $type,)+ deadline: *const Timespec) -> c_int {
            type Real = unsafe extern "C" fn($($type,)+ *const Timespec) -> c_int;
            let next = next!(
                // SAFETY: `concat!` has put a zero at the end and there is none in a name.
                unsafe { core::ffi::CStr::from_bytes_with_nul_unchecked(concat!(stringify!($name), "\0").as_bytes()) },
                until!(@version $($version)?)
            );
            let found = next.get();
            if found.is_null() {
                return missing(Failing::$failing);
            }
            // SAFETY: a symbol of this name is this function; the arguments are the caller's, as they came.
            unsafe {
                let function = transmute::<*mut c_void, Real>(found);
                if deadline.is_null() {
                    return function($($argument,)+ null());
                }
                let real = real_deadline($by, *deadline);
                function($($argument,)+ from_ref(&real))
            }
        }
    };
    (@version) => { None };
    (@version $version:literal) => { Some($version) };
}

type Object = *mut c_void;

until!(
    /// `pthread_cond_timedwait(3)`: by the clock of the condition variable.
    pthread_cond_timedwait(condition: Object, mutex: Object), by By::Either, Code, c"GLIBC_2.3.2"
);
until!(
    /// `pthread_cond_clockwait(3)`.
    pthread_cond_clockwait(condition: Object, mutex: Object, clock: c_int), by By::Clock(clock), Code
);
until!(
    /// `cnd_timedwait(3)`.
    cnd_timedwait(condition: Object, mutex: Object), by By::Clock(CLOCK_REALTIME), Code
);
until!(
    /// `mtx_timedlock(3)`.
    mtx_timedlock(mutex: Object), by By::Clock(CLOCK_REALTIME), Code
);
until!(
    /// `pthread_mutex_timedlock(3)`.
    pthread_mutex_timedlock(mutex: Object), by By::Clock(CLOCK_REALTIME), Code
);
until!(
    /// `pthread_mutex_clocklock(3)`.
    pthread_mutex_clocklock(mutex: Object, clock: c_int), by By::Clock(clock), Code
);
until!(
    /// `pthread_rwlock_timedrdlock(3)`.
    pthread_rwlock_timedrdlock(lock: Object), by By::Clock(CLOCK_REALTIME), Code
);
until!(
    /// `pthread_rwlock_timedwrlock(3)`.
    pthread_rwlock_timedwrlock(lock: Object), by By::Clock(CLOCK_REALTIME), Code
);
until!(
    /// `pthread_rwlock_clockrdlock(3)`.
    pthread_rwlock_clockrdlock(lock: Object, clock: c_int), by By::Clock(clock), Code
);
until!(
    /// `pthread_rwlock_clockwrlock(3)`.
    pthread_rwlock_clockwrlock(lock: Object, clock: c_int), by By::Clock(clock), Code
);
until!(
    /// `pthread_timedjoin_np(3)`.
    pthread_timedjoin_np(thread: usize, result: Object), by By::Clock(CLOCK_REALTIME), Code
);
until!(
    /// `pthread_clockjoin_np(3)`.
    pthread_clockjoin_np(thread: usize, result: Object, clock: c_int), by By::Clock(clock), Code
);
until!(
    /// `sem_timedwait(3)`.
    sem_timedwait(semaphore: Object), by By::Clock(CLOCK_REALTIME), Errno
);
until!(
    /// `sem_clockwait(3)`.
    sem_clockwait(semaphore: Object, clock: c_int), by By::Clock(clock), Errno
);
until!(
    /// `mq_timedsend(3)`.
    mq_timedsend(queue: c_int, message: *const c_char, length: usize, priority: c_uint),
    by By::Clock(CLOCK_REALTIME), Errno
);

/// `mq_timedreceive(3)`, which returns a length.
#[unsafe(no_mangle)]
unsafe extern "C" fn mq_timedreceive(
    queue: c_int,
    message: *mut c_char,
    room: usize,
    priority: *mut c_uint,
    deadline: *const Timespec,
) -> isize {
    type Real = unsafe extern "C" fn(c_int, *mut c_char, usize, *mut c_uint, *const Timespec) -> isize;
    let found = next!(c"mq_timedreceive").get();
    if found.is_null() {
        return missing(Failing::Errno) as isize;
    }
    // SAFETY: a symbol of this name is this function; the arguments are the caller's, as they came.
    unsafe {
        let function = transmute::<*mut c_void, Real>(found);
        if deadline.is_null() {
            return function(queue, message, room, priority, null());
        }
        let real = real_deadline(By::Clock(CLOCK_REALTIME), *deadline);
        function(queue, message, room, priority, &real)
    }
}

/// `clock_nanosleep(2)`.
#[unsafe(no_mangle)]
unsafe extern "C" fn clock_nanosleep(
    clock: c_int,
    flags: c_int,
    time: *const Timespec,
    left: *mut Timespec,
) -> c_int {
    type Real = unsafe extern "C" fn(c_int, c_int, *const Timespec, *mut Timespec) -> c_int;
    let found = next!(c"clock_nanosleep").get();
    if found.is_null() || time.is_null() {
        return if found.is_null() { ENOSYS } else { EINVAL };
    }
    // SAFETY: a symbol of this name is this function; the arguments are the caller's, as they came.
    unsafe {
        let function = transmute::<*mut c_void, Real>(found);
        if flags & ABSOLUTE == 0 {
            return function(clock, flags, time, left);
        }
        let real = real_deadline(By::Clock(clock), *time);
        function(clock, flags, &real, left)
    }
}

/// A function that sets a timer of either clock.
macro_rules! timer {
    ($(#[$doc:meta])* $name:ident($timer:ident: $type:ty)) => {
        $(#[$doc])*
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($timer: $type, flags: c_int, new: *const Timer, old: *mut Timer) -> c_int {
            type Real = unsafe extern "C" fn($type, c_int, *const Timer, *mut Timer) -> c_int;
            let next = next!(
                // SAFETY: `concat!` has put a zero at the end and there is none in a name.
                unsafe { core::ffi::CStr::from_bytes_with_nul_unchecked(concat!(stringify!($name), "\0").as_bytes()) },
                None
            );
            let found = next.get();
            if found.is_null() {
                return missing(Failing::Errno);
            }
            // SAFETY: a symbol of this name is this function; the arguments are the caller's, as they came.
            unsafe {
                let function = transmute::<*mut c_void, Real>(found);
                // All zero disarms the timer, and is no time.
                if flags & ABSOLUTE == 0 || new.is_null() || (*new).value.to_ns() == 0 {
                    return function($timer, flags, new, old);
                }
                let mut timer = *new;
                timer.value = real_deadline(By::Either, timer.value);
                // Long past, but not disarmed.
                if timer.value.to_ns() == 0 {
                    timer.value.nanoseconds = 1;
                }
                function($timer, flags, &timer, old)
            }
        }
    };
}

timer!(
    /// `timer_settime(2)`.
    timer_settime(timer: *mut c_void)
);
timer!(
    /// `timerfd_settime(2)`.
    timerfd_settime(descriptor: c_int)
);
