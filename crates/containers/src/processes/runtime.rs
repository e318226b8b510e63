//! What only a container's runtime can do: start it again, say which its main process is, and know that its end was asked for.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::Value;

use crate::{Container, Runtime, runtime::http};

/// For the runtime to do it.
const PATIENCE: Duration = Duration::from_secs(30);

/// Who runs a container.
pub(super) enum Engine {
    /// A runtime that was found with it.
    Runs {
        /// As it was found; it knows how it is found again.
        container: Box<Container>,
        /// By which it is started and ended; none of containerd's and of processes without a runtime.
        api: Option<Api>,
    },
    /// Nobody that can be asked.
    #[cfg(test)]
    Nobody,
}

/// The API of Docker and podman, for one container.
pub(super) struct Api {
    socket: PathBuf,
    id: String,
    /// Whether it starts the container again when it ends, unless it was asked for the end.
    restarts: bool,
}

impl Engine {
    pub(super) fn of(container: &Container) -> Engine {
        let api = match container.runtime {
            Runtime::Docker | Runtime::Podman => {
                container.socket.as_deref().map(|socket| Api::of(socket, &container.id))
            }
            Runtime::Containerd | Runtime::None => None,
        };
        Engine::Runs { container: Box::new(container.clone()), api }
    }

    /// The main process that the container has now, with the container's id; none while it is down.
    pub(super) fn main(&self) -> Result<Option<(u32, String)>, String> {
        match self {
            Engine::Runs { container, .. } => {
                let now = container.again().map_err(|error| error.to_string())?;
                Ok(now.pid.map(|pid| (pid, now.id)))
            }
            #[cfg(test)]
            Engine::Nobody => Ok(None),
        }
    }

    /// By which signal it is asked to end. Docker starts one with a policy again when it ends by another one, but SIGKILL.
    pub(super) fn stop_signal(&self) -> i32 {
        match self {
            Engine::Runs { container, .. } => container.stop_signal.unwrap_or(libc::SIGTERM),
            #[cfg(test)]
            Engine::Nobody => libc::SIGTERM,
        }
    }

    /// Starts it again.
    pub(super) fn start(&self) -> Result<(), String> {
        match self {
            Engine::Runs { api: Some(api), .. } => api.start(),
            Engine::Runs { container, .. } if matches!(container.runtime, Runtime::Containerd) => Err(
                "containerd does not start a container twice: whoever made it makes another (the kubelet does by itself, \
                 within seconds); wait for that, or start it where it was made"
                    .to_owned(),
            ),
            Engine::Runs { container, .. } if !matches!(container.runtime, Runtime::None) => {
                Err("its runtime did not answer when it was found; start the runtime, and begin anew".to_owned())
            }
            _ => Err("it runs in no container that a runtime could start: start it where it was started".to_owned()),
        }
    }

    /// Sends a signal that is to end it, where the runtime has to know that the end was asked for: else it would start the
    /// container again at once. None where a signal says it all.
    pub(super) fn kill(&self, signal: i32) -> Option<Result<(), String>> {
        match self {
            Engine::Runs { api: Some(api), .. } if api.restarts => Some(api.kill(signal)),
            _ => None,
        }
    }

    /// Whether its end goes through the runtime.
    pub(super) fn ends(&self) -> bool {
        matches!(self, Engine::Runs { api: Some(api), .. } if api.restarts)
    }
}

impl Api {
    fn of(socket: &Path, id: &str) -> Api {
        let asked = http::get(socket, &format!("/containers/{id}/json"));
        // One that does not say is asked for the end: that is right in both cases.
        let restarts = asked.map_or(true, |told| has_policy(&told));
        Api { socket: socket.to_owned(), id: id.to_owned(), restarts }
    }

    fn start(&self) -> Result<(), String> {
        self.post("start")
    }

    fn kill(&self, signal: i32) -> Result<(), String> {
        self.post(&format!("kill?signal={signal}"))
    }

    fn post(&self, what: &str) -> Result<(), String> {
        let done = http::post(&self.socket, &format!("/containers/{}/{what}", self.id), PATIENCE);
        done.map(drop).map_err(|error| error.to_string())
    }
}

/// Whether what the runtime tells of a container has it start again by itself.
fn has_policy(told: &Value) -> bool {
    let policy = told.pointer("/HostConfig/RestartPolicy/Name").and_then(Value::as_str);
    !matches!(policy, None | Some("" | "no"))
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        os::unix::net::UnixListener,
        sync::mpsc,
        thread,
    };

    use serde_json::json;

    use super::*;

    /// Docker that gives these answers, one after the other, and tells what it was asked.
    fn docker(answers: Vec<(u16, String)>) -> (tempfile::TempDir, PathBuf, mpsc::Receiver<String>) {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("docker.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let (tell, asked) = mpsc::channel();
        thread::spawn(move || {
            for (status, body) in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let mut question = Vec::new();
                while !question.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    stream.read_exact(&mut byte).unwrap();
                    question.extend(byte);
                }
                let question = String::from_utf8(question).unwrap();
                tell.send(question.lines().next().unwrap().to_owned()).unwrap();
                let length = body.len();
                write!(stream, "HTTP/1.1 {status} OK\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
            }
        });
        (directory, socket, asked)
    }

    #[test]
    fn docker_is_asked_to_start_and_to_end_what_it_would_start_again() {
        let inspected = json!({"HostConfig": {"RestartPolicy": {"Name": "unless-stopped"}}}).to_string();
        let refusal = json!({"message": "no such container: abc"}).to_string();
        let answers = vec![(200, inspected), (204, String::new()), (304, String::new()), (404, refusal)];
        let (_directory, socket, asked) = docker(answers);
        let api = Api::of(&socket, "abc");
        assert!(api.restarts);
        assert_eq!(api.kill(9), Ok(()));
        assert_eq!(api.start(), Ok(()), "304: it was started already");
        let error = api.start().unwrap_err();
        assert!(error.contains("no such container: abc"), "{error}");
        let asked: Vec<String> = asked.iter().collect();
        assert_eq!(
            asked,
            [
                "GET /containers/abc/json HTTP/1.1",
                "POST /containers/abc/kill?signal=9 HTTP/1.1",
                "POST /containers/abc/start HTTP/1.1",
                "POST /containers/abc/start HTTP/1.1",
            ]
        );
    }

    #[test]
    fn a_container_is_started_again_by_itself_only_where_its_policy_says_so() {
        let policy = |name: &str| json!({"HostConfig": {"RestartPolicy": {"Name": name, "MaximumRetryCount": 0}}});
        for (name, restarts) in [("", false), ("no", false), ("always", true), ("on-failure", true)] {
            assert_eq!(has_policy(&policy(name)), restarts, "{name}");
        }
        assert!(!has_policy(&json!({})));
        let gone = tempfile::tempdir().unwrap();
        assert!(Api::of(&gone.path().join("docker.sock"), "abc").restarts, "who does not say is asked");
    }
}
