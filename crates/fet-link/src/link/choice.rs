//! Selects the links among the candidates: pairs above a threshold, which may be estimated, and one-to-one
//! pairs on request.

use fet_core::linker::{Linker, Links};
use fet_core::registry::Slot;
use fet_linkage::threshold::{BEST_RECORD, Estimate, FEWEST, ONE_TO_ONE, Rivals, of_probabilities};

use super::arguments::{Assign, Threshold};
use super::candidates::{Candidates, DecidedPairs};
use super::decisions::Decisions;
use super::pairs::LinkedPairs;
use super::truth::{self, Truth};
use fet_io::input::input;

/// Number of candidates of a row for an assignment, and for the estimate of a threshold. If another row takes
/// a record, the next candidate may replace it.
pub(super) const CANDIDATES: usize = 10;

/// Returns the linker with K = `neighbours`; returns the linker unchanged if it has no such setting.
pub(super) fn with_neighbours(
    slot: &Slot<dyn Linker>,
    neighbours: usize,
) -> anyhow::Result<Slot<dyn Linker>> {
    let mut table = slot.settings();
    // If records belong to rows by position, K determines the position, so it must not change.
    let by_position = slot.build(&()).map_err(input)?.about().by_position;
    let Some(own) = table.get_mut("neighbours").filter(|_| !by_position) else {
        return Ok(slot.clone());
    };
    *own = toml::Value::Integer(neighbours as i64);
    table.insert("kind".into(), slot.kind().into());
    Slot::from_table(table).map_err(input)
}

/// Rules for the selection among candidates.
#[derive(Clone, Copy)]
pub(super) struct Choice {
    /// Similarity at or below which a pair is never a link.
    pub(super) floor: Option<f32>,
    /// True if similarities are probabilities, which determine a threshold.
    pub(super) probabilities: bool,
    pub(super) threshold: Threshold,
    pub(super) assign: Option<Assign>,
    /// Maximum number of links of a row without an assignment.
    pub(super) wanted: usize,
    /// Maximum number of candidates of a row.
    pub(super) searched: usize,
    /// Number of rows of the searched table.
    pub(super) records: usize,
}

/// Result of the selection.
pub(super) struct Chosen {
    choice: Choice,
    decided: DecidedPairs,
    assigned: Option<Vec<Option<usize>>>,
    estimate: Automatic,
}

/// Result of the estimation of a threshold.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Automatic {
    Estimated(Estimate),
    /// The estimate cannot decide, so every best pair is a link if each row has one. A review begins at its
    /// threshold.
    Doubtful(Estimate),
    /// The estimate expects no match, so no pair is a link.
    Nothing,
    /// The estimate failed: too few rows, or no similarities.
    Unknown,
    /// No estimate was requested.
    NotAsked,
}

impl Choice {
    /// Selects among `links`. `own` links the primary with itself, two neighbours per row, or returns `None`
    /// if that is impossible.
    pub(super) fn select(
        self,
        links: &Links,
        own: impl FnOnce() -> anyhow::Result<Option<Links>>,
    ) -> anyhow::Result<Chosen> {
        let few = links.rows() < FEWEST;
        let estimate = match self.threshold {
            Threshold::Auto if few => Automatic::Unknown,
            Threshold::Auto if self.probabilities => by_probabilities(links),
            Threshold::Auto => match own()? {
                Some(own) => {
                    self.with(links, DecidedPairs::default(), Automatic::NotAsked).estimate(links, &own)
                }
                None => Automatic::Unknown,
            },
            _ => Automatic::NotAsked,
        };
        Ok(self.with(links, DecidedPairs::default(), estimate))
    }

    fn with(self, links: &Links, decided: DecidedPairs, estimate: Automatic) -> Chosen {
        let mut chosen = Chosen { choice: self, decided, assigned: None, estimate };
        if self.assign.is_some() {
            chosen.assigned = Some(one_to_one(&chosen.every(links), self.records));
        }
        chosen
    }
}

impl Chosen {
    /// Returns the selection after a person's decisions.
    ///
    /// The threshold does not change: the decided pairs were picked for their similarity, so the
    /// frequency of matches among them differs from that among all pairs.
    pub(super) fn decided(&self, links: &Links, decisions: &Decisions) -> Self {
        self.choice.with(links, decisions.candidates(links, self.choice.searched), self.estimate)
    }

    /// Returns all candidates above the given threshold, restricted to assigned pairs if an assignment was
    /// requested.
    pub(super) fn every<'a>(&'a self, links: &'a Links) -> LinkedPairs<'a> {
        LinkedPairs {
            candidates: Candidates::new(links, &self.decided, self.choice.searched),
            floor: self.choice.floor,
            threshold: self.given(),
            wanted: usize::MAX,
            assigned: self.assigned.as_deref(),
        }
    }

    /// Returns the pairs to write.
    pub(super) fn written<'a>(&'a self, links: &'a Links) -> LinkedPairs<'a> {
        let threshold = match self.estimate {
            Automatic::Nothing => Some(f32::INFINITY),
            Automatic::Doubtful(_) if self.has_one_pair_per_row() => None,
            _ => self.threshold(),
        };
        LinkedPairs { threshold, wanted: self.choice.wanted, ..self.every(links) }
    }

    /// Returns true if each row has at most one pair. More than one record of a row needs a threshold, even a
    /// doubtful one.
    fn has_one_pair_per_row(&self) -> bool {
        self.choice.wanted == 1 || self.assigned.is_some()
    }

    /// Returns the rank of the candidate that each row would be paired with without a threshold; `None`
    /// without an assignment.
    pub(super) fn contest(&self, links: &Links) -> Option<Vec<Option<usize>>> {
        self.choice.assign?;
        let every = LinkedPairs { threshold: None, assigned: None, ..self.every(links) };
        Some(one_to_one(&every, self.choice.records))
    }

    /// Returns the estimated or the given threshold.
    pub(super) fn threshold(&self) -> Option<f32> {
        match self.estimate {
            Automatic::Estimated(estimate) | Automatic::Doubtful(estimate) => Some(estimate.threshold),
            _ => self.given(),
        }
    }

    /// Returns true if a threshold was requested but cannot be estimated.
    pub(super) fn is_open(&self) -> bool {
        self.estimate == Automatic::Unknown
    }

    /// Estimates the threshold of these pairs: of each row's best record, or of the assigned pairs. `own` links
    /// the primary with itself, two neighbours of each row.
    fn estimate(&self, links: &Links, own: &Links) -> Automatic {
        let rows = links.rows();
        // The two most similar rows of each record.
        let mut rows_of = vec![[(0.0f32, usize::MAX); 2]; self.choice.records];
        for row in 0..rows {
            let similarities = links.similarities(row).unwrap_or_default();
            for (&record, &similarity) in links.row(row).iter().zip(similarities).take(CANDIDATES) {
                let [first, second] = &mut rows_of[record as usize];
                if first.1 != row && similarity > first.0 {
                    (*first, *second) = ((similarity, row), *first);
                } else if first.1 != row && similarity > second.0 {
                    *second = (similarity, row);
                }
            }
        }
        let every = self.every(links);
        let mut pairs = Vec::with_capacity(rows);
        for row in 0..rows {
            let (Some(all), Some(near)) = (links.similarities(row), own.similarities(row)) else {
                return Automatic::Unknown;
            };
            let Some((rank, candidate)) = every.row(row).next() else { continue };
            let itself = own.row(row).first() == Some(&(row as u32));
            let [first, second] = rows_of[candidate.record as usize];
            let found = &all[..CANDIDATES.min(all.len())];
            pairs.push(Rivals {
                similarity: all[rank],
                next_record: found.get(usize::from(rank == 0)).copied().unwrap_or_default(),
                next_row: if first.1 == row { second.0 } else { first.0 },
                last: found.last().copied().unwrap_or_default(),
                own: near[usize::from(itself).min(near.len() - 1)],
            });
        }
        if pairs.len() < FEWEST {
            return Automatic::Unknown;
        }
        let function = if self.assigned.is_some() { ONE_TO_ONE } else { BEST_RECORD };
        let ratio = self.choice.records as f64 / rows as f64;
        match function.threshold(&pairs, ratio) {
            Some(estimate) if estimate.is_doubtful() => Automatic::Doubtful(estimate),
            Some(estimate) => Automatic::Estimated(estimate),
            None => Automatic::Nothing,
        }
    }

    /// Returns true if the estimated threshold is doubtful.
    pub(super) fn is_doubtful(&self) -> bool {
        matches!(self.estimate, Automatic::Doubtful(_))
    }

    fn given(&self) -> Option<f32> {
        if let Threshold::At(given) = self.choice.threshold { Some(given) } else { None }
    }

    /// Returns lines for people about the unpaired rows of the assignment, and about the estimate.
    pub(super) fn describe(&self, links: &Links) -> String {
        let mut text = String::new();
        if let Some(assigned) = &self.assigned {
            let lost = (0..links.rows())
                .filter(|&row| assigned[row].is_none() && links.similarities(row).is_some())
                .count();
            text += &format!(
                "one to one: {lost} rows have no pair, because other rows are more similar to their {} candidates, or \
                 no candidate is similar\n",
                self.every(links).candidates.searched()
            );
        }
        text + &self.estimate.describe(self.choice.probabilities, self.has_one_pair_per_row())
    }

    /// Returns lines for people about the quality of the links.
    pub(super) fn quality(&self, links: &Links, truth: &Truth) -> String {
        let mut text = truth::text(&self.every(links), truth);
        if self.threshold().is_some_and(|_| self.given().is_none()) || !self.decided.is_empty() {
            text += &truth::written(&self.written(links), truth);
        }
        text
    }
}

impl Automatic {
    /// Returns lines for people about the estimate, from `probabilities` or from similarities within the
    /// primary, if each row has one pair (`one_each`) or several.
    fn describe(&self, probabilities: bool, one_each: bool) -> String {
        let of_best = if one_each { "" } else { " of each row's best pair" };
        match self {
            Self::Nothing if probabilities => "no match is expected: the columns of each row's best record agree no \
             more than by chance. Only decided pairs are written (use --threshold NUMBER, or none for every pair).\n"
                .to_string(),
            Self::Estimated(estimate) => {
                let mut text = format!(
                    "threshold {:.4}, estimated: expected precision{of_best} {:.1} %, expected recall {:.1} % of {:.0} \
                     matches (--threshold none writes every pair)\n",
                    estimate.threshold,
                    100.0 * estimate.precision(),
                    100.0 * estimate.recall(),
                    estimate.matches
                );
                if !probabilities {
                    text += &Self::range(estimate);
                }
                text
            }
            Self::Doubtful(estimate) => {
                let written = if one_each {
                    "every best pair is written, right or wrong"
                } else {
                    "many of the written pairs are wrong"
                };
                format!(
                    "warning: the threshold is doubtful, so {written}. At similarity {:.4}, {} best pairs are expected to be \
                     right of {}. Decide some pairs with `fet link --review FOLDER`, which shows the pairs nearest this \
                     similarity, or set --threshold NUMBER.\n",
                    estimate.threshold,
                    estimate.correct.round(),
                    estimate.links
                )
            }
            Self::Nothing => "warning: no match is expected, so only decided pairs are written: most rows have another record that \
             is as similar as the best one. This also happens if the other table has duplicates. Remove them, or use --threshold \
             NUMBER, or none for every pair.\n"
                .to_string(),
            Self::Unknown => format!(
                "warning: no threshold could be estimated, so every best pair is written, right or wrong. An estimate needs \
                 {FEWEST} rows with a candidate, two records, and a linker that can return two records. --threshold NUMBER \
                 leaves out less similar pairs.\n"
            ),
            Self::NotAsked => String::new(),
        }
    }

    /// Returns a line about the range of the precision.
    fn range(estimate: &Estimate) -> String {
        match estimate.precision_range() {
            Some([least, most]) => format!(
                "  the precision is probably from {:.0} to {:.0} %, if a fifth of the rows or more have a match; `fet link \
                 --review FOLDER` shows the pairs nearest the threshold\n",
                100.0 * least,
                100.0 * most
            ),
            None => "warning: if few rows have a match, or none, the precision is far lower than expected. Check some pairs \
                     with `fet link --review FOLDER`, which shows the pairs nearest the threshold, or set --threshold NUMBER.\n"
                .to_string(),
        }
    }
}

/// Estimates the best threshold for each row's best record if a similarity is the probability of a match.
fn by_probabilities(links: &Links) -> Automatic {
    let best = |row| links.similarities(row).and_then(|of_row| of_row.first().copied());
    let Some(best) = (0..links.rows()).map(best).collect::<Option<Vec<f32>>>() else {
        return Automatic::Unknown;
    };
    let matches = links.estimate().unwrap_or_default() * links.rows() as f64;
    of_probabilities(&best, matches).map_or(Automatic::Nothing, Automatic::Estimated)
}

/// Returns the rank of the candidate that each row is paired with, if any. The most similar pairs come first,
/// and each record is used once.
fn one_to_one(candidates: &LinkedPairs<'_>, records: usize) -> Vec<Option<usize>> {
    let rows = candidates.candidates.rows();
    let of_row = |row| {
        candidates.row(row).map(move |(rank, candidate)| (row, rank, candidate.record, candidate.order()))
    };
    greedy(rows, records, (0..rows).flat_map(of_row).collect())
}

/// Assigns pairs (row, rank, record, similarity) greedily. Equally similar pairs keep the order of rows, then
/// of ranks.
fn greedy(rows: usize, records: usize, mut pairs: Vec<(usize, usize, u32, f32)>) -> Vec<Option<usize>> {
    pairs.sort_by(|a, b| b.3.total_cmp(&a.3).then((a.0, a.1).cmp(&(b.0, b.1))));
    let (mut assigned, mut taken) = (vec![None; rows], vec![false; records]);
    for (row, rank, record, _) in pairs {
        let taken = &mut taken[record as usize];
        if assigned[row].is_none() && !*taken {
            (assigned[row], *taken) = (Some(rank), true);
        }
    }
    assigned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_numbers_or_words() {
        assert_eq!("auto".parse(), Ok(Threshold::Auto));
        assert_eq!("none".parse(), Ok(Threshold::None));
        assert_eq!("-0.5".parse(), Ok(Threshold::At(-0.5)));
        for bad in ["nan", "inf", "1e300", "x", ""] {
            assert!(bad.parse::<Threshold>().is_err(), "{bad}");
        }
    }

    #[test]
    fn assigns_the_most_similar_pair_first() {
        let pairs = vec![(0, 0, 1, 0.9), (1, 0, 1, 0.95), (0, 1, 0, 0.5), (2, 0, 0, 0.6), (3, 0, 1, 0.1)];
        assert_eq!(greedy(4, 2, pairs), [None, Some(0), Some(0), None]);
        let equal = vec![(1, 0, 0, 0.5), (0, 0, 0, 0.5)];
        assert_eq!(greedy(2, 1, equal), [Some(0), None], "the first row wins");
    }
}
