//! Packets that vanish.

use std::mem::{Discriminant, discriminant};

use super::{End, Fate, Impairment, Kind, Random, Stage, chance::Draws};
use crate::impairment::{self, Chance};

pub(super) const KIND: Kind = Kind {
    is_asked: |impairment| impairment.loss != impairment::Loss::None,
    make: |random| {
        Box::new(Loss { model: discriminant(&impairment::Loss::None), draws: Draws::default(), state: None, random })
    },
};

struct Loss {
    /// Whose memory this is.
    model: Discriminant<impairment::Loss>,
    /// Memory of the models that are a chance.
    draws: Draws,
    /// Memory of the others: the state that the last packet has left. Gilbert–Elliott: 0 good, 1 bad. Markov: 1 to 4.
    state: Option<u8>,
    random: Random,
}

impl Stage for Loss {
    fn decide(&mut self, asked: &Impairment, fates: &mut Vec<Fate>) {
        if self.model != discriminant(&asked.loss) {
            // One model's states mean nothing in another.
            (self.model, self.draws, self.state) = (discriminant(&asked.loss), Draws::default(), None);
        }
        for fate in fates {
            if self.next(asked.loss) {
                fate.end = fate.end.or(Some(End::Lost));
            }
        }
    }
}

impl Loss {
    /// Whether the next packet is lost.
    fn next(&mut self, model: impairment::Loss) -> bool {
        match model {
            impairment::Loss::None => false,
            impairment::Loss::Independent(share) => self.draws.next(Chance::of(share), &mut self.random),
            impairment::Loss::Correlated { share, correlation } => {
                self.draws.next(Chance { share, correlation }, &mut self.random)
            }
            impairment::Loss::GilbertElliott { p, r, one_minus_h, one_minus_k } => {
                // As in netem, the loss follows from the state that a packet finds; then the state changes.
                let bad = match self.state {
                    Some(state) => state == 1,
                    None => self.random.chance(model.stationary_bad()),
                };
                let (loss, changes) = if bad { (one_minus_h, r) } else { (one_minus_k, p) };
                let lost = self.random.chance(loss.fraction());
                self.state = Some(u8::from(bad != self.random.chance(changes.fraction())));
                lost
            }
            impairment::Loss::Markov { p13, p31, p32, p23, p14 } => {
                let [p13, p31, p32, p23, p14] = [p13, p31, p32, p23, p14].map(|share| share.fraction());
                // As in netem, the state changes, and the loss follows from the new one.
                let draw = self.random.open_fraction();
                let next = match self.state {
                    None => begin(&model, draw),
                    Some(2) if draw < p23 => 3,
                    Some(2) => 2,
                    Some(3) if draw < p31 => 1,
                    Some(3) if draw < p31 + p32 => 2,
                    Some(3) => 3,
                    Some(4) => 1,
                    Some(_) if draw < p13 => 3,
                    Some(_) if draw < p13 + p14 => 4,
                    Some(_) => 1,
                };
                self.state = Some(next);
                next >= 3
            }
        }
    }
}

/// A state of the Markov model, drawn from its stationary distribution.
fn begin(model: &impairment::Loss, draw: f64) -> u8 {
    let mut below = 0.0;
    let mut states = (1..).zip(model.stationary());
    let drawn = states.find(|(_, share)| {
        below += share;
        draw < below
    });
    drawn.map_or(1, |(state, _)| state)
}

#[cfg(test)]
mod tests {
    use super::{
        super::testing::{Asked, assert_share, autocorrelation, decide, stage},
        *,
    };
    use brownout_units::Share;

    const PACKETS: u32 = 1_000_000;

    fn share(text: &str) -> Share {
        text.parse().unwrap()
    }

    fn gilbert_elliott(p: &str, r: &str, bad: &str, good: &str) -> impairment::Loss {
        let [p, r, one_minus_h, one_minus_k] = [p, r, bad, good].map(share);
        impairment::Loss::GilbertElliott { p, r, one_minus_h, one_minus_k }
    }

    fn markov(shares: [&str; 5]) -> impairment::Loss {
        let [p13, p31, p32, p23, p14] = shares.map(share);
        impairment::Loss::Markov { p13, p31, p32, p23, p14 }
    }

    fn lost(model: impairment::Loss) -> Vec<bool> {
        let mut stage = stage(&KIND, Impairment { loss: model, ..Impairment::NONE });
        decide(&mut stage, PACKETS).iter().map(|fate| fate.end == Some(End::Lost)).collect()
    }

    /// Mean number of losses in a row.
    fn mean_burst(lost: &[bool]) -> f64 {
        let runs: Vec<_> = lost.chunk_by(|a, b| a == b).filter(|run| run[0]).map(<[bool]>::len).collect();
        runs.iter().sum::<usize>() as f64 / runs.len() as f64
    }

    #[test]
    fn every_model_loses_its_mean_in_bursts_of_its_length() {
        for (model, spread) in [
            (impairment::Loss::Independent(share("0.1%")), 1.0),
            (impairment::Loss::Independent(share("50%")), 1.0),
            (impairment::Loss::Correlated { share: share("5%"), correlation: share("0%") }, 1.0),
            (impairment::Loss::Correlated { share: share("5%"), correlation: share("60%") }, 4.0),
            (impairment::Loss::Correlated { share: share("40%"), correlation: share("25%") }, 5.0 / 3.0),
            (gilbert_elliott("1%", "10%", "100%", "0%"), 17.2),
            (gilbert_elliott("2%", "25%", "80%", "1%"), 5.0),
            (gilbert_elliott("0%", "0%", "100%", "3%"), 1.0),
            (markov(["1%", "20%", "5%", "30%", "0.5%"]), 12.0),
            (markov(["0%", "100%", "0%", "100%", "10%"]), 1.0),
        ] {
            let lost = lost(model);
            let hits = lost.iter().filter(|lost| **lost).count();
            assert_share(hits, lost.len(), model.mean().fraction(), spread);
            let (found, expected) = (mean_burst(&lost), model.mean_burst().unwrap());
            assert!((found / expected - 1.0).abs() < 0.03, "{model}: bursts of {found}, expected {expected}");
        }
    }

    #[test]
    fn the_number_lost_of_many_varies_as_the_model_says() {
        const BLOCK: usize = 1_000;
        for model in [
            impairment::Loss::Correlated { share: share("5%"), correlation: share("60%") },
            gilbert_elliott("1%", "10%", "100%", "0%"),
            gilbert_elliott("2%", "25%", "80%", "1%"),
            gilbert_elliott("2.5%", "10%", "50%", "0%"),
            markov(["1%", "20%", "5%", "30%", "0.5%"]),
        ] {
            let counts: Vec<f64> =
                lost(model).chunks(BLOCK).map(|block| block.iter().filter(|lost| **lost).count() as f64).collect();
            let mean = counts.iter().sum::<f64>() / counts.len() as f64;
            let variance = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / (counts.len() - 1) as f64;
            let alone = mean * (1.0 - mean / BLOCK as f64);
            // Of a thousand blocks the variance errs by 4.5 %, and by a little more where few bursts make it.
            let found = variance / alone;
            assert!((found / model.clumping() - 1.0).abs() < 0.25, "{model}: {found}, expected {}", model.clumping());
        }
    }

    #[test]
    fn nothing_and_all_are_exact() {
        for (model, expected) in [
            (impairment::Loss::Independent(share("100%")), true),
            (impairment::Loss::Independent(share("0%")), false),
            (impairment::Loss::Correlated { share: share("100%"), correlation: share("50%") }, true),
            (impairment::Loss::Correlated { share: share("0%"), correlation: share("50%") }, false),
            (gilbert_elliott("1%", "0%", "100%", "0%"), true),
            (gilbert_elliott("0%", "10%", "100%", "0%"), false),
            (markov(["100%", "0%", "0%", "0%", "0%"]), true),
        ] {
            assert!(lost(model).iter().all(|lost| *lost == expected), "{model}");
        }
    }

    #[test]
    fn losses_have_the_correlation_asked_for() {
        for correlation in ["0%", "25%", "90%"] {
            let model = impairment::Loss::Correlated { share: share("30%"), correlation: share(correlation) };
            let lost: Vec<f64> = lost(model).into_iter().map(|lost| f64::from(u8::from(lost))).collect();
            let found = autocorrelation(&lost);
            assert!((found - share(correlation).fraction()).abs() < 0.005, "{correlation}: {found}");
        }
    }

    #[test]
    fn a_change_of_severity_keeps_the_state_and_a_change_of_model_does_not() {
        // In the bad state for ever, as long as r is 0.
        let bad = |loss| Impairment { loss: gilbert_elliott("100%", "0%", loss, "0%"), ..Impairment::NONE };
        let mut stage = stage(&KIND, bad("100%"));
        let lost = |stage: &mut Asked| decide(stage, 1_000).iter().filter(|fate| fate.end.is_some()).count();
        assert_eq!(lost(&mut stage), 1_000);
        // With p = 0 nothing would get there; only memory of it can lose anything.
        stage.asked = Impairment { loss: gilbert_elliott("0%", "0%", "100%", "0%"), ..Impairment::NONE };
        assert_eq!(lost(&mut stage), 1_000);
        stage.asked = Impairment { loss: impairment::Loss::Independent(share("0%")), ..Impairment::NONE };
        assert_eq!(lost(&mut stage), 0);
        stage.asked = Impairment { loss: gilbert_elliott("0%", "0%", "100%", "0%"), ..Impairment::NONE };
        assert_eq!(lost(&mut stage), 0);
    }
}
