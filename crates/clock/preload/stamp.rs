//! When datagrams came, as the kernel stamps them if a socket asks (`SO_TIMESTAMP` and its kin, see
//! `linux/Documentation/networking/timestamping.rst`).
//!
//! Time daemons and `ping` subtract such stamps from times that they read themselves; if only those were
//! shifted, they would find an hour where there is a microsecond. Not shifted are stamps of network cards, which have
//! clocks of their own, and those that `ioctl` tells (`SIOCGSTAMP`).

use core::{
    ffi::{c_int, c_uint, c_void},
    mem::{size_of, transmute},
};

use crate::{__errno_location, Timespec, Timeval, parameters, real::next};

const ENOSYS: c_int = 38;
const SOL_SOCKET: c_int = 1;
/// Each has two numbers: that of old, and that for 32-bit machines after 2038; on 64-bit ones they are alike.
const SCM_TIMESTAMP: [c_int; 2] = [29, 63];
const SCM_TIMESTAMPNS: [c_int; 2] = [35, 64];
const SCM_TIMESTAMPING: [c_int; 2] = [37, 65];

/// `struct msghdr` of 64-bit Linux.
#[repr(C)]
struct Message {
    name: *mut c_void,
    name_length: c_uint,
    vectors: *mut c_void,
    vector_count: usize,
    control: *mut u8,
    control_length: usize,
    flags: c_int,
}

/// `struct mmsghdr`.
#[repr(C)]
struct Messages {
    message: Message,
    length: c_uint,
}

/// `struct cmsghdr`, behind which its data begins. Each starts at a multiple of eight bytes.
#[repr(C)]
#[derive(Clone, Copy)]
struct Control {
    /// With this header.
    length: usize,
    level: c_int,
    kind: c_int,
}

/// Shifts what the kernel has stamped on this message.
unsafe fn shift(message: &Message) {
    let (mut at, end) = (0, message.control_length);
    if message.control.is_null() {
        return;
    }
    while end.saturating_sub(at) >= size_of::<Control>() {
        // SAFETY: within the bytes that the kernel has filled in.
        unsafe {
            let header = message.control.add(at).cast::<Control>();
            let Control { length, level, kind } = header.read_unaligned();
            if length < size_of::<Control>() || length > end - at {
                return;
            }
            let (data, room) = (header.add(1).cast::<u8>(), length - size_of::<Control>());
            if level == SOL_SOCKET && room >= size_of::<Timespec>() {
                if SCM_TIMESTAMPNS.contains(&kind) || SCM_TIMESTAMPING.contains(&kind) {
                    // Of the three times of SCM_TIMESTAMPING, the first is of the wall clock.
                    let stamp = data.cast::<Timespec>();
                    stamp.write_unaligned(shifted(stamp.read_unaligned()));
                } else if SCM_TIMESTAMP.contains(&kind) {
                    let stamp = data.cast::<Timeval>();
                    let Timeval { seconds, microseconds } = stamp.read_unaligned();
                    let Timespec { seconds, nanoseconds } =
                        shifted(Timespec { seconds, nanoseconds: microseconds.wrapping_mul(1000) });
                    stamp.write_unaligned(Timeval { seconds, microseconds: nanoseconds / 1000 });
                }
            }
            at += length.next_multiple_of(size_of::<usize>());
        }
    }
}

/// Zero stands for "not stamped".
fn shifted(stamp: Timespec) -> Timespec {
    match stamp.to_ns() {
        0 => stamp,
        real => Timespec::from_ns(real.saturating_add(parameters().load().skew_at(real))),
    }
}

fn missing() -> c_int {
    // SAFETY: `errno` is this thread's.
    unsafe { *__errno_location() = ENOSYS };
    -1
}

/// `recvmsg(2)`.
#[unsafe(no_mangle)]
unsafe extern "C" fn recvmsg(socket: c_int, message: *mut Message, flags: c_int) -> isize {
    type Real = unsafe extern "C" fn(c_int, *mut Message, c_int) -> isize;
    let found = next!(c"recvmsg").get();
    if found.is_null() {
        return missing() as isize;
    }
    // SAFETY: a symbol of this name is this function; the arguments are the caller's, as they came. After a success
    // the message is valid.
    unsafe {
        let length = transmute::<*mut c_void, Real>(found)(socket, message, flags);
        if length >= 0 && (*message).control_length > 0 {
            shift(&*message);
        }
        length
    }
}

/// `recvmmsg(2)`.
#[unsafe(no_mangle)]
unsafe extern "C" fn recvmmsg(
    socket: c_int,
    messages: *mut Messages,
    room: c_uint,
    flags: c_int,
    timeout: *mut Timespec,
) -> c_int {
    type Real = unsafe extern "C" fn(c_int, *mut Messages, c_uint, c_int, *mut Timespec) -> c_int;
    let found = next!(c"recvmmsg").get();
    if found.is_null() {
        return missing();
    }
    // SAFETY: as above; so many of the messages are valid as the result says.
    unsafe {
        let count = transmute::<*mut c_void, Real>(found)(socket, messages, room, flags, timeout);
        for number in 0..usize::try_from(count).unwrap_or(0) {
            let message = &(*messages.add(number)).message;
            if message.control_length > 0 {
                shift(message);
            }
        }
        count
    }
}
