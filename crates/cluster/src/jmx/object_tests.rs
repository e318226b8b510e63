#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

use super::*;

/// A `HashMap<String, Double>` as JDK 17 wrote it: `{/10.0.0.2:7000=1.0, /10.0.0.1:7000=0.25}`.
const MAP: &[u8] = b"\xac\xed\0\x05sr\0\x11java.util.HashMap\x05\x07\xda\xc1\xc3\x16`\xd1\x03\0\x02F\0\x0aloadFactor\
    I\0\x09thresholdpxp?@\0\0\0\0\0\x0cw\x08\0\0\0\x10\0\0\0\x02t\0\x0e/10.0.0.2:7000sr\0\x10java.lang.Double\
    \x80\xb3\xc2J)k\xfb\x04\x02\0\x01D\0\x05valuepxr\0\x10java.lang.Number\x86\xac\x95\x1d\x0b\x94\xe0\x8b\x02\0\0pxp\
    ?\xf0\0\0\0\0\0\0t\0\x0e/10.0.0.1:7000sq\0~\0\x03?\xd0\0\0\0\0\0\0x";

#[test]
fn a_map_of_numbers_is_read_with_classes_that_later_objects_refer_to() {
    let mut input = MAP;
    let value = Reader::begin(&mut input).unwrap().next().unwrap();
    let entries: Vec<_> =
        value.entries().iter().map(|(key, value)| (key.text().unwrap(), value.number().unwrap())).collect::<Vec<_>>();
    assert_eq!(entries, [("/10.0.0.2:7000", 1.0), ("/10.0.0.1:7000", 0.25)]);
    let Value::Object(map) = &value else { panic!("{value:?}") };
    assert_eq!(map.field("threshold").unwrap().number(), Some(12.0));
    assert!(input.is_empty(), "nothing of the next answer is taken, and nothing of this one is left");
}

#[test]
fn an_address_is_read_from_its_text_or_from_the_number_in_its_object() {
    assert_eq!(Value::Text("/10.0.0.2:7000".to_owned()).address().unwrap(), "/10.0.0.2:7000");
    // 10.0.0.2 as `InetAddress.writeObject` has it, in JDK 8: a signed number.
    let object = |address: f64| Object {
        class: "java.net.InetAddress".to_owned(),
        fields: vec![("address".to_owned(), Value::Number(address)), ("hostName".to_owned(), Value::Null)],
        written: Vec::new(),
    };
    assert_eq!(Value::Object(Rc::new(object(167_772_162.0))).address().unwrap(), "10.0.0.2");
    assert_eq!(Value::Object(Rc::new(object(-1_062_731_519.0))).address().unwrap(), "192.168.1.1");
    assert_eq!(Value::Null.address(), None);
}

#[test]
fn what_is_cut_off_or_no_stream_is_an_error_and_never_a_value() {
    for cut in 0..MAP.len() {
        let mut input = &MAP[..cut];
        let value = Reader::begin(&mut input).and_then(|mut reader| reader.next());
        assert!(value.is_err(), "cut at {cut}");
    }
    assert!(Reader::begin(&mut &b"GET / HTTP/1.1"[..]).is_err());
}

#[test]
fn an_array_without_end_takes_no_memory_without_end() {
    // An array of bytes, as long as a length can be, in a stream that goes on for ever.
    let head = b"\xac\xed\0\x05ur\0\x02[B\xac\xf3\x17\xf8\x06\x08T\xe0\x02\0\0pxp\xff\xff\xff\xff";
    let mut input = head.chain(io::repeat(0));
    let value = Reader::begin(&mut input).unwrap().next();
    assert!(matches!(value, Err(JmxError::Protocol("an answer without end"))), "{value:?}");
    // Arrays in arrays in arrays.
    let mut nested = b"\xac\xed\0\x05".to_vec();
    for _ in 0..1_000 {
        nested.extend(b"ur\0\x02[[\0\0\0\0\0\0\0\0\x02\0\0xp\0\0\0\x01");
    }
    let value = Reader::begin(&mut nested.as_slice()).unwrap().next();
    assert!(matches!(value, Err(JmxError::Protocol("objects within objects without end"))), "{value:?}");
}
