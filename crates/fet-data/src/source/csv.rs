//! `csv`: a labelled table in a CSV file.

use fet_core::data::{DataError, DatasetContext, Folders, Labelled, Source, Task};
use fet_core::registry::{Plugin, Recipe, Violation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::read::classes;
use crate::read::table::FileTable;
use fet_core::data::Matrix;
use fet_tables::Options;

/// Settings of `csv`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CsvSettings {
    /// CSV file; may end in `.gz`. The program searches the experiment's folder, then the data folder.
    pub file: String,
    /// Name of the label column.
    pub label: String,
    /// Names of columns to leave out; empty to use all.
    pub drop: Vec<String>,
    /// Prediction task: a number, one of two classes or one of several.
    pub task: Task,
}

impl Recipe<dyn Source> for CsvSettings {
    fn build(&self, context: &DatasetContext<'_>) -> Result<Box<dyn Source>, Violation> {
        Ok(Box::new(Csv { settings: self.clone(), folders: context.folders.clone() }))
    }
}

inventory::submit! {
    Plugin::<dyn Source>::new::<CsvSettings>("csv", "a labelled table in a CSV file")
}

struct Csv {
    settings: CsvSettings,
    folders: Folders,
}

impl Source for Csv {
    fn files(&self) -> Vec<String> {
        vec![self.settings.file.clone()]
    }

    fn read(&self) -> Result<Labelled, DataError> {
        let CsvSettings { file, label, drop, task } = &self.settings;
        let options = Options { drop: drop.clone(), ..Options::default() };
        let mut table = FileTable::read(&self.folders, file, "source.file", &options)?;
        let labels = table.take_numbers(std::slice::from_ref(label))?;
        let labels = labels.values().to_vec();
        let classes = classes(*task, &labels, |row| table.place(row, label))?;
        let names: Vec<String> = table.names().map(String::from).collect();
        if names.is_empty() {
            return Err(
                table.error("must have a feature column in addition to the label and the dropped columns")
            );
        }
        let features = table.take_numbers(&names)?;
        let features = Matrix::new(names.len(), features.values().iter().map(|&x| x as f32).collect());
        Ok(Labelled { task: *task, classes, features, labels })
    }
}
