//! Tests cells that differ from all fitted cells, for each kind of preparation with each kind of difference.
//! The effect is bounded, a warning counts the rows, and no other row changes.

use fet_tables::prepare::{Declared, Nouns, Preparation, Rules, Scaling};
use fet_tables::{Format, Kind, Options, Table, read_from};

/// Rows to fit preparations on.
const FITTED: &str = "\
period,size,share,extract,opened,site,kind,code,note,label
202312,10,0.1,2023-12-31,2020-01-06,north,red,A1,blue door,same
202312,20,,2023-12-31,2021-03-09,north,blue,B2,red door and wall,same
202312,30,0.3,2023-12-31,2022-06-15,north,red,C3,blue wall,same
202312,40,0.4,2023-12-31,2023-11-24,north,blue,A1,red door,same
";
/// Three later rows without differences.
const LATER: &str = "\
period,size,share,extract,opened,site,kind,code,note,label
202312,15,0.2,2023-12-31,2021-01-01,north,red,B2,red door,same
202312,25,,2023-12-31,2022-01-01,north,blue,C3,blue door,same
202312,35,0.3,2023-12-31,2023-01-01,north,red,A1,blue wall,same
";
const NOUNS: Nouns = Nouns { fitted: "training row", rows: "rows" };

fn table(text: &str) -> Table {
    let kinds = ["site", "kind", "code"].map(|name| (name, "category"));
    let texts = ["note", "label"].map(|name| (name, "text"));
    let kinds = kinds.into_iter().chain(texts);
    let kinds = kinds.map(|(name, kind)| (name.to_string(), kind.parse::<Kind>().expect("a kind"))).collect();
    read_from(text.as_bytes(), Some(Format::Csv), &Options { kinds, ..Options::default() }).expect("a table")
}

fn rules(scaling: Scaling) -> Rules {
    // `code` has three values and is hashed; `kind` has two and is one-hot.
    Rules { scaling, one_hot: 2, buckets: 64, ..Rules::default() }
}

fn fitted(scaling: Scaling) -> Preparation {
    Preparation::fit(&table(FITTED), &[0, 1, 2, 3], &rules(scaling)).expect("it fits")
}

/// Returns the later rows, with another cell in one column of some rows, from 0.
fn changed(column: &str, rows: &[usize], cell: &str) -> Table {
    let mut lines: Vec<Vec<&str>> = LATER.lines().map(|line| line.split(',').collect()).collect();
    let at = lines[0].iter().position(|name| *name == column).expect("a column");
    rows.iter().for_each(|row| lines[row + 1][at] = cell);
    let text: Vec<String> = lines.iter().map(|line| line.join(",") + "\n").collect();
    let mut table = table(&text.concat());
    // The kind of a column is the kind that the preparation was fitted with, whatever its present cells are.
    let kinds = fitted(Scaling::Standard).kinds();
    if table.columns.iter().any(|column| column.values.kind() != kinds[&column.name].to_string()) {
        let options = Options { kinds, ..Options::default() };
        table = read_from(text.concat().as_bytes(), Some(Format::Csv), &options).expect("a table");
    }
    table
}

fn warnings(preparation: &Preparation, table: &Table) -> Vec<String> {
    let rows: Vec<usize> = (0..table.rows).collect();
    let found = preparation.departures(table, &rows);
    found.iter().map(|departure| departure.warning(NOUNS, departure.first)).collect()
}

/// One case of the test matrix.
struct Case {
    preparation: &'static str,
    departure: &'static str,
    column: &'static str,
    rows: &'static [usize],
    cell: &'static str,
    warning: &'static str,
}

const fn case(
    preparation: &'static str,
    departure: &'static str,
    (column, rows, cell): (&'static str, &'static [usize], &'static str),
    warning: &'static str,
) -> Case {
    Case { preparation, departure, column, rows, cell, warning }
}

const CONSTANT: &str = "1 of 3 rows has another value (the first is row 1): the model ignores this column";

#[rustfmt::skip]
const CASES: [Case; 22] = [
    case("number", "constant changed", ("period", &[1], "202412"), "is constant in every training row (202312), and "),
    case("number", "far value", ("size", &[1], "1e9"), "1 of 3 rows is far outside 10 to 40, the range of every training row (the first is row 1): the model sees a value near the end of that range"),
    case("number", "far value below", ("size", &[2], "-1e9"), "1 of 3 rows is far outside 10 to 40"),
    case("number", "missing where none was", ("size", &[1, 2], "NA"), "2 of 3 rows lack a value, which every training row has (the first is row 1): the mean replaces it"),
    case("number", "missing where some were", ("share", &[2], ""), ""),
    case("number", "other unit", ("size", &[0, 1, 2], "25000"), "3 of 3 rows are far outside 10 to 40, the range of every training row (the first is row 0): the model sees a value near the end of that range; is the column in another unit or form?"),
    case("number", "within a standard deviation", ("size", &[1], "50"), ""),
    case("date", "constant changed", ("extract", &[1], "2024-12-31"), "is constant in every training row (2023-12-31), and "),
    case("date", "far value", ("opened", &[1], "2093-01-01"), "1 of 3 rows is far outside 2020-01-06 to 2023-11-24"),
    case("date", "far value below", ("opened", &[1], "1493-01-01"), "1 of 3 rows is far outside 2020-01-06 to 2023-11-24"),
    case("date", "missing where none was", ("opened", &[1], ""), "1 of 3 rows lacks a value, which every training row has (the first is row 1): the mean replaces it"),
    case("one-hot", "constant changed", ("site", &[1], "south"), "is constant in every training row (north), and "),
    case("one-hot", "unseen category", ("kind", &[1], "green"), "1 of 3 rows has a value that no training row had (the first is row 1); the model did not learn it"),
    case("one-hot", "missing where none was", ("kind", &[1], ""), "1 of 3 rows lacks a value, which every training row has (the first is row 1): the model sees none of its values"),
    case("hashed category", "unseen category", ("code", &[1], "Z9"), "1 of 3 rows has a value that no training row had (the first is row 1)"),
    case("hashed category", "missing where none was", ("code", &[1], ""), "1 of 3 rows lacks a value, which every training row has"),
    case("text", "constant changed", ("label", &[1], "other"), "is constant in every training row, and "),
    case("text", "new text", ("note", &[1], "violet garden"), "1 of 3 rows has a text with at least half of its words in no training row (the first is row 1); the model did not learn these words"),
    case("text", "half of the words new", ("note", &[1], "violet door"), "1 of 3 rows has a text with at least half of its words"),
    case("text", "some words new", ("note", &[1], "violet door and wall"), ""),
    case("text", "a text of thousands of words", ("note", &[1], "LONG"), ""),
    case("text", "missing where none was", ("note", &[1], ""), "1 of 3 rows lacks a value, which every training row has"),
];

/// Checks the matrix of preparations and differences: the warning, the bound, and that other rows do not
/// change.
#[test]
fn every_difference_is_bounded_and_counted_and_changes_no_other_row() {
    let long = "door ".repeat(50_000);
    for scaling in [Scaling::Standard, Scaling::Robust, Scaling::None] {
        let preparation = fitted(scaling);
        let usual = table(LATER);
        assert_eq!(warnings(&preparation, &usual), [""; 0], "nothing differs");
        let width = preparation.width();
        let before = preparation.apply(&usual).expect("the same columns");
        let of_training = preparation.apply(&table(FITTED)).expect("its own");
        for case in &CASES {
            let name = format!("{scaling:?}, {}, {}", case.preparation, case.departure);
            let cell = if case.cell == "LONG" { long.as_str() } else { case.cell };
            let new = changed(case.column, case.rows, cell);
            let found = warnings(&preparation, &new);
            if case.warning.is_empty() {
                assert_eq!(found, [""; 0], "{name}");
            } else {
                assert_eq!(found.len(), 1, "{name}: {found:?}");
                assert!(found[0].starts_with(&format!("column `{}`", case.column)), "{name}: {found:?}");
                assert!(found[0].contains(case.warning), "{name}: {found:?}");
                let constant = case.departure == "constant changed";
                assert_eq!(found[0].contains(CONSTANT), constant, "{name}: {found:?}");
            }
            let after = preparation.apply(&new).expect("the same columns");
            for row in 0..3 {
                let [before, after] = [&before, &after].map(|all| &all[row * width..(row + 1) * width]);
                if !case.rows.contains(&row) || case.departure == "constant changed" {
                    assert_eq!(before, after, "{name}: row {row}");
                    continue;
                }
                for (column, value) in after.iter().enumerate() {
                    let seen = of_training.chunks(width).map(|row| f64::from(row[column]));
                    let (low, high) =
                        seen.clone().fold((f64::MAX, f64::MIN), |(low, high), x| (low.min(x), high.max(x)));
                    let mean = seen.clone().sum::<f64>() / 4.0;
                    // The divisor 3 makes the bound slightly wider, because the margin comes from the present
                    // values, before clipping and filling in.
                    let deviation = (seen.map(|x| (x - mean).powi(2)).sum::<f64>() / 3.0).sqrt() + 1e-6;
                    let range = low - deviation..=high + deviation;
                    assert!(range.contains(&f64::from(*value)), "{name}: {value} in {range:?}");
                }
            }
        }
    }
    // Prints the table of the guide, visible with `--nocapture`.
    eprintln!("| preparation | difference | warning | other rows |\n|---|---|---|---|");
    for case in &CASES {
        let new = changed(case.column, case.rows, if case.cell == "LONG" { &long } else { case.cell });
        let warning = warnings(&fitted(Scaling::Standard), &new).concat();
        let warning = if warning.is_empty() { "none" } else { &warning };
        eprintln!("| {} | {} | {warning} | unchanged |", case.preparation, case.departure);
    }
}

/// The bound does not change the fitted rows themselves.
#[test]
fn fitted_rows_do_not_depart() {
    for scaling in [Scaling::Standard, Scaling::Robust, Scaling::None] {
        assert_eq!(warnings(&fitted(scaling), &table(FITTED)), [""; 0], "{scaling:?}");
    }
    let text: String = (0..101).map(|i| format!("{}\n", (f64::from(i) * 0.7).sin().powi(9))).collect();
    let table = read_from(format!("period\n{text}").as_bytes(), None::<Format>, &Options::default());
    let table = table.expect("a table");
    let rows: Vec<usize> = (0..101).collect();
    let preparation = Preparation::fit(&table, &rows, &Rules::default()).expect("it fits");
    let values: Vec<f64> = text.lines().map(|line| line.parse().expect("a number")).collect();
    let mean = values.iter().sum::<f64>() / 101.0;
    let deviation = (values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 101.0).sqrt();
    for (found, value) in preparation.apply(&table).expect("its own").iter().zip(&values) {
        assert!((f64::from(*found) - (value - mean) / deviation).abs() < 1e-6, "{found} for {value}");
    }
}

#[test]
fn names_constant_columns() {
    let names: Vec<(String, Option<String>)> = fitted(Scaling::Standard)
        .constants()
        .into_iter()
        .map(|(name, value)| (name.to_string(), value))
        .collect();
    let known = |name: &str, value: &str| (name.to_string(), Some(value.to_string()));
    let expected = [
        known("period", "202312"),
        known("extract", "2023-12-31"),
        known("site", "north"),
        ("label".to_string(), None),
    ];
    assert_eq!(names, expected);
}

/// A declared range bounds values, and a warning to the table's owner counts the values outside it.
#[test]
fn values_outside_a_declaration_are_counted() {
    let declared = [
        ("n", Declared::Range([0.0, 10.0])),
        ("c", Declared::Categories(vec!["red".into(), "blue".into()])),
        ("d", Declared::Dates(["2020-01-01".into(), "2025-01-01".into()])),
    ];
    let declared = declared.into_iter().map(|(name, what)| (name.to_string(), what)).collect();
    let rules = Rules { declared, only_declared: true, ..Rules::default() };
    let table = |text: &str| {
        let kinds = [("c", Kind::Category), ("t", Kind::Text)].map(|(name, kind)| (name.to_string(), kind));
        let options = Options { kinds: kinds.into(), ..Options::default() };
        read_from(text.as_bytes(), Some(Format::Csv), &options).expect("a table")
    };
    let plain = table("n,c,d,t\n1,red,2021-01-01,a\n1,red,2021-01-01,a\n");
    let preparation = Preparation::fit(&plain, &[0, 1], &rules).expect("it fits");
    assert_eq!(warnings(&preparation, &plain), [""; 0]);
    assert!(preparation.constants().is_empty(), "that a column is constant follows from records");
    let odd = table("n,c,d,t\n1,red,2021-01-01,new\n11,green,1999-01-01,\n");
    assert_eq!(
        warnings(&preparation, &odd),
        [
            "column `n`: 1 of 2 rows is outside the declared range [0, 10] (the first is row 1): the model sees the nearer end of \
             the range",
            "column `c`: 1 of 2 rows has a value that is not among the declared categories (the first is row 1); the model did \
             not learn it",
            "column `d`: 1 of 2 rows is outside the declared range [2020-01-01, 2025-01-01] (the first is row 1): the model sees \
             the nearer end of the range",
        ]
    );
    let all = table("n,c,d,t\n11,green,1999-01-01,a\n,,,\n");
    let found = warnings(&preparation, &all);
    assert!(
        found.len() == 3 && found.iter().all(|one| one.contains("does the declaration match the file?")),
        "{found:?}"
    );
}

/// A saved preparation recognises the same cells as new. A preparation of an earlier version, which stored no
/// ranges, is refused.
#[test]
fn a_saved_preparation_knows_what_it_was_fitted_on() {
    let preparation = fitted(Scaling::Standard);
    let saved = serde_json::to_value(&preparation).expect("plain data");
    let read: Preparation = serde_json::from_value(saved.clone()).expect("as it was written");
    for case in CASES.iter().filter(|case| case.cell != "LONG") {
        let new = changed(case.column, case.rows, case.cell);
        assert_eq!(warnings(&read, &new), warnings(&preparation, &new));
    }
    for part in ["/columns/0/how/number/range", "/columns/5/outputs", "/columns/6/declared"] {
        let (parent, name) = part.rsplit_once('/').expect("a path");
        let mut old = saved.clone();
        old.pointer_mut(parent).and_then(|parent| parent.as_object_mut()?.remove(name)).expect(part);
        assert!(serde_json::from_value::<Preparation>(old).is_err(), "{part} is needed");
    }
}

#[test]
fn warns_of_another_unit_and_of_times_without_their_zone() {
    let read = |text: &str, kinds| {
        let options = Options { kinds, ..Options::default() };
        read_from(text.as_bytes(), Some(Format::Csv), &options).expect("a table")
    };
    let first = read(
        "share,at\n35%,2020-07-10T14:00:00\n55%,2020-01-04T05:00:00\n40%,2020-01-09T05:00:00\n",
        [].into(),
    );
    let preparation = Preparation::fit(&first, &[0, 1, 2], &Rules::default()).expect("it fits");
    let stored = serde_json::to_string(&preparation).expect("writable");
    let preparation: Preparation = serde_json::from_str(&stored).expect("readable");
    let check = |share: &str, at: &str, expected: &[&str]| {
        let text = format!("share,at\n40%,2020-02-10T14:00:00\n{share},2020-02-10T14:00:00\n40%,{at}\n");
        let found = warnings(&preparation, &read(&text, preparation.kinds()));
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.contains("1 of 3 cells") && found.contains(expected), "{found}");
        }
    };
    check("40%", "2020-02-10T14:00:00", &[]);
    check(
        "40",
        "2020-02-10T14:00:00",
        &["column `share`: 1 of 3 cells is written with no unit, unlike every training row"],
    );
    check("40‰", "2020-02-10T14:00:00", &["with the unit ‰"]);
    check("$40", "2020-02-10T14:00:00", &["with the unit $"]);
    check("40%", "2020-02-10", &["column `at`: 1 of 3 cells is written without a time"]);
    check("40%", "2020-02-10T14:00:00+09:00", &["with a time and a zone"]);
    check("40", "2020-02-10T14:00:00Z", &["with a time and a zone", "with no unit"]);
}

#[test]
fn warns_of_a_unit_that_one_table_lacks_in_all_cells() {
    let read = |text: &str, kinds| {
        let options = Options { kinds, ..Options::default() };
        read_from(text.as_bytes(), Some(Format::Csv), &options).expect("a table")
    };
    for (first, second, expected) in [
        ("share\n35\n55\n40\n", "share\n35%\n40%\n", "2 of 2 cells are written with the unit %"),
        ("share\n35%\n55%\n40%\n", "share\n35\n40\n", "2 of 2 cells are written with no unit"),
    ] {
        let preparation =
            Preparation::fit(&read(first, [].into()), &[0, 1, 2], &Rules::default()).expect("it fits");
        let found = warnings(&preparation, &read(second, preparation.kinds()));
        assert!(found.len() == 1 && found[0].contains(expected), "{found:?}");
    }
}

#[test]
fn refuses_a_table_that_was_read_in_another_form() {
    let read =
        |text: &str| read_from(text.as_bytes(), Some(Format::Csv), &Options::default()).expect("a table");
    let check = |first: &str, second: &str, refused: bool| {
        let first = read(first);
        let preparation = Preparation::fit(&first, &[0, 1], &Rules::default()).expect("it fits");
        let applied = preparation.apply(&read(second)).map_err(|error| error.to_string());
        match applied {
            Err(error) => {
                assert!(refused && error.contains("`v`") && error.contains("in training"), "{error}")
            }
            Ok(_) => assert!(!refused, "{second}"),
        }
    };
    let plain = "v;w\n1.870;1\n2.250;2\n";
    check(plain, "v;w\n1.5;1\n2;2\n", false);
    check(plain, "v;w\n1,5;1\n2;2\n", true);
    check(plain, "v;w\n1.870,5;1\n2.250,5;2\n", true);
    check(plain, "v;w\n7;1\n2;2\n", false);
    let comma = "v;w\n1,870;1\n0,250;2\n";
    check(comma, plain, true);
    check(comma, "v;w\n7;1\n2;2\n", false);
    check("v;w\n31/01/2024;1\n01/02/2024;2\n", "v;w\n01/31/2024;1\n01/02/2024;2\n", true);
}
