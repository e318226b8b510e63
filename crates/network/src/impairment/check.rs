//! What makes no sense, and what to write instead.

use brownout_units::{Delay, Share};

use super::{Distribution, Impairment, Loss, QueueLimit, RateLimit};

/// The largest IP packet that every IPv4 host must take (RFC 791); links below it are found in books.
const SMALLEST_MTU: u16 = 576;
/// A link must be able to hold one packet of Ethernet's size.
const ONE_PACKET: u16 = 1_500;
/// Longer than any path to the moon; what is beyond is a slip of the unit.
const LONGEST: Delay = Delay::from_secs(3_600);

impl Impairment {
    /// Refuses what would not do what it says: without effect, impossible, or something else than asked for.
    ///
    /// [`crate::LinkControl::impair`] does not call this: whoever takes impairments from people does.
    ///
    /// # Errors
    /// Says which value, why, and what to write instead.
    pub fn check(&self) -> Result<(), String> {
        self.check_delay()?;
        self.check_reorder()?;
        check_loss(&self.loss)?;
        for (name, chance) in [("duplicate", self.duplicate), ("corrupt", self.corrupt)] {
            if chance.share == Share::ZERO && chance.correlation != Share::ZERO {
                return Err(format!(
                    "{name} 0% with a correlation of {} has no effect; give {name} a share, such as 1%",
                    chance.correlation
                ));
            }
        }
        if let Some(limit) = &self.rate {
            check_rate(limit, self.mtu)?;
        }
        match self.mtu {
            Some(mtu) if mtu < SMALLEST_MTU => Err(format!(
                "mtu {mtu} is less than the {SMALLEST_MTU} bytes that every IPv4 link has to carry; write \
                 {SMALLEST_MTU} or more (IPv6 needs 1280: it does not work through a link with less)"
            )),
            _ => Ok(()),
        }
    }

    fn check_delay(&self) -> Result<(), String> {
        let Impairment { delay, jitter, distribution, delay_correlation, .. } = *self;
        for (name, value) in [("delay", delay), ("jitter", jitter)] {
            if value > LONGEST {
                return Err(format!("{name} {value} is more than an hour; write {LONGEST} or less"));
            }
        }
        if jitter == Delay::ZERO {
            if distribution != Distribution::Uniform {
                return Err(format!("distribution {distribution} has no effect without jitter; add one, such as 10ms"));
            }
            if delay_correlation != Share::ZERO {
                return Err(format!(
                    "delay correlation {delay_correlation} has no effect without jitter; add one, such as 10ms"
                ));
            }
            return Ok(());
        }
        // What would be below zero is cut off, so that the mean would not be the delay asked for. Of distributions that
        // end nowhere, one delay in forty may be.
        let most = match distribution {
            Distribution::Uniform => delay,
            _ => Delay::from_ns((delay.ns() as f64 / -distribution.quantile(0.025)) as u64 / 1_000 * 1_000),
        };
        if jitter > most {
            return Err(format!(
                "jitter {jitter} around a delay of {delay} would need delays below zero ({distribution}); \
                 write a jitter of at most {most}, or a longer delay"
            ));
        }
        if delay_correlation == Share::ALL {
            return Err("delay correlation 100% gives all packets the first one's jitter; write less".to_owned());
        }
        Ok(())
    }

    fn check_reorder(&self) -> Result<(), String> {
        let reorder = self.reorder;
        if reorder.share == Share::ZERO {
            return match reorder.correlation == Share::ZERO && reorder.gap <= 1 {
                true => Ok(()),
                false => Err("a correlation or a gap of reorder has no effect without its share; add one, \
                              such as 25%"
                    .to_owned()),
            };
        }
        if self.delay == Delay::ZERO && self.jitter == Delay::ZERO {
            return Err(format!(
                "reorder {} has no effect without a delay, which the chosen packets skip; add one, such as 10ms",
                reorder.share
            ));
        }
        if reorder.share == Share::ALL && reorder.gap <= 1 {
            return Err("reorder 100% lets every packet skip the delay, which is no delay; write less, or a gap of 2 \
                        or more"
                .to_owned());
        }
        Ok(())
    }
}

fn check_loss(loss: &Loss) -> Result<(), String> {
    let sum = |a: Share, b: Share| a.fraction() + b.fraction();
    match *loss {
        Loss::Correlated { share: Share::ZERO, correlation } if correlation != Share::ZERO => {
            Err(format!("loss 0% with a correlation of {correlation} has no effect; give loss a share, such as 1%"))
        }
        Loss::Correlated { correlation: Share::ALL, share } if share != Share::ALL => Err(format!(
            "loss {share} with a correlation of 100% would lose all packets or none; write a correlation below 100%"
        )),
        Loss::GilbertElliott { p: Share::ZERO, r, one_minus_h, .. } => Err(format!(
            "gemodel with p 0% never gets into its bad state, so that r {r} and a loss of {one_minus_h} there have no \
             effect; write a p above 0%"
        )),
        Loss::GilbertElliott { r: Share::ZERO, .. } => {
            Err("gemodel with r 0% never leaves its bad state; write an r above 0%: bursts last 1 ÷ r packets"
                .to_owned())
        }
        // A hair above 1 is a rounding of percentages.
        Loss::Markov { p13, p14, .. } if sum(p13, p14) > 1.0 + 1e-9 => Err(format!(
            "p13 {p13} and p14 {p14} are the ways out of one state, and together more than 100%; write less"
        )),
        Loss::Markov { p31, p32, .. } if sum(p31, p32) > 1.0 + 1e-9 => Err(format!(
            "p31 {p31} and p32 {p32} are the ways out of one state, and together more than 100%; write less"
        )),
        Loss::Markov { p13: Share::ZERO, p14: Share::ZERO, .. } => {
            Err("a Markov model with p13 0% and p14 0% loses nothing; write one of them above 0%".to_owned())
        }
        Loss::Markov { p13, p31: Share::ZERO, .. } if p13 != Share::ZERO => {
            Err("a Markov model with p31 0% never ends its burst; write a p31 above 0%".to_owned())
        }
        Loss::Markov { p13, p32, p23: Share::ZERO, .. } if p13 != Share::ZERO && p32 != Share::ZERO => Err(format!(
            "a Markov model with p32 {p32} and p23 0% never loses a packet again once it is in state 2; write a p23 \
             above 0%"
        )),
        _ => Ok(()),
    }
}

fn check_rate(limit: &RateLimit, mtu: Option<u16>) -> Result<(), String> {
    let packet = u32::from(mtu.unwrap_or(ONE_PACKET).min(ONE_PACKET));
    if limit.charged_bytes(packet) == 0 {
        return Err(format!(
            "an overhead of {} bytes leaves nothing of a packet of {packet}; write a smaller one",
            limit.overhead_bytes
        ));
    }
    match limit.queue {
        QueueLimit::Bytes(bytes) if bytes.0 < limit.charged_bytes(packet) => Err(format!(
            "a queue of {bytes} cannot hold one packet of {packet} bytes and its overhead, so that none passes; write {} \
             or more",
            brownout_units::Bytes(limit.charged_bytes(packet))
        )),
        QueueLimit::Time(time) if time > LONGEST => {
            Err(format!("a queue of {time} is more than an hour; write {LONGEST} or less"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::impairment::{Chance, Reorder};
    use brownout_units::Bytes;

    fn share(text: &str) -> Share {
        text.parse().unwrap()
    }

    fn markov(shares: [&str; 5]) -> Impairment {
        let [p13, p31, p32, p23, p14] = shares.map(share);
        Impairment { loss: Loss::Markov { p13, p31, p32, p23, p14 }, ..Impairment::NONE }
    }

    fn gilbert_elliott(p: &str, r: &str) -> Impairment {
        let (one_minus_h, one_minus_k) = (Share::ALL, Share::ZERO);
        Impairment {
            loss: Loss::GilbertElliott { p: share(p), r: share(r), one_minus_h, one_minus_k },
            ..Impairment::NONE
        }
    }

    fn limit(queue: QueueLimit, overhead_bytes: i32) -> Impairment {
        Impairment {
            rate: Some(RateLimit { rate: "10mbit".parse().unwrap(), queue, overhead_bytes }),
            ..Impairment::NONE
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_value_and_remedy() {
        let delay = |ms| Impairment::delay(Delay::from_ms(ms));
        let jitter = Impairment { jitter: Delay::from_ms(6), ..delay(10) };
        for (impairment, parts) in [
            (Impairment { jitter: Delay::from_ms(11), ..delay(10) }, ["jitter 11ms", "at most 10ms"]),
            (Impairment { distribution: Distribution::Normal, ..jitter }, ["jitter 6ms", "at most 5.102ms"]),
            (Impairment { distribution: Distribution::Pareto, ..delay(10) }, ["pareto", "add one"]),
            (Impairment { delay_correlation: share("25%"), ..delay(10) }, ["25%", "add one"]),
            (Impairment { delay_correlation: Share::ALL, ..jitter }, ["100%", "write less"]),
            (delay(3_600_001), ["delay 3600.001s", "3600s or less"]),
            (
                Impairment { reorder: Reorder { share: share("25%"), ..Reorder::NEVER }, ..Impairment::NONE },
                ["25%", "add one"],
            ),
            (Impairment { reorder: Reorder { share: Share::ALL, ..Reorder::NEVER }, ..delay(10) }, ["100%", "gap"]),
            (Impairment { reorder: Reorder { gap: 5, ..Reorder::NEVER }, ..delay(10) }, ["gap", "add one"]),
            (markov(["60%", "10%", "0%", "100%", "50%"]), ["p13 60% and p14 50%", "write less"]),
            (markov(["6%", "60%", "50%", "100%", "0%"]), ["p31 60% and p32 50%", "write less"]),
            (markov(["0%", "60%", "0%", "100%", "0%"]), ["loses nothing", "above 0%"]),
            (markov(["1%", "0%", "0%", "100%", "0%"]), ["p31 0%", "above 0%"]),
            (markov(["1%", "50%", "1%", "0%", "0%"]), ["p23 0%", "above 0%"]),
            (gilbert_elliott("0%", "10%"), ["p 0%", "above 0%"]),
            (gilbert_elliott("1%", "0%"), ["r 0%", "above 0%"]),
            (
                Impairment {
                    loss: Loss::Correlated { share: share("1%"), correlation: Share::ALL },
                    ..Impairment::NONE
                },
                ["100%", "below 100%"],
            ),
            (
                Impairment { duplicate: Chance { share: Share::ZERO, correlation: share("1%") }, ..Impairment::NONE },
                ["duplicate 0%", "such as 1%"],
            ),
            (Impairment { mtu: Some(575), ..Impairment::NONE }, ["mtu 575", "576 or more"]),
            (limit(QueueLimit::Bytes(Bytes(1_499)), 0), ["1499B", "1500B or more"]),
            (limit(QueueLimit::Bytes(Bytes(1_500)), 38), ["1500B", "1538B or more"]),
            (limit(QueueLimit::Bytes(Bytes(1_500)), -1_500), ["-1500 bytes", "smaller"]),
            (limit(QueueLimit::Time(Delay::from_secs(3_601)), 0), ["3601s", "3600s or less"]),
        ] {
            let message = impairment.check().expect_err(&impairment.to_string());
            assert!(parts.iter().all(|part| message.contains(part)), "{impairment}: {message}");
        }
    }

    #[test]
    fn what_makes_sense_is_taken() {
        let delay = Impairment { delay: Delay::from_ms(10), jitter: Delay::from_ms(5), ..Impairment::NONE };
        for impairment in [
            Impairment::NONE,
            Impairment { jitter: Delay::from_ms(10), ..delay },
            Impairment { jitter: Delay::from_ms(16), distribution: Distribution::Pareto, ..delay },
            Impairment { distribution: Distribution::ParetoNormal, delay_correlation: share("99%"), ..delay },
            Impairment { reorder: Reorder { share: Share::ALL, correlation: share("50%"), gap: 2 }, ..delay },
            Impairment { loss: Loss::Independent(Share::ALL), ..Impairment::NONE },
            gilbert_elliott("1%", "10%"),
            markov(["1%", "99%", "0%", "100%", "0%"]),
            markov(["0%", "100%", "0%", "100%", "5%"]),
            Impairment { mtu: Some(1_280), ..limit(QueueLimit::Bytes(Bytes(1_538)), 38) },
            limit(QueueLimit::Time(Delay::ZERO), -20),
            Impairment { cut: Some(super::super::Cut::Drop), ..Impairment::NONE },
        ] {
            assert_eq!(impairment.check(), Ok(()), "{impairment}");
        }
    }
}
