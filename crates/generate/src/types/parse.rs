//! The grammar of types.

use super::{
    CqlType, NATIVE, TypeError, UserTypes,
    lexer::{Token, Words},
};

/// Deeper than any table, and shallow enough for every stack.
const DEEPEST: usize = 32;

/// A text that is a type and nothing else.
pub(super) fn whole_type(text: &str, types: &UserTypes) -> Result<CqlType, TypeError> {
    let mut words = Words::new(text)?;
    let parsed = cql_type(&mut words, types)?;
    words.end()?;
    Ok(parsed)
}

/// The type that comes next.
pub(super) fn cql_type(words: &mut Words<'_>, types: &UserTypes) -> Result<CqlType, TypeError> {
    nested(words, types, 0)
}

fn nested(words: &mut Words<'_>, types: &UserTypes, depth: usize) -> Result<CqlType, TypeError> {
    if depth > DEEPEST {
        return Err(TypeError::Nested { text: words.text().to_owned(), limit: DEEPEST });
    }
    let boxed = |words: &mut Words<'_>| nested(words, types, depth + 1).map(Box::new);
    let first = match words.peek() {
        Token::Text(class) => {
            let class = class.clone();
            words.take();
            return Ok(CqlType::Custom(class));
        }
        Token::Word(_) | Token::Quoted(_) => words.take(),
        _ => return Err(words.unexpected("a type")),
    };
    if let Token::Word(name) = &first {
        if words.sign('<') {
            let parsed = match name.as_str() {
                "list" => CqlType::List(boxed(words)?),
                "set" => CqlType::Set(boxed(words)?),
                "frozen" => CqlType::Frozen(boxed(words)?),
                "map" => {
                    let key = boxed(words)?;
                    words.expect_sign(',')?;
                    CqlType::Map(key, boxed(words)?)
                }
                "tuple" => {
                    let mut fields = vec![nested(words, types, depth + 1)?];
                    while words.sign(',') {
                        fields.push(nested(words, types, depth + 1)?);
                    }
                    CqlType::Tuple(fields)
                }
                "vector" => {
                    let element = boxed(words)?;
                    words.expect_sign(',')?;
                    CqlType::Vector(element, dimension(words)?)
                }
                _ => return Err(TypeError::Unknown { name: format!("{name}<…>"), nearest: None }),
            };
            words.expect_sign('>')?;
            return Ok(parsed);
        }
        // A native type wins over a user-defined one of its name, unless a keyspace is named.
        if *words.peek() != Token::Sign('.')
            && let Some((_, native)) = NATIVE.iter().find(|(known, _)| known == name)
        {
            return Ok(native.clone());
        }
    }
    let (Token::Word(mut name) | Token::Quoted(mut name)) = first else { return Err(words.unexpected("a type")) };
    if words.sign('.') {
        name = words.name("the name of a type")?;
    }
    types.get(&name).map(CqlType::Udt).ok_or_else(|| types.unknown(&name))
}

fn dimension(words: &mut Words<'_>) -> Result<usize, TypeError> {
    let Token::Number(digits) = words.peek() else { return Err(words.unexpected("the number of elements")) };
    let Ok(count) = digits.parse::<u64>() else { return Err(words.unexpected("the number of elements")) };
    words.take();
    // Cassandra's own limit (VectorType.MAX_DIMENSIONS).
    if (1..=8192).contains(&count) { Ok(count as usize) } else { Err(TypeError::Dimension(count)) }
}
