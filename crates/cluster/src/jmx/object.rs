//! Java's object serialization stream, as far as answers of JMX need it: read only, into plain values.
//!
//! Format: "Java Object Serialization Specification", chapter 6 (grammar and constants). What a class means is known to
//! nobody here: an object is its class's name, its fields, and what its classes wrote beside them.

use std::{
    io::{self, Read},
    net::Ipv4Addr,
    rc::Rc,
};

use super::JmxError;

const MAGIC_AND_VERSION: [u8; 4] = [0xac, 0xed, 0, 5];
const NULL: u8 = 0x70;
const REFERENCE: u8 = 0x71;
const CLASS_DESCRIPTION: u8 = 0x72;
const OBJECT: u8 = 0x73;
const STRING: u8 = 0x74;
const ARRAY: u8 = 0x75;
const CLASS: u8 = 0x76;
const BLOCK: u8 = 0x77;
const END_OF_BLOCK: u8 = 0x78;
const LONG_BLOCK: u8 = 0x7a;
const LONG_STRING: u8 = 0x7c;
const PROXY_CLASS_DESCRIPTION: u8 = 0x7d;
const ENUM: u8 = 0x7e;

/// Flags of a class (its objects: what it wrote itself, fields by name, what only it can read).
const HAS_WRITTEN: u8 = 0x01;
const HAS_FIELDS: u8 = 0x02;
const EXTERNAL: u8 = 0x04;
const EXTERNAL_IN_BLOCKS: u8 = 0x08;

/// Handles are counted from here.
const FIRST_HANDLE: u32 = 0x7e_0000;
/// More than any answer that we ask for has.
const DEEPEST: u32 = 100;
const LONGEST: usize = 1 << 20;

/// Something in a stream.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Null,
    /// A primitive field: every kind of number, a character, a boolean.
    Number(f64),
    Text(String),
    /// Raw bytes that a class wrote.
    Block(Vec<u8>),
    /// An array: nothing that is asked for is in one.
    Array,
    Object(Rc<Object>),
}

/// An object.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) class: String,
    pub(crate) fields: Vec<(String, Value)>,
    /// What its classes wrote beside their fields, in order.
    pub(crate) written: Vec<Value>,
}

impl Value {
    /// The number that this is, or boxes.
    pub(crate) fn number(&self) -> Option<f64> {
        match self {
            Value::Number(number) => Some(*number),
            Value::Object(object) if object.class.starts_with("java.lang.") => object.field("value")?.number(),
            _ => None,
        }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A node as maps are keyed by it: its printed form, or that of an `InetAddress`, which has its four bytes as a number.
    pub(crate) fn address(&self) -> Option<String> {
        match self {
            Value::Text(text) => Some(text.clone()),
            Value::Object(object) if object.class == "java.net.InetAddress" => {
                let address = object.field("address")?.number()? as i32;
                Some(Ipv4Addr::from(address.cast_unsigned()).to_string())
            }
            _ => None,
        }
    }

    /// The entries of a map. The maps of `java.util` write them beside their fields, keys and values in turn; a
    /// `ConcurrentHashMap` ends with two nulls.
    pub(crate) fn entries(&self) -> Vec<(&Value, &Value)> {
        let Value::Object(object) = self else { return Vec::new() };
        let items: Vec<&Value> = object.items().collect();
        let pairs = items.chunks_exact(2).map(|pair| (pair[0], pair[1]));
        pairs.filter(|(key, _)| !matches!(key, Value::Null)).collect()
    }
}

impl Object {
    pub(crate) fn field(&self, name: &str) -> Option<&Value> {
        self.fields.iter().find(|(own, _)| own == name).map(|(_, value)| value)
    }

    /// The objects among what its classes wrote: of a collection, its items.
    pub(crate) fn items(&self) -> impl Iterator<Item = &Value> {
        self.written.iter().filter(|value| !matches!(value, Value::Block(_)))
    }
}

struct Class {
    name: String,
    flags: u8,
    /// Type code and name.
    fields: Vec<(u8, String)>,
    parent: Option<Rc<Class>>,
}

enum Handle {
    Class(Rc<Class>),
    Value(Value),
    /// An object that is still being read: one that refers to itself.
    Open,
}

/// Reads one stream.
pub(crate) struct Reader<'a, R: Read> {
    input: &'a mut R,
    handles: Vec<Handle>,
    depth: u32,
    left: usize,
}

type Result<T> = std::result::Result<T, JmxError>;

impl<'a, R: Read> Reader<'a, R> {
    /// A stream begins here.
    pub(crate) fn begin(input: &'a mut R) -> Result<Self> {
        let mut reader = Reader { input, handles: Vec::new(), depth: 0, left: LONGEST };
        if reader.bytes::<4>()? != MAGIC_AND_VERSION {
            return Err(JmxError::Protocol("no object stream begins"));
        }
        Ok(reader)
    }

    /// The next content: an object, or a block of raw bytes.
    pub(crate) fn next(&mut self) -> Result<Value> {
        let tag = self.byte()?;
        self.content(tag)
    }

    fn content(&mut self, tag: u8) -> Result<Value> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(JmxError::Protocol("objects within objects without end"));
        }
        let value = match tag {
            NULL => Value::Null,
            REFERENCE => match self.reference()? {
                Handle::Value(value) => value.clone(),
                Handle::Class(_) | Handle::Open => Value::Null,
            },
            STRING => {
                let length = self.short()?.into();
                self.new_text(length)?
            }
            LONG_STRING => {
                let length = self.length_of_eight()?;
                self.new_text(length)?
            }
            BLOCK => {
                let length = self.byte()?.into();
                Value::Block(self.take(length)?)
            }
            LONG_BLOCK => {
                let length = self.int()? as usize;
                Value::Block(self.take(length)?)
            }
            OBJECT => self.object()?,
            ARRAY => self.array()?,
            CLASS => {
                self.class_of_content()?;
                self.handles.push(Handle::Open);
                Value::Null
            }
            ENUM => {
                self.class_of_content()?;
                let place = self.open();
                let name = self.next()?;
                self.close(place, name)
            }
            _ => return Err(JmxError::Protocol("an unknown kind of content in an object stream")),
        };
        self.depth -= 1;
        Ok(value)
    }

    fn object(&mut self) -> Result<Value> {
        let class = self.class_of_content()?.ok_or(JmxError::Protocol("an object without a class"))?;
        let place = self.open();
        let mut object = Object { class: class.name.clone(), fields: Vec::new(), written: Vec::new() };
        // The farthest ancestor wrote first.
        let mut line = vec![Rc::clone(&class)];
        while let Some(parent) = line.last().and_then(|class| class.parent.clone()) {
            line.push(parent);
        }
        for class in line.iter().rev() {
            if class.flags & HAS_FIELDS != 0 {
                for (code, name) in &class.fields {
                    let value = self.field(*code)?;
                    object.fields.push((name.clone(), value));
                }
            }
            let external = class.flags & EXTERNAL != 0;
            if external && class.flags & EXTERNAL_IN_BLOCKS == 0 {
                return Err(JmxError::Protocol("an object that only its own class can read"));
            }
            if external || class.flags & HAS_WRITTEN != 0 {
                self.until_end_of_block(&mut object.written)?;
            }
        }
        Ok(self.close(place, Value::Object(Rc::new(object))))
    }

    fn array(&mut self) -> Result<Value> {
        let class = self.class_of_content()?.ok_or(JmxError::Protocol("an array without a class"))?;
        let place = self.open();
        let code = *class.name.as_bytes().get(1).ok_or(JmxError::Protocol("an array of nothing"))?;
        let length = self.int()?;
        for _ in 0..length {
            self.field(code)?;
        }
        Ok(self.close(place, Value::Array))
    }

    /// A value of a type: see the grammar's `prim_typecode` and `obj_typecode`.
    fn field(&mut self, code: u8) -> Result<Value> {
        Ok(Value::Number(match code {
            b'B' => f64::from(self.byte()?.cast_signed()),
            b'Z' => f64::from(self.byte()?),
            b'C' => f64::from(self.short()?),
            b'S' => f64::from(self.short()?.cast_signed()),
            b'I' => f64::from(self.int()?.cast_signed()),
            b'F' => f64::from(f32::from_be_bytes(self.bytes()?)),
            b'J' => i64::from_be_bytes(self.bytes()?) as f64,
            b'D' => f64::from_be_bytes(self.bytes()?),
            b'L' | b'[' => return self.next(),
            _ => return Err(JmxError::Protocol("a field of an unknown type")),
        }))
    }

    fn class_of_content(&mut self) -> Result<Option<Rc<Class>>> {
        match self.byte()? {
            NULL => Ok(None),
            REFERENCE => match self.reference()? {
                Handle::Class(class) => Ok(Some(Rc::clone(class))),
                Handle::Value(_) | Handle::Open => Err(JmxError::Protocol("no class where one has to be")),
            },
            CLASS_DESCRIPTION => self.class().map(Some),
            PROXY_CLASS_DESCRIPTION => self.proxy_class().map(Some),
            _ => Err(JmxError::Protocol("no class where one has to be")),
        }
    }

    fn class(&mut self) -> Result<Rc<Class>> {
        let name = self.short_text()?;
        // Its version: we know no other.
        self.bytes::<8>()?;
        let place = self.open();
        let flags = self.byte()?;
        let mut fields = Vec::new();
        for _ in 0..self.short()? {
            let code = self.byte()?;
            let name = self.short_text()?;
            if matches!(code, b'L' | b'[') {
                // The name of its class: a string, that later ones may refer to.
                self.next()?;
            }
            fields.push((code, name));
        }
        self.until_end_of_block(&mut Vec::new())?;
        let parent = self.class_of_content()?;
        Ok(self.close_class(place, Class { name, flags, fields, parent }))
    }

    fn proxy_class(&mut self) -> Result<Rc<Class>> {
        let place = self.open();
        for _ in 0..self.int()? {
            self.short_text()?;
        }
        self.until_end_of_block(&mut Vec::new())?;
        let parent = self.class_of_content()?;
        Ok(self.close_class(place, Class { name: "a proxy".to_owned(), flags: HAS_FIELDS, fields: Vec::new(), parent }))
    }

    fn until_end_of_block(&mut self, contents: &mut Vec<Value>) -> Result<()> {
        loop {
            match self.byte()? {
                END_OF_BLOCK => return Ok(()),
                tag => contents.push(self.content(tag)?),
            }
        }
    }

    fn open(&mut self) -> usize {
        self.handles.push(Handle::Open);
        self.handles.len() - 1
    }

    fn close(&mut self, place: usize, value: Value) -> Value {
        if let Some(handle) = self.handles.get_mut(place) {
            *handle = Handle::Value(value.clone());
        }
        value
    }

    fn close_class(&mut self, place: usize, class: Class) -> Rc<Class> {
        let class = Rc::new(class);
        if let Some(handle) = self.handles.get_mut(place) {
            *handle = Handle::Class(Rc::clone(&class));
        }
        class
    }

    fn new_text(&mut self, length: usize) -> Result<Value> {
        let text = Value::Text(String::from_utf8_lossy(&self.take(length)?).into_owned());
        self.handles.push(Handle::Value(text.clone()));
        Ok(text)
    }

    fn reference(&mut self) -> Result<&Handle> {
        let place = self.int()?.checked_sub(FIRST_HANDLE).map(|place| place as usize);
        place.and_then(|place| self.handles.get(place)).ok_or(JmxError::Protocol("a reference to nothing"))
    }

    /// Java's "modified UTF-8" differs from UTF-8 in what no name and no answer of ours holds.
    fn short_text(&mut self) -> Result<String> {
        let length = self.short()?.into();
        Ok(String::from_utf8_lossy(&self.take(length)?).into_owned())
    }

    fn length_of_eight(&mut self) -> Result<usize> {
        usize::try_from(u64::from_be_bytes(self.bytes()?)).map_err(|_| JmxError::Protocol("a text without end"))
    }

    fn byte(&mut self) -> Result<u8> {
        Ok(self.bytes::<1>()?[0])
    }

    fn short(&mut self) -> Result<u16> {
        Ok(u16::from_be_bytes(self.bytes()?))
    }

    fn int(&mut self) -> Result<u32> {
        Ok(u32::from_be_bytes(self.bytes()?))
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.pay(N)?;
        let mut bytes = [0; N];
        self.input.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn take(&mut self, length: usize) -> Result<Vec<u8>> {
        self.pay(length)?;
        let mut bytes = vec![0; length];
        self.input.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn pay(&mut self, length: usize) -> Result<()> {
        self.left = self.left.checked_sub(length).ok_or(JmxError::Protocol("an answer without end"))?;
        Ok(())
    }
}

impl From<io::Error> for JmxError {
    fn from(error: io::Error) -> Self {
        JmxError::Io(error)
    }
}

#[cfg(test)]
#[path = "object_tests.rs"]
mod tests;
