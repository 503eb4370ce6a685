//! Links, disclosure and warnings of `clk` for numbers and dates.

use fet_core::data::Keys;
use fet_core::linker::{LinkTask, Linker, link};
use fet_core::registry::Recipe;

use super::super::tests::{clk, text};
use super::super::{LinkageSchema, Scoring};
use super::*;

/// All records have the same name, and their prices and dates differ slightly. Distances find the nearest
/// record, and texts do not.
#[test]
fn near_numbers_and_dates_are_found() {
    let rows = 40;
    let price = |row: usize, off: f64| format!("{:.2}", 19.95 + 3.7 * row as f64 + off);
    let day = |row: usize, off: usize| format!("2021-{:02}-{:02}", 1 + row / 4, 3 + 7 * (row % 4) + off);
    let keys = |value: &dyn Fn(usize) -> String| {
        let cells = (0..rows).flat_map(|row| ["optical mouse".to_string(), value(row)]).collect();
        Keys::Text(TextTable::new(2, cells))
    };
    let found = |near: &[f64], dates: &[usize], scoring, of: [Keys; 2]| {
        let linker = clk(|settings| {
            (settings.near, settings.dates, settings.scoring) = (near.to_vec(), dates.to_vec(), scoring);
        });
        let links = link(&linker, &of[0], &of[1], 1, &|_| ()).expect("linkable");
        (0..rows).filter(|&row| links.row(row)[0] == row as u32).count()
    };
    let prices = || [keys(&|row| price(row, 0.0)), keys(&|row| price(row, 0.3))];
    let days = || [keys(&|row| day(row, 0)), keys(&|row| day(row, 1))];
    for scoring in [Scoring::Correlation, Scoring::MatchWeights] {
        assert_eq!(found(&[0.0, 2.0], &[], scoring, prices()), rows, "{scoring:?}");
        assert_eq!(found(&[0.0, 5.0], &[2], scoring, days()), rows, "{scoring:?}");
    }
    let by_letters = found(&[], &[], Scoring::Correlation, prices());
    assert!(by_letters < 3 * rows / 4, "{by_letters}");
}

/// Each column has one order, which each side finds from its own cells. A column that fits both orders is
/// refused.
#[test]
fn a_column_has_one_form_of_dates_and_numbers() {
    let linked = |primary: &[&str], secondary: &[&str], change: &dyn Fn(&mut ClkSettings)| {
        let linker = clk(|settings| {
            (settings.near, settings.dates) = (vec![3.0], vec![1]);
            change(settings);
        });
        let links = link(&linker, &text(1, primary), &text(1, secondary), 1, &|_| ())
            .map_err(|error| error.to_string())?;
        Ok::<_, String>((0..primary.len()).map(|row| links.row(row)[0]).collect::<Vec<_>>())
    };
    let usual = |_: &mut ClkSettings| ();
    // 3 April and 4 March: a guess for each cell would link them crosswise.
    let days = ["03/04/2024", "04/03/2024", "31/12/2024"];
    let iso = ["2024-04-03", "2024-03-04", "2024-12-31"];
    assert_eq!(linked(&days, &iso, &usual), Ok(vec![0, 1, 2]));
    let months = ["04/03/2024", "03/04/2024", "12/31/2024"];
    assert_eq!(linked(&days, &months, &usual), Ok(vec![0, 1, 2]), "each side by its own cells");
    let open = &days[..2];
    let error = linked(open, &iso[..2], &usual).expect_err("two forms fit");
    assert!(error.contains("key 1 ") && error.contains("`linker.date_order`"), "{error}");
    let error = linked(&iso[..2], open, &usual).expect_err("two forms fit");
    assert!(error.contains("own table") && error.contains("`linker.date_order`"), "{error}");
    let declared = |order| move |settings: &mut ClkSettings| settings.date_order = order;
    assert_eq!(linked(open, &iso[..2], &declared(Order::DayFirst)), Ok(vec![0, 1]));
    assert_eq!(linked(open, &iso[..2], &declared(Order::MonthFirst)), Ok(vec![1, 0]));
    let error = linked(&days, &iso, &declared(Order::MonthFirst)).expect_err("no month has the number 31");
    assert!(error.contains("key 3 "), "{error}");
    let error = linked(&["31/12/2024", "12/31/2024"], &iso[..2], &usual).expect_err("both orders");
    assert!(error.contains("both forms"), "{error}");
    let numbers = |settings: &mut ClkSettings| (settings.near, settings.dates) = (vec![3.0], Vec::new());
    assert_eq!(linked(&["1.234", "1,23", "12"], &["1234", "1.23", "12.5"], &numbers), Ok(vec![0, 1, 2]));
    let error = linked(&["1,234", "12"], &["1234", "12"], &numbers).expect_err("two forms fit");
    assert!(error.contains("`linker.decimal`"), "{error}");
    // New records have the form of the run's keys.
    let linker = clk(|settings| (settings.near, settings.dates) = (vec![3.0], vec![1]));
    let run = text(1, &months);
    let forms = run.text().expect("texts").forms();
    let Keys::Text(new) = text(1, &open[..1]) else { panic!("texts") };
    let links =
        link(&linker, &Keys::Text(new.with_forms(forms)), &text(1, &iso), 1, &|_| ()).expect("linkable");
    assert_eq!(links.row(0), [1], "03/04/2024 is the fourth of March");
}

#[test]
fn refuses_invalid_distances_and_dates() {
    let check = |change: &dyn Fn(&mut ClkSettings), expected: &str| {
        let mut settings = ClkSettings::default();
        change(&mut settings);
        let error = settings.check().expect_err("it is refused").to_string();
        assert!(error.contains(expected), "{error}");
    };
    check(&|settings| settings.near = vec![1.0, -1.0], "`near`");
    check(&|settings| settings.near = vec![f64::NAN], "`near`");
    check(&|settings| settings.dates = vec![1], "`dates`");
    check(&|settings| (settings.near, settings.dates) = (vec![0.0, 1.0], vec![1]), "`dates`");
    check(&|settings| (settings.near, settings.dates) = (vec![1.0], vec![0]), "`dates`");
    check(&|settings| (settings.near, settings.weighting) = (vec![1.0], Weighting::Entropy), "`weighting`");
    check(&|settings| (settings.near, settings.groups) = (vec![1.0, 2.0], vec![7, 7]), "belong to one group");
    check(
        &|settings| {
            (settings.near, settings.dates, settings.groups) = (vec![1.0, 1.0], vec![2], vec![7, 7]);
        },
        "`dates`",
    );
    let linker = clk(|settings| settings.near = vec![1.0]);
    let error =
        link(&linker, &text(2, &["a", "1"]), &text(2, &["b", "2"]), 1, &|_| ()).expect_err("two columns");
    assert!(error.to_string().contains("near"), "{error}");
}

#[test]
fn a_schema_keeps_how_numbers_are_compared() {
    let names = ["price".to_string(), "born".to_string()];
    let settings = ClkSettings { near: vec![5.0, 20.0], dates: vec![2], ..ClkSettings::default() };
    let cells =
        |rows: &[[&str; 2]]| TextTable::new(2, rows.concat().iter().map(|cell| cell.to_string()).collect());
    let learned_from = cells(&[["1", "1990-02-03"], ["50", "1991-05-01"], ["99", "1975-11-30"]]);
    let learn = |settings: &ClkSettings| {
        LinkageSchema::learn(settings, &names, [7; 16], b"a secret of two", &learned_from).expect("a schema")
    };
    let schema = learn(&settings);
    schema.check().expect("sound");
    let text = serde_json::to_string(&schema).expect("JSON");
    let read: LinkageSchema = serde_json::from_str(&text).expect("read again");
    assert_eq!(read, schema);
    let plain = serde_json::to_string(&learn(&ClkSettings::default())).expect("JSON");
    assert!(text.contains("\"near\":5.0") && !plain.contains("near") && !plain.contains("dates"), "{plain}");
    let table = read
        .encode(
            b"a secret of two",
            &cells(&[["1.50", "1990-02-05"], ["1.95", "6.2.1990"], ["31", "2001-01-01"]]),
        )
        .expect("encodable");
    let common = |a: usize, b: usize| -> u32 {
        table.row(a).iter().zip(table.row(b)).map(|(a, b)| (a & b).count_ones()).sum()
    };
    assert!(common(0, 1) > 4 * common(0, 2), "{} {}", common(0, 1), common(0, 2));
    let wrong: LinkageSchema =
        serde_json::from_str(&text.replace("\"near\":5.0", "\"near\":-5.0")).expect("read");
    assert!(wrong.check().is_err_and(|error| error.to_string().contains("near")));
}

/// Frequencies of the points around numbers would reveal how many records have which number, so the schema
/// omits them.
#[test]
fn a_schema_reveals_only_the_weight_of_numbers() {
    let settings = ClkSettings { near: vec![0.0, 11.0], ..ClkSettings::default() };
    let names = ["name".to_string(), "salary".to_string()];
    let cells =
        (0..90).flat_map(|row| [["ann smith", "bert"][row % 2].to_string(), (3_000 + row).to_string()]);
    let table = TextTable::new(2, cells.collect());
    let listed = |settings: &ClkSettings, table: &TextTable| {
        LinkageSchema::learn(settings, &names, [7; 16], b"a secret of two", table).expect("a schema").listed()
    };
    let blank = (0..90).flat_map(|row| [["ann smith", "bert"][row % 2].to_string(), String::new()]);
    let without = listed(&settings, &TextTable::new(2, blank.collect()));
    assert!(without > 0);
    assert_eq!(listed(&settings, &table), without);
    assert!(listed(&ClkSettings::default(), &table) > without, "it lists the q-grams of texts");
}

#[test]
fn warns_of_uninformative_distances() {
    let warned = |near: &[f64], cells: &[&str]| {
        let linker = clk(|settings| settings.near = near.to_vec());
        let mut data_holder = linker.data_holder(1);
        let keys = text(2, cells);
        let message = linker.querier(1).encode(&keys).expect("encoded");
        data_holder.link(&LinkTask::new(&message, &keys)).expect("linkable");
        data_holder.warnings().join(" ")
    };
    let cells = ["ann", "12.5", "bert", "99", "cleo", "7"];
    assert_eq!(warned(&[0.0, 5.0], &cells), "");
    assert!(warned(&[5.0, 0.0], &cells).contains("3 of 3 cells of key column 1 are not numbers"));
    assert!(warned(&[0.0, 1e-300], &cells).contains("3 of 3 cells of key column 2"));
    assert!(warned(&[0.0, 1e300], &cells).contains("too large"));
}
