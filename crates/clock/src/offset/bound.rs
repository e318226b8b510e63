//! What all exchanges together say of the offset at any moment.

use super::Exchange;

/// By how much two clocks may run apart beside their mean difference in rate, in parts per million: PHI of RFC 5905.
const WANDER_PPM: i128 = 15;
/// Where exchanges contradict each other, wider limits are tried up to this: what slewing clocks of Linux do at most is 500 ppm
/// each (adjtimex(2)).
const MOST_WANDER_PPM: i128 = 1_000;
/// The rate of the clocks is told from exchanges that lie this far apart, ns; nearer ones would tell noise.
const RATE_OVER_NS: u64 = 10_000_000_000;
const MILLION: i128 = 1_000_000;

/// By how much the server's clock is ahead of the asking machine's (negative: behind).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offset {
    /// The middle of what is possible, ns.
    pub ahead_ns: i64,
    /// The truth is within `ahead_ns` ± this.
    pub error_ns: u64,
}

/// The offset over time.
#[derive(Debug, Clone, Default)]
pub struct Offsets {
    count: usize,
    /// When the last exchange was over, by the asking machine.
    newest_ns: u64,
    /// By how much the server's clock is faster, in parts per million of a million.
    rate_ppt: i128,
    limits: Option<Limits>,
}

/// What all exchanges allow, if clocks run apart by no more than this beside their rate.
#[derive(Debug, Clone)]
struct Limits {
    wander_ppm: i128,
    /// The least offset.
    least: Envelope,
    /// The largest one, negated.
    most: Envelope,
}

impl Offsets {
    /// Of all these exchanges with one server, in whatever order.
    pub fn of(mut exchanges: Vec<Exchange>) -> Offsets {
        // What came before it was sent was taken by a clock that was not monotonic.
        exchanges.retain(|one| one.heard_ns >= one.asked_ns && one.answered_ns >= one.came_ns);
        exchanges.sort_by_key(|one| one.asked_ns);
        let rate_ppt = rate_ppt(&exchanges);
        let wanders = std::iter::successors(Some(WANDER_PPM), |wander| Some(wander * 2));
        let limits = wanders.take_while(|wander| *wander <= MOST_WANDER_PPM).find_map(|wander_ppm| {
            let least = exchanges.iter().map(|one| (one.heard_ns, one.least_ns()));
            let most = exchanges.iter().map(|one| (one.asked_ns, -one.most_ns()));
            let (least, most) =
                (Envelope::of(least, rate_ppt, wander_ppm)?, Envelope::of(most, -rate_ppt, wander_ppm)?);
            // Limits are straight lines with corners at exchanges: where they hold at all corners, they hold everywhere.
            let mut corners = exchanges.iter().flat_map(|one| [one.asked_ns, one.heard_ns]);
            corners.all(|at| least.at(at) + most.at(at) <= 0).then_some(Limits { wander_ppm, least, most })
        });
        let newest_ns = exchanges.last().map_or(0, |one| one.heard_ns);
        Offsets { count: exchanges.len(), newest_ns, rate_ppt, limits }
    }

    /// At this moment of the asking machine's clock; none where nothing is known, or exchanges contradict each other: one of the
    /// clocks was stopped or set meanwhile.
    pub fn at(&self, asking_ns: u64) -> Option<Offset> {
        let limits = self.limits.as_ref()?;
        let (least, most) = (limits.least.at(asking_ns), -limits.most.at(asking_ns));
        let ahead_ns = i64::try_from((least + most).div_euclid(2)).ok()?;
        // Both halves are rounded, and so are the lines.
        let error_ns = u64::try_from((most - least).max(0) / 2 + 2).ok()?;
        Some(Offset { ahead_ns, error_ns })
    }

    /// A moment of the asking machine on the server's clock, and how exactly that is known, ns.
    pub fn on_server(&self, asking_ns: u64) -> Option<(u64, u64)> {
        let offset = self.at(asking_ns)?;
        Some((asking_ns.checked_add_signed(offset.ahead_ns)?, offset.error_ns))
    }

    /// A moment of the server's clock on the asking machine's, and how exactly that is known, ns.
    pub fn on_asking(&self, server_ns: u64) -> Option<(u64, u64)> {
        // What is known of the newest moment brings it near, and then it is asked again: offsets hardly change meanwhile.
        let mut asking_ns = server_ns.checked_add_signed(self.at(self.newest_ns)?.ahead_ns.checked_neg()?)?;
        let mut offset = self.at(asking_ns)?;
        for _ in 0..2 {
            asking_ns = server_ns.checked_add_signed(offset.ahead_ns.checked_neg()?)?;
            offset = self.at(asking_ns)?;
        }
        Some((asking_ns, offset.error_ns))
    }

    /// By how much the server's clock is faster, in parts per million.
    pub fn rate_ppm(&self) -> f64 {
        self.rate_ppt as f64 / MILLION as f64
    }

    /// Within which the clocks ran apart beside that, in parts per million; none: no limit fits all exchanges.
    pub fn wander_ppm(&self) -> Option<u32> {
        self.limits.as_ref().and_then(|limits| u32::try_from(limits.wander_ppm).ok())
    }

    /// How many exchanges there are.
    pub fn count(&self) -> usize {
        self.count
    }
}

/// The largest of lines that all fall with the distance from their own points: `value + rate × (t − point) − wander × |t − point|`.
#[derive(Debug, Clone)]
struct Envelope {
    /// In order: a point, and the largest from the points before it and from those after it, each as if at time 0.
    points: Vec<(u64, i128, i128)>,
    rising: i128,
    falling: i128,
}

impl Envelope {
    /// None without points.
    fn of(values: impl Iterator<Item = (u64, i128)>, rate_ppt: i128, wander_ppm: i128) -> Option<Envelope> {
        let wander_ppt = wander_ppm * MILLION;
        // After its point a line runs by the rate less the wander, before it by the rate plus the wander.
        let (falling, rising) = (rate_ppt - wander_ppt, rate_ppt + wander_ppt);
        let at_zero = |slope: i128, (at, value): (u64, i128)| value - slope * i128::from(at) / (MILLION * MILLION);
        let mut values: Vec<(u64, i128)> = values.collect();
        values.sort_unstable();
        let mut points: Vec<(u64, i128, i128)> = Vec::with_capacity(values.len());
        let mut before = i128::MIN;
        for value in &values {
            before = before.max(at_zero(falling, *value));
            points.push((value.0, before, i128::MIN));
        }
        let mut after = i128::MIN;
        for (point, value) in points.iter_mut().zip(&values).rev() {
            after = after.max(at_zero(rising, *value));
            point.2 = after;
        }
        (!points.is_empty()).then_some(Envelope { points, rising, falling })
    }

    fn at(&self, at: u64) -> i128 {
        let line = |slope: i128, zero: i128| zero + slope * i128::from(at) / (MILLION * MILLION);
        let next = self.points.partition_point(|(point, ..)| *point <= at);
        let before = next.checked_sub(1).map(|last| line(self.falling, self.points[last].1));
        let after = self.points.get(next).map(|(.., after)| line(self.rising, *after));
        // There are points, and so there is one of the two.
        before.max(after).unwrap_or_default()
    }
}

/// By how much the server's clock is faster, from the best exchanges at the beginning and at the end.
fn rate_ppt(exchanges: &[Exchange]) -> i128 {
    let (Some(first), Some(last)) = (exchanges.first(), exchanges.last()) else { return 0 };
    let span = last.asked_ns - first.asked_ns;
    if span < RATE_OVER_NS {
        return 0;
    }
    // Of each end a quarter: its shortest round trip has the smallest error.
    let best = |from: u64, to: u64| {
        exchanges.iter().filter(|one| (from..=to).contains(&one.asked_ns)).min_by_key(|one| one.delay_ns())
    };
    let early = best(first.asked_ns, first.asked_ns + span / 4);
    let late = best(last.asked_ns - span / 4, last.asked_ns);
    let (Some(early), Some(late)) = (early, late) else { return 0 };
    let (apart, between) = (late.middle_ns() - early.middle_ns(), i128::from(late.asked_ns - early.asked_ns));
    // What their errors alone could make of it is no rate.
    let doubt = i128::from(early.delay_ns() + late.delay_ns()) / 2;
    let sure = apart.signum() * (apart.abs() - doubt).max(0);
    if sure == 0 { 0 } else { apart * MILLION * MILLION / between }
}

#[cfg(test)]
mod tests {
    use brownout_base::random::{Random, derive};

    use super::*;

    const MS: u64 = 1_000_000;
    const S: u64 = 1_000 * MS;

    /// Exchanges with a server that is ahead by `ahead` at zero and faster by `ppm`, over ways of random length: at least
    /// `there` and `back`, ns.
    fn exchanges(count: u64, ahead: i64, ppm: f64, there: u64, back: u64, seed: u64) -> Vec<Exchange> {
        let mut random = Random::new(derive(seed, 1));
        let server = |asking: u64| {
            let fast = (asking as f64 * ppm / 1e6).round() as i64;
            asking.checked_add_signed(ahead + fast).unwrap()
        };
        (0..count)
            .map(|number| {
                let asked_ns = 100 * S + number * 250 * MS;
                // One in eight is quick, the others queue.
                let mut queue = || {
                    let most = if random.chance(0.12) { 20_000.0 } else { 3e6 };
                    (random.fraction() * most) as u64
                };
                let came = asked_ns + there + queue();
                let answered = came + 30_000;
                let heard_ns = answered + back + queue();
                Exchange { asked_ns, came_ns: server(came), answered_ns: server(answered), heard_ns }
            })
            .collect()
    }

    fn holds(offsets: &Offsets, ahead: i64, ppm: f64, from: u64, to: u64) -> u64 {
        let mut worst = 0;
        for at in (from..to).step_by((70 * MS) as usize) {
            let truth = ahead + (at as f64 * ppm / 1e6).round() as i64;
            let offset = offsets.at(at).unwrap();
            assert!(offset.ahead_ns.abs_diff(truth) <= offset.error_ns, "at {at}: {offset:?}, the truth is {truth}");
            if let Some(there) = at.checked_add_signed(truth) {
                let (back, error_ns) = offsets.on_asking(there).unwrap();
                assert!(back.abs_diff(at) <= error_ns + 2, "at {at}: back at {back} ± {error_ns}");
            }
            worst = worst.max(offset.error_ns);
        }
        worst
    }

    #[test]
    fn the_truth_is_within_the_bound_at_every_moment_whatever_the_ways_and_rates() {
        for (seed, ahead, ppm, there, back) in [
            (1, 5_000_000_000_000, 0.0, 50_000, 50_000),
            (2, -40_000_000_000, 40.0, 50_000, 50_000),
            (3, 0, -90.0, 20_000, 20_000),
            // All of the delay on one way.
            (4, 123_456_789, 12.5, 2_000_000, 10_000),
            (5, -7, 0.3, 10_000, 2_000_000),
        ] {
            let all = exchanges(400, ahead, ppm, there, back, seed);
            let offsets = Offsets::of(all);
            let worst = holds(&offsets, ahead, ppm, 100 * S, 200 * S);
            // Half of the ways, some seconds of wander, and what the quick ones queue.
            assert!(worst < (there + back) / 2 + 200_000, "{seed}: {worst}");
            assert!(
                (offsets.rate_ppm() - ppm).abs() < 1.0 + (there + back) as f64 / 20e9 * 1e6 / 2.0,
                "{}",
                offsets.rate_ppm()
            );
            assert_eq!(offsets.wander_ppm(), Some(15), "{seed}");
        }
    }

    #[test]
    fn the_bound_grows_with_the_distance_from_what_is_known() {
        // Of ten seconds.
        let offsets = Offsets::of(exchanges(40, 1_000, 0.0, 10_000, 10_000, 6));
        let error = |at: u64| offsets.at(at).unwrap().error_ns;
        assert!(error(105 * S) < 150_000, "{}", error(105 * S));
        // 15 ppm of 100 s are 1.5 ms.
        assert!((1_400_000..1_750_000).contains(&error(210 * S)), "{}", error(210 * S));
        assert!((1_400_000..1_750_000).contains(&error(0)), "{}", error(0));
    }

    #[test]
    fn a_clock_that_was_set_meanwhile_is_noticed_and_one_that_was_slewed_has_wider_bounds() {
        let mut stepped = exchanges(100, 1_000, 0.0, 10_000, 10_000, 7);
        for one in &mut stepped[50..] {
            (one.came_ns, one.answered_ns) = (one.came_ns + S, one.answered_ns + S);
        }
        let offsets = Offsets::of(stepped);
        assert_eq!((offsets.wander_ppm(), offsets.at(110 * S)), (None, None));

        // Slewed by 200 ppm for five seconds in the middle.
        let mut slewed = exchanges(100, 1_000, 0.0, 10_000, 10_000, 8);
        let slew = |at: u64| (at.saturating_sub(110 * S).min(5 * S) as f64 * 200e-6) as u64;
        for one in &mut slewed {
            (one.came_ns, one.answered_ns) = (one.came_ns + slew(one.came_ns), one.answered_ns + slew(one.answered_ns));
        }
        let offsets = Offsets::of(slewed);
        assert!(offsets.wander_ppm().is_some_and(|wander| wander > 15), "{:?}", offsets.wander_ppm());
        for at in (100 * S..125 * S).step_by(S as usize / 3) {
            let truth = 1_000 + slew(at) as i64;
            let offset = offsets.at(at).unwrap();
            assert!(offset.ahead_ns.abs_diff(truth) <= offset.error_ns, "at {at}: {offset:?}, the truth is {truth}");
        }
    }

    #[test]
    fn nothing_is_known_without_exchanges_and_little_from_one() {
        assert_eq!(Offsets::of(Vec::new()).at(1), None);
        let one = Exchange { asked_ns: 100 * S, came_ns: 200 * S, answered_ns: 200 * S, heard_ns: 100 * S + 2 * MS };
        let offsets = Offsets::of(vec![one]);
        assert_eq!(offsets.at(100 * S + MS), Some(Offset { ahead_ns: 100 * S as i64 - MS as i64, error_ns: MS + 17 }));
        assert_eq!(offsets.on_server(100 * S + MS), Some((200 * S, MS + 17)));
        // What cannot have happened is no exchange.
        let backwards = Exchange { heard_ns: 99 * S, ..one };
        assert_eq!(Offsets::of(vec![backwards]).count(), 0);
    }
}
