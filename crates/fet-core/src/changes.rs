//! Changes to an experiment's table before it is read: `--set` assignments, and overlays of one table on
//! another.

use crate::registry::SettingsError;

/// Applies the assignments to `table` in order, as [`set`] does. Returns a sentence for each assignment that drops the
/// value of an earlier one: a new `kind`, or a whole table.
pub fn set_all<S: AsRef<str>>(
    table: &mut toml::Table,
    assignments: &[S],
) -> Result<Vec<String>, SettingsError> {
    let path = |assignment: &S| {
        assignment.as_ref().split_once('=').map(|(path, _)| path.trim().to_string()).unwrap_or_default()
    };
    let mut dropped = Vec::new();
    for (place, assignment) in assignments.iter().enumerate() {
        let before = table.clone();
        set(table, assignment.as_ref())?;
        let field = path(assignment);
        for earlier in assignments[..place].iter().map(path).filter(|earlier| *earlier != field) {
            let value = at(&before, &earlier);
            if value.is_some() && value != at(table, &earlier) {
                dropped.push(format!(
                    "`--set {field}=...` drops the earlier `--set {earlier}=...`; put `{earlier}` after it"
                ));
            }
        }
    }
    Ok(dropped)
}

/// Returns the value at a path such as `method.kind`.
fn at<'a>(table: &'a toml::Table, path: &str) -> Option<&'a toml::Value> {
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    let value = table.get(first)?;
    rest.map_or(Some(value), |rest| at(value.as_table()?, rest))
}

/// Applies `--set path=value` to `table`. A value is TOML if it parses as TOML, otherwise a string. A new
/// `kind` for a slot drops the slot's other settings, which belong to the old kind. A new method also drops
/// encoder and aggregator, which were chosen for the old method.
pub fn set(table: &mut toml::Table, assignment: &str) -> Result<(), SettingsError> {
    let shown: String = assignment.escape_debug().take(80).collect();
    let bad = |message: String| SettingsError::Field { field: shown.clone(), message };
    if assignment.contains(|c: char| c.is_control() && c != '\t') {
        return Err(bad("must be one line without control characters".into()));
    }
    let (path, text) =
        assignment.split_once('=').ok_or_else(|| bad("must have the form path=value".into()))?;
    let (path, text) = (path.trim(), text.trim());
    let value = toml::from_str::<toml::Table>(&format!("value = {text}"))
        .ok()
        .and_then(|mut parsed| parsed.remove("value"))
        .unwrap_or_else(|| toml::Value::String(text.to_string()));
    let names: Vec<&str> = path.split('.').collect();
    let [tables @ .., field] = names.as_slice() else { return Err(bad("must name a field".into())) };
    if names.iter().any(|name| name.is_empty()) {
        return Err(bad("has an empty name in its path".into()));
    }
    let mut changed_method = false;
    let mut place = &mut *table;
    for name in tables {
        let entry = place.entry(name.to_string()).or_insert_with(|| toml::Table::new().into());
        place = entry.as_table_mut().ok_or_else(|| bad(format!("`{name}` is not a table")))?;
    }
    if *field == "kind" && place.get("kind").is_some_and(|kind| *kind != value) {
        place.clear();
        changed_method = names == ["method", "kind"];
    }
    place.insert(field.to_string(), value);
    if changed_method {
        table.remove("encoder");
        table.remove("aggregator");
    }
    Ok(())
}

/// Merges `changes` into `base`, table by table. As with [`set`], a new `kind` replaces a slot's whole table, and a new
/// method drops the encoder and the aggregator of the base.
pub fn overlay(base: &mut toml::Table, changes: toml::Table) {
    let kind = |table: &toml::Table, slot: &str| table.get(slot).and_then(|slot| slot.get("kind")).cloned();
    if kind(&changes, "method").is_some_and(|method| kind(base, "method") != Some(method)) {
        base.remove("encoder");
        base.remove("aggregator");
    }
    for (name, value) in changes {
        let other_kind = |old: &toml::Table, new: &toml::Table| {
            new.get("kind").is_some_and(|kind| old.get("kind") != Some(kind))
        };
        match (base.get_mut(&name), value) {
            (Some(toml::Value::Table(old)), toml::Value::Table(new)) if !other_kind(old, &new) => {
                overlay(old, new);
            }
            (_, value) => {
                base.insert(name, value);
            }
        }
    }
}

/// Returns the place and the reason of a TOML syntax error.
pub fn syntax(error: &toml::de::Error) -> String {
    let text = error.to_string();
    let text = match text.split_once("invalid type: integer") {
        Some((place, _)) => format!("{place}a whole number must lie between -2^63 and 2^63 - 1"),
        None => text.trim_end().to_string(),
    };
    // The message quotes the line only if it has a readable length and does not contain a key that was passed by mistake.
    let key = fet_io::holds_key(&text);
    match (text.lines().next(), text.lines().last()) {
        (Some(place), Some(reason)) if text.len() > 600 || key => format!("{place}: {reason}"),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_toml_is_told_in_words() {
        let told = |text: &str| syntax(&text.parse::<toml::Table>().expect_err("no TOML"));
        assert!(
            told("a = 99999999999999999999").ends_with("a whole number must lie between -2^63 and 2^63 - 1")
        );
        let long = told(&format!("a = \"{}", "x".repeat(5_000)));
        assert!(long.len() < 200 && long.contains("line 1, column 5006: "), "{long}");
    }

    #[test]
    fn assignments_change_tables() {
        let check = |assignments: &[&str], expected: &str| {
            let mut table: toml::Table = toml::from_str("[method]\nkind = 'fet'\nhidden = 8").expect("TOML");
            for assignment in assignments {
                set(&mut table, assignment).expect("a good assignment");
            }
            assert_eq!(table, toml::from_str(expected).expect("TOML"), "{assignments:?}");
        };
        check(&["method.hidden=16"], "[method]\nkind = 'fet'\nhidden = 16");
        check(&["method.kind=fet"], "[method]\nkind = 'fet'\nhidden = 8");
        check(&["method.kind=solo"], "[method]\nkind = 'solo'");
        check(&["method.kind=solo", "method.hidden=[4]"], "[method]\nkind = 'solo'\nhidden = [4]");
        check(&["a.b.c=text"], "a.b.c = 'text'\n[method]\nkind = 'fet'\nhidden = 8");
        check(&["encoder.blocks=2", "method.kind=solo"], "[method]\nkind = 'solo'");
        check(&["method.kind=solo", "encoder.blocks=2"], "[method]\nkind = 'solo'\n[encoder]\nblocks = 2");
        check(&["a = 1e-3"], "a = 1e-3\n[method]\nkind = 'fet'\nhidden = 8");
    }

    /// A kind, or a table, after another setting of its slot drops that setting; so does a method after an encoder.
    #[test]
    fn names_the_assignments_that_later_ones_drop() {
        let apply = |assignments: &[&str]| {
            let mut table: toml::Table = toml::from_str("[method]\nkind = 'fet'\nhidden = 8").expect("TOML");
            set_all(&mut table, assignments).expect("well-formed")
        };
        for (assignments, lost) in [
            (&["seed=1", "method.hidden=9", "method.kind=solo"][..], "method.hidden"),
            (&["method.inner.share=1", "method.kind=with-trees"], "method.inner.share"),
            (&["method.hidden=9", "method={kind='fet'}"], "method.hidden"),
            (&["encoder.blocks=2", "method.kind=solo"], "encoder.blocks"),
        ] {
            let found = apply(assignments);
            assert!(
                found.len() == 1 && found[0].contains(&format!("the earlier `--set {lost}=")),
                "{found:?}"
            );
        }
        for assignments in [
            &["method.hidden=9", "method.kind=fet"][..],
            &["methods.hidden=9", "method.kind=solo"],
            &["method.kind=solo", "method.hidden=9", "encoder.blocks=2"],
            &["method.hidden=9", "method.hidden=10"],
        ] {
            assert_eq!(apply(assignments), Vec::<String>::new(), "{assignments:?}");
        }
    }

    #[test]
    fn overlays_change_what_they_name() {
        let base =
            "a = 1\n[method]\nkind = 'fet'\nhidden = 8\n[encoder]\nblocks = 3\n[data]\nx = { p = 1, q = 2 }";
        let check = |changes: &str, expected: &str| {
            let mut table: toml::Table = toml::from_str(base).expect("TOML");
            overlay(&mut table, toml::from_str(changes).expect("TOML"));
            assert_eq!(table, toml::from_str(expected).expect("TOML"), "{changes}");
        };
        check("", base);
        let method = "[method]\nkind = 'fet'\nhidden = 8\n[encoder]\nblocks = 3\n";
        check("[data]\nx = { q = 3 }", &format!("a = 1\n{method}[data]\nx = {{ p = 1, q = 3 }}"));
        check("a = 2\n[method]\nhidden = 9", &base.replace("a = 1", "a = 2").replace('8', "9"));
        check("[method]\nkind = 'solo'", "a = 1\n[method]\nkind = 'solo'\n[data]\nx = { p = 1, q = 2 }");
        check("[data]\nkind = 'csv'", &format!("a = 1\n{method}[data]\nkind = 'csv'"));
    }

    #[test]
    fn assignments_that_make_no_sense_are_refused() {
        for assignment in ["method", "=1", "method..x=1", "method.hidden.x=1"] {
            let mut table: toml::Table = toml::from_str("[method]\nhidden = 8").expect("TOML");
            let error = set(&mut table, assignment).expect_err("refused").to_string();
            assert!(error.contains(assignment), "{error}");
        }
    }
}
