//! The settings of the split of the primary's records into training, validation and test records.

use fet_eval::Fractions;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::registry::Violation;

/// Split of the primary's records into training, validation and test records. It concerns only the primary,
/// and all methods of a study share it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SplitSettings {
    /// Rule that assigns records to parts.
    pub kind: SplitKind,
    /// Column of the primary's table that decides a split by time, group or column, or replaces the label in
    /// a stratified split; it may be a dropped column.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub column: String,
    /// Table with a column `part`, and one row for each row of the primary's file.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub file: String,
    /// Share of records for validation, which selects the epoch.
    #[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 1))]
    pub validation: f64,
    /// Share of records for the test.
    #[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 1))]
    pub test: f64,
    /// Share of the training records that the run uses, drawn by seed; all other training records are left
    /// out. A smaller share is part of a larger one, so that several runs show the effect of more labels.
    #[serde(skip_serializing_if = "is_whole")]
    #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
    pub training_share: f64,
    /// Number of folds of a cross-validation, each tested once; 0 for none.
    #[schemars(extend("x-rule" = "0, or at least 2"))]
    pub folds: usize,
    /// Fold that this run tests, from 0.
    #[schemars(extend("x-rule" = "below `folds`"))]
    pub fold: usize,
    /// True if this run is part of a search over settings, which must not see the test rows. Half of the
    /// validation rows then select the epoch, and the other half replaces the test rows.
    #[serde(skip_serializing_if = "is_false")]
    pub tuning: bool,
}

fn is_false(value: &bool) -> bool {
    !value
}

fn is_whole(share: &f64) -> bool {
    *share == 1.0
}

/// Rule that assigns records to parts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SplitKind {
    /// At random.
    #[default]
    Random,
    /// With each class, or each decile of a number, in the same proportions in every part.
    Stratified,
    /// By time: the latest records are for the test, the records before them for validation.
    Time,
    /// By group: all records of a group are in the same part.
    Group,
    /// By a column of the primary that contains "train", "validation" or "test".
    Column,
    /// By a file.
    File,
}

impl Default for SplitSettings {
    fn default() -> Self {
        let usual = Fractions::default();
        Self {
            kind: SplitKind::Random,
            column: String::new(),
            file: String::new(),
            validation: usual.validation(),
            test: usual.test(),
            training_share: 1.0,
            folds: 0,
            fold: 0,
            tuning: false,
        }
    }
}

/// Name of the column in a file of parts.
pub const PART: &str = "part";

impl SplitSettings {
    /// Returns the shares of the parts.
    pub fn fractions(&self) -> Result<Fractions, Violation> {
        Fractions::new(self.validation, self.test).map_err(|error| {
            let value = format!("{} and {}", self.validation, self.test);
            Violation::new(
                "split.validation",
                format!("must leave a share of the records for each part ({error})"),
                value,
            )
        })
    }

    /// Refuses settings that do not describe a split.
    pub(super) fn check(&self) -> Result<(), Violation> {
        use SplitKind::{Column, File, Group, Stratified, Time};
        self.fractions()?;
        let refuse =
            |field: &str, rule: &str, value: String| Err(Violation::new(field, rule, value).within("split"));
        let quoted = |text: &str| format!("\"{text}\"");
        if matches!(self.kind, Time | Group | Column) && self.column.is_empty() {
            return refuse(
                "column",
                "must name a column of the primary's table for this kind of split",
                quoted(""),
            );
        }
        if !matches!(self.kind, Time | Group | Column | Stratified) && !self.column.is_empty() {
            return refuse("column", "must be left out for this kind of split", quoted(&self.column));
        }
        if (self.kind == File) == self.file.is_empty() {
            return refuse(
                "file",
                "must name a table for the kind \"file\", and for no other",
                quoted(&self.file),
            );
        }
        let usual = Self::default();
        let given = matches!(self.kind, Column | File);
        for (field, value, is_used) in [
            ("test", self.test, self.test == usual.test || !(given || self.folds > 0)),
            ("validation", self.validation, self.validation == usual.validation || !given),
        ] {
            if !is_used {
                let by =
                    if given { "the parts are given record by record" } else { "each fold is tested once" };
                return refuse(field, &format!("must be left out: {by}"), value.to_string());
            }
        }
        if self.folds == 1 || (self.folds > 0 && given) {
            let rule = "must be 0, or at least 2 for a split that is not given record by record";
            return refuse("folds", rule, self.folds.to_string());
        }
        if self.fold >= self.folds.max(1) {
            let rule = format!("must be below the number of folds ({})", self.folds.max(1));
            return refuse("fold", &rule, self.fold.to_string());
        }
        Ok(())
    }
}
