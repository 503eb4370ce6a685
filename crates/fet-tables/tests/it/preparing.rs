//! Tests of the prepared columns, and of the records that they may depend on.

use fet_tables::prepare::{Declared, Preparation, Rules, Scaling};
use fet_tables::{Format, Kind, Options, Table, read_from};

fn table(text: &str) -> Table {
    read_from(text.as_bytes(), Some(Format::Csv), &Options::default()).expect("a table")
}

/// Reads a table with the given kinds.
fn table_of(text: &str, kinds: &[(&str, &str)]) -> Table {
    let kind = |text: &str| text.parse::<Kind>().expect("a kind");
    let kinds = kinds.iter().map(|(name, text)| (name.to_string(), kind(text))).collect();
    read_from(text.as_bytes(), Some(Format::Csv), &Options { kinds, ..Options::default() }).expect("a table")
}

fn prepared(table: &Table, rows: &[usize], rules: &Rules) -> (Preparation, Vec<Vec<f32>>) {
    let preparation = Preparation::fit(table, rows, rules).expect("it fits");
    let all = preparation.apply(table).expect("its own table");
    let width = preparation.width();
    assert_eq!(preparation.names().len(), width);
    (preparation, all.chunks(width).map(<[f32]>::to_vec).collect())
}

#[test]
fn numbers_are_filled_in_and_scaled_by_the_fitted_rows() {
    // The last row is not a training row: neither its number nor its missing cell affects the preparation.
    let table = table("a,b\n1,5\n3,5\n,5\n5,5\n1000,\n");
    let (preparation, rows) = prepared(&table, &[0, 1, 2, 3], &Rules::default());
    assert_eq!(preparation.names(), ["a", "a is missing", "b"]);
    let scale = (8.0f64 / 3.0).sqrt();
    let of = |value: f64| ((value - 3.0) / scale) as f32;
    assert_eq!(rows[0], [of(1.0), 0.0, 0.0], "a constant is 0");
    assert_eq!(rows[2], [0.0, 1.0, 0.0], "the mean");
    // The first value is clamped to one standard deviation beyond 5, the greatest number. The second column
    // is missing only in this row and is filled in.
    assert_eq!(rows[4], [of(5.0 + scale), 0.0, 0.0]);
    let none = Rules { scaling: Scaling::None, ..Rules::default() };
    assert_eq!(prepared(&table, &[0, 1, 2, 3], &none).1[2], [3.0, 1.0, 0.0]);
}

#[test]
fn large_numbers_keep_their_digits() {
    let text: String = (0..101).map(|i| format!("{},{}\n", 1_600_000_000u64 + i, i)).collect();
    let table = table(&format!("stamp,index\n{text}"));
    let all: Vec<usize> = (0..101).collect();
    let (_, rows) = prepared(&table, &all, &Rules::default());
    for row in &rows {
        assert!((row[0] - row[1]).abs() < 1e-6, "{row:?}");
    }
    assert!((rows[100][0] - 1.714_985_9).abs() < 1e-5, "{:?}", rows[100]);
}

#[test]
fn one_outlier_does_not_compress_the_other_values() {
    let text: String = (0..1_000).map(|i| format!("{}\n", i % 100)).collect();
    let table = table(&format!("a\n{text}1e9\n"));
    let all: Vec<usize> = (0..1_001).collect();
    let spread = |scaling| {
        let (_, rows) = prepared(&table, &all, &Rules { scaling, ..Rules::default() });
        (rows[99][0] - rows[0][0], rows[1_000][0])
    };
    assert!(spread(Scaling::Standard).0 < 1e-4);
    let (spread, wild) = spread(Scaling::Robust);
    assert!(spread > 3.0 && wild < 2.0, "{spread} {wild}");
}

#[test]
fn one_column_is_clipped_where_others_are_not() {
    let text: String = (0..1_000).map(|i| format!("{0},{0}\n", i % 100)).collect();
    let table = table(&format!("a,b\n{text}1e9,1e9\n"));
    let all: Vec<usize> = (0..1_001).collect();
    let clip = |name: &str| Rules { clip: vec![name.to_string()], ..Rules::default() };
    let (_, rows) = prepared(&table, &all, &clip("b"));
    let robust = Rules { scaling: Scaling::Robust, ..Rules::default() };
    let (_, robust) = prepared(&table, &all, &robust);
    let (_, standard) = prepared(&table, &all, &Rules::default());
    for (row, (robust, standard)) in rows.iter().zip(robust.iter().zip(&standard)) {
        assert_eq!([row[0], row[1]], [standard[0], robust[1]]);
    }
    let range = [("b".to_string(), Declared::Range([0.0, 1.0]))].into();
    for (rules, problem) in [
        (clip("c"), "lacks the column `c`"),
        (Rules { scaling: Scaling::Robust, ..clip("b") }, "clipped already by the scaling"),
        (Rules { scaling: Scaling::None, ..clip("b") }, "is not scaled"),
        (Rules { declared: range, ..clip("b") }, "has a declared range"),
    ] {
        let error = Preparation::fit(&table, &all, &rules).expect_err(problem).to_string();
        assert!(error.contains(problem), "{error}");
    }
}

#[test]
fn categories_have_a_column_each_and_new_ones_have_none() {
    let table = table_of("c\nred\nblue\n\"\"\nred\ngreen\n", &[("c", "category")]);
    let (preparation, rows) = prepared(&table, &[0, 1, 2, 3], &Rules::default());
    assert_eq!(preparation.names(), ["c = blue", "c = red", "c is missing"]);
    assert_eq!(rows, [[0., 1., 0.], [1., 0., 0.], [0., 0., 1.], [0., 1., 0.], [0., 0., 0.]]);
    // Another table has different codes for the same names.
    let other = table_of("c\nviolet\nred\n", &[("c", "category")]);
    assert_eq!(preparation.apply(&other).expect("the same kind"), [0., 0., 0., 0., 1., 0.]);
    // A category with more values than `one_hot` is hashed; the bucket depends only on the name.
    let rules = Rules { one_hot: 1, buckets: 8, ..Rules::default() };
    let (hashed, rows) = prepared(&table, &[0, 1, 3], &rules);
    assert_eq!(hashed.width(), 8);
    assert_eq!(rows[0], rows[3]);
    assert!(rows[0] != rows[1] && rows[0].iter().sum::<f32>() == 1.0);
    assert_eq!(rows[4], [0.0; 8], "no fitted row had a value of this bucket");
    assert_eq!(hashed.apply(&other).expect("the same kind")[8..], rows[0]);
}

#[test]
fn dates_become_ages_and_places_in_their_cycles() {
    let table = table("d\n2024-01-01\n2024-01-11\nNA\n2024-01-21\n");
    let (preparation, rows) = prepared(&table, &[0, 1, 2, 3], &Rules::default());
    let names = preparation.names();
    assert_eq!(names[..2], ["d: age", "d: year, sin"]);
    assert_eq!((names.len(), names[5].as_str()), (6, "d is missing"));
    assert!((rows[0][0] - 1.224_744_9).abs() < 1e-6 && rows[3][0] == -rows[0][0] && rows[1][0].abs() < 1e-6);
    assert_eq!(rows[2], [0., 0., 0., 0., 0., 1.]);
    // 2024-01-01 was a Monday, and ten days later the position in the week is three days later.
    let week = |row: usize| f64::from(rows[row][3]).atan2(f64::from(rows[row][4]));
    let days = (week(1) - week(0)).rem_euclid(std::f64::consts::TAU) / std::f64::consts::TAU * 7.0;
    assert!((days - 3.0).abs() < 1e-4, "{days}");
    let times = table_of("d\n2024-01-01T06:00:00\n2024-01-02\n", &[]);
    let (preparation, rows) = prepared(&times, &[0, 1], &Rules::default());
    assert_eq!(preparation.width(), 7);
    assert!((rows[0][5] - 1.0).abs() < 1e-6 && rows[1][6] == 1.0, "a fourth of the day: {rows:?}");
}

#[test]
fn texts_are_words_without_case_and_marks() {
    let text = |cells: &str| table_of(&format!("t\n{cells}"), &[("t", "text")]);
    // No word is in every fitted row, because such a constant word would become 0.
    let table = text("Blue door\n\"door, BLUE!\"\nred gate\nNA\n");
    let (preparation, rows) = prepared(&table, &[0, 1, 2], &Rules { buckets: 512, ..Rules::default() });
    assert_eq!(preparation.width(), 512);
    assert!(rows[0] == rows[1] && rows[0] != rows[2]);
    let length: f32 = rows[0].iter().map(|x| x * x).sum();
    assert!((length - 1.0).abs() < 1e-6, "{length}");
}

/// The law of declared columns: a record has no effect on any other row.
#[test]
fn declared_columns_do_not_depend_on_other_records() {
    let declared = [
        ("n", Declared::Range([0.0, 10.0])),
        ("c", Declared::Categories(vec!["red".into(), "blue".into()])),
        ("d", Declared::Dates(["2020-01-01".into(), "2025-01-01".into()])),
    ];
    let declared = declared.into_iter().map(|(name, what)| (name.to_string(), what)).collect();
    let rules = Rules { declared, only_declared: true, ..Rules::default() };
    let kinds = [("n", "number"), ("c", "category"), ("d", "date"), ("t", "text")];
    let rows = "n,c,d,t\n1,red,2021-01-01,a word\n9,blue,2024-05-05T10:00:00,another\n";
    let plain = table_of(&format!("{rows}5,red,2022-02-02,word\n"), &kinds);
    let (first, before) = prepared(&plain, &[0, 1, 2], &rules);
    for last in ["1e12,violet,1066-01-01,\n", ",,,\n", "-7,blue,2025-01-01T23:59:59,b c d\n"] {
        let (other, after) = prepared(&table_of(&format!("{rows}{last}"), &kinds), &[0, 1, 2], &rules);
        assert_eq!(first, other, "{last}");
        assert_eq!(before[..2], after[..2], "{last}");
        assert!(after[2].iter().all(|value| value.abs() < 3.0), "it is clipped: {:?}", after[2]);
    }
    // Without a declaration the same record changes the other rows; this is why a declaration is required.
    let fitted =
        |last: &str| prepared(&table_of(&format!("{rows}{last}"), &kinds), &[0, 1, 2], &Rules::default()).1;
    assert_ne!(fitted("5,red,2022-02-02,word\n")[0], fitted("1e12,red,2022-02-02,word\n")[0]);
    for (name, part) in [("n", "range = [low, high]"), ("c", "categories"), ("d", "dates")] {
        let mut rules = rules.clone();
        rules.declared.remove(name);
        let error = Preparation::fit(&plain, &[0, 1, 2], &rules).expect_err("refused").to_string();
        assert!(error.contains(part) && error.contains(&format!("`{name}`")), "{error}");
    }
}

#[test]
fn a_saved_preparation_is_the_same_to_the_last_bit() {
    let text: String = (0..300)
        .map(|i| format!("{},{},2024-01-{:02}\n", (f64::from(i)).sin(), i % 40, i % 28 + 1))
        .collect();
    let table = table_of(&format!("a,c,d\n{text}"), &[("c", "category")]);
    let all: Vec<usize> = (0..300).collect();
    for scaling in [Scaling::Standard, Scaling::Robust, Scaling::None] {
        let (preparation, _) = prepared(&table, &all, &Rules { scaling, ..Rules::default() });
        let saved = serde_json::to_string(&preparation).expect("plain data");
        let read: Preparation = serde_json::from_str(&saved).expect("as it was written");
        assert_eq!(read, preparation);
        let bits = |preparation: &Preparation| -> Vec<u32> {
            preparation.apply(&table).expect("its own").iter().map(|value| value.to_bits()).collect()
        };
        assert_eq!(bits(&read), bits(&preparation));
    }
    assert!(prepared(&table, &all, &Rules::default()).0.kinds()["c"] == Kind::Category);
}

#[test]
fn errors_name_columns_that_do_not_fit() {
    let fit = |text: &str, rows: &[usize], rules: &Rules| {
        Preparation::fit(&table(text), rows, rules).expect_err("refused").to_string()
    };
    let declare = |name: &str, what: Declared| Rules {
        declared: [(name.to_string(), what)].into(),
        ..Rules::default()
    };
    let missing = fit("a,b\n1,\n2,3\n", &[0], &Rules::default());
    assert!(
        missing.contains("lacks a number") && missing.contains("`b`") && missing.contains("drop it"),
        "{missing}"
    );
    let unknown = fit("price\n1\n", &[0], &declare("prise", Declared::Range([0.0, 1.0])));
    assert!(unknown.contains("lacks the column `prise`") && unknown.contains("price"), "{unknown}");
    let kind = fit("a\n1\n", &[0], &declare("a", Declared::Categories(vec!["x".into()])));
    assert!(kind.contains("number") && kind.contains("`a`"), "{kind}");
    let order = fit(
        "d\n2024-01-01\n",
        &[0],
        &declare("d", Declared::Dates(["2024-01-02".into(), "2024-01-01".into()])),
    );
    assert!(order.contains("ends before it begins"), "{order}");
    let preparation = Preparation::fit(&table("a\n1\n2\n"), &[0, 1], &Rules::default()).expect("it fits");
    let other =
        preparation.apply(&table_of("a\nx\ny\n", &[("a", "category")])).expect_err("refused").to_string();
    assert!(other.contains("category") && other.contains("number") && other.contains("`a`"), "{other}");
    let past = fit("a\n1\n", &[1], &Rules::default());
    assert!(past.contains("row 1"), "{past}");
    let absent = preparation.apply(&table("b\n1\n2\n")).expect_err("refused").to_string();
    assert!(absent.contains("lacks the column `a`"), "{absent}");
}
