//! Places in the tree of an experiment file, by their dotted keys.

use brownout_yaml::{Node, Span};
use marked_yaml::types::{MarkedMappingNode, MarkedScalarNode};

/// A value that is a text.
pub(super) fn scalar(span: Span, text: &str) -> Node {
    Node::Scalar(MarkedScalarNode::new(span, text))
}

/// The first step of a dotted path below `node`, and the steps after it.
pub(super) fn first_step<'a>(node: &Node, path: &'a str) -> (&'a str, Option<&'a str>) {
    // A key may hold dots itself, such as an operation's name in load.ops.
    let whole = matches!(node, Node::Mapping(map) if map.get_node(path).is_some());
    match path.split_once('.').filter(|_| !whole) {
        Some((step, after)) => (step, Some(after)),
        None => (path, None),
    }
}

/// The place of a dotted key, to be written to; creates missing keys of mappings. Else why there is none.
pub(super) fn place_of<'a>(tree: &'a mut Node, path: &str) -> Result<&'a mut Node, String> {
    let mut node = tree;
    let mut walked = String::new();
    let mut rest = Some(path);
    while let Some(left) = rest {
        let (step, after) = first_step(node, left);
        rest = after;
        node = match node {
            Node::Mapping(map) => {
                if map.get_node(step).is_none() {
                    let below = || Node::Mapping(MarkedMappingNode::new_empty(Span::new_blank()));
                    map.insert(step.into(), if rest.is_none() { scalar(Span::new_blank(), "") } else { below() });
                }
                map.get_mut(step).ok_or_else(|| format!("cannot add '{step}'"))?
            }
            Node::Sequence(list) => {
                let length = list.len();
                step.parse::<usize>().ok().and_then(|index| list.get_mut(index)).ok_or_else(|| match length {
                    0 => format!("'{walked}' is an empty list; '{step}' is not in it"),
                    _ => format!(
                        "'{step}' is not an element of '{walked}'; it has {length}, numbered 0 to {}",
                        length - 1
                    ),
                })?
            }
            Node::Scalar(scalar) if scalar.as_str().is_empty() => {
                return Err(format!("'{walked}' is not in the file; add it there"));
            }
            Node::Scalar(scalar) => {
                return Err(format!("'{walked}' is the value '{}', it has no '{step}'", scalar.as_str()));
            }
        };
        if !walked.is_empty() {
            walked.push('.');
        }
        walked.push_str(step);
    }
    Ok(node)
}

/// All texts below a node, depth first.
pub(super) fn texts<'a>(node: &'a Node, told: &mut dyn FnMut(&'a MarkedScalarNode)) {
    match node {
        Node::Scalar(text) => told(text),
        Node::Sequence(list) => list.iter().for_each(|value| texts(value, told)),
        Node::Mapping(map) => map.iter().for_each(|(_, value)| texts(value, told)),
    }
}

/// All texts below a node with their dotted keys, depth first.
pub(super) fn places<'a>(node: &'a Node, key: &str, told: &mut dyn FnMut(&str, &'a MarkedScalarNode)) {
    let below = |step: &str| if key.is_empty() { step.to_owned() } else { format!("{key}.{step}") };
    match node {
        Node::Scalar(text) => told(key, text),
        Node::Sequence(list) => {
            list.iter().enumerate().for_each(|(at, value)| places(value, &below(&at.to_string()), told));
        }
        Node::Mapping(map) => map.iter().for_each(|(name, value)| places(value, &below(name.as_str()), told)),
    }
}

/// Puts a value wherever a text is `variable`, and its text where `variable` is a part of one; else why that cannot be.
pub(super) fn replace(node: &mut Node, variable: &str, value: &Node) -> Result<(), String> {
    match node {
        Node::Scalar(text) if text.as_str() == variable => *node = value.clone(),
        Node::Scalar(text) if text.as_str().contains(variable) => {
            let Node::Scalar(part) = value else {
                return Err(format!(
                    "'{}' holds {variable}, which has keys or elements here; let it be all of the value",
                    text.as_str()
                ));
            };
            let whole = text.as_str().replace(variable, part.as_str());
            *node = scalar(*text.span(), &whole);
        }
        Node::Scalar(_) => {}
        Node::Sequence(list) => list.iter_mut().try_for_each(|below| replace(below, variable, value))?,
        Node::Mapping(map) => map.iter_mut().try_for_each(|(_, below)| replace(below, variable, value))?,
    }
    Ok(())
}
