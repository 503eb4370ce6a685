//! Selects the columns of a file to read, for all formats.

use fet_io::did_you_mean;

use crate::date;
use crate::error::{TableError, shortened};
use crate::options::{Kind, Options};

/// Returns the indices of the columns to read, in the order of `Options::columns` or of the file.
pub(crate) fn wanted(names: &[String], file: &str, options: &Options) -> Result<Vec<usize>, TableError> {
    let place = |name: &String, setting: Option<&str>| {
        names.iter().position(|known| known == name).ok_or_else(|| {
            let hint = hint(name, names);
            let named = setting.map_or(String::new(), |setting| format!(", named in `{setting}`"));
            TableError::file(file, format!("lacks the column `{name}`{named}{hint}"))
        })
    };
    names.iter().try_for_each(|name| check_name(name)).map_err(|problem| TableError::file(file, problem))?;
    for (name, kind) in &options.kinds {
        let Some(_) = names.iter().find(|known| *known == name) else {
            let hint = hint(name, names);
            let problem = format!("lacks the column `{name}`, which is required{hint}");
            return Err(TableError::file(file, problem));
        };
        if let Kind::Date { format: Some(format) } = kind
            && !date::is_format(format)
        {
            let problem = format!("its kind `{kind}` needs a date format, such as date:%d/%m/%Y");
            return Err(TableError::column(file, name, problem));
        }
    }
    let dropped = options.drop.iter().map(|name| place(name, Some("drop"))).collect::<Result<Vec<_>, _>>()?;
    let mut chosen = match &options.columns {
        None => (0..names.len()).collect(),
        Some(columns) => columns.iter().map(|name| place(name, None)).collect::<Result<Vec<_>, _>>()?,
    };
    chosen.retain(|at| !dropped.contains(at));
    for (index, at) in chosen.iter().enumerate() {
        if chosen[..index].contains(at) {
            let problem = "is named twice; name it once";
            return Err(TableError::column(file, &names[*at], problem));
        }
    }
    if chosen.is_empty() {
        return Err(TableError::file(file, "lacks a column to read (see `drop`)"));
    }
    Ok(chosen)
}

/// Returns a hint for an unknown name: the delimiter if the whole header is a single name that contains one,
/// otherwise the most similar name.
fn hint(name: &str, names: &[String]) -> String {
    match names {
        [only] if only.contains([',', ';', '\t', '|', ':', '^', '~']) => {
            format!("; its header is a single name, \"{}\": check `delimiter`", shortened(only))
        }
        _ => did_you_mean(name, names.iter().map(String::as_str)),
    }
}

/// Refuses a name with control characters, which would break a terminal line, a table or a chart.
fn check_name(name: &str) -> Result<(), String> {
    match name.chars().find(|c| c.is_control()) {
        Some(found) => Err(format!(
            "has a column called \"{}\", whose name contains the control character U+{:04X} (rename the column)",
            shortened(name),
            u32::from(found)
        )),
        None => Ok(()),
    }
}

/// Refuses columns without any value.
pub(crate) fn nothing_but_missing<'a>(
    file: &str,
    options: &Options,
    mut empty: impl Iterator<Item = &'a str>,
) -> Result<(), TableError> {
    if options.keep_empty {
        return Ok(());
    }
    let Some(first) = empty.next() else { return Ok(()) };
    let others: Vec<&str> = empty.collect();
    let more = match others.as_slice() {
        [] => String::new(),
        others => format!("; the same applies to {}", others.join(", ")),
    };
    let problem = format!("has only missing cells: leave it out (`drop`){more}");
    Err(TableError::column(file, first, problem))
}
