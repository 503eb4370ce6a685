//! `python`: a linker in Python.
//!
//! The settings name the class and the hash of its source. `fet/plugins.py` imports the class, compares the hash, and checks the
//! links that the class returns. Keys leave the primary in the clear.

use fet_contract::linkers;
use fet_core::data::{KeyKind, Keys};
use fet_core::linker::{
    About, DataHolder, LinkError, LinkTask, Linker, Links, Reveals, check_either, check_numbers, check_text,
};
use fet_core::registry::{Plugin, Recipe, Slot, Violation};
use fet_io::input::input;
use pyo3::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::calls::call;
use crate::cells::Cells;
use crate::errors::raised;
use crate::plugin::{self, MODULE};
use crate::work::wait;

/// Settings of `python`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PythonSettings {
    /// Class of the linker, as `package.module:Class`.
    pub plugin: String,
    /// SHA-256 of the file with the class, as 64 hexadecimal digits. The linker refuses code from a file with another hash.
    pub source: String,
    /// Number K of records that are linked to each primary record.
    #[schemars(range(min = 1))]
    pub neighbours: usize,
    /// True if a party with fewer than K records repeats its records up to K (repeats are masked out). If
    /// false, the linker refuses such a party.
    pub pad: bool,
    /// Arguments of the class.
    #[schemars(schema_with = "plugin::table")]
    #[serde(skip_serializing_if = "toml::Table::is_empty")]
    pub options: toml::Table,
}

impl Default for PythonSettings {
    fn default() -> Self {
        Self {
            plugin: String::new(),
            source: String::new(),
            neighbours: 20,
            pad: false,
            options: toml::Table::new(),
        }
    }
}

impl Recipe<dyn Linker> for PythonSettings {
    fn check(&self) -> Result<(), Violation> {
        plugin::check(&self.plugin)
    }

    fn build(&self, (): &()) -> Result<Box<dyn Linker>, Violation> {
        let settings = self.clone();
        let (takes, similarities, independent, floor) = call(move |py| {
            let options = plugin::options(py, &settings.options)?;
            let about = py.import(MODULE)?.getattr("linker_about")?;
            about
                .call1((settings.plugin, settings.source, options))?
                .extract::<(String, bool, bool, Option<f32>)>()
        })
        .map_err(|error| plugin::violation(&error, &self.plugin))?;
        let takes = match takes.as_str() {
            "text" => KeyKind::Text,
            "either" => KeyKind::Either,
            _ => KeyKind::Numbers,
        };
        let reveals = Reveals {
            secondary: "every primary key, in the clear",
            primary: "nothing",
            eavesdropper: "every primary key, unless messages are encrypted",
        };
        let about = About { similarities, independent, floor, ..About::new(self.neighbours, takes, reveals) };
        Ok(Box::new(PythonLinker { settings: self.clone(), about }))
    }
}

inventory::submit! {
    Plugin::<dyn Linker>::new::<PythonSettings>("python", "a class in Python")
}

struct PythonLinker {
    settings: PythonSettings,
    about: About,
}

impl Linker for PythonLinker {
    fn about(&self) -> About {
        self.about
    }

    fn data_holder(&self, seed: u64) -> Box<dyn DataHolder> {
        Box::new(PythonDataHolder { settings: self.settings.clone(), takes: self.about.takes, seed })
    }
}

struct PythonDataHolder {
    settings: PythonSettings,
    takes: KeyKind,
    seed: u64,
}

impl DataHolder for PythonDataHolder {
    fn link(&mut self, task: &LinkTask<'_>) -> Result<Links, LinkError> {
        let LinkTask { queries, records, .. } = *task;
        let PythonSettings { neighbours, pad, .. } = self.settings;
        match (self.takes, queries) {
            (KeyKind::Text, _) => drop(check_text(queries, records, neighbours, pad)?),
            (KeyKind::Either, Keys::Text(_) | Keys::Sealed(_)) => {
                check_either(queries, records, neighbours, pad)?;
            }
            (KeyKind::Numbers | KeyKind::Either, _) => {
                check_numbers(queries, records, neighbours, pad)?;
            }
        }
        let take = neighbours.min(records.rows());
        let (settings, seed) = (self.settings.clone(), self.seed);
        let cells = (Cells::new(queries), Cells::new(records));
        let found = call(move |py| {
            let options = plugin::options(py, &settings.options)?;
            let link = py.import(MODULE)?.getattr("linker_link")?;
            let (queries, records) = (cells.0.python(py)?, cells.1.python(py)?);
            let found =
                link.call1((settings.plugin, settings.source, options, queries, records, take, seed))?;
            found.extract::<(Vec<u8>, Option<Vec<u8>>)>()
        });
        let (indices, similarities) = found.map_err(|error| failed(&error))?;
        let indices = indices.as_chunks().0.iter().map(|bytes| u32::from_ne_bytes(*bytes)).collect();
        let similarities = similarities
            .map(|bytes| bytes.as_chunks().0.iter().map(|bytes| f32::from_ne_bytes(*bytes)).collect());
        let links = repeated(neighbours, take, queries.rows(), records.rows(), indices, similarities);
        let links = links.ok_or_else(|| {
            LinkError::Setting(format!("`linker.plugin`: {} returned invalid links", self.settings.plugin))
        })?;
        (task.progress)(queries.rows());
        Ok(links)
    }
}

/// Returns links from `take` neighbours of each query, repeated up to K, or `None` if they are invalid.
fn repeated(
    neighbours: usize,
    take: usize,
    queries: usize,
    records: usize,
    indices: Vec<u32>,
    similarities: Option<Vec<f32>>,
) -> Option<Links> {
    let is_sound = queries.checked_mul(take) == Some(indices.len())
        && indices.iter().all(|&index| (index as usize) < records)
        && similarities.as_ref().is_none_or(|all| all.len() == indices.len());
    if !is_sound {
        return None;
    }
    let places =
        || (0..queries).flat_map(move |row| (0..neighbours).map(move |place| row * take + place % take));
    let indices = places().map(|place| indices[place]).collect();
    Some(match similarities {
        Some(all) => Links::new(neighbours, take, indices, places().map(|place| all[place]).collect()),
        None => Links::without_similarities(neighbours, take, indices),
    })
}

/// Makes an error of an exception. The text of an exception of the user's code may contain keys; that of the package does not.
fn failed(error: &PyErr) -> LinkError {
    plugin::stated(error).map_or_else(|| LinkError::Code(plugin::described(error)), LinkError::Setting)
}

/// Tests the laws of linkers on a linker with these settings, in JSON, and returns the broken law.
#[pyfunction]
pub(crate) fn check_linker(settings: &str, note: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    let settings: toml::Table = serde_json::from_str(settings).map_err(|error| raised(&input(error)))?;
    wait(note, move |_| {
        let slot = Slot::<dyn Linker>::from_table(settings).map_err(input)?;
        slot.build(&()).map_err(input)?;
        Ok(plugin::broken_law(|| linkers::check(&slot)))
    })
}
