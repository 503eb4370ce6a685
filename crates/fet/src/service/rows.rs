//! Rows of requests and predictions of answers, in JSON, CSV or Arrow.

use fet_tables::{Column, Table, Texts, Values};
use serde_json::{Map, Value, json};

use super::json::{self, BodyError, Row};

/// Form of a request or an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Json,
    Csv,
    Arrow,
}

impl Form {
    /// Returns the form of a media type. Other types are `None`.
    pub(super) fn of_type(media: &str) -> Option<Self> {
        match media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
            "application/json" => Some(Self::Json),
            "text/csv" => Some(Self::Csv),
            // A program without Arrow cannot read it.
            "application/vnd.apache.arrow.file" | "application/vnd.apache.arrow.stream" => {
                cfg!(feature = "columnar").then_some(Self::Arrow)
            }
            _ => None,
        }
    }

    /// Returns the media types for messages.
    pub(super) fn names() -> &'static str {
        match cfg!(feature = "columnar") {
            true => "application/json, text/csv or application/vnd.apache.arrow.file",
            false => "application/json or text/csv",
        }
    }

    /// Returns the form of an answer to a request in this form whose client accepts these media types.
    pub(super) fn accepted(self, accept: &str) -> Option<Self> {
        let mut named = accept.split(',').map(str::trim).filter(|one| !one.is_empty()).peekable();
        if named.peek().is_none() {
            return Some(self);
        }
        named.find_map(|one| {
            let any =
                one.split(';').next().is_some_and(|media| matches!(media.trim(), "*/*" | "application/*"));
            Self::of_type(one).or(any.then_some(self))
        })
    }

    /// Returns the media type of an answer.
    pub(super) fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Csv => "text/csv; charset=utf-8",
            Self::Arrow => "application/vnd.apache.arrow.file",
        }
    }
}

/// Returns the bytes of a table with the rows of a request, which has at most `most` rows in JSON.
///
/// JSON becomes CSV, so that both are read by the same rules. A body of another form is returned as it is, unless it is
/// compressed.
pub(super) fn table_of(form: Form, body: &[u8], most: usize) -> Result<Vec<u8>, BodyError> {
    match form {
        Form::Json => csv_of(&json::rows(body, most)?).map_err(BodyError::Invalid),
        Form::Csv | Form::Arrow
            if body.starts_with(&[0x1f, 0x8b]) || body.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) =>
        {
            Err(BodyError::Invalid("the body must not be compressed".into()))
        }
        Form::Csv | Form::Arrow => Ok(body.to_vec()),
    }
}

fn csv_of(rows: &[Row]) -> Result<Vec<u8>, String> {
    let Some(first) = rows.first() else { return Err("`rows` must have at least one row".into()) };
    if first.is_empty() {
        return Err("`rows[0]` must have the columns of the model".into());
    }
    let mut columns: Vec<(&String, Texts)> =
        first.keys().map(|name| (name, std::iter::empty::<Option<&str>>().collect())).collect();
    for (place, row) in rows.iter().enumerate() {
        let other = row
            .keys()
            .find(|name| !first.contains_key(*name))
            .or_else(|| first.keys().find(|name| !row.contains_key(*name)));
        if let Some(name) = other {
            return Err(format!(
                "`rows[{place}]` and `rows[0]` must have the same columns, but only one has `{name}`; an empty cell is null"
            ));
        }
        for (name, cells) in &mut columns {
            cells.push(row[*name].as_deref());
        }
    }
    let columns =
        columns.into_iter().map(|(name, cells)| Column { name: name.clone(), values: Values::Text(cells) });
    let table = Table::new(columns.collect()).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    fet_tables::write_csv(&mut bytes, &table).map_err(|error| error.to_string())?;
    Ok(bytes)
}

/// Returns the bytes of an answer.
pub(super) fn answer(form: Form, table: &Table, warnings: &[String]) -> Result<Vec<u8>, String> {
    match form {
        Form::Json => Ok(answer_json(table, warnings).to_string().into_bytes()),
        Form::Csv => {
            let mut bytes = Vec::new();
            fet_tables::write_csv(&mut bytes, table).map_err(|error| error.to_string())?;
            Ok(bytes)
        }
        Form::Arrow => fet_tables::arrow_bytes(table).map_err(|error| error.to_string()),
    }
}

/// Longest header with warnings, in bytes.
const LONGEST_HEADER: usize = 6_000;

/// Returns warnings as a list in JSON that fits a header of HTTP: in ASCII, and without the last ones if they are too long.
pub(super) fn header(warnings: &[String]) -> String {
    let ascii = |warning: &String| {
        let mut text = String::new();
        for sign in json!(warning).to_string().chars() {
            match sign.is_ascii() {
                true => text.push(sign),
                false => {
                    sign.encode_utf16(&mut [0; 2]).iter().for_each(|unit| text += &format!("\\u{unit:04x}"))
                }
            }
        }
        text
    };
    let mut list = String::from("[");
    for warning in warnings.iter().map(ascii) {
        if list.len() + warning.len() + 2 > LONGEST_HEADER {
            break;
        }
        if list.len() > 1 {
            list.push(',');
        }
        list += &warning;
    }
    list + "]"
}

fn answer_json(table: &Table, warnings: &[String]) -> Value {
    let cell = |column: &Column, row: usize| match &column.values {
        // The numbers of rows are whole.
        Values::Number(numbers) if column.name == crate::predictions::ROW => json!(numbers[row] as u64),
        Values::Number(numbers) => json!(numbers[row]),
        Values::Text(texts) => json!(texts.get(row)),
        _ => Value::Null,
    };
    let row = |row| -> Map<String, Value> {
        table.columns.iter().map(|column| (column.name.clone(), cell(column, row))).collect()
    };
    json!({ "predictions": (0..table.rows).map(row).collect::<Vec<_>>(), "warnings": warnings })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_becomes_the_csv_of_the_same_rows() {
        let body = br#"{"rows": [{"b": 0.1, "a": "x, \"y\"", "c": null}, {"c": true, "a": "", "b": 12345678901234567890}]}"#;
        let csv = String::from_utf8(table_of(Form::Json, body, 2).unwrap()).unwrap();
        assert_eq!(csv, "a,b,c\n\"x, \"\"y\"\"\",0.1,\n,12345678901234567890,true\n");
    }

    #[test]
    fn warnings_survive_a_header() {
        let warnings = ["ε is ∞, \"x\"\n𝄞".to_string(), "b".to_string()];
        let text = header(&warnings);
        assert!(text.is_ascii(), "{text}");
        assert_eq!(serde_json::from_str::<Vec<String>>(&text).unwrap(), warnings);
        let many = vec!["a".repeat(1_000); 9];
        assert_eq!(serde_json::from_str::<Vec<String>>(&header(&many)).unwrap().len(), 5);
    }

    #[test]
    fn invalid_bodies_are_refused() {
        for (body, expected) in [
            ("", "must be an object"),
            ("[]", "must be an object"),
            ("null", "must be an object"),
            (r#"[[{"a": 1}]]"#, "must be an object"),
            ("{}", "lacks `rows`"),
            (r#"{"rows": [], "more": 1}"#, "unknown field `more`"),
            (r#"{"rows": [], "rows": []}"#, "has `rows` twice"),
            (r#"{"rows": [{}]}"#, "must have the columns of the model"),
            (r#"{"rows": [[1]]}"#, "a row must be an object"),
            (r#"{"rows": [{"a": 1, "a": 2}]}"#, "has `a` twice"),
            (r#"{"rows": []}"#, "at least one row"),
            (r#"{"rows": [{"a": 1}, {"b": 2}]}"#, "`rows[1]` and `rows[0]` must have the same columns"),
            (r#"{"rows": [{"a": 1}, {}]}"#, "only one has `a`"),
            (r#"{"rows": [{"a": [1]}]}"#, "a number, a text, true, false or null"),
            (r#"{"rows": [{"a": 1}]} more"#, "trailing characters"),
        ] {
            let told = table_of(Form::Json, body.as_bytes(), 9).unwrap_err();
            assert!(matches!(&told, BodyError::Invalid(told) if told.contains(expected)), "{body}: {told:?}");
        }
        let many = br#"{"rows": [{"a": 1}, {"a": 2}, {"a": 3}]}"#;
        assert_eq!(table_of(Form::Json, many, 2), Err(BodyError::TooMany));
        let told = table_of(Form::Csv, &[0x1f, 0x8b, 8], 9);
        assert_eq!(told, Err(BodyError::Invalid("the body must not be compressed".into())));
    }

    #[test]
    fn clients_choose_the_form_of_the_answer() {
        for (accept, expected) in [
            ("", Some(Form::Csv)),
            ("*/*", Some(Form::Csv)),
            ("application/json", Some(Form::Json)),
            ("text/html, application/json;q=0.9", Some(Form::Json)),
            ("application/vnd.apache.arrow.stream", cfg!(feature = "columnar").then_some(Form::Arrow)),
            ("text/html", None),
        ] {
            assert_eq!(Form::Csv.accepted(accept), expected, "{accept}");
        }
    }
}
