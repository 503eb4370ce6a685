//! Tests `fet init`: it writes an experiment for undescribed tables that runs without changes.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use crate::command::fet;
use crate::support::report;

/// Creates shops with a place and takings, stops near them, and names of people with and without accents.
fn tables(folder: &Path) {
    let mut shops = String::from("lon,lat,kind,\"note, or none\",busy,takings\n");
    let mut stops = String::from("lon,lat,lines,empty\n");
    let (mut people, mut others) = (String::from("name,age,city,code\n"), String::from("name,income\n"));
    for i in 0..60 {
        let (x, y) = (i % 8, i / 8);
        let kind = ["cafe", "bar", "shop"][i % 3];
        let _ = writeln!(
            shops,
            "{x}.1,{y}.2,{kind},{},{},{}",
            if i % 4 == 0 { "" } else { "x" },
            i % 2,
            i * 7 % 50
        );
        let _ = writeln!(stops, "{x}.2,{y}.1,{},", i % 5);
        let _ = writeln!(people, "Ann {i} Smith,{},{},c{i}x", 20 + i, ["Ulm", "Bern", "Graz"][i % 3]);
        let _ = writeln!(others, "An {i} Smith,{}", 1000 + i * 13 % 700);
    }
    for (name, text) in
        [("shops.csv", shops), ("stops.csv", stops), ("people.csv", people), ("register.csv", others)]
    {
        fs::write(folder.join(name), text).expect("written");
    }
}

#[test]
fn writes_an_experiment_that_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    tables(folder);
    for (name, first, second, label, parts) in [
        (
            "takings",
            "shops.csv",
            "stops.csv",
            "takings",
            ["task = \"regression\"", "keys = [\"lon\", \"lat\"]", "# `empty`: only missing cells."],
        ),
        (
            "busy",
            "shops.csv",
            "stops.csv",
            "busy",
            ["task = \"binary\"", "kind = \"stratified\"", "# 60 rows."],
        ),
        (
            "city",
            "people.csv",
            "register.csv",
            "city",
            ["task = \"multiclass\"", "key_kind = \"text\"", "kind = \"clk\"\nneighbours = 5"],
        ),
    ] {
        let file = format!("{name}.toml");
        let made = fet(folder, &["init", first, second, "--label", label, "--out", &file]);
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let text = fs::read_to_string(folder.join(&file)).expect("written");
        assert!(parts.iter().all(|part| text.contains(part)), "{parts:?} in {text}");
        let check = fet(folder, &["data", "check", &file]);
        assert!(check.status.success(), "{}\n{text}", String::from_utf8_lossy(&check.stderr));
        let run = fet(folder, &["run", &file, "--set=train.epochs=1", "--out", name]);
        assert!(run.status.success(), "{}\n{text}", String::from_utf8_lossy(&run.stderr));
        assert_eq!(report(&folder.join(name)).secondaries, 1);
    }
}

#[test]
fn asks_for_settings_that_it_cannot_guess() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    tables(folder);
    fs::write(folder.join("mine.toml"), "name = \"mine\"\n").expect("written");
    for (arguments, parts) in [
        (
            &["shops.csv", "stops.csv", "--label=taking"][..],
            &["--label taking", "shops.csv", "did you mean \"takings\""][..],
        ),
        (
            &["shops.csv", "register.csv", "--label=takings"],
            &["no column", "--keys", "register.csv has name, income"],
        ),
        (
            &["shops.csv", "stops.csv", "--label=takings", "--keys=lon,lines"],
            &["--keys lines", "shops.csv", "lon, lat"],
        ),
        (&["shops.csv", "stops.csv", "--label=takings", "--out=mine.toml"], &["mine.toml", "exists already"]),
        (
            &["shops.csv", "stops.csv", "--label=takings", "--out=shops.csv"],
            &["shops.csv", "overwrite an input"],
        ),
        (&["shops.csv", "none.csv", "--label=takings"], &["none.csv"]),
        (
            &["people.csv", "register.csv", "--label=code"],
            &["--label code", "60 values in 60 rows, too many for classes"],
        ),
        (
            &["people.csv", "register.csv", "--label=city", "--keys=name,city"],
            &["--keys city", "is the label"],
        ),
    ] {
        let output = fet(folder, &[&["init"], arguments].concat());
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(parts.iter().all(|part| message.contains(part)), "{parts:?} in {message}");
    }
    assert_eq!(fs::read_to_string(folder.join("mine.toml")).expect("kept"), "name = \"mine\"\n");
    assert!(!folder.join("experiment.toml").exists());
}

/// Writes tables, runs `fet init`, and returns the text of the experiment and the messages.
fn init(folder: &Path, tables: &[(&str, &str)], more: &[&str]) -> (String, String) {
    for (name, text) in tables {
        fs::write(folder.join(name), text).expect("written");
    }
    let _ = fs::remove_file(folder.join("e.toml"));
    let names: Vec<&str> = tables.iter().map(|(name, _)| *name).collect();
    let arguments = [&["init"], names.as_slice(), &["--label=y", "--out=e.toml"], more].concat();
    let output = fet(folder, &arguments);
    assert!(output.status.success(), "{output:?}");
    let check = fet(folder, &["data", "check", "e.toml"]);
    assert!(check.status.success(), "{check:?}");
    let text = fs::read_to_string(folder.join("e.toml")).expect("written");
    (text, String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Returns a table with a header and these rows.
fn table(header: &str, rows: usize, row: &dyn Fn(usize) -> String) -> String {
    (0..rows).fold(format!("{header}\n"), |table, at| table + &row(at) + "\n")
}

/// Returns a number from 0 to 1 that looks random.
fn noise(at: usize) -> f64 {
    ((at as f64 * 12.9898).sin() * 43_758.545_3).rem_euclid(1.0)
}

/// Dates and columns with missing cells can be keys.
#[test]
fn accepts_dates_and_texts_with_missing_cells_as_keys() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let days = |column: &str, form: &dyn Fn(usize) -> String| {
        let row = |day: usize| format!("{},{},{}", form(day), day % 3, day * 7 % 11);
        table(&format!("date,of {column},{column}"), 40, &row)
    };
    let iso = |day: usize| format!("2020-{:02}-{:02}", 1 + day / 20, 1 + day % 20);
    let month_first = |day: usize| format!("{:02}/{:02}/2020", 1 + day / 20, 1 + day % 20);
    let times = |column: &str, minute: usize| {
        let row = |row: usize| format!("{}:{minute:02},{},{}", 6 + row % 12, row % 5, row * 7 % 11);
        table(&format!("clock,of {column},{column}"), 40, &row)
    };
    let people = |column: &str| {
        let number = |row: usize| if row == 7 { String::new() } else { row.to_string() };
        let row = |row: usize| format!("ann {row},{},{},{}", number(row), row % 3, ["a", "b"][row % 2]);
        table(&format!("name,nr,of {column},{column}"), 40, &row)
    };
    for (first, second, more, parts) in [
        (
            days("y", &iso),
            days("z", &month_first),
            &[][..],
            &[
                "keys = [\"date\"]",
                "columns = { date = \"date\" }",
                "columns = { date = \"date:%m/%d/%Y\" }",
                "kind = \"nearest\"\nneighbours = 1",
                "column = \"date\"",
            ][..],
        ),
        (days("y", &iso), days("z", &iso), &["--keys=date"], &["key_kind = \"numbers\""]),
        (times("y", 0), times("z", 30), &[], &["columns = { clock = \"time\" }"]),
        (
            days("y", &iso),
            days("z", &|day: usize| format!("day {day}")),
            &[],
            &["keys = [\"date\"]", "key_kind = \"text\"", "kind = \"random\""],
        ),
        (
            people("y"),
            people("z"),
            &[],
            &["keys = [\"name\", \"nr\"]", "key_kind = \"text\"", "kind = \"exact\""],
        ),
    ] {
        let (text, _) = init(folder, &[("a.csv", &first), ("b.csv", &second)], more);
        assert!(parts.iter().all(|part| text.contains(part)), "{parts:?} in {text}");
        // A key that is compared as text does not split by time.
        assert!(!text.contains("key_kind = \"text\"") || !text.contains("kind = \"time\""), "{text}");
        let _ = fs::remove_dir_all(folder.join("run"));
        let run = fet(folder, &["run", "e.toml", "--set=train.epochs=1", "--out=run"]);
        assert!(run.status.success(), "{run:?}\n{text}");
    }
}

#[test]
fn refuses_tables_that_no_run_can_use() {
    let folder = tempfile::tempdir().expect("a folder");
    let days = |column: &str| {
        table(&format!("date,{column}"), 30, &|day| format!("2020-01-{:02},{}", 1 + day, day % 2))
    };
    let few = table("date,y,a", 5, &|day| format!("2020-01-{:02},{},{day}", 1 + day, day % 2));
    let enough = table("date,y,a", 30, &|day| format!("2020-01-{:02},{},{day}", 1 + day, day % 2));
    let without_label = table("date,a", 30, &|day| format!("2020-01-{:02},{day}", 1 + day));
    for (name, text) in [
        ("bare.csv", days("y")),
        ("b.csv", days("z")),
        ("few.csv", few),
        ("copy.csv", enough.clone()),
        // The last rows, in reverse order.
        ("part.csv", {
            let lines: Vec<&str> = enough.lines().collect();
            [&lines[..1], &lines[11..].iter().rev().copied().collect::<Vec<_>>()].concat().join("\n")
        }),
        ("a.csv", enough),
        ("without-label.csv", without_label),
        ("labels.csv", table("y,other", 30, &|day| format!("{},{day}", day % 2))),
    ] {
        fs::write(folder.path().join(name), text).expect("written");
    }
    for (tables, expected) in [
        (["bare.csv", "b.csv"], "bare.csv: needs a column other than the keys and the label (date)"),
        (["few.csv", "b.csv"], "few.csv: each part needs a row, but 5 rows give 0 for validation"),
        (["a.csv", "a.csv"], "a.csv: is named twice"),
        (["a.csv", "./a.csv"], "a.csv: is named twice"),
        (["a.csv", "copy.csv"], "copy.csv: nearly every row is a row of "),
        (["a.csv", "without-label.csv"], "without-label.csv: nearly every row is a row of "),
        (["a.csv", "part.csv"], "part.csv: nearly every row is a row of "),
        (["a.csv", "nosuch.csv"], "nosuch.csv: cannot be read"),
    ] {
        for command in ["init", "worth"] {
            for keys in [&["--keys=date"][..], &[]] {
                let arguments = [&[command, tables[0], tables[1], "--label=y"], keys].concat();
                let output = fet(folder.path(), &arguments);
                let messages = String::from_utf8_lossy(&output.stderr);
                assert!(
                    output.status.code() == Some(2) && messages.contains(expected),
                    "{arguments:?}: {output:?}"
                );
                assert!(!folder.path().join("worth").exists(), "{arguments:?} left a folder");
            }
        }
    }
    let output = fet(folder.path(), &["init", "a.csv", "labels.csv", "--label=y"]);
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(messages.contains("only the label `y` is in all tables, and it cannot be a key"), "{messages}");
    let output = fet(folder.path(), &["init", "a.csv", "b.csv", "--label=y"]);
    assert!(output.status.success(), "{output:?}");
}

/// An identifier with an empty cell is still the key, although another column without empty cells is shared.
#[test]
fn prefers_identifiers_to_other_shared_columns() {
    let folder = tempfile::tempdir().expect("a folder");
    let rows = |last: &str, is_empty: usize| {
        table(&format!("id,age,{last}"), 200, &|row| {
            let id = if row == is_empty { String::new() } else { (7 * row + 100).to_string() };
            format!("{id},{},{}", 20 + row % 50, row * 13 % 29)
        })
    };
    for (empty, kind) in [(3, "text"), (usize::MAX, "numbers")] {
        let (text, _) =
            init(folder.path(), &[("a.csv", &rows("y", empty)), ("b.csv", &rows("z", empty))], &[]);
        for part in [
            "keys = [\"id\"]",
            "kind = \"exact\"\nneighbours = 1",
            "key_inputs = false",
            "age are also shared",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(text.contains(&format!("key_kind = \"{kind}\"")), "{text}");
    }
}

/// Another party has the label under another name, in another order. Few distinct labels show nothing.
#[test]
fn warns_of_the_label_under_another_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let own = table("id,size,y", 200, &|row| format!("{row},{},{}", row % 7, 3 * row));
    let other = table("id,lines,outcome", 200, &|row| format!("{row},{},{}", row % 5, 3 * (199 - row)));
    let (_, said) = init(folder.path(), &[("a.csv", &own), ("b.csv", &other)], &[]);
    assert!(said.contains("b.csv: the column `outcome` has the same values as the label `y`"), "{said}");
    assert!(!said.contains("lines"), "{said}");
    let few = |last: &str| {
        table(&format!("id,{last},size"), 200, &|row| format!("{row},{},{}", row % 40, row * 13 % 29))
    };
    let (_, said) = init(folder.path(), &[("a.csv", &few("y")), ("b.csv", &few("z"))], &[]);
    assert!(!said.contains("same values"), "{said}");
}

#[test]
fn chooses_the_linker_by_the_uniqueness_of_the_keys() {
    let folder = tempfile::tempdir().expect("a folder");
    let places = |header: &str, rows: usize, at: &dyn Fn(usize) -> (f64, f64)| {
        let row = |row: usize| format!("{},{},{},{}", at(row).0, at(row).1, row % 7, row * 13 % 29);
        table(header, rows, &row)
    };
    let own = |row: usize| (noise(row), noise(row + 5_000));
    let copy = |row: usize| (own(row).0 + 0.0002, own(row).1 - 0.0002);
    let other = |row: usize| (noise(row + 20_000), noise(row + 30_000));
    let station = |row: usize| ((row % 10) as f64, (row % 10 * 3 % 10) as f64);
    let ids = |header: &str, id: &dyn Fn(usize) -> usize| {
        table(header, 200, &|row| format!("{},{},{}", id(row), row % 7, row * 13 % 29))
    };
    let text = |header: &str, name: &dyn Fn(usize) -> String| {
        table(header, 200, &|row| format!("{},{},{}", name(row), row % 7, row * 13 % 29))
    };
    let a = "lat,lon,size,y";
    let b = "lat,lon,lines,z";
    for (first, second, parts) in [
        // Copies with a small error, both unique.
        (
            places(a, 300, &own),
            places(b, 300, &copy),
            &[
                "keys = [\"lon\", \"lat\"]",
                "one_to_one = true",
                "neighbours = 5",
                "haversine",
                "grid.width = 8",
            ][..],
        ),
        // Unrelated places: unique, but not mutual.
        (
            places(a, 300, &own),
            places(b, 300, &other),
            &["one_to_one = false", "neighbours = 10", "one to one"],
        ),
        (places(a, 300, &own), places(b, 1_200, &other), &["one_to_one = false", "neighbours = 20"]),
        // Many rows at ten stations, each with one record.
        (places(a, 300, &station), places(b, 10, &station), &["kind = \"nearest\"\nneighbours = 1"]),
        (
            ids("shop id,size,y", &|row| 1_000 + row * 7 % 100),
            ids("shop id,lines,z", &|row| 1_000 + row * 7 % 100),
            &["kind = \"exact\"\nneighbours = 2", "key_kind = \"numbers\""],
        ),
        (
            text("name,size,y", &|row| format!("Ann Smith {row}")),
            text("name,lines,z", &|row| format!("ann smith {row}")),
            &["kind = \"exact\"\nneighbours = 1"],
        ),
        (
            text("name,size,y", &|row| format!("Ann Smith {row}")),
            text("name,lines,z", &|row| format!("An Smit {row}")),
            &["one_to_one = true", "kind = \"clk\"\nneighbours = 5"],
        ),
    ] {
        let (text, _) = init(folder.path(), &[("a.csv", &first), ("b.csv", &second)], &[]);
        assert!(parts.iter().all(|part| text.contains(part)), "{parts:?} in {text}");
    }
}

/// Rows with an empty cell and rows with an identifier that the other party lacks get no record, and the run counts
/// both. Models do not see the identifiers, so identifiers far outside the training range give no warning.
#[test]
fn identifiers_with_empty_cells_only_link_equal_records() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let id = |row: usize, is_empty: bool| if is_empty { String::new() } else { (3 * row + 10).to_string() };
    let row = |row: usize, is_empty: bool| format!("{},{},{}", id(row, is_empty), row % 7, row * 13 % 29);
    let first = table("person id,size,y", 200, &|at| row(at, at % 10 == 0));
    let second = table("person id,lines,z", 200, &|at| row(at, at % 8 == 1));
    let (text, said) = init(folder, &[("a.csv", &first), ("b.csv", &second)], &[]);
    for part in ["[linker]", "kind = \"exact\"\nneighbours = 1", "key_kind = \"text\"", "key_inputs = false"]
    {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains("clk") && !said.contains("have a key that"), "{text}\n{said}");
    let run = fet(folder, &["run", "e.toml", "--set=train.epochs=1", "--out=run"]);
    let said = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(run.status.success(), "{said}");
    // 20 rows have an empty cell, and 25 others an identifier that the other table lacks.
    assert!(said.contains("b: 45 of the primary's 200 records lack a link with it"), "{said}");

    // Marks of missing cells in one table give the same choices.
    let marked = first.replace("\n,", "\nNA,");
    let (text, _) = init(folder, &[("a.csv", &marked), ("b.csv", &second)], &[]);
    assert!(text.contains("kind = \"exact\"\nneighbours = 1\nmissing = [\"NA\"]"), "{text}");
    let _ = fs::remove_dir_all(folder.join("run"));
    let run = fet(folder, &["run", "e.toml", "--set=train.epochs=1", "--out=run"]);
    let said = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(said.contains("b: 45 of the primary's 200 records lack a link with it"), "{said}");
    let full = |header: &str| table(header, 200, &|at| row(at, false));
    let whole = [("a.csv", full("person id,size,y")), ("b.csv", full("person id,lines,z"))];
    let whole = whole.each_ref().map(|(name, text)| (*name, text.as_str()));
    let (text, _) = init(folder, &whole, &[]);
    assert!(text.contains("key_kind = \"numbers\"") && text.contains("key_inputs = false"), "{text}");
    let _ = fs::remove_dir_all(folder.join("run"));
    let run = fet(folder, &["run", "e.toml", "--set=train.epochs=1", "--out=run"]);
    assert!(run.status.success(), "{run:?}");
    let new = table("person id,size", 40, &|at| format!("{},{}", 900_000 + at, at % 7));
    fs::write(folder.join("new.csv"), new).expect("written");
    let warned = || {
        let output = fet(folder, &["predict", "run", "--rows=new.csv", "--out=out.csv"]);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let said = warned();
    assert!(said.contains("40 of 40 rows lack a link") && !said.contains("key column"), "{said}");
    // The control variant sees the identifiers, and both warnings name them.
    let _ = fs::remove_dir_all(folder.join("run"));
    let sets = ["run", "e.toml", "--set=train.epochs=1", "--set=train.key_inputs=true", "--out=run"];
    assert!(fet(folder, &sets).status.success());
    let said = warned();
    assert_eq!(said.matches("key column 1").count(), 2, "{said}");
}

/// Identifiers of two tables that are never equal are written in two ways.
#[test]
fn warns_of_codes_that_are_never_equal() {
    let folder = tempfile::tempdir().expect("a folder");
    let row = |key: String, row: usize| format!("{key},{},{}", row % 7, row * 13 % 29);
    let rows = |header: &str, key: &dyn Fn(usize) -> String| table(header, 100, &|at| row(key(at), at));
    let number = |from: usize| move |at: usize| (from + 7 * at).to_string();
    for (own, theirs, parts) in [
        (
            rows("id,size,y", &number(1)),
            rows("id,lines,z", &number(5_000)),
            &["0 of the primary's 100 rows have a key that `b` has", "`1` in the primary's table and `5000`"]
                [..],
        ),
        (
            rows("code,size,y", &|at| format!("A-{at}")),
            rows("code,lines,z", &|at| format!("a_0{at}")),
            &["0 of the primary's 100 rows", "`A-0` in the primary's table and `a_00` in the other"],
        ),
        // Texts, because a cell is empty: 00001 is then not 1.
        (
            rows("id,size,y", &|at| if at == 9 { String::new() } else { format!("{:05}", 1 + 7 * at) }),
            rows("id,lines,z", &number(1)),
            &["0 of the primary's 100 rows", "`00001` in the primary's table and `1` in the other"],
        ),
        // Names are often written differently, and `clk` compares similar ones.
        (
            rows("name,size,y", &|at| format!("Ann {} Smith", ["Lee", "Doe"][at % 2].repeat(at / 2 + 1))),
            rows("name,lines,z", &|at| format!("Anna {} Smit", ["Lee", "Doe"][at % 2].repeat(at / 2 + 1))),
            &[],
        ),
        (rows("id,size,y", &number(1)), rows("id,lines,z", &number(1)), &[]),
    ] {
        let (_, said) = init(folder.path(), &[("a.csv", &own), ("b.csv", &theirs)], &[]);
        assert!(parts.iter().all(|part| said.contains(part)), "{parts:?} in {said}");
        assert_eq!(said.contains("have a key that `b` has"), !parts.is_empty(), "{said}");
    }
}

#[test]
fn gives_keys_of_other_ranges_an_equal_importance_and_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let rows = |header: &str| {
        let row = |row: usize| {
            format!(
                "{:.3},{:.3},{:.1},{},{}",
                noise(row),
                noise(row + 500),
                row as f64 * 10.0,
                row % 5,
                row * 7 % 31
            )
        };
        table(header, 100, &row)
    };
    let (first, second) = (rows("lat,lon,hours,size,y"), rows("lat,lon,hours,temp,z"));
    let (text, messages) = init(folder.path(), &[("a.csv", &first), ("b.csv", &second)], &[]);
    // The standard deviation of 0, 10, ..., 990 is 10 · √((100² - 1) / 12) = 288.7.
    assert!(text.contains("units = [0.2") && text.contains(", 289.0]"), "{text}");
    assert!(messages.contains("warning: ") && messages.contains("ranges of the keys"), "{messages}");
    let run = fet(folder.path(), &["run", "e.toml", "--set=train.epochs=1", "--out=run"]);
    assert!(run.status.success(), "{run:?}");
}

#[test]
fn chooses_metric_and_split_by_the_label_and_by_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let second = table("k,w,z", 200, &|row| format!("{}.5,{}.5,{}", row % 20, row % 9, row % 5));
    let date = |row: usize| format!("20{:02}-{:02}-{:02}", 10 + row / 20, 1 + row % 12, 1 + row % 28);
    let first = |header: &str, cell: &dyn Fn(usize) -> String, label: &dyn Fn(usize) -> String| {
        let row =
            |row: usize| format!("{}.5,{}.5,{},{},{}", row % 20, row % 9, row % 7, cell(row), label(row));
        table(header, 200, &row)
    };
    let rare = |row: usize| if row % 20 == 3 { "yes".into() } else { "no".to_string() };
    let half = |row: usize| ["no", "yes"][row % 2].to_string();
    let three = |row: usize| {
        ["a", "b", "c"][usize::from(row.is_multiple_of(10)) + usize::from(row.is_multiple_of(20))].to_string()
    };
    let late = |row: usize| if row < 180 { "no".into() } else { "yes".to_string() };
    let number = |row: usize| (row * 7 % 31).to_string();
    let year = |row: usize| (2000 + row / 10).to_string();
    let two_years = |row: usize| (2000 + row / 100).to_string();
    let patient = |row: usize| format!("p{}", row % 50);
    for (first, parts, message) in [
        (
            first("k,w,size,seen,y", &date, &rare),
            &[
                "metric = \"auc-roc\"",
                "`yes` has 5.0 % of the rows",
                "kind = \"time\"\ncolumn = \"seen\"",
                "140 training",
            ][..],
            "about 2 rows of `yes`",
        ),
        (
            first("k,w,size,birth date,y", &date, &half),
            &["metric = \"accuracy\"", "kind = \"stratified\""],
            "",
        ),
        (
            first("k,w,size,year,y", &year, &three),
            &["metric = \"balanced-accuracy\"", "class_weights = \"balanced\"", "column = \"year\""],
            "",
        ),
        (first("k,w,size,Yr Sold,y", &year, &number), &["metric = \"rmse\"", "column = \"Yr Sold\""], ""),
        (first("k,w,size,year,y", &two_years, &number), &["# Not by time", "kind = \"random\""], ""),
        // All rows of one class are the latest.
        (first("k,w,size,seen,y", &date, &late), &["# Not by time", "kind = \"stratified\""], ""),
        (
            first("k,w,size,patient id,y", &patient, &number),
            &["kind = \"random\"", "`patient id` repeats: 50 values in 200 rows"],
            "split.kind = \"group\"",
        ),
    ] {
        let (text, messages) = init(folder.path(), &[("a.csv", &first), ("b.csv", &second)], &[]);
        assert!(parts.iter().all(|part| text.contains(part)), "{parts:?} in {text}");
        assert!(messages.contains(message), "{message} in {messages}");
    }
}

/// The study in the file runs, with all of its methods, and reports the contribution of the other parties.
#[test]
fn writes_a_study_that_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let row = |row: usize| {
        let (lon, lat) = (noise(row), noise(row + 700));
        format!(
            "{lon:.4},{lat:.4},{},{}",
            row % 7,
            ["a", "b", "c"][usize::from(row.is_multiple_of(4)) + usize::from(row.is_multiple_of(8))]
        )
    };
    let (first, second) = (table("lon,lat,size,y", 160, &row), table("lon,lat,lines,kind", 150, &row));
    let (text, _) = init(folder, &[("a.csv", &first), ("b.csv", &second)], &[]);
    assert!(text.contains("class_weights = \"balanced\""), "{text}");
    let study = fet(folder, &["study", "e.toml", "--quick", "--out=studies"]);
    assert!(study.status.success(), "{study:?}\n{text}");
    let named =
        fs::read_dir(folder.join("studies")).expect("results").next().expect("a study").expect("readable");
    let report = fs::read_to_string(named.path().join("table.md")).expect("a table");
    for part in ["boosted trees, alone", "linear, alone", "FeT-Pool with trees", "FeT alone"] {
        assert!(report.contains(part), "{part} in {report}");
    }
}
