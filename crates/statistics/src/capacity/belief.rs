//! What is known of a threshold after steps whose verdicts are noisy.
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

/// Width of a cell of the grid in θ: 0.35 % of the rate.
const CELL: f64 = 0.003_5;
/// Cells of the grid in σ.
const SIGMAS: usize = 12;
/// Smallest and largest blur: 0.5 % and 50 % of the rate.
const SIGMA: (f64, f64) = (0.005, 0.5);
/// Share of steps that end by chance.
const LAPSE: f64 = 0.04;
/// How probable a promise is.
const SAFE: f64 = 0.9;

/// Rates considered for the next step, spaced evenly (in logarithms) over where θ lies with 98 % probability.
const CANDIDATES: usize = 21;
/// When the next step is placed, so many cells in θ are taken as one,
const COARSE: usize = 2;
/// and what is less likely than this, of all, is left out.
const NEGLIGIBLE: f64 = 1e-6;

/// One number for each σ.
type Row = [f64; SIGMAS];

/// What is known of the threshold.
#[derive(Debug, Clone)]
pub(super) struct Belief {
    low: f64,
    step: f64,
    sigmas: Row,
    /// Weights, by θ, then σ; the largest is 1.
    weights: Vec<Row>,
    /// The chance that a step keeps it at a cell's rate, by how many cells that lies above the first of those taken as one, then σ.
    chances: Vec<Row>,
}

/// Where the threshold is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The rate at which half of the steps keep the objective.
    pub rate: f64,
    /// The threshold is between these rates with 95 % probability.
    pub interval: (f64, f64),
    /// What can be promised: with 90 % probability 19 of 20 steps at this rate keep it.
    pub safe: f64,
}

impl Estimate {
    /// Width of the interval, as a share of the rate.
    pub fn width(&self) -> f64 {
        (self.interval.1 - self.interval.0) / self.rate
    }
}

impl Belief {
    /// Nothing is known except that it lies between two rates (per second).
    pub(super) fn between(low: f64, high: f64) -> Belief {
        let (low, high) = (low.ln(), high.ln());
        let ratio = (SIGMA.1 / SIGMA.0).ln() / (SIGMAS - 1) as f64;
        let sigmas = std::array::from_fn(|place| SIGMA.0 * (ratio * place as f64).exp());
        let cells = ((high - low) / CELL).ceil().max(1.0);
        let step = (high - low) / cells;
        let cells = cells as usize + 1;
        let middle = (COARSE - 1) as f64 / 2.0;
        let above = (0..2 * cells + COARSE).map(|place| step * (place as f64 - (cells + COARSE) as f64 - middle));
        let chances = above.map(|above| sigmas.map(|sigma| kept_at((above / sigma).exp()))).collect();
        Belief { low, step, sigmas, weights: vec![[1.0; SIGMAS]; cells], chances }
    }

    /// The rates between which it is looked for.
    pub(super) fn range(&self) -> (f64, f64) {
        (self.theta(0).exp(), self.theta(self.weights.len() - 1).exp())
    }

    fn theta(&self, place: usize) -> f64 {
        self.low + self.step * place as f64
    }

    /// A step at this rate has kept the objective, or missed it.
    pub(super) fn learn(&mut self, rate: f64, kept: bool) {
        // exp((ln r − θ) / σ) grows from cell to cell by a factor: no exponential for each. Away from the rate on either side, so
        // that it becomes 0 or infinite where it has to.
        let at = ((rate.ln() - self.low) / self.step).clamp(0.0, self.weights.len() as f64).floor() as usize;
        let odds: Row = self.sigmas.map(|sigma| ((rate.ln() - self.theta(at)) / sigma).exp());
        let factor = self.sigmas.map(|sigma| (self.step / sigma).exp());
        let (below, above) = self.weights.split_at_mut(at);
        multiply(above.iter_mut(), odds, factor.map(f64::recip), kept);
        let odds = std::array::from_fn(|column| odds[column] * factor[column]);
        multiply(below.iter_mut().rev(), odds, factor, kept);
        let largest = self.weights.iter().flatten().copied().fold(0.0, f64::max);
        self.weights.iter_mut().flatten().for_each(|weight| *weight /= largest);
    }

    /// The current estimate.
    pub(super) fn estimate(&self) -> Estimate {
        let [low, rate, high] = self.quantiles([0.025, 0.5, 0.975]);
        Estimate { rate, interval: (low, high), safe: self.safe().min(rate) }
    }

    /// The rates below which the threshold lies with these probabilities, for any σ.
    fn quantiles<const COUNT: usize>(&self, shares: [f64; COUNT]) -> [f64; COUNT] {
        let parts: Vec<f64> = self.weights.iter().map(|row| row.iter().sum()).collect();
        shares.map(|share| (self.low + self.step * place_of(&parts, share)).exp())
    }

    /// Of every (θ, σ) the rate at which the curve without lapses is 19 of 20, θ − σ ln 19: what lies below with 1 − [`SAFE`].
    fn safe(&self) -> f64 {
        let below = self.sigmas.map(|sigma| (sigma * 19f64.ln() / self.step).round() as usize);
        let most = below.iter().copied().max().unwrap_or(0);
        let mut parts = vec![0.0; most + self.weights.len()];
        for (place, row) in self.weights.iter().enumerate() {
            for (weight, below) in row.iter().zip(&below) {
                parts[most + place - below] += weight;
            }
        }
        (self.low + self.step * (place_of(&parts, 1.0 - SAFE) - most as f64)).exp()
    }

    /// The rate at which the next step is most informative.
    pub(super) fn next(&self) -> f64 {
        let total: f64 = self.weights.iter().flatten().sum();
        let likely: Vec<Likely> = (self.weights.chunks(COARSE).enumerate())
            .map(|(number, rows)| {
                let row: Row = std::array::from_fn(|column| rows.iter().map(|row| row[column]).sum::<f64>() / total);
                Likely { place: number * COARSE, row, all: row.iter().sum() }
            })
            .filter(|likely| likely.all > NEGLIGIBLE)
            .collect();
        let [low, high] = self.quantiles([0.01, 0.99]).map(|rate| (rate.ln() - self.low) / self.step);
        let candidates = (0..CANDIDATES).map(|place| low + (high - low) * place as f64 / (CANDIDATES - 1) as f64);
        let last = (self.weights.len() - 1) as f64;
        let mut places: Vec<usize> = candidates.map(|place| place.round().clamp(0.0, last) as usize).collect();
        places.dedup();
        let doubts = places.into_iter().map(|place| (place, self.expected_doubt(place, &likely)));
        let least = doubts.min_by(|(_, one), (_, other)| one.total_cmp(other));
        self.theta(least.map_or(0, |(place, _)| place)).exp()
    }

    /// Expected entropy of θ after a step at this cell's rate.
    fn expected_doubt(&self, at: usize, likely: &[Likely]) -> f64 {
        // Σ p ln p and Σ p, over θ, of the joint probabilities of θ and each outcome of the step.
        let mut ends = [(0.0, 0.0); 2];
        for Likely { place, row, all } in likely {
            let chances = &self.chances[self.weights.len() + COARSE + at - place];
            let kept: f64 = row.iter().zip(chances).map(|(probability, chance)| probability * chance).sum();
            for (end, part) in ends.iter_mut().zip([kept, all - kept]) {
                *end = (end.0 + part * part.ln(), end.1 + part);
            }
        }
        ends.iter().map(|(sum, all)| all * all.ln() - sum).sum()
    }
}

/// Cells in θ that are taken as one.
struct Likely {
    /// The first of them.
    place: usize,
    /// The probabilities of each σ,
    row: Row,
    /// and of all together.
    all: f64,
}

/// Multiplies weights by the likelihood of a step, row by row: `odds` are exp((ln r − θ) / σ), and grow by this factor.
fn multiply<'a>(rows: impl Iterator<Item = &'a mut Row>, mut odds: Row, factor: Row, kept: bool) {
    let (offset, sign) = if kept { (0.0, 1.0) } else { (1.0, -1.0) };
    for row in rows {
        for ((weight, odds), factor) in row.iter_mut().zip(&mut odds).zip(&factor) {
            *weight *= offset + sign * kept_at(*odds);
            *odds *= factor;
        }
    }
}

/// Where so large a share of all lies below: a number of cells from the middle of the first.
fn place_of(parts: &[f64], share: f64) -> f64 {
    let below = share * parts.iter().sum::<f64>();
    let mut sum = 0.0;
    for (place, part) in parts.iter().enumerate() {
        if sum + part >= below {
            // Within a cell the probability is taken to be uniform.
            let inside = if *part > 0.0 { (below - sum) / part } else { 0.5 };
            return place as f64 + inside - 0.5;
        }
        sum += part;
    }
    parts.len().saturating_sub(1) as f64
}

/// The probability that a step keeps the objective, of exp((ln r − θ) / σ).
fn kept_at(odds: f64) -> f64 {
    LAPSE / 2.0 + (1.0 - LAPSE) / (1.0 + odds)
}

#[cfg(test)]
mod tests {
    use brownout_base::random::Random;

    use super::*;

    fn search(truth: f64, blur: f64, steps: usize, seed: u64) -> Estimate {
        let mut chance = Random::new(seed);
        let mut belief = Belief::between(truth * 0.6, truth * 1.9);
        for _ in 0..steps {
            let rate = belief.next();
            let kept = chance.fraction() < 1.0 / (1.0 + ((rate / truth).ln() / blur).exp());
            belief.learn(rate, kept);
        }
        belief.estimate()
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
        let estimate = Belief::between(100.0, 400.0).estimate();
        assert!((estimate.rate - 200.0).abs() < 1.0, "{estimate:?}");
        assert!(estimate.interval.0 < 105.0 && estimate.interval.1 > 380.0, "{estimate:?}");
    }
}
