//! Input of linking: the keys and ids of both tables, and the linker, which may depend on the keys.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use fet_core::data::{Comparison, KeyKind, Keys};
use fet_core::linker::Linker;
use fet_core::registry::Slot;
use fet_data::{read_equal_keys, read_keys, read_texts};
use fet_linkers::latitude_first;

use super::arguments::LinkArguments;
use fet_io::input::input;

/// Returns the names of the key columns in the primary and in the secondary.
pub(super) fn names(arguments: &LinkArguments) -> [&[String]; 2] {
    let others =
        if arguments.secondary_keys.is_empty() { &arguments.keys } else { &arguments.secondary_keys };
    [&arguments.keys, others]
}

/// Returns the linker's settings and the keys of both tables.
pub(super) fn prepare(arguments: &LinkArguments) -> anyhow::Result<(Slot<dyn Linker>, Keys, Keys)> {
    let [names, others] = names(arguments);
    if names.len() != others.len() {
        let problem =
            format!("must name as many columns as --keys ({}); it names {}", names.len(), others.len());
        return Err(input(format!("--secondary-keys: {problem}")));
    }
    // A linker of equal keys that is not told how to read them reads no code as a number.
    let one = |path: &Path, names: &[String], kind, equality| -> anyhow::Result<Keys> {
        let read = match (kind, equality) {
            (KeyKind::Either, true) => read_equal_keys(path, names),
            _ => read_keys(path, names, kind),
        };
        let (keys, notes) = read.map_err(input)?;
        notes.iter().for_each(|note| fet_io::note!("note: {note}"));
        Ok(keys)
    };
    let both = |kind, equality| -> anyhow::Result<(Keys, Keys)> {
        let primary = one(&arguments.primary, names, kind, equality)?;
        Ok((primary, one(&arguments.secondary, others, kind, equality)?))
    };
    let asked = match (arguments.text, arguments.numbers) {
        (true, _) => Some(KeyKind::Text),
        (_, true) => Some(KeyKind::Numbers),
        _ => None,
    };
    if let Some(kind) = &arguments.linker {
        let slot = slot(arguments, kind)?;
        check_order(arguments, &slot)?;
        let about = slot.build(&()).map_err(input)?.about();
        let (primary, secondary) = both(asked.unwrap_or(about.takes), about.equality)?;
        if about.equality && arguments.numbers {
            warn_of_merged(&arguments.primary, names)?;
            warn_of_merged(&arguments.secondary, others)?;
        }
        if primary.kind_name() == secondary.kind_name() {
            let primary = if about.equality && arguments.text { no_numbers(primary) } else { primary };
            return Ok((slot, primary, secondary));
        }
        // If a key of one side is not a number, both sides' keys are text.
        let (primary, secondary) = both(KeyKind::Text, about.equality)?;
        return Ok((slot, primary, secondary));
    }
    // The keys choose the linker: they must be of one kind, and no wrong cell may decide it.
    let (primary, secondary) = both(asked.unwrap_or(KeyKind::Either), false)?;
    if asked.is_none() {
        for (keys, file, names) in
            [(&primary, &arguments.primary, names), (&secondary, &arguments.secondary, others)]
        {
            refuse_stray_cell(keys, file, names)?;
        }
    }
    if primary.kind_name() != secondary.kind_name() {
        return Err(input(format!(
            "--keys: {} of {} are {}, {} of {} are {}; name columns of one kind, or compare both as text (--text)",
            names.join(", "),
            arguments.primary.display(),
            primary.kind_name(),
            others.join(", "),
            arguments.secondary.display(),
            secondary.kind_name()
        )));
    }
    let kind = if primary.numbers().is_some() { "nearest" } else { "clk" };
    let slot = slot(arguments, kind)?;
    check_order(arguments, &slot)?;
    Ok((slot, primary, secondary))
}

/// Refuses keys that name the latitude first where distances are along the sphere.
fn check_order(arguments: &LinkArguments, slot: &Slot<dyn Linker>) -> anyhow::Result<()> {
    let named = [("--keys", &arguments.keys), ("--secondary-keys", &arguments.secondary_keys)];
    for (argument, keys) in named {
        if let Some(problem) = latitude_first(&slot.settings(), keys) {
            return Err(input(format!("{argument}: {problem}")));
        }
    }
    Ok(())
}

/// Returns the same keys, compared as text in every column.
fn no_numbers(keys: Keys) -> Keys {
    let Keys::Text(table) = keys else { return keys };
    let mut forms = table.forms();
    for form in forms.iter_mut().filter(|form| form.comparison == Comparison::Numbers) {
        form.comparison = Comparison::Verbatim;
    }
    Keys::Text(table.with_forms(forms))
}

/// Warns of different cells that are one number where keys are read as numbers.
fn warn_of_merged(path: &Path, names: &[String]) -> anyhow::Result<()> {
    let cells = read_texts(path, names).map_err(input)?;
    for column in 0..names.len() {
        let mut spellings: BTreeMap<u64, BTreeSet<&str>> = BTreeMap::new();
        for cell in cells.iter().skip(column).step_by(names.len()) {
            if let Ok(number) = cell.parse::<f64>() {
                spellings.entry((number + 0.0).to_bits()).or_default().insert(cell);
            }
        }
        spellings.retain(|_, cells| cells.len() > 1);
        if let Some(first) = spellings.values().min() {
            let example: Vec<String> = first.iter().take(2).map(|cell| format!("{cell:?}")).collect();
            fet_io::note!(
                "warning: {}, column `{}`: {} different cells equal another one, for example {}: they are read as numbers. Leave out \
                 --numbers if they are codes",
                path.display(),
                names[column],
                spellings.values().map(BTreeSet::len).sum::<usize>(),
                example.join(" and ")
            );
        }
    }
    Ok(())
}

/// Refuses text keys if every key column contains mostly numbers, because a single wrong cell must not choose
/// the linker.
fn refuse_stray_cell(keys: &Keys, file: &Path, names: &[String]) -> anyhow::Result<()> {
    let Some(table) = keys.text() else { return Ok(()) };
    let is_number = |cell: &&str| cell.trim().parse::<f64>().is_ok_and(f64::is_finite);
    let column = |at: usize| table.cells().into_iter().skip(at).step_by(names.len());
    let mostly = |at: usize| 2 * column(at).filter(is_number).count() > column(at).count();
    if !(0..names.len()).all(mostly) {
        return Ok(());
    }
    for (at, name) in names.iter().enumerate() {
        if let Some((row, cell)) = column(at).enumerate().find(|(_, cell)| !is_number(cell)) {
            return Err(input(format!(
                "{} row {row} (from 0) column `{name}`: must be a number, as most cells of the column are; it is \
                 {cell:?} (correct it, or compare as text with --text)",
                file.display()
            )));
        }
    }
    Ok(())
}

fn slot(arguments: &LinkArguments, kind: &str) -> anyhow::Result<Slot<dyn Linker>> {
    let mut table = toml::Table::new();
    for assignment in &arguments.sets {
        let assignment = match assignment.split_once('=') {
            Some((name, value)) if name.trim() == "k" => format!("neighbours={value}"),
            _ => assignment.clone(),
        };
        fet_core::changes::set(&mut table, &assignment).map_err(|error| input(format!("--set {error}")))?;
    }
    if table.contains_key("kind") {
        return Err(input("--set kind: name the linker with --linker"));
    }
    table.insert("kind".into(), kind.into());
    Slot::from_table(table).map_err(|error| input(format!("--linker {kind}: {error}")))
}

/// Reads the ids of both tables if their columns are given.
pub(super) fn ids(arguments: &LinkArguments) -> anyhow::Result<Option<[Vec<String>; 2]>> {
    let read = |path: &Path, column: &String| -> anyhow::Result<Vec<String>> {
        read_texts(path, std::slice::from_ref(column)).map_err(input)
    };
    match arguments.id.as_slice() {
        [] => Ok(None),
        [both] => Ok(Some([read(&arguments.primary, both)?, read(&arguments.secondary, both)?])),
        [first, second] => Ok(Some([read(&arguments.primary, first)?, read(&arguments.secondary, second)?])),
        more => Err(input(format!("--id: must name one column or two; it names {}", more.len()))),
    }
}
