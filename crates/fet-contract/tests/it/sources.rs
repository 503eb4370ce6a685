//! A source of one file of numbers, sound and with a planted fault.

use std::path::PathBuf;

use fet_contract::{slot, sources};
use fet_core::data::{DataError, DatasetContext, Labelled, Matrix, Source, Task};
use fet_core::registry::{Plugin, Recipe, Violation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::panic_of;

/// Settings of `lines`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct LinesSettings {
    /// File with one number a line.
    file: String,
    /// Planted fault; empty for none.
    fault: String,
}

impl Recipe<dyn Source> for LinesSettings {
    fn build(&self, context: &DatasetContext<'_>) -> Result<Box<dyn Source>, Violation> {
        Ok(Box::new(Lines { path: context.folders.find(&self.file), settings: self.clone() }))
    }
}

inventory::submit! { Plugin::<dyn Source>::new::<LinesSettings>("lines", "one number a line") }

struct Lines {
    settings: LinesSettings,
    path: PathBuf,
}

impl Lines {
    fn has(&self, fault: &str) -> bool {
        self.settings.fault == fault
    }
}

impl Source for Lines {
    fn files(&self) -> Vec<String> {
        match self.settings.fault.as_str() {
            "unlisted" => Vec::new(),
            "invented" => vec!["other.txt".into()],
            _ => vec![self.settings.file.clone()],
        }
    }

    fn read(&self) -> Result<Labelled, DataError> {
        let place = if self.has("nameless") { "the file".into() } else { self.path.display().to_string() };
        let text = std::fs::read_to_string(&self.path).map_err(|error| DataError::new(place, error))?;
        let mut values: Vec<f32> = text.lines().filter_map(|line| line.parse().ok()).collect();
        let mut labels: Vec<f64> = values.iter().map(|value| f64::from(u8::from(*value > 1.0))).collect();
        match self.settings.fault.as_str() {
            "infinite" => values[1] = f32::INFINITY,
            "third class" => labels[1] = 2.0,
            "short" => drop(labels.pop()),
            _ => (),
        }
        let classes = if self.has("three classes") { 3 } else { 2 };
        Ok(Labelled { task: Task::Binary, classes, features: Matrix::new(1, values), labels })
    }
}

#[test]
fn accepts_a_sound_source_and_names_the_broken_law() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("numbers.txt"), "1\n2\n3\n").expect("writable");
    let check = |fault: &str| {
        let settings = format!("kind = 'lines'\nfile = 'numbers.txt'\nfault = '{fault}'");
        panic_of(|| sources::check(&slot(&settings), folder.path()))
    };
    assert_eq!(check(""), "");
    for (fault, law) in [
        ("infinite", "not finite"),
        ("third class", "wrong label"),
        ("short", "rows and labels"),
        ("three classes", "3 classes for Binary"),
        ("unlisted", "`files` must list"),
        ("invented", "not in the folder"),
        ("nameless", "must name numbers.txt"),
    ] {
        let message = check(fault);
        assert!(message.contains(law) && message.contains("lines"), "{fault}: {message}");
    }
}
