//! The example's Compose project on a Docker of its own: found, slowed, proven, refuted, started again in between, and left as
//! it was.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::Duration,
};

use super::{
    apart::{beside_engine, network_of},
    common::{
        Running, both, brownout, byhand::Workspace, json, kill, only_run, packed::cassandra, repository, require_root,
        text, undisturbed,
    },
    docker::{Project, SERVICES, address, docker, done, network},
    findings::{LINK_FAULTS, LINK_KINDS, LINK_PHASES, assert_all_are, named, pairs},
    hand::{assert_slow_is_proven, host, only_lab},
    look::{Connection, Setup},
    runs::{assert_goes_on, is_stopped, within_ten_seconds},
};

const SHORT: [&str; 5] = [
    "--set=phases={warm-up: 20s, baseline: 11s, fault: 11s, recovery: 11s}",
    "--set=trials=1",
    "--set=without-fault=0",
    "--set=attempts=1",
    "--set=load.population=2_000",
];

/// The experiment beside the example.
fn experiment() -> PathBuf {
    repository().join("examples/compose/slow-replica.yaml")
}

fn run(out: &Path, file: &Path, more: &[&str]) -> Output {
    let mut arguments = vec!["run", file.to_str().unwrap(), "--json", "--out", out.to_str().unwrap()];
    arguments.extend(more);
    brownout(&arguments)
}

/// The networks of the machine and of all containers.
fn setup() -> Setup {
    let mut all: Vec<PathBuf> = SERVICES.iter().map(|service| network(service)).collect();
    all.push(network_of(std::process::id()));
    Setup::of(&all)
}

/// From the first container to the second.
fn connection() -> Connection {
    Connection::between(&network(SERVICES[0]), &network(SERVICES[1]), address(SERVICES[1]))
}

#[test]
#[ignore = "needs Docker: make test-long"]
fn the_example_shows_what_a_slow_replica_costs_and_is_left_as_it_was() {
    require_root();
    cassandra();
    beside_engine("docker", &the_example_shows_what_a_slow_replica_costs_and_is_left_as_it_was, || {
        let project = Project::up();
        let mut connection = connection();
        connection.assert_fast();
        let before = setup();
        let listed = json(&brownout(&["ground", "--project", "shop", "--json"]));
        let told = listed["hosts"].as_array().unwrap();
        assert_eq!(told.len(), 3, "{listed}");
        for (told, service) in told.iter().zip(SERVICES) {
            assert_eq!(told["runtime"], "docker", "{told}");
            // By the project's label and the service's, with its number; or by the name that the file gives it.
            assert!(told["name"].as_str().unwrap().starts_with(service), "{told}");
            assert_eq!(told["addresses"][0], address(service).to_string(), "{told}");
        }

        let Some((of_compose, output, findings)) = undisturbed(|out| run(out, &experiment(), &SHORT)) else { return };
        // An objective missed on a busy machine is another matter.
        assert!(matches!(output.status.code(), Some(0 | 1)), "{}", both(&output));
        let trial = &findings["trials"][0];
        let fault = &trial["faults"][0];
        assert_eq!(fault["verdict"], "proven", "{fault}");
        let second = named(&findings, address(SERVICES[1]));
        let hit = pairs(fault, "one-way-delay", true);
        assert!(hit.len() == 3 && hit.iter().all(|(from, _)| *from == second), "{second}: {hit:?}");
        // Whoever asks the slow replica waits for it: a third of all, whatever the others do.
        let lost = trial["effect"]["degradation"].as_f64().unwrap();
        assert!((0.2..0.75).contains(&lost), "{}", trial["effect"]);

        let Some((_, output, findings)) =
            undisturbed(|out| run(out, &experiment(), &[&SHORT[..], &["--sabotage"]].concat()))
        else {
            return;
        };
        assert_eq!(output.status.code(), Some(3), "{}", both(&output));
        assert_eq!(findings["trials"][0]["faults"][0]["verdict"], "refuted");

        let mut killed = Running::start(&[
            experiment().to_str().unwrap(),
            "--out",
            project.directory().to_str().unwrap(),
            "--set=phases={warm-up: 16s, baseline: 5s, fault: 60s, recovery: 5s}",
            "--set=trials=1",
            "--set=without-fault=0",
        ]);
        killed.wait_for("fault  ");
        connection.assert_slow(Duration::from_millis(95));
        before.assert_is_changed();
        killed.signal(libc::SIGKILL);
        killed.child.wait().unwrap();
        connection.assert_fast();
        before.assert_is_back();

        drop(project);
        beside_a_lab(of_compose.path());
    });
}

/// The same experiment in a lab, and both runs beside each other.
fn beside_a_lab(of_compose: &Path) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("slow-replica.yaml");
    let written = fs::read_to_string(experiment()).unwrap();
    let (before, after) = written.split_once("ground:\n  containers: { project: shop }\n").unwrap();
    fs::write(&file, format!("{before}{after}")).unwrap();
    let Some((of_lab, output, _)) = undisturbed(|out| run(out, &file, &SHORT)) else { return };
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", both(&output));

    let runs = [of_lab.path(), of_compose].map(|out| only_run(out).display().to_string());
    let compared = brownout(&["compare", &runs[0], &runs[1], "--json"]);
    assert_eq!(compared.status.code(), Some(0), "{}", both(&compared));
    let found = json(&compared);
    let differs = |name: &str| {
        let all = found["differs"].as_array().unwrap();
        let setting = all.iter().find(|setting| setting["name"] == name);
        let setting = setting.unwrap_or_else(|| panic!("{name} does not differ: {}", found["differs"]));
        ["a", "b"].map(|side| setting[side].as_str().unwrap().to_owned())
    };
    let [lab, compose] = differs("ground");
    assert_eq!(lab, "a lab");
    assert!(compose.starts_with("3 containers of the Compose project shop, Docker"), "{compose}");
    for name in ["cluster", "network", "its settings"] {
        differs(name);
    }
    // What was asked is the same: the load, the phases, what counts as good; and so there is something to compare.
    let same = ["nodes", "load", "consistency", "replication", "phases", "good"];
    let others = found["differs"].as_array().unwrap().iter().filter_map(|setting| setting["name"].as_str());
    assert_eq!(others.filter(|name| same.contains(name)).collect::<Vec<_>>(), [""; 0]);
    let figures = found["figures"].as_array().unwrap();
    assert!(figures.iter().any(|figure| figure["phase"] == "fault" && figure["figure"] == "kept"), "{figures:?}");
    let printed = text(&brownout(&["compare", &runs[0], &runs[1]]).stdout);
    assert!(printed.contains("ground differs: a lab → 3 containers"), "{printed}");
}

#[test]
#[ignore = "needs Docker: make test-long"]
fn every_fault_of_links_is_proven_on_a_compose_project_and_refuted_when_it_was_not_put_in_force() {
    require_root();
    cassandra();
    let test = every_fault_of_links_is_proven_on_a_compose_project_and_refuted_when_it_was_not_put_in_force;
    beside_engine("docker", &test, || {
        let project = Project::up();
        let file = project.directory().join("links.yaml");
        let text = format!(
            "ground: {{ containers: {{ project: shop }} }}\n\
             load: {{ replication: 3, consistency: quorum, population: 2_000, rate: 400/s, timeout: 2s }}\n\
             phases: {LINK_PHASES}\n\
             faults:\n{LINK_FAULTS}\
             trials: 1\nwithout-fault: 0\nattempts: 1\nobjective: {{ p95: 2s }}\n"
        );
        fs::write(&file, text).unwrap();
        let before = setup();
        let Some((_, output, findings)) = undisturbed(|out| run(out, &file, &[])) else { return };
        assert_all_are("proven", &LINK_KINDS, &findings);
        assert!(matches!(output.status.code(), Some(0 | 1)), "{}", both(&output));
        before.assert_is_back();
        let Some((_, output, findings)) = undisturbed(|out| run(out, &file, &["--sabotage"])) else { return };
        assert_all_are("refuted", &LINK_KINDS, &findings);
        assert_eq!(output.status.code(), Some(3), "{}", both(&output));
        before.assert_is_back();
    });
}

/// By how much the file of a clock has programs see it ahead, ns: its generation names the slot in force.
fn ahead(clock: &Path) -> i64 {
    let bytes = fs::read(clock).unwrap();
    let number = |at: usize| i64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());
    number(if number(8) & 1 == 0 { 16 } else { 40 })
}

#[test]
#[ignore = "needs Docker: make test-long"]
fn a_clock_that_the_override_has_given_is_wrong_and_proven_and_right_when_brownout_is_killed() {
    require_root();
    cassandra();
    let test = a_clock_that_the_override_has_given_is_wrong_and_proven_and_right_when_brownout_is_killed;
    beside_engine("docker", &test, || {
        let directory = tempfile::tempdir().unwrap();
        let (example, kept) = (repository().join("examples/compose/docker-compose.yml"), directory.path().join("kept"));
        let wrapped = brownout(&["wrap", example.to_str().unwrap(), "--dir", kept.to_str().unwrap()]);
        assert_eq!(wrapped.status.code(), Some(0), "{}", both(&wrapped));
        let clocks = directory.path().join("clocks.yml");
        fs::write(&clocks, &wrapped.stdout).unwrap();
        let project = Project::up_with(&[clocks]);
        let listed = json(&brownout(&["ground", "--project", "shop", "--json"]));
        for host in listed["hosts"].as_array().unwrap() {
            assert!(host["can"].as_array().unwrap().iter().any(|can| can == "clock"), "{host}");
        }

        let file = project.directory().join("clock.yaml");
        let text = "ground: { containers: { project: shop } }\n\
                    load: { replication: 3, consistency: quorum, population: 2_000, rate: 200/s, timeout: 2s }\n\
                    phases: { warm-up: 20s, baseline: 11s, fault: 11s, recovery: 11s }\n\
                    faults: [{ clock: { host: n2, offset: 5s } }]\n\
                    trials: 1\nwithout-fault: 0\nattempts: 1\nobjective: { p95: 2s }\n";
        fs::write(&file, text).unwrap();
        let Some((_, output, findings)) = undisturbed(|out| run(out, &file, &[])) else { return };
        assert!(matches!(output.status.code(), Some(0 | 1)), "{}", both(&output));
        assert_eq!(findings["trials"][0]["faults"][0]["verdict"], "proven", "{}", findings["trials"][0]["faults"]);
        let Some((_, output, findings)) = undisturbed(|out| run(out, &file, &["--sabotage"])) else { return };
        assert_eq!(output.status.code(), Some(3), "{}", both(&output));
        assert_eq!(findings["trials"][0]["faults"][0]["verdict"], "refuted");

        let clock = kept.join(format!("{}.clock", SERVICES[1]));
        assert_eq!(ahead(&clock), 0);
        let out = project.directory().join("killed");
        let mut killed =
            Running::start(&[file.to_str().unwrap(), "--out", out.to_str().unwrap(), "--set=phases.fault=60s"]);
        killed.wait_for("fault  ");
        within_ten_seconds("its clock is wrong", || ahead(&clock) > 4_000_000_000);
        killed.signal(libc::SIGKILL);
        killed.child.wait().unwrap();
        within_ten_seconds("its clock is right", || ahead(&clock) == 0);
    });
}

#[test]
#[ignore = "needs Docker: make test-long"]
fn by_hand_a_container_that_is_started_again_is_slow_again_and_nothing_is_left() {
    require_root();
    cassandra();
    beside_engine("docker", &by_hand_a_container_that_is_started_again_is_slow_again_and_nothing_is_left, || {
        let _project = Project::up();
        connection().assert_fast();
        let first = setup();
        let space = Workspace::new();
        let [a, b, c] = SERVICES;
        // As the experiment beside it says, and as three names.
        space.good(&["attach", experiment().to_str().unwrap()]);
        assert_eq!(only_lab(&space), "slow-replica");
        first.assert_is_changed();
        assert!(space.good(&["cql", "SELECT release_version FROM system.local"]).contains("5.0"));
        space.good(&["detach"]);
        first.assert_is_back();
        space.good(&["attach", a, b, c]);
        first.assert_is_changed();
        space.good(&["slow", "n2", "100ms"]);
        connection().assert_slow(Duration::from_millis(95));
        assert_slow_is_proven(&space);

        // It has another network now, of the same address.
        docker(&["restart", "-t", "2", b]);
        space.until("it is attached again", || space.good(&["events", "--json"]).contains("\"reattached\""));
        connection().assert_slow(Duration::from_millis(95));
        let told = host(&space, &address(b).to_string());
        assert!(told["network"].to_string().contains("SLOW 100ms"), "{told}");

        // Brownout itself stops and starts it, by its runtime.
        space.good(&["kill", "n3"]);
        let runs = || docker(&["inspect", "--format", "{{.State.Running}}", c]).trim() == "true";
        space.until("Docker knows that it has ended", || !runs());
        space.good(&["start", "n3", "--no-wait"]);
        space.until("it runs", runs);

        space.good(&["pause", "n1"]);
        let paused = docker(&["inspect", "--format", "{{.State.Pid}}", a]).trim().parse().unwrap();
        assert!(is_stopped(paused));
        kill(space.keeper(&only_lab(&space)).unwrap(), libc::SIGKILL);
        connection().assert_fast();
        assert_goes_on(paused);
        // Containers that were started again have other interfaces than at first: what it adds has its name.
        let networks = SERVICES.iter().map(|service| network(service)).chain([network_of(std::process::id())]);
        for network in networks {
            let network = format!("--net={}", network.display());
            let look = |words: &str| done(Command::new("nsenter").arg(&network).args(words.split(' ')));
            let is_clean = || !(look("nft list ruleset") + &look("ip -o link")).contains("brownout");
            within_ten_seconds(&format!("nothing of it is in {network}"), is_clean);
        }
    });
}
