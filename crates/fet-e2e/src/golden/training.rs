//! Trains a golden file's model with the program's own parties and trainer; this module calls no encoder or
//! decoder itself.
//!
//! The file's batch becomes a table for each party. The training rows of the table are the batch, repeated
//! once or several times, so the mean loss and its gradients stay the same. The validation and test rows
//! repeat the first row. One training step is then one epoch.
//!
//! FedSim's files contain similarities and no keys; the check of these files uses only the slots.

use std::path::Path;

use fet_backends::Backend;
use fet_core::data::{Keys, Matrix, Metadata, PartyTable, Standardise};
use fet_core::experiment::{Experiment, Kernels, ScoreSettings, SplitSettings, TrainSettings};
use fet_core::message::Parts;
use fet_core::party::Party;
use fet_core::policy::Policy;
use fet_core::registry::Slot;
use fet_eval::Fractions;
use fet_federation::prepare::PrimaryData;
use fet_federation::release::OneTimeReleases;
use fet_federation::schedule;
use fet_federation::simulation::{ObservedParty, Simulation};
use fet_federation::trainer::{StepReport, Trainer};

use super::GoldenVerdict;
use super::file::{GoldenError, GoldenFile};
use super::model::{compare, gradient_floor, parameters};
use super::model::{finite, largest};
use super::slots::GoldenSlots;

/// Seed of the run, which only selects the training rows, because all weights are loaded.
const SEED: u64 = 0;

/// Compares a run of this program with the file at `path`; returns `None` for a file that the parties' tables
/// cannot represent.
pub fn check_run(path: &Path, backend: &Backend, fused: bool) -> Result<Option<GoldenVerdict>, GoldenError> {
    let golden = GoldenFile::read(path)?;
    if golden.method() != "fet" {
        return Ok(None);
    }
    let slots = GoldenSlots::from_golden(&golden)?;
    let losses = golden.losses()?;
    let epochs = losses.as_ref().map_or(1, Vec::len);
    let experiment = experiment(&golden, &slots, backend, fused, epochs)?;
    let tables = Tables::new(&golden)?;
    let refused = |error: &dyn std::fmt::Display| golden.bad(&error.to_string());
    let machine = fet::run::machine(backend);
    let secondaries = (1..slots.data_dims.len()).map(|party| tables.party(&golden, &slots, party));
    let secondaries = secondaries.collect::<Result<Vec<_>, _>>()?;
    let secondaries =
        Simulation::new(&experiment, &machine).secondaries(secondaries).map_err(|error| refused(&error))?;
    let watched: Vec<ObservedParty> = secondaries.into_iter().map(ObservedParty::new).collect();
    let parties = watched.iter().map(|party| -> Box<dyn Party> { Box::new(party.clone()) }).collect();
    let data = PrimaryData {
        task: slots.objective.task,
        classes: slots.objective.outputs,
        table: tables.party(&golden, &slots, 0)?,
        labels: tables.labels(&golden)?,
        label_range: Some([slots.objective.minimum, slots.objective.minimum + slots.objective.range]),
        standardise: Standardise { keys: false, features: false },
        parts: Parts::default(),
        metadata: Metadata::default(),
        releases: OneTimeReleases::default(),
    };
    let trainer = Trainer::new(&experiment, data, parties, Vec::new(), &machine);
    let mut trainer = trainer.map_err(|error| refused(&error))?;
    let own = parameters(&golden, 0, trainer.primary().learner().parameters())?;
    trainer.primary_mut().learner_mut().load(&own).map_err(|error| refused(&error))?;
    for (index, party) in watched.iter().enumerate() {
        let own = party.lock().parameters().cloned().unwrap_or_default();
        let own = parameters(&golden, index + 1, &own)?;
        party.lock().load(&own).map_err(|error| refused(&error))?;
    }
    let mut found = Vec::new();
    while !trainer.is_done() {
        let mut watch = |step: StepReport| {
            found.push(step.loss);
            true
        };
        trainer.epoch(&mut watch).map_err(|error| refused(&error))?;
    }
    let expected = match &losses {
        Some(losses) => losses.clone(),
        None => golden.floats("loss")?,
    };
    let differences = found.iter().zip(&expected).map(|(a, &b)| (a - f64::from(b)).abs());
    let loss = finite(differences.fold(0.0, largest));
    let file = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let device = backend.name.clone();
    let looks: Vec<_> = watched.iter().map(ObservedParty::lock).collect();
    let learner = trainer.primary().learner();
    let mut gradients = vec![(learner.parameters(), learner.gradient().values.as_slice())];
    let mut after = vec![(learner.parameters(), learner.parameters().values())];
    for party in &looks {
        let (Some(layout), Some(gradient)) = (party.parameters(), party.gradient()) else { continue };
        gradients.push((layout, gradient));
        after.push((layout, layout.values()));
    }
    Ok(Some(if losses.is_some() {
        let param_max_rel = compare(&golden, "after.", f32::MIN_POSITIVE, &after)?;
        GoldenVerdict::Training { file, device, loss_max_abs: loss, param_max_rel }
    } else {
        let grad_max_rel = compare(&golden, "grad.", gradient_floor(&golden)?, &gradients)?;
        // This check does not see the primary's outputs; the difference of the loss takes their place.
        GoldenVerdict::Pass { file, device, output_max_abs: loss, loss_abs: loss, grad_max_rel }
    }))
}

fn experiment(
    golden: &GoldenFile,
    slots: &GoldenSlots,
    backend: &Backend,
    fused: bool,
    epochs: usize,
) -> Result<Experiment, GoldenError> {
    let refused =
        |error: &dyn std::fmt::Display| golden.bad(&format!("its configuration is impossible: {error}"));
    let linker = toml::Table::from_iter([
        ("kind".to_string(), "aligned".into()),
        ("neighbours".to_string(), toml::Value::Integer(slots.neighbours as i64)),
    ]);
    Ok(Experiment {
        folder: None,
        name: "golden".to_string(),
        seed: SEED,
        device: backend.name.clone(),
        train: TrainSettings {
            epochs,
            batch_size: usize::MAX >> 1,
            // All steps in the file have the same step size.
            patience: epochs + 1,
            kernels: if fused { Kernels::Fused } else { Kernels::Tensor },
            ..TrainSettings::default()
        },
        data: Slot::with_defaults("split").map_err(|error| refused(&error))?,
        method: slots.method.clone(),
        linker: Slot::from_table(linker).map_err(|error| refused(&error))?,
        encoder: slots.encoder.clone(),
        aggregator: slots.aggregator.clone(),
        privacy: Slot::with_defaults("none").map_err(|error| refused(&error))?,
        release: None,
        policy: Policy::default(),
        split: SplitSettings::default(),
        scores: ScoreSettings::default(),
        labels: Slot::with_defaults("none").map_err(|error| refused(&error))?,
        attack: None,
        from: String::new(),
        origin: String::new(),
    })
}

/// Row of the file's batch for each row of the tables.
struct Tables {
    source: Vec<usize>,
}

impl Tables {
    fn new(golden: &GoldenFile) -> Result<Self, GoldenError> {
        let batch = golden.floats("input.label")?.len();
        let bad = |error: &dyn std::fmt::Display| golden.bad(&error.to_string());
        // Smallest number of rows for which the training split consists of whole batches.
        let rows = (10..1_000 * batch.max(1)).find(|&rows| {
            let sizes = Fractions::default().sizes(rows);
            sizes.is_ok_and(|sizes| batch > 0 && sizes.train.is_multiple_of(batch))
        });
        let rows = rows.ok_or_else(|| bad(&"its batch is empty"))?;
        let split = schedule::split(&Parts::default(), rows, SEED).map_err(|error| bad(&error))?;
        let mut source = vec![0; rows];
        for (place, &row) in split.train.iter().enumerate() {
            source[row] = place % batch;
        }
        Ok(Self { source })
    }

    fn labels(&self, golden: &GoldenFile) -> Result<Vec<f64>, GoldenError> {
        let labels = golden.floats("input.label")?;
        Ok(self.source.iter().map(|&row| f64::from(labels[row])).collect())
    }

    /// Returns a party's table: one record per row for the primary, K records per row for a secondary.
    fn party(
        &self,
        golden: &GoldenFile,
        slots: &GoldenSlots,
        party: usize,
    ) -> Result<PartyTable, GoldenError> {
        let each = if party == 0 { 1 } else { slots.neighbours };
        let records: Vec<usize> =
            self.source.iter().flat_map(|&row| (0..each).map(move |place| row * each + place)).collect();
        let table = |name: &str, columns: usize| -> Result<Matrix<f32>, GoldenError> {
            Ok(Matrix::new(columns, golden.floats(&format!("input.{name}.{party}"))?).select_rows(&records))
        };
        let keys = table("key", slots.key_dims[party])?;
        let keys = Matrix::new(keys.columns(), keys.values().iter().map(|&x| f64::from(x)).collect());
        Ok(PartyTable {
            name: format!("party {party}"),
            keys: Keys::Numbers(keys),
            features: table("data", slots.data_dims[party])?.into(),
            bounds: None,
        })
    }
}
