//! What texts become, and what is said of those that are wrong.

#![allow(clippy::expect_used, clippy::panic, reason = "a test ends by them")]

use std::fmt::Write;

use brownout_yaml::{Document, FileError, Node, nearest, one_of, parse};

fn read(text: &str) -> Result<Document, FileError> {
    Document::new("t.yaml", text.to_owned())
}

/// In one line: `{a: 1, b: [2, 3]}`.
fn shown(node: &Node) -> String {
    match node {
        Node::Scalar(scalar) => scalar.as_str().to_owned(),
        Node::Sequence(list) => format!("[{}]", list.iter().map(shown).collect::<Vec<_>>().join(", ")),
        Node::Mapping(map) => {
            let entries = map.iter().map(|(key, value)| format!("{}: {}", key.as_str(), shown(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
    }
}

#[test]
fn anchors_and_merge_keys_stand_for_what_is_written_there() {
    for (text, meant) in [
        ("a: 1", "{a: 1}"),
        ("", "{}"),
        ("# nothing\n", "{}"),
        ("---\na: 1\n...\n", "{a: 1}"),
        ("\u{feff}a: 1", "{a: 1}"),
        ("a: &x 1\nb: *x", "{a: 1, b: 1}"),
        ("a: &x {p: [1, 2]}\nb: *x", "{a: {p: [1, 2]}, b: {p: [1, 2]}}"),
        ("a: &x\n  p: 1\nb:\n  <<: *x\n  q: 2", "{a: {p: 1}, b: {p: 1, q: 2}}"),
        ("a: &x {p: 1}\nb: {p: 2, <<: *x}", "{a: {p: 1}, b: {p: 2}}"),
        ("a: &x {p: 1}\nb: {<<: *x, p: 2}", "{a: {p: 1}, b: {p: 2}}"),
        ("a: &x {p: 1}\nb: &y {p: 2, q: 3}\nc: {<<: [*x, *y]}", "{a: {p: 1}, b: {p: 2, q: 3}, c: {p: 1, q: 3}}"),
        ("a: &x {p: 1}\nb: &y {<<: *x, q: 2}\nc: {<<: *y}", "{a: {p: 1}, b: {p: 1, q: 2}, c: {p: 1, q: 2}}"),
        ("a: &x k\n*x : v", "{a: k, k: v}"),
        ("a: &x 1\nb: &x 2\nc: *x", "{a: 1, b: 2, c: 2}"),
        ("'<<': 1", "{<<: 1}"),
        ("a: !!str 5\nb: !!map {c: !!int 1}", "{a: 5, b: {c: 1}}"),
    ] {
        let document = read(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(shown(document.tree()), meant, "{text}");
    }
    assert_eq!(parse("value: {a: 1}").map(|tree| shown(&tree)).as_deref(), Ok("{value: {a: 1}}"));
}

#[test]
fn what_an_alias_stands_for_is_where_it_is_written() {
    let document = read("a: &x\n  p: wrong\nb:\n  <<: *x").expect("an alias");
    let b = document.tree().as_mapping().and_then(|map| map.get_mapping("b")).expect("b");
    let value = b.get_node("p").expect("merged");
    let error = document.complain(value.span(), "b.p", "is wrong");
    assert_eq!(error.to_string(), "t.yaml:2:6: b.p: is wrong\n  2 |   p: wrong\n    |      ^");
}

#[test]
fn what_is_no_yaml_is_told_with_its_place() {
    for (text, place, part) in [
        ("a: 1\na: 2", (2, 1), "duplicate key 'a', which is in line 1"),
        ("a: {b: 1, b: 2}", (1, 11), "duplicate key 'b'"),
        ("- a", (1, 1), "keys with values"),
        ("text", (1, 1), "keys with values"),
        ("a: *x", (1, 4), "unknown anchor"),
        ("a: &x [*x]", (1, 8), "inside of what its anchor"),
        ("a: 1\nb: {<<: 1}", (2, 9), "takes a mapping"),
        ("a: &x {}\nb: {<<: [*x, 1]}", (2, 9), "takes a mapping"),
        ("[a]: 1", (1, 1), "a single text"),
        ("a: !mine 1", (1, 10), "tag"),
        ("a: 1\n---\nb: 1", (2, 1), "second document"),
        ("a: [", (2, 1), ""),
        ("a:\n\t- x", (2, 2), "tabs"),
    ] {
        let error = read(text).expect_err(text);
        assert!(error.message.starts_with("not valid YAML: ") && error.message.contains(part), "{text}: {error}");
        assert_eq!(error.place, Some(place), "{text}: {error}");
    }
}

#[test]
fn neither_depth_nor_aliases_of_aliases_exhaust_anything() {
    let nested = |depth: usize| format!("a: {}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(read(&nested(99)).is_ok());
    assert!(read(&nested(100)).expect_err("too deep").message.contains("100 deep"));
    let indented: String = (0..2000).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    assert!(read(&indented).expect_err("too deep").message.contains("100 deep"));
    let mut chain = "a0: &a0 []\n".to_owned();
    let mut laughs = "b0: &b0 [lol, lol, lol]\n".to_owned();
    for level in 1..5000 {
        let below = level - 1;
        writeln!(chain, "a{level}: &a{level} [*a{below}]").expect("text");
    }
    for level in 1..30 {
        let below = level - 1;
        writeln!(laughs, "b{level}: &b{level} [{}]", format!("*b{below},").repeat(10)).expect("text");
    }
    assert!(read(&chain).expect_err("too deep").message.contains("100 deep"));
    assert!(read(&laughs).expect_err("too much").message.contains("more than 4 MiB"));
    let long = format!("a: &x {}\nb: [{}]", "x".repeat(1 << 20), "*x, ".repeat(5));
    assert!(read(&long).expect_err("too much").message.contains("more than 4 MiB"));
}

#[test]
fn the_nearest_name_is_offered_if_there_is_one_near() {
    let known = || ["queries", "insert", "table"].into_iter();
    assert_eq!(nearest("qeries", known()).as_deref(), Some("queries"));
    assert_eq!(nearest("INSERT", known()).as_deref(), Some("insert"));
    assert_eq!(nearest("zzzzzz", known()), None);
    assert_eq!(one_of("the keys are", known(), "tabel"), "the keys are queries, insert, table; did you mean 'table'?");
    assert_eq!(one_of("the keys are", known(), "zzzzzz"), "the keys are queries, insert, table");
}
