//! Finds a threshold from noisy trials: the highest rate at which an objective is kept.
//!
//! A step at rate *r* keeps the objective or misses it. This is modelled as a coin toss whose probability falls with
//! the rate:
//!
//! ```text
//! P(kept | r) = ε/2 + (1 − ε) / (1 + exp((ln r − θ) / σ))
//! ```
//!
//! θ is the logarithm of the rate at which half of the steps keep it, σ is how blurred the edge is, and ε = 4 % is the
//! share of steps that end by chance (a pause of the machine, a compaction). All knowledge about (θ, σ) is a
//! probability distribution on a grid, initially flat in θ and in ln σ, and multiplied by every step's likelihood
//! (Bayes' rule). The next step goes where it is expected to leave the least uncertainty about θ: the least entropy,
//! over both ways in which it can end. This is the Bayesian adaptive method of psychophysics (Watson & Pelli 1983;
//! Kontsevich & Tyler 1999, who also estimate the slope). The interval is the central 95 % of what remains of θ: it is
//! wide if steps contradict one another, and never narrower than the outcomes allow.

/// Cells of the grid in θ.
const THETAS: usize = 600;
/// Cells of the grid in σ.
const SIGMAS: usize = 24;
/// Smallest and largest blur: 0.5 % and 50 % of the rate.
const SIGMA: (f64, f64) = (0.005, 0.5);
/// Share of steps that end by chance.
const LAPSE: f64 = 0.04;

/// Rates considered for the next step, spaced evenly (in logarithms) over where θ lies with 98 % probability.
const CANDIDATES: usize = 21;
/// When the next step is placed, so many cells in θ are taken as one,
const COARSE: usize = 4;
/// and what is less likely than this, of all, is left out.
const NEGLIGIBLE: f64 = 1e-7;

/// What is known about the threshold.
#[derive(Debug, Clone)]
pub struct Threshold {
    low: f64,
    step: f64,
    sigmas: Vec<f64>,
    /// Logarithms of weights, by θ, then σ.
    weights: Vec<f64>,
}

/// Where the threshold is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The rate at which half of the steps keep the objective.
    pub rate: f64,
    /// The threshold is between these rates with 95 % probability.
    pub interval: (f64, f64),
    /// The rate at which 19 of 20 steps keep it: what can be promised.
    pub safe: f64,
}

impl Estimate {
    /// Width of the interval, as a share of the rate.
    pub fn width(&self) -> f64 {
        (self.interval.1 - self.interval.0) / self.rate
    }
}

impl Threshold {
    /// Nothing is known except that it lies between two rates (per second).
    pub fn between(low: f64, high: f64) -> Self {
        let (low, high) = (low.ln(), high.ln());
        let ratio = (SIGMA.1 / SIGMA.0).ln() / (SIGMAS - 1) as f64;
        Threshold {
            low,
            step: (high - low) / (THETAS - 1) as f64,
            sigmas: (0..SIGMAS).map(|place| SIGMA.0 * (ratio * place as f64).exp()).collect(),
            weights: vec![0.0; THETAS * SIGMAS],
        }
    }

    fn theta(&self, place: usize) -> f64 {
        self.low + self.step * place as f64
    }

    /// A step at this rate has kept the objective, or missed it.
    pub fn learn(&mut self, rate: f64, kept: bool) {
        let at = rate.ln();
        for place in 0..THETAS {
            let theta = self.theta(place);
            for (column, sigma) in self.sigmas.iter().enumerate() {
                let chance = chance(at, theta, *sigma);
                self.weights[place * SIGMAS + column] += if kept { chance } else { 1.0 - chance }.ln();
            }
        }
        let largest = self.weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        self.weights.iter_mut().for_each(|weight| *weight -= largest);
    }

    /// Probabilities of θ, for any σ.
    fn of_theta(&self) -> Vec<f64> {
        let sums: Vec<f64> =
            self.weights.chunks(SIGMAS).map(|row| row.iter().map(|weight| weight.exp()).sum::<f64>()).collect();
        let total: f64 = sums.iter().sum();
        sums.into_iter().map(|sum| sum / total).collect()
    }

    /// The rate below which the threshold lies with this probability.
    pub fn quantile(&self, share: f64) -> f64 {
        let mut sum = 0.0;
        for (place, part) in self.of_theta().into_iter().enumerate() {
            if sum + part >= share {
                // Within a cell the probability is taken to be uniform.
                let inside = if part > 0.0 { (share - sum) / part } else { 0.5 };
                return (self.theta(place) + (inside - 0.5) * self.step).exp();
            }
            sum += part;
        }
        self.theta(THETAS - 1).exp()
    }

    /// The current estimate.
    pub fn estimate(&self) -> Estimate {
        let rate = self.quantile(0.5);
        // Of every (θ, σ): θ − σ ln 19, where the curve without lapses is 95 %.
        let mut total = 0.0;
        let mut sum = 0.0;
        for place in 0..THETAS {
            for (column, sigma) in self.sigmas.iter().enumerate() {
                let weight = self.weights[place * SIGMAS + column].exp();
                total += weight;
                sum += weight * (self.theta(place) - sigma * 19f64.ln());
            }
        }
        Estimate { rate, interval: (self.quantile(0.025), self.quantile(0.975)), safe: (sum / total).exp().min(rate) }
    }

    /// The rate at which the next step is most informative.
    pub fn next(&self) -> f64 {
        let total: f64 = self.weights.iter().map(|weight| weight.exp()).sum();
        let mut likely = Vec::new();
        for (place, rows) in self.weights.chunks(COARSE * SIGMAS).enumerate() {
            for (column, sigma) in self.sigmas.iter().enumerate() {
                let sum: f64 = rows.iter().skip(column).step_by(SIGMAS).map(|weight| weight.exp()).sum();
                if sum > NEGLIGIBLE * total {
                    likely.push((place, *sigma, sum / total));
                }
            }
        }
        let (low, high) = (self.quantile(0.01).ln(), self.quantile(0.99).ln());
        let candidates = (0..CANDIDATES).map(|place| low + (high - low) * place as f64 / (CANDIDATES - 1) as f64);
        let doubts = candidates.map(|at| (at, self.expected_doubt(at, &likely)));
        doubts.min_by(|(_, one), (_, other)| one.total_cmp(other)).map_or((low + high) / 2.0, |(at, _)| at).exp()
    }

    /// Expected entropy of θ after a step at this rate (a logarithm).
    fn expected_doubt(&self, at: f64, likely: &[(usize, f64, f64)]) -> f64 {
        // Joint probabilities of each θ and each outcome of the step.
        let mut ends = [vec![0.0; THETAS.div_ceil(COARSE)], vec![0.0; THETAS.div_ceil(COARSE)]];
        let middle = self.step * (COARSE - 1) as f64 / 2.0;
        for (place, sigma, probability) in likely {
            let kept = probability * chance(at, self.theta(place * COARSE) + middle, *sigma);
            ends[0][*place] += kept;
            ends[1][*place] += probability - kept;
        }
        let doubt = |parts: &Vec<f64>| {
            let all: f64 = parts.iter().sum();
            -parts.iter().filter(|part| **part > 0.0).map(|part| part * (part / all).ln()).sum::<f64>()
        };
        ends.iter().map(doubt).sum()
    }
}

/// The probability that a step keeps the objective; rate and threshold as logarithms.
fn chance(at: f64, theta: f64, sigma: f64) -> f64 {
    LAPSE / 2.0 + (1.0 - LAPSE) / (1.0 + ((at - theta) / sigma).exp())
}

#[cfg(test)]
mod tests {
    use brownout_base::random::Random;

    use super::*;

    fn search(truth: f64, blur: f64, steps: usize, seed: u64) -> Estimate {
        let mut chance = Random::new(seed);
        let mut threshold = Threshold::between(truth * 0.6, truth * 1.9);
        for _ in 0..steps {
            let rate = threshold.next();
            let kept = chance.fraction() < 1.0 / (1.0 + ((rate / truth).ln() / blur).exp());
            threshold.learn(rate, kept);
        }
        threshold.estimate()
    }

    #[test]
    fn the_interval_holds_the_truth_about_as_often_as_it_says() {
        for blur in [0.01, 0.05, 0.15] {
            let hits = (0..200).filter(|seed| {
                let found = search(10_000.0, blur, 16, *seed);
                (found.interval.0..=found.interval.1).contains(&10_000.0)
            });
            let hits = hits.count();
            // Of 200 at 95 %, 180 is four standard deviations below the mean.
            assert!(hits >= 180, "blur {blur}: {hits} of 200");
        }
    }

    #[test]
    fn a_sharp_edge_is_found_within_two_per_cent_and_a_blurred_one_is_not_claimed() {
        let found: Vec<Estimate> = (0..40).map(|seed| search(5_000.0, 0.005, 16, seed)).collect();
        let mut widths: Vec<f64> = found.iter().map(Estimate::width).collect();
        widths.sort_by(f64::total_cmp);
        // One step in 25 ends by chance; an interval widened by such a step takes more steps than these.
        assert!(widths[20] < 0.08 && widths[36] < 0.12, "{widths:?}");
        assert!(found.iter().all(|one| (one.rate / 5_000.0 - 1.0).abs() < 0.02), "{found:?}");
        let sharp = found[1];
        let blurred = search(5_000.0, 0.3, 16, 1);
        assert!(blurred.width() > 2.0 * sharp.width(), "{blurred:?} {sharp:?}");
        assert!(blurred.safe < blurred.rate, "{blurred:?}");
    }

    #[test]
    fn nothing_is_known_before_the_first_step() {
        let estimate = Threshold::between(100.0, 400.0).estimate();
        assert!((estimate.rate - 200.0).abs() < 1.0, "{estimate:?}");
        assert!(estimate.interval.0 < 105.0 && estimate.interval.1 > 380.0, "{estimate:?}");
    }
}
