//! The client's end of a lab's socket.

use std::{
    io,
    os::{fd::AsFd, unix::net::UnixStream},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

use super::{
    Ask, Failure, LabDirectory, LabRegistry,
    protocol::{Reply, Request, VERSION},
    wire,
};

/// A lab that has been told to end is gone by then, or is ended.
const END_WITHIN: Duration = Duration::from_secs(10);
/// One that is attached to containers, and has said that it takes back what is in force, has done so by then.
const LEAVES_WITHIN: Duration = Duration::from_secs(20);
/// What the kernel needs to end all that is in a lab.
const GONE_WITHIN: Duration = Duration::from_secs(20);

/// One request to a lab, and its replies.
pub struct Client {
    stream: UnixStream,
    name: String,
}

impl Client {
    /// Asks. With `streams`, this process's stdin, stdout and stderr go along, for a program in the lab.
    pub fn ask(lab: &LabDirectory, ask: Ask, who: &str, streams: bool) -> Result<Client, Failure> {
        let failed = |error: io::Error| Failure::failed(format!("the lab '{}' does not answer: {error}", lab.name));
        let stream = UnixStream::connect(lab.socket()).map_err(failed)?;
        let request = Request { version: VERSION, who: who.to_owned(), ask };
        let sent = match streams {
            true => {
                wire::send_with(&stream, &request, [io::stdin().as_fd(), io::stdout().as_fd(), io::stderr().as_fd()])
            }
            false => wire::send(&stream, &request),
        };
        match sent {
            // A lab that does not even listen has said why.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            sent => sent.map_err(failed)?,
        }
        Ok(Client { stream, name: lab.name.clone() })
    }

    /// Gives up, at the next reply, a lab that says nothing for so long.
    pub fn patience(&self, time: Duration) {
        // A lab that is not waited for in vain would only be more comfortable.
        let _ = self.stream.set_read_timeout(Some(time));
    }

    /// The stream to the lab: what is written to it while a program runs there are signals for the program, a byte each.
    pub fn stream(&self) -> &UnixStream {
        &self.stream
    }

    /// The next reply, until [`Reply::Done`]; a [`Reply::Failed`] is an error, and so is a lab that cannot be asked yet.
    pub fn reply(&self) -> Result<Reply, Failure> {
        match self.any_reply()? {
            Reply::Starting => {
                Err(Failure::failed(format!("the lab '{}' is still starting; try again later", self.name)))
            }
            reply => Ok(reply),
        }
    }

    /// The same, of a lab that is starting, too.
    pub fn any_reply(&self) -> Result<Reply, Failure> {
        loop {
            return match wire::receive::<Reply>(&self.stream) {
                Ok(Some((Reply::Failed(failure), _))) => Err(failure),
                Ok(Some((reply, _))) => Ok(reply),
                Ok(None) => Err(Failure::failed(format!("the lab '{}' has ended", self.name))),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    Err(Failure::failed(format!("the lab '{}' does not answer", self.name)))
                }
                Err(error) => Err(Failure::failed(format!("the lab '{}' has ended: {error}", self.name))),
            };
        }
    }
}

/// Lets the containers go that a lab is attached to: takes back what is in force, and returns when nothing is left. Says what could
/// not be taken back.
///
/// # Errors
/// When the lab has nodes of its own, or does not answer; nothing has happened then.
pub fn detach(registry: &LabRegistry, lab: &LabDirectory, who: &str) -> Result<Vec<String>, Failure> {
    let told = ask_to_end(lab, Ask::Detach, who).map_err(|failure| match failure.code {
        3 => Failure::failed(format!("{failure}; brownout destroy --name {} ends it all the same", lab.name)),
        _ => failure,
    })?;
    wait_until_gone(registry, lab)?;
    Ok(told)
}

/// Asks a lab to end; what it says of that, after its first word.
fn ask_to_end(lab: &LabDirectory, ask: Ask, who: &str) -> Result<Vec<String>, Failure> {
    let client = Client::ask(lab, ask, who, false)?;
    client.patience(END_WITHIN);
    let mut lines = Vec::new();
    while let Reply::Line(line) = client.reply()? {
        client.patience(LEAVES_WITHIN);
        lines.push(line);
    }
    Ok(lines.split_off(lines.len().min(1)))
}

/// Ends a lab, and returns when nothing is left of it: by asking, else by ending its keeper. Says what could not be taken back of
/// containers that it was attached to.
pub fn end(registry: &LabRegistry, lab: &LabDirectory, who: &str) -> Result<Vec<String>, Failure> {
    let asked = ask_to_end(lab, Ask::Destroy, who);
    if asked.is_err() && lab.lives() {
        // One that hangs, or is starting still. Its number is the keeper's: the lock is held.
        if let Some(keeper) = lab.keeper() {
            // One that has ended meanwhile needs no signal.
            let _ = Pid::from_raw(keeper).map(|keeper| kill_process(keeper, Signal::KILL));
        }
    }
    wait_until_gone(registry, lab)?;
    Ok(asked.unwrap_or_default())
}

/// Until nobody holds its lock, and its directory is removed.
fn wait_until_gone(registry: &LabRegistry, lab: &LabDirectory) -> Result<(), Failure> {
    let deadline = Instant::now() + GONE_WITHIN;
    while lab.lives() || lab.socket().exists() {
        if Instant::now() > deadline {
            return Err(Failure::failed(format!(
                "the lab '{}' does not end; its keeper is process {}",
                lab.name,
                lab.keeper().map_or_else(|| "unknown".to_owned(), |pid| pid.to_string())
            )));
        }
        thread::sleep(Duration::from_millis(20));
        // What a killed keeper has left.
        if !lab.lives() {
            registry.labs()?;
        }
    }
    Ok(())
}
