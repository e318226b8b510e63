//! Arguments of calls, in Java's object stream.
//!
//! Format: "Java Object Serialization Specification", chapter 6. Versions of classes are those of the Java library, and
//! have to be these.

/// What is given for a parameter of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Argument {
    /// `null`.
    Nothing,
    /// A `java.lang.Integer`.
    Int(i32),
}

/// The arguments of `getAttributes`: the bean's name, those of the attributes, and that nobody else asks through us.
pub(super) fn attributes_of(bean: &str, names: &[&str]) -> Vec<u8> {
    let mut arguments = name_of(bean);
    arguments.push(0x75);
    arguments.extend(texts(names.iter().copied()));
    arguments.push(0x70);
    arguments
}

/// The arguments of `invoke`: the bean's name, that of the operation, what is given for its parameters (a stream of its own,
/// so that only the bean has to know their classes), the classes of the parameters, and that nobody else asks through us.
pub(super) fn operation_of(bean: &str, operation: &str, given: &[(&str, Argument)]) -> Vec<u8> {
    let mut arguments = name_of(bean);
    arguments.extend(text(operation));
    arguments.push(0x73);
    arguments.extend(marshalled(&array_of(given)));
    arguments.push(0x75);
    arguments.extend(texts(given.iter().map(|(class, _)| *class)));
    arguments.push(0x70);
    arguments
}

/// A `java.rmi.MarshalledObject`: its hash, where its classes may be had (nowhere), its stream.
fn marshalled(stream: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x72];
    bytes.extend(text_body("java.rmi.MarshalledObject"));
    bytes.extend(0x7cbd_1e97_ed63_fc3e_u64.to_be_bytes());
    bytes.extend(b"\x02\0\x03I\0\x04hash[\0\x08locBytest\0\x02[B[\0\x08objBytes");
    // The string before, the sixth thing in this call that can be referred to.
    bytes.extend(b"q\0~\0\x05");
    bytes.extend([0x70, 0x78, 0x70]);
    let hash =
        stream.iter().fold(0_i32, |hash, byte| hash.wrapping_mul(31).wrapping_add(i32::from(byte.cast_signed())));
    bytes.extend(hash.to_be_bytes());
    bytes.extend([0x70, 0x75]);
    bytes.extend(class("[B", 0xacf3_17f8_0608_54e0, 2));
    bytes.extend((stream.len() as u32).to_be_bytes());
    bytes.extend(stream);
    bytes
}

/// A stream with one `Object[]`. Within a `MarshalledObject` it is not said of a class where it may be had.
fn array_of(given: &[(&str, Argument)]) -> Vec<u8> {
    let mut bytes = b"\xac\xed\0\x05ur\0\x13[Ljava.lang.Object;\x90\xceX\x9f\x10s)l\x02\0\0xp".to_vec();
    bytes.extend((given.len() as u32).to_be_bytes());
    for (_, argument) in given {
        match argument {
            Argument::Nothing => bytes.push(0x70),
            Argument::Int(number) => {
                bytes.extend(b"sr\0\x11java.lang.Integer\x12\xe2\xa0\xa4\xf7\x81\x878\x02\0\x01I\0\x05value");
                bytes.extend(b"xr\0\x10java.lang.Number\x86\xac\x95\x1d\x0b\x94\xe0\x8b\x02\0\0xp");
                bytes.extend(number.to_be_bytes());
            }
        }
    }
    bytes
}

/// A `javax.management.ObjectName`.
fn name_of(bean: &str) -> Vec<u8> {
    let mut bytes = vec![0x73];
    bytes.extend(class("javax.management.ObjectName", 0x0f03_a71b_eb6d_15cf, 3));
    bytes.extend(text(bean));
    bytes.push(0x78);
    bytes
}

/// What follows the tag of a `String[]`.
fn texts<'a>(all: impl ExactSizeIterator<Item = &'a str>) -> Vec<u8> {
    let mut bytes = class("[Ljava.lang.String;", 0xadd2_56e7_e91d_7b47, 2);
    bytes.extend((all.len() as u32).to_be_bytes());
    all.for_each(|one| bytes.extend(text(one)));
    bytes
}

/// A class without fields and parents, from nowhere in particular.
fn class(name: &str, version: u64, flags: u8) -> Vec<u8> {
    let mut bytes = vec![0x72];
    bytes.extend(text_body(name));
    bytes.extend(version.to_be_bytes());
    bytes.extend([flags, 0, 0, 0x70, 0x78, 0x70]);
    bytes
}

pub(super) fn text(text: &str) -> Vec<u8> {
    let mut bytes = vec![0x74];
    bytes.extend(text_body(text));
    bytes
}

pub(super) fn text_body(text: &str) -> Vec<u8> {
    let mut bytes = (text.len() as u16).to_be_bytes().to_vec();
    bytes.extend(text.bytes());
    bytes
}
