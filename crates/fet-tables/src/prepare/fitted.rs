//! Fits one column, either to its cells in some rows or to its declaration.

use super::column::{Cells, How, Prepared, words};
use super::date::Dates;
use super::known::Known;
use super::number::Numbers;
use super::range::{FittedRange, Fitting};
use super::rules::{Declared, Rules, Scaling};
use crate::date::date;
use crate::error::TableError;
use crate::table::{Column, MISSING_CODE, MISSING_DATE, Values};
use std::borrow::Cow;

pub(super) fn fit(column: &Column, rows: &[usize], rules: &Rules) -> Result<Prepared, TableError> {
    let name = column.name.clone();
    let refuse = |problem: String| Err(TableError::Absent(format!("{problem} (column `{name}`)")));
    let declared = rules.declared.get(&name);
    if rules.only_declared && declared.is_none() && !matches!(column.values, Values::Text(_)) {
        let what = match &column.values {
            Values::Number(_) => "range = [low, high]",
            Values::Date(_) => "dates = [\"from\", \"to\"]",
            _ => "categories = [..]",
        };
        return refuse(format!(
            "has a {} without a declaration, and the preparation must not depend on its records: declare `{what}` from public \
             knowledge, or drop it",
            column.values.kind()
        ));
    }
    let clipped = rules.scaling == Scaling::Standard && rules.clip.contains(&name);
    let scaling = if clipped { Scaling::Robust } else { rules.scaling };
    let how = match (&column.values, declared) {
        (Values::Number(_), Some(Declared::Range(range))) if range[0] < range[1] && finite(range) => {
            How::Number(Numbers::within(*range))
        }
        (Values::Number(values), None) => {
            let present: Vec<f64> =
                rows.iter().map(|&row| values[row]).filter(|value| !value.is_nan()).collect();
            if present.is_empty() {
                return refuse("lacks a number in the rows that it is fitted on: drop it".to_string());
            }
            How::Number(Numbers::fit(present, scaling))
        }
        (Values::Date(_), Some(Declared::Dates(range))) => {
            let ends = [date(&range[0]), date(&range[1])].map(|written| written.map(|written| written.at));
            let [Some(low), Some(high)] = ends else {
                return refuse(format!("has a range of dates that is not ISO 8601: {range:?}"));
            };
            if low >= high {
                return refuse(format!("has a range of dates that ends before it begins: {range:?}"));
            }
            How::Date(Dates::within([low, high]))
        }
        (Values::Date(values), None) => {
            let present: Vec<i64> =
                rows.iter().map(|&row| values[row]).filter(|value| *value != MISSING_DATE).collect();
            if present.is_empty() {
                return refuse("lacks a date in the rows that it is fitted on: drop it".to_string());
            }
            How::Date(Dates::fit(&present, scaling))
        }
        (Values::Category { .. }, Some(Declared::Categories(values))) if !values.is_empty() => {
            let mut values = values.clone();
            values.sort();
            values.dedup();
            categories(values, rules)
        }
        (Values::Category { codes, names }, None) => {
            let mut seen = vec![false; names.len()];
            for &row in rows {
                if let Some(seen) = seen.get_mut(codes[row] as usize) {
                    *seen = true;
                }
            }
            let values: Vec<String> =
                names.iter().zip(seen).filter(|(_, seen)| *seen).map(|(name, _)| name.clone()).collect();
            if values.is_empty() {
                return refuse("lacks a value in the rows that it is fitted on: drop it".to_string());
            }
            categories(values, rules)
        }
        (Values::Text(texts), None) => {
            let known = || Known::fit(rows.iter().filter_map(|&row| texts.get(row)).flat_map(words));
            let known = if rules.only_declared { None } else { known() };
            How::Hashed { buckets: rules.buckets.max(1), words: true, known }
        }
        (values, Some(declared)) => {
            let kind = values.kind();
            return refuse(format!("has a {kind}, which does not match its declaration: {declared:?}"));
        }
    };
    let missing = |row: &usize| match &column.values {
        Values::Number(values) => values[*row].is_nan(),
        Values::Category { codes, .. } => codes[*row] == MISSING_CODE,
        Values::Date(values) => values[*row] == MISSING_DATE,
        Values::Text(texts) => texts.get(*row).is_none(),
    };
    // With `only_declared` there is always an indicator, because the presence of missing cells also depends
    // on records.
    let indicator = rules.only_declared || rows.iter().any(missing);
    let declared = declared.is_some();
    let mut prepared = Prepared { name, indicator, declared, how, outputs: Vec::new() };
    if !declared && !rules.only_declared && !rows.is_empty() && !matches!(prepared.how, How::Number(_)) {
        prepared.outputs = outputs(&prepared, column, rows)?;
    }
    Ok(prepared)
}

/// Returns the range of each output of a column, over those of these rows that have a value. The indicator
/// has no range.
fn outputs(prepared: &Prepared, column: &Column, rows: &[usize]) -> Result<Vec<FittedRange>, TableError> {
    let cells = Cells::new(prepared, column)?;
    let mut out = vec![0.0; prepared.width()];
    let mut all = vec![Fitting::default(); out.len() - usize::from(prepared.indicator)];
    for &row in rows {
        out.fill(0.0);
        if !prepared.write_unbounded(&cells, row, &mut out) {
            all.iter_mut().zip(&out).for_each(|(fitting, value)| fitting.add(f64::from(*value)));
        }
    }
    Ok(all.iter().map(Fitting::range).collect())
}

fn categories(values: Vec<String>, rules: &Rules) -> How {
    if values.len() <= rules.one_hot {
        How::OneHot { values }
    } else {
        let known = Known::fit(values.iter().map(|value| Cow::Borrowed(value.as_str())));
        How::Hashed { buckets: rules.buckets.max(1), words: false, known }
    }
}

fn finite(range: &[f64; 2]) -> bool {
    range.iter().all(|end| end.is_finite())
}
