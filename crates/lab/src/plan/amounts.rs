//! Operations that are loads of their own: what is possible, and what they are in words.

use brownout_units::{Count, Rate};

use super::{check::Check, narrow::to_u32};
use crate::experiment::{Amount, FileError, MAX_RATE, Mix, MixShare, OpShare};

/// Virtual users of all together.
pub(super) const MAX_THREADS: u64 = 100_000;

/// Operations per second of those that go by the clock; none if none does.
pub(super) fn rate(own: &[Amount]) -> Option<f64> {
    let rate = |one: &Amount| match one {
        Amount::Rate(rate) => Some(rate.get()),
        Amount::Threads(_) => None,
    };
    own.iter().filter_map(rate).reduce(|sum, rate| sum + rate)
}

/// Users of those that have some; none if none has.
pub(super) fn threads(own: &[Amount]) -> Option<u32> {
    let threads = |one: &Amount| match one {
        Amount::Rate(_) => None,
        Amount::Threads(threads) => Some(to_u32(threads.0)),
    };
    own.iter().filter_map(threads).reduce(u32::saturating_add)
}

/// `read 300/s, write 4 threads`.
pub(crate) fn words<'a>(parts: impl Iterator<Item = (&'a str, Amount)>) -> String {
    parts.map(|(name, amount)| format!("{name} {amount}")).collect::<Vec<_>>().join(", ")
}

/// What all of them together are.
pub(super) fn pace(own: &[Amount], arrivals: &str) -> String {
    let open = rate(own).map(|all| {
        let all = Rate::per_second(all).map(|all| all.to_string()).unwrap_or_default();
        format!("open loop, {all}, {arrivals}")
    });
    let closed = threads(own).map(|all| format!("closed loop, {}", Amount::Threads(Count(u64::from(all)))));
    open.into_iter().chain(closed).collect::<Vec<_>>().join(" beside ")
}

/// What to know of closed ones; none if there are none.
pub(super) fn warning<'a>(parts: impl Iterator<Item = (&'a str, Amount)>) -> Option<String> {
    let (mut laws, mut open) = (Vec::new(), false);
    for (name, amount) in parts {
        match amount {
            Amount::Rate(_) => open = true,
            Amount::Threads(count) => laws.push(format!("{name} with {amount} completes {count} ÷ its mean latency")),
        }
    }
    let rest = match open {
        true => "the report predicts nothing from this, because the load beside it is open",
        false => "the report shows the loss that this alone predicts",
    };
    let laws = (!laws.is_empty()).then(|| laws.join(", "))?;
    Some(format!("closed loop: {laws}, whatever the database does; {rest}. Give it a rate for an open loop"))
}

impl Check<'_> {
    /// Whether operations are loads of their own; refuses those that cannot be, and what else says how much load there is.
    pub(super) fn amounts(&self) -> Result<bool, FileError> {
        let load = &self.experiment.load;
        let of_ops = load.ops.iter().flat_map(|ops| &ops.0).map(|(name, share)| {
            let own = match share {
                OpShare::Own(amount) => Some(*amount),
                OpShare::Weight(_) => None,
            };
            (format!("load.ops.{name}"), name.as_str(), own)
        });
        let mix = load.mix.iter().flat_map(Mix::all);
        let of_mix = mix.filter(|(_, share)| *share != MixShare::default());
        let of_mix = of_mix.map(|(name, share)| (format!("load.mix.{name}"), name, share.own()));
        let (own, weighed): (Vec<_>, Vec<_>) = of_ops.chain(of_mix).partition(|(.., own)| own.is_some());
        let own: Vec<(String, &str, Amount)> =
            own.into_iter().filter_map(|(key, name, own)| Some((key, name, own?))).collect();
        let Some((_, first, amount)) = own.first() else { return Ok(false) };
        let clash = [("rate", load.rate.is_some()), ("threads", load.threads.is_some())];
        if let Some((key, _)) = clash.into_iter().find(|(_, given)| *given) {
            let message =
                format!("operations are loads of their own ({first} {amount}); leave {key} out, or write weights");
            return self.complain(&format!("load.{key}"), message);
        }
        if let Some((key, name, _)) = weighed.first() {
            let message = format!(
                "{first} is a load of its own ({amount}), and {name} has a weight; give all of them a rate (500/s) or users \
                 ({{ threads: 4 }}), or all weights with a rate: or threads: for the load"
            );
            return self.complain(key, message);
        }
        for (key, _, amount) in &own {
            let Amount::Threads(threads) = amount else { continue };
            if threads.0 == 0 || threads.0 > MAX_THREADS {
                return self.complain(key, format!("{amount} cannot run; write 1 to {}", Count(MAX_THREADS)));
            }
        }
        let amounts: Vec<Amount> = own.iter().map(|(.., amount)| *amount).collect();
        let key = if load.ops.is_some() { "load.ops" } else { "load.mix" };
        if let Some(all) = rate(&amounts).filter(|all| *all > MAX_RATE) {
            let message = format!("{all}/s together are beyond what one lab can offer; at most 1000k/s");
            return self.complain(key, message);
        }
        if let Some(all) = threads(&amounts).filter(|all| u64::from(*all) > MAX_THREADS) {
            let all = Count(u64::from(all));
            let message = format!("{all} threads together cannot run; at most {}", Count(MAX_THREADS));
            return self.complain(key, message);
        }
        Ok(true)
    }
}
