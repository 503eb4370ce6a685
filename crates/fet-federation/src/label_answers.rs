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

/// A record of the primary: its number, and its row in the file, both from 0.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Labelled {
    pub(crate) record: usize,
    pub(crate) file_row: usize,
}

impl Labelled {
    /// Returns these records. `file_rows` has the row of each record in the file; empty if they have the order of the file.
    pub(crate) fn all(records: &[usize], file_rows: &[usize]) -> Vec<Self> {
        let of = |&record: &usize| {
            let file_row = file_rows.get(record).copied().unwrap_or(record);
            Self { record, file_row }
        };
        records.iter().map(of).collect()
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

    /// Replaces the labels of these records by the protection's answers.
    pub(crate) fn replace(
        &self,
        records: &[Labelled],
        labels: &mut [f64],
        objective: &mut Objective,
        own: &OwnSeed,
    ) {
        if own.is_simulated() {
            // A simulated seed is not a secret: the answers are drawn in the order of the records.
            let mut drawn: Vec<f64> = records.iter().map(|one| labels[one.record]).collect();
            self.protection.labels(&mut drawn, objective, &mut own.stream(Purpose::Labels, 0));
            records.iter().zip(drawn).for_each(|(one, label)| labels[one.record] = label);
            return;
        }
        for one in records {
            let label = &mut labels[one.record];
            let content = answered(&self.settings, *label);
            let mut rng = own.stream_over(Purpose::Labels, one.file_row as u64, &content);
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
/// repeats the answer in every run with this protection, for any split, experiment seed or number of epochs.
/// A fresh answer would cost ε again.
fn answered(settings: &str, label: f64) -> [u8; 32] {
    let hash =
        Sha256::new().chain_update(b"fet label, 1").chain_update((settings.len() as u64).to_le_bytes());
    hash.chain_update(settings).chain_update(label.to_bits().to_le_bytes()).finalize().into()
}

#[cfg(test)]
mod tests {
    use fet_core::registry::Slot;

    use super::*;

    /// A second run on the same labels, with another split, repeats the answers of the first: averages over
    /// runs disclose no more.
    #[test]
    fn a_run_with_the_same_seed_repeats_the_answers_of_its_rows() {
        let answers = |own: &OwnSeed, rows: &[usize], epsilon: &str| {
            let table = format!("kind = \"laplace\"\nepsilon = {epsilon}\nlow = 0.0\nhigh = 10.0");
            let slot = Slot::<dyn LabelProtection>::from_table(table.parse().expect("TOML")).expect("sound");
            let exposure = Exposure {
                task: Task::Regression,
                classes: 1,
                rows: 10,
                times: 1,
                steps_follow_metric: false,
                shows_best_epoch: true,
            };
            let answers = LabelAnswers {
                protection: slot.build(&()).expect("sound"),
                exposure,
                settings: table.clone(),
            };
            let mut labels: Vec<f64> = (0..10).map(f64::from).collect();
            let mut objective = Objective { task: Task::Regression, outputs: 1, minimum: 0.0, range: 10.0 };
            answers.replace(&Labelled::all(rows, &[]), &mut labels, &mut objective, own);
            labels
        };
        let own = OwnSeed::new([7; 32]);
        let first = answers(&own, &[0, 2, 5], "1.0");
        let second = answers(&own, &[5, 3, 0], "1.0");
        assert_eq!((first[0], first[5]), (second[0], second[5]));
        assert!(first[0] != 0.0 && first[3] == 3.0 && second[2] == 2.0, "{first:?} {second:?}");
        assert_ne!(first[0], answers(&own, &[0], "2.0")[0], "another protection is another answer");
        assert_ne!(first[0], answers(&OwnSeed::new([8; 32]), &[0], "1.0")[0]);
    }

    #[test]
    fn answers_follow_from_the_label_and_the_protection() {
        let base = answered("epsilon = 1", 2.0);
        assert_eq!(base, answered("epsilon = 1", 2.0));
        assert!(base != answered("epsilon = 1", 3.0) && base != answered("epsilon = 2", 2.0));
    }
}
