//! Tests of `linked`.

use super::*;
use fet_core::data::Bounds;
use fet_core::registry::Slot;
use fet_tables::prepare::{Declared, Scaling};
use fet_tables::{Kind, Values};
use std::path::{Path, PathBuf};

const SETTINGS: &str = r#"
    kind = "linked"
    label = "y"
    primary = { file = "p.csv", keys = ["lon", "lat"], drop = ["id"] }
    secondaries = [{ name = "s", file = "s.csv", keys = ["x", "y"] }]
"#;

fn load(folder: &Path, changes: &[(&str, toml::Value)]) -> Result<VerticalData, String> {
    let mut table: toml::Table = toml::from_str(SETTINGS).expect("TOML");
    for (name, value) in changes {
        table.insert(name.to_string(), value.clone());
    }
    let slot = Slot::<dyn Dataset>::from_table(table).map_err(|e| e.to_string())?;
    let dataset = slot
        .build(&DatasetContext { folders: &folder.into(), seed: 1, metadata: &["id".to_string()] })
        .map_err(|e| e.to_string())?;
    dataset.load().map_err(|e| e.to_string())
}

/// Returns the numbers of a table, column by column.
fn numbers(table: &PartyTable) -> Vec<f64> {
    let Features::Columns(columns) = &table.features else { panic!("typed columns") };
    let values = |column: &Column| match &column.values {
        Values::Number(values) => values.clone(),
        other => panic!("{}", other.kind()),
    };
    columns.table.columns.iter().flat_map(values).collect()
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let primary = "lat,id,y,area,lon\n1.3000000001,a,10,50,103.80000000001\n1.4,b,20,60,103.9\n";
    std::fs::write(folder.path().join("p.csv"), primary).expect("writable");
    std::fs::write(folder.path().join("s.csv"), "x,y,size\n103.8,1.3,5\n").expect("writable");
    folder
}

#[test]
fn keys_are_exact_and_keys_label_and_dropped_columns_are_no_features() {
    let data = load(folder().path(), &[]).expect("good tables");
    assert_eq!(data.primary.keys.numbers().expect("numbers").row(0), [103.800_000_000_01, 1.300_000_000_1]);
    assert_eq!(numbers(&data.primary), [50.0, 60.0]);
    assert_eq!(data.labels, [10.0, 20.0]);
    let secondary = &data.secondaries[0];
    assert_eq!((secondary.name.as_str(), numbers(secondary)), ("s", vec![5.0]));
}

#[test]
fn ranges_are_declared_for_every_column_of_a_secondary() {
    let secondaries = |bounds: &str| -> toml::Value {
        let table = format!("name = 's'\nfile = 's.csv'\nkeys = ['x', 'y']\nbounds = {bounds}");
        vec![toml::Value::Table(table.parse().expect("TOML"))].into()
    };
    let whole = "{ y = [1.2, 1.5], x = [103, 104], size = [0, 9] }";
    let data = load(folder().path(), &[("secondaries", secondaries(whole))]).expect("good tables");
    let keys = vec![[103.0, 104.0], [1.2, 1.5]];
    assert_eq!(data.secondaries[0].bounds, Some(Bounds { keys, features: Vec::new() }));
    assert_eq!(data.primary.bounds, None);
    for (bounds, part) in [
        ("{ x = [103, 104], size = [0, 9] }", "s.csv column `y`: must have a range in `bounds`"),
        (
            "{ y = [1, 2], x = [103, 104], size = [0, 9], sise = [0, 9] }",
            "lacks the column `sise`, which is required; did you mean \"size\"?",
        ),
        ("{ y = [2, 1], x = [103, 104], size = [0, 9] }", "secondaries[0].bounds.y` must be a range"),
    ] {
        let error = load(folder().path(), &[("secondaries", secondaries(bounds))]).expect_err("refused");
        assert!(error.contains(part), "{part} in {error}");
    }
}

#[test]
fn text_keys_are_read_as_they_stand() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let primary = "lat,id,y,area,lon\nMain St,a,10,50,\"Smith, Ann\"\n,b,20,60,Bö\n";
    std::fs::write(folder.path().join("p.csv"), primary).expect("writable");
    std::fs::write(folder.path().join("s.csv"), "x,y,size\nSmith,Main,5\n").expect("writable");
    let data = load(folder.path(), &[("key_kind", "text".into())]).expect("good tables");
    assert_eq!(data.primary.keys.text().expect("texts").cells(), ["Smith, Ann", "Main St", "Bö", ""]);
    assert_eq!(numbers(&data.primary), [50.0, 60.0]);
    let refused = load(folder.path(), &[]).expect_err("text where numbers are needed");
    assert!(refused.contains("column `lat`: must be a number"), "{refused}");
}

#[test]
fn rows_are_drawn_by_seed() {
    let data = load(folder().path(), &[("rows", 1.into())]).expect("good tables");
    assert_eq!((data.primary.rows(), data.labels.len()), (1, 1));
    let matching = if data.labels[0] == 10.0 { 50.0 } else { 60.0 };
    assert_eq!(numbers(&data.primary), [matching], "a label stays with its row");
}

#[test]
fn dates_and_times_are_keys_in_days_and_hours() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let primary = "day,hour,y,area\n31/01/1970,06:30,1,5\n01/02/1970,7:00,2,6\n";
    std::fs::write(folder.path().join("p.csv"), primary).expect("writable");
    std::fs::write(folder.path().join("s.csv"), "when,clock,size\n1970-01-02 12:00,18,5\n")
        .expect("writable");
    let settings = |forms: &str| {
        format!(
            "kind = 'linked'\nlabel = 'y'\nprimary = {{ file = 'p.csv', keys = ['day', 'hour'], columns = {forms} }}\n\
             secondaries = [{{ file = 's.csv', keys = ['when', 'clock'], columns = {{ when = 'date' }} }}]"
        )
    };
    let load = |forms: &str| {
        let slot = Slot::<dyn Dataset>::from_table(settings(forms).parse().expect("TOML")).expect("sound");
        let context =
            DatasetContext { folders: &folder.path().into(), seed: 0, metadata: &["day".to_string()] };
        slot.build(&context).expect("sound").load().map_err(|error| error.to_string())
    };
    let data = load("{ day = 'date:%d/%m/%Y', hour = 'time' }").expect("good tables");
    assert_eq!(data.primary.keys.numbers().expect("numbers").values(), [30.0, 6.5, 31.0, 7.0]);
    assert_eq!(data.secondaries[0].keys.numbers().expect("numbers").values(), [1.5, 18.0]);
    assert_eq!(data.metadata.columns[0].values.kind(), "date", "a split by time sees dates");
    let refused = load("{ hour = 'time' }").expect_err("no number");
    assert!(refused.contains("column `day`: must be a number"), "{refused}");
    std::fs::write(folder.path().join("p.csv"), primary.replace("01/02/1970", "")).expect("writable");
    let refused = load("{ day = 'date:%d/%m/%Y', hour = 'time' }").expect_err("no date");
    assert!(refused.contains("row 1 (from 0) column `day`: must be a number; it is missing"), "{refused}");
}

#[test]
fn impossible_settings_are_refused() {
    let check = |name: &str, value: toml::Value, part: &str| {
        let error = load(folder().path(), &[(name, value)]).expect_err("refused");
        assert!(error.contains(part), "{part} in {error}");
    };
    check("rows", 3.into(), "must not exceed the 2 rows of p.csv; it is 3");
    check("label", "price".into(), "lacks the column `price`");
    check("secondaries", toml::Value::Array(Vec::new()), "`data.secondaries` must hold at least one table");
    let keys = |text| toml::from_str::<toml::Table>(text).expect("TOML").into();
    let bounded = "file = 'p.csv'\nkeys = ['lon', 'lat']\ndrop = ['id']\nbounds = { area = [0, 9] }";
    check("primary", keys(bounded), "primary.bounds` must be left out");
    check("primary", keys("file = 'p.csv'\nkeys = ['lon']\ndrop = ['id']"), "secondaries[0].keys");
}

#[test]
fn the_real_tables_are_read_where_they_are() {
    let Some(folder) = std::env::var_os("FET_DATA").map(PathBuf::from) else {
        fet_testing::left_out("data", "FET_DATA is not set");
        return;
    };
    let settings = r#"
        kind = "linked"
        label = "resale_price"
        primary = { file = "hdb/hdb_clean.csv.gz", keys = ["lon", "lat"] }
        secondaries = [{ file = "hdb/school_clean.csv", keys = ["lon", "lat"], drop = ["school_name"] }]
    "#;
    let slot = Slot::<dyn Dataset>::from_table(toml::from_str(settings).expect("TOML")).expect("sound");
    let context = DatasetContext { folders: &folder.as_path().into(), seed: 0, metadata: &[] };
    let data = slot.build(&context).expect("sound").load().expect("the real tables");
    assert_eq!((data.primary.rows(), data.secondaries[0].rows()), (92_240, 165));
    assert_eq!((data.primary.features.columns(), data.secondaries[0].features.columns()), (68, 8));
}

/// Creates a primary of shops and a secondary of streets, with a missing number, a date, a category and
/// another delimiter.
fn typed() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let primary = "lon;lat;kind;opened;size;sold\n1;2;bakery;2020-01-31;NA;yes\n1,5;2;café;2021-02-01;30;no\n2;2;;;40,5;yes\n";
    std::fs::write(folder.path().join("p.csv"), primary).expect("writable");
    let secondary = "lon,lat,type,built\n1,2,road,1990-05-01\n2,2,lane,\n";
    std::fs::write(folder.path().join("s.csv"), secondary).expect("writable");
    folder
}

fn typed_settings(secondary: &str) -> String {
    format!(
        "kind = 'linked'\nlabel = 'sold'\ntask = 'binary'\nprimary = {{ file = 'p.csv', keys = ['lon', 'lat'], scaling = 'robust' }}\n\
         secondaries = [{{ file = 's.csv', keys = ['lon', 'lat'] {secondary} }}]"
    )
}

fn read_typed(settings: &str, metadata: &[&str]) -> Result<VerticalData, String> {
    let folder = typed();
    let slot = Slot::<dyn Dataset>::from_table(settings.parse().expect("TOML")).map_err(|e| e.to_string())?;
    let metadata: Vec<String> = metadata.iter().map(|name| name.to_string()).collect();
    let context = DatasetContext { folders: &folder.path().into(), seed: 1, metadata: &metadata };
    slot.build(&context).map_err(|e| e.to_string())?.load().map_err(|e| e.to_string())
}

#[test]
fn columns_are_what_they_are() {
    let data = read_typed(&typed_settings(""), &["opened", "sold"]).expect("good tables");
    assert_eq!((data.labels.as_slice(), data.classes), ([1.0, 0.0, 1.0].as_slice(), 2));
    assert_eq!(data.metadata.class_names, ["no", "yes"]);
    assert_eq!(
        data.metadata.columns.iter().map(|c| c.values.kind()).collect::<Vec<_>>(),
        ["date", "category"]
    );
    let Features::Columns(columns) = &data.primary.features else { panic!("typed columns") };
    let kinds: Vec<(&str, &str, usize)> = columns
        .table
        .columns
        .iter()
        .map(|column| (column.name.as_str(), column.values.kind(), column.values.missing()))
        .collect();
    assert_eq!(kinds, [("kind", "category", 1), ("opened", "date", 1), ("size", "number", 1)]);
    assert_eq!((columns.rules.scaling, columns.rules.only_declared), (Scaling::Robust, false));
    assert_eq!(data.primary.keys.numbers().expect("numbers").row(1), [1.5, 2.0], "decimal commas");
}

#[test]
fn a_secondary_declares_every_column_or_none() {
    let whole = ", bounds = { lon = [0, 9], lat = [0, 9] }, dates = { built = ['1900-01-01', '2030-01-01'] }, \
                 categories = { type = ['road', 'lane', 'path'] }";
    let data = read_typed(&typed_settings(whole), &[]).expect("good tables");
    let Features::Columns(columns) = &data.secondaries[0].features else { panic!("typed columns") };
    assert!(columns.rules.only_declared && columns.rules.declared.len() == 2, "keys are not features");
    let paths = Declared::Categories(["road", "lane", "path"].map(String::from).to_vec());
    assert_eq!(columns.rules.declared["type"], paths);
    for (declared, part) in [
        (", categories = { type = ['road'] }", "column `lon`: must have a range in `bounds`"),
        (
            ", bounds = { lon = [0, 9], lat = [0, 9] }, categories = { type = ['road'] }",
            "column `built`: must have a range in `dates`",
        ),
        (
            ", bounds = { lon = [0, 9], lat = [0, 9] }, dates = { built = ['1900-01-01', '2030-01-01'], x = ['1', '2'] }, \
             categories = { type = ['road'] }",
            "lacks the column `x`, which is required",
        ),
        (", categories = { type = [] }", "categories.type` must name at least one value"),
    ] {
        let error = read_typed(&typed_settings(declared), &[]).expect_err("refused");
        assert!(error.contains(part), "{part} in {error}");
    }
}

#[test]
fn kinds_and_missing_marks_are_the_owners_to_say() {
    let other = ", columns = { type = 'text' }, missing = ['road']";
    let data = read_typed(&typed_settings(other), &[]).expect("good tables");
    let Features::Columns(columns) = &data.secondaries[0].features else { panic!("typed columns") };
    assert_eq!(columns.table.columns[0].values.kind(), Kind::Text.to_string());
    assert_eq!(columns.table.columns[0].values.missing(), 0, "marks are not for texts");
    for (settings, part) in [
        (", columns = { typ = 'text' }", "lacks the column `typ`"),
        (", columns = { type = 'texts' }", "is not a kind"),
        (", columns = { built = 'number' }", "line 2 column `built`: must be a number; it is \"1990-05-01\""),
        (", one_hot = 70000", "one_hot` must be at least 0 and at most 65536"),
        (", buckets = 0", "buckets` must be at least 1 and at most 65536"),
    ] {
        let error = read_typed(&typed_settings(settings), &[]).expect_err("refused");
        assert!(error.contains(part), "{part} in {error}");
    }
}

#[test]
fn a_label_or_a_key_that_is_missing_is_named() {
    let error = read_typed(&typed_settings("").replace("'sold'", "'kind'"), &[]).expect_err("refused");
    assert!(error.contains("row 2 (from 0) column `kind`: must have a label"), "{error}");
    let error = read_typed(&typed_settings("").replace("'sold'", "'size'"), &[]).expect_err("refused");
    assert!(error.contains("row 0 (from 0) column `size`: must have a label"), "{error}");
    let error = read_typed(&typed_settings("").replace("'sold'", "'opened'"), &[]).expect_err("refused");
    assert!(error.contains("0 and 1, or the names of two classes for this task; it is a date"), "{error}");
    let keys = typed_settings("")
        .replace("file = 'p.csv', keys = ['lon', 'lat']", "file = 'p.csv', keys = ['size', 'lat']");
    let error = read_typed(&keys, &[]).expect_err("refused");
    assert!(error.contains("row 0 (from 0) column `size`: must be a number; it is missing"), "{error}");
    let twice = typed_settings("").replacen("['lon', 'lat']", "['lon', 'lon']", 1);
    assert!(read_typed(&twice, &[]).expect_err("refused").contains("must name each column once"));
}

#[test]
fn numbers_without_a_gap_are_classes_and_others_are_their_names() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let classes = |labels: &[&str], task: &str| -> Result<(Vec<f64>, Vec<String>), String> {
        let rows: String = labels.iter().enumerate().map(|(row, y)| format!("{row},{row},{y}\n")).collect();
        std::fs::write(folder.path().join("p.csv"), format!("k,a,y\n{rows}")).expect("writable");
        std::fs::write(folder.path().join("s.csv"), "k,b\n1,2\n2,3\n").expect("writable");
        let text = format!(
            "kind = 'linked'\nlabel = 'y'\ntask = '{task}'\nprimary = {{ file = 'p.csv', keys = ['k'] }}\n\
             secondaries = [{{ file = 's.csv', keys = ['k'] }}]"
        );
        let slot = Slot::<dyn Dataset>::from_table(toml::from_str(&text).expect("TOML")).expect("a data set");
        let folders = Folders::from(folder.path());
        let context = DatasetContext { folders: &folders, seed: 0, metadata: &[] };
        let data = slot.build(&context).expect("sound").load().map_err(|error| error.to_string())?;
        Ok((data.labels, data.metadata.class_names))
    };
    let plain = classes(&["2", "0", "1"], "multiclass").expect("classes");
    assert_eq!(plain, (vec![2.0, 0.0, 1.0], Vec::new()));
    let names = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
    let codes = classes(&["9", "7", "-1", "7"], "multiclass").expect("classes");
    assert_eq!(codes, (vec![2.0, 1.0, 0.0, 1.0], names(&["-1", "7", "9"])));
    assert_eq!(classes(&["2", "1"], "binary").expect("classes"), (vec![1.0, 0.0], names(&["1", "2"])));
    assert_eq!(classes(&["1", "0"], "binary").expect("classes").1, names(&[]));
    let refused = classes(&["1", "0", "2"], "binary").expect_err("refused");
    assert!(refused.contains("2 classes") && refused.contains("0, 1, 2"), "{refused}");
    let refused = classes(&["1", "1"], "binary").expect_err("refused");
    assert!(refused.contains("2 classes"), "{refused}");
}
