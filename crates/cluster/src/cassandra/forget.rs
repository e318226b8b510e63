//! Has a node forget how fast it found the others: its dynamic snitch's latencies of reads, and the scores made of them. Before
//! that it collects its whole heap: left to itself, it would do so later, and the stall would teach it and the others anew.
//!
//! A coordinator that avoids a slow node gets no latencies of it that could tell of its recovery, so it goes on avoiding it
//! until the snitch resets itself, every ten minutes as shipped (`dynamic_snitch_reset_interval`). We bring that forward:
//! `StorageService.updateSnitch` without a class name changes the interval of the snitch that is there ("Change [...] dynamic
//! attributes at runtime", `StorageServiceMBean`), which begins it anew. So a very short one is set, until the scores are
//! gone, and then the one that was; the next reset of the node's own is one whole interval away, as after its start.
//!
//! With a class name the same operation makes a new snitch, which has no scores either. But the old one goes on being told
//! every latency (`LatencySubscribers` has no way to leave), so that a node would have more to do with every trial; and the
//! snitch below a new one is never told that gossip has started (`gossiperStarting`). Read in the bytecode of 4.1.10 and
//! 5.0.9; the operation is the same in 4.0 and 3.11. Both ways look up every node's data centre once more, and work out anew which nodes hold what when that is next
//! asked for.

use std::{
    net::{Ipv4Addr, SocketAddr},
    thread,
    time::{Duration, Instant},
};

use crate::jmx::{Argument, Client, JmxError, Value};

const SNITCH: &str = "org.apache.cassandra.db:type=DynamicEndpointSnitch";
const SCORES: &str = "ScoresWithPort";
/// 3.11 knows of no ports, and names nodes by objects.
const SCORES_OF_OLD: &str = "Scores";
const MEMORY: &str = "java.lang:type=Memory";
const STORAGE: &str = "org.apache.cassandra.db:type=StorageService";
/// The snitch is not dynamic (`dynamic_snitch: false`): it learns nothing.
const MISSING: &str = "javax.management.InstanceNotFoundException";

/// While latencies are to be forgotten, they are this often.
const SHORT_MS: i32 = 5;
/// For each answer: a node at rest takes milliseconds, but what it has never done takes longer.
const PATIENCE: Duration = Duration::from_secs(2);
/// For the heap: the more of it lives, the longer it takes.
const COLLECTED_WITHIN: Duration = Duration::from_secs(30);
/// For the scores to be gone: they are made anew every 100 ms, as shipped.
const GONE_WITHIN: Duration = Duration::from_secs(3);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// One may just have read from another.
const ATTEMPTS: u32 = 3;

/// What a node's snitch tells.
#[derive(Debug, Clone, PartialEq)]
struct Told {
    /// By address; who has none counts as one of 0.
    scores: Vec<(String, f64)>,
    /// How often scores are made.
    update: Duration,
    /// How often latencies are forgotten.
    reset_ms: i32,
}

/// A node's snitch, as far as it can be asked and set.
trait Snitch {
    /// `None` where it is not dynamic.
    fn told(&mut self) -> Result<Option<Told>, JmxError>;
    fn set_reset_ms(&mut self, interval: i32) -> Result<(), JmxError>;
}

impl Snitch for Client {
    fn told(&mut self) -> Result<Option<Told>, JmxError> {
        match self.attributes(SNITCH, &[SCORES, "UpdateInterval", "ResetInterval"]) {
            Ok(mut attributes) => {
                if !attributes.iter().any(|(name, _)| name == SCORES) {
                    attributes.extend(self.attributes(SNITCH, &[SCORES_OF_OLD])?);
                }
                read(&attributes).map(Some).ok_or(JmxError::Protocol("no scores and intervals of a snitch"))
            }
            Err(JmxError::Exception(class)) if class == MISSING => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn set_reset_ms(&mut self, interval: i32) -> Result<(), JmxError> {
        // Class, dynamic, update interval, reset interval, badness threshold: what is null stays as it is.
        let arguments = [
            ("java.lang.String", Argument::Nothing),
            ("java.lang.Boolean", Argument::Nothing),
            ("java.lang.Integer", Argument::Nothing),
            ("java.lang.Integer", Argument::Int(interval)),
            ("java.lang.Double", Argument::Nothing),
        ];
        self.invoke(STORAGE, "updateSnitch", &arguments).map(drop)
    }
}

fn read(attributes: &[(String, Value)]) -> Option<Told> {
    let value = |name: &str| attributes.iter().find(|(own, _)| own == name).map(|(_, value)| value);
    let scores = value(SCORES).or_else(|| value(SCORES_OF_OLD));
    let scores = scores.filter(|scores| matches!(scores, Value::Object(_)))?.entries();
    let scores = scores.iter().map(|(node, score)| Some((node.address()?, score.number()?)));
    Some(Told {
        scores: scores.collect::<Option<_>>()?,
        update: Duration::from_millis(value("UpdateInterval")?.number()? as u64),
        reset_ms: value("ResetInterval")?.number()? as i32,
    })
}

/// Has the node of this network and address collect its heap and forget its scores, and looks whether it has forgotten; if not,
/// says what it still does. Runs in the node's network; blocks for some tenths of a second, and for seconds if something is wrong.
pub(super) fn forget(own: Ipv4Addr, jmx_port: u16) -> Result<(), String> {
    let jmx = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), jmx_port);
    let open = |patience| Client::open(jmx, patience).map_err(|error| format!("its JMX does not answer ({error})"));
    let collected = open(COLLECTED_WITHIN)?.invoke(MEMORY, "gc", &[]);
    collected.map_err(|error| format!("its heap cannot be collected ({error})"))?;
    forget_of(&mut open(PATIENCE)?, own)
}

fn forget_of(snitch: &mut impl Snitch, own: Ipv4Addr) -> Result<(), String> {
    let unknown = |error: JmxError| format!("it does not say how it scores the others ({error})");
    let Some(before) = snitch.told().map_err(unknown)? else { return Ok(()) };
    if before.update * 2 > GONE_WITHIN {
        let every = before.update.as_secs_f64();
        return Err(format!("it makes scores every {every} s only, so that it would take too long to see them gone"));
    }
    // No interval is set by being set again to what it is.
    let short_ms = if before.reset_ms == SHORT_MS { SHORT_MS + 1 } else { SHORT_MS };
    let mut left = Vec::new();
    for _ in 0..ATTEMPTS {
        let gone = set(snitch, short_ms).and_then(|()| until_gone(snitch));
        // Whatever came of it, the node is left with its own interval.
        let restored = set(snitch, before.reset_ms);
        gone.and(restored)?;
        // What came between the last reset and now is in the next scores.
        thread::sleep(before.update * 2);
        let after = snitch.told().map_err(unknown)?.ok_or("its snitch is not dynamic any more")?;
        if after.reset_ms != before.reset_ms {
            return Err(format!("its snitch resets every {} ms now, not {} ms", after.reset_ms, before.reset_ms));
        }
        // A node that is asked the time ten times a second reads its own tables for that. Its score of itself is then new.
        let others = after.scores.into_iter().filter(|(node, _)| address_of(node) != Some(own));
        left = differences(&Told { scores: others.collect(), ..after });
        if left.is_empty() {
            return Ok(());
        }
    }
    Err(format!("it scores {} again at once", left.join(", ")))
}

fn set(snitch: &mut impl Snitch, interval_ms: i32) -> Result<(), String> {
    snitch.set_reset_ms(interval_ms).map_err(|error| format!("its snitch cannot be set ({error})"))
}

fn until_gone(snitch: &mut impl Snitch) -> Result<(), String> {
    let begun = Instant::now();
    loop {
        thread::sleep(LOOK_EVERY);
        let left = match snitch.told() {
            Ok(Some(told)) => differences(&told),
            Ok(None) => return Err("its snitch is not dynamic any more".to_owned()),
            Err(error) => return Err(format!("it does not say how it scores the others ({error})")),
        };
        if left.is_empty() {
            return Ok(());
        }
        if begun.elapsed() >= GONE_WITHIN {
            return Err(format!("it goes on scoring {}", left.join(", ")));
        }
    }
}

/// The scores that a replica could be chosen by: those that are not what a replica without one has.
fn differences(told: &Told) -> Vec<String> {
    told.scores.iter().filter(|(_, score)| *score != 0.0).map(|(node, score)| format!("{node} {score:.2}")).collect()
}

/// The address in a node's name: "/10.77.0.1:7000", of 3.11 without the port, with its host's name before it if that is known.
fn address_of(node: &str) -> Option<Ipv4Addr> {
    node.rsplit('/').next()?.split(':').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    /// A snitch whose scores are gone after so many looks at a short interval.
    struct Fake {
        dynamic: bool,
        scores: Vec<(String, f64)>,
        reset_ms: i32,
        /// What is read by the node itself right after each forgetting.
        comes: Vec<(String, f64)>,
        /// What it was set to.
        set: Vec<i32>,
        /// It does not take a setting, of these.
        refused: Option<i32>,
        /// It takes settings, and does not act on them.
        deaf: bool,
        update: Duration,
    }

    fn fake() -> Fake {
        let scores = vec![("/10.0.0.1:7000".to_owned(), 0.25), ("/10.0.0.2:7000".to_owned(), 1.0)];
        Fake {
            dynamic: true,
            scores,
            reset_ms: 600_000,
            comes: Vec::new(),
            set: Vec::new(),
            refused: None,
            deaf: false,
            update: Duration::from_millis(1),
        }
    }

    impl Snitch for Fake {
        fn told(&mut self) -> Result<Option<Told>, JmxError> {
            let Fake { scores, update, reset_ms, .. } = self;
            let told = Told { scores: scores.clone(), update: *update, reset_ms: *reset_ms };
            Ok(self.dynamic.then_some(told))
        }

        fn set_reset_ms(&mut self, interval: i32) -> Result<(), JmxError> {
            self.set.push(interval);
            if self.refused == Some(interval) {
                return Err(JmxError::Exception("no".to_owned()));
            }
            if !self.deaf && interval != self.reset_ms {
                self.scores = if interval < 10 { Vec::new() } else { std::mem::take(&mut self.comes) };
            }
            self.reset_ms = interval;
            Ok(())
        }
    }

    #[test]
    fn scores_are_forgotten_and_the_interval_is_what_it_was() {
        let mut snitch = fake();
        assert_eq!(forget_of(&mut snitch, OWN), Ok(()));
        assert_eq!((snitch.scores.len(), snitch.reset_ms, snitch.set), (0, 600_000, vec![SHORT_MS, 600_000]));
        // One that is as short as ours has to be changed, too.
        let mut snitch = Fake { reset_ms: SHORT_MS, ..fake() };
        assert_eq!(forget_of(&mut snitch, OWN), Ok(()));
        assert_eq!((snitch.scores.len(), snitch.set), (0, vec![SHORT_MS + 1, SHORT_MS]));
    }

    #[test]
    fn a_snitch_that_learns_nothing_is_left_alone() {
        let mut snitch = Fake { dynamic: false, ..fake() };
        assert_eq!(forget_of(&mut snitch, OWN), Ok(()));
        assert!(snitch.set.is_empty());
    }

    #[test]
    fn scores_that_come_again_are_forgotten_again_and_equal_ones_of_nought_are_no_difference() {
        let mut snitch = Fake { comes: vec![("/10.0.0.3:7000".to_owned(), 1.0)], ..fake() };
        assert_eq!(forget_of(&mut snitch, OWN), Ok(()));
        assert_eq!(snitch.set, [SHORT_MS, 600_000, SHORT_MS, 600_000]);
        let mut snitch = Fake { comes: vec![("/10.0.0.3:7000".to_owned(), 0.0)], ..fake() };
        assert_eq!(forget_of(&mut snitch, OWN), Ok(()));
        assert_eq!(snitch.set, [SHORT_MS, 600_000]);
    }

    #[test]
    fn what_a_node_reads_of_its_own_is_nothing_that_it_remembers() {
        for own in ["/10.0.0.2:7000", "/10.0.0.2", "n2/10.0.0.2:7000"] {
            let mut snitch = Fake { comes: vec![(own.to_owned(), 1.0)], ..fake() };
            assert_eq!(forget_of(&mut snitch, OWN), Ok(()));
            assert_eq!(snitch.set, [SHORT_MS, 600_000], "{own}: once");
        }
    }

    #[test]
    fn scores_that_are_made_too_seldom_to_see_them_gone_are_not_taken_to_be() {
        let mut snitch = Fake { scores: Vec::new(), update: Duration::from_secs(60), ..fake() };
        assert!(forget_of(&mut snitch, OWN).unwrap_err().starts_with("it makes scores every 60 s only"));
        assert!(snitch.set.is_empty());
    }

    #[test]
    fn a_node_that_does_not_forget_says_of_whom_and_has_its_interval_back() {
        let mut snitch = Fake { deaf: true, ..fake() };
        assert_eq!(
            forget_of(&mut snitch, OWN),
            Err("it goes on scoring /10.0.0.1:7000 0.25, /10.0.0.2:7000 1.00".to_owned())
        );
        assert_eq!(snitch.reset_ms, 600_000);
        for refused in [SHORT_MS, 600_000] {
            let mut snitch = Fake { refused: Some(refused), ..fake() };
            let error = forget_of(&mut snitch, OWN).unwrap_err();
            assert!(error.starts_with("its snitch cannot be set"), "{error}");
            assert_eq!(snitch.set, [SHORT_MS, 600_000], "it is given back in any case");
        }
    }
}
