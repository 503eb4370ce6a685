//! Which columns of a file are read, for all formats.

use crate::date;
use crate::error::{TableError, did_you_mean};
use crate::options::{Kind, Options};

/// The places of the columns to read, in the order of `Options::columns` or of the file.
pub(crate) fn wanted(names: &[String], file: &str, options: &Options) -> Result<Vec<usize>, TableError> {
    let place = |name: &String, setting: &str| {
        names.iter().position(|known| known == name).ok_or_else(|| {
            let hint = did_you_mean(name, names.iter().map(String::as_str));
            TableError::file(file, format!("has no column `{name}`, which `{setting}` names{hint}"))
        })
    };
    for (name, kind) in &options.kinds {
        let Some(_) = names.iter().find(|known| *known == name) else {
            let hint = did_you_mean(name, names.iter().map(String::as_str));
            let problem = format!("has no column `{name}`, though its kind is given{hint}");
            return Err(TableError::file(file, problem));
        };
        if let Kind::Date { format: Some(format) } = kind
            && !date::is_format(format)
        {
            let problem = format!("its kind `{kind}` has no form of dates (such as date:%d/%m/%Y)");
            return Err(TableError::column(file, name, problem));
        }
    }
    let dropped = options.drop.iter().map(|name| place(name, "drop")).collect::<Result<Vec<_>, _>>()?;
    let mut chosen = match &options.columns {
        None => (0..names.len()).collect(),
        Some(columns) => columns.iter().map(|name| place(name, "columns")).collect::<Result<Vec<_>, _>>()?,
    };
    chosen.retain(|at| !dropped.contains(at));
    for (index, at) in chosen.iter().enumerate() {
        if chosen[..index].contains(at) {
            let problem = "stands twice in `columns`; name it once";
            return Err(TableError::column(file, &names[*at], problem));
        }
    }
    if chosen.is_empty() {
        return Err(TableError::file(file, "has no column left to read (see `columns` and `drop`)"));
    }
    Ok(chosen)
}

/// Refuses columns without any value.
pub(crate) fn nothing_but_missing<'a>(
    file: &str,
    mut empty: impl Iterator<Item = &'a str>,
) -> Result<(), TableError> {
    let Some(first) = empty.next() else { return Ok(()) };
    let others: Vec<&str> = empty.collect();
    let more = match others.as_slice() {
        [] => String::new(),
        others => format!("; so has {}", others.join(", ")),
    };
    let problem = format!("has only missing cells (name it in `drop`, or see `missing`){more}");
    Err(TableError::column(file, first, problem))
}
