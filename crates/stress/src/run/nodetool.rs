//! `nodetool`, for what CQL cannot ask of a node: flush, compact, histograms.

use std::{
    net::IpAddr,
    process::{Command, Stdio},
    time::Duration,
};

use thiserror::Error;

/// Why a node could not be told.
#[derive(Debug, Error)]
pub enum NodetoolError {
    /// There is no such program.
    #[error(
        "cannot run '{command}': {source}; CQL has no statement for this, so nodetool is needed: give the command that \
         reaches a node, such as --nodetool 'nodetool -h {{host}}' or --nodetool 'ssh {{host}} nodetool'"
    )]
    Start {
        /// The command.
        command: String,
        /// The kernel's answer.
        #[source]
        source: std::io::Error,
    },
    /// It has failed.
    #[error("'{command}' failed ({status}): {output}")]
    Failed {
        /// The command.
        command: String,
        /// Its exit status.
        status: String,
        /// The last of what it printed.
        output: String,
    },
    /// The template has no words.
    #[error("--nodetool is empty; write the command that reaches a node, such as 'nodetool -h {{host}}'")]
    Empty,
    /// The user asked for an end.
    #[error("interrupted while '{command}' ran")]
    Interrupted {
        /// The command.
        command: String,
    },
}

/// How nodetool is run for a node. The template is cut at spaces; `{host}` in it is the node's address.
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

    fn words(&self, host: IpAddr, arguments: &[&str]) -> Vec<String> {
        let host = host.to_string();
        let template = self.words.iter().map(|word| word.replace("{host}", &host));
        template.chain(arguments.iter().map(|&argument| argument.to_owned())).collect()
    }

    /// Runs it to its end, and returns what it printed.
    ///
    /// # Errors
    /// It cannot be run, it fails, or the user asks for an end (it is killed then).
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
        let readers = [
            child.stdout.take().map(|out| std::thread::spawn(move || read(out))),
            child.stderr.take().map(|err| std::thread::spawn(move || read(err))),
        ];
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
        let [out, err] = readers.map(|reader| reader.and_then(|reader| reader.join().ok()).unwrap_or_default());
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

fn read(mut from: impl std::io::Read) -> String {
    let mut bytes = Vec::new();
    // What was read before an error is still worth showing.
    let _ = from.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
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
    fn an_interrupt_ends_it() {
        let ended = Nodetool::new("sleep 1000").unwrap().run(HOST, &[], &|| true).unwrap_err();
        assert!(matches!(ended, NodetoolError::Interrupted { .. }), "{ended}");
    }
}
