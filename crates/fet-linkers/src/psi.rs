//! `psi`: links records with equal keys by private set intersection. No key leaves its party.
//!
//! The primary is the querier and the secondary is the data holder ([`fet_linkage::psi`]). They exchange
//! three messages, each with one byte for the kind of keys and 32 bytes per key. The first message also
//! contains one byte for the comparison of each column of texts. Equality, and the treatment of records
//! without an equal key, are as in `exact`. Random bytes replace a key without content. The challenge has one
//! element for each record, and all elements differ, however often a key occurs. Each side draws a new secret
//! exponent for each link from the operating system, never from the seed. The links do not depend on the
//! exponents, and two data holders that compare their messages cannot find equal keys of the primary.

use fet_linkage::psi::{self, ELEMENT, PsiError};
use rand::{CryptoRng, Rng};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::equal::{Compare, contents, repeated};
use crate::exact::{filled, filling};
use crate::{links, wire};
use fet_core::data::{Comparison, KeyKind, Keys, Sealed};
use fet_core::linker::{
    About, DataHolder, LinkError, LinkTask, Linker, Links, Querier, Reveals, check_apart, check_shapes,
};
use fet_core::registry::{Plugin, Recipe, Violation};

/// Settings of `psi`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PsiSettings {
    /// Number K of records that are linked to each primary record. Records without an equal key are drawn at
    /// random.
    #[schemars(range(min = 1))]
    pub neighbours: usize,
    /// True if a party with fewer than K records repeats its records up to K (repeats are masked out). If
    /// false, the linker refuses such a party.
    pub pad: bool,
    /// Texts that count as missing in addition to empty cells, in any case, such as ["n/a", "unknown"].
    pub missing: Vec<String>,
    /// Comparison of text keys: unchanged, in normal form, or as the primary's cells of each column
    /// determine. In the last case, the secondary learns the comparison of each column.
    pub compare: Compare,
}

impl Default for PsiSettings {
    fn default() -> Self {
        Self { neighbours: 1, pad: false, missing: Vec::new(), compare: Compare::Auto }
    }
}

impl Recipe<dyn Linker> for PsiSettings {
    fn build(&self, (): &()) -> Result<Box<dyn Linker>, Violation> {
        Ok(Box::new(Psi(self.clone())))
    }
}

inventory::submit! {
    Plugin::<dyn Linker>::new::<PsiSettings>("psi", "records with an equal key, by private set intersection")
}

struct Psi(PsiSettings);

impl Linker for Psi {
    fn about(&self) -> About {
        let reveals = Reveals {
            secondary: "the primary rows with a key equal to one of its own keys, the primary rows with equal keys, the number of \
                        rows, and the content of each key column (numbers, identifiers or names)",
            primary: "the secondary's number of records, but neither the number of distinct keys nor their frequencies",
            eavesdropper: "both numbers of records",
        };
        let about = About::new(self.0.neighbours, KeyKind::Either, reveals);
        About { floor: Some(0.0), equality: true, in_the_clear: false, challenges: true, ..about }
    }

    fn notes(&self, queries: &Keys) -> Vec<String> {
        self.0.compare.notes(queries, &self.0.missing)
    }

    fn querier(&self, _seed: u64) -> Box<dyn Querier> {
        Box::new(Primary { querier: None, settings: self.0.clone() })
    }

    fn data_holder(&self, seed: u64) -> Box<dyn DataHolder> {
        Box::new(Secondary { settings: self.0.clone(), seed, waiting: None, warnings: Vec::new() })
    }
}

/// The querier. It keeps the exponent of the last keys until it has answered their challenge.
struct Primary {
    querier: Option<psi::Querier>,
    settings: PsiSettings,
}

impl Querier for Primary {
    fn encode(&mut self, queries: &Keys) -> Result<Keys, LinkError> {
        let kind = kind(queries)?;
        let PsiSettings { missing, compare, .. } = &self.settings;
        compare.check_keys(queries, missing)?;
        check_apart(queries)?;
        let compared = queries.text().map(|keys| compare.columns(keys, missing)).unwrap_or_default();
        let (querier, message) =
            psi::Querier::ask(&blindable(contents(queries, missing, &compared)), &mut rng());
        self.querier = Some(querier);
        let message = write(kind, &compared, message);
        Ok(Keys::Sealed(Sealed::new(queries.rows(), queries.columns(), message)))
    }

    fn answer(&mut self, challenge: &Sealed) -> Result<Sealed, LinkError> {
        let (kind, elements) = read(challenge)?;
        let querier = self
            .querier
            .take()
            .ok_or_else(|| LinkError::Message("it is a challenge, but no keys were sent".into()))?;
        let message = write(kind, &[], querier.answer(elements).map_err(unreadable)?);
        Ok(Sealed::new(challenge.rows(), challenge.columns(), message))
    }
}

struct Secondary {
    settings: PsiSettings,
    seed: u64,
    /// Exponent and order of the pending challenge, and its number of records.
    waiting: Option<(psi::DataHolder, usize)>,
    warnings: Vec<String>,
}

impl DataHolder for Secondary {
    fn challenge(&mut self, queries: &Keys, records: &Keys) -> Result<Option<Sealed>, LinkError> {
        let kind = kind(records)?;
        check_apart(records).map_err(LinkError::of_own_table)?;
        let PsiSettings { missing, compare, neighbours, .. } = &self.settings;
        let (queried, compared, _) = read_queries(wire::sealed(queries)?)?;
        check_kinds(queried, records)?;
        compare.check(&compared)?;
        if queried == TEXT && compared.len() != records.columns() {
            return Err(LinkError::KeyMismatch { queries: compared.len(), records: records.columns() });
        }
        self.warnings = compare.warnings(&compared, records, missing);
        let keys = contents(records, missing, &compared);
        self.warnings.extend(repeated(&keys, records, *neighbours));
        let (data_holder, message) = psi::DataHolder::offer(&blindable(keys), &mut rng());
        self.waiting = Some((data_holder, records.rows()));
        Ok(Some(Sealed::new(records.rows(), records.columns(), write(kind, &[], message))))
    }

    fn link(&mut self, task: &LinkTask<'_>) -> Result<Links, LinkError> {
        let PsiSettings { neighbours, pad, .. } = self.settings;
        let (message, records) = (wire::sealed(task.queries)?, task.records);
        check_shapes(message.columns(), records.columns(), records.rows(), neighbours, pad)?;
        let (kind, _, queries) = read_queries(message)?;
        check_kinds(kind, records)?;
        let answer =
            task.answer.ok_or_else(|| LinkError::Message("the answer to the challenge is missing".into()))?;
        let (_, answer) = read(answer)?;
        // Each exponent serves one link.
        let (data_holder, challenged) = self
            .waiting
            .take()
            .ok_or_else(|| LinkError::Message("it answers no pending challenge".into()))?;
        if challenged != records.rows() {
            return Err(LinkError::Message(format!(
                "it answers a challenge for {challenged} records, but there are {}",
                records.rows()
            )));
        }
        let equal = data_holder.intersect(queries, answer).map_err(unreadable)?;
        let equal = equal.iter().map(Vec::as_slice);
        let found =
            filled(equal, neighbours.min(records.rows()), records.rows(), &mut filling(self.seed, task));
        (task.progress)(message.rows());
        Ok(links(neighbours, found))
    }

    fn warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }
}

/// First byte of messages about texts and about numbers: texts and numbers are never equal. The byte for texts changes with the forms of
/// comparison; it was 't' while cells with signs of identifiers counted as numbers and rows with an empty cell could be equal.
const TEXT: u8 = b'u';
const NUMBERS: u8 = b'n';

fn kind(keys: &Keys) -> Result<u8, LinkError> {
    match keys {
        Keys::Text(_) => Ok(TEXT),
        Keys::Numbers(_) => Ok(NUMBERS),
        Keys::Sealed(_) => Err(LinkError::kind(KeyKind::Either, keys)),
    }
}

/// Refuses texts if the records are numbers, and the reverse.
fn check_kinds(queried: u8, records: &Keys) -> Result<(), LinkError> {
    if queried == kind(records)? {
        return Ok(());
    }
    let queries = if queried == TEXT { KeyKind::Text } else { KeyKind::Numbers };
    Err(LinkError::Mixed { queries: queries.name(), records: records.kind_name() })
}

/// Comparisons with their bytes in a message.
const COMPARISONS: [(Comparison, u8); 3] =
    [(Comparison::Verbatim, b'v'), (Comparison::Numbers, b'n'), (Comparison::Normal, b'f')];

fn write(kind: u8, compared: &[Comparison], elements: Vec<u8>) -> Vec<u8> {
    let byte = |how: &Comparison| COMPARISONS.iter().find(|(known, _)| known == how).map(|(_, byte)| *byte);
    std::iter::once(kind).chain(compared.iter().filter_map(byte)).chain(elements).collect()
}

/// Reads the kind, the comparisons and the elements of the primary's keys.
fn read_queries(message: &Sealed) -> Result<(u8, Vec<Comparison>, &[u8]), LinkError> {
    let Some((&TEXT, rest)) = message.bytes().split_first() else {
        let (kind, elements) = read(message)?;
        return Ok((kind, Vec::new(), elements));
    };
    let unreadable = || LinkError::Message("it does not name the comparison of each key column".into());
    let (bytes, elements) = rest.split_at_checked(message.columns()).ok_or_else(unreadable)?;
    let known = |byte: &u8| COMPARISONS.iter().find(|(_, known)| known == byte).map(|(how, _)| *how);
    let compared: Vec<Comparison> = bytes.iter().map(known).collect::<Option<_>>().ok_or_else(unreadable)?;
    wire::expect(elements.len(), message.rows(), ELEMENT)?;
    Ok((TEXT, compared, elements))
}

/// Reads the kind and the elements of a challenge or an answer. The number of elements must equal the stated
/// number of keys.
fn read(message: &Sealed) -> Result<(u8, &[u8]), LinkError> {
    match message.bytes() {
        [kind @ (TEXT | NUMBERS), elements @ ..] => {
            wire::expect(elements.len(), message.rows(), ELEMENT)?;
            Ok((*kind, elements))
        }
        _ => Err(LinkError::Message("it does not begin with the kind of its keys".into())),
    }
}

fn unreadable(error: PsiError) -> LinkError {
    LinkError::Message(error.to_string())
}

/// Returns the generator of secrets: the thread-local generator, which the operating system seeds and
/// reseeds.
fn rng() -> impl CryptoRng {
    rand::rng()
}

/// The bytes to blind for each key; a key with an empty cell gets random bytes, which equal nothing.
fn blindable(keys: Vec<Option<Vec<u8>>>) -> Vec<Vec<u8>> {
    let mut rng = rng();
    let mut fresh = || {
        let mut bytes = vec![0u8; ELEMENT];
        rng.fill_bytes(&mut bytes);
        bytes
    };
    keys.into_iter().map(|key| key.unwrap_or_else(&mut fresh)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;
    use fet_core::data::TextTable;

    fn text(cells: &[&str]) -> Keys {
        Keys::Text(TextTable::new(1, cells.iter().map(|cell| cell.to_string()).collect()))
    }

    fn linker() -> Psi {
        Psi(PsiSettings { neighbours: 2, ..PsiSettings::default() })
    }

    /// Returns the elements of a message.
    fn sent(message: &Sealed) -> Vec<[u8; ELEMENT]> {
        let (_, elements) = read(message).expect("a message of the other's");
        elements.as_chunks::<ELEMENT>().0.to_vec()
    }

    /// Returns the elements of the primary's keys.
    fn query_elements(message: &Sealed) -> Vec<[u8; ELEMENT]> {
        let (_, _, elements) = read_queries(message).expect("the primary's keys");
        elements.as_chunks::<ELEMENT>().0.to_vec()
    }

    fn queries(querier: &mut dyn Querier, keys: &Keys) -> Sealed {
        match querier.encode(keys).expect("they can be encoded") {
            Keys::Sealed(message) => message,
            other => panic!("psi must seal keys, but these are {}", other.kind_name()),
        }
    }

    /// Returns the number of occurrences of each element, highest first. A message with random-looking
    /// elements contains no other information.
    fn histogram(message: &Sealed) -> Vec<usize> {
        let mut counts = HashMap::new();
        sent(message).into_iter().for_each(|element| *counts.entry(element).or_insert(0) += 1);
        let mut counts: Vec<usize> = counts.into_values().collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        counts
    }

    #[test]
    fn a_challenge_shows_neither_repeated_nor_distinct_keys() {
        for records in [
            ["a", "a", "a", "a", "b", "b"],
            ["a", "a", "b", "b", "c", "c"],
            ["a", "b", "c", "d", "e", "f"],
            ["", "", "", "a", "a", ""],
        ] {
            let queries = Keys::Sealed(queries(linker().querier(1).as_mut(), &text(&["a"])));
            let challenge = linker()
                .data_holder(1)
                .challenge(&queries, &text(&records))
                .expect("keys")
                .expect("psi asks back");
            assert_eq!((challenge.rows(), histogram(&challenge)), (6, vec![1; 6]), "{records:?}");
        }
    }

    /// Two data holders that compare the messages of one querier find no common element, although the keys
    /// are equal. Neither does a querier among the challenges of one data holder.
    #[test]
    fn no_two_links_share_an_exponent() {
        let keys = text(&["a", "b", "c"]);
        let (mut querier, mut data_holder) = (linker().querier(1), linker().data_holder(1));
        let mut seen = HashSet::new();
        for _ in 0..3 {
            let message = queries(querier.as_mut(), &keys);
            assert!(
                query_elements(&message).into_iter().all(|element| seen.insert(element)),
                "the querier's"
            );
            let message = Keys::Sealed(message);
            let challenge = data_holder.challenge(&message, &keys).expect("keys").expect("psi asks back");
            assert!(sent(&challenge).into_iter().all(|element| seen.insert(element)), "the data holder's");
            let answer = querier.answer(&challenge).expect("the data holder's challenge");
            let task = LinkTask { answer: Some(&answer), ..LinkTask::new(&message, &keys) };
            let links = data_holder.link(&task).expect("linkable");
            assert_eq!([links.row(0)[0], links.row(1)[0], links.row(2)[0]], [0, 1, 2]);
            assert!(querier.answer(&challenge).is_err(), "an exponent serves one challenge");
        }
    }
}
