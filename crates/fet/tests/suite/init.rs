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
            ["task = \"regression\"", "keys = [\"lon\", \"lat\"]", "drop = [\"empty\"]"],
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
            ["task = \"multiclass\"", "key_kind = \"text\"", "kind = \"clk\""],
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

/// Dates and columns with missing cells can be keys.
#[test]
fn accepts_dates_and_texts_with_missing_cells_as_keys() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let days = |column: &str| -> String {
        format!("date,of {column},{column}\n")
            + &(1..=40)
                .map(|day| {
                    format!("2020-{:02}-{:02},{},{}\n", 1 + day / 20, 1 + day % 20, day % 3, day * 7 % 11)
                })
                .collect::<String>()
    };
    let people = |column: &str| -> String {
        let row = |row: usize| {
            format!(
                "ann {row},{},{},{}\n",
                if row == 7 { String::new() } else { row.to_string() },
                row % 3,
                ["a", "b"][row % 2]
            )
        };
        format!("name,nr,of {column},{column}\n") + &(0..40).map(row).collect::<String>()
    };
    for (name, text) in
        [("m1.csv", days("y")), ("m2.csv", days("z")), ("m3.csv", people("y")), ("m4.csv", people("z"))]
    {
        fs::write(folder.join(name), text).expect("written");
    }
    for (tables, more, parts) in [
        (["m1.csv", "m2.csv"], &[][..], &["keys = [\"date\"]", "dates = [1]", "near = [30.0]"][..]),
        (["m1.csv", "m2.csv"], &["--keys=date"], &["dates = [1]"]),
        (["m3.csv", "m4.csv"], &[], &["keys = [\"name\", \"nr\"]", "key_kind = \"text\""]),
    ] {
        let _ = fs::remove_file(folder.join("e.toml"));
        let output =
            fet(folder, &[&["init", tables[0], tables[1], "--label=y", "--out=e.toml"], more].concat());
        assert!(output.status.success(), "{output:?}");
        let text = fs::read_to_string(folder.join("e.toml")).expect("written");
        assert!(parts.iter().all(|part| text.contains(part)), "{parts:?} in {text}");
        let check = fet(folder, &["data", "check", "e.toml"]);
        assert!(check.status.success(), "{check:?}\n{text}");
    }
}
