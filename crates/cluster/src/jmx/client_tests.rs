#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

use std::{net::TcpListener, thread};

use super::*;

// What a client and a server of JDK 17 said to each other.
const LOOK_UP: &[u8] = b"P\xac\xed\0\x05w\"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x02D\x15M\xc9\xd4\xe6;\
    \xdft\0\x06jmxrmi";
const SERVER: &[u8] = b"Q\xac\xed\0\x05w\x0f\x01=*.}\0\0\x01\xa2\x07d\xe6\xb2\x80\x02sr\0.javax.management.remote.rmi.\
    RMIServerImpl_Stub\0\0\0\0\0\0\0\x02\x02\0\0pxr\0\x1ajava.rmi.server.RemoteStub\xe9\xfe\xdc\xc9\x8b\xe1e\x1a\x02\0\
    \0pxr\0\x1cjava.rmi.server.RemoteObject\xd3a\xb4\x91\x0ca3\x1e\x03\0\0pxpw4\0\x0bUnicastRef2\0\0\x09127.0.0.1\0\0\
    \x96\xf7\xbe\xce\xd0_\xfa\xdf=-=*.}\0\0\x01\xa2\x07d\xe6\xb2\x80\x01\x01x";
const CONNECTION: &[u8] =
    b"Q\xac\xed\0\x05w\x0f\x01=*.}\0\0\x01\xa2\x07d\xe6\xb2\x80\x05sr\x002javax.management.remote.\
    rmi.RMIConnectionImpl_Stub\0\0\0\0\0\0\0\x02\x02\0\0pxr\0\x1ajava.rmi.server.RemoteStub\xe9\xfe\xdc\xc9\x8b\xe1e\
    \x1a\x02\0\0pxr\0\x1cjava.rmi.server.RemoteObject\xd3a\xb4\x91\x0ca3\x1e\x03\0\0pxpw4\0\x0bUnicastRef2\0\0\
    \x09127.0.0.1\0\0\x96\xf7\xd9\xfd\x8b|\x08\xf8\xc7G=*.}\0\0\x01\xa2\x07d\xe6\xb2\x80\x04\x01x";
const NEW: &[u8] = b"P\xac\xed\0\x05w\"\xbe\xce\xd0_\xfa\xdf=-=*.}\0\0\x01\xa2\x07d\xe6\xb2\x80\x01\xff\xff\xff\xff\
    \xf0\xe0t\xea\xad\x0c\xae\xa8p";
const ASK: &[u8] = b"P\xac\xed\0\x05w\"\xd9\xfd\x8b|\x08\xf8\xc7G=*.}\0\0\x01\xa2\x07d\xe6\xb2\x80\x04\xff\xff\xff\xff\
    W9\xd9j\x8b#\x5cGsr\0\x1bjavax.management.ObjectName\x0f\x03\xa7\x1b\xebm\x15\xcf\x03\0\0pxpt\x002org.apache.\
    cassandra.db:type=DynamicEndpointSnitchxur\0\x13[Ljava.lang.String;\xad\xd2V\xe7\xe9\x1d{G\x02\0\0pxp\0\0\0\x05t\0\
    \x07Badnesst\0\x05Countt\0\x04Namet\0\x01Dt\0\x0eScoresWithPortp";
const ANSWER: &[u8] = b"Q\xac\xed\0\x05w\x0f\x01=*.}\0\0\x01\xa2\x07d\xe6\xb2\x80\x09sr\0\x1ejavax.management.\
    AttributeList\xc7kH\x18\x1bH`l\x02\0\0pxr\0\x13java.util.ArrayListx\x81\xd2\x1d\x99\xc7a\x9d\x03\0\x01I\0\x04size\
    pxp\0\0\0\x05w\x04\0\0\0\x05sr\0\x1ajavax.management.Attribute\"y\xb9\x07S\x8b;\x0e\x02\0\x02L\0\x04namet\0\x12\
    Ljava/lang/String;L\0\x05valuet\0\x12Ljava/lang/Object;pxpt\0\x07Badnesssr\0\x11java.lang.Integer\x12\xe2\xa0\xa4\
    \xf7\x81\x878\x02\0\x01I\0\x05valuepxr\0\x10java.lang.Number\x86\xac\x95\x1d\x0b\x94\xe0\x8b\x02\0\0pxp\0\0\0\x07\
    sq\0~\0\x03t\0\x05Countsr\0\x0ejava.lang.Long;\x8b\xe4\x90\xcc\x8f#\xdf\x02\0\x01J\0\x05valuepxq\0~\0\x09\0\0\0\
    \x1c\xbe\x99\x1a\x14sq\0~\0\x03t\0\x04Namet\0\x02\xc3\xa4sq\0~\0\x03t\0\x01Dsr\0\x10java.lang.Double\x80\xb3\xc2J)\
    k\xfb\x04\x02\0\x01D\0\x05valuepxq\0~\0\x09?\xf8\0\0\0\0\0\0sq\0~\0\x03t\0\x0eScoresWithPortsr\0\x11java.util.\
    HashMap\x05\x07\xda\xc1\xc3\x16`\xd1\x03\0\x02F\0\x0aloadFactorI\0\x09thresholdpxp?@\0\0\0\0\0\x0cw\x08\0\0\0\x10\
    \0\0\0\x02t\0\x0e/10.0.0.2:7000sq\0~\0\x14?\xf0\0\0\0\0\0\0t\0\x0e/10.0.0.1:7000sq\0~\0\x14?\xd0\0\0\0\0\0\0xx";
/// An `InstanceNotFoundException` with its stack trace, one element of which refers to others.
const NO_SUCH_BEAN: &[u8] = include_bytes!("golden/no-such-bean.bin");

/// An operation of five parameters, one of which is given, is invoked; it returns nothing. No string is the same object as
/// another, which Java would refer to.
const SET: &[u8] = include_bytes!("golden/set-interval.bin");
const SET_ANSWER: &[u8] = b"Q\xac\xed\0\x05w\x0f\x01\xdd[\x95H\0\0\x01\xa2\x07\xc5\xed\\\x80\x0bp";
/// The `MBeanException` of an operation that ended by an exception.
const FAILED: &[u8] = include_bytes!("golden/operation-failed.bin");

const STORAGE: &str = "org.apache.cassandra.db:type=StorageService";
const INTERVAL: [(&str, Argument); 5] = [
    ("java.lang.String", Argument::Nothing),
    ("java.lang.Boolean", Argument::Nothing),
    ("java.lang.Integer", Argument::Nothing),
    ("java.lang.Integer", Argument::Int(5)),
    ("java.lang.Double", Argument::Nothing),
];

const SNITCH: &str = "org.apache.cassandra.db:type=DynamicEndpointSnitch";
const ATTRIBUTES: [&str; 5] = ["Badness", "Count", "Name", "D", "ScoresWithPort"];

fn stub(answer: &[u8]) -> (u16, ObjectId) {
    remote(&returned(&mut &answer[..], false).unwrap()).unwrap()
}

#[test]
fn calls_are_the_bytes_that_a_client_of_java_sends() {
    assert_eq!(call(&REGISTRY, LOOKUP, &text("jmxrmi")), LOOK_UP);
    let (port, server) = stub(SERVER);
    assert_eq!(port, 0x96f7);
    assert_eq!(call(&server, NEW_CLIENT, &[0x70]), NEW);
    let (_, connection) = stub(CONNECTION);
    assert_eq!(call(&connection, GET_ATTRIBUTES, &attributes_of(SNITCH, &ATTRIBUTES)), ASK);
    let connection: ObjectId = SET[7..29].try_into().unwrap();
    assert_eq!(call(&connection, INVOKE, &operation_of(STORAGE, "updateSnitch", &INTERVAL)), SET);
}

/// Takes a connection, and gives `answers` to so many calls of these lengths; the last call is said to nobody.
fn serve(listener: &TcpListener, calls: &[(usize, Vec<u8>)]) {
    let (mut stream, _) = listener.accept().unwrap();
    let mut take = |length: usize| {
        let mut bytes = vec![0; length];
        stream.read_exact(&mut bytes).unwrap();
        bytes
    };
    assert_eq!(take(7), HELLO);
    stream.write_all(b"N\0\x09127.0.0.1\0\0\xc6\xb6").unwrap();
    let mut take = |length: usize| {
        let mut bytes = vec![0; length];
        stream.read_exact(&mut bytes).unwrap();
    };
    take(15);
    for (length, answer) in calls {
        let mut bytes = vec![0; *length];
        stream.read_exact(&mut bytes).unwrap();
        stream.write_all(answer).unwrap();
    }
}

#[test]
fn a_bean_is_asked_for_attributes_and_one_that_is_not_there_leaves_the_session_as_it_was() {
    let (registry, beans) = (TcpListener::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
    let (address, port) = (registry.local_addr().unwrap(), beans.local_addr().unwrap().port());
    // The stub tells the port at which its object is.
    let place = SERVER.windows(2).rposition(|bytes| bytes == b"\x96\xf7").unwrap();
    let mut server = SERVER.to_vec();
    server[place..place + 2].copy_from_slice(&port.to_be_bytes());
    let nope = attributes_of("org.apache.cassandra.db:type=Nope", &["X"]);
    let calls =
        [(NEW.len(), CONNECTION.to_vec()), (41 + nope.len(), NO_SUCH_BEAN.to_vec()), (ASK.len(), ANSWER.to_vec())];
    thread::scope(|scope| {
        scope.spawn(|| serve(&registry, &[(LOOK_UP.len(), server)]));
        scope.spawn(|| serve(&beans, &calls));
        let mut client = Client::open(address, Duration::from_secs(10)).unwrap();
        let refused = client.attributes("org.apache.cassandra.db:type=Nope", &["X"]);
        assert!(
            matches!(&refused, Err(JmxError::Exception(class)) if class == "javax.management.InstanceNotFoundException"),
            "{refused:?}"
        );
        let attributes = client.attributes(SNITCH, &ATTRIBUTES).unwrap();
        let names: Vec<&str> = attributes.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ATTRIBUTES);
        assert_eq!(attributes[0].1.number(), Some(7.0));
        assert_eq!(attributes[1].1.number(), Some(123_456_789_012.0));
        assert_eq!((attributes[2].1.text(), attributes[2].1.number()), (Some("ä"), None));
        assert_eq!(attributes[4].1.entries().len(), 2);
    });
}

#[test]
fn an_operation_is_carried_out_and_one_that_fails_leaves_the_session_as_it_was() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let mut theirs = listener.accept().unwrap().0;
    let ((_, server), connection) = (stub(SERVER), SET[7..29].try_into().unwrap());
    let mut client = Client { calls: Calls(BufReader::new(ours)), server, connection, since: Instant::now() };
    thread::scope(|scope| {
        let asked = scope.spawn(move || {
            let mut take = |answer: &[u8]| {
                let mut bytes = vec![0; SET.len()];
                theirs.read_exact(&mut bytes).unwrap();
                theirs.write_all(answer).unwrap();
                bytes
            };
            [take(FAILED), take(SET_ANSWER)]
        });
        let failed = client.invoke(STORAGE, "updateSnitch", &INTERVAL);
        assert!(
            matches!(&failed, Err(JmxError::Exception(class)) if class == "javax.management.MBeanException"),
            "{failed:?}"
        );
        assert!(matches!(client.invoke(STORAGE, "updateSnitch", &INTERVAL), Ok(Value::Null)));
        assert_eq!(asked.join().unwrap(), [SET, SET]);
    });
}

#[test]
fn a_session_is_renewed_before_the_server_forgets_it() {
    // Nothing is returned by the method that closes.
    renewed(&ANSWER[..22]);
}

#[test]
fn a_session_that_the_server_has_forgotten_already_is_renewed_all_the_same() {
    renewed(FAILED);
}

/// A session that has come of age, and a server that answers so to the end of the old one.
fn renewed(closed: &[u8]) {
    let (ours, theirs) = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        (TcpStream::connect(listener.local_addr().unwrap()).unwrap(), listener.accept().unwrap().0)
    };
    let ((_, server), (_, connection)) = (stub(SERVER), stub(CONNECTION));
    // The one that it has is another than the one that it gets.
    let old: ObjectId = [7; 22];
    let since = Instant::now().checked_sub(RENEWED_AFTER + Duration::from_secs(1)).unwrap();
    let mut client = Client { calls: Calls(BufReader::new(ours)), server, connection: old, since };
    let asked = thread::scope(|scope| {
        let asked = scope.spawn(|| {
            let mut theirs = theirs;
            let mut take = |length: usize, answer: &[u8]| {
                let mut bytes = vec![0; length];
                theirs.read_exact(&mut bytes).unwrap();
                theirs.write_all(answer).unwrap();
                bytes
            };
            [take(NEW.len(), CONNECTION), take(41, closed), take(ASK.len(), ANSWER)]
        });
        assert_eq!(client.attributes(SNITCH, &ATTRIBUTES).unwrap().len(), 5);
        asked.join().unwrap()
    });
    assert_eq!(asked[0], NEW);
    assert_eq!(asked[1], call(&old, CLOSE, &[]));
    assert_eq!(asked[2], ASK);
    assert!(client.connection == connection && client.since > since);
}

#[test]
fn a_server_that_is_none_and_one_that_says_nothing_are_errors() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let silent = Client::open(address, Duration::from_millis(50));
    assert!(matches!(silent, Err(JmxError::Io(_))));
    thread::scope(|scope| {
        scope.spawn(|| {
            // The one before is still in the queue.
            drop(listener.accept().unwrap());
            listener.accept().unwrap().0.write_all(b"SSH-2.0-OpenSSH").unwrap();
        });
        let other = Client::open(address, Duration::from_secs(10));
        assert!(matches!(other, Err(JmxError::Protocol(_))));
    });
}
