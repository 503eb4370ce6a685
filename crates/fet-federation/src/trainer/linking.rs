//! Linking: the primary sends its keys to the secondaries, which answer with information about the links.

use fet_core::data::{Keys, Matrix};
use fet_core::linker::Querier;
use fet_core::message::{LinkKeys, Linked, Reply, Request};
use tracing::info_span;

use super::core::PrimaryCore;
use super::error::RunError;
use super::links::{NewRecords, PartyLinks, RowLinks};
use crate::federation::{PartyIndex, SentRequest};
use crate::prepare::{PreparedParty, Uniform};
use crate::secondary::linking_seed;

impl PrimaryCore {
    /// Links every active secondary to the primary's keys. As many secondaries link at the same time as may compute in
    /// parallel. `first` makes the request from the encoded keys; `standardise` standardises the similarities of a
    /// party, from 0.
    pub(super) fn link(
        &mut self,
        keys: &Keys,
        first: fn(LinkKeys) -> Request,
        mut standardise: impl FnMut(usize, &mut Matrix<f32>),
    ) -> Result<RowLinks, RunError> {
        let _span = info_span!(target: "fet", "linking", rows = keys.rows() as i64).entered();
        let mut parties: Vec<Option<PartyLinks>> = (0..self.federation.len()).map(|_| None).collect();
        for group in self.federation.active().chunks(self.federation.threads()) {
            for (&party, linked) in group.iter().zip(self.link_with(group, keys, first)?) {
                let Linked { available, similarities } = linked;
                let similarities = similarities.map(|mut values| {
                    standardise(party, &mut values);
                    values
                });
                parties[party] = Some(PartyLinks { available, similarities });
            }
        }
        Ok(RowLinks { parties })
    }

    /// Links the records of secondaries (from 0, ascending) with `keys`, all at the same time, and returns their
    /// information about the links.
    fn link_with(
        &mut self,
        parties: &[usize],
        keys: &Keys,
        first: fn(LinkKeys) -> Request,
    ) -> Result<Vec<Linked>, RunError> {
        let mut queriers = Vec::with_capacity(parties.len());
        let mut requests = Vec::with_capacity(parties.len());
        for &party in parties {
            let (querier, encoded) = self.encode(party, keys)?;
            queriers.push(querier);
            requests.push(first(LinkKeys { keys: encoded }));
        }
        let replies = self.federation.exchange_all(parties, requests)?;
        let (mut challenged, mut answers) = (Vec::new(), Vec::new());
        let mut linked: Vec<Option<(SentRequest, Linked)>> = Vec::with_capacity(parties.len());
        for ((&party, querier), (sent, reply)) in parties.iter().zip(&mut queriers).zip(replies) {
            linked.push(match reply {
                Reply::Linked(message) => Some((sent, message)),
                Reply::Challenge(challenge) => {
                    let answer = querier.answer(&challenge);
                    let party_name = || self.federation.name(party).to_string();
                    answers.push(Request::Answer(
                        answer.map_err(|source| RunError::Link { party: party_name(), source })?,
                    ));
                    challenged.push(party);
                    None
                }
                other => return Err(sent.unexpected(&other).into()),
            });
        }
        let places = linked.iter_mut().filter(|place| place.is_none());
        for (place, (sent, reply)) in places.zip(self.federation.exchange_all(&challenged, answers)?) {
            let Reply::Linked(message) = reply else { return Err(sent.unexpected(&reply).into()) };
            *place = Some((sent, message));
        }
        let linked = linked.into_iter().map(|linked| linked.expect("every party has linked"));
        parties
            .iter()
            .zip(linked)
            .map(|(&party, (sent, linked))| self.checked_links(party, keys.rows(), sent, linked))
            .collect()
    }

    /// Encodes the primary's keys for a secondary. New keys are encoded as those of the run.
    fn encode(&mut self, party: usize, keys: &Keys) -> Result<(Box<dyn Querier>, Keys), RunError> {
        let mut querier = self.components.linker.querier(linking_seed(self.seed, PartyIndex::new(party)));
        let encoded = match &self.encodings[party] {
            Some(learned) => querier.encode_like(keys, learned),
            None => querier.encode(keys),
        };
        let name = || self.federation.name(party).to_string();
        let encoded = encoded.map_err(|source| RunError::Link { party: name(), source })?;
        if self.encodings[party].is_none() {
            self.encodings[party] = querier.learned();
        }
        Ok((querier, encoded))
    }

    /// Returns a secondary's information about the links of `rows` keys, if it is sound.
    fn checked_links(
        &self,
        party: usize,
        rows: usize,
        sent: SentRequest,
        message: Linked,
    ) -> Result<Linked, RunError> {
        let neighbours = self.components.neighbours[party];
        if !(1..=neighbours).contains(&message.available) {
            let rule = format!("must be 1 to {neighbours}");
            return Err(sent.wrong("available", rule, message.available).into());
        }
        let wanted = self.components.plan.similarities || self.components.aggregator.uses_similarities();
        let Some(similarities) = message.similarities.as_ref().filter(|_| wanted) else {
            if wanted == message.similarities.is_some() {
                return Ok(message);
            }
            let rule = "must be present if and only if the method or the aggregator uses them";
            let value = if wanted { "missing" } else { "present" };
            return Err(sent.wrong("similarities", rule, value).into());
        };
        let (found, columns) = (similarities.rows(), similarities.columns());
        if (found, columns) != (rows, neighbours) {
            let rule = format!("must be {rows} rows of {neighbours}");
            return Err(sent.wrong("similarities", rule, format!("{found} of {columns}")).into());
        }
        if !similarities.values().iter().all(|value| value.is_finite()) {
            return Err(sent.wrong("similarities", "must be finite", "not").into());
        }
        Ok(message)
    }

    /// Links prepared new records with every active party; `scales` standardise each party's similarities.
    /// The records replace earlier new records at the parties.
    pub(super) fn link_new(
        &mut self,
        records: PreparedParty,
        scales: &[Option<Uniform>],
    ) -> Result<NewRecords, RunError> {
        let links = self.link(&records.raw_keys, Request::Predict, |party, values| {
            if let Some(Some(scale)) = scales.get(party) {
                scale.apply(values);
            }
        })?;
        Ok(NewRecords { records, links })
    }
}
