//! A preloaded object that shifts the wall clock of a process.
//!
//! It stands before the C library's functions that read the wall clock, sleep or wait until a time
//! of it (`wait.rs`), tell when datagrams came (`stamp.rs`), or set it (`set.rs`). The shift comes from a small mapped file (`parameters.rs`) that
//! the environment variable `BROWNOUT_CLOCK_FILE` names; a change there is seen by the next call. Clocks that
//! are not the wall's (`CLOCK_MONOTONIC`, `CLOCK_BOOTTIME`, processor times) pass untouched.
//!
//! What stands behind these functions is looked up when the object is loaded.
//!
//! Rules of the house: no allocation, no lock, no standard library, no thread-local storage; each
//! function may be called from a signal handler, from any thread, before `main` and before this object's own
//! initialization. Whatever is wrong with the file, the process gets the machine's time and never notices.
//!
//! Not reached: processes that are linked statically or that make system calls themselves (Go),
//! functions looked up in a handle of the C library itself (`dlsym(dlopen("libc.so.6"), …)`), set-user-id programs
//! (the loader drops such objects), times that the kernel writes elsewhere (of files, in `adjtimex`) and times
//! that the C library takes inside (`syslog`).

#![no_std]

#[path = "../src/parameters.rs"]
mod parameters;
mod real;
mod set;
mod stamp;
mod wait;

use core::{
    ffi::{c_char, c_int, c_void},
    mem::size_of,
    ptr::null_mut,
    sync::atomic::{AtomicPtr, Ordering},
};

use parameters::{FILE_VARIABLE, Parameters};

const CLOCK_REALTIME: c_int = 0;
const CLOCK_MONOTONIC: c_int = 1;
const CLOCK_REALTIME_COARSE: c_int = 5;
const CLOCK_REALTIME_ALARM: c_int = 8;
const CLOCK_TAI: c_int = 11;

const SECOND: i64 = 1_000_000_000;

/// `struct timespec` of 64-bit Linux.
#[repr(C)]
#[derive(Clone, Copy)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

impl Timespec {
    /// Nanoseconds since the clock's zero, saturated.
    fn to_ns(self) -> i64 {
        self.seconds.saturating_mul(SECOND).saturating_add(self.nanoseconds)
    }

    fn from_ns(ns: i64) -> Self {
        Timespec { seconds: ns.div_euclid(SECOND), nanoseconds: ns.rem_euclid(SECOND) }
    }
}

/// `struct timeval` of 64-bit Linux.
#[repr(C)]
#[derive(Clone, Copy)]
struct Timeval {
    seconds: i64,
    microseconds: i64,
}

unsafe extern "C" {
    fn __errno_location() -> *mut c_int;
    fn getenv(name: *const c_char) -> *const c_char;
    fn open(path: *const c_char, flags: c_int, ...) -> c_int;
    fn lseek(descriptor: c_int, offset: i64, whence: c_int) -> i64;
    fn mmap(at: *mut c_void, length: usize, protection: c_int, flags: c_int, descriptor: c_int, from: i64)
    -> *mut c_void;
    fn munmap(at: *mut c_void, length: usize) -> c_int;
    fn close(descriptor: c_int) -> c_int;
    fn abort() -> !;
}

/// Nothing here panics; the language asks for this.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    // SAFETY: takes nothing and does not return.
    unsafe { abort() }
}

/// In force where there is no file, or none that can be used.
static UNSHIFTED: Parameters = Parameters::none();

/// The parameters in force; null until somebody first asks.
static MAPPED: AtomicPtr<Parameters> = AtomicPtr::new(null_mut());

/// The parameters in force.
#[inline]
fn parameters() -> &'static Parameters {
    let mapped = MAPPED.load(Ordering::Acquire);
    // SAFETY: what was once stored here is valid and stays mapped.
    if mapped.is_null() { find_parameters() } else { unsafe { &*mapped } }
}

/// Maps the file. Threads that come here at the same time each do it, and one mapping stays.
#[cold]
fn find_parameters() -> &'static Parameters {
    // SAFETY: `errno` is this thread's; the caller of a clock must not find it changed by us.
    let error = unsafe { *__errno_location() };
    let found = map_file().unwrap_or(&raw const UNSHIFTED as *mut Parameters);
    // SAFETY: as above.
    unsafe { *__errno_location() = error };
    match MAPPED.compare_exchange(null_mut(), found, Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: valid, and mapped for good.
        Ok(_) => unsafe { &*found },
        Err(first) => {
            if !is_unshifted(found) {
                // SAFETY: our own mapping, which nobody else has seen.
                unsafe { munmap(found.cast(), size_of::<Parameters>()) };
            }
            // SAFETY: what another thread has stored is valid and stays mapped.
            unsafe { &*first }
        }
    }
}

fn is_unshifted(parameters: *const Parameters) -> bool {
    core::ptr::eq(parameters, &raw const UNSHIFTED)
}

/// Maps the file that the environment names, if it is one of ours.
fn map_file() -> Option<*mut Parameters> {
    const READ_ONLY: c_int = 0;
    // A FIFO in the file's place must not hold up the process: O_NONBLOCK | O_CLOEXEC | O_NOCTTY.
    const FLAGS: c_int = READ_ONLY | 0o4000 | 0o2000000 | 0o400;
    const SEEK_END: c_int = 2;
    const PROT_READ: c_int = 1;
    const MAP_SHARED: c_int = 1;

    let mut name = [0; FILE_VARIABLE.len() + 1];
    name[..FILE_VARIABLE.len()].copy_from_slice(FILE_VARIABLE.as_bytes());
    // SAFETY: `name` ends with a zero; the results of each call are checked before they are used; the
    // descriptor is ours. The length is checked before mapping, because reading behind a file's end is fatal.
    unsafe {
        let path = getenv(name.as_ptr().cast());
        if path.is_null() || *path == 0 {
            return None;
        }
        let descriptor = open(path, FLAGS);
        if descriptor < 0 {
            return None;
        }
        let size = size_of::<Parameters>();
        let mapped = if lseek(descriptor, 0, SEEK_END) >= size as i64 {
            mmap(null_mut(), size, PROT_READ, MAP_SHARED, descriptor, 0)
        } else {
            null_mut()
        };
        close(descriptor);
        // MAP_FAILED is all ones.
        if mapped.is_null() || mapped as isize == -1 {
            return None;
        }
        let parameters: *mut Parameters = mapped.cast();
        if !(*parameters).is_valid() {
            munmap(mapped, size);
            return None;
        }
        Some(parameters)
    }
}

/// Run by the loader before `main`: a process that later closes its eyes (chroot, seccomp, another
/// user, a cleared environment) has its file by then.
extern "C" fn initialize() {
    real::find();
    parameters();
}

#[used]
#[unsafe(link_section = ".init_array")]
static INITIALIZE: extern "C" fn() = initialize;

/// The machine's own time of `clock`, in nanoseconds; zero if it has no such clock.
fn real_ns(clock: c_int) -> i64 {
    let mut time = Timespec { seconds: 0, nanoseconds: 0 };
    // SAFETY: `time` is valid to write.
    unsafe { real::clock_gettime(clock, &mut time) };
    time.to_ns()
}

/// The shown time of the wall clock `clock`.
fn shown(clock: c_int) -> Timespec {
    let real = real_ns(clock);
    Timespec::from_ns(real.saturating_add(parameters().load().skew_at(real)))
}

/// `clock_gettime(3)`.
#[unsafe(no_mangle)]
unsafe extern "C" fn clock_gettime(clock: c_int, time: *mut Timespec) -> c_int {
    // SAFETY: the caller's pointer, as it came.
    let code = unsafe { real::clock_gettime(clock, time) };
    if code != 0 {
        return code;
    }
    // The rate counts from a time of the wall clock, from which TAI is some 37 s ahead.
    let at = match clock {
        CLOCK_REALTIME | CLOCK_REALTIME_COARSE | CLOCK_REALTIME_ALARM => None,
        CLOCK_TAI => Some(real_ns(CLOCK_REALTIME)),
        _ => return 0,
    };
    // SAFETY: the call has succeeded, so that the pointer is valid.
    unsafe {
        let real = (*time).to_ns();
        let skew = parameters().load().skew_at(at.unwrap_or(real));
        *time = Timespec::from_ns(real.saturating_add(skew));
    }
    0
}

/// `gettimeofday(2)`. It is cut from the same reading as `clock_gettime`: to shift what was already
/// cut to microseconds, and cut again, would let time run backwards from one to the other.
#[unsafe(no_mangle)]
unsafe extern "C" fn gettimeofday(time: *mut Timeval, zone: *mut c_void) -> c_int {
    if !zone.is_null() {
        // SAFETY: the caller's pointer, as it came.
        let code = unsafe { real::gettimeofday(null_mut(), zone) };
        if code != 0 {
            return code;
        }
    }
    if !time.is_null() {
        let Timespec { seconds, nanoseconds } = shown(CLOCK_REALTIME);
        // SAFETY: the caller says that it may be written.
        unsafe { *time = Timeval { seconds, microseconds: nanoseconds / 1000 } };
    }
    0
}

/// `time(2)`, of the coarse clock as the system's own.
#[unsafe(no_mangle)]
unsafe extern "C" fn time(out: *mut i64) -> i64 {
    let seconds = shown(CLOCK_REALTIME_COARSE).seconds;
    if !out.is_null() {
        // SAFETY: the caller says that it may be written.
        unsafe { *out = seconds };
    }
    seconds
}

/// `timespec_get(3)`.
#[unsafe(no_mangle)]
unsafe extern "C" fn timespec_get(out: *mut Timespec, base: c_int) -> c_int {
    const TIME_UTC: c_int = 1;
    if base != TIME_UTC {
        // SAFETY: the caller's pointer, as it came.
        return unsafe { real::timespec_get(out, base) };
    }
    // SAFETY: the caller says that it may be written.
    unsafe { *out = shown(CLOCK_REALTIME) };
    base
}
