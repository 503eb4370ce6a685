//! Answers that replace the primary's training labels before anything that depends on them leaves.

use fet_core::data::Task;
use fet_core::experiment::Experiment;
use fet_core::labels::{Exposure, LabelPrivacy, LabelProtection};
use fet_core::objective::Objective;
use fet_core::registry::Violation;
use fet_core::rng::{OwnSeed, Purpose};
use sha2::{Digest, Sha256};

/// A protection of training labels, prepared for a run.
pub(crate) struct LabelAnswers {
    protection: Box<dyn LabelProtection>,
    exposure: Exposure,
    /// Settings that determine an answer, as text.
    settings: String,
}

/// Records of the primary whose labels are replaced.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Replaced<'a> {
    pub(crate) records: &'a [usize],
    /// Row of each of the primary's records in the file, from 0; empty if the records have the order of the file.
    pub(crate) file_rows: &'a [usize],
}

impl Replaced<'_> {
    fn file_row(&self, record: usize) -> usize {
        self.file_rows.get(record).copied().unwrap_or(record)
    }

    /// Returns a digest of the labels of all records, in the order of the file.
    fn digest(&self, labels: &[f64]) -> [u8; 32] {
        let mut all: Vec<(usize, u64)> = labels
            .iter()
            .enumerate()
            .map(|(record, label)| (self.file_row(record), label.to_bits()))
            .collect();
        all.sort_unstable();
        let mut hash = Sha256::new();
        for (row, label) in all {
            hash.update((row as u64).to_le_bytes());
            hash.update(label.to_le_bytes());
        }
        hash.finalize().into()
    }
}

impl LabelAnswers {
    /// Prepares the protection that the settings name.
    ///
    /// # Errors
    /// The protection does not fit the exposure.
    pub(crate) fn new(experiment: &Experiment, exposure: Exposure) -> Result<Self, Violation> {
        let mut protection = experiment.labels.build(&())?;
        protection.prepare(&exposure).map_err(|violation| violation.within("labels"))?;
        // Settings are a table of plain values.
        let settings = toml::to_string(&experiment.labels.settings()).unwrap_or_default();
        // The number of classes changes the thresholds of an answer.
        let settings = format!("{settings}classes = {}\n", exposure.classes);
        Ok(Self { protection, exposure, settings })
    }

    /// Returns the protection.
    pub(crate) fn protection(&self) -> &dyn LabelProtection {
        self.protection.as_ref()
    }

    /// Returns the guarantee for training labels over the whole run.
    pub(crate) fn guarantee(&self) -> LabelPrivacy {
        self.protection.spent(&self.exposure)
    }

    /// Replaces the labels of these records by the protection's answers. `labels` has the labels of all records.
    pub(crate) fn replace(
        &self,
        replaced: Replaced<'_>,
        labels: &mut [f64],
        objective: &mut Objective,
        own: &OwnSeed,
    ) {
        if own.is_simulated() {
            // A simulated seed is not a secret: the answers are drawn in the order of the records.
            let mut drawn: Vec<f64> = replaced.records.iter().map(|&record| labels[record]).collect();
            self.protection.labels(&mut drawn, objective, &mut own.stream(Purpose::Labels, 0));
            replaced.records.iter().zip(drawn).for_each(|(&record, label)| labels[record] = label);
            return;
        }
        let all = replaced.digest(labels);
        for &record in replaced.records {
            let label = &mut labels[record];
            let content = answered(&self.settings, &all, *label);
            let row = replaced.file_row(record) as u64;
            let mut rng = own.stream_over(Purpose::Labels, row, &content);
            self.protection.labels(std::slice::from_mut(label), objective, &mut rng);
        }
    }
}

/// Returns the number of classes of a task: 1 for a regression.
pub(crate) fn classes_of(task: Task, classes: usize) -> usize {
    match task {
        Task::Regression => 1,
        Task::Binary => 2,
        Task::Multiclass => classes,
    }
}

/// Returns the content that, together with the row, determines the answer for one label. The same seed
/// repeats the answer in every run on the same labels with this protection, for any split, experiment seed or number of epochs:
/// a fresh answer would cost ε again. If any label differs, as in another column, all answers are drawn again. Otherwise unequal
/// answers for a row would prove that its label changed.
fn answered(settings: &str, all: &[u8; 32], label: f64) -> [u8; 32] {
    let hash =
        Sha256::new().chain_update(b"fet label, 2").chain_update((settings.len() as u64).to_le_bytes());
    hash.chain_update(settings)
        .chain_update(all)
        .chain_update(label.to_bits().to_le_bytes())
        .finalize()
        .into()
}

#[cfg(test)]
mod tests {
    use fet_core::registry::Slot;

    use super::*;

    /// A second run on the same labels, with another split, repeats the answers of the first: averages over
    /// runs disclose no more.
    #[test]
    fn a_run_with_the_same_seed_repeats_the_answers_of_its_rows() {
        let answers_of = |own: &OwnSeed, rows: &[usize], epsilon: &str, last: f64| {
            let table = format!("kind = \"laplace\"\nepsilon = {epsilon}\nlow = 0.0\nhigh = 10.0");
            let slot = Slot::<dyn LabelProtection>::from_table(table.parse().expect("TOML")).expect("sound");
            let exposure = Exposure {
                task: Task::Regression,
                classes: 1,
                rows: 10,
                times: 1,
                steps_follow_metric: false,
                parties_train: true,
            };
            let answers = LabelAnswers {
                protection: slot.build(&()).expect("sound"),
                exposure,
                settings: table.clone(),
            };
            let mut labels: Vec<f64> = (0..9).map(f64::from).chain([last]).collect();
            let mut objective = Objective { task: Task::Regression, outputs: 1, minimum: 0.0, range: 10.0 };
            let replaced = Replaced { records: rows, file_rows: &[] };
            answers.replace(replaced, &mut labels, &mut objective, own);
            labels
        };
        let answers = |own: &OwnSeed, rows: &[usize], epsilon: &str| answers_of(own, rows, epsilon, 9.0);
        let own = OwnSeed::new([7; 32]);
        let first = answers(&own, &[0, 2, 5], "1.0");
        let second = answers(&own, &[5, 3, 0], "1.0");
        assert_eq!((first[0], first[5]), (second[0], second[5]));
        assert!(first[0] != 0.0 && first[3] == 3.0 && second[2] == 2.0, "{first:?} {second:?}");
        assert_ne!(first[0], answers(&own, &[0], "2.0")[0], "another protection is another answer");
        assert_ne!(first[0], answers(&OwnSeed::new([8; 32]), &[0], "1.0")[0]);
        // The label of another row changed: equal and unequal answers tell nothing about the equality of labels.
        assert_ne!(first[0], answers_of(&own, &[0, 2, 5], "1.0", 8.0)[0]);
    }

    #[test]
    fn answers_follow_from_the_label_and_the_protection() {
        let all = [1; 32];
        let base = answered("epsilon = 1", &all, 2.0);
        assert_eq!(base, answered("epsilon = 1", &all, 2.0));
        for other in [
            answered("epsilon = 1", &all, 3.0),
            answered("epsilon = 2", &all, 2.0),
            answered("epsilon = 1", &[2; 32], 2.0),
        ] {
            assert_ne!(base, other);
        }
    }
}
