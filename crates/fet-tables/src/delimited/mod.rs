//! Text files with a delimiter (CSV, TSV): a header, then one row per line, with quotes around cells that
//! contain the delimiter or a line end. Threads read its rows twice, in pieces: first to infer the kinds of the
//! columns, then to fill the columns. The text is in memory, or in a file that each pass reads again.

pub(crate) mod content;
mod delimiter;
mod header;
mod pieces;
mod survey;
pub(crate) mod units;
mod written;

use std::io::Read;
use std::sync::atomic::{AtomicUsize, Ordering};

use csv::{ByteRecord, ReaderBuilder};
use rayon::prelude::*;

use crate::date;
use crate::error::{Fault, TableError};
use crate::fill::{Filler, most_categories};
use crate::number;
use crate::options::{Kind, Missing, Options};
use crate::select::{nothing_but_missing, wanted};
use crate::table::{Column, Table};
use content::{Content, Cut, CutError, Piece};
use header::BLANK;
use pieces::Quote;
use survey::Survey;
use written::{Deciding, WrittenSurvey};

/// Approximate size of a piece in bytes: small enough to limit cache misses, and large enough to amortise the
/// start of a thread.
pub(crate) const PIECE: usize = 1 << 20;

/// Text of a file, with its header and the settings for reading it.
struct Text<'a> {
    file: &'a str,
    content: &'a Content<'a>,
    cut: Cut,
    delimiter: u8,
    header: Vec<String>,
    missing: Missing,
    identifiers: bool,
}

/// Error in a piece of the text, whose line is counted only if it is the first error.
enum Wrong {
    /// Breach of a rule by the cell of a column.
    Cell {
        offset: usize,
        column: String,
        value: String,
        fault: Fault,
    },
    /// Problem of the record at an offset.
    Row {
        offset: usize,
        problem: String,
    },
    Table(TableError),
}

/// Column to read.
struct Wanted<'a> {
    /// Index of the column among the cells of a row.
    at: usize,
    name: &'a str,
    /// Kind that the caller set.
    kind: Option<&'a Kind>,
    /// Kind that decides which marks of missing cells apply: `kind`, except a category inferred from another
    /// table, to which the marks of that table apply.
    declared: Option<&'a Kind>,
    /// The kind is that of another table, whose form its cells must have.
    held: bool,
}

/// True if the head of a text contains its header.
pub(crate) fn is_header_in_head(content: &Content<'_>, options: &Options) -> bool {
    let head = content.head();
    let hint = header::hint(head);
    let start = hint.map_or(0, |(_, start)| start);
    let hinted = options.delimiter.or(hint.map(|(delimiter, _)| delimiter));
    let end = delimiter::choose(&head[start..], "", hinted)
        .and_then(|(delimiter, _)| header::read(head, start, "", delimiter, &mut Vec::new()))
        .map(|header| header.end);
    // The rows that decide the delimiter are in the head, too.
    !content.is_cut() || end.is_ok_and(|end| end < head.len() / 2)
}

/// Reads the text of a file, in pieces of about `piece` bytes.
pub(crate) fn read(
    content: &Content<'_>,
    file: &str,
    options: &Options,
    piece: usize,
) -> Result<Table, TableError> {
    let bytes = content.head();
    let hint = header::hint(bytes);
    let start = hint.map_or(0, |(_, start)| start);
    let (delimiter, mut notes) = match (hint, options.delimiter) {
        (Some((hinted, _)), None) => {
            let note = format!("the delimiter is {}, according to the first line", delimiter::name(hinted));
            (delimiter::choose(bytes, file, Some(hinted))?.0, vec![note])
        }
        (_, given) => delimiter::choose(&bytes[start..], file, given)?,
    };
    let header = header::read(bytes, start, file, delimiter, &mut notes)?;
    let cut =
        content.cut(header.end, delimiter, header.names.len() == 1, piece).map_err(|error| match error {
            CutError::Quote(fault) => wrong_quote(file, content, fault),
            CutError::Table(error) => error,
        })?;
    if cut.blank > 0 && header.names.len() == 1 {
        notes.push(format!(
            "{} blank lines were skipped; the missing cell of a table with one column is written as \"\"",
            cut.blank
        ));
    }
    let text = Text {
        file,
        content,
        cut,
        delimiter,
        header: header.names,
        missing: Missing::new(options),
        identifiers: options.identifiers,
    };
    let wanted: Vec<Wanted> = wanted(&text.header, file, options)?
        .into_iter()
        .map(|at| {
            let (name, kind) = (&text.header[at], options.kinds.get(&text.header[at]));
            let held = kind.is_some() && options.inferred.contains(name);
            Wanted { at, name, kind, declared: options.declared(name), held }
        })
        .collect();

    let (rows, mut surveys) = text.survey(&wanted)?;
    text.look_again(&wanted, &mut surveys)?;
    if rows == 0 {
        return Err(TableError::file(file, "is empty below its header"));
    }
    nothing_but_missing(
        file,
        options,
        wanted.iter().zip(&surveys).filter(|(w, s)| !s.any() && w.kind.is_none()).map(|(w, _)| w.name),
    )?;
    let unsettled = |column: &Wanted<'_>| {
        !options.identifiers && (column.kind.is_none() || options.inferred.contains(column.name))
    };
    if let Some((column, _)) =
        wanted.iter().zip(&surveys).find(|(column, survey)| unsettled(column) && survey.has_thousands())
    {
        let settle = match column.kind {
            None => {
                "set the column's kind to number (for 1.234,5: number:1.234,5; for 1,234.5: number:1,234.5)"
            }
            Some(_) => "write decimal points instead",
        };
        let problem = format!(
            "has commas before three digits, but only in its larger numbers: if the commas separate thousands, remove them from the file; if they are decimal commas, {settle}"
        );
        return Err(TableError::column(file, column.name, problem));
    }
    for (column, survey) in wanted.iter().zip(&surveys) {
        if let Some(few) = survey.few() {
            return Err(text.refuse_few(column, &few)?);
        }
    }
    for (column, survey) in wanted.iter().zip(&surveys) {
        survey.notes(column.name, column.kind, &mut notes);
    }
    let kinds: Vec<(Option<Kind>, bool)> =
        wanted.iter().zip(&surveys).map(|(column, survey)| survey.kind(column.kind)).collect();
    let wrong = wanted.iter().zip(&surveys).map(|(column, survey)| match column.kind {
        None if !options.identifiers => survey.nearly(),
        None => None,
        Some(_) => None,
    });
    let wrong: Vec<Option<Kind>> = wrong.collect();
    if wrong.iter().any(Option::is_some) {
        text.refuse_wrong_cells(&wanted, &wrong)?;
    }
    let filled = text.fill(&wanted, &kinds)?;
    let forms = wanted.iter().zip(&surveys).filter_map(|(column, survey)| {
        let form = survey.form(column.kind).filter(|form| column.kind != Some(form))?;
        Some((column.name.to_string(), form))
    });
    let forms = forms.collect();
    let styles = wanted
        .iter()
        .zip(&surveys)
        .zip(&kinds)
        .map(|((column, survey), (kind, _))| (column.name.to_string(), survey.styles(kind.as_ref())));
    let styles = styles.filter(|(_, styles)| !styles.is_empty()).collect();
    let columns = wanted.iter().zip(filled).map(|(column, filler)| Column {
        name: column.name.into(),
        values: filler.finish(if column.kind.is_some() { usize::MAX } else { most_categories(rows) }),
    });
    Ok(Table { columns: columns.collect(), rows, notes, forms, styles })
}

impl Text<'_> {
    /// Returns the number of rows, and a survey of each wanted column.
    fn survey(&self, wanted: &[Wanted<'_>]) -> Result<(usize, Vec<Survey>), TableError> {
        let commas = self.delimiter != b',';
        let parts = self.parts(|piece| {
            let mut surveys = vec![Survey::new(commas, self.identifiers); wanted.len()];
            let mut rows = 0;
            self.each(piece, |record, offset| {
                rows += 1;
                for (column, survey) in wanted.iter().zip(&mut surveys) {
                    let cell = self.cell(record, column, offset)?;
                    let present = self.missing.present(cell, column.declared);
                    match present {
                        None if !cell.trim().is_empty() => survey.mark(cell.trim()),
                        present => survey.look(present, column.kind),
                    }
                }
                Ok(())
            })?;
            Ok((rows, surveys))
        });
        let mut all = (0, vec![Survey::new(commas, self.identifiers); wanted.len()]);
        for (rows, surveys) in parts? {
            all.0 += rows;
            all.1.iter_mut().zip(&surveys).for_each(|(all, survey)| all.merge(survey));
        }
        Ok(all)
    }

    /// Looks for other formats of dates and numbers in the columns without a plain format.
    fn look_again(&self, wanted: &[Wanted<'_>], surveys: &mut [Survey]) -> Result<(), TableError> {
        let is_open = |at: &usize| !wanted[*at].held && surveys[*at].is_open(wanted[*at].kind);
        let open: Vec<usize> = (0..wanted.len()).filter(is_open).collect();
        if open.is_empty() {
            return Ok(());
        }
        let parts = self.parts(|piece| {
            let mut all = vec![WrittenSurvey::new(); open.len()];
            self.each(piece, |record, offset| {
                for (at, written) in open.iter().zip(&mut all) {
                    let column = &wanted[*at];
                    if let Some(cell) =
                        self.missing.present(self.cell(record, column, offset)?, column.declared)
                    {
                        written.look(cell);
                    }
                }
                Ok(())
            })?;
            Ok(all)
        });
        let parts: Vec<Vec<WrittenSurvey>> = parts?;
        for (place, at) in open.into_iter().enumerate() {
            let mut whole = WrittenSurvey::new();
            parts.iter().for_each(|part| whole.merge(&part[place]));
            surveys[at].set_written(whole);
        }
        Ok(())
    }

    /// Fills the wanted columns.
    fn fill(&self, wanted: &[Wanted<'_>], kinds: &[(Option<Kind>, bool)]) -> Result<Vec<Filler>, TableError> {
        let new = || kinds.iter().map(|(kind, comma)| Filler::new(kind.as_ref(), *comma)).collect::<Vec<_>>();
        let parts = self.parts(|piece| {
            let mut fillers = new();
            self.each(piece, |record, offset| {
                for (column, filler) in wanted.iter().zip(&mut fillers) {
                    let cell = self.missing.present(self.cell(record, column, offset)?, column.declared);
                    filler
                        .push(cell)
                        .map_err(|fault| wrong_cell(offset, column, cell.unwrap_or_default(), fault))?;
                }
                Ok(())
            })?;
            Ok(fillers)
        });
        let parts = parts?;
        // Group the pieces by column, so that the pieces of a column are freed as soon as the column is
        // complete.
        let mut by_column: Vec<Vec<Filler>> =
            wanted.iter().map(|_| Vec::with_capacity(parts.len())).collect();
        for part in parts {
            by_column.iter_mut().zip(part).for_each(|(column, filler)| column.push(filler));
        }
        let whole = by_column.into_par_iter().zip(new()).map(|(pieces, mut whole)| {
            pieces.into_iter().for_each(|piece| whole.append(piece));
            whole
        });
        Ok(whole.collect())
    }

    /// An error that names the first of few cells that would decide the form of a column.
    fn refuse_few(&self, column: &Wanted<'_>, few: &Deciding) -> Result<TableError, TableError> {
        let (mut first, mut example) = (None, None);
        for piece in self.content.pieces(&self.cut)? {
            let piece = piece?;
            let all = self.each(&piece, |record, offset| {
                let cell = self.missing.present(self.cell(record, column, offset)?, column.declared);
                let Some(cell) = cell else { return Ok(()) };
                if few.fits(cell) {
                    first.get_or_insert_with(|| (cell.to_string(), offset));
                } else if few.is_open(cell) {
                    example.get_or_insert_with(|| cell.to_string());
                }
                Ok(())
            });
            all.map_err(|wrong| self.error(wrong))?;
        }
        let (cell, offset) = first.unwrap_or_default();
        let [rule, advice] = few.fault(column.name, example.as_deref());
        let fault = Fault::new(rule, advice);
        Ok(self.error(wrong_cell(offset, column, &cell, fault)))
    }

    /// The first cell of the columns that are nearly of a kind which is not of it.
    fn refuse_wrong_cells(&self, wanted: &[Wanted<'_>], nearly: &[Option<Kind>]) -> Result<(), TableError> {
        let comma = self.delimiter != b',';
        for piece in self.content.pieces(&self.cut)? {
            let piece = piece?;
            let all = self.each(&piece, |record, offset| {
                for (column, kind) in wanted.iter().zip(nearly) {
                    let Some(kind) = kind else { continue };
                    let Some(cell) = self.missing.present(self.cell(record, column, offset)?, None) else { continue };
                    let is = match kind {
                        Kind::Number => {
                            number::number(cell).is_some() || (comma && number::comma_number(cell).is_some())
                        }
                        _ => date::date(cell).is_some(),
                    };
                    if !is {
                        let fault = Fault::new(
                            format!("must be a {kind}, like nearly all cells of this column"),
                            "correct it, add it to `missing` if it marks a missing value, or set the column's kind to \
                             category or text",
                        );
                        return Err(wrong_cell(offset, column, cell, fault));
                    }
                }
                Ok(())
            });
            all.map_err(|wrong| self.error(wrong))?;
        }
        Ok(())
    }

    /// Returns the results of `work` for all pieces, in their order, or the first error of the text.
    fn parts<R: Send>(
        &self,
        work: impl Fn(&Piece<'_>) -> Result<R, Wrong> + Sync,
    ) -> Result<Vec<R>, TableError> {
        // Pieces after one with an error are not needed.
        let first_wrong = AtomicUsize::new(usize::MAX);
        let pieces = self.content.pieces(&self.cut)?.par_bridge();
        let done = pieces.filter_map(|piece| match piece {
            Ok(piece) if piece.index > first_wrong.load(Ordering::Relaxed) => None,
            Ok(piece) => {
                let result = work(&piece);
                if result.is_err() {
                    first_wrong.fetch_min(piece.index, Ordering::Relaxed);
                }
                Some(Ok((piece.index, result)))
            }
            Err(error) => Some(Err(error)),
        });
        let mut done: Vec<_> = done.collect::<Result<_, TableError>>()?;
        done.sort_unstable_by_key(|(index, _)| *index);
        done.into_iter().map(|(_, result)| result.map_err(|wrong| self.error(wrong))).collect()
    }

    /// Calls `row` with each record of a piece and its offset in the text.
    fn each(
        &self,
        piece: &Piece<'_>,
        mut row: impl FnMut(&ByteRecord, usize) -> Result<(), Wrong>,
    ) -> Result<(), Wrong> {
        let mut reader = ReaderBuilder::new()
            .delimiter(self.delimiter)
            .has_headers(false)
            .flexible(true)
            .from_reader(BLANK.chain(&*piece.bytes));
        let mut record = ByteRecord::new();
        let unreadable =
            |error: csv::Error| Wrong::Table(TableError::file(self.file, format!("cannot be read: {error}")));
        while reader.read_byte_record(&mut record).map_err(unreadable)? {
            let offset = piece.start
                + record.position().map_or(0, |at| at.byte() as usize).saturating_sub(BLANK.len());
            if record.len() != self.header.len() {
                return Err(self.ragged(&record, offset));
            }
            row(&record, offset)?;
        }
        Ok(())
    }

    fn cell<'r>(&self, record: &'r ByteRecord, column: &Wanted<'_>, offset: usize) -> Result<&'r str, Wrong> {
        let cell = &record[column.at];
        std::str::from_utf8(cell).map_err(|error| {
            let rule = format!("must be valid UTF-8; byte {} of the cell is not", error.valid_up_to() + 1);
            let fault = Fault::new(rule, "save the file as UTF-8");
            let value = String::from_utf8_lossy(cell);
            wrong_cell(offset, column, &value, fault)
        })
    }

    /// Returns the error with its line.
    fn error(&self, wrong: Wrong) -> TableError {
        match wrong {
            Wrong::Cell { offset, column, value, fault } => match self.content.place(offset) {
                Ok(place) => TableError::cell(self.file, place, &column, &value, fault),
                Err(error) => error,
            },
            Wrong::Row { offset, problem } => wrong_row(self.file, self.content, offset, problem),
            Wrong::Table(error) => error,
        }
    }

    fn ragged(&self, record: &ByteRecord, offset: usize) -> Wrong {
        let problem = format!(
            "has {} cells; the header has {} with the delimiter {} (quote cells that contain the delimiter, or set another `delimiter`)",
            record.len(),
            self.header.len(),
            delimiter::name(self.delimiter),
        );
        Wrong::Row { offset, problem }
    }
}

/// An error about a cell of the record at `offset`.
fn wrong_cell(offset: usize, column: &Wanted<'_>, value: &str, fault: Fault) -> Wrong {
    Wrong::Cell { offset, column: column.name.to_string(), value: value.to_string(), fault }
}

/// An error about the record at `offset`.
fn wrong_row(file: &str, content: &Content<'_>, offset: usize, problem: String) -> TableError {
    match content.place(offset) {
        Ok(place) => TableError::Row { file: file.into(), place, problem },
        Err(error) => error,
    }
}

fn wrong_quote(file: &str, content: &Content<'_>, fault: Quote) -> TableError {
    let (at, problem) = match fault {
        Quote::NeverClosed(at) => (at, "opens a quote that is never closed"),
        Quote::Within(at) => (at, "has a quote within a quoted cell"),
    };
    let problem = format!("{problem} (close it, or double quotes that belong to the text)");
    wrong_row(file, content, at, problem)
}

#[cfg(test)]
mod tests;
