//! Small experiments for the soak: their text, and the tables that they need.

use std::fmt::Write;
use std::path::PathBuf;

use crate::soak::tables::{self, Table};

/// Training data of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Data {
    /// Handwritten digits split among four parties, linked by principal components.
    Digits,
    /// Handwritten digits, linked by words with typing errors.
    Names,
    /// Handwritten digits, linked exactly.
    Exact,
    /// Three tables with coordinates.
    Places,
    /// Three tables with coordinates, and a number as the label.
    Sales,
    /// Three tables with people's names.
    People,
}

/// Experiment from an existing file.
#[derive(Debug, Clone)]
pub(crate) struct Given {
    /// Path of the file.
    pub(crate) file: PathBuf,
    /// Number of parties without the primary.
    pub(crate) parties: usize,
    /// Folder of the data files, if it differs from the file's folder.
    pub(crate) data: Option<PathBuf>,
}

/// Experiment of a case.
#[derive(Debug, Clone)]
pub(crate) struct SoakExperiment {
    /// Training data.
    pub(crate) data: Data,
    /// Number of rows of a split data set; 0 for all.
    pub(crate) rows: usize,
    /// Settings tables by name, in TOML: `("method", "{ kind = \"fet\" }")`.
    pub(crate) tables: Vec<(&'static str, String)>,
    /// Seed of the experiment.
    pub(crate) seed: u64,
    /// True if the parties' noise and masks follow from the seed.
    pub(crate) rehearsal: bool,
    /// File that replaces the data, the tables and the seed.
    pub(crate) given: Option<Given>,
}

impl SoakExperiment {
    /// Returns the Federated Transformer with small layers, for two epochs.
    pub(crate) fn new(data: Data) -> Self {
        let linker = match data {
            Data::Names | Data::People => "{ kind = \"edit\", neighbours = 3 }",
            Data::Exact => "{ kind = \"exact\", neighbours = 1 }",
            _ => "{ kind = \"nearest\", neighbours = 3 }",
        };
        let tables = [
            ("train", "{ epochs = 2, batch_size = 64 }"),
            ("method", "{ kind = \"fet\", hidden = 8, heads = 2 }"),
            ("linker", linker),
        ];
        let tables = tables.map(|(name, text)| (name, text.to_string())).to_vec();
        Self { data, rows: 240, tables, seed: 0, rehearsal: true, given: None }
    }

    /// Replaces a settings table.
    pub(crate) fn with(mut self, name: &'static str, text: impl Into<String>) -> Self {
        self.tables.retain(|(other, _)| *other != name);
        self.tables.push((name, text.into()));
        self
    }

    /// Sets the number of rows of the split data set.
    pub(crate) fn rows(mut self, rows: usize) -> Self {
        self.rows = rows;
        self
    }

    /// Returns the number of parties without the primary.
    pub(crate) fn parties(&self) -> usize {
        if let Some(given) = &self.given {
            return given.parties;
        }
        match self.data {
            Data::Digits | Data::Names | Data::Exact => 3,
            Data::Places | Data::Sales | Data::People => 2,
        }
    }

    /// Returns the name of the file for commands.
    pub(crate) fn file(&self) -> String {
        self.given
            .as_ref()
            .map_or_else(|| "exp.toml".into(), |given| given.file.to_string_lossy().into_owned())
    }

    /// Returns the tables, the primary's first. Empty for a split data set.
    pub(crate) fn files(&self) -> Vec<Table> {
        if self.given.is_some() {
            return Vec::new();
        }
        match self.data {
            Data::Digits | Data::Names | Data::Exact => Vec::new(),
            Data::Places | Data::Sales => tables::places(),
            Data::People => tables::people(),
        }
    }

    /// Returns true if the range of every column is declared, as privacy requires.
    fn declares(&self) -> bool {
        self.tables.iter().any(|(name, _)| *name == "privacy")
    }

    /// Returns the settings of a secondary's table without its name and file, for the experiment or the
    /// party's file. `between` separates the settings.
    pub(crate) fn settings(&self, table: &Table, between: &str) -> String {
        let declared = if self.declares() { table.declared } else { "" };
        let declared = declared.replace(", categories", &format!("{between}categories"));
        let between = if declared.is_empty() { "" } else { between };
        format!("{}{between}{declared}", table.settings)
    }

    /// Returns the text of the experiment.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("name = \"soak\"\nseed = {}\n", self.seed);
        for (name, table) in &self.tables {
            let _ = writeln!(text, "{name} = {table}");
        }
        let _ = writeln!(text, "\n[data]");
        let cut = |keys: &str, noise: &str| {
            let rows = self.rows;
            format!(
                "kind = \"split\"\nparties = 4\nrows = {rows}\nkeys = \"{keys}\"\nkey_noise = {noise}\n\
                 source = {{ kind = \"digits\" }}\n{}",
                if self.declares() { "bounds = [0.0, 16.0]\n" } else { "" }
            )
        };
        let linked = |task: &str, label: &str, drop: &str, keys: &str| {
            let mut text =
                format!("kind = \"linked\"\ntask = \"{task}\"\nlabel = \"{label}\"\nkey_kind = \"{keys}\"\n");
            let entry = |table: &Table, more: &str| {
                let (name, settings) = (table.name, self.settings(table, ", "));
                format!("{{ name = \"{name}\", file = \"{name}.csv\", {settings}{more} }}")
            };
            let files = self.files();
            let drop = format!(", drop = [{drop}]");
            let _ = writeln!(text, "primary = {}", entry(&files[0], &drop));
            let others: Vec<String> = files[1..].iter().map(|table| entry(table, "")).collect();
            let _ = writeln!(text, "secondaries = [{}]", others.join(", "));
            text
        };
        text += &match self.data {
            Data::Digits => cut("principal", "0.05"),
            Data::Names => cut("names", "0.05"),
            Data::Exact => cut("uniform", "0.0"),
            Data::Places => linked("binary", "busy", "\"sales\"", "numbers"),
            Data::Sales => linked("regression", "sales", "\"busy\"", "numbers"),
            Data::People => linked("binary", "ill", "", "text"),
        };
        text
    }
}
