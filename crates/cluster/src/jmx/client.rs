//! Calls to a JMX server over RMI.
//!
//! Format: "Java Remote Method Invocation Specification", chapter 10 (RMI Wire Protocol); methods are known by the first
//! eight bytes of the SHA-1 of their name and descriptor (8.3), those of the registry by its own hash and a number.
//! JMX's own part is JSR 160: a server object in the registry under `jmxrmi`, which gives a connection object for each
//! client.
//!
//! We take no lease of the connection object, as a client of Java would: a server keeps what it has just given for five
//! minutes (`sun.rmi.dgc.ackTimeout`), and we ask for a new one before that.

use std::{
    io::{BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use super::{
    JmxError,
    arguments::{Argument, attributes_of, operation_of, text, text_body},
    object::{Reader, Value},
};

/// "JRMI", version 2, a stream of calls.
const HELLO: [u8; 7] = *b"JRMI\0\x02K";
const ACKNOWLEDGED: u8 = b'N';
const CALL: u8 = b'P';
const RETURN: u8 = b'Q';
/// Kind of a return.
const NORMAL: u8 = 1;
/// An object stream begins.
const STREAM: [u8; 4] = [0xac, 0xed, 0, 5];

/// The registry's object and the number of its method `lookup`.
const REGISTRY: ObjectId = [0; 22];
const LOOKUP: (i32, i64) = (2, 4_905_912_898_345_647_071);
/// `RMIServer.newClient(Object)`.
const NEW_CLIENT: (i32, i64) = (-1, -1_089_742_558_549_201_240);
/// `RMIConnection.getAttributes(ObjectName, String[], Subject)`.
const GET_ATTRIBUTES: (i32, i64) = (-1, 6_285_293_806_596_348_999);
/// `RMIConnection.invoke(ObjectName, String, MarshalledObject, String[], Subject)`.
const INVOKE: (i32, i64) = (-1, 1_434_350_937_885_235_744);
/// `RMIConnection.close()`.
const CLOSE: (i32, i64) = (-1, -4_742_752_445_160_157_748);

/// Longer than what is asked in it, shorter than the five minutes for which a server keeps it.
const RENEWED_AFTER: Duration = Duration::from_secs(240);

/// An object of a server: its number, and the space that it is of.
type ObjectId = [u8; 22];

/// A session with the JMX server of one JVM.
pub(crate) struct Client {
    calls: Calls,
    server: ObjectId,
    connection: ObjectId,
    since: Instant,
}

impl Client {
    /// Connects to a JMX server without passwords by the registry at `registry`; `patience` bounds each wait for it. Its
    /// objects are taken to be on the same address.
    pub(crate) fn open(registry: SocketAddr, patience: Duration) -> Result<Client, JmxError> {
        let stub = Calls::open(registry, patience)?.call(&REGISTRY, LOOKUP, &text("jmxrmi"))?;
        let (port, server) = remote(&stub).ok_or(JmxError::Protocol("no reference to a JMX server"))?;
        let mut calls = Calls::open(SocketAddr::new(registry.ip(), port), patience)?;
        let connection = new_client(&mut calls, &server)?;
        Ok(Client { calls, server, connection, since: Instant::now() })
    }

    /// The attributes of an MBean that it has among `names`. An attribute that it does not have is left out.
    ///
    /// After [`JmxError::Exception`] (there is no such MBean) the client can be used as before.
    pub(crate) fn attributes(&mut self, bean: &str, names: &[&str]) -> Result<Vec<(String, Value)>, JmxError> {
        self.renew()?;
        let answer = self.calls.call(&self.connection, GET_ATTRIBUTES, &attributes_of(bean, names))?;
        let Value::Object(list) = answer else { return Err(JmxError::Protocol("no list of attributes")) };
        let attribute = |item: &Value| match item {
            Value::Object(attribute) => {
                Some((attribute.field("name")?.text()?.to_owned(), attribute.field("value")?.clone()))
            }
            _ => None,
        };
        Ok(list.items().filter_map(attribute).collect())
    }

    /// Has an MBean carry out an operation; returns what that returns. `arguments` are the class of each parameter and what
    /// is given for it.
    ///
    /// After [`JmxError::Exception`] (there is no such MBean, or the operation failed) the client can be used as before.
    pub(crate) fn invoke(
        &mut self,
        bean: &str,
        operation: &str,
        arguments: &[(&str, Argument)],
    ) -> Result<Value, JmxError> {
        self.renew()?;
        self.calls.call(&self.connection, INVOKE, &operation_of(bean, operation, arguments))
    }

    fn renew(&mut self) -> Result<(), JmxError> {
        if self.since.elapsed() > RENEWED_AFTER {
            let fresh = new_client(&mut self.calls, &self.server)?;
            let old = std::mem::replace(&mut self.connection, fresh);
            self.since = Instant::now();
            match self.calls.call(&old, CLOSE, &[]) {
                // What it has let go of by itself need not be closed; it is no answer to what is asked now.
                Ok(_) | Err(JmxError::Exception(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // A server that cannot be told any more notices by itself.
        let _ = self.calls.send(&self.connection, CLOSE, &[]);
    }
}

fn new_client(calls: &mut Calls, server: &ObjectId) -> Result<ObjectId, JmxError> {
    // No credentials.
    let stub = calls.call(server, NEW_CLIENT, &[0x70])?;
    remote(&stub).map(|(_, id)| id).ok_or(JmxError::Protocol("no reference to a connection"))
}

/// One TCP connection for calls, one at a time.
struct Calls(BufReader<TcpStream>);

impl Calls {
    fn open(address: SocketAddr, patience: Duration) -> Result<Calls, JmxError> {
        let mut stream = TcpStream::connect_timeout(&address, patience)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        stream.write_all(&HELLO)?;
        let mut input = BufReader::new(stream);
        // It says how it sees us: host and port. We say how we see ourselves, which nobody needs.
        let mut head = [0; 3];
        input.read_exact(&mut head)?;
        if head[0] != ACKNOWLEDGED {
            return Err(JmxError::Protocol("it refuses the protocol of streams"));
        }
        let host = usize::from(u16::from_be_bytes([head[1], head[2]]));
        input.read_exact(&mut vec![0; host + 4])?;
        let mut ourselves = text_body("127.0.0.1");
        ourselves.extend([0; 4]);
        input.get_mut().write_all(&ourselves)?;
        Ok(Calls(input))
    }

    fn send(&mut self, object: &ObjectId, method: (i32, i64), arguments: &[u8]) -> Result<(), JmxError> {
        Ok(self.0.get_mut().write_all(&call(object, method, arguments))?)
    }

    fn call(&mut self, object: &ObjectId, method: (i32, i64), arguments: &[u8]) -> Result<Value, JmxError> {
        self.send(object, method, arguments)?;
        returned(&mut self.0, method == CLOSE)
    }
}

/// The message of a call. `arguments` are in the stream's format.
fn call(object: &ObjectId, (number, hash): (i32, i64), arguments: &[u8]) -> Vec<u8> {
    let mut message = vec![CALL];
    message.extend(STREAM);
    // One block of 34 bytes.
    message.extend([0x77, 34]);
    message.extend(object);
    message.extend(number.to_be_bytes());
    message.extend(hash.to_be_bytes());
    message.extend(arguments);
    message
}

/// What a call returned; `nothing` if its method returns nothing.
fn returned(input: &mut impl Read, nothing: bool) -> Result<Value, JmxError> {
    let mut kind = [0];
    input.read_exact(&mut kind)?;
    if kind[0] != RETURN {
        return Err(JmxError::Protocol("no return of a call"));
    }
    let mut stream = Reader::begin(input)?;
    // Whether it went well, and a number of the return.
    let head = match stream.next()? {
        Value::Block(head) if head.len() == 15 => head,
        _ => return Err(JmxError::Protocol("a return without a head")),
    };
    match head[0] {
        NORMAL if nothing => Ok(Value::Null),
        NORMAL => stream.next(),
        _ => match stream.next()? {
            Value::Object(exception) => Err(JmxError::Exception(exception.class.clone())),
            _ => Err(JmxError::Protocol("an exception that is not an object")),
        },
    }
}

/// Where a stub's calls go: port and object. A stub writes its reference in a block: the kind's name, the address, the
/// object, and whether results have to be acknowledged.
fn remote(stub: &Value) -> Option<(u16, ObjectId)> {
    let Value::Object(stub) = stub else { return None };
    let block = stub.written.iter().find_map(|written| match written {
        Value::Block(block) => Some(block.as_slice()),
        _ => None,
    })?;
    let (kind, rest) = take_text(block)?;
    let rest = match kind {
        b"UnicastRef" => rest,
        // With a factory of sockets, or (0) without.
        b"UnicastRef2" => rest.strip_prefix(&[0])?,
        _ => return None,
    };
    let (_host, rest) = take_text(rest)?;
    let (port, rest) = rest.split_first_chunk::<4>()?;
    let id = rest.first_chunk::<22>()?;
    Some((u16::try_from(u32::from_be_bytes(*port)).ok()?, *id))
}

fn take_text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    rest.split_at_checked(u16::from_be_bytes(*length).into())
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
