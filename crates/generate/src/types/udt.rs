//! User-defined types.

use std::{collections::HashMap, sync::Arc};

use super::{CqlType, NATIVE, TypeError, lexer::Words, parse};

/// A user-defined type: named fields in order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UserType {
    /// Its name, without quotes.
    pub name: String,
    /// The fields: name without quotes, and type.
    pub fields: Vec<(String, CqlType)>,
}

/// The user-defined types of a keyspace, by name.
#[derive(Debug, Clone, Default)]
pub struct UserTypes {
    types: HashMap<String, Arc<UserType>>,
}

impl UserTypes {
    /// No types.
    pub fn new() -> Self {
        UserTypes::default()
    }

    /// Add a type.
    pub fn insert(&mut self, user_type: UserType) {
        self.types.insert(user_type.name.clone(), Arc::new(user_type));
    }

    /// The type of this name (without quotes).
    pub fn get(&self, name: &str) -> Option<Arc<UserType>> {
        self.types.get(name).cloned()
    }

    /// Add the type that a `CREATE TYPE [IF NOT EXISTS] [keyspace.]name (field type, …)` defines. Types that its fields
    /// name must be there already. Returns the name.
    pub fn define(&mut self, cql: &str) -> Result<String, TypeError> {
        let mut words = Words::new(cql)?;
        words.expect_keywords(&["create", "type"])?;
        words.keywords(&["if", "not", "exists"]);
        let mut name = words.name("the name of the type")?;
        if words.sign('.') {
            name = words.name("the name of the type")?;
        }
        words.expect_sign('(')?;
        let mut fields = Vec::new();
        loop {
            let field = words.name("the name of a field")?;
            fields.push((field, parse::cql_type(&mut words, self)?));
            if !words.sign(',') {
                break;
            }
        }
        words.expect_sign(')')?;
        words.end()?;
        self.insert(UserType { name: name.clone(), fields });
        Ok(name)
    }

    /// From rows of `system_schema.types` (`type_name`, `field_names`, `field_types`), in any order: a type may use
    /// another that comes later.
    pub fn from_schema(rows: &[(String, Vec<String>, Vec<String>)]) -> Result<Self, TypeError> {
        let mut types = UserTypes::new();
        let mut waiting: Vec<_> = rows.iter().collect();
        while !waiting.is_empty() {
            let mut failure = None;
            let before = waiting.len();
            waiting.retain(|(name, names, texts)| {
                let fields: Result<Vec<_>, TypeError> = names
                    .iter()
                    .zip(texts)
                    .map(|(field, text)| Ok((field.clone(), CqlType::parse(text, &types)?)))
                    .collect();
                match fields {
                    Ok(fields) => {
                        types.insert(UserType { name: name.clone(), fields });
                        false
                    }
                    Err(error) => {
                        failure = Some(error);
                        true
                    }
                }
            });
            if waiting.len() == before {
                return failure.map_or(Ok(types), Err);
            }
        }
        Ok(types)
    }

    pub(super) fn unknown(&self, name: &str) -> TypeError {
        let known = NATIVE.iter().map(|(name, _)| *name).chain(self.types.keys().map(String::as_str));
        let nearest = known
            .map(|known| (strsim::damerau_levenshtein(known, name), known))
            .filter(|(distance, _)| *distance <= 2)
            .min()
            .map(|(_, known)| known.to_owned());
        TypeError::Unknown { name: name.to_owned(), nearest }
    }
}
