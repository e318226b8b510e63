//! What makes operations start.

use std::time::Duration;

use brownout_load::Arrivals;
use brownout_stress::settings::{LimitKind, Objective, Open, Rate};

use super::{parse, seconds};

#[test]
fn rates_are_threads_with_or_without_limits() {
    let threads = |threads| Rate::Threads { threads, limit: None };
    assert_eq!(parse("write n=10").rate, threads(200), "cassandra-stress's default of a counted write");
    let auto = Rate::Steps { least: 4, most: 1000, until_saturated: true };
    for line in ["write", "write n=0", "write duration=1s", "read n=10", "mixed n=10", "read -rate auto"] {
        assert_eq!(parse(line).rate, auto, "{line}");
    }
    assert_eq!(
        parse("read -rate threads>=2 threads<=8").rate,
        Rate::Steps { least: 2, most: 8, until_saturated: false },
        "without auto every step is run"
    );
    for (line, kind, rate) in [
        ("read -rate threads=3 throttle=500/s", LimitKind::Throttle, 500.0),
        ("read -rate threads=3 fixed=1.5k/s", LimitKind::Fixed, 1500.0),
        ("read -rate threads=3 fixed=90/min throttle=0/s", LimitKind::Fixed, 1.5),
    ] {
        let Rate::Threads { threads: 3, limit: Some(limit) } = parse(line).rate else { panic!("{line}") };
        assert_eq!((limit.kind, limit.rate.get()), (kind, rate), "{line}");
    }
}

#[test]
fn open_loops_have_every_shape() {
    let open = |line: &str| match parse(line).rate {
        Rate::Open(Open { shape, arrivals }) => (shape.to_string(), arrivals),
        other => panic!("{line}: {other:?}"),
    };
    for (words, shown, arrivals) in [
        ("open=2000/s", "2000/s", Arrivals::Constant),
        ("open=2k/s arrivals=Poisson", "2000/s", Arrivals::Poisson),
        ("fixed=2000/s unbounded", "2000/s", Arrivals::Constant),
        ("open=2000/s ramp=100/s,30s", "from 100/s to 2000/s in 30s", Arrivals::Constant),
        ("open=2000/s ramp=1m", "from 2/s to 2000/s in 60s", Arrivals::Constant),
        ("steps(1k/s=30s,2k/s=500ms)", "1000/s for 30s, then 2000/s for 500ms", Arrivals::Constant),
        ("steps(1/s=5s,2/s=5s,1/s=5s)", "1/s for 5s, then 2/s for 5s, then 1/s for 5s", Arrivals::Constant),
        ("open=2000/s sine(amplitude=500/s,period=1m)", "2000/s ± 500/s every 60s", Arrivals::Constant),
        ("trace=day.csv arrivals=poisson", "as day.csv says", Arrivals::Poisson),
    ] {
        assert_eq!(open(&format!("read duration=1m -rate {words}")), (shown.to_owned(), arrivals), "{words}");
    }
    let settings = parse("read -rate threads=5 open=100/s");
    assert!(settings.rate.is_open() && settings.notes[0].contains("threads="), "{:?}", settings.notes);
    let Rate::Open(open) = parse("read -rate steps(10/s=1s,20/s=1s)").rate else { panic!("open") };
    let profile = open.profile().expect("a profile");
    assert_eq!((profile.count(seconds(1)), profile.count(seconds(2))), (10.0, 30.0));
    let Rate::Open(open) = parse("read -rate trace=no-such.csv").rate else { panic!("open") };
    assert!(open.profile().expect_err("no file").to_string().starts_with("-rate trace=no-such.csv: cannot be read"));
}

#[test]
fn a_search_has_objectives_and_bounds() {
    let search = |line: &str| match parse(line).rate {
        Rate::Search(search) => search,
        other => panic!("{line}: {other:?}"),
    };
    let plain = search("read -rate search(slo=p99<20ms)");
    assert_eq!(plain.objectives, [Objective::Latency { quantile: 0.99, below: Duration::from_millis(20) }]);
    assert_eq!((plain.from.get(), plain.to, plain.step, plain.precision), (1000.0, None, seconds(10), 0.05));
    let full = search(
        "read -rate search(slo=p99.9<20ms,errors<0.5%,max<1s,mean<5ms,from=100/s,to=5k/s,step=30s,precision=2%) arrivals=poisson",
    );
    let shown: Vec<String> = full.objectives.iter().map(Objective::to_string).collect();
    assert_eq!(shown, ["p99.9<20ms", "errors<0.5%", "max<1s", "mean<5ms"]);
    assert_eq!((full.from.get(), full.to.map(|to| to.get()), full.step), (100.0, Some(5000.0), seconds(30)));
    assert_eq!((full.precision, full.arrivals), (0.02, Arrivals::Poisson));
}
