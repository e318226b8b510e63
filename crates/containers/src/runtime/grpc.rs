//! Single calls of gRPC (its specification: PROTOCOL-HTTP2) over a Unix socket, each on a connection of its own.

use std::{
    io,
    path::Path,
    time::{Duration, Instant},
};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use h2::client;
use http::{HeaderMap, Request};
use prost::Message;
use tokio::net::UnixStream;

use crate::error::{ContainersError, socket_remedy};

/// How long a runtime may take to say how things stand.
const PATIENCE: Duration = Duration::from_secs(10);
/// More than this is no answer.
const LONGEST: usize = 16 << 20;
/// Before each message: whether it is compressed, and its length.
const PREFIX: usize = 5;

/// Why a call has no reply.
enum Failure {
    Io(io::Error),
    /// The server's status, and its words.
    Refused(u32, String),
    Senseless(String),
}

impl From<h2::Error> for Failure {
    fn from(error: h2::Error) -> Self {
        Failure::Senseless(error.to_string())
    }
}

/// Calls `method` ("/runtime.v1.RuntimeService/Version").
///
/// # Errors
/// The runtime cannot be asked, refuses, or answers something else.
pub(super) fn call<M: Message + Default>(
    socket: &Path,
    method: &str,
    message: &impl Message,
) -> Result<M, ContainersError> {
    let reply = wait(unary(socket, method, framed(message)));
    let reply = reply.and_then(|reply| M::decode(reply).map_err(|error| Failure::Senseless(error.to_string())));
    reply.map_err(|failure| {
        let (socket, request) = (socket.to_owned(), method.to_owned());
        match failure {
            Failure::Io(source) => ContainersError::Socket { socket, remedy: socket_remedy(&source), source },
            Failure::Refused(status, said) => ContainersError::Refused { socket, request, status, said },
            Failure::Senseless(reason) => ContainersError::Senseless { socket, request, reason },
        }
    })
}

/// Waits for a call, for as long as it may take.
fn wait(call: impl Future<Output = Result<Bytes, Failure>>) -> Result<Bytes, Failure> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build().map_err(Failure::Io)?;
    let begun = Instant::now();
    let ended = runtime.block_on(async { tokio::time::timeout(PATIENCE, call).await });
    ended.unwrap_or_else(|_| {
        let reason = format!("no answer within {:.0} s", begun.elapsed().as_secs_f64());
        Err(Failure::Io(io::Error::new(io::ErrorKind::TimedOut, reason)))
    })
}

async fn unary(socket: &Path, method: &str, message: Bytes) -> Result<Bytes, Failure> {
    let stream = UnixStream::connect(socket).await.map_err(Failure::Io)?;
    let (client, connection) = client::handshake(stream).await?;
    // It ends with the runtime that it runs in.
    tokio::spawn(async move {
        let _ = connection.await;
    });
    let request = Request::post(format!("http://localhost{method}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(());
    let request = request.map_err(|error| Failure::Senseless(error.to_string()))?;
    let mut client = client.ready().await?;
    let (response, mut sending) = client.send_request(request, false)?;
    sending.send_data(message, true)?;
    let (head, mut body) = response.await?.into_parts();
    let mut reply = BytesMut::new();
    while let Some(part) = body.data().await {
        let part = part?;
        body.flow_control().release_capacity(part.len())?;
        reply.put_slice(&part);
        if reply.len() > LONGEST {
            return Err(Failure::Senseless("its answer has no end".to_owned()));
        }
    }
    // A server that has nothing but a status puts it where the headers are.
    let trailers = body.trailers().await?.unwrap_or_default();
    match status(&trailers).or_else(|| status(&head.headers)) {
        Some((0, _)) => unframed(reply.freeze()),
        Some((code, said)) => Err(Failure::Refused(code, said)),
        None => Err(Failure::Senseless(format!("HTTP status {} without one of gRPC", head.status.as_u16()))),
    }
}

/// `grpc-status` and `grpc-message`, whatever has them.
fn status(headers: &HeaderMap) -> Option<(u32, String)> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let code = text("grpc-status")?.parse().ok()?;
    Some((code, text("grpc-message").unwrap_or("it gives no reason").to_owned()))
}

fn framed(message: &impl Message) -> Bytes {
    let bytes = message.encode_to_vec();
    let mut framed = BytesMut::with_capacity(PREFIX + bytes.len());
    framed.put_u8(0);
    framed.put_u32(bytes.len() as u32);
    framed.put_slice(&bytes);
    framed.freeze()
}

/// The one message of a reply.
fn unframed(mut reply: Bytes) -> Result<Bytes, Failure> {
    let senseless = |reason: &str| Err(Failure::Senseless(reason.to_owned()));
    if reply.len() < PREFIX {
        return senseless("there is no message in its answer");
    }
    let (is_compressed, length) = (reply.get_u8() != 0, reply.get_u32() as usize);
    if is_compressed {
        return senseless("its answer is compressed, which nobody has asked for");
    }
    if reply.len() == length { Ok(reply) } else { senseless("its answer is cut off") }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use tokio::net::UnixListener;

    use super::*;
    use crate::runtime::cri::{VersionRequest, VersionResponse};

    #[test]
    fn a_message_is_taken_out_of_its_frame() {
        let request = VersionRequest { version: "v1".into() };
        let framed = framed(&request);
        assert_eq!(&framed[..], [0, 0, 0, 0, 4, 0x0a, 2, b'v', b'1']);
        assert!(unframed(framed.clone()).is_ok_and(|message| message[..] == [0x0a, 2, b'v', b'1']));
        for broken in [framed.slice(..3), framed.slice(..8), Bytes::from_static(&[1, 0, 0, 0, 0])] {
            assert!(unframed(broken).is_err());
        }
    }

    /// Answers one call with a message, if there is one, and a status.
    fn server(socket: &Path, message: Option<VersionResponse>, code: &'static str) -> thread::JoinHandle<String> {
        let listener = std::os::unix::net::UnixListener::bind(socket).unwrap();
        listener.set_nonblocking(true).unwrap();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
            runtime.block_on(async {
                let listener = UnixListener::from_std(listener).unwrap();
                let (stream, _) = listener.accept().await.unwrap();
                let mut connection = h2::server::handshake(stream).await.unwrap();
                let (request, mut respond) = connection.accept().await.unwrap().unwrap();
                let head = http::Response::builder().status(200);
                let path = request.uri().path().to_owned();
                match message {
                    Some(message) => {
                        let mut sending = respond.send_response(head.body(()).unwrap(), false).unwrap();
                        sending.send_data(framed(&message), false).unwrap();
                        let mut trailers = HeaderMap::new();
                        trailers.insert("grpc-status", code.parse().unwrap());
                        sending.send_trailers(trailers).unwrap();
                    }
                    None => {
                        let head = head.header("grpc-status", code).header("grpc-message", "unknown service");
                        respond.send_response(head.body(()).unwrap(), true).unwrap();
                    }
                }
                // Until the client has gone.
                while let Some(Ok(_)) = connection.accept().await {}
                path
            })
        })
    }

    #[test]
    fn a_runtime_is_called_over_its_socket() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("a.sock");
        let told = VersionResponse { name: "containerd".into(), version: "1.6.20".into() };
        let asked = server(&socket, Some(told.clone()), "0");
        let method = "/runtime.v1.RuntimeService/Version";
        let reply: VersionResponse = call(&socket, method, &VersionRequest::default()).unwrap();
        assert_eq!(reply, told);
        assert_eq!(asked.join().unwrap(), method);

        let socket = directory.path().join("b.sock");
        server(&socket, None, "12");
        let refused = call::<VersionResponse>(&socket, method, &VersionRequest::default()).unwrap_err();
        let ContainersError::Refused { status, said, .. } = &refused else { panic!("{refused}") };
        assert_eq!((*status, said.as_str()), (12, "unknown service"));
        let gone = call::<VersionResponse>(&directory.path().join("c.sock"), method, &VersionRequest::default());
        assert!(matches!(gone, Err(ContainersError::Socket { .. })));
    }
}
