//! Declaration of a problem: packages, tables, and the text of its README.

use serde::Deserialize;

/// Problem with tables of several parties.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Problem {
    /// Name on the command line.
    pub name: String,
    /// Description on one line.
    pub summary: String,
    /// Question of the study.
    pub question: String,
    /// Label, its unit and its source.
    pub label: String,
    /// Keys, their unit and their errors.
    pub keys: String,
    /// Assignment of the rows to training, validation and test.
    pub split: String,
    /// Model without the other parties, and other comparisons.
    pub control: String,
    /// Steps of the preparation.
    pub preparation: String,
    /// Packages to download.
    #[serde(default)]
    pub packages: Vec<Package>,
    /// Files that no package contains, and that the user saves.
    #[serde(default)]
    pub own_files: Vec<OwnFile>,
    /// Prepared tables: the primary's first.
    pub tables: Vec<PreparedTable>,
}

/// File of a package index.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Package {
    /// Name of the project in the index, in its normal form.
    pub project: String,
    /// Name of the file.
    pub file: String,
    /// Size of the file in bytes.
    pub size: u64,
    /// SHA-256 checksum of the file.
    pub sha256: String,
    /// Licence of the package.
    pub licence: String,
}

/// File that the user saves.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnFile {
    /// Name of the file.
    pub file: String,
    /// Place to find it, and its columns.
    pub source: String,
}

/// Purpose of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The primary's table, with the label.
    Primary,
    /// Table of another party.
    Secondary,
    /// True record of another party for each row of the primary, in the primary's order. Only for comparison.
    Truth,
}

/// Prepared table.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PreparedTable {
    /// Name of the file.
    pub file: String,
    /// Purpose of the table.
    pub role: Role,
    /// Number of rows.
    pub rows: usize,
    /// SHA-256 checksum of the whole file; empty if it depends on files of the user.
    #[serde(default)]
    pub sha256: String,
    /// Content.
    pub content: String,
    /// Source of the data.
    #[serde(default)]
    pub source: String,
    /// Licence of the data.
    #[serde(default)]
    pub licence: String,
}

impl Problem {
    /// Returns the tables with this purpose.
    pub fn tables_with(&self, role: Role) -> impl Iterator<Item = &PreparedTable> {
        self.tables.iter().filter(move |table| table.role == role)
    }

    /// Returns the distinct licences of the tables.
    pub fn licences(&self) -> Vec<&str> {
        let mut all: Vec<&str> = Vec::new();
        for table in &self.tables {
            if !table.licence.is_empty() && !all.contains(&table.licence.as_str()) {
                all.push(&table.licence);
            }
        }
        all
    }
}
