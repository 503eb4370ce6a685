//! Tests with figures computed by hand.

use super::*;
use crate::texts::Texts;

fn column_summary(values: Values) -> ColumnSummary {
    of_column(&Column { name: "c".into(), values })
}

#[test]
fn figures_are_those_of_the_present_cells() {
    let nan = f64::NAN;
    let check = |values: Values, missing: usize, distinct: usize, figures: Option<Figures>| {
        let found = column_summary(values);
        assert_eq!((found.missing, found.distinct, &found.figures), (missing, distinct, &figures));
    };
    let numbers = |min, mean, median, max| Some(Figures::Number { min, mean, median, max });
    check(Values::Number(vec![4.0, nan, 1.0, 1.0]), 1, 2, numbers(1.0, 2.0, 1.0, 4.0));
    check(Values::Number(vec![4.0, 1.0, 2.0, 9.0]), 0, 4, numbers(1.0, 4.0, 3.0, 9.0));
    check(Values::Number(vec![0.0, -0.0]), 0, 1, numbers(-0.0, 0.0, 0.0, 0.0));
    check(Values::Number(vec![f64::MAX, f64::MAX]), 0, 1, numbers(f64::MAX, f64::MAX, f64::MAX, f64::MAX));
    check(Values::Number(vec![nan]), 1, 0, None);
    let day = 86_400_000_000;
    let dates = Figures::Date {
        min: "1970-01-01".into(),
        mean: "1970-01-02".into(),
        median: "1970-01-01T12:00:00Z".into(),
        max: "1970-01-04".into(),
    };
    check(Values::Date(vec![0, 3 * day, MISSING_DATE, day, 0]), 1, 3, Some(dates));
    let names = ["a", "b", "c"].map(String::from).to_vec();
    let top = vec![("b".to_string(), 2), ("a".to_string(), 1)];
    let codes = vec![1, 0, MISSING_CODE, 1];
    check(Values::Category { codes, names }, 1, 2, Some(Figures::Category { top }));
    let texts: Texts = [Some("één"), None, Some("longer")].into_iter().collect();
    check(Values::Text(texts), 1, 2, Some(Figures::Text { shortest: 3, longest: 6 }));
}

#[test]
fn distinct_values_are_counted_up_to_a_bound() {
    let check = |count: usize, expected: (usize, bool)| {
        let found = column_summary(Values::Number((0..count).map(|value| value as f64).collect()));
        assert_eq!((found.distinct, found.distinct_more), expected);
    };
    check(MOST_DISTINCT - 1, (MOST_DISTINCT - 1, false));
    check(MOST_DISTINCT, (MOST_DISTINCT, false));
    check(MOST_DISTINCT + 1, (MOST_DISTINCT, true));
}

#[test]
fn a_summary_prints_and_is_read_back() {
    let names = vec!["red".to_string()];
    let columns = vec![
        Column { name: "price".into(), values: Values::Number(vec![1.25, f64::NAN, 123_456_789.0, 2e-7]) },
        Column {
            name: "colour".into(),
            values: Values::Category { codes: vec![0, 0, MISSING_CODE, 0], names },
        },
    ];
    let mut table = Table::new(columns).expect("a good table");
    table.notes.push("the delimiter is `;`".into());
    let found = summary(&table);
    let shown = found.to_string();
    for part in [
        "4 rows, 2 columns",
        "1 (25.0 %)",
        "2.00000e-7 .. 123456789, mean 41152263",
        "median 1.25",
        "red (3)",
        "note: the delimiter is `;`",
    ] {
        assert!(shown.contains(part), "\"{part}\" in\n{shown}");
    }
    let json = serde_json::to_string(&found).expect("finite figures");
    assert_eq!(serde_json::from_str::<Summary>(&json).expect("its own form"), found);
}
