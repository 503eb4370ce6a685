//! Tests of `split`.

use super::*;
use fet_core::data::Folders;

fn load(change: impl Fn(&mut SplitSettings), seed: u64) -> Result<VerticalData, String> {
    let mut settings = SplitSettings::default();
    change(&mut settings);
    let mut table = toml::Table::try_from(&settings).expect("settings are a table");
    table.insert("kind".into(), "split".into());
    let slot = Slot::<dyn Dataset>::from_table(table).map_err(|e| e.to_string())?;
    let dataset = slot
        .build(&DatasetContext { folders: &Folders::default(), seed, metadata: &[] })
        .map_err(|e| e.to_string())?;
    dataset.load().map_err(|e| e.to_string())
}

fn numbers(table: &PartyTable) -> &Matrix<f64> {
    table.keys.numbers().expect("a split has keys of numbers")
}

/// Counts the first 200 primary rows whose nearest key at the first secondary is the key of the same record.
/// The test knows the order of the secondary's rows.
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
    // Exactly one party has each pixel of the source.
    let whole = SplitSettings::default().source;
    let whole = whole
        .build(&DatasetContext { folders: &Folders::default(), seed: 0, metadata: &[] })
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
    let data = load(|s| (s.keys, s.key_dims, s.key_noise) = (TrueKey::Names, 2, 0.0), 5).expect("a split");
    let clean = data.primary.keys.text().expect("texts").clone();
    let data = load(|s| (s.keys, s.key_dims, s.key_noise) = (TrueKey::Names, 2, 0.05), 5).expect("a split");
    let noisy = data.primary.keys.text().expect("texts");
    let letters: usize = clean.cells().iter().map(|cell| cell.len()).sum();
    let whole = clean.cells().into_iter().zip(noisy.cells()).filter(|(a, b)| a == b).count();
    // A word of eight letters stays without an error with probability 0.95^8 = 0.66; α = 1e-9 for 3,594 words of
    // various lengths.
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
    check(|s| s.parties = 1, "`parties` must be at least 2 and at most 128; it is 1");
    check(|s| s.parties = 65, "must not exceed the 64 columns of the table; it is 65");
    check(|s| s.key_noise = -1.0, "`key_noise` must be at least 0 and at most 1000000; it is -1");
    check(
        |s| s.key_noise = f64::NAN,
        "`key_noise` must be a number, at least 0 and at most 1000000; it is nan",
    );
    check(|s| s.key_dims = 17, "must not exceed the 16 columns of the primary; it is 17");
    check(|s| s.key_dims = 0, "`key_dims` must be at least 1");
    check(|s| s.bounds = Some([16.0, 0.0]), "`bounds` must be a range [low, high]; it is [16.0, 0.0]");
    check(|s| s.rows = 1_798, "must not exceed the table's 1797; it is 1798");
}
