//! Cross-validation folds: several splits that test every row once (by time: every row except the earliest
//! block).

use rand_chacha::ChaCha8Rng;

use super::apportion::apportion;
use super::fractions::Sizes;
use super::group::{deal, deal_to, shuffled_groups};
use super::order::shuffled;
use super::strata::rows_by_stratum;
use super::time::{boundary, by_time};
use super::{Fractions, Split, SplitError, SplitStrategy};

/// Returns `count` splits; split f tests fold f. The folds partition the rows, and their sizes differ by at
/// most one row (groups: approximately). Each split takes `fractions.validation()` of all rows for validation
/// from its remaining rows, a different part for each fold.
///
/// By time, the rows are cut into `count` + 1 blocks of about the same size. Split f trains on all rows
/// before block f + 1 and tests that block. The latest `fractions.validation()` of the earlier rows are for
/// validation. The earliest block is never tested (forward chaining, as in scikit-learn's `TimeSeriesSplit`).
/// Rows with the same time are in one block, the later one.
pub fn folds(
    rows: usize,
    strategy: &SplitStrategy<'_>,
    count: usize,
    fractions: Fractions,
    rng: &mut ChaCha8Rng,
) -> Result<Vec<Split>, SplitError> {
    strategy.check(rows)?;
    if count < 2 || count > rows {
        return Err(SplitError::Folds { folds: count, rows });
    }
    let splits = match strategy {
        SplitStrategy::Random => {
            let order = shuffled(rows, rng);
            let wanted = |tested| fractions.validation_beside(rows, tested);
            (0..count).map(|fold| turn(&order, &block_sizes(rows, count), fold, wanted)).collect()
        }
        SplitStrategy::Stratified(strata) => stratified(strata, count, fractions, rng),
        SplitStrategy::Time(times) => by_blocks(times, count, fractions),
        SplitStrategy::Group(groups) => grouped(groups, count, fractions, rng)?,
        SplitStrategy::Labels(_) => return Err(SplitError::LabelsHaveNoFolds),
    };
    splits.into_iter().map(|split: Split| split.checked(strategy.name())).collect()
}

/// Returns sizes of `count` blocks that differ by at most one row.
fn block_sizes(rows: usize, count: usize) -> Vec<usize> {
    (0..count).map(|block| (block + 1) * rows / count - block * rows / count).collect()
}

/// Rotates the order so that block `fold` comes first. That block is the test, the following rows are for
/// validation, and the others for training.
fn turn(order: &[usize], sizes: &[usize], fold: usize, validation: impl Fn(usize) -> usize) -> Split {
    let start: usize = sizes[..fold].iter().sum();
    let mut turned = order.to_vec();
    turned.rotate_left(start);
    let train = turned.split_off((sizes[fold] + validation(sizes[fold])).min(turned.len()));
    let validation = turned.split_off(sizes[fold]);
    Split { train, validation, test: turned, aside: vec![] }
}

fn stratified(strata: &[usize], count: usize, fractions: Fractions, rng: &mut ChaCha8Rng) -> Vec<Split> {
    let rows = strata.len();
    let members = rows_by_stratum(strata, &shuffled(rows, rng));
    let sizes: Vec<usize> = members.iter().map(Vec::len).collect();
    let table = apportion(&sizes, &block_sizes(rows, count));
    let split = |fold: usize| {
        let beside: Vec<usize> =
            table.iter().map(|blocks| blocks.iter().sum::<usize>() - blocks[fold]).collect();
        let left: usize = beside.iter().sum();
        let validation = fractions.validation_beside(rows, rows - left);
        let shares = apportion(&beside, &[validation, left - validation]);
        let mut split = Split { train: vec![], validation: vec![], test: vec![], aside: vec![] };
        for ((members, blocks), share) in members.iter().zip(&table).zip(shares) {
            let part = turn(members, blocks, fold, |_| share[0]);
            split.train.extend(part.train);
            split.validation.extend(part.validation);
            split.test.extend(part.test);
        }
        split
    };
    (0..count).map(split).collect()
}

fn by_blocks(times: &[i64], count: usize, fractions: Fractions) -> Vec<Split> {
    let order = by_time(times);
    let edge = |block: usize| boundary(times, &order, block * order.len() / (count + 1));
    let split = |fold: usize| {
        let (start, end) = (edge(fold + 1), edge(fold + 2));
        let wanted = fractions.validation_beside(start.max(1), 0);
        let validation = boundary(times, &order, start.saturating_sub(wanted));
        Split {
            train: order[..validation].to_vec(),
            validation: order[validation..start].to_vec(),
            test: order[start..end].to_vec(),
            aside: vec![],
        }
    };
    (0..count).map(split).collect()
}

fn grouped(
    groups: &[usize],
    count: usize,
    fractions: Fractions,
    rng: &mut ChaCha8Rng,
) -> Result<Vec<Split>, SplitError> {
    let rows = groups.len();
    let blocks = deal_to(shuffled_groups(groups, rng), &block_sizes(rows, count))?;
    let split = |fold: usize| {
        let rest: Vec<usize> =
            (0..count).filter(|other| *other != fold).flat_map(|f| blocks[f].clone()).collect();
        let ids: Vec<usize> = rest.iter().map(|row| groups[*row]).collect();
        let validation = fractions.validation_beside(rows, blocks[fold].len());
        let others = shuffled_groups(&ids, rng);
        let sizes = Sizes { train: rest.len() - validation.min(rest.len()), validation, test: 0 };
        let [train, validation] = deal(others, [sizes.train, sizes.validation])?;
        let rows_of = |places: Vec<usize>| places.into_iter().map(|place| rest[place]).collect();
        let (train, validation) = (rows_of(train), rows_of(validation));
        Ok(Split { train, validation, test: blocks[fold].clone(), aside: vec![] })
    };
    (0..count).map(split).collect()
}
