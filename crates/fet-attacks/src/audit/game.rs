//! One training run of an audit with some canaries in, and the attacker's scores for this run.

use std::sync::{Arc, OnceLock};

use fet_core::aggregator::{Role, SecureSum};
use fet_core::data::{PartyTable, VerticalData};
use fet_core::experiment::Experiment;
use fet_core::party::Party;
use fet_core::privacy::{Neighbouring, Spent};
use fet_core::rng::{OwnSeed, Purpose, stream};
use fet_federation::data::divided;
use fet_federation::secondary::{PartyConfig, Secondary, Store};
use fet_federation::simulation::Simulation;
use fet_federation::trainer::{Machine, Trainer};
use fet_io::input::input;
use fet_privacy::identity::{Identities, Identity};
use rand::Rng;

use super::canaries::Canaries;
use super::replay::Copies;
use super::tape::{RecordedParty, Tape, Transcript, observed};

/// Change that an owner makes to its table before its party receives it; the identity, except in audits of a
/// misbehaving owner.
pub type Owner<'a> = &'a dyn Fn(PartyTable) -> PartyTable;

/// Experiment with canaries.
pub(super) struct Game<'a> {
    experiment: &'a Experiment,
    data: &'a VerticalData,
    machine: &'a Machine,
    owner: Owner<'a>,
    canaries: Canaries,
    copies: Copies<'a>,
    sum: Option<SecureSum>,
    /// Cached releases of the copies, if they do not depend on the messages of a run.
    frozen: Option<OnceLock<Centres>>,
}

/// Completed training run.
pub(super) struct CompletedRun {
    tapes: Vec<Tape>,
    seen: Transcript,
    /// Privacy cost that the run claims.
    pub(super) spent: Spent,
}

/// Evidence of a run about one canary.
#[derive(Debug, Clone, Copy)]
pub(super) struct Score {
    /// Log-likelihood ratio of presence against absence.
    pub(super) ratio: f64,
    /// Distance that the canary moves the releases, in standard deviations of the noise.
    pub(super) moved: f64,
}

/// Releases without noise: without canaries, and with each canary alone.
struct Centres {
    without: Transcript,
    with: Vec<Transcript>,
}

impl<'a> Game<'a> {
    /// Prepares an experiment on these tables with `canaries` canaries.
    ///
    /// # Errors
    /// Returns an error if the tables have too few rows for the canaries, or if the experiment has nothing to audit.
    pub(super) fn new(
        experiment: &'a Experiment,
        data: &'a VerticalData,
        canaries: usize,
        machine: &'a Machine,
        owner: Owner<'a>,
    ) -> anyhow::Result<Self> {
        if !experiment.method.build(&()).map_err(input)?.plan().secondaries {
            let kind = experiment.method.kind();
            return Err(input(format!(
                "the method \"{kind}\" works without secondaries, so there is nothing to audit"
            )));
        }
        if experiment.train.refine_keys {
            let rule = "`train.refine_keys` must be false in an audit: canaries are placed at the keys, and the \
             guarantee must hold for any requested keys";
            return Err(input(rule));
        }
        let privacy = experiment.privacy.build(&()).map_err(input)?;
        // A mechanism without a claim is audited with the relation that replaces a record.
        let relation = experiment.privacy.settings().remove("neighbouring");
        let relation = relation.and_then(|word| word.try_into().ok()).unwrap_or(Neighbouring::Record);
        let aggregator = experiment.aggregator.build(&()).map_err(input)?;
        let sum = match aggregator.role() {
            Role::Sum(sum) => Some(sum.form()),
            Role::Combine(_) => None,
        };
        let keys = &data.primary.keys;
        let neighbours = experiment.linker.build(&()).map_err(input)?.about().neighbours;
        let room = (canaries, neighbours, privacy.selection().occurrences > 0);
        let canaries = Canaries::new(relation, room, keys, experiment.seed).map_err(input)?;
        Ok(Self {
            experiment,
            data,
            machine,
            owner,
            canaries,
            copies: Copies::new(experiment, keys, machine).map_err(input)?,
            sum,
            frozen: privacy.freezes_secondaries().then(OnceLock::new),
        })
    }

    pub(super) fn canaries(&self) -> usize {
        self.canaries.count()
    }

    /// Trains the experiment with the canaries that are `inside`.
    ///
    /// Each number `run` has independent noise, from secrets of the parties as in a deployment.
    pub(super) fn play(&self, inside: &[bool], run: u64) -> anyhow::Result<CompletedRun> {
        let (primary, tables) = divided(self.experiment, self.data.clone())?;
        let parties = tables.len();
        let secret = |party: usize| {
            let mut secret = [0; 32];
            stream(self.experiment.seed, party + 1, Purpose::Noise, run).fill_bytes(&mut secret);
            OwnSeed::repeating(secret)
        };
        let identity = |party: usize| Identity::from_secret(*secret(party).secret("identity"));
        let roster: Identities = (0..parties).map(|party| identity(party).public()).collect();
        let simulation = Simulation::new(self.experiment, self.machine);
        let mut tapes = Vec::with_capacity(parties);
        let mut all: Vec<Box<dyn Party>> = Vec::with_capacity(parties);
        for (index, table) in tables.into_iter().enumerate() {
            let table = self.table(index, &table, inside);
            let party = Secondary::new(PartyConfig {
                file: table.name.clone(),
                table,
                settings: self.experiment.common(),
                seed: secret(index),
                identity: identity(index),
                roster: roster.clone(),
                policy: self.experiment.policy.clone(),
                device: self.machine.device.clone(),
                computation: self.experiment.train.computation(self.machine.on_host),
                evaluation_cache: self.experiment.train.evaluation_cache_of(1),
                store: Store::Memory(Vec::new()),
                lifetime: None,
                model: None,
                start: None,
                tell: Arc::new(|_| ()),
            });
            let tape = Tape::default();
            all.push(Box::new(RecordedParty(simulation.wired(party), Arc::clone(&tape))));
            tapes.push(tape);
        }
        let mut trainer =
            Trainer::new(self.experiment, primary, all, Vec::new(), self.machine).map_err(input)?;
        while !trainer.is_done() {
            trainer.epoch(&mut |_| true)?;
            if self.frozen.is_some() {
                // All rows have been released, and no further release follows.
                break;
            }
        }
        let mut privacy = self.experiment.privacy.build(&())?;
        privacy.prepare(&trainer.releases().planned)?;
        let seen = observed(&tapes, self.sum, privacy.as_ref())?;
        let spent = trainer.spent().ok_or_else(|| input("no party releases anything"))?;
        Ok(CompletedRun { tapes, seen, spent })
    }

    /// Returns the attacker's scores for all canaries.
    pub(super) fn scores(&self, played: &CompletedRun) -> anyhow::Result<Vec<Score>> {
        let made;
        let centres = match self.frozen.as_ref().map(OnceLock::get) {
            Some(Some(centres)) => centres,
            _ => {
                made = self.centres(&played.tapes)?;
                match &self.frozen {
                    Some(kept) => kept.get_or_init(|| made),
                    None => &made,
                }
            }
        };
        let guarantee = played.spent.guarantee.as_ref();
        let noise = guarantee.map_or(1.0, |guarantee| guarantee.noise * guarantee.clip);
        let score = |with: &Transcript| Score {
            ratio: played.seen.ratio(&centres.without, with) / noise.powi(2),
            moved: centres.without.distance(with).sqrt() / noise,
        };
        Ok(centres.with.iter().map(score).collect())
    }

    /// Computes the releases of all parties to the same requests, without canaries and with each canary.
    fn centres(&self, tapes: &[Tape]) -> anyhow::Result<Centres> {
        let (nobody, summed) = (vec![false; self.canaries()], self.sum.is_some());
        let mut others = Transcript::default();
        let (mut without, mut with) = (Transcript::default(), vec![Transcript::default(); nobody.len()]);
        for (index, (table, tape)) in self.data.secondaries.iter().zip(tapes).enumerate() {
            let replay = |inside: &[bool]| {
                self.copies.replay(index, tapes.len(), self.table(index, table, inside), tape)
            };
            if !self.canaries.are_in(index) {
                // If the attacker sees each party's part, the parts of other parties carry no information
                // about the canaries.
                if summed {
                    others.extend(&replay(&nobody)?, summed);
                }
                continue;
            }
            without.extend(&replay(&nobody)?, summed);
            for (canary, with) in with.iter_mut().enumerate() {
                let only: Vec<bool> = (0..nobody.len()).map(|other| other == canary).collect();
                with.extend(&replay(&only)?, summed);
            }
        }
        for centre in with.iter_mut().chain([&mut without]) {
            centre.extend(&others, summed);
        }
        Ok(Centres { without, with })
    }

    /// Returns the table of a party after its owner has prepared it, with these canaries if the party holds
    /// them.
    fn table(&self, index: usize, table: &PartyTable, inside: &[bool]) -> PartyTable {
        let table = if self.canaries.are_in(index) {
            self.canaries.insert_into(table, inside)
        } else {
            table.clone()
        };
        (self.owner)(table)
    }
}
