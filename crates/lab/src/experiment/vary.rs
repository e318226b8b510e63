//! `vary:` — what the cells of a design differ in.
//!
//! A factor is named after what it varies: `${name}` stands for its value wherever the file has it, or its name is a key of the
//! file (`faults.0.slow.delay`, `load.consistency`). Its levels are a list, a range (`1ms..100ms log 5`) or, where values are long,
//! a mapping of names to values. If it is named after nothing in the file, its levels are bundles: each sets the keys that it names.
//! All combinations are cells, but for those of `exclude`; `include` adds single ones.

use brownout_units::Spaced;
use brownout_yaml::{FileError, Node, Span, nearest};
use marked_yaml::types::MarkedScalarNode;

use super::{
    Source, bundle,
    factor::{Factor, Kind, Level, SECTIONS, section},
    tree::{place_of, places, replace, scalar, texts},
};

/// The sections that say what varies.
const OF_DESIGNS: [&str; 2] = ["vary", "search"];

/// What varies, and in which combinations.
#[derive(Debug, Clone, Default)]
pub struct Variation {
    /// In the file's order.
    pub factors: Vec<Factor>,
    /// Of each cell the number of its level, by factor.
    pub cells: Vec<Vec<usize>>,
}

/// Keys of `vary:` that name no factor.
const INCLUDE: &str = "include";
const EXCLUDE: &str = "exclude";
/// A value whose text is longer needs a name.
const LONGEST_NAME: usize = 40;
/// More cells are a mistake.
const MOST_CELLS: usize = 1_000;
/// So many combinations are looked at, of which `exclude:` may leave few enough.
const MOST_COMBINATIONS: usize = 100_000;

impl Variation {
    /// The cell of the last factor's level that is written so; made where there is none.
    pub(crate) fn cell_of(&mut self, level: &str) -> usize {
        let Some(factor) = self.factors.last_mut() else { return 0 };
        factor.levels.iter().position(|known| known.name == level).unwrap_or_else(|| {
            factor.levels.push(Level { name: level.to_owned(), value: scalar(Span::new_blank(), level) });
            self.cells.push(vec![factor.levels.len() - 1]);
            self.cells.len() - 1
        })
    }

    /// What a cell is, in words: `delay 10ms, loss 1%`; empty if nothing varies.
    pub fn words(&self, cell: usize) -> String {
        let level = |(factor, level): (&Factor, &usize)| format!("{} {}", factor.name, factor.levels[*level].name);
        self.factors.iter().zip(&self.cells[cell]).map(level).collect::<Vec<_>>().join(", ")
    }
}

impl Source {
    /// One factor of which no level is known yet: a variable of the file or one of its keys.
    pub(crate) fn searched(&self, factor: &str) -> Variation {
        let kind = if self.holds(&format!("${{{factor}}}")) { Kind::Variable } else { Kind::Key };
        Variation { factors: vec![Factor { name: factor.to_owned(), levels: Vec::new(), kind }], cells: Vec::new() }
    }

    /// What the file varies; without `vary:` one cell without a factor.
    ///
    /// # Errors
    /// `vary:` is not as it should be.
    pub fn variation(&self) -> Result<Variation, FileError> {
        let Some(vary) = self.node("vary") else {
            return Ok(Variation { factors: Vec::new(), cells: vec![Vec::new()] });
        };
        let Node::Mapping(map) = vary else {
            return Err(self.complain("vary", "write factors with their levels, such as delay: [1ms, 10ms]".to_owned()));
        };
        let mut factors = Vec::new();
        for (name, levels) in map.iter().filter(|(name, _)| ![INCLUDE, EXCLUDE].contains(&name.as_str())) {
            factors.push(self.factor(name.as_str(), levels)?);
        }
        self.check_keys(&factors)?;
        let mut cells = product(&factors);
        if cells.len() > MOST_COMBINATIONS {
            let message = format!("more than {MOST_COMBINATIONS} combinations cannot be run; vary less at once");
            return Err(self.complain("vary", message));
        }
        self.exclude(&factors, &mut cells)?;
        self.include(&mut factors, &mut cells)?;
        if cells.is_empty() || cells.len() > MOST_CELLS {
            let message =
                format!("{} combinations cannot be run; vary so that there are 1 to {MOST_CELLS}", cells.len());
            return Err(self.complain("vary", message));
        }
        Ok(Variation { factors, cells })
    }

    fn factor(&self, name: &str, levels: &Node) -> Result<Factor, FileError> {
        let key = format!("vary.{name}");
        let variable = format!("${{{name}}}");
        let kind = if self.holds(&variable) {
            Kind::Variable
        } else if self.is_key(name) {
            Kind::Key
        } else if bundle::is_meant(levels) {
            Kind::Bundle
        } else {
            let known = self.variables();
            let meant = nearest(name, known.iter().map(String::as_str));
            let meant = meant.map_or_else(String::new, |meant| format!("; did you mean {meant}?"));
            let message = format!(
                "{variable} is not in the file, '{name}' is not a key that may vary, such as faults.0.slow.delay, and \
                 its levels do not set keys, as in {{ open: {{ load.rate: 400/s }}, closed: {{ load.threads: 64 }} \
                 }}{meant}"
            );
            return Err(self.complain(&key, message));
        };
        let levels = self.levels(&key, levels)?;
        for (at, level) in levels.iter().enumerate() {
            if levels[..at].iter().any(|before| before.name == level.name) {
                return Err(self.complain(&key, format!("'{}' is there twice", level.name)));
            }
        }
        Ok(Factor { name: name.to_owned(), levels, kind })
    }

    fn levels(&self, key: &str, levels: &Node) -> Result<Vec<Level>, FileError> {
        let levels: Vec<Level> = match levels {
            Node::Sequence(list) => {
                let each = list.iter().enumerate().map(|(at, value)| self.level(&format!("{key}.{at}"), value));
                each.collect::<Result<_, _>>()?
            }
            Node::Mapping(named) => named
                .iter()
                .map(|(name, value)| Level { name: name.as_str().to_owned(), value: value.clone() })
                .collect(),
            Node::Scalar(range) => {
                let values: Spaced =
                    range.as_str().parse().map_err(|error| self.complain(key, format!("{error}, or a list")))?;
                let level = |text: String| Level { value: scalar(*range.span(), &text), name: text };
                values.values().into_iter().map(level).collect()
            }
        };
        if levels.is_empty() {
            return Err(self.complain(key, "there is no level; write some, such as [1ms, 10ms]".to_owned()));
        }
        Ok(levels)
    }

    fn level(&self, key: &str, value: &Node) -> Result<Level, FileError> {
        let name = written(value);
        if name.chars().count() > LONGEST_NAME {
            let message = format!("'{name}' is too long for a name; give it one: {{ NAME: VALUE, … }}");
            return Err(self.complain(key, message));
        }
        Ok(Level { name, value: value.clone() })
    }

    /// Takes out what is named in `exclude:`, by some factors or all.
    fn exclude(&self, factors: &[Factor], cells: &mut Vec<Vec<usize>>) -> Result<(), FileError> {
        for (key, entry) in self.entries(EXCLUDE)? {
            let mut wanted = vec![None; factors.len()];
            for (name, level) in entry {
                let (factor, level) = (self.factor_named(&key, factors, &name)?, written(level));
                let known = &factors[factor].levels;
                let at = known.iter().position(|one| one.name == level);
                let at = at.ok_or_else(|| self.no_level(&key, &factors[factor], &level))?;
                wanted[factor] = Some(at);
            }
            let before = cells.len();
            cells.retain(|cell| {
                !wanted.iter().zip(cell).all(|(wanted, level)| wanted.is_none_or(|wanted| wanted == *level))
            });
            if cells.len() == before {
                return Err(self.complain(&key, "this excludes nothing".to_owned()));
            }
        }
        Ok(())
    }

    /// Adds what is named in `include:`, by all factors; levels may be new.
    fn include(&self, factors: &mut [Factor], cells: &mut Vec<Vec<usize>>) -> Result<(), FileError> {
        for (key, entry) in self.entries(INCLUDE)? {
            let mut cell = vec![None; factors.len()];
            for (name, value) in entry {
                let factor = self.factor_named(&key, factors, &name)?;
                let level = self.level(&key, value)?;
                if factors[factor].kind == Kind::Bundle
                    && factors[factor].levels.iter().all(|one| one.name != level.name)
                {
                    return Err(self.no_level(&key, &factors[factor], &level.name));
                }
                let known = &mut factors[factor].levels;
                let at = known.iter().position(|one| one.name == level.name).unwrap_or_else(|| {
                    known.push(level);
                    known.len() - 1
                });
                cell[factor] = Some(at);
            }
            let whole: Option<Vec<usize>> = cell.iter().copied().collect();
            let whole = whole.ok_or_else(|| {
                let missing = cell.iter().position(Option::is_none).map_or("", |at| factors[at].name.as_str());
                self.complain(&key, format!("an included combination names all factors; {missing} is missing"))
            })?;
            if cells.contains(&whole) {
                return Err(self.complain(&key, "this combination is there already".to_owned()));
            }
            cells.push(whole);
        }
        Ok(())
    }

    fn no_level(&self, key: &str, factor: &Factor, level: &str) -> FileError {
        let names: Vec<&str> = factor.levels.iter().map(|one| one.name.as_str()).collect();
        self.complain(key, format!("{} has no level '{level}'; it has {}", factor.name, names.join(", ")))
    }

    fn factor_named(&self, key: &str, factors: &[Factor], name: &str) -> Result<usize, FileError> {
        factors.iter().position(|factor| factor.name == name).ok_or_else(|| {
            let names: Vec<&str> = factors.iter().map(|factor| factor.name.as_str()).collect();
            self.complain(key, format!("'{name}' is not a factor; the factors are {}", names.join(", ")))
        })
    }

    /// The combinations under a key of `vary:`, each with its key.
    #[expect(clippy::type_complexity, reason = "of each combination its key, and values by the factor's name")]
    fn entries(&self, name: &str) -> Result<Vec<(String, Vec<(String, &Node)>)>, FileError> {
        let Some(list) = self.node(&format!("vary.{name}")) else { return Ok(Vec::new()) };
        let refuse = |key: &str| {
            self.complain(key, "write combinations of levels, such as [{ delay: 1ms, loss: 5% }]".to_owned())
        };
        let list = list.as_sequence().ok_or_else(|| refuse(&format!("vary.{name}")))?;
        let mut entries = Vec::new();
        for (at, entry) in list.iter().enumerate() {
            let key = format!("vary.{name}.{at}");
            let map = entry.as_mapping().ok_or_else(|| refuse(&key))?;
            entries.push((key, map.iter().map(|(name, value)| (name.as_str().to_owned(), value)).collect()));
        }
        Ok(entries)
    }

    /// The file of one cell: without `vary:` and `search:`, and with the cell's level of each factor.
    ///
    /// # Errors
    /// A key cannot be set to a level, or something is to be replaced by no factor.
    pub fn of_cell(&self, variation: &Variation, cell: usize) -> Result<Source, FileError> {
        let mut source = self.clone();
        if let Node::Mapping(map) = source.document.tree_mut() {
            OF_DESIGNS.iter().for_each(|section| drop(map.remove(*section)));
        }
        for (factor, level) in variation.factors.iter().zip(&variation.cells[cell]) {
            let value = &factor.levels[*level].value;
            let variable = format!("${{{}}}", factor.name);
            let tree = source.document.tree_mut();
            let put = match factor.kind {
                Kind::Variable => replace(tree, &variable, value),
                Kind::Key => place_of(tree, &factor.name).map(|place| *place = value.clone()),
                Kind::Bundle => bundle::put(tree, value),
            };
            let searched = ["search.danger-zone", "search.max-rate"].into_iter().find(|key| self.node(key).is_some());
            let key = searched.map_or_else(|| format!("vary.{}", factor.name), str::to_owned);
            put.map_err(|message| self.complain(&key, message))?;
        }
        source.variables().first().map_or(Ok(()), |unknown| Err(self.unknown(unknown, variation)))?;
        Ok(source)
    }

    /// What the file has beside its faults.
    pub(crate) fn without_faults(&self) -> Node {
        let mut tree = self.document.tree().clone();
        if let Node::Mapping(map) = &mut tree {
            map.remove("faults");
        }
        tree
    }

    /// A complaint about a variable that no factor gives a value.
    fn unknown(&self, name: &str, variation: &Variation) -> FileError {
        let variable = format!("${{{name}}}");
        let known: Vec<&str> = variation.factors.iter().map(|factor| factor.name.as_str()).collect();
        let message = match nearest(name, known.iter().copied()) {
            Some(meant) => format!("{variable} stands for nothing; did you mean ${{{meant}}}?"),
            None => format!("{variable} stands for nothing; give it values: vary: {{ {name}: [VALUE, …] }}"),
        };
        let mut span = None;
        self.outside_of_vary(&mut |text| {
            if text.as_str().contains(&variable) {
                span.get_or_insert(*text.span());
            }
        });
        let marker = span.as_ref().and_then(|span| span.start());
        self.document.complain_at(marker, "", message)
    }

    /// All texts of the file but those that say what varies.
    fn outside_of_vary<'a>(&'a self, told: &mut dyn FnMut(&'a MarkedScalarNode)) {
        let sections = self.document.tree().as_mapping().into_iter().flat_map(|map| map.iter());
        sections.filter(|(name, _)| !OF_DESIGNS.contains(&name.as_str())).for_each(|(_, section)| texts(section, told));
    }

    /// The keys of all texts that hold a variable.
    pub(super) fn keys_with(&self, variable: &str) -> Vec<String> {
        let mut keys = Vec::new();
        places(self.document.tree(), "", &mut |key, text| {
            let section = key.split('.').next().unwrap_or_default();
            if text.as_str().contains(variable) && !OF_DESIGNS.contains(&section) {
                keys.push(key.to_owned());
            }
        });
        keys
    }

    pub(super) fn holds(&self, variable: &str) -> bool {
        let mut holds = false;
        self.outside_of_vary(&mut |text| holds |= text.as_str().contains(variable));
        holds
    }

    /// The names of all `${…}`.
    pub(super) fn variables(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        self.outside_of_vary(&mut |text| {
            let parts = text.as_str().split("${").skip(1).filter_map(|part| part.split_once('}'));
            names.extend(parts.map(|(name, _)| name.to_owned()));
        });
        names
    }

    /// Whether this may be a key of the file, by its section.
    fn is_key(&self, name: &str) -> bool {
        SECTIONS.contains(&section(name))
    }
}

/// All combinations, the last factor changing fastest.
fn product(factors: &[Factor]) -> Vec<Vec<usize>> {
    if factors.is_empty() {
        return Vec::new();
    }
    factors.iter().fold(vec![Vec::new()], |cells, factor| {
        let more = |cell: &Vec<usize>| {
            let with = |level| cell.iter().copied().chain([level]).collect();
            (0..factor.levels.len()).map(with).collect::<Vec<Vec<usize>>>()
        };
        // What is too many is refused; it need not be counted to its end.
        cells.iter().flat_map(more).take(MOST_COMBINATIONS + 1).collect()
    })
}

/// A value on one line, as it would be written.
pub(super) fn written(value: &Node) -> String {
    match value {
        Node::Scalar(scalar) => scalar.as_str().to_owned(),
        Node::Sequence(list) => format!("[{}]", list.iter().map(written).collect::<Vec<_>>().join(", ")),
        Node::Mapping(map) => {
            let pair = |(name, value): (&MarkedScalarNode, &Node)| format!("{}: {}", name.as_str(), written(value));
            format!("{{{}}}", map.iter().map(pair).collect::<Vec<_>>().join(", "))
        }
    }
}
