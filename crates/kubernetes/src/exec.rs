//! Commands in pods, with their input and output.

use std::{
    io::{self, Read, Write},
    time::Duration,
};

use k8s_openapi::{api::core::v1, apimachinery::pkg::apis::meta::v1::Status};
use kube::{Api, api::AttachParams};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    sync::{mpsc, oneshot, watch},
    time::timeout,
};

use crate::{Kubernetes, KubernetesError};

/// What may wait between this program and a command, in bytes: some seconds of what they say.
const ROOM: usize = 1 << 20;
/// Most of a piece that is passed on, bytes, and how many pieces may wait.
const PIECE: usize = 1 << 16;
const PIECES: usize = ROOM / PIECE;
/// What has come when a connection ends is passed on within this.
const LAST_WITHIN: Duration = Duration::from_secs(1);

/// A command that runs in a container.
pub struct Executed {
    /// What it says.
    pub from: Box<dyn Read + Send>,
    /// What it hears; it hears the end when this is dropped.
    pub to: Box<dyn Write + Send>,
    /// Ends the connection. The command hears that its input is over.
    pub ends: Box<dyn FnOnce() + Send>,
}

impl Kubernetes {
    /// Starts a command in a container of a pod. What it writes to its standard error goes to that of this process.
    ///
    /// # Errors
    /// The API server refuses, or the container does not run.
    pub fn exec(
        &self,
        namespace: &str,
        pod: &str,
        container: &str,
        command: &[&str],
    ) -> Result<Executed, KubernetesError> {
        let api: Api<v1::Pod> = Api::namespaced(self.client.clone(), namespace);
        let parameters = AttachParams::default()
            .container(container)
            .stdin(true)
            .stdout(true)
            .stderr(true)
            .max_stdin_buf_size(ROOM)
            .max_stdout_buf_size(ROOM);
        let doing = format!("start {} in {namespace}/{pod}", command.join(" "));
        let mut attached = self.wait(doing.clone(), api.exec(pod, command.to_vec(), &parameters))?;
        let lacking = |what| KubernetesError::Lacking(format!("cannot {doing}: the API server gives no {what} of it"));
        let input = attached.stdin().ok_or_else(|| lacking("input"))?;
        let output = attached.stdout().ok_or_else(|| lacking("output"))?;
        let (errors, status) = (attached.stderr(), attached.take_status());
        let (end, ended) = oneshot::channel::<()>();
        // The library's streams do not end when a connection breaks: that it is over is told apart from them.
        let (over, is_over) = watch::channel(Over::No);
        self.handle().spawn(async move {
            let status = async {
                match status {
                    Some(status) => status.await,
                    None => std::future::pending().await,
                }
            };
            let how = tokio::select! {
                _ = ended => Over::Yes(None),
                status = status => Over::Yes(status.and_then(failure)),
            };
            let _ = over.send(how);
            // What is on its way may still come, and go.
            tokio::time::sleep(2 * LAST_WITHIN).await;
            drop(attached);
        });
        if let Some(mut errors) = errors {
            self.handle().spawn(async move { tokio::io::copy(&mut errors, &mut tokio::io::stderr()).await });
        }
        let ((said, saying), (hearing, heard)) = (mpsc::channel(PIECES), mpsc::channel(PIECES));
        self.handle().spawn(pass_out(output, said, is_over.clone()));
        self.handle().spawn(pass_in(heard, input, is_over));
        Ok(Executed {
            from: Box::new(Saying { pieces: saying, left: Vec::new() }),
            to: Box::new(Hearing(hearing)),
            ends: Box::new(move || {
                // Who waits for it may be gone.
                let _ = end.send(());
            }),
        })
    }
}

/// Whether a connection is over.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Over {
    No,
    /// With what the API server says of a command that has failed.
    Yes(Option<String>),
}

impl Over {
    fn is_so(&self) -> bool {
        *self != Over::No
    }
}

/// Why a command has failed; none if it has not.
fn failure(status: Status) -> Option<String> {
    let is_failure = status.status.as_deref() == Some("Failure");
    is_failure.then(|| status.message.unwrap_or_else(|| "it has failed".to_owned()))
}

/// Passes on what the command says, and why it has failed.
async fn pass_out(
    mut output: impl AsyncRead + Unpin,
    said: mpsc::Sender<io::Result<Vec<u8>>>,
    mut is_over: watch::Receiver<Over>,
) {
    let mut piece = vec![0; PIECE];
    loop {
        let read = if is_over.borrow().is_so() {
            // There may be more, and if there is not, nobody says so.
            timeout(LAST_WITHIN, output.read(&mut piece)).await.unwrap_or(Ok(0))
        } else {
            tokio::select! {
                read = output.read(&mut piece) => read,
                _ = is_over.wait_for(Over::is_so) => continue,
            }
        };
        match read {
            Ok(length @ 1..) if said.send(Ok(piece[..length].to_vec())).await.is_ok() => {}
            _ => break,
        }
    }
    // A stream may end before it is said why.
    let _ = timeout(LAST_WITHIN, is_over.wait_for(Over::is_so)).await;
    let why = match &*is_over.borrow() {
        Over::Yes(Some(why)) => why.clone(),
        _ => return,
    };
    // Who does not listen any more need not know.
    let _ = said.send(Err(io::Error::other(why))).await;
}

/// Some time after a connection is over.
async fn late(mut is_over: watch::Receiver<Over>) {
    drop(is_over.wait_for(Over::is_so).await);
    tokio::time::sleep(LAST_WITHIN).await;
}

/// Passes on what the command is to hear, and that there is no more.
async fn pass_in(
    mut heard: mpsc::Receiver<Vec<u8>>,
    mut input: impl AsyncWrite + Unpin,
    mut is_over: watch::Receiver<Over>,
) {
    loop {
        let piece = if is_over.borrow().is_so() {
            // Whatever was said before the end.
            heard.try_recv().ok()
        } else {
            tokio::select! {
                piece = heard.recv() => piece,
                _ = is_over.wait_for(Over::is_so) => continue,
            }
        };
        let Some(piece) = piece else { break };
        // One that is gone does not hear it, and one that does not read is not waited for at the end.
        let written = tokio::select! {
            written = input.write_all(&piece) => written.is_ok(),
            () = late(is_over.clone()) => false,
        };
        if !written {
            return;
        }
    }
    let _ = input.shutdown().await;
}

/// What a command says, to be waited for.
struct Saying {
    pieces: mpsc::Receiver<io::Result<Vec<u8>>>,
    /// Of the last piece, what was not read yet.
    left: Vec<u8>,
}

impl Read for Saying {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.left.is_empty() {
            match self.pieces.blocking_recv() {
                Some(piece) => self.left = piece?,
                None => return Ok(0),
            }
        }
        let length = into.len().min(self.left.len());
        into[..length].copy_from_slice(&self.left[..length]);
        self.left.drain(..length);
        Ok(length)
    }
}

/// What a command hears.
struct Hearing(mpsc::Sender<Vec<u8>>);

impl Write for Hearing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = &bytes[..bytes.len().min(PIECE)];
        self.0.blocking_send(piece.to_vec()).map_err(|_| io::ErrorKind::BrokenPipe)?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is read of an output into which `written` was put, and that does not end when its connection does.
    fn read(written: &'static [u8], shut: bool) -> Vec<u8> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (output, mut writer) = tokio::io::simplex(ROOM);
        let (over, is_over) = watch::channel(Over::No);
        let (said, pieces) = mpsc::channel(PIECES);
        runtime.spawn(pass_out(output, said, is_over));
        runtime.spawn(async move {
            writer.write_all(written).await.unwrap();
            if shut {
                writer.shutdown().await.unwrap();
            }
            over.send(Over::Yes(None)).unwrap();
            // Neither is dropped while it is read.
            std::future::pending::<()>().await;
        });
        let mut all = Vec::new();
        Saying { pieces, left: Vec::new() }.read_to_end(&mut all).unwrap();
        all
    }

    #[test]
    fn all_that_a_command_has_said_is_read_whether_it_ends_or_its_connection_breaks() {
        static LONG: [u8; 3 * PIECE] = [7; 3 * PIECE];
        for shut in [true, false] {
            assert_eq!(read(b"hello", shut), b"hello");
            assert_eq!(read(&LONG, shut).len(), LONG.len());
            assert_eq!(read(b"", shut), b"");
        }
    }

    #[test]
    fn a_command_that_fails_is_told_with_its_reason() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (output, mut writer) = tokio::io::simplex(ROOM);
        let failed = Status {
            status: Some("Failure".to_owned()),
            message: Some("no such file".to_owned()),
            ..Status::default()
        };
        let done = Status { status: Some("Success".to_owned()), ..Status::default() };
        assert_eq!(failure(done), None);
        let (over, is_over) = watch::channel(Over::Yes(failure(failed)));
        let (said, pieces) = mpsc::channel(PIECES);
        runtime.block_on(async { writer.write_all(b"last words").await.unwrap() });
        runtime.spawn(pass_out(output, said, is_over));
        let (mut all, mut saying) = ([0; 10], Saying { pieces, left: Vec::new() });
        saying.read_exact(&mut all).unwrap();
        assert_eq!(&all, b"last words");
        assert_eq!(saying.read(&mut all).unwrap_err().to_string(), "no such file");
        drop((over, writer));
    }

    #[test]
    fn what_a_command_hears_ends_with_who_says_it() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (mut reader, input) = tokio::io::simplex(ROOM);
        let (hearing, heard) = mpsc::channel(PIECES);
        let (_over, is_over) = watch::channel(Over::No);
        runtime.spawn(pass_in(heard, input, is_over));
        let mut to = Hearing(hearing);
        to.write_all(&[1; PIECE + 1]).unwrap();
        drop(to);
        let mut all = Vec::new();
        runtime.block_on(reader.read_to_end(&mut all)).unwrap();
        assert_eq!(all.len(), PIECE + 1);

        // Who speaks to nobody is told so.
        let (hearing, heard) = mpsc::channel(PIECES);
        drop(heard);
        assert_eq!(Hearing(hearing).write(&[1]).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
