//! Tables and keys inside a message. A decoded table with incomplete rows is refused.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::array::{self, Word};
use crate::data::{Comparison, Form, Keys, Matrix, Sealed, TextTable};

#[derive(Serialize)]
struct TableView<'a, T: Word> {
    columns: usize,
    #[serde(with = "array")]
    values: &'a [T],
}

#[derive(Deserialize)]
#[serde(bound = "")]
struct Table<T: Word> {
    columns: usize,
    #[serde(with = "array")]
    values: Vec<T>,
}

impl<T: Word> Serialize for Matrix<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        TableView { columns: self.columns(), values: self.values() }.serialize(serializer)
    }
}

impl<'de, T: Word> Deserialize<'de> for Matrix<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Table { columns, values } = Table::<T>::deserialize(deserializer)?;
        if !values.len().is_multiple_of(columns) {
            let problem = format!("{} values do not fill rows of {columns}", values.len());
            return Err(D::Error::custom(problem));
        }
        Ok(Self::new(columns, values))
    }
}

/// The text of all cells in one string, with the end of each cell.
#[derive(Serialize, Deserialize)]
struct Cells {
    columns: usize,
    #[serde(with = "array")]
    ends: Vec<u64>,
    text: String,
    /// Comparison of each column; empty if the cells decide it.
    compared: Vec<Comparison>,
}

impl Serialize for TextTable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (text, ends) = self.parts();
        let ends = ends.iter().map(|&end| end as u64).collect();
        let compared = self.given_forms().iter().map(|form| form.comparison).collect();
        Cells { columns: self.columns(), ends, text: text.to_string(), compared }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for TextTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Cells { columns, ends, text, compared } = Cells::deserialize(deserializer)?;
        if columns == 0 || !ends.len().is_multiple_of(columns) {
            return Err(D::Error::custom(format!("{} cells do not fill rows of {columns}", ends.len())));
        }
        let ends =
            ends.into_iter().map(usize::try_from).collect::<Result<_, _>>().map_err(D::Error::custom)?;
        if !compared.is_empty() && compared.len() != columns {
            return Err(D::Error::custom(format!(
                "{} comparisons do not fit {columns} columns",
                compared.len()
            )));
        }
        let form = |comparison| Form { comparison, dates: None, decimal: None };
        TextTable::try_from_ends(columns, text, ends)
            .map(|table| table.with_forms(compared.into_iter().map(form).collect()))
            .ok_or_else(|| D::Error::custom("the ends of the cells do not cover the text exactly"))
    }
}

#[derive(Serialize)]
struct SealedView<'a> {
    rows: usize,
    columns: usize,
    #[serde(with = "array")]
    bytes: &'a [u8],
}

#[derive(Deserialize)]
struct SealedParts {
    rows: usize,
    columns: usize,
    #[serde(with = "array")]
    bytes: Vec<u8>,
}

impl Serialize for Sealed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        SealedView { rows: self.rows(), columns: self.columns(), bytes: self.bytes() }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Sealed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let SealedParts { rows, columns, bytes } = SealedParts::deserialize(deserializer)?;
        Ok(Self::new(rows, columns, bytes))
    }
}

impl Serialize for Keys {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Numbers(keys) => serializer.serialize_newtype_variant("Keys", 0, "Numbers", keys),
            Self::Text(keys) => serializer.serialize_newtype_variant("Keys", 1, "Text", keys),
            Self::Sealed(keys) => serializer.serialize_newtype_variant("Keys", 2, "Sealed", keys),
        }
    }
}

#[derive(Deserialize)]
enum AnyKeys {
    Numbers(Matrix<f64>),
    Text(TextTable),
    Sealed(Sealed),
}

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match AnyKeys::deserialize(deserializer)? {
            AnyKeys::Numbers(keys) => Self::Numbers(keys),
            AnyKeys::Text(keys) => Self::Text(keys),
            AnyKeys::Sealed(keys) => Self::Sealed(keys),
        })
    }
}
