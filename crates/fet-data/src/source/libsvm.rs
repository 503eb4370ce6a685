//! `libsvm`: a labelled table of sparse rows, `label index:value ...`, in the format of the LIBSVM
//! collection.
//!
//! Rows are stored densely, for tables like gisette, which are in fact dense.

use std::path::Path;

use fet_core::data::{DataError, DatasetContext, Folders, Labelled, Matrix, Source, Task};
use fet_core::registry::{Plugin, Recipe, Violation};
use fet_io::memory;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::read::{bytes, classes};

/// Settings of `libsvm`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LibsvmSettings {
    /// File in the format of LIBSVM; may end in `.gz`. The program searches the experiment's folder, then the
    /// data folder.
    pub file: String,
    /// Number of feature columns; 0 for the largest index in the file.
    pub columns: usize,
    /// Prediction task: a number, one of two classes or one of several. For a binary task, the labels -1 and
    /// +1 become 0 and 1.
    pub task: Task,
}

impl Default for LibsvmSettings {
    fn default() -> Self {
        Self { file: String::new(), columns: 0, task: Task::Binary }
    }
}

impl Recipe<dyn Source> for LibsvmSettings {
    fn build(&self, context: &DatasetContext<'_>) -> Result<Box<dyn Source>, Violation> {
        Ok(Box::new(Libsvm { settings: self.clone(), folders: context.folders.clone() }))
    }
}

inventory::submit! {
    Plugin::<dyn Source>::new::<LibsvmSettings>("libsvm", "a labelled table of sparse rows, index:value")
}

struct Libsvm {
    settings: LibsvmSettings,
    folders: Folders,
}

impl Source for Libsvm {
    fn files(&self) -> Vec<String> {
        vec![self.settings.file.clone()]
    }

    fn read(&self) -> Result<Labelled, DataError> {
        let (path, bytes) = bytes(&self.folders, &self.settings.file, "source.file")?;
        let text =
            String::from_utf8(bytes).map_err(|_| DataError::new(path.display(), "is not valid UTF-8"))?;
        parse(&path, &text, &self.settings)
    }
}

fn parse(path: &Path, text: &str, settings: &LibsvmSettings) -> Result<Labelled, DataError> {
    let place = |line: usize| format!("{} line {}", path.display(), line + 1);
    let (mut labels, mut rows, mut widest) = (Vec::new(), Vec::new(), 0);
    // Either 0 or -1 denotes the first class; a file must not mix the two.
    let (mut zero, mut minus) = (false, false);
    for (line, row) in text.lines().enumerate().filter(|(_, row)| !row.trim().is_empty()) {
        let mut words = row.split_ascii_whitespace();
        let label = words.next().unwrap_or_default();
        let label = finite::<f64>(label).ok_or_else(|| {
            DataError::new(place(line), format!("the label must be a finite number; it is \"{label}\""))
        })?;
        if settings.task == Task::Binary {
            zero |= label == 0.0;
            minus |= label == -1.0;
            if zero && minus {
                let problem = "labels of two classes are 1 and 0, or 1 and -1; the file has both 0 and -1";
                return Err(DataError::new(place(line), problem));
            }
        }
        labels.push(if settings.task == Task::Binary && label == -1.0 { 0.0 } else { label });
        let mut cells: Vec<(usize, f32)> = Vec::new();
        for word in words {
            let cell =
                word.split_once(':').and_then(|(index, value)| Some((index.parse().ok()?, finite(value)?)));
            let Some((index, value)) = cell else {
                return Err(DataError::new(
                    place(line),
                    format!("must have the form index:number; it is \"{word}\""),
                ));
            };
            if index == 0 || cells.last().is_some_and(|&(last, _)| index <= last) {
                let problem = format!("indices must begin at 1 and ascend; one is {index}");
                return Err(DataError::new(place(line), problem));
            }
            if settings.columns > 0 && index > settings.columns {
                let problem =
                    format!("indices must not exceed `columns` ({}); one is {index}", settings.columns);
                return Err(DataError::new(place(line), problem));
            }
            cells.push((index, value));
            widest = widest.max(index);
        }
        rows.push(cells);
    }
    if widest == 0 {
        return Err(DataError::new(path.display(), "lacks rows with features"));
    }
    let columns = if settings.columns > 0 { settings.columns } else { widest };
    memory::check(rows.len() as u128 * columns as u128, size_of::<f32>() as u128).map_err(|error| {
        let problem = format!(
            "must fit in memory as {} rows of {columns} columns ({error}); the largest index is {widest}",
            rows.len()
        );
        DataError::new(path.display(), problem)
    })?;
    let mut values = vec![0.0; rows.len() * columns];
    for (row, cells) in values.chunks_exact_mut(columns).zip(&rows) {
        for &(index, value) in cells {
            row[index - 1] = value;
        }
    }
    let classes = classes(settings.task, &labels, |row| format!("{} row {row} (from 0)", path.display()))?;
    Ok(Labelled { task: settings.task, classes, features: Matrix::new(columns, values), labels })
}

fn finite<T: Copy + Into<f64> + std::str::FromStr>(text: &str) -> Option<T> {
    text.parse::<T>().ok().filter(|&number| number.into().is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, columns: usize, task: Task) -> Result<Labelled, DataError> {
        parse(Path::new("x.svm"), text, &LibsvmSettings { file: "x.svm".into(), columns, task })
    }

    #[test]
    fn rows_become_dense() {
        let data = read("+1 1:0.5 3:-2\n\n-1 2:7 \n", 0, Task::Binary).expect("a good file");
        assert_eq!(data.features.values(), [0.5, 0.0, -2.0, 0.0, 7.0, 0.0]);
        assert_eq!((data.labels, data.classes), (vec![1.0, 0.0], 2));
        assert_eq!(read("2 1:1\n", 5, Task::Multiclass).expect("a good file").features.columns(), 5);
    }

    #[test]
    fn damaged_rows_are_refused() {
        let check = |text: &str, part: &str| {
            let error = read(text, 4, Task::Binary).expect_err("refused").to_string();
            assert!(error.contains("x.svm") && error.contains(part), "{part} in {error}");
        };
        check("", "lacks rows with features");
        check("one 1:1\n", "line 1: the label must be a finite number; it is \"one\"");
        check("1 1:1\n1 0:1\n", "line 2: indices must begin at 1");
        check("1 2:1 2:1\n", "ascend; one is 2");
        check("1 5:1\n", "must not exceed `columns` (4); one is 5");
        check("1 1:NaN\n", "index:number; it is \"1:NaN\"");
        check("3 1:1\n", "must be 0 or 1");
        check(
            "1 1:1\n-1 1:1\n0 1:1\n",
            "line 3: labels of two classes are 1 and 0, or 1 and -1; the file has both",
        );
        let huge = read("1 18446744073709551615:1\n", 0, Task::Binary).expect_err("refused").to_string();
        assert!(huge.contains("x.svm") && huge.contains("memory"), "{huge}");
    }
}
