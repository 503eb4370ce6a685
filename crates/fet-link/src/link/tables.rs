//! Input of linking: the keys and ids of both tables, and the linker, which may depend on the keys.

use std::path::Path;

use fet_core::data::{KeyKind, Keys};
use fet_core::linker::Linker;
use fet_core::registry::Slot;
use fet_data::{read_keys, read_texts};

use super::Arguments;
use fet_io::input::input;

/// Returns the names of the key columns in the primary and in the secondary.
pub(super) fn names(arguments: &Arguments) -> [&[String]; 2] {
    let others =
        if arguments.secondary_keys.is_empty() { &arguments.keys } else { &arguments.secondary_keys };
    [&arguments.keys, others]
}

/// Returns the linker's settings and the keys of both tables.
pub(super) fn prepare(arguments: &Arguments) -> anyhow::Result<(Slot<dyn Linker>, Keys, Keys)> {
    let [names, others] = names(arguments);
    if names.len() != others.len() {
        let problem =
            format!("must name as many columns as --keys ({}); it names {}", names.len(), others.len());
        return Err(input(format!("--secondary-keys: {problem}")));
    }
    let one = |path: &Path, names: &[String], kind| -> anyhow::Result<Keys> {
        let (keys, notes) = read_keys(path, names, kind).map_err(input)?;
        notes.iter().for_each(|note| fet_io::note!("note: {note}"));
        Ok(keys)
    };
    let both = |kind| -> anyhow::Result<(Keys, Keys)> {
        Ok((one(&arguments.primary, names, kind)?, one(&arguments.secondary, others, kind)?))
    };
    let asked = match (arguments.text, arguments.numbers) {
        (true, _) => Some(KeyKind::Text),
        (_, true) => Some(KeyKind::Numbers),
        _ => None,
    };
    if let Some(kind) = &arguments.linker {
        let slot = slot(arguments, kind)?;
        let takes = asked.unwrap_or(slot.build(&()).map_err(input)?.about().takes);
        let (primary, secondary) = both(takes)?;
        if primary.kind_name() == secondary.kind_name() {
            return Ok((slot, primary, secondary));
        }
        // If a key of one table is not a number, the keys of both tables are text.
        let (primary, secondary) = both(KeyKind::Text)?;
        return Ok((slot, primary, secondary));
    }
    // The keys choose the linker: they must be of one kind, and a single wrong cell must not decide the
    // choice.
    let (primary, secondary) = both(asked.unwrap_or(KeyKind::Either))?;
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
    Ok((slot(arguments, kind)?, primary, secondary))
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

fn slot(arguments: &Arguments, kind: &str) -> anyhow::Result<Slot<dyn Linker>> {
    let mut table = toml::Table::new();
    for assignment in &arguments.sets {
        let assignment = match assignment.split_once('=') {
            Some((name, value)) if name.trim() == "k" => format!("neighbours={value}"),
            _ => assignment.clone(),
        };
        fet_core::experiment::set(&mut table, &assignment)
            .map_err(|error| input(format!("--set {error}")))?;
    }
    if table.contains_key("kind") {
        return Err(input("--set kind: name the linker with --linker"));
    }
    table.insert("kind".into(), kind.into());
    Slot::from_table(table).map_err(|error| input(format!("--linker {kind}: {error}")))
}

/// Reads the ids of both tables if their columns are given.
pub(super) fn ids(arguments: &Arguments) -> anyhow::Result<Option<[Vec<String>; 2]>> {
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
