//! Words that are answered at once.

use brownout_stress::settings::Invocation;

/// Options and defaults that cassandra-stress's help names; what it does with them differs nowhere but here.
#[test]
fn every_option_of_cassandra_stress_has_its_help_and_its_default() {
    let mut compared = 0;
    for section in include_str!("../golden/help.txt").split("$ ").skip(1) {
        let (line, golden) = section.split_once('\n').expect("a topic");
        let Ok(Invocation::Answer(ours)) = Invocation::parse(&line.split(' ').collect::<Vec<_>>()) else {
            panic!("{line}")
        };
        for theirs in golden.lines() {
            let (name, default) =
                theirs.split_once(' ').map_or((theirs, None), |(name, default)| (name, Some(default)));
            if (line, name) == ("help mixed", "user=") {
                continue; // It ends in a NullPointerException there: a profile belongs to `user`.
            }
            let told = ours.lines().find(|told| told.trim_start().starts_with(name) && told.starts_with("  "));
            let told = told.unwrap_or_else(|| panic!("{line} lacks {name}\n{ours}"));
            // -mode port= tells 9046 there, which nothing reads: the port is that of -port native=.
            let default = default.filter(|_| (line, name) != ("help -mode", "port="));
            assert!(default.is_none_or(|default| told.contains(&format!("(default={default})"))), "{line}: {told}");
            compared += 1;
        }
    }
    assert!(compared >= 140, "{compared} options compared");
}

#[test]
fn help_print_and_version_are_answered_at_once() {
    let answer = |line: &str| match Invocation::parse(&line.split(' ').collect::<Vec<_>>()) {
        Ok(Invocation::Answer(text)) => text,
        other => panic!("{line}: {other:?}"),
    };
    for (line, part) in [
        ("help", "counter_write"),
        ("-?", "-tokenrange"),
        ("--help", "--wait-compactions"),
        ("help write", "Usage: write"),
        ("help COUNTERADD", "Usage: counter_write"),
        ("help user", "ops(?)"),
        ("help -rate", "search(?)"),
        ("-rate -?", "Usage: -rate"),
        ("help -mode", "requestTimeout=? (default=12000)"),
        ("help -transport", "PKCS#12"),
        ("help -sendto", "daemon"),
        ("help -credentials-file", "cql.password"),
        ("help legacy", "--num-keys"),
        ("help distributions", "hotspot"),
        ("print dist=fixed(5)", "% of samples    Range       % of total"),
        ("version", "Version: "),
        ("--version", "Version: "),
    ] {
        let text = answer(line);
        assert!(text.contains(part), "{line}: {text}");
    }
    for group in [
        "-pop",
        "-insert",
        "-col",
        "-errors",
        "-schema",
        "-node",
        "-log",
        "-port",
        "-graph",
        "-tokenrange",
        "-reporting",
        "-jmx",
    ] {
        assert!(answer(&format!("help {group}")).starts_with(&format!("Usage: {group} ")), "{group}");
    }
    let error = Invocation::parse(&["help", "-rat"]).expect_err("no topic").to_string();
    assert!(
        error.starts_with("Invalid command or option provided to command help") && error.contains("-rate"),
        "{error}"
    );
}
