//! `split`: one labelled table split by columns among many parties that link by noisy keys (paper, 7.1).
//!
//! Rows and columns are shuffled by seed, and the columns split into equal parts, or into parts whose sizes follow a
//! Dirichlet draw. The true key of a row is the first part's leading principal components, fitted on the first 70 % of
//! the shuffled rows, or a uniform draw that only identifies the row; every party sees it with independent noise. Each
//! secondary's rows are shuffled independently: row numbers carry no information.

mod names;
mod parts;

use fet_core::data::{
    Aside, Bounds, DataError, Dataset, DatasetContext, Keys, Labelled, Matrix, PartyTable, Source,
    Standardise, VerticalData,
};
use fet_core::registry::{Plugin, Recipe, Slot, Violation};
use fet_core::rng::{Purpose, stream};
use rand::RngExt;
use rand::seq::SliceRandom;
use rand_distr::{Distribution, Normal};
use serde::{Deserialize, Serialize};

use super::pca::project;
use parts::cut;

/// Settings of `split`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SplitSettings {
    /// The number of parties, including the primary; 2 to 128.
    pub parties: usize,
    /// Dimensions of the key, at most the columns of the first part.
    pub key_dims: usize,
    /// What the true key is.
    pub keys: TrueKey,
    /// Standard deviation of each party's noise on its keys (a principal key has 1 in each dimension).
    pub key_noise: f64,
    /// The same per party, the primary first; empty if `key_noise` applies to all.
    pub key_noises: Vec<f64>,
    /// α of the Dirichlet draw of the parties' shares of the columns; 0 for equal parts.
    pub imbalance: f64,
    /// The number of rows to use, drawn by seed; 0 for all.
    pub rows: usize,
    /// The seed of the partition of columns, the keys and their noise; the run's seed if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition_seed: Option<u64>,
    /// The range of every value of the table, public knowledge such as that of a pixel: secondaries scale by it. If there is
    /// none, each scales by the means and deviations of its columns, which is refused beside a privacy mechanism.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bounds: Option<[f64; 2]>,
    /// The table that is cut.
    pub source: Slot<dyn Source>,
}

/// The true keys of rows, before noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TrueKey {
    /// Principal components of the primary's own columns, each with mean 0 and standard deviation 1.
    Principal,
    /// Uniform in [-1, 1]: without noise, links are exact.
    Uniform,
    /// `key_dims` words of random letters; noise is the share of letters with a typing error.
    Names,
}

impl Default for SplitSettings {
    fn default() -> Self {
        let source = Slot::of("digits").expect("this crate registers it");
        Self {
            parties: 4,
            key_dims: 4,
            keys: TrueKey::Principal,
            key_noise: 0.05,
            key_noises: Vec::new(),
            imbalance: 0.0,
            rows: 0,
            partition_seed: None,
            bounds: None,
            source,
        }
    }
}

impl Recipe<dyn Dataset> for SplitSettings {
    fn check(&self) -> Result<(), Violation> {
        if !(2..=128).contains(&self.parties) {
            return Err(Violation::new("parties", "must be 2 to 128", self.parties));
        }
        if self.key_dims == 0 {
            return Err(Violation::new("key_dims", "must be at least 1", 0));
        }
        if self.keys == TrueKey::Names
            && self.key_noises.iter().chain([&self.key_noise]).any(|&noise| noise > 1.0)
        {
            return Err(Violation::new(
                "key_noise",
                "must be at most 1 for names: a share of letters",
                self.key_noise,
            ));
        }
        let noises = self.key_noises.iter().map(|&noise| ("key_noises", noise));
        for (field, value) in
            [("key_noise", self.key_noise), ("imbalance", self.imbalance)].into_iter().chain(noises)
        {
            if !(value >= 0.0 && value.is_finite()) {
                return Err(Violation::new(field, "must not be negative", value));
            }
        }
        if let Some(bounds) = self.bounds.filter(|&bounds| !Bounds::is_range(bounds)) {
            return Err(Violation::new("bounds", "must be a range [low, high]", format!("{bounds:?}")));
        }
        if !self.key_noises.is_empty() && self.key_noises.len() != self.parties {
            let rule = format!("must be empty or have one value for each of the {} parties", self.parties);
            return Err(Violation::new("key_noises", rule, format!("{:?}", self.key_noises)));
        }
        Ok(())
    }

    fn build(&self, context: &DatasetContext<'_>) -> Result<Box<dyn Dataset>, Violation> {
        let source = self.source.build(context)?;
        let seed = self.partition_seed.unwrap_or(context.seed);
        let aside = context.aside.to_vec();
        Ok(Box::new(Split { settings: self.clone(), source, seed, aside }))
    }
}

inventory::submit! {
    Plugin::<dyn Dataset>::new::<SplitSettings>("split", "one table cut by columns among parties with noisy keys")
}

struct Split {
    settings: SplitSettings,
    source: Box<dyn Source>,
    seed: u64,
    aside: Vec<String>,
}

impl Dataset for Split {
    fn load(&self) -> Result<VerticalData, DataError> {
        let SplitSettings { parties, key_dims, rows, imbalance, .. } = self.settings;
        if let Some(column) = self.aside.first() {
            let problem = format!(
                "column `{column}` is not there: a table that is cut among parties has no names of columns"
            );
            return Err(DataError::new("`data.kind` \"split\"", problem));
        }
        let Labelled { task, classes, features, labels } = self.source.read()?;
        let refuse = |field: &str, problem: String| Err(DataError::new(format!("`data.{field}`"), problem));
        if parties > features.columns() {
            let problem =
                format!("must not exceed the {} columns of the table; it is {parties}", features.columns());
            return refuse("parties", problem);
        }
        if rows > features.rows() {
            return refuse("rows", format!("must not exceed the table's {}; it is {rows}", features.rows()));
        }
        let mut rng = stream(self.seed, 0, Purpose::Parties, 0);
        let mut order: Vec<usize> = (0..features.rows()).collect();
        order.shuffle(&mut rng);
        if rows > 0 {
            order.truncate(rows);
        }
        let mut columns: Vec<usize> = (0..features.columns()).collect();
        columns.shuffle(&mut rng);
        let features = features.select_rows(&order);
        let principal = self.settings.keys == TrueKey::Principal;
        let least = if principal { key_dims } else { 1 };
        if columns.len() < least + parties - 1 {
            let problem = format!(
                "must leave the primary {least} of the {} columns; with {parties} parties it is {}",
                columns.len(),
                columns.len() + 1 - parties
            );
            return refuse("key_dims", problem);
        }
        let cuts = cut(columns.len(), parties, imbalance, least, &mut rng);
        if cuts[0] < least {
            let problem = format!("must not exceed the {} columns of the primary; it is {key_dims}", cuts[0]);
            return refuse("key_dims", problem);
        }
        let mut rest = columns.as_slice();
        let parts: Vec<Matrix<f32>> = cuts
            .iter()
            .map(|&size| {
                let (part, after) = rest.split_at(size);
                rest = after;
                features.select_columns(part)
            })
            .collect();
        let truth: Keys = match self.settings.keys {
            TrueKey::Principal => project(&parts[0], (order.len() * 7 / 10).max(1), key_dims).into(),
            TrueKey::Uniform => {
                let values = (0..order.len() * key_dims).map(|_| rng.random_range(-1.0..=1.0));
                Matrix::new(key_dims, values.collect()).into()
            }
            TrueKey::Names => Keys::Text(names::draw(order.len(), key_dims, &mut rng)),
        };
        let mut tables = parts.into_iter().enumerate().map(|(party, part)| {
            let noise = self.settings.key_noises.get(party).copied().unwrap_or(self.settings.key_noise);
            let keys = match &truth {
                Keys::Text(words) if noise > 0.0 => {
                    let mut rng = stream(self.seed, party, Purpose::KeyNoise, 0);
                    Keys::Text(names::mistype(words, noise, &mut rng))
                }
                Keys::Numbers(numbers) => noisy(numbers, noise, self.seed, party).into(),
                other => other.clone(),
            };
            self.table(party, keys, part)
        });
        let primary = tables.next().expect("there are two parties or more");
        let secondaries = tables.collect();
        let labels = order.iter().map(|&row| labels[row]).collect();
        let standardise = Standardise { keys: false, features: true };
        Ok(VerticalData {
            task,
            classes,
            primary,
            labels,
            secondaries,
            standardise,
            aside: Aside { rows: order, ..Aside::default() },
        })
    }
}

impl Split {
    /// The table of a party; a secondary's rows are shuffled.
    fn table(&self, party: usize, keys: Keys, features: Matrix<f32>) -> PartyTable {
        if party == 0 {
            return PartyTable { name: "primary".to_string(), keys, features: features.into(), bounds: None };
        }
        let mut order: Vec<usize> = (0..features.rows()).collect();
        order.shuffle(&mut stream(self.seed, party, Purpose::Parties, 1));
        PartyTable {
            name: format!("party {party}"),
            keys: keys.select_rows(&order),
            bounds: self
                .settings
                .bounds
                .map(|bounds| Bounds { keys: Vec::new(), features: vec![bounds; features.columns()] }),
            features: features.select_rows(&order).into(),
        }
    }
}

fn noisy(truth: &Matrix<f64>, deviation: f64, seed: u64, party: usize) -> Matrix<f64> {
    let mut keys = truth.clone();
    if deviation > 0.0 {
        let normal = Normal::new(0.0, deviation).expect("a deviation was checked to be finite");
        let mut rng = stream(seed, party, Purpose::KeyNoise, 0);
        keys.values_mut().iter_mut().for_each(|key| *key += normal.sample(&mut rng));
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;
    use fet_core::data::Folders;

    fn load(change: impl Fn(&mut SplitSettings), seed: u64) -> Result<VerticalData, String> {
        let mut settings = SplitSettings::default();
        change(&mut settings);
        settings.check().map_err(|e| e.to_string())?;
        let dataset = settings
            .build(&DatasetContext { folders: &Folders::default(), seed, aside: &[] })
            .map_err(|e| e.to_string())?;
        dataset.load().map_err(|e| e.to_string())
    }

    fn numbers(table: &PartyTable) -> &Matrix<f64> {
        table.keys.numbers().expect("a split has keys of numbers")
    }

    /// How many of the first 200 primary rows have their own record, or one with the same key, as the nearest of the
    /// first secondary; the test knows the order of that party's rows.
    fn nearest_is_own(key_noise: f64) -> usize {
        let data = load(|s| s.key_noise = key_noise, 3).expect("a split");
        let mut order: Vec<usize> = (0..1_797).collect();
        order.shuffle(&mut stream(3, 1, Purpose::Parties, 1));
        let (primary, secondary) = (numbers(&data.primary), numbers(&data.secondaries[0]));
        let distance = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| (x - y).powi(2)).sum::<f64>();
        let nearest = |row: usize| {
            (0..1_797).min_by(|&a, &b| {
                distance(primary.row(row), secondary.row(a))
                    .total_cmp(&distance(primary.row(row), secondary.row(b)))
            })
        };
        let own =
            |row: usize| order.iter().position(|&original| original == row).expect("every row is somewhere");
        let same = |row: usize, found: usize| secondary.row(found) == secondary.row(own(row));
        (0..200).filter(|&row| nearest(row).is_some_and(|found| same(row, found))).count()
    }

    #[test]
    fn keys_link_rows_and_noise_blurs_the_links() {
        assert_eq!(nearest_is_own(0.0), 200);
        let (little, much) = (nearest_is_own(0.01), nearest_is_own(0.3));
        assert!(little > 190 && much < 100, "{little} and {much} of 200");
    }

    #[test]
    fn parts_partition_the_columns_and_keep_rows_together() {
        let data = load(|s| s.parties = 5, 1).expect("a split");
        let widths: Vec<usize> = std::iter::once(&data.primary)
            .chain(&data.secondaries)
            .map(|table| table.features.columns())
            .collect();
        assert_eq!(widths, [13, 13, 13, 13, 12]);
        // Every pixel of the source stands with exactly one party.
        let whole = SplitSettings::default().source;
        let whole = whole
            .build(&DatasetContext { folders: &Folders::default(), seed: 0, aside: &[] })
            .expect("sound")
            .read();
        let whole: f64 = whole.expect("digits").features.values().iter().map(|&x| f64::from(x)).sum();
        let tables = std::iter::once(&data.primary).chain(&data.secondaries);
        let parts: f64 = tables
            .flat_map(|table| table.features.numbers().expect("numbers").values())
            .map(|&x| f64::from(x))
            .sum();
        assert_eq!(parts, whole);
    }

    #[test]
    fn shares_of_columns_follow_alpha() {
        let widths = |imbalance| {
            let data = load(|s| (s.parties, s.imbalance) = (8, imbalance), 5).expect("a split");
            let tables = std::iter::once(&data.primary).chain(&data.secondaries);
            tables.map(|table| table.features.columns()).collect::<Vec<_>>()
        };
        let (even, uneven) = (widths(50.0), widths(0.1));
        for widths in [&even, &uneven] {
            assert_eq!(widths.iter().sum::<usize>(), 64);
            assert!(widths[0] >= 4 && widths.iter().all(|&width| width > 0), "{widths:?}");
        }
        assert!(even.iter().max() < uneven.iter().max(), "{even:?}, {uneven:?}");
    }

    #[test]
    fn uniform_keys_without_noise_link_exactly() {
        let data = load(|s| (s.keys, s.key_noise) = (TrueKey::Uniform, 0.0), 5).expect("a split");
        let sorted = |keys: &Matrix<f64>| {
            let mut rows: Vec<Vec<u64>> =
                (0..keys.rows()).map(|row| keys.row(row).iter().map(|x| x.to_bits()).collect()).collect();
            rows.sort_unstable();
            rows
        };
        let own = sorted(numbers(&data.primary));
        assert!(numbers(&data.primary).values().iter().all(|x| x.abs() <= 1.0));
        assert_eq!(own, sorted(numbers(&data.secondaries[1])));
        assert_eq!(own.windows(2).filter(|pair| pair[0] == pair[1]).count(), 0, "keys tell rows apart");
    }

    #[test]
    fn names_are_mistyped_as_often_as_said() {
        let data =
            load(|s| (s.keys, s.key_dims, s.key_noise) = (TrueKey::Names, 2, 0.0), 5).expect("a split");
        let clean = data.primary.keys.text().expect("texts").clone();
        let data =
            load(|s| (s.keys, s.key_dims, s.key_noise) = (TrueKey::Names, 2, 0.05), 5).expect("a split");
        let noisy = data.primary.keys.text().expect("texts");
        let letters: usize = clean.cells().iter().map(String::len).sum();
        let whole = clean.cells().iter().zip(noisy.cells()).filter(|(a, b)| a == b).count();
        // A word of eight letters is whole with 0.95^8 = 0.66; α = 1e-9 for 3,594 words, lengths mixed.
        let share = whole as f64 / clean.cells().len() as f64;
        assert!((0.6..0.73).contains(&share), "{share} of {letters} letters' words are whole");
        let error = load(|s| (s.keys, s.key_noise) = (TrueKey::Names, 2.0), 0).expect_err("refused");
        assert!(error.contains("`key_noise` must be at most 1 for names"), "{error}");
    }

    #[test]
    fn each_party_can_have_noise_of_its_own() {
        let data = load(
            |s| {
                s.keys = TrueKey::Uniform;
                s.key_noises = vec![0.0, 0.0, 5.0, 0.0];
            },
            5,
        );
        let spread = |keys: &Matrix<f64>| keys.values().iter().fold(0.0f64, |m, x| m.max(x.abs()));
        let data = data.expect("a split");
        assert!(spread(numbers(&data.secondaries[0])) <= 1.0 && spread(numbers(&data.secondaries[1])) > 5.0);
    }

    #[test]
    fn the_partition_can_have_a_seed_of_its_own() {
        let keys = |partition: Option<u64>, seed| {
            let data = load(|s| (s.rows, s.partition_seed) = (100, partition), seed).expect("a split");
            numbers(&data.secondaries[0]).values().to_vec()
        };
        assert_eq!(keys(Some(1), 2), keys(None, 1));
        assert_eq!(keys(Some(1), 2), keys(Some(1), 3));
    }

    #[test]
    fn the_seed_decides() {
        let keys =
            |seed| numbers(&load(|s| s.rows = 100, seed).expect("a split").secondaries[1]).values().to_vec();
        assert_eq!(keys(1), keys(1));
        assert_ne!(keys(1), keys(2));
    }

    #[test]
    fn impossible_settings_are_refused() {
        let check = |change: fn(&mut SplitSettings), part: &str| {
            let error = load(change, 0).expect_err("refused");
            assert!(error.contains(part), "{part} in {error}");
        };
        check(|s| s.parties = 1, "`parties` must be 2 to 128; it is 1");
        check(|s| s.parties = 65, "must not exceed the 64 columns of the table; it is 65");
        check(|s| s.key_noise = -1.0, "`key_noise` must not be negative; it is -1");
        check(|s| s.key_noise = f64::NAN, "must not be negative; it is NaN");
        check(|s| s.key_dims = 17, "must not exceed the 16 columns of the primary; it is 17");
        check(|s| s.key_dims = 0, "`key_dims` must be at least 1");
        check(|s| s.bounds = Some([16.0, 0.0]), "`bounds` must be a range [low, high]; it is [16.0, 0.0]");
        check(|s| s.rows = 1_798, "must not exceed the table's 1797; it is 1798");
    }
}
