//! Which operation comes next: by weight, in runs of the same kind.

use brownout_generate::{
    distribution::{Distribution, Spec},
    java::{Random, Weighted, WeightsError},
};

/// A weighted choice among kinds of operations. In cassandra-stress each user thread has its own; here each load thread
/// has one, so a run consists of consecutive operations of its schedule. The shares are the same.
#[derive(Debug, Clone)]
pub struct Choice {
    kinds: Vec<usize>,
    weighted: Option<Weighted>,
    random: Random,
    run: Distribution,
    current: usize,
    left: i64,
}

impl Choice {
    /// Chooses among `kinds` (each with its weight), `run` times in a row the same.
    ///
    /// # Errors
    /// A weight is negative, or none is above 0.
    pub fn new(kinds: &[(usize, f64)], run: &Spec, seed: i64) -> Result<Self, WeightsError> {
        let weights: Vec<f64> = kinds.iter().map(|(_, weight)| *weight).collect();
        let weighted = Weighted::new(&weights)?;
        let mut random = Random::new(seed);
        let run = run.build(random.next_i64());
        Ok(Choice {
            kinds: kinds.iter().map(|(kind, _)| *kind).collect(),
            weighted: (kinds.len() > 1).then_some(weighted),
            random,
            run,
            current: kinds.first().map_or(0, |(kind, _)| *kind),
            left: 0,
        })
    }

    /// The next one.
    #[inline]
    pub fn draw(&mut self) -> usize {
        let Some(weighted) = &self.weighted else { return self.current };
        // Skip runs of zero or fewer operations.
        while self.left <= 0 {
            self.left = self.run.next();
            self.current = self.kinds[weighted.sample(&mut self.random)];
        }
        self.left -= 1;
        self.current
    }

    /// All it chooses among.
    pub fn kinds(&self) -> &[usize] {
        &self.kinds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_the_weights_and_runs_are_as_long_as_asked() {
        let mut choice = Choice::new(&[(4, 1.0), (9, 3.0)], &Spec::Fixed(5), 1).unwrap();
        let drawn: Vec<usize> = (0..40_000).map(|_| choice.draw()).collect();
        let share = drawn.iter().filter(|kind| **kind == 9).count() as f64 / 40_000.0;
        // Of 8,000 runs: five standard deviations are 0.024.
        assert!((share - 0.75).abs() < 0.025, "{share}");
        assert!(drawn.chunks(5).all(|run| run.iter().all(|kind| *kind == run[0])));
    }

    #[test]
    fn the_same_seed_chooses_the_same_and_a_single_kind_needs_no_choice() {
        let draws = |seed| {
            let mut choice = Choice::new(&[(0, 1.0), (1, 1.0)], &Spec::Uniform { min: 1, max: 10 }, seed).unwrap();
            (0..100).map(|_| choice.draw()).collect::<Vec<_>>()
        };
        assert_eq!(draws(7), draws(7));
        assert_ne!(draws(7), draws(8));
        let mut one = Choice::new(&[(3, 0.5)], &Spec::Fixed(1), 0).unwrap();
        assert!((0..10).all(|_| one.draw() == 3));
    }
}
