//! The functions that stand behind ours: the C library's.

use core::{
    ffi::{CStr, c_char, c_int, c_long, c_void},
    mem::transmute,
    ptr::{null, null_mut},
    sync::atomic::{AtomicPtr, Ordering},
};

use crate::{Timespec, Timeval};

#[link(name = "dl")]
#[link(name = "c")]
unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlvsym(handle: *mut c_void, name: *const c_char, version: *const c_char) -> *mut c_void;
    fn dlerror() -> *const c_char;
    fn syscall(number: c_long, ...) -> c_long;
}

/// Where the search goes on behind this object.
const RTLD_NEXT: *mut c_void = -1_isize as *mut c_void;

#[cfg(target_arch = "x86_64")]
const SYS_CLOCK_GETTIME: c_long = 228;
// The table that all newer architectures share.
#[cfg(not(target_arch = "x86_64"))]
const SYS_CLOCK_GETTIME: c_long = 113;

type ClockGettime = unsafe extern "C" fn(c_int, *mut Timespec) -> c_int;

/// The C library's `clock_gettime`, which reads the clock without a system call. Null until [`find`]:
/// looking it up may allocate, and an allocator may ask for the time, so that whoever
/// comes earlier is served by a system call and never by a look-up.
static CLOCK_GETTIME: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// Looks up what every call needs.
pub(crate) fn find() {
    // SAFETY: the name ends with a zero.
    let found = unsafe { dlsym(RTLD_NEXT, c"clock_gettime".as_ptr()) };
    CLOCK_GETTIME.store(found, Ordering::Release);
}

/// The machine's clock.
#[inline]
pub(crate) unsafe fn clock_gettime(clock: c_int, time: *mut Timespec) -> c_int {
    let found = CLOCK_GETTIME.load(Ordering::Relaxed);
    // SAFETY: a symbol of this name is this function; the pointer is the caller's to vouch for.
    unsafe {
        if found.is_null() {
            syscall(SYS_CLOCK_GETTIME, clock as c_long, time) as c_int
        } else {
            transmute::<*mut c_void, ClockGettime>(found)(clock, time)
        }
    }
}

/// A function of the C library, looked up when this object is loaded ([`next!`] sees to it): a look-up takes the loader's
/// lock and may allocate, which nobody may do in a signal handler.
pub(crate) struct Next {
    name: &'static CStr,
    /// The version to prefer where there are several: of condition variables, the library also keeps those
    /// of twenty years ago.
    version: Option<&'static CStr>,
    /// Null until it is looked up; [`MISSING`] if this C library has no such function.
    found: AtomicPtr<c_void>,
}

/// No function is there.
const MISSING: *mut c_void = 1_usize as *mut c_void;

impl Next {
    pub(crate) const fn new(name: &'static CStr, version: Option<&'static CStr>) -> Self {
        Next { name, version, found: AtomicPtr::new(null_mut()) }
    }

    /// Its address; null if this C library has no such function.
    pub(crate) fn get(&self) -> *mut c_void {
        let mut found = self.found.load(Ordering::Relaxed);
        if found.is_null() {
            // Only for those who are initialized earlier than this object.
            found = self.find();
        }
        if found == MISSING { null_mut() } else { found }
    }

    /// Looks it up.
    #[cold]
    pub(crate) fn find(&self) -> *mut c_void {
        let name = self.name.as_ptr();
        let version = self.version.map_or(null(), CStr::as_ptr);
        let mut found = null_mut();
        // SAFETY: both end with a zero.
        unsafe {
            if !version.is_null() {
                found = dlvsym(RTLD_NEXT, name, version);
            }
            if found.is_null() {
                found = dlsym(RTLD_NEXT, name);
            }
            if found.is_null() {
                found = MISSING;
                // The program must not find our failure as its own.
                dlerror();
            }
        }
        self.found.store(found, Ordering::Relaxed);
        found
    }
}

/// The C library's function of this name, as a `&'static Next`; looked up by an initializer of its own.
macro_rules! next {
    ($name:expr) => {
        next!($name, None)
    };
    ($name:expr, $version:expr) => {{
        static NEXT: $crate::real::Next = $crate::real::Next::new($name, $version);

        extern "C" fn find() {
            NEXT.find();
        }

        #[used]
        #[unsafe(link_section = ".init_array")]
        static FIND: extern "C" fn() = find;

        &NEXT
    }};
}
pub(crate) use next;

/// The machine's `gettimeofday`, for the time zone that it also tells.
pub(crate) unsafe fn gettimeofday(time: *mut Timeval, zone: *mut c_void) -> c_int {
    let found = next!(c"gettimeofday").get();
    if found.is_null() {
        return -1;
    }
    // SAFETY: a symbol of this name is this function; the pointers are the caller's to vouch for.
    unsafe { transmute::<*mut c_void, unsafe extern "C" fn(*mut Timeval, *mut c_void) -> c_int>(found)(time, zone) }
}

/// The machine's `timespec_get`, for bases that we do not know.
pub(crate) unsafe fn timespec_get(time: *mut Timespec, base: c_int) -> c_int {
    let found = next!(c"timespec_get").get();
    if found.is_null() {
        return 0;
    }
    // SAFETY: a symbol of this name is this function; the pointer is the caller's to vouch for.
    unsafe { transmute::<*mut c_void, unsafe extern "C" fn(*mut Timespec, c_int) -> c_int>(found)(time, base) }
}
