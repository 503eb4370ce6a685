//! From an experiment to a trainer that is ready for its first epoch: data, links, models.

use std::path::Path;
use std::sync::Arc;

use burn::tensor::Device;
use fet_privacy::secure_sum::MaskGraph;

use super::{Machine, Progress, RunError, Trainer};
use crate::federation::Federation;
use crate::model::Embedding;
use crate::prepare::{Prepared, PreparedParty, Split, standardise_all};
use crate::protocol::{LinkKeys, Reply, Request};
use crate::secondary::{Secondary, SecondaryParts, linking_seed};
use crate::secret_sum;
use fet_core::aggregator::{Role, SecureSum};
use fet_core::data::{DatasetContext, VerticalData};
use fet_core::encoder::Computation;
use fet_core::experiment::{Batches, Experiment};
use fet_core::learning_rate::Plateau;
use fet_core::linker::Linker;
use fet_core::method::{Method, Plan, PrimaryContext, SecondaryContext};
use fet_core::privacy::{PrivacyMechanism, Releases, Selection};
use fet_core::registry::Violation;
use fet_core::rng::{Purpose, stream};
use fet_linkers::Cached;

impl Trainer {
    /// Loads the data that the experiment names and builds everything. File names start from `folder`.
    pub fn new(experiment: &Experiment, folder: &Path, machine: &Machine) -> Result<Self, RunError> {
        let context = DatasetContext { folder, seed: experiment.seed };
        let data = experiment.data.build(&context)?.load()?;
        Self::with_data(experiment, data, machine)
    }

    /// The same on tables that are already there.
    pub fn with_data(
        experiment: &Experiment,
        data: VerticalData,
        machine: &Machine,
    ) -> Result<Self, RunError> {
        let device = machine.device.clone().autodiff();
        let prepared = Prepared::new(data, experiment.seed)?;
        let method = experiment.method.build(&())?;
        let plan = method.plan();
        let tables = if plan.secondaries { prepared.secondaries } else { Vec::new() };
        if plan.secondaries && tables.is_empty() {
            let rule = format!("must have secondary parties for the method \"{}\"", experiment.method.kind());
            return Err(Violation::new("data", rule, "one party").into());
        }
        let aggregator = experiment.aggregator.build(&())?;
        let secure = match aggregator.role() {
            Role::Sum(sum) if plan.secondaries => Some(sum.form()),
            _ => None,
        };
        let mut privacy = experiment.privacy.build(&())?;
        let linker = experiment.linker.build(&())?;
        // Links that are made anew for each batch are not worth keeping.
        let linker: Arc<dyn Linker> = if privacy.selection() == Selection::ALL {
            Arc::from(Cached::from_environment(linker, &experiment.linker.settings()))
        } else {
            Arc::from(linker)
        };
        let neighbours = |party| plan.neighbours.of(party, linker.about().neighbours);
        let positions = (1..=tables.len()).map(neighbours).max().unwrap_or(0);
        let schedule =
            schedule(experiment, &plan, &prepared.split, tables.len(), positions, secure.is_some());
        if plan.secondaries {
            if let Some(sum) = secure {
                check_sums(sum, privacy.as_ref(), &schedule)?;
            }
            privacy.prepare(&schedule).map_err(|violation| violation.within("privacy"))?;
            if let Some(sum) = secure {
                check_budget(sum, privacy.as_ref(), &schedule)?;
            }
        }
        let primary = method.primary(&PrimaryContext {
            device: &device,
            weights: stream(experiment.seed, 0, Purpose::Weights, 0),
            key_columns: prepared.primary.scaled.keys.columns(),
            feature_columns: prepared.primary.scaled.features.columns(),
            objective: prepared.objective,
            parties: tables.len(),
            positions,
            memory_width: aggregator.width(tables.len(), plan.width),
            computation: experiment.train.computation(machine.on_host),
        })?;
        let builder = PartyBuilder {
            experiment,
            device: &device,
            method: method.as_ref(),
            plan: &plan,
            linker: Arc::clone(&linker),
            reveals_similarities: plan.similarities || aggregator.uses_similarities(),
            privacy: Arc::from(privacy),
            computation: experiment.train.computation(machine.on_host),
        };
        let parties = tables.into_iter().enumerate().map(|(index, table)| builder.party(index + 1, table));
        let federation = Federation::new(parties.collect::<Result<_, _>>()?, machine.party_threads);
        let encodings = primary.learner().parameters().with_prefix(Embedding::POSITION);
        if plan.pe_average_every > 0 && encodings.segments().is_empty() {
            let rule = "must be 0 for a model without positional encodings";
            return Err(Violation::new("method.pe_average_every", rule, plan.pe_average_every).into());
        }
        let mut trainer = Self {
            settings: experiment.train.clone(),
            seed: experiment.seed,
            device: device.clone(),
            objective: prepared.objective,
            split: prepared.split,
            records: prepared.primary,
            labels: prepared.labels,
            primary,
            federation,
            aggregator: Arc::from(aggregator),
            privacy: builder.privacy,
            secure,
            schedule,
            released: None,
            gone: Vec::new(),
            available: Vec::new(),
            similarities: Vec::new(),
            progress: Progress {
                plateau: Plateau::new(plan.learning_rate),
                epochs: Vec::new(),
                best: None,
                releases: 0,
            },
            plan,
            phases: super::Phases::default(),
            warnings: prepared.warnings,
        };
        trainer.link(linker.as_ref())?;
        if secure.is_some() {
            trainer.agree_on_keys()?;
        }
        Ok(trainer)
    }

    /// Has every two secondaries share a key. The primary relays public keys, and is trusted to relay them as they are.
    fn agree_on_keys(&mut self) -> Result<(), RunError> {
        let keys = self.federation.broadcast(&Request::MakeKey)?.into_iter().map(|reply| match reply {
            Reply::Key(key) => key,
            other => unreachable!("a party answers MakeKey with a key, not {other:?}"),
        });
        let keys = Request::AgreeOnKeys(keys.collect());
        self.federation.broadcast(&keys)?;
        Ok(())
    }

    /// Links every secondary with the primary's keys, once for the whole run. The linker itself uses all
    /// cores, so the parties take their turns.
    fn link(&mut self, linker: &dyn Linker) -> Result<(), RunError> {
        for index in 0..self.federation.len() {
            let name = self.federation.parties()[index].name().to_string();
            let failed = |source| RunError::Party { party: name.clone(), source };
            let mut asker = linker.asker(linking_seed(self.seed, index + 1));
            let keys = asker.conceal(&self.records.raw_keys).map_err(|error| failed(error.into()))?;
            let mut request = Request::Link(LinkKeys { keys });
            let message = loop {
                let replies = self.federation.exchange(&[index], vec![request]).map_err(failed)?;
                match replies.into_iter().next() {
                    Some(Reply::Linked(message)) => break message,
                    Some(Reply::Challenge(challenge)) => {
                        let answer = asker.answer(&challenge).map_err(|error| failed(error.into()))?;
                        request = Request::Answer(answer);
                    }
                    other => unreachable!("a party answers Link with Linked or Challenge, not {other:?}"),
                }
            };
            self.available.push(message.available);
            self.similarities.extend(message.similarities.map(|mut similarities| {
                standardise_all(&mut similarities, &self.split.train);
                similarities
            }));
        }
        let told = self.federation.parties_mut().iter_mut().map(Secondary::take_warnings);
        self.warnings.extend(told.flatten());
        Ok(())
    }
}

struct PartyBuilder<'a> {
    experiment: &'a Experiment,
    device: &'a Device,
    method: &'a dyn Method,
    plan: &'a Plan,
    linker: Arc<dyn Linker>,
    reveals_similarities: bool,
    privacy: Arc<dyn PrivacyMechanism>,
    computation: Computation,
}

impl PartyBuilder<'_> {
    fn party(&self, number: usize, table: PreparedParty) -> Result<Secondary, Violation> {
        let neighbours = self.plan.neighbours.of(number, self.linker.about().neighbours);
        let encoder = self.method.secondary(
            &self.experiment.encoder,
            &SecondaryContext {
                device: self.device,
                weights: stream(self.experiment.seed, number, Purpose::Weights, 0),
                neighbours,
                key_columns: table.scaled.keys.columns(),
                feature_columns: table.scaled.features.columns(),
                computation: self.computation,
            },
        )?;
        let parts = SecondaryParts {
            linker: Arc::clone(&self.linker),
            neighbours,
            reveals_similarities: self.reveals_similarities,
            encoder,
            privacy: Arc::clone(&self.privacy),
            device: self.device.clone(),
        };
        Ok(Secondary::new(number, self.experiment.seed, table, parts))
    }
}

/// What a run of so many secondaries releases in all.
fn schedule(
    experiment: &Experiment,
    plan: &Plan,
    split: &Split,
    parties: usize,
    positions: usize,
    summed: bool,
) -> Releases {
    let settings = &experiment.train;
    let (train, evaluation) = (split.train.len(), split.validation.len().max(split.test.len()));
    // A Poisson batch can hold every row.
    let most = match settings.batches {
        Batches::Shuffled => settings.batch_size.min(train),
        Batches::Poisson => train,
    };
    let batches = |rows: usize| rows.div_ceil(settings.evaluation_batch_size);
    let dropped = (plan.party_dropout * parties as f64).floor() as usize;
    Releases {
        epochs: plan.at_once.unwrap_or(settings.epochs),
        train_steps: if plan.at_once.is_some() { 1 } else { train.div_ceil(settings.batch_size) },
        evaluation_steps: batches(split.validation.len()) + batches(split.test.len()),
        rows: most.max(settings.evaluation_batch_size.min(evaluation)),
        all_rows: train + split.validation.len() + split.test.len(),
        train_active: (parties - dropped).max(1).min(parties),
        active: parties,
        block: positions * plan.width,
        summed,
    }
}

/// Refuses secret sums that would hide nothing.
fn check_sums(sum: SecureSum, privacy: &dyn PrivacyMechanism, schedule: &Releases) -> Result<(), Violation> {
    let fewest = schedule.train_active.min(schedule.active);
    if fewest < 2 {
        let rule = "must not be \"secure-average\" unless two secondaries or more take part in every step: the sum over \
                    one is its value";
        let value = format!("\"secure-average\" with {fewest} of {}", schedule.active);
        return Err(Violation::new("aggregator.kind", rule, value));
    }
    let tolerated = MaskGraph::new(fewest, sum.degree).tolerates();
    if privacy.colluding() > tolerated {
        let rule = format!(
            "must be above `privacy.colluding` ({}), and so many others must take part in a step: {fewest} do",
            privacy.colluding()
        );
        return Err(Violation::new("aggregator.degree", rule, sum.degree));
    }
    Ok(())
}

/// Refuses secret sums that could wrap around.
fn check_budget(
    sum: SecureSum,
    privacy: &dyn PrivacyMechanism,
    schedule: &Releases,
) -> Result<(), Violation> {
    for active in [schedule.train_active, schedule.active] {
        if let Err(error) = secret_sum::units(sum, privacy.form(active, schedule.block), active) {
            return Err(Violation::new(
                "aggregator.bits",
                format!("must have room for every sum ({error})"),
                sum.bits,
            ));
        }
    }
    Ok(())
}
