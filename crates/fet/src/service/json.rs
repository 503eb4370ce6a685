//! Rows of a request in JSON, `{"rows": [{"COLUMN": VALUE}]}`, read without more memory than the allowed rows need.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserializer;
use serde::de::{Deserialize, DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Cells of a row as texts, sorted by column, so that their order does not depend on the client. A missing cell is `None`.
pub(super) type Row = BTreeMap<String, Option<String>>;

/// Reason why a body is no table.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BodyError {
    /// The body has more rows than a request may have.
    TooMany,
    /// The body is invalid.
    Invalid(String),
}

/// Mark of the error for too many rows.
const TOO_MANY: &str = "too many rows";

/// Reads the rows of a body, at most `most`.
pub(super) fn rows(body: &[u8], most: usize) -> Result<Vec<Row>, BodyError> {
    let mut reader = serde_json::Deserializer::from_slice(body);
    let found = reader.deserialize_any(Body { most }).and_then(|rows| reader.end().map(|()| rows));
    found.map_err(|error| match error.to_string() {
        told if told.contains(TOO_MANY) => BodyError::TooMany,
        told => BodyError::Invalid(format!(
            "the body must be an object {{\"rows\": [{{\"COLUMN\": VALUE, ...}}, ...]}} ({told})"
        )),
    })
}

struct Body {
    most: usize,
}

impl<'de> Visitor<'de> for Body {
    type Value = Vec<Row>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with `rows`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<Row>, A::Error> {
        let mut rows = None;
        while let Some(name) = map.next_key::<String>()? {
            match name.as_str() {
                "rows" if rows.is_some() => return Err(A::Error::custom("the object has `rows` twice")),
                "rows" => rows = Some(map.next_value_seed(Rows { most: self.most })?),
                other => return Err(A::Error::custom(format!("unknown field `{other}`"))),
            }
        }
        rows.ok_or_else(|| A::Error::custom("the object lacks `rows`"))
    }
}

struct Rows {
    most: usize,
}

impl<'de> DeserializeSeed<'de> for Rows {
    type Value = Vec<Row>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Vec<Row>, D::Error> {
        reader.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Rows {
    type Value = Vec<Row>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of rows")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<Row>, A::Error> {
        let mut rows = Vec::new();
        while rows.len() < self.most {
            match list.next_element::<Cells>()? {
                Some(Cells(row)) => rows.push(row),
                None => return Ok(rows),
            }
        }
        match list.next_element::<IgnoredAny>()? {
            Some(_) => Err(A::Error::custom(TOO_MANY)),
            None => Ok(rows),
        }
    }
}

struct Cells(Row);

impl<'de> Deserialize<'de> for Cells {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        reader.deserialize_any(CellsVisitor)
    }
}

struct CellsVisitor;

impl<'de> Visitor<'de> for CellsVisitor {
    type Value = Cells;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a row must be an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Cells, A::Error> {
        let mut row = Row::new();
        while let Some((name, Cell(cell))) = map.next_entry::<String, Cell>()? {
            if row.contains_key(&name) {
                return Err(A::Error::custom(format!("a row has `{name}` twice")));
            }
            row.insert(name, cell);
        }
        Ok(Cells(row))
    }
}

struct Cell(Option<String>);

impl<'de> Deserialize<'de> for Cell {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        reader.deserialize_any(CellVisitor)
    }
}

struct CellVisitor;

impl Visitor<'_> for CellVisitor {
    type Value = Cell;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, a text, true, false or null")
    }

    fn visit_unit<E: Error>(self) -> Result<Cell, E> {
        Ok(Cell(None))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Cell, E> {
        Ok(Cell(Some(value.to_string())))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Cell, E> {
        Ok(Cell(Some(value.to_string())))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Cell, E> {
        Ok(Cell(Some(value.to_string())))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Cell, E> {
        Ok(Cell(Some(value.to_string())))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Cell, E> {
        Ok(Cell(Some(value.to_string())))
    }
}
