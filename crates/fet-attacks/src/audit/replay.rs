//! Computes the releases without noise that a party would have made with a different table.
//!
//! To do so, the attacker sends the requests of a run to a copy of the party.
//!
//! The attacker of differential privacy knows all records except one. It also knows the initial weights and its own
//! requests, including gradients. The copy's answers on either table are the means of the noisy observations,
//! even if models learn. A party's draw of records (`privacy.sample_rate`) is secret, so the copy uses all
//! records.

use std::sync::Arc;

use fet_core::aggregator::Role;
use fet_core::data::{Keys, PartyTable};
use fet_core::experiment::Experiment;
use fet_core::linker::Linker;
use fet_core::message::{LinkKeys, Reply, Request};
use fet_core::party::Party;
use fet_core::policy::Policy;
use fet_core::registry::Slot;
use fet_core::rng::OwnSeed;
use fet_federation::federation::PartyIndex;
use fet_federation::privacy::without_noise;
use fet_federation::secondary::{PartyConfig, Secondary, Store, linking_seed};
use fet_federation::trainer::Machine;
use fet_privacy::identity::Identity;

use super::tape::{Tape, Transcript};

/// Copies of parties that answer in the clear and without noise, except for noise below rounding.
pub(super) struct Copies<'a> {
    experiment: Experiment,
    keys: &'a Keys,
    machine: &'a Machine,
}

impl<'a> Copies<'a> {
    /// Prepares copies of the parties of an experiment; `keys` are the primary's keys.
    ///
    /// # Errors
    /// Returns a message if the noise of the mechanism cannot be switched off.
    pub(super) fn new(experiment: &Experiment, keys: &'a Keys, machine: &'a Machine) -> Result<Self, String> {
        let mut experiment = experiment.clone();
        let refused = |error: &dyn std::fmt::Display| format!("the audit cannot copy a party: {error}");
        let aggregator = experiment.aggregator.build(&()).map_err(|error| refused(&error))?;
        if matches!(aggregator.role(), Role::Sum(_)) {
            experiment.aggregator = Slot::with_defaults("average").map_err(|error| refused(&error))?;
        }
        experiment.privacy = without_noise(&experiment.privacy).map_err(|error| refused(&error))?;
        Ok(Self { experiment, keys, machine })
    }

    /// Returns the answers of party `index` (from 0) of `parties`, with this table, to all requests on the
    /// tape.
    pub(super) fn replay(
        &self,
        index: usize,
        parties: usize,
        table: PartyTable,
        tape: &Tape,
    ) -> anyhow::Result<Transcript> {
        let settings = self.experiment.common().to_toml();
        let mut copy = Secondary::new(PartyConfig {
            file: table.name.clone(),
            table,
            settings: self.experiment.common(),
            seed: OwnSeed::new([0; 32]),
            identity: Identity::from_secret([0; 32]),
            roster: std::iter::repeat_n(Identity::from_secret([0; 32]).public(), parties).collect(),
            policy: Policy::default(),
            device: self.machine.device.clone(),
            computation: self.experiment.train.computation(self.machine.on_host),
            evaluation_cache: self.experiment.train.evaluation_cache_of(1),
            store: Store::Memory(Vec::new()),
            lifetime: None,
            model: None,
            start: None,
            tell: Arc::new(|_| ()),
        });
        let linker = self.experiment.linker.build(&())?;
        let mut released = Transcript::default();
        let tape = tape.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        for (request, _) in tape {
            match request {
                Request::Join(mut terms) => {
                    terms.settings_hash = fet_io::sha256(settings.as_bytes());
                    terms.settings.clone_from(&settings);
                    copy.ask(Request::Join(terms))?;
                }
                Request::Link(_) => self.link(&mut copy, linker.as_ref(), index)?,
                Request::Forward(mut message) => {
                    message.attempt = None;
                    let round = message.round;
                    if let Reply::Representation(block) = copy.ask(Request::Forward(message))? {
                        released.add(round, index, false, block.values());
                    }
                }
                Request::ShareParameters(mut message) => {
                    message.attempt = None;
                    copy.ask(Request::ShareParameters(message))?;
                }
                request @ (Request::Backward(_) | Request::LoadParameters(_)) => {
                    copy.ask(request)?;
                }
                // Ignore requests about keys, unmasking and saved states.
                _ => {}
            }
        }
        Ok(released)
    }

    fn link(&self, copy: &mut Secondary, linker: &dyn Linker, index: usize) -> anyhow::Result<()> {
        let mut querier = linker.querier(linking_seed(self.experiment.seed, PartyIndex::new(index)));
        let mut request = Request::Link(LinkKeys { keys: querier.encode(self.keys)? });
        while let Reply::Challenge(challenge) = copy.ask(request)? {
            request = Request::Answer(querier.answer(&challenge)?);
        }
        Ok(())
    }
}
