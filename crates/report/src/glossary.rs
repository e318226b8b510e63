//! What the words of a report mean; `docs/definitions.md` has the exact definitions and their sources.

/// Terms and their meanings.
pub const TERMS: [(&str, &str); 24] = [
    ("intended start", "when the schedule says that an operation begins, whether or not it could be sent then"),
    ("response time", "from the intended start to the end of an operation: what a user would have waited"),
    ("wait", "from the intended start to the sending of an operation"),
    ("service time", "from the sending to the end of an operation: what the database took"),
    ("open loop", "operations start when the schedule says, however slow the answers are"),
    (
        "closed loop",
        "a fixed number of threads, each waiting for its answer before it goes on: a slow database is asked less",
    ),
    (
        "offered, delivered",
        "operations that were due, and operations answered without error, per second of intended time",
    ),
    ("good, goodput", "operations answered without error within the objective's response time, per second"),
    (
        "timed out",
        "not answered within the client's time-out; counted in percentiles at the time-out, which is then marked ≥",
    ),
    ("answered late", "answered after the client had given up; part of timed out"),
    (
        "baseline, fault, recovery",
        "phases of a trial: no fault, fault in force, fault healed; no percentile mixes them",
    ),
    ("degradation", "(goodput of the baseline − goodput of the fault phase) ÷ goodput of the baseline"),
    (
        "recovery",
        "time from healing to the end of the last three intervals in a row whose goodput the baseline would hardly ever have had",
    ),
    ("lost after healing", "how much of the baseline's goodput was missing from the healing on, in seconds of it"),
    ("residual", "goodput after recovery ÷ goodput of the baseline"),
    (
        "trial without a fault",
        "the same phases pass, and nothing is injected: what chance and the order of the phases do by themselves; an effect is what \
         trials with the fault have beyond it",
    ),
    (
        "worse, better, no difference, inconclusive",
        "worse or better: the interval of the change excludes zero; no difference: a change, if there is one, is \
         smaller than 1 %; inconclusive: these trials cannot tell, and beside it stands how many more blocks could",
    ),
    (
        "hit, spared",
        "pairs of hosts, hosts or directories that the fault is meant to change, and those it must leave alone",
    ),
    (
        "proven, refuted, unproven",
        "all who looked (probes, the emulator's own counters, or witnesses at a process, a disk or a clock) show what was \
         asked where the fault hits, nothing where it does not, and all back after healing; they show something else; there \
         is not enough evidence",
    ),
    (
        "leader, term, election",
        "of etcd: the member that decides, with a majority; each election begins a new term, and may end without a leader",
    ),
    ("watch lag", "from the intended start of a put until a watch on its key reported it"),
    (
        "attached again",
        "of a container that was started again: from then on its packets pass the emulator again, and faults of its links are in \
         force; probes that were sent to it or by it between its end and then are no part of any figure",
    ),
    (
        "late interval",
        "one in which the instrument itself was more than 5 ms late for 1 % of its packets or operations, or stood still for \
         more than a tenth of it, or did not look at the processors",
    ),
    (
        "disturbed interval",
        "one in which programs outside of the lab, or the hypervisor, took more than 5 % of the lab's processors, and the \
         instrument was late or the nodes' work took more than 25 % longer because of them",
    ),
];
