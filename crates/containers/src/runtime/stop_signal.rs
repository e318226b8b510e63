//! By which signal a container wants to be asked to end (`STOPSIGNAL`): a runtime counts no other one, but SIGKILL, as an end that
//! was asked for.

/// Where the specification of an image says it for containers (conversion.md of image-spec).
pub(super) const ANNOTATION: &str = "org.opencontainers.image.stopSignal";

/// Names and numbers, as far as Linux has them everywhere: in the order of `enum Signal` of CRI, which begins with 1 and numbers
/// those of real time behind them.
const NAMED: [(&str, i32); 34] = [
    ("ABRT", libc::SIGABRT),
    ("ALRM", libc::SIGALRM),
    ("BUS", libc::SIGBUS),
    ("CHLD", libc::SIGCHLD),
    ("CLD", libc::SIGCHLD),
    ("CONT", libc::SIGCONT),
    ("FPE", libc::SIGFPE),
    ("HUP", libc::SIGHUP),
    ("ILL", libc::SIGILL),
    ("INT", libc::SIGINT),
    ("IO", libc::SIGIO),
    ("IOT", libc::SIGABRT),
    ("KILL", libc::SIGKILL),
    ("PIPE", libc::SIGPIPE),
    ("POLL", libc::SIGIO),
    ("PROF", libc::SIGPROF),
    ("PWR", libc::SIGPWR),
    ("QUIT", libc::SIGQUIT),
    ("SEGV", libc::SIGSEGV),
    ("STKFLT", libc::SIGSTKFLT),
    ("STOP", libc::SIGSTOP),
    ("SYS", libc::SIGSYS),
    ("TERM", libc::SIGTERM),
    ("TRAP", libc::SIGTRAP),
    ("TSTP", libc::SIGTSTP),
    ("TTIN", libc::SIGTTIN),
    ("TTOU", libc::SIGTTOU),
    ("URG", libc::SIGURG),
    ("USR1", libc::SIGUSR1),
    ("USR2", libc::SIGUSR2),
    ("VTALRM", libc::SIGVTALRM),
    ("WINCH", libc::SIGWINCH),
    ("XCPU", libc::SIGXCPU),
    ("XFSZ", libc::SIGXFSZ),
];
/// Those of real time, as the kernel, Go and so the runtimes number them.
const FIRST: i32 = 34;
const LAST: i32 = 64;

/// As an image has it: `SIGQUIT`, `QUIT`, `3`, `SIGRTMIN+3`. None of what is none.
pub(super) fn of(text: &str) -> Option<i32> {
    let text = text.trim().to_ascii_uppercase();
    if let Ok(number) = text.parse::<i32>() {
        return (1..=LAST).contains(&number).then_some(number);
    }
    let name = text.strip_prefix("SIG").unwrap_or(&text);
    if let Some((_, number)) = NAMED.iter().find(|(known, _)| *known == name) {
        return Some(*number);
    }
    let number = if let Some(more) = name.strip_prefix("RTMIN") {
        FIRST + steps(more, '+')?
    } else {
        LAST - steps(name.strip_prefix("RTMAX")?, '-')?
    };
    (FIRST..=LAST).contains(&number).then_some(number)
}

/// Behind `RTMIN` and `RTMAX`: nothing, or how far from there.
fn steps(text: &str, sign: char) -> Option<i32> {
    if text.is_empty() {
        Some(0)
    } else {
        text.strip_prefix(sign)?.parse().ok().filter(|steps| (0..=LAST).contains(steps))
    }
}

/// As CRI numbers them; none of 0, which leaves it to the runtime.
pub(super) fn of_cri(number: i32) -> Option<i32> {
    let index = usize::try_from(number).ok()?.checked_sub(1)?;
    if let Some((_, number)) = NAMED.get(index) {
        return Some(*number);
    }
    let real_time = FIRST + i32::try_from(index - NAMED.len()).ok()?;
    (real_time <= LAST).then_some(real_time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_known_by_its_name_and_by_its_number() {
        for (text, number) in [
            ("SIGTERM", 15),
            ("quit", 3),
            (" 2 ", 2),
            ("SIGRTMIN+3", 37),
            ("RTMIN", 34),
            ("SIGRTMAX-14", 50),
            ("64", 64),
        ] {
            assert_eq!(of(text), Some(number), "{text}");
        }
        for text in ["", "0", "65", "SIGNONE", "RTMIN+31", "RTMIN-1", "RTMAX+1", "RTMIN+-1"] {
            assert_eq!(of(text), None, "{text}");
        }
    }

    /// `enum Signal` of `pkg/apis/runtime/v1/api.proto` (k8s.io/cri-api 0.33).
    #[test]
    fn cri_numbers_them_in_its_own_way() {
        for (number, signal) in [
            (1, 6),
            (10, 2),
            (13, 9),
            (18, 3),
            (23, 15),
            (29, 10),
            (34, 25),
            (35, 34),
            (38, 37),
            (50, 49),
            (51, 50),
            (65, 64),
        ] {
            assert_eq!(of_cri(number), Some(signal), "{number}");
        }
        assert_eq!([of_cri(0), of_cri(-1), of_cri(66)], [None; 3]);
    }
}
