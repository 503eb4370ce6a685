//! Tests of the table of defences: its fields, and the notes on missing figures.

use super::super::super::defences::tests::{GIVEN, GRID, Given, look_without, with_alone};
use super::super::html;
use super::*;

/// Returns the columns of the table, the notes and the caption for a study without the results of the
/// cells in `missing`.
fn written(
    grid: &str,
    given: &[Given<'_>],
    missing: &[(usize, u64)],
) -> (Vec<Vec<String>>, Vec<String>, String) {
    let mut found = None;
    look_without(grid, given, missing, |summary| {
        let defences = summary.defences.as_ref().expect("attacked");
        let table = table(summary, defences);
        let column = |index: usize| {
            let fields = table.rows.iter().map(|row| row.fields[index].clone());
            std::iter::once(table.header[index].clone()).chain(fields).collect()
        };
        let columns = (0..table.header.len()).map(column).collect();
        found = Some((columns, notes(defences), caption(summary, defences)));
    });
    found.expect("looked at")
}

/// Returns the fields of the column with this title.
fn column<'a>(columns: &'a [Vec<String>], title: &str) -> &'a [String] {
    let column = columns.iter().find(|column| column[0] == title);
    &column.unwrap_or_else(|| panic!("{title} is not in {columns:?}"))[1..]
}

#[test]
fn shows_numbers_of_seeds_that_differ() {
    let (columns, notes, _) = written(GRID, &GIVEN, &[]);
    assert_eq!(column(&columns, "leakage: cosine"), ["0.300 ± 0.141", "0.350 ± 0.354"]);
    assert_eq!(column(&columns, "C-DCS"), ["0.764 ± 0.006", "0.871 ± 0.036"]);
    assert_eq!(notes, Vec::<String>::new());

    let (columns, notes, _) = written(GRID, &GIVEN, &[(1, 1), (4, 1)]);
    assert_eq!(column(&columns, "test accuracy, %"), ["85.00 ± 7.07 (n = 2)", "81.00 ± 1.41 (n = 2)"]);
    assert_eq!(column(&columns, "leakage: cosine"), ["0.200 (n = 1)", "0.600 (n = 1)"]);
    assert_eq!(column(&columns, "leakage: norm"), ["0.700 ± 0.141 (n = 2)", "0.100 ± 0.141 (n = 2)"]);
    assert_eq!(column(&columns, "T-DCS labels"), ["0.757 (n = 1)", "0.781 (n = 1)"]);
    assert_eq!(column(&columns, "T-DCS features")[1], "0.867 ± 0.059 (n = 2)");
    assert_eq!(column(&columns, "C-DCS"), ["—", "—"]);
    assert_eq!(
        notes,
        [
            "n: number of seeds of a figure, which differs between figures.",
            "No C-DCS for none, noise: attacks do not all have the same seeds (cosine lacks seed 1)."
        ]
    );
}

#[test]
fn names_the_missing_seeds_of_each_defence() {
    let (columns, notes, _) = written(GRID, &GIVEN, &[(0, 0), (4, 0), (4, 1)]);
    assert_eq!(column(&columns, "leakage: cosine")[1], "—");
    assert_eq!(column(&columns, "C-DCS"), ["—", "—"]);
    assert_eq!(
        notes[1..],
        [
            "No C-DCS for none: attacks do not all have the same seeds (norm lacks seed 0).",
            "No C-DCS for noise: attacks do not all have the same seeds (cosine lacks seeds 0, 1)."
        ]
    );
}

#[test]
fn names_attacks_without_success() {
    let mut given = GIVEN;
    given[2].3 = [0.04, 0.0];
    let (columns, notes, _) = written(GRID, &given, &[]);
    assert_eq!(column(&columns, "T-DCS features"), ["—", "—"]);
    assert_eq!(column(&columns, "C-DCS"), column(&columns, "T-DCS labels"));
    assert_eq!(column(&columns, "leakage: reconstruction")[1], "0.200 ± 0.141");
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].starts_with("Left out of T-DCS and C-DCS: reconstruction."), "{notes:?}");
    assert!(notes[0].contains("at most 0.05"), "{notes:?}");
}

#[test]
fn explains_the_scale() {
    let (_, _, caption) = written(GRID, &GIVEN, &[]);
    // The values are 1 / (1 + √0.5) and 1 / (1 + 1).
    assert!(caption.contains("a leakage of 1 without loss of utility scores 0.586, and the least is 0.500"));
}

#[test]
fn unattacked_run_has_dashes() {
    let (grid, given) = with_alone();
    let (columns, notes, _) = written(&grid, &given, &[]);
    assert_eq!(column(&columns, "test accuracy, %")[2], "65.00 ± 7.07");
    let attacked = columns.iter().filter(|column| column[0].contains("leakage") || column[0].contains("DCS"));
    let alone: Vec<&str> = attacked.map(|column| column[3].as_str()).collect();
    assert_eq!(alone, ["—"; 6]);
    assert_eq!(notes, ["Not attacked: alone."]);
    look_without(&grid, &given, &[], |summary| {
        let file = super::super::figures::leakage_file(summary, summary.defences.as_ref().expect("attacked"));
        let file = file.expect("a metric");
        assert!(file.contains("noise") && !file.contains("alone"), "it is nowhere in the picture: {file}");
    });
    // A defence without any result gets no note, because its attack may still run.
    let (_, notes, _) = written(&grid, &given, &[(6, 0), (6, 1)]);
    assert_eq!(notes, Vec::<String>::new());
}

#[test]
fn page_and_json_agree() {
    let mut given = GIVEN;
    given[2].3 = [0.0, 0.0];
    look_without(GRID, &given, &[(4, 1)], |summary| {
        let defences = summary.defences.as_ref().expect("attacked");
        let notes = notes(defences);
        assert_eq!(notes.len(), 3, "{notes:?}");
        let main = ReportTable::new(summary);
        let page = html::text(summary, &main, [None, None, Some(&table(summary, defences))]).expect("a page");
        let (before, after) = page.split_once("0.600 (n = 1)").expect("the table");
        for note in &notes {
            assert!(after.contains(&format!("<p>{note}</p>")) && !before.contains(note), "{note}: {page}");
        }
        let value = json(summary, defences);
        assert_eq!((&value["notes"], &value["score"]["nothing"]), (&json!(notes), &json!(0.05)));
        assert_eq!(
            (&value["attacks"][1]["counts"], &value["attacks"][2]["counts"]),
            (&json!(true), &json!(false))
        );
        let noise = &value["defences"][1];
        assert_eq!((&noise["lacking_seeds"], &noise["c_dcs"]), (&json!({"cosine": [1]}), &Value::Null));
        assert_eq!(
            (&noise["attacks"]["cosine"]["dcs"]["n"], &noise["attacks"]["norm"]["dcs"]["n"]),
            (&json!(1), &json!(2))
        );
    });
}
