//! From the tree of a YAML file to structs.

use std::{collections::HashMap, path::Path};

use brownout_generate::{
    distribution::Spec,
    sizes::{SizeTarget, TableHistogram, parse_tablehistograms},
    types::UserTypes,
};
use brownout_load::{Consistency, SerialConsistency};

use super::{
    ColumnSpec, Fields, InsertSpec, PAGE_SIZE, Profile, ProfileError, Query, RequestSpec, TokenRangeQuery,
    source::{Item, Map, Source},
};
use crate::settings::{Batch, Files, Generator};

impl Profile {
    /// Reads and checks the text of a profile. `files` reads the files it names.
    ///
    /// # Errors
    /// It is not YAML, a key is unknown or missing, or a value is invalid; names do not fit together.
    pub fn from_text(file: &str, text: String, files: Files<'_>) -> Result<Self, ProfileError> {
        let source = Source::new(file, text.clone())?;
        let mut root = source.root()?;
        let required = |value: Option<&str>, root: &Map<'_>, name: &str| {
            let value = value.map(str::trim).filter(|value| !value.is_empty());
            value.map(str::to_owned).ok_or_else(|| root.complain(format!("{name} name is required in yaml file")))
        };
        let keyspace = root.text("keyspace")?;
        let keyspace = required(keyspace, &root, "keyspace")?;
        let table = root.text("table")?;
        let table = required(table, &root, "table")?;
        let specname = root.text("specname")?.map(str::to_owned);
        let keyspace_item = root.take("keyspace_definition")?;
        let table_item = root.take("table_definition")?;
        let extra_item = root.take("extra_definitions")?;
        let column_item = root.take("columnspec")?;
        let insert_item = root.take("insert")?;
        let query_item = root.take("queries")?;
        let range_item = root.take("token_range_queries")?;
        let generator = root.take("generator")?.map(|item| generator(&item)).transpose()?;
        let compress = root.take("compress")?.map(|item| share(&item)).transpose()?;
        let sizes_item = root.take("partition_sizes")?;
        root.finish("Unrecognised key")?;

        let columns = column_item.as_ref().map(columns).transpose()?.unwrap_or_default();
        let extra = extra_item.as_ref().map(|item| item.list().iter().map(Item::text).collect::<Result<Vec<_>, _>>());
        let mut profile = Profile {
            file: file.to_owned(),
            text,
            name: specname.unwrap_or_else(|| format!("{keyspace}.{table}")),
            keyspace_definition: definition(keyspace_item.as_ref())?,
            table_definition: definition(table_item.as_ref())?,
            keyspace,
            table,
            extra_definitions: extra.transpose()?.unwrap_or_default().into_iter().map(str::to_owned).collect(),
            columns: columns.iter().map(|(column, _)| column.clone()).collect(),
            insert: insert_item.as_ref().map(insert).transpose()?.unwrap_or_default(),
            queries: query_item.as_ref().map(queries).transpose()?.unwrap_or_default(),
            token_range_queries: range_item.as_ref().map(ranges).transpose()?.unwrap_or_default(),
            generator,
            compress,
            partition_sizes: None,
            definition: None,
            types: UserTypes::new(),
            notes: Vec::new(),
        };
        profile.partition_sizes = sizes_item.as_ref().map(|item| sizes(item, files, &profile)).transpose()?;
        profile.check_keyspace(keyspace_item.as_ref())?;
        profile.check_table(table_item.as_ref())?;
        profile.check_columns(&columns)?;
        profile.check_queries(query_item.as_ref(), range_item.as_ref())?;
        profile.check_checks(query_item.as_ref())?;
        profile.check_generator(&source)?;
        Ok(profile)
    }
}

/// CQL; an empty text counts as none.
fn definition(item: Option<&Item<'_>>) -> Result<Option<String>, ProfileError> {
    let text = item.map(Item::text).transpose()?;
    Ok(text.filter(|text| !text.trim().is_empty()).map(str::to_owned))
}

fn generator(item: &Item<'_>) -> Result<Generator, ProfileError> {
    match item.text()?.trim().to_ascii_lowercase().as_str() {
        "compat" => Ok(Generator::Compat),
        "v2" => Ok(Generator::V2),
        other => Err(item.complain(format!("'{other}' is no generator; write compat or v2"))),
    }
}

/// A compression ratio: `0.2`, `20%`.
fn share(item: &Item<'_>) -> Result<f64, ProfileError> {
    let text = item.text()?.trim();
    let ratio = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|percent| percent / 100.0),
        None => text.parse::<f64>(),
    };
    ratio.ok().filter(|ratio| *ratio > 0.0 && *ratio < 1.0).ok_or_else(|| {
        item.complain(format!(
            "'{text}' is no ratio of compressed to raw; write a number above 0 and below 1, such as 0.2"
        ))
    })
}

/// Each with its place in the file.
fn columns<'a>(item: &Item<'a>) -> Result<Vec<(ColumnSpec, Item<'a>)>, ProfileError> {
    let mut columns: Vec<(ColumnSpec, Item<'a>)> = Vec::new();
    for entry in item.list() {
        let mut map = entry.map()?;
        let name_item = map.take("name")?;
        let column = ColumnSpec {
            name: name_item.as_ref().map(Item::text).transpose()?.unwrap_or_default().trim().to_owned(),
            size: map.take("size")?.map(|item| size(&item)).transpose()?,
            population: map.parsed("population")?,
            cluster: map.take("cluster")?.map(|item| at_least(&item, 0, "a count of rows")).transpose()?,
            element_size: map.take("element_size")?.map(|item| size(&item)).transpose()?,
            element_population: map.parsed("element_population")?,
            compress: map.take("compress")?.map(|item| share(&item)).transpose()?,
        };
        let missing = map.complain("Missing name argument in column spec: write name: and the name of a column");
        map.finish("Unrecognised option(s) in column spec")?;
        let Some(name_item) = name_item.filter(|_| !column.name.is_empty()) else { return Err(missing) };
        if columns.iter().any(|(known, _)| known.name.eq_ignore_ascii_case(&column.name)) {
            return Err(name_item.complain(format!("column '{}' is specified twice", column.name)));
        }
        columns.push((column, name_item));
    }
    Ok(columns)
}

/// Sizes that a value may have.
fn size(item: &Item<'_>) -> Result<Spec, ProfileError> {
    let spec = at_least(item, 0, "a size")?;
    if spec.max() > i64::from(i32::MAX) {
        return Err(item.complain(format!("{spec} reaches {}; a value has at most 2147483647 bytes", spec.max())));
    }
    Ok(spec)
}

fn at_least(item: &Item<'_>, least: i64, what: &str) -> Result<Spec, ProfileError> {
    let spec: Spec = item.parsed()?;
    if spec.min() < least {
        return Err(item.complain(format!("{spec} reaches {}; {what} is at least {least}", spec.min())));
    }
    Ok(spec)
}

fn insert(item: &Item<'_>) -> Result<InsertSpec, ProfileError> {
    let mut map = item.map()?;
    let written = item.map()?.entries();
    let written = written.into_iter().map(|(key, value)| Ok((key.to_owned(), value.text()?.to_owned())));
    let insert = InsertSpec {
        written: written.collect::<Result<_, ProfileError>>()?,
        partitions: map.take("partitions")?.map(|item| at_least(&item, 0, "a count of partitions")).transpose()?,
        select: map.parsed("select")?,
        row_population: map.parsed("row-population")?,
        visits: map.take("visits")?.map(|item| at_least(&item, 1, "a count of visits")).transpose()?,
        revisit: map.parsed("revisit")?,
        batch: map.take("batchtype")?.map(|item| batch(&item)).transpose()?,
        batch_size: map.take("batch-size")?.map(|item| above_0(&item)).transpose()?,
        request: request(&mut map)?,
    };
    map.finish("Unrecognised insert option(s)")?;
    Ok(insert)
}

fn batch(item: &Item<'_>) -> Result<Batch, ProfileError> {
    let text = item.text()?.trim();
    Batch::from_name(text)
        .ok_or_else(|| item.complain(format!("'{text}' is no type of batch; write LOGGED, UNLOGGED, COUNTER or NONE")))
}

fn above_0(item: &Item<'_>) -> Result<u32, ProfileError> {
    let text = item.text()?.trim();
    text.parse()
        .ok()
        .filter(|number| *number > 0)
        .ok_or_else(|| item.complain(format!("'{text}' is out of range; write a whole number above 0")))
}

fn request(map: &mut Map<'_>) -> Result<RequestSpec, ProfileError> {
    let serial = |item: Item<'_>| match item.parsed::<Consistency>()? {
        Consistency::Serial => Ok(SerialConsistency::Serial),
        Consistency::LocalSerial => Ok(SerialConsistency::LocalSerial),
        _ => Err(item.complain("a serial consistency level is SERIAL or LOCAL_SERIAL")),
    };
    Ok(RequestSpec {
        consistency: map.parsed("consistencyLevel")?,
        serial_consistency: map.take("serialConsistencyLevel")?.map(serial).transpose()?,
        rate: map.parsed("rate")?,
        pin: map.text("pin")?.map(|host| host.trim().to_owned()),
    })
}

fn queries(item: &Item<'_>) -> Result<Vec<Query>, ProfileError> {
    let mut queries = Vec::new();
    for (name, item) in item.map()?.entries() {
        let mut map = item.map()?;
        let mut as_written = item.map()?;
        let mut written = |key| Ok::<_, ProfileError>(as_written.text(key)?.map(str::to_owned));
        let written = [written("fields")?, written("consistencyLevel")?, written("serialConsistencyLevel")?];
        let cql = map.text("cql")?.filter(|cql| !cql.trim().is_empty());
        let cql = cql.ok_or_else(|| map.complain("a query needs its statement, as in cql: SELECT …"))?.to_owned();
        let fields = match map.take("fields")? {
            None => Fields::default(),
            Some(item) => match item.text()?.trim().to_ascii_lowercase().as_str() {
                "samerow" => Fields::SameRow,
                "multirow" => Fields::MultiRow,
                other => {
                    return Err(item.complain(format!(
                        "'{other}' says nothing about fields; write samerow (all from one row) or multirow (each from a row \
                         of its own)"
                    )));
                }
            },
        };
        let page_size = map.take("page_size")?.map(|item| above_0(&item)).transpose()?;
        let check = map.take("check")?.map(|item| yes(&item)).transpose()?.unwrap_or(false);
        let request = request(&mut map)?;
        map.finish("Unrecognised key of a query")?;
        queries.push(Query { name: name.to_owned(), cql, fields, page_size, check, request, written });
    }
    Ok(queries)
}

fn yes(item: &Item<'_>) -> Result<bool, ProfileError> {
    match item.text()?.trim().to_ascii_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        other => Err(item.complain(format!("'{other}' is neither true nor false"))),
    }
}

fn ranges(item: &Item<'_>) -> Result<Vec<TokenRangeQuery>, ProfileError> {
    let mut queries = Vec::new();
    for (name, item) in item.map()?.entries() {
        let mut map = item.map()?;
        let columns = map.text("columns")?.map(str::trim).filter(|columns| !columns.is_empty());
        let columns = columns.ok_or_else(|| map.complain("name the columns to read, as in columns: '*'"))?.to_owned();
        let page_size = map.take("page_size")?.map(|item| above_0(&item)).transpose()?.unwrap_or(PAGE_SIZE);
        let request = request(&mut map)?;
        map.finish("Unrecognised key of a token range query")?;
        queries.push(TokenRangeQuery { name: name.to_owned(), columns, page_size, request });
    }
    Ok(queries)
}

/// `share: size` entries, or the output of `nodetool tablehistograms` in a file.
fn sizes(item: &Item<'_>, files: Files<'_>, profile: &Profile) -> Result<SizeTarget, ProfileError> {
    if !item.is_map() {
        return histogram(item, item.text()?, files, profile, false, None);
    }
    let mut map = item.map()?;
    if let Some(file) = map.take("tablehistograms")? {
        let cells = match map.take("column")? {
            None => false,
            Some(item) => match item.text()?.trim().to_ascii_lowercase().replace(['_', ' '], "-").as_str() {
                "partition-size" => false,
                "cell-count" => true,
                other => {
                    return Err(item.complain(format!("'{other}' is no column; write partition-size or cell-count")));
                }
            },
        };
        let table = map.text("table")?;
        map.finish("Unrecognised key of partition_sizes")?;
        return histogram(&file, file.text()?, files, profile, cells, table);
    }
    let entries = map.entries();
    let entries = entries.iter().map(|(share, amount)| Ok((*share, amount.text()?))).collect::<Result<Vec<_>, _>>()?;
    SizeTarget::from_entries(entries).map_err(|error| item.complain(error.to_string()))
}

fn histogram(
    item: &Item<'_>,
    name: &str,
    files: Files<'_>,
    profile: &Profile,
    cells: bool,
    table: Option<&str>,
) -> Result<SizeTarget, ProfileError> {
    let path = item.source().directory().join(Path::new(name.trim()));
    let text = files(&path).map_err(|error| {
        item.complain(format!(
            "{} cannot be read: {error}; save one with: nodetool tablehistograms {} {} > {name}",
            path.display(),
            profile.keyspace,
            profile.table
        ))
    })?;
    let wrong = |error: brownout_generate::sizes::SizeError| item.complain(error.to_string());
    let all = parse_tablehistograms(&text).map_err(wrong)?;
    let found = pick(&all, table, profile).ok_or_else(|| {
        let known: Vec<&str> = all.iter().map(|histogram| histogram.table.as_str()).collect();
        item.complain(format!("{} has histograms of {}; choose one with table:", path.display(), known.join(", ")))
    })?;
    if cells { SizeTarget::from_cell_count(found) } else { SizeTarget::from_partition_size(found) }.map_err(wrong)
}

/// The named table, or else the profile's own, or else the only one.
fn pick<'a>(all: &'a [TableHistogram], table: Option<&str>, profile: &Profile) -> Option<&'a TableHistogram> {
    let plain = |name: &str| name.replace('/', ".").to_ascii_lowercase();
    let own = format!("{}.{}", profile.keyspace, profile.table);
    let wanted = plain(table.unwrap_or(&own));
    let by_name: HashMap<String, &TableHistogram> =
        all.iter().map(|histogram| (plain(&histogram.table), histogram)).collect();
    match (by_name.get(&wanted), table, all) {
        (Some(found), ..) => Some(found),
        (None, None, [only]) => Some(only),
        _ => None,
    }
}
