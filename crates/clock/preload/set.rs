//! Setting the clock: refused.
//!
//! There is one real clock, the machine's. A process that sees a shifted one and sets it (`date -s`, a
//! time daemon that means to repair the skew) would set that. Reading through the same functions passes.

use core::{
    ffi::{c_int, c_uint, c_void},
    mem::transmute,
};

use crate::{CLOCK_REALTIME, Timespec, __errno_location, is_unshifted, parameters, real::next};

const EPERM: c_int = 1;
const ENOSYS: c_int = 38;

/// Is there a shifted clock, which this process therefore must not set?
fn shifted() -> bool {
    !is_unshifted(parameters())
}

fn fail(error: c_int) -> c_int {
    // SAFETY: `errno` is this thread's.
    unsafe { *__errno_location() = error };
    -1
}

/// A function that takes two arguments of a word each and returns a code: what all of these are.
macro_rules! unless {
    ($(#[$doc:meta])* $name:ident($a:ident: $a_type:ty, $b:ident: $b_type:ty), $refuse:expr) => {
        $(#[$doc])*
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($a: $a_type, $b: $b_type) -> c_int {
            let next = next!(
                // SAFETY: `concat!` has put a zero at the end and there is none in a name.
                unsafe { core::ffi::CStr::from_bytes_with_nul_unchecked(concat!(stringify!($name), "\0").as_bytes()) },
                None
            );
            if $refuse && shifted() {
                return fail(EPERM);
            }
            let found = next.get();
            if found.is_null() {
                return fail(ENOSYS);
            }
            // SAFETY: a symbol of this name is this function; the arguments are the caller's, as they came.
            unsafe { transmute::<*mut c_void, unsafe extern "C" fn($a_type, $b_type) -> c_int>(found)($a, $b) }
        }
    };
}

unless!(
    /// `clock_settime(2)`.
    clock_settime(clock: c_int, time: *const Timespec), clock == CLOCK_REALTIME
);
unless!(
    /// `settimeofday(2)`. A time zone alone is the machine's too.
    settimeofday(time: *const c_void, zone: *const c_void), true
);
unless!(
    /// `adjtime(3)`.
    adjtime(delta: *const c_void, left: *mut c_void), !delta.is_null()
);
unless!(
    /// `clock_adjtime(2)`.
    clock_adjtime(clock: c_int, change: *mut c_uint), clock == CLOCK_REALTIME && changes(change)
);
// These two take one argument; a second one is never looked at.
unless!(
    /// `adjtimex(2)`.
    adjtimex(change: *mut c_uint, _nothing: usize), changes(change)
);
unless!(
    /// `ntp_adjtime(3)`.
    ntp_adjtime(change: *mut c_uint, _nothing: usize), changes(change)
);

/// Does this `struct timex`, which begins with its modes, change anything?
fn changes(change: *const c_uint) -> bool {
    const ADJ_OFFSET_SS_READ: c_uint = 0xa001;
    // SAFETY: the caller says that it is one.
    let modes = if change.is_null() { 0 } else { unsafe { *change } };
    modes != 0 && modes != ADJ_OFFSET_SS_READ
}
