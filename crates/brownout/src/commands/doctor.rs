use std::path::PathBuf;

use brownout_lab::machine::{self, Check, CheckState};
use brownout_network::Way;
use serde::Serialize;

use crate::output::{self, CANNOT};

#[derive(clap::Args)]
pub struct Arguments {
    /// Where runs would be kept.
    #[arg(long, value_name = "DIRECTORY", default_value = "runs")]
    out: PathBuf,
    /// Print the checks as one JSON object (docs/json.md).
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Examined {
    format: u32,
    state: CheckState,
    checks: Vec<Check>,
}

pub fn doctor(arguments: &Arguments) -> u8 {
    let mut checks = machine::examine(&arguments.out);
    let runtimes = brownout_containers::answering().into_iter();
    let runtimes = runtimes.map(|one| (one.socket, one.version.map_err(|error| error.to_string())));
    let ways = brownout_network::attach_trials().into_iter();
    checks.extend(attaching(ways.map(|(way, tried)| (way, tried.map_err(|error| error.to_string()))).collect()));
    checks.push(container_runtimes(runtimes.collect()));
    let state = checks.iter().map(|check| check.state).max().unwrap_or(CheckState::Good);
    let printed = if arguments.json {
        output::print_json(&Examined { format: 1, state, checks })
    } else {
        output::print(&text(state, &checks))
    };
    output::code(printed, if state == CheckState::Lacking { CANNOT } else { 0 })
}

/// By which ways packets of running containers can be diverted, the best first. Labs of our own need none of them.
fn attaching(tried: Vec<(Way, Result<(), String>)>) -> Vec<Check> {
    let first = tried.iter().find(|(_, tried)| tried.is_ok()).map(|(way, _)| *way);
    let check = |(number, (way, tried)): (usize, (Way, Result<(), String>))| {
        let (name, by) = (format!("attaching {number}"), way.name());
        let (state, found) = match (tried, first) {
            (Ok(()), Some(first)) if first == way => {
                (CheckState::Good, format!("`{by}`: packets of running containers can be {way}"))
            }
            (Ok(()), _) => (CheckState::Good, format!("`{by}`: they can be {way}, too")),
            (Err(error), Some(first)) if first < way => {
                (CheckState::Good, format!("`{by}`: they cannot be {way}, which nobody needs: {error}"))
            }
            (Err(error), _) => (CheckState::Limited, format!("`{by}`: they cannot be {way}: {error}")),
        };
        let remedy = (state != CheckState::Good).then(|| {
            "attaching needs root (CAP_SYS_ADMIN, CAP_NET_ADMIN, CAP_NET_RAW) and /dev/net/tun, and by the first way, which alone \
             can do all, a kernel from 5.17 on with nf_tables; labs of their own need none of that"
                .to_owned()
        });
        Check { name, state, found, remedy }
    };
    (1..).zip(tried).map(check).collect()
}

/// Who can say which containers run: each socket that is there, with who answers or why nobody does.
fn container_runtimes(asked: Vec<(PathBuf, Result<String, String>)>) -> Check {
    let is_silent = !asked.is_empty() && asked.iter().all(|(_, answer)| answer.is_err());
    let told = asked.into_iter().map(|(socket, answer)| match answer {
        Ok(name) => format!("{name} at {}", socket.display()),
        Err(error) => format!("{} does not answer: {error}", socket.display()),
    });
    let told: Vec<String> = told.collect();
    Check {
        name: "runtimes".to_owned(),
        state: if is_silent { CheckState::Limited } else { CheckState::Good },
        found: match told.is_empty() {
            true => "no container runtime has a socket here; only `ground: containers` by name needs one".to_owned(),
            false => told.join("; "),
        },
        remedy: is_silent
            .then(|| "start it, or run as root or as a user who may open its socket (group docker)".to_owned()),
    }
}

fn text(state: CheckState, checks: &[Check]) -> String {
    let mut text = String::new();
    for check in checks {
        let mark = match check.state {
            CheckState::Good => "good   ",
            CheckState::Limited => "LIMITED",
            CheckState::Lacking => "LACKING",
        };
        text.push_str(&format!("{mark}  {:<13} {}\n", check.name, check.found));
        if let Some(remedy) = &check.remedy {
            text.push_str(&format!("         {:<13} remedy: {remedy}\n", ""));
        }
    }
    text.push_str(match state {
        CheckState::Good => "This machine can run labs.\n",
        CheckState::Limited => "This machine can run labs, within the limits named above.\n",
        CheckState::Lacking => "This machine cannot run a lab until the missing items above are fixed.\n",
    });
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_that_does_not_work_is_a_limit_where_no_better_one_does() {
        let states = |works: [bool; 3]| {
            let tried = Way::ALL.into_iter().zip(works);
            let tried = tried.map(|(way, works)| (way, if works { Ok(()) } else { Err("no such thing".to_owned()) }));
            let checks = attaching(tried.collect());
            assert!(checks.iter().all(|check| check.remedy.is_some() == (check.state == CheckState::Limited)));
            checks.into_iter().map(|check| check.state).collect::<Vec<_>>()
        };
        let (good, limited) = (CheckState::Good, CheckState::Limited);
        assert_eq!(states([true; 3]), [good; 3]);
        assert_eq!(states([true, false, false]), [good; 3]);
        assert_eq!(states([false, true, false]), [limited, good, good]);
        assert_eq!(states([false; 3]), [limited; 3]);
    }

    #[test]
    fn a_runtime_that_does_not_answer_is_a_limit_and_a_machine_without_one_is_none() {
        let socket = PathBuf::from("/run/docker.sock");
        let refused = || (socket.clone(), Err("permission denied".to_owned()));
        let silent = container_runtimes(vec![refused()]);
        assert!(silent.state == CheckState::Limited && silent.remedy.is_some(), "{silent:?}");
        let one = container_runtimes(vec![refused(), (socket.clone(), Ok("podman 4.3.1".to_owned()))]);
        assert!(one.state == CheckState::Good && one.found.contains("podman 4.3.1 at /run/docker.sock"), "{one:?}");
        let none = container_runtimes(Vec::new());
        assert!(none.state == CheckState::Good && none.remedy.is_none(), "{none:?}");
    }
}
