//! `nodetool`, for what CQL cannot do: flush, compact, histograms.

use std::{
    io,
    net::IpAddr,
    path::PathBuf,
    process::{Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use thiserror::Error;

use crate::settings::{CommandKind, Extras, Settings};

/// How long to wait for the remaining output of a program that has ended.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Why nodetool failed.
#[derive(Debug, Error)]
pub enum NodetoolError {
    /// The program does not exist.
    #[error(
        "cannot run '{command}': {source}; CQL has no statement for this, so nodetool is needed: give the command that \
         reaches a node, such as --nodetool 'nodetool -h {{host}}' or --nodetool 'ssh {{host}} nodetool'"
    )]
    Start {
        /// The command.
        command: String,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// It has failed.
    #[error("'{command}' failed ({status}): {output}")]
    Failed {
        /// The command.
        command: String,
        /// Its exit status.
        status: String,
        /// The end of its output.
        output: String,
    },
    /// The template is empty.
    #[error("--nodetool is empty; write the command that reaches a node, such as 'nodetool -h {{host}}'")]
    Empty,
    /// The user interrupted.
    #[error("interrupted while '{command}' ran")]
    Interrupted {
        /// The command.
        command: String,
    },
}

/// How nodetool is run for a node. The template is split at spaces; `{host}` in it stands for the node's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nodetool {
    words: Vec<String>,
}

impl Default for Nodetool {
    fn default() -> Self {
        Nodetool { words: ["nodetool", "-h", "{host}"].map(str::to_owned).to_vec() }
    }
}

impl Nodetool {
    /// From a template: `nodetool -h {host}`.
    ///
    /// # Errors
    /// It is empty.
    pub fn new(template: &str) -> Result<Self, NodetoolError> {
        let words: Vec<String> = template.split_whitespace().map(str::to_owned).collect();
        if words.is_empty() { Err(NodetoolError::Empty) } else { Ok(Nodetool { words }) }
    }

    /// The nodetool that a command uses: by its template, or the default one where nothing else can do the work.
    ///
    /// # Errors
    /// The template is empty.
    pub fn asked(extras: &Extras) -> Result<Option<Self>, NodetoolError> {
        match &extras.nodetool {
            Some(template) => Nodetool::new(template).map(Some),
            None => Ok((extras.flush || extras.compact).then(Nodetool::default)),
        }
    }

    /// The same, including the default one for `verify-sizes`, which flushes and reads histograms.
    ///
    /// # Errors
    /// The template is empty.
    pub fn needed(settings: &Settings) -> Result<Option<Self>, NodetoolError> {
        let asked = Nodetool::asked(&settings.extras)?;
        Ok(asked.or_else(|| (settings.command.kind == CommandKind::VerifySizes).then(Nodetool::default)))
    }

    /// Its arguments, with a placeholder for the node: `nodetool -h {host}`.
    pub fn template(&self) -> String {
        self.words.join(" ")
    }

    /// Checks that the program exists.
    ///
    /// # Errors
    /// It does not: neither at its path nor, for a bare name, in the directories of `PATH`.
    pub fn check(&self) -> Result<(), NodetoolError> {
        let name = self.words.first().ok_or(NodetoolError::Empty)?;
        let there = |path: PathBuf| path.is_file();
        let found = if name.contains('/') {
            there(name.into())
        } else {
            let directories = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&directories).any(|directory| there(directory.join(name)))
        };
        let missing =
            || NodetoolError::Start { command: self.template(), source: io::Error::from(io::ErrorKind::NotFound) };
        if found { Ok(()) } else { Err(missing()) }
    }

    fn words(&self, host: IpAddr, arguments: &[&str]) -> Vec<String> {
        let host = host.to_string();
        let template = self.words.iter().map(|word| word.replace("{host}", &host));
        template.chain(arguments.iter().map(|&argument| argument.to_owned())).collect()
    }

    /// Runs it to its end, and returns its output.
    ///
    /// # Errors
    /// It cannot be run, it fails, or the user interrupts (it is then killed).
    pub fn run(
        &self,
        host: IpAddr,
        arguments: &[&str],
        interrupted: &(dyn Fn() -> bool + Sync),
    ) -> Result<String, NodetoolError> {
        let words = self.words(host, arguments);
        let command = words.join(" ");
        let (program, rest) = words.split_first().ok_or(NodetoolError::Empty)?;
        let start = |source| NodetoolError::Start { command: command.clone(), source };
        let mut child = Command::new(program)
            .args(rest)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(start)?;
        // Both pipes are read by threads of their own, so that neither can fill up.
        let (out, err) = (child.stdout.take().map(Output::of), child.stderr.take().map(Output::of));
        let status = loop {
            match child.try_wait().map_err(start)? {
                Some(status) => break status,
                None if interrupted() => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(NodetoolError::Interrupted { command });
                }
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        };
        let deadline = Instant::now() + LAST_WORDS;
        let [out, err] = [out, err].map(|output| output.map(|output| output.until(deadline)).unwrap_or_default());
        if status.success() {
            return Ok(out);
        }
        let mut output = format!("{err}{out}").trim().to_owned();
        if let Some((cut, _)) = output.char_indices().rev().nth(400) {
            output = format!("…{}", &output[cut..]);
        }
        Err(NodetoolError::Failed { command, status: status.to_string(), output })
    }
}

/// The output of a program, read while it runs.
struct Output {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Output {
    fn of(mut from: impl io::Read + Send + 'static) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&bytes);
        let reader = std::thread::spawn(move || {
            let mut part = [0; 4096];
            // What was read before an error is still useful.
            while let Ok(read @ 1..) = from.read(&mut part) {
                into.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&part[..read]);
            }
        });
        Output { bytes, reader }
    }

    /// All of it, or what there is at the deadline: a background process may keep the pipe open, as ssh with
    /// ControlPersist does.
    fn until(self, deadline: Instant) -> String {
        while !self.reader.is_finished() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        String::from_utf8_lossy(&self.bytes.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 1, 2, 3));

    #[test]
    fn the_template_names_the_host_where_it_wants() {
        let nodetool = Nodetool::new("echo  {host} nodetool").unwrap();
        assert_eq!(nodetool.run(HOST, &["flush", "ks"], &|| false).unwrap(), "10.1.2.3 nodetool flush ks\n");
        assert_eq!(Nodetool::default().words(HOST, &["info"]), ["nodetool", "-h", "10.1.2.3", "info"]);
        assert!(matches!(Nodetool::new("  "), Err(NodetoolError::Empty)));
    }

    #[test]
    fn a_failure_is_told_with_its_words_and_a_missing_program_with_its_remedy() {
        let failed = Nodetool::new("ls /nonexistent-{host}").unwrap().run(HOST, &[], &|| false).unwrap_err();
        assert!(failed.to_string().contains("/nonexistent-10.1.2.3"), "{failed}");
        let missing = Nodetool::new("/nonexistent/nodetool").unwrap().run(HOST, &[], &|| false).unwrap_err();
        assert!(missing.to_string().contains("--nodetool"), "{missing}");
    }

    #[test]
    fn what_goes_on_in_the_background_with_the_pipe_open_is_not_waited_for() {
        let directory = std::env::temp_dir().join(format!("brownout-nodetool-{}", std::process::id()));
        std::fs::write(&directory, "echo said; sleep 20 &").unwrap();
        let begun = Instant::now();
        let nodetool = Nodetool::new(&format!("sh {}", directory.display())).unwrap();
        assert_eq!(nodetool.run(HOST, &[], &|| false).unwrap(), "said\n");
        assert!(begun.elapsed() < Duration::from_secs(15));
        std::fs::remove_file(directory).unwrap();
    }

    #[test]
    fn a_program_is_looked_for_before_it_is_needed() {
        let asked = |nodetool: Option<&str>, flush| {
            let nodetool = nodetool.map(str::to_owned);
            Nodetool::asked(&Extras { nodetool, flush, ..Extras::default() }).unwrap()
        };
        assert!(asked(None, false).is_none());
        assert_eq!(asked(None, true), Some(Nodetool::default()));
        assert!(asked(Some("sh -c"), false).unwrap().check().is_ok());
        for missing in ["/nonexistent/nodetool", "no-such-nodetool {host}"] {
            let error = asked(Some(missing), false).unwrap().check().unwrap_err();
            assert!(error.to_string().contains("--nodetool"), "{error}");
        }
    }

    #[test]
    fn sizes_cannot_be_verified_without_one() {
        let needed = |words: &str| Nodetool::needed(&Settings::parse(&[words]).unwrap()).unwrap();
        assert_eq!(needed("verify-sizes profile=a"), Some(Nodetool::default()));
        assert_eq!(needed("write n=1"), None);
        let given = Settings::parse(&["verify-sizes profile=a", "--nodetool", "ssh {host} nodetool"]).unwrap();
        assert_eq!(Nodetool::needed(&given).unwrap().unwrap().template(), "ssh {host} nodetool");
    }

    #[test]
    fn an_interrupt_ends_it() {
        let ended = Nodetool::new("sleep 1000").unwrap().run(HOST, &[], &|| true).unwrap_err();
        assert!(matches!(ended, NodetoolError::Interrupted { .. }), "{ended}");
    }
}
