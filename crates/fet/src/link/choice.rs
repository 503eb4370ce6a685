//! Which of the candidates are links: those above a threshold, which may be estimated, and each record in one pair where asked.

use std::str::FromStr;

use fet_core::linker::{Linker, Links};
use fet_core::registry::Slot;
use fet_linkage::threshold::{Estimate, automatic, of_probabilities};

use super::pairs::Pairs;
use super::truth::{self, Truth};
use crate::input::input;

/// Below which similarity pairs are left out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Threshold {
    /// At what is estimated to give the best F1.
    Auto,
    /// Nowhere.
    None,
    /// At this.
    At(f32),
}

impl FromStr for Threshold {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "none" => Ok(Self::None),
            number => match number.parse::<f32>() {
                Ok(number) if number.is_finite() => Ok(Self::At(number)),
                _ => Err("must be a finite number, \"auto\" or \"none\"".to_string()),
            },
        }
    }
}

/// Which records may stand in several pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Assign {
    /// Each row of either table stands in one pair at most: the most similar pairs first.
    OneToOne,
}

/// Candidates of a row for an assignment: a record that is another's may be replaced by the next.
pub(super) const CANDIDATES: usize = 10;

/// The linker with K = `neighbours`; itself, if it has no such setting of its own.
pub(super) fn with_neighbours(
    slot: &Slot<dyn Linker>,
    neighbours: usize,
) -> anyhow::Result<Slot<dyn Linker>> {
    let mut table = slot.settings();
    // What is aligned has its place by K.
    let Some(own) = table.get_mut("neighbours").filter(|_| slot.kind() != "aligned") else {
        return Ok(slot.clone());
    };
    *own = toml::Value::Integer(neighbours as i64);
    table.insert("kind".into(), slot.kind().into());
    Slot::from_table(table).map_err(input)
}

/// What is asked of the candidates.
pub(super) struct Choice {
    /// At or below it a pair is not a link.
    pub(super) floor: Option<f32>,
    /// Whether similarities are probabilities, from which a threshold follows.
    pub(super) probabilities: bool,
    pub(super) threshold: Threshold,
    pub(super) assign: Option<Assign>,
    /// Candidates beyond so many are left out, where none are assigned.
    pub(super) wanted: usize,
    /// Rows of the table that was searched.
    pub(super) records: usize,
}

/// What was chosen.
pub(super) struct Chosen {
    choice: Choice,
    assigned: Option<Vec<Option<usize>>>,
    estimate: Option<Estimate>,
}

impl Choice {
    /// Chooses among `links`. `own` links the primary with itself, two neighbours a row, or tells that this cannot be done.
    pub(super) fn of(
        self,
        links: &Links,
        own: impl FnOnce() -> anyhow::Result<Option<Links>>,
    ) -> anyhow::Result<Chosen> {
        let few = links.rows() < fet_linkage::threshold::FEWEST;
        let estimate = match self.threshold {
            Threshold::Auto if !few && self.probabilities => by_probabilities(links),
            Threshold::Auto if !few => own()?.and_then(|own| estimate(links, &own, self.records)),
            _ => None,
        };
        let records = self.records;
        let mut chosen = Chosen { choice: self, assigned: None, estimate };
        if chosen.choice.assign.is_some() {
            chosen.assigned = Some(one_to_one(&chosen.every(links), records));
        }
        Ok(chosen)
    }
}

impl Chosen {
    /// All candidates that are above what was given, and assigned where that was asked.
    pub(super) fn every<'a>(&'a self, links: &'a Links) -> Pairs<'a> {
        Pairs {
            links,
            floor: self.choice.floor,
            threshold: self.given(),
            wanted: links.available(),
            assigned: self.assigned.as_deref(),
        }
    }

    /// Those that are written.
    pub(super) fn written<'a>(&'a self, links: &'a Links) -> Pairs<'a> {
        Pairs { threshold: self.threshold(), wanted: self.choice.wanted, ..self.every(links) }
    }

    /// The threshold that was estimated, or given.
    pub(super) fn threshold(&self) -> Option<f32> {
        self.estimate.map(|estimate| estimate.threshold).or(self.given())
    }

    fn given(&self) -> Option<f32> {
        if let Threshold::At(given) = self.choice.threshold { Some(given) } else { None }
    }

    /// Lines for people: whom the assignment left alone, and what was estimated.
    pub(super) fn told(&self, links: &Links) -> String {
        let mut text = String::new();
        if let Some(assigned) = &self.assigned {
            let lost = (0..links.rows())
                .filter(|&row| assigned[row].is_none() && links.similarities(row).is_some())
                .count();
            text += &format!(
                "one to one: {lost} rows have no pair, since others are more like their {} candidates, or none is like them\n",
                links.available()
            );
        }
        if let Some(estimate) = &self.estimate {
            text += &format!(
                "threshold {:.4}, estimated: {:.1} % of the links are expected to be right, and {:.1} % of {:.0} matches to be linked \
                 (--threshold none writes every pair)\n",
                estimate.threshold,
                100.0 * estimate.precision(),
                100.0 * estimate.recall(),
                estimate.matches
            );
        } else if self.choice.threshold == Threshold::Auto {
            text += "no threshold could be estimated: there are too few rows, one neighbour or no similarity, or no match is expected\n";
        }
        text
    }

    /// Lines for people: how good the links are.
    pub(super) fn quality(&self, links: &Links, truth: &Truth) -> String {
        let mut text = truth::text(&self.every(links), truth);
        if self.estimate.is_some() {
            text += &truth::written(&self.written(links), truth);
        }
        text
    }
}

/// The threshold that is expected to be best for each row's best record, by the primary's own rows (`own`, two neighbours of each) as
/// decoys, where it is searched among `records`.
fn estimate(links: &Links, own: &Links, records: usize) -> Option<Estimate> {
    let mut similarities = Vec::with_capacity(links.rows());
    for row in 0..links.rows() {
        let (best, twins) = (links.similarities(row)?, own.similarities(row)?);
        let itself = own.row(row).first() == Some(&(row as u32));
        similarities.push((best[0], twins[usize::from(itself).min(twins.len() - 1)]));
    }
    let (best, twins): (Vec<f32>, Vec<f32>) = similarities.into_iter().unzip();
    automatic(&best, &twins, records as f64 / links.rows() as f64)
}

/// The threshold that is expected to be best for each row's best record, where a similarity is the probability that it is right.
fn by_probabilities(links: &Links) -> Option<Estimate> {
    let best = |row| links.similarities(row).and_then(|of_row| of_row.first().copied());
    let best: Vec<f32> = (0..links.rows()).map(best).collect::<Option<_>>()?;
    of_probabilities(&best, links.estimate().unwrap_or_default() * links.rows() as f64)
}

/// For each row the rank of the candidate that it is paired with, if any: the most similar pair first, no record twice.
fn one_to_one(candidates: &Pairs<'_>, records: usize) -> Vec<Option<usize>> {
    let rows = candidates.links.rows();
    let of_row =
        |row| candidates.row(row).map(move |(rank, record, s)| (row, rank, record, s.unwrap_or(0.0)));
    greedy(rows, records, (0..rows).flat_map(of_row).collect())
}

/// The assignment of pairs (row, rank, record, similarity). Equal ones in the order of the rows, then of the ranks.
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
    fn the_most_similar_pair_takes_both() {
        let pairs = vec![(0, 0, 1, 0.9), (1, 0, 1, 0.95), (0, 1, 0, 0.5), (2, 0, 0, 0.6), (3, 0, 1, 0.1)];
        assert_eq!(greedy(4, 2, pairs), [None, Some(0), Some(0), None]);
        let equal = vec![(1, 0, 0, 0.5), (0, 0, 0, 0.5)];
        assert_eq!(greedy(2, 1, equal), [Some(0), None], "the first row wins");
    }
}
