//! From the parser's events to a tree.
//!
//! Without recursion, so that no text can exhaust the stack: what is nested too deep is refused before it is built. An
//! alias is a copy of what its anchor stands for. How much copies may hold is bounded, or ten lines of aliases of
//! aliases would stand for gigabytes.

use std::collections::{HashMap, HashSet};

use marked_yaml::{
    Marker, Node, Span,
    types::{MarkedMappingNode, MarkedScalarNode, MarkedSequenceNode},
};
use yaml_rust2::{
    parser::{Event, Parser, Tag},
    scanner::{Marker as Mark, ScanError, TScalarStyle},
};

/// Mappings and lists in each other.
const DEEPEST: usize = 100;
/// Bytes that all copies together may hold.
const MOST_COPIED: usize = 4 << 20;
/// What a value costs beside its text, bytes; roughly.
const NODE: usize = 128;
/// The handle of YAML's own tags: `!!str`.
const CORE: &str = "tag:yaml.org,2002:";

/// What is wrong, and where.
#[derive(Debug)]
pub(crate) struct Wrong {
    pub(crate) mark: Marker,
    pub(crate) message: String,
}

/// The tree of a text.
pub(crate) fn build(text: &str) -> Result<Node, Wrong> {
    // Editors of another system begin a file with a byte order mark.
    let mut parser = Parser::new_from_str(text.trim_start_matches('\u{feff}'));
    let mut builder = Builder::default();
    loop {
        let (event, mark) = parser.next_token().map_err(of_scanner)?;
        let mark = marker(&mark);
        if event == Event::StreamEnd {
            break;
        }
        builder.take(event, mark)?;
    }
    let start = Marker::new(0, 0, 1, 1);
    match builder.whole {
        Some(Node::Mapping(map)) => Ok(Node::Mapping(map)),
        None => Ok(Node::Mapping(MarkedMappingNode::new_empty(Span::new_start(start)))),
        Some(Node::Scalar(scalar)) if scalar.as_str().is_empty() => {
            Ok(Node::Mapping(MarkedMappingNode::new_empty(Span::new_start(start))))
        }
        Some(other) => Err(Wrong {
            mark: other.span().start().copied().unwrap_or(start),
            message: "the file must hold keys with values, as in key: value".to_owned(),
        }),
    }
}

fn of_scanner(error: ScanError) -> Wrong {
    Wrong { mark: marker(error.marker()), message: error.info().to_owned() }
}

fn marker(mark: &Mark) -> Marker {
    Marker::new(0, mark.index(), mark.line(), mark.col() + 1)
}

/// A mapping or list whose end has not come yet.
struct Open {
    start: Marker,
    /// 0: none.
    anchor: usize,
    /// Height of the highest value inside.
    inside: usize,
    /// Bytes of what is inside.
    bytes: usize,
    content: Content,
}

enum Content {
    List(Vec<Node>),
    Map(Box<Keys>),
}

struct Keys {
    map: MarkedMappingNode,
    /// Those that came by `<<`: one written out takes its place.
    merged: HashSet<String>,
    /// The key whose value comes next.
    key: Option<Key>,
}

enum Key {
    Named(MarkedScalarNode),
    /// `<<`
    Merge,
}

/// A value, and what it takes to copy it.
#[derive(Clone)]
struct Value {
    node: Node,
    /// Mappings and lists in each other, itself included.
    height: usize,
    bytes: usize,
    /// Whether it is a text without quotes, which may be `<<`.
    plain: bool,
}

#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    anchors: HashMap<usize, Value>,
    copied: usize,
    whole: Option<Node>,
}

impl Builder {
    fn take(&mut self, event: Event, mark: Marker) -> Result<(), Wrong> {
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart if self.whole.is_some() => {
                Err(Wrong { mark, message: "the file holds a second document; leave one".to_owned() })
            }
            Event::DocumentStart => Ok(()),
            Event::MappingStart(anchor, tag) => {
                let map = MarkedMappingNode::new_empty(Span::new_blank());
                let keys = Keys { map, merged: HashSet::new(), key: None };
                self.begin(mark, anchor, tag.as_ref(), Content::Map(Box::new(keys)))
            }
            Event::SequenceStart(anchor, tag) => self.begin(mark, anchor, tag.as_ref(), Content::List(Vec::new())),
            Event::MappingEnd | Event::SequenceEnd => self.end(mark),
            Event::Scalar(text, style, anchor, tag) => {
                check_tag(tag.as_ref(), mark)?;
                let plain = style == TScalarStyle::Plain && tag.is_none();
                let bytes = NODE + text.len();
                let node = Node::Scalar(MarkedScalarNode::new(Span::new_start(mark), text));
                self.finished(Value { node, height: 0, bytes, plain }, anchor, mark)
            }
            Event::Alias(anchor) => {
                let Some(value) = self.anchors.get(&anchor) else {
                    return Err(Wrong { mark, message: "an alias inside of what its anchor stands for".to_owned() });
                };
                let bytes = value.bytes;
                self.copy(bytes, mark)?;
                let Some(value) = self.anchors.get(&anchor).cloned() else { return Ok(()) };
                self.finished(value, 0, mark)
            }
        }
    }

    fn begin(&mut self, start: Marker, anchor: usize, tag: Option<&Tag>, content: Content) -> Result<(), Wrong> {
        check_tag(tag, start)?;
        if let Some(Open { content: Content::Map(keys), .. }) = self.open.last()
            && keys.key.is_none()
        {
            return Err(key_is_no_text(start));
        }
        self.open.push(Open { start, anchor, inside: 0, bytes: NODE, content });
        self.check_depth(0, start)
    }

    fn end(&mut self, mark: Marker) -> Result<(), Wrong> {
        let Some(Open { start, anchor, inside, bytes, content }) = self.open.pop() else { return Ok(()) };
        let span = Span::new_with_marks(start, mark);
        let node = match content {
            Content::List(list) => Node::Sequence(MarkedSequenceNode::new(span, list)),
            Content::Map(keys) => {
                let mut map = keys.map;
                *map.span_mut() = span;
                Node::Mapping(map)
            }
        };
        self.finished(Value { node, height: inside + 1, bytes, plain: false }, anchor, start)
    }

    /// A value is whole: it is kept for its aliases, and goes to where it stands.
    fn finished(&mut self, value: Value, anchor: usize, mark: Marker) -> Result<(), Wrong> {
        if anchor != 0 {
            self.copy(value.bytes, mark)?;
            self.anchors.insert(anchor, value.clone());
        }
        self.check_depth(value.height, mark)?;
        let Some(open) = self.open.last_mut() else {
            self.whole = Some(value.node);
            return Ok(());
        };
        open.inside = open.inside.max(value.height);
        open.bytes += value.bytes;
        match &mut open.content {
            Content::List(list) => list.push(value.node),
            Content::Map(keys) => match (keys.key.take(), value.node) {
                (None, Node::Scalar(scalar)) if value.plain && scalar.as_str() == "<<" => keys.key = Some(Key::Merge),
                (None, Node::Scalar(scalar)) => keys.key = Some(Key::Named(scalar)),
                (None, _) => return Err(key_is_no_text(mark)),
                (Some(Key::Merge), node) => keys.merge(node, mark)?,
                (Some(Key::Named(name)), node) => keys.insert(name, node)?,
            },
        }
        Ok(())
    }

    fn check_depth(&self, height: usize, mark: Marker) -> Result<(), Wrong> {
        if self.open.len() + height <= DEEPEST {
            return Ok(());
        }
        Err(Wrong { mark, message: format!("mappings and lists stand in each other more than {DEEPEST} deep") })
    }

    fn copy(&mut self, bytes: usize, mark: Marker) -> Result<(), Wrong> {
        self.copied = self.copied.saturating_add(bytes);
        if self.copied <= MOST_COPIED {
            return Ok(());
        }
        Err(Wrong { mark, message: format!("aliases stand for more than {} MiB; write less", MOST_COPIED >> 20) })
    }
}

impl Keys {
    /// A key that is written out.
    fn insert(&mut self, name: MarkedScalarNode, node: Node) -> Result<(), Wrong> {
        if self.merged.remove(name.as_str()) {
            self.map.remove(name.as_str());
        }
        if let Some((first, _)) = self.map.get_key_value(name.as_str()) {
            let line = first.span().start().map_or(0, Marker::line);
            return Err(Wrong {
                mark: name.span().start().copied().unwrap_or(Marker::new(0, 0, 1, 1)),
                message: format!("duplicate key '{}', which is in line {line} already", name.as_str()),
            });
        }
        self.map.insert(name, node);
        Ok(())
    }

    /// What `<<` stands for: keys that are not there yet, of the first mapping that has them.
    fn merge(&mut self, from: Node, mark: Marker) -> Result<(), Wrong> {
        let list = match from {
            Node::Sequence(list) => list.iter().cloned().collect(),
            other => vec![other],
        };
        for node in list {
            let Node::Mapping(from) = node else {
                let message = "<<: takes a mapping, or a list of mappings, as in <<: *name".to_owned();
                return Err(Wrong { mark, message });
            };
            for (name, value) in from.iter() {
                if !self.map.contains_key(name.as_str()) {
                    self.merged.insert(name.as_str().to_owned());
                    self.map.insert(name.clone(), value.clone());
                }
            }
        }
        Ok(())
    }
}

fn key_is_no_text(mark: Marker) -> Wrong {
    Wrong { mark, message: "a key must be a single text".to_owned() }
}

/// YAML's own tags say nothing that the reader of a value does not know.
fn check_tag(tag: Option<&Tag>, mark: Marker) -> Result<(), Wrong> {
    match tag {
        Some(Tag { handle, suffix }) if handle != CORE => {
            Err(Wrong { mark, message: format!("the tag {handle}{suffix} is of no use here; leave it out") })
        }
        _ => Ok(()),
    }
}
