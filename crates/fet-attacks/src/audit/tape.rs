//! Records of the messages that the primary receives in a run: the parts of every party, and their sums.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use fet_core::aggregator::SecureSum;
use fet_core::message::{Reply, Request, Round};
use fet_core::party::{Failure, Party};
use fet_core::privacy::PrivacyMechanism;
use fet_federation::secure_aggregation;
use fet_privacy::secure_sum::{Unmasking, total, unmask};

/// All requests to a party with its replies, in order.
pub(super) type Tape = Arc<Mutex<Vec<(Request, Reply)>>>;

/// Party whose messages are recorded.
pub(super) struct RecordedParty<P>(pub(super) P, pub(super) Tape);

impl<P: Party> Party for RecordedParty<P> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn ask(&mut self, request: Request) -> Result<Reply, Failure> {
        let reply = self.0.ask(request.clone())?;
        self.1.lock().unwrap_or_else(PoisonError::into_inner).push((request, reply.clone()));
        Ok(reply)
    }
}

/// Values of every release of a run in the order of rows, by party, or their sums under party 0.
#[derive(Debug, Clone, Default)]
pub(super) struct Transcript(BTreeMap<(Round, usize), Vec<f32>>);

impl Transcript {
    /// Adds a party's part of a release to the entry of this party, or to the sum if `summed`.
    pub(super) fn add(&mut self, round: Round, party: usize, summed: bool, values: &[f32]) {
        let sum = self.0.entry((round, if summed { 0 } else { party })).or_default();
        if sum.is_empty() {
            sum.extend_from_slice(values);
        } else {
            sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
        }
    }

    /// Adds all releases of another transcript.
    pub(super) fn extend(&mut self, other: &Self, summed: bool) {
        for (&(round, party), values) in &other.0 {
            self.add(round, party, summed, values);
        }
    }

    /// Returns the squared distance of two transcripts of the same releases.
    pub(super) fn distance(&self, other: &Self) -> f64 {
        let pairs = self.0.iter().filter_map(|(key, a)| Some(a.iter().zip(other.0.get(key)?)));
        pairs.flatten().map(|(&a, &b)| (f64::from(a) - f64::from(b)).powi(2)).sum()
    }

    /// Returns ⟨self − (without + with)/2, with − without⟩ over all releases.
    ///
    /// In units of the noise's variance, this is the log-likelihood ratio of Gaussian noise around `with` or
    /// `without`.
    pub(super) fn ratio(&self, without: &Self, with: &Self) -> f64 {
        let term = |((&x, &a), &b): ((&f32, &f32), &f32)| {
            let (x, a, b) = (f64::from(x), f64::from(a), f64::from(b));
            (x - 0.5 * (a + b)) * (b - a)
        };
        let releases = self.0.iter().filter_map(|(key, x)| Some((x, without.0.get(key)?, with.0.get(key)?)));
        releases.flat_map(|(x, a, b)| x.iter().zip(a).zip(b)).map(term).sum()
    }
}

/// Returns exactly the information that a primary gets from the messages of all parties: their parts, or the
/// unmasked sums.
pub(super) fn observed(
    tapes: &[Tape],
    sum: Option<SecureSum>,
    privacy: &dyn PrivacyMechanism,
) -> anyhow::Result<Transcript> {
    let mut seen = Transcript::default();
    // Masked messages and unmasking values by round; of several attempts, the last is unmasked.
    let mut sums: BTreeMap<Round, Masks> = BTreeMap::new();
    for (party, tape) in tapes.iter().enumerate() {
        for (request, reply) in tape.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            match (request, reply) {
                (Request::Forward(asked), Reply::Representation(block)) => {
                    seen.add(asked.round, party, false, block.values());
                }
                (Request::Forward(asked), Reply::Masked(masked)) => {
                    let of = sums.entry(asked.round).or_default();
                    of.messages.push(masked.words.clone());
                    (of.shape, of.bits) = (masked.shape, masked.bits);
                }
                (Request::Unmask(asked), Reply::Unmasking(unmasking)) => {
                    // The primary also unmasks sums of parameters, which contain no part of a record.
                    if let Some(of) = sums.get_mut(&asked.round) {
                        of.unmaskings.push(Unmasking(*unmasking));
                    }
                }
                _ => {}
            }
        }
    }
    for (round, Masks { messages, unmaskings, shape, bits }) in sums {
        let form = sum.context("masked messages of a run without sums")?;
        let active = messages.len();
        let units = secure_aggregation::units(form, privacy.form(active, shape[1] * shape[2]), active)?;
        let mut words = total(messages, bits)?;
        unmask(&mut words, &unmaskings, bits);
        seen.add(round, 0, true, &units.values(&words));
    }
    Ok(seen)
}

#[derive(Default)]
struct Masks {
    messages: Vec<Vec<u32>>,
    unmaskings: Vec<Unmasking>,
    shape: [usize; 3],
    bits: u32,
}
