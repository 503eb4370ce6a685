//! Makes a trainer that is ready for its first epoch from an experiment: prepares the primary's data and
//! model, and has the parties agree to the terms and link.

use fet_core::data::{Keys, Metadata, Standardise, Task};
use fet_core::experiment::{Experiment, Weighting, WeightingRule};
use fet_core::learning_rate::Plateau;
use fet_core::message::{
    Agreed, Backups, Confirmed, LinkKeys, Linked, PROTOCOL_VERSION, Parts, PublicKeys, Reply, Request,
    Standing, Terms,
};
use fet_core::method::PrimaryContext;
use fet_core::parameters::Parameters;
use fet_core::party::Party;
use fet_core::privacy::Releases;
use fet_core::registry::Violation;
use fet_core::rng::{OwnSeed, Purpose, stream};

use fet_privacy::secure_sum::{SEALED_SHARE, holders};

use super::labels::{exposure, protect_labels};
use super::progress::Tables;
use super::{Machine, Progress, RunError, SavedModel, Similarities, Trainer};
use crate::federation::Federation;
use crate::prepare::{ALL_ROWS, HELD_OUT, PreparedPrimary, PrimaryData, Uniform, missing_classes, warnings};
use crate::privacy::{protection, secret_sum, solvable_sums};
use crate::report::RESULTS_VERSION;
use crate::schedule::{self, Schedule};
use crate::secondary::{Store, linking_seed};
use crate::table_digest;

/// Initial state of the primary's side of a session.
#[derive(Debug)]
pub struct Beginning {
    /// Parties that dropped out of an interrupted run, from 0: the primary does not contact them.
    pub gone: Vec<usize>,
    /// Seed that only the primary knows, as a deployment needs. The experiment's seed is in the terms: a
    /// party that knows it could draw the noise on labels again.
    pub own: OwnSeed,
    /// Finished model that training starts from; `None` to start from initial weights.
    pub model: Option<SavedModel>,
}

impl Trainer {
    /// Makes the primary's side of a run in a simulation; the parties agree to the terms and link. The seed
    /// of the primary's private randomness is derived from the experiment's seed. The primary does not
    /// contact the parties `gone` (from 0), which dropped out of an interrupted run
    /// ([`crate::checkpoint::gone`]).
    pub fn new(
        experiment: &Experiment,
        data: PrimaryData,
        parties: Vec<Box<dyn Party>>,
        gone: Vec<usize>,
        machine: &Machine,
    ) -> Result<Self, RunError> {
        let own = OwnSeed::simulated(experiment.seed, 0);
        Self::begin(experiment, data, parties, machine, Beginning { gone, own, model: None })
    }

    /// Makes the primary's side of a run from a given beginning; the parties agree to the terms and link.
    pub fn begin(
        experiment: &Experiment,
        data: PrimaryData,
        parties: Vec<Box<dyn Party>>,
        machine: &Machine,
        beginning: Beginning,
    ) -> Result<Self, RunError> {
        let Beginning { gone, own, model } = beginning;
        let (seed, settings) = (experiment.seed, &experiment.train);
        let plan = experiment.method.build(&())?.plan();
        let split = schedule::split(&data.parts, data.table.rows(), seed)?;
        let schedule = Schedule::new(seed, settings, &plan, split, parties.len());
        let (standardise, parts, classes) = (data.standardise, data.parts.clone(), data.classes);
        let Metadata { class_names, rows: file_rows, columns } = data.metadata.clone();
        let groups = columns.iter().find(|column| column.name == experiment.scores.groups);
        let groups = groups.map(|column| (column.name.clone(), column.values.texts()));
        if let Some(model) = &model {
            model.check_beginning(data.task, classes, &class_names)?;
            if model.preparing().refined.is_some() != settings.refine_keys {
                let rule = "must have the value that it has in the earlier run";
                return Err(Violation::new("train.refine_keys", rule, settings.refine_keys).into());
            }
        }
        let primary_table = table_digest::of_primary(&data);
        let earlier = model.as_ref().map(|model| (model.preparing(), model.objective()));
        let notes: Vec<String> =
            data.table.notes().map(|note| format!("{}: {note}", data.table.name)).collect();
        let prepared = PreparedPrimary::new(data, schedule.split(), settings.refine_keys, earlier)?;
        let departures = prepared.departures.clone();
        if plan.secondaries == parties.is_empty() {
            let rule = format!("must have secondaries for the method \"{}\"", experiment.method.kind());
            return Err(Violation::new("data", rule, "one party").into());
        }
        let mut trainer =
            Self::assemble(experiment, prepared, schedule, classes, parties, gone, machine, own)?;
        if let Some(model) = &model {
            model.load(trainer.primary.learner_mut())?;
        }
        (trainer.class_names, trainer.standardise) = (class_names, standardise);
        trainer.progress.tables.primary = primary_table;
        (trainer.groups, trainer.file_rows) = (groups, file_rows);
        trainer.check_metric()?;
        // With protected labels, the warnings depend only on the protected answers.
        trainer.warnings = missing_classes(
            &trainer.labels,
            &trainer.class_names,
            &trainer.objective,
            trainer.schedule.split(),
        );
        let solvable = solvable_sums(trainer.privacy.as_ref(), &trainer.progress.releases);
        trainer.warnings.extend(solvable.map(|problem| {
            format!("{problem}. Set `method.party_dropout` to 0, or `privacy.kind` to a mechanism with noise")
        }));
        let nouns = if model.is_some() { ALL_ROWS } else { HELD_OUT };
        let departures = warnings(&departures, nouns, |row| trainer.file_row(row));
        trainer.warnings.extend(departures);
        trainer.warnings.extend(notes);
        trainer.join(&experiment.common().to_toml(), &parts, standardise)?;
        trainer.link()?;
        let secure = secret_sum(trainer.aggregator.as_ref()).filter(|_| plan.secondaries);
        if secure.is_some() {
            trainer.agree_on_keys()?;
        }
        Ok(trainer)
    }

    /// Makes the primary's side without contacting the parties.
    #[expect(clippy::too_many_arguments, reason = "a run and a finished model share only these values")]
    pub(super) fn assemble(
        experiment: &Experiment,
        mut prepared: PreparedPrimary,
        schedule: Schedule,
        classes: usize,
        parties: Vec<Box<dyn Party>>,
        gone: Vec<usize>,
        machine: &Machine,
        own: OwnSeed,
    ) -> Result<Self, RunError> {
        let device = machine.device.clone().autodiff();
        let (seed, settings) = (experiment.seed, &experiment.train);
        let method = experiment.method.build(&())?;
        let plan = method.plan();
        let aggregator = experiment.aggregator.build(&())?;
        let linker = experiment.linker.build(&())?;
        let common = experiment.common();
        let (privacy, releases) = protection(
            &common,
            &plan,
            linker.as_ref(),
            aggregator.as_ref(),
            schedule.split(),
            parties.len(),
        )?;
        let releases = Releases { randomness: settings.randomness, ..releases };
        let exposure = exposure(&schedule, settings, prepared.objective.task, classes, privacy.as_ref());
        let protection = protect_labels(experiment, &exposure, schedule.split(), &mut prepared, &own)?;
        let weights = match prepared.objective.task {
            Task::Regression if settings.class_weights == Weighting::Rule(WeightingRule::None) => None,
            Task::Regression => {
                let rule = "must be \"none\" for a regression: weights need classes";
                return Err(Violation::new("train.class_weights", rule, &settings.class_weights).into());
            }
            Task::Binary | Task::Multiclass => {
                let class = |&row: &usize| prepared.labels[row] as usize;
                let labels: Vec<usize> = schedule.split().train.iter().map(class).collect();
                settings.class_weights.of(&labels, classes)?
            }
        };
        let neighbours: Vec<usize> =
            (1..=parties.len()).map(|party| plan.neighbours.of(party, linker.about().neighbours)).collect();
        let primary = method.primary(&PrimaryContext {
            device: &device,
            weights: stream(seed, 0, Purpose::Weights, 0),
            key_columns: prepared.party.scaled.keys.columns(),
            feature_columns: prepared.party.scaled.features.columns(),
            objective: prepared.objective,
            parties: parties.len(),
            positions: neighbours.iter().map(|&own| plan.positions(own)).max().unwrap_or(0),
            memory_width: aggregator.width(parties.len(), plan.width),
            computation: settings.computation(machine.on_host),
        })?;
        if let Some(averaged) = plan.averaged
            && primary.learner().parameters().with_prefix(averaged.prefix).segments().is_empty()
        {
            let rule = format!("must be 0 for a model without parameters `{}`", averaged.prefix);
            return Err(
                Violation::new(experiment.method.path_of(averaged.setting), rule, averaged.every).into()
            );
        }
        let secondaries = parties.len();
        Ok(Self {
            settings: settings.clone(),
            seed,
            device,
            objective: prepared.objective,
            schedule,
            records: prepared.party,
            labels: prepared.labels,
            groups: None,
            file_rows: Vec::new(),
            metric: experiment.scores.metric.unwrap_or_else(|| prepared.objective.metric()),
            evaluated: None,
            weights,
            class_names: Vec::new(),
            standardise: Standardise::ALL,
            protection,
            exposure,
            own,
            primary,
            linker,
            federation: Federation::new(parties, machine.party_threads),
            aggregator: aggregator.into(),
            privacy,
            agreed: Vec::new(),
            released: None,
            neighbours,
            available: Vec::new(),
            similarities: (0..secondaries).map(|_| None).collect(),
            widths: vec![None; secondaries],
            standings: vec![None; secondaries],
            parameters: 0,
            progress: Progress {
                plateau: Plateau::new(plan.learning_rate),
                epochs: Vec::new(),
                best: None,
                released: 0,
                releases,
                tallies: Vec::new(),
                sessions: 0,
                lost: Vec::new(),
                tables: Tables { primary: [0; 32], secondaries: vec![None; secondaries] },
                gone,
                stopped: false,
                warnings: Vec::new(),
            },
            best: Parameters::default(),
            probes: 0,
            plan,
            phases: super::Phases::default(),
            warnings: Vec::new(),
            view: None,
        })
    }

    /// Saves the primary's own seed, if it has one: a resumed run draws the noise on labels from it again.
    pub fn keep_seed(&self, store: &Store) -> Result<(), RunError> {
        Ok(store.keep_seed(&self.own)?)
    }

    /// Asks every party to agree to the terms.
    pub(super) fn join(
        &mut self,
        settings: &str,
        parts: &Parts,
        standardise: Standardise,
    ) -> Result<(), RunError> {
        let everyone = self.here();
        let parties = self.federation.len();
        let terms = |index: usize| Terms {
            protocol: PROTOCOL_VERSION,
            results: RESULTS_VERSION,
            settings: settings.to_string(),
            settings_hash: fet_io::sha256(settings.as_bytes()),
            name: self.federation.name(index).to_string(),
            number: index + 1,
            parties,
            rows: self.schedule.split().rows(),
            parts: parts.clone(),
            standardise,
        };
        let requests = everyone.iter().map(|&index| Request::Join(terms(index))).collect();
        for (&party, (asked, reply)) in
            everyone.iter().zip(self.federation.exchange_all(&everyone, requests)?)
        {
            let Reply::Joined(joined) = reply else { return Err(asked.unexpected(&reply).into()) };
            self.parameters = self.parameters.saturating_add(joined.parameters);
            self.progress.tables.secondaries[party] = Some(joined.table);
            let counts = joined.lifetime.filter(|_| !self.privacy.is_identity());
            self.warnings.extend(counts.and_then(|standing| lifetime_warning(&asked.party, standing)));
            self.standings[asked.number - 1] = joined.lifetime;
        }
        Ok(())
    }

    /// Has every two secondaries agree on a key, and has each secondary store key shares of the others'
    /// secrets. The primary relays public keys, which their parties signed, and encrypted key shares.
    fn agree_on_keys(&mut self) -> Result<(), RunError> {
        let everyone = self.here();
        let mut keys = Vec::with_capacity(everyone.len());
        for (asked, reply) in
            self.federation.exchange_all(&everyone, vec![Request::MakeKey; everyone.len()])?
        {
            let Reply::Key(key) = reply else { return Err(asked.unexpected(&reply).into()) };
            keys.push(key);
        }
        self.agreed = everyone.clone();
        let parties = everyone.iter().map(|&party| party as u32).collect();
        let request = Request::AgreeOnKeys(PublicKeys { parties, keys });
        let replies = self.federation.exchange_all(&everyone, vec![request; everyone.len()])?;
        let mut kept = vec![Backups { parties: Vec::new(), sealed: Vec::new() }; self.federation.len()];
        let mut signatures = Vec::with_capacity(64 * everyone.len());
        for (&from, (asked, reply)) in everyone.iter().zip(replies) {
            let Reply::Agreed(Agreed { backups, signature }) = reply else {
                return Err(asked.unexpected(&reply).into());
            };
            let expected: Vec<u32> = holders(&everyone, from).into_iter().map(|party| party as u32).collect();
            let count = expected.len();
            if backups.parties != expected || backups.sealed.len() != SEALED_SHARE * count {
                let rule =
                    format!("must be {SEALED_SHARE} bytes for each of the {count} others, in their order");
                let value = format!("{} bytes for {:?}", backups.sealed.len(), backups.parties);
                return Err(asked.wrong("sealed", rule, value).into());
            }
            if signature.len() != 64 {
                return Err(asked.wrong("signature", "must be 64 bytes", signature.len()).into());
            }
            signatures.extend(signature);
            for (&holder, share) in expected.iter().zip(backups.sealed.chunks_exact(SEALED_SHARE)) {
                let kept = &mut kept[holder as usize];
                kept.parties.push(from as u32);
                kept.sealed.extend(share);
            }
        }
        let confirmed = |&party: &usize| {
            let (backups, signatures) = (kept[party].clone(), signatures.clone());
            Request::KeepBackups(Confirmed { backups, signatures })
        };
        Ok(self.federation.command(&everyone, everyone.iter().map(confirmed).collect())?)
    }

    /// Links every secondary to the primary's keys, once for the whole run. A linker uses all cores, so that
    /// parties link one after another.
    fn link(&mut self) -> Result<(), RunError> {
        self.available = vec![0; self.federation.len()];
        let keys = self.records.raw_keys.clone();
        for index in self.here() {
            let Linked { available, similarities } = self.link_with(index, &keys, Request::Link)?;
            self.available[index] = available;
            self.similarities[index] = similarities.map(|mut values| {
                let standard = Uniform::fit(&values, &self.split().train);
                standard.apply(&mut values);
                Similarities { values, standard }
            });
        }
        Ok(())
    }

    /// Links one secondary's records with `keys`, and returns the secondary's information about the links.
    pub(super) fn link_with(
        &mut self,
        index: usize,
        keys: &Keys,
        first: fn(LinkKeys) -> Request,
    ) -> Result<Linked, RunError> {
        let name = self.federation.name(index).to_string();
        let failed = |source| RunError::Link { party: name.clone(), source };
        let mut querier = self.linker.querier(linking_seed(self.seed, index + 1));
        let mut request = first(LinkKeys { keys: querier.encode(keys).map_err(failed)? });
        let mut challenged = false;
        let (asked, message) = loop {
            let (asked, reply) = self.federation.exchange_one(index, request)?;
            match reply {
                Reply::Linked(message) => break (asked, message),
                Reply::Challenge(challenge) if !challenged => {
                    challenged = true;
                    request = Request::Answer(querier.answer(&challenge).map_err(failed)?);
                }
                other => return Err(asked.unexpected(&other).into()),
            }
        };
        let neighbours = self.neighbours[index];
        if !(1..=neighbours).contains(&message.available) {
            let rule = format!("must be 1 to {neighbours}");
            return Err(asked.wrong("available", rule, message.available).into());
        }
        let wanted = self.plan.similarities || self.aggregator.uses_similarities();
        let Some(similarities) = message.similarities.as_ref().filter(|_| wanted) else {
            if wanted == message.similarities.is_some() {
                return Ok(message);
            }
            let rule = "must be present if and only if the method or the aggregator uses them";
            let value = if wanted { "missing" } else { "present" };
            return Err(asked.wrong("similarities", rule, value).into());
        };
        let (found, columns) = (similarities.rows(), similarities.columns());
        if (found, columns) != (keys.rows(), neighbours) {
            let rule = format!("must be {} rows of {neighbours}", keys.rows());
            return Err(asked.wrong("similarities", rule, format!("{found} of {columns}")).into());
        }
        if !similarities.values().iter().all(|value| value.is_finite()) {
            return Err(asked.wrong("similarities", "must be finite", "not").into());
        }
        Ok(message)
    }
}

/// Returns a warning about the loss of a party's other runs, which the report of one run does not show.
fn lifetime_warning(party: &str, standing: Standing) -> Option<String> {
    let Standing { earlier, epsilon, delta, .. } = standing;
    let epsilon = epsilon.map_or_else(|| "unbounded".to_string(), |epsilon| format!("{epsilon:.4}"));
    (earlier > 0).then(|| {
        format!(
            "party \"{party}\": its lifetime account has {earlier} earlier runs, which the ε of this \
             report does not include; together with this run as planned they have ε = {epsilon} at δ = \
             {delta:e}"
        )
    })
}
