//! The sub-options of commands.

use super::{
    super::{
        grammar::{Alternative, Extra, Pattern, Sub, Taken, distribution, multi, value},
        level::{consistency_option, serial_option},
    },
    kind::CommandKind::{self, self as K},
};

fn common() -> Vec<Sub> {
    vec![
        value("no-warmup", Pattern::Nothing, "do not warm up"),
        value(
            "truncate=",
            Pattern::Words("never|once|always"),
            "empty the tables: never, before the run, before each step",
        )
        .or("never"),
        consistency_option().or("LOCAL_ONE"),
        serial_option().or("SERIAL"),
        value("generator=", Pattern::Words("compat|v2"), "how values are made: as cassandra-stress, or with all types"),
        value("seed=", Pattern::Whole, "seed of all that is drawn, so that a run can be repeated"),
    ]
}

/// The ways to specify how long a command runs, each with the command's other options.
pub(super) fn lengths(rest: &dyn Fn() -> Vec<Sub>) -> [(LengthKind, Alternative); 3] {
    let whole = |first: Vec<Sub>| Alternative::new(first.into_iter().chain(common()).chain(rest()).collect());
    [
        (
            LengthKind::Uncertainty,
            whole(vec![
                value("err<", Pattern::Fraction, "until the standard error of the mean is below this share of it")
                    .or("0.02"),
                value("n>", Pattern::Digits, "not before so many intervals").or("30"),
                value("n<", Pattern::Digits, "at the latest after so many intervals").or("200"),
            ]),
        ),
        (
            LengthKind::Count,
            whole(vec![value("n=", Pattern::Count, "so many partitions; 0 only makes the schema").required()]),
        ),
        (
            LengthKind::Time,
            whole(vec![value("duration=", Pattern::Time, "so many seconds, minutes or hours").required()]),
        ),
    ]
}

/// How a command specifies how long it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LengthKind {
    Uncertainty,
    Count,
    Time,
}

fn options(kind: CommandKind) -> Vec<Sub> {
    let predefined = || {
        vec![
            distribution("add=", "what counters are incremented by").or("fixed(1)"),
            value("keysize=", Pattern::Digits, "bytes of a key").or("10"),
        ]
    };
    let profile = || value("profile=", Pattern::Something, "YAML profiles: files, separated by commas").required();
    let clustering = |default: &str| distribution("clustering=", "how many of a kind follow each other").or(default);
    match kind {
        K::Mixed => {
            let part = |name, default: Option<&str>| {
                let sub = value(name, Pattern::Weight, "so many of these out of all");
                default.map_or(sub.clone(), |default| sub.or(default))
            };
            let parts = vec![
                part("read=", Some("1")),
                part("write=", Some("1")),
                part("counter_write=", None),
                part("counter_read=", None),
            ];
            let ratio = multi("ratio", parts, Extra::Refused, "how many of each, as in ratio(read=2,write=1)");
            predefined().into_iter().chain([clustering("GAUSSIAN(1..10)"), ratio]).collect()
        }
        K::User => {
            let ops = multi(
                "ops",
                Vec::new(),
                Extra::Pairs,
                "weights or rates of operations: ops(insert=1,simple1=2), ops(insert=500/s,other.simple1=2k/s)",
            );
            vec![ops.required(), profile(), clustering("gaussian(1..10)")]
        }
        K::VerifySizes => vec![profile()],
        _ => predefined(),
    }
}

/// The alternative forms of a command.
pub(in crate::settings) fn alternatives(kind: CommandKind) -> Vec<Alternative> {
    if kind == K::VerifySizes {
        return vec![Alternative::new(options(kind).into_iter().chain(common()).collect())];
    }
    let mut all = lengths(&|| options(kind)).map(|(_, alternative)| alternative).to_vec();
    if kind == K::User {
        all = all.into_iter().map(|alternative| alternative.complete(has_ops)).collect();
    }
    all
}

/// `ops()` names nothing.
fn has_ops(taken: &Taken) -> bool {
    taken.multi("ops").is_some_and(|ops| !ops.pairs().is_empty())
}
