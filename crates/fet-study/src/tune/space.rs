//! The table `[tune]` of an experiment file: the search space and the schedule of a search over settings.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use fet_eval::ChaCha8Rng;
use rand::RngExt;
use serde::Deserialize;

use super::super::repetition::check_folds;

/// The table `[tune]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tune {
    /// Number of candidates in the first rung, including the unchanged experiment.
    #[serde(default = "candidates")]
    pub(crate) candidates: usize,
    /// Ratio of candidates between rungs: one in `keep` candidates continues to the next rung.
    #[serde(default = "keep")]
    pub(crate) keep: usize,
    /// Number of rungs. The last rung has all epochs; each earlier rung has 1/`keep` of the epochs of the
    /// next.
    #[serde(default = "rungs")]
    pub(crate) rungs: usize,
    /// Number of cross-validation folds: every candidate runs on each fold, and candidates are ranked by the mean over
    /// the folds. 0 means the split of the experiment.
    #[serde(default)]
    pub(crate) folds: usize,
    /// Search space: the values of each setting.
    #[serde(default)]
    pub(crate) space: BTreeMap<String, Range>,
    /// Additional search space for single variants of the study.
    #[serde(default)]
    pub(crate) variants: BTreeMap<String, BTreeMap<String, Range>>,
}

fn candidates() -> usize {
    27
}

fn keep() -> usize {
    3
}

fn rungs() -> usize {
    3
}

/// Values of a setting to draw from.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub(crate) enum Range {
    /// List of values, all equally likely.
    Values(Vec<toml::Value>),
    /// Range of numbers, including both ends. If both ends are whole numbers, only whole numbers are drawn.
    Between(Between),
}

/// Range of numbers.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Between {
    /// Smallest number.
    from: toml::Value,
    /// Largest number.
    to: toml::Value,
    /// True for a uniform distribution on a logarithmic scale, false for a linear scale.
    #[serde(default)]
    log: bool,
}

/// Maximum of `candidates` and `keep`; a larger number is probably a typing error.
const MOST: usize = 100_000;

impl Tune {
    /// Checks the table.
    pub(crate) fn check(&self) -> Result<()> {
        let within = |field: &str, value: usize, least: usize, most: usize| {
            ensure!(
                (least..=most).contains(&value),
                "tune.{field}: must be from {least} to {most}, but is {value}"
            );
            Ok(())
        };
        within("candidates", self.candidates, 2, MOST)?;
        within("keep", self.keep, 2, MOST)?;
        within("rungs", self.rungs, 1, 10)?;
        check_folds("tune.folds", self.folds)?;
        let spaces = self.variants.iter().map(|(name, space)| (format!("tune.variants, {name:?}"), space));
        for (place, space) in [("tune.space".to_string(), &self.space)].into_iter().chain(spaces) {
            for (path, range) in space {
                let is_path = path.chars().all(|sign| sign.is_ascii_alphanumeric() || "._-".contains(sign));
                ensure!(
                    is_path,
                    "{place}: {path:?} must be the path of a setting, such as \"method.dropout\""
                );
                let first = path.split('.').next().unwrap_or_default();
                let is_own = ["split", "name", "seed"].contains(&first) || path == "train.epochs";
                ensure!(!is_own, "{place}: {path:?} must not be drawn, because the search sets it");
                ensure!(
                    first != "data",
                    "{place}: {path:?} must not be drawn, because all candidates must have the same rows"
                );
                range.check().with_context(|| format!("{place}, {path:?}"))?;
            }
        }
        Ok(())
    }

    /// Returns the search space of a variant, or of the experiment itself.
    pub(crate) fn space_of(&self, variant: Option<&str>) -> BTreeMap<&str, &Range> {
        let own = variant.and_then(|name| self.variants.get(name));
        self.space
            .iter()
            .chain(own.into_iter().flatten())
            .map(|(path, range)| (path.as_str(), range))
            .collect()
    }

    /// Returns the number of candidates that continue after rung `rung`, from 0, if the first rung has
    /// `candidates`.
    pub(crate) fn survivors(&self, candidates: usize, rung: usize) -> usize {
        let rung = u32::try_from(rung + 1).unwrap_or(u32::MAX);
        candidates.div_ceil(self.keep.saturating_pow(rung))
    }

    /// Returns the epochs in rung `rung`, from 0, of a candidate that has `all` epochs in the last rung.
    pub(crate) fn epochs(&self, all: u64, rung: usize) -> u64 {
        let later = u32::try_from(self.rungs - 1 - rung).unwrap_or(u32::MAX);
        let factor = (self.keep as u64).saturating_pow(later);
        all.div_ceil(factor).max(1)
    }
}

impl Range {
    fn check(&self) -> Result<()> {
        match self {
            Self::Values(values) => ensure!(!values.is_empty(), "must contain at least one value, but is []"),
            Self::Between(between) => {
                let (from, to) = between.ends()?;
                ensure!(from < to, "`from` must be less than `to`, but they are {from} and {to}");
                ensure!(!between.log || from > 0.0, "`from` must be above 0 with `log`, but is {from}");
            }
        }
        Ok(())
    }

    /// Draws one value.
    pub(crate) fn draw(&self, rng: &mut ChaCha8Rng) -> toml::Value {
        match self {
            Self::Values(values) => values[rng.random_range(0..values.len())].clone(),
            Self::Between(between) => between.draw(rng),
        }
    }
}

impl Between {
    fn ends(&self) -> Result<(f64, f64)> {
        let number = |field: &str, value: &toml::Value| {
            let number = value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64));
            match number.filter(|number| number.is_finite()) {
                Some(number) => Ok(number),
                None => bail!("`{field}` must be a number, but is {value}"),
            }
        };
        Ok((number("from", &self.from)?, number("to", &self.to)?))
    }

    fn draw(&self, rng: &mut ChaCha8Rng) -> toml::Value {
        let share: f64 = rng.random();
        let (from, to) = self.ends().unwrap_or_default();
        let between = |from: f64, to: f64| {
            if self.log { (from.ln() + share * (to / from).ln()).exp() } else { from + share * (to - from) }
        };
        match (self.from.as_integer(), self.to.as_integer()) {
            // Each whole number has an interval of length 1.
            (Some(least), Some(most)) => {
                toml::Value::Integer((between(from, to + 1.0).floor() as i64).clamp(least, most))
            }
            // Round to three digits, so that a reader can type the value.
            _ => {
                let value = between(from, to);
                let short: f64 = format!("{value:.2e}").parse().unwrap_or(value);
                toml::Value::Float(short.clamp(from, to))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use fet_eval::SeedableRng;

    use super::*;

    fn tune(text: &str) -> Result<Tune> {
        let tune: Tune = toml::from_str(text)?;
        tune.check().map(|()| tune)
    }

    #[test]
    fn draws_cover_their_range_and_stay_within_it() {
        let text = "[space]\nrate = { from = 0.001, to = 0.1, log = true }\nshare = { from = 0.0, to = 1 }\n\
                    width = { from = 1, to = 4 }\nkind = ['a', 'b']";
        let tune = tune(text).expect("right");
        let space = tune.space_of(None);
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let (mut low, mut widths, mut kinds, mut below) = (0, [0; 5], [0; 2], 0);
        let draws = 4_000;
        for _ in 0..draws {
            let rate = space["rate"].draw(&mut rng).as_float().expect("a number");
            assert!((0.001..=0.1).contains(&rate), "{rate}");
            low += usize::from(rate < 0.01);
            let share = space["share"].draw(&mut rng).as_float().expect("a number");
            assert!((0.0..=1.0).contains(&share), "{share}");
            below += usize::from(share < 0.5);
            widths[space["width"].draw(&mut rng).as_integer().expect("whole") as usize] += 1;
            kinds[usize::from(space["kind"].draw(&mut rng).as_str() == Some("b"))] += 1;
        }
        // The count of heads in 4,000 tosses of a fair coin has standard deviation 32; 160 is five times that
        // (two-sided α about 6e-7 each).
        for count in [low, below, kinds[0]] {
            assert!(usize::abs_diff(count, draws / 2) < 160, "{count}");
        }
        // The count for a fair die with four sides has standard deviation 27; 140 is five times that.
        assert_eq!(widths[0], 0);
        assert!(widths[1..].iter().all(|count| usize::abs_diff(*count, draws / 4) < 140), "{widths:?}");
    }

    #[test]
    fn rungs_multiply_epochs_and_divide_candidates() {
        let tune = tune("candidates = 27\nkeep = 3\nrungs = 3").expect("right");
        assert_eq!([0, 1, 2].map(|rung| tune.epochs(20, rung)), [3, 7, 20]);
        assert_eq!(tune.epochs(1, 0), 1);
        assert_eq!([27, 10, 2].map(|candidates| tune.survivors(candidates, 0)), [9, 4, 1]);
        assert_eq!([27, 10, 2].map(|candidates| tune.survivors(candidates, 1)), [3, 2, 1]);
    }

    #[test]
    fn a_variant_has_its_own_space_too() {
        let tune = tune("[space]\na = [1]\n[variants.X]\nb = [2]\na = [3]").expect("right");
        assert_eq!(tune.space_of(None).len(), 1);
        let of = tune.space_of(Some("X"));
        assert_eq!((of.len(), of["a"]), (2, &Range::Values(vec![toml::Value::Integer(3)])), "its own wins");
    }

    #[test]
    fn refuses_an_impossible_search() {
        let check = |text: &str, parts: &[&str]| {
            let message = format!("{:#}", tune(text).expect_err(text));
            parts.iter().for_each(|part| assert!(message.contains(part), "{message:?} lacks {part:?}"));
        };
        check("candidates = 1", &["tune.candidates", "from 2", "1"]);
        check("keep = 1", &["tune.keep", "from 2"]);
        check("rungs = 0", &["tune.rungs", "from 1 to 10"]);
        check("rung = 1", &["unknown field `rung`"]);
        check("[space]\na = []", &["tune.space, \"a\"", "at least one value"]);
        check("[space]\na = { from = 2, to = 1 }", &["`from` must be less", "2 and 1"]);
        check("[space]\na = { from = 1, to = 1 }", &["`from` must be less"]);
        check("[space]\na = { from = 0, to = 1, log = true }", &["above 0 with `log`"]);
        check("[space]\na = { from = 'x', to = 1 }", &["`from` must be a number", "x"]);
        check("[space]\na = { from = nan, to = 1.0 }", &["`from` must be a number"]);
        check("[space]\n'split.test' = [0.1]", &["split.test", "the search sets it"]);
        check("[variants.X]\nseed = [1]", &["tune.variants, \"X\"", "seed"]);
        check("[space]\n' split.tuning' = [false]", &["path of a setting"]);
        check("[space]\n'split = {tuning=false} #' = [1]", &["path of a setting"]);
        check("[space]\n'data.rows' = [5]", &["data.rows", "same rows"]);
        check("[space]\n'train.epochs' = [5]", &["train.epochs", "the search sets it"]);
    }
}
