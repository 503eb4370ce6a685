//! `fet predict http://SERVER`: predictions by a service (`fet serve`), in requests of limited size.
//!
//! Finished requests stay in a file next to the output until the output is complete, so that the same command continues after an
//! interruption.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fet_tables::{Column, Kind, Options, Table, Values};
use serde::{Deserialize, Serialize};
use ureq::Agent;
use ureq::http::{Response, StatusCode};

use super::arguments::PredictArguments;
use crate::access::{MODEL, WARNINGS, read_token};
use crate::parties::Unreached;
use crate::predictions::{ROW, table, write_to};
use fet_io::input::{InputError, input};
use fet_io::output;

/// Rows of a request at most.
const MOST_ROWS: usize = 1_000;
/// Time until a failed request is repeated.
const PAUSE: Duration = Duration::from_secs(1);
/// Seconds without an answer after which the command ends.
const PATIENCE: u64 = 600;
/// Answers out of time after which the command ends.
const MOST_LATE: usize = 3;
/// End of the name of the file with finished requests.
const PARTIAL: &str = ".partial";

/// Description of the service's model.
#[derive(Debug, Deserialize)]
struct Described {
    /// Digest of the model, its calibration and its tables.
    model: String,
    task: String,
    keys: Vec<String>,
    columns: Vec<DescribedColumn>,
    most_rows: usize,
    independent_rows: bool,
}

#[derive(Debug, Deserialize)]
struct DescribedColumn {
    name: String,
}

/// First line of the file with finished requests: the rows and the model that they belong to.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Origin {
    /// SHA-256 of the file with the rows.
    rows: String,
    /// Digest of the model, its calibration and its tables.
    model: String,
    /// Rows of a request.
    batch: usize,
}

/// Further line of the file: the CSV and the warnings of one request.
#[derive(Debug, Serialize, Deserialize)]
struct Batch {
    number: usize,
    csv: String,
    warnings: Vec<String>,
}

/// Returns the address of a service if `run` is one.
pub(super) fn address(run: &Path) -> Option<String> {
    let text = run.to_str()?;
    let is_url = text.starts_with("http://") || text.starts_with("https://");
    is_url.then(|| text.trim_end_matches('/').to_string())
}

/// Predicts by a service, writes the predictions, and returns the warnings.
pub(super) fn predict(arguments: &PredictArguments, url: &str) -> anyhow::Result<Vec<String>> {
    check(arguments)?;
    output::check(&arguments.out, [&arguments.rows])?;
    let patience = Duration::from_secs(arguments.model.wait.unwrap_or(PATIENCE));
    let client = Client {
        url,
        token: arguments.token_file.as_deref().map(read_token).transpose()?,
        agent: Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(patience.max(PAUSE)))
            .build()
            .into(),
        patience,
    };
    let text = client.ask(|| client.request(client.agent.get(format!("{url}/v1/model"))).call())?.body;
    let described: Described = serde_json::from_slice(&text).map_err(|error| {
        input(format!("{url}/v1/model: must describe a model, as `fet serve` does ({error})"))
    })?;
    let names: Vec<String> = described
        .keys
        .iter()
        .cloned()
        .chain(described.columns.iter().map(|column| column.name.clone()))
        .collect();
    let rows = read_as_text(arguments, &names)?;
    let ids =
        arguments.id.as_ref().map(|id| read_as_text(arguments, std::slice::from_ref(id))).transpose()?;
    let batch = match described.independent_rows {
        true => described.most_rows.clamp(1, MOST_ROWS),
        false if rows.rows > described.most_rows => {
            return Err(input(format!(
                "{}: has {} rows; the service links each row depending on the others, and a request may have at most {} rows. \
                 Raise `--most-rows` of `fet serve`, or divide the file.",
                arguments.rows.display(),
                rows.rows,
                described.most_rows
            )));
        }
        false => rows.rows.max(1),
    };
    let of_rows = fet_io::sha256_of_file(&arguments.rows)?;
    let origin = Origin { rows: fet_io::hex(&of_rows), model: described.model.clone(), batch };
    let batches = rows.rows.div_ceil(batch);
    let size = |number: usize| batch.min(rows.rows - number * batch);
    let mut finished = Finished::open(&arguments.out, &origin, batches, &size)?;
    for number in finished.batches.len()..batches {
        let csv = csv_of(&rows, number * batch..number * batch + size(number))?;
        let answer = client.ask(|| client.post(&csv)).map_err(|error| {
            let done = (number * batch).min(rows.rows);
            let again = format!(
                "{done} of {} rows are predicted; give the same command again to continue",
                rows.rows
            );
            match error.downcast::<Unreached>() {
                Ok(Unreached(problem)) => Unreached(format!("{problem}; {again}")).into(),
                Err(error) => error,
            }
        })?;
        if answer.model.as_deref() != Some(described.model.as_str()) {
            return Err(input(format!(
                "{url}: the service has another model or other tables since the first request; give the command again to start with \
                 them"
            )));
        }
        let csv = String::from_utf8(answer.body)
            .map_err(|_| input(format!("{url}: the answer must be text in UTF-8")))?;
        if !is_whole(&csv, size(number)) {
            return Err(input(format!(
                "{url}: the answer has other rows than the request; something on the way changed it"
            )));
        }
        let at = |warning: String| match batches {
            1 => warning,
            _ => format!("rows {} to {}: {warning}", number * batch, number * batch + size(number) - 1),
        };
        finished.add(Batch { number, csv, warnings: answer.warnings.into_iter().map(at).collect() })?;
    }
    let mut columns = joined(&finished.batches, &described, batch)?;
    if let Some(ids) = ids {
        columns.splice(1..1, ids.columns);
    }
    let predictions = table(columns).map_err(input)?;
    write_to(&arguments.out, &predictions)?;
    finished.remove();
    let mut warnings: Vec<String> = finished.batches.into_iter().flat_map(|batch| batch.warnings).collect();
    let mut seen = std::collections::HashSet::new();
    warnings.retain(|warning| seen.insert(warning.clone()));
    Ok(warnings)
}

/// Refuses options that need the run's folder.
fn check(arguments: &PredictArguments) -> anyhow::Result<()> {
    let PredictArguments { model, labels, explain, .. } = arguments;
    let own = [ROW, "prediction", "lower", "upper", "likely", "missing"];
    let is_own = |id: &String| {
        own.contains(&id.as_str()) || id.starts_with("probability of ") || id.starts_with("similarity to ")
    };
    if let Some(id) = arguments.id.as_ref().filter(|id| is_own(id)) {
        return Err(input(format!(
            "--id {id}: is the name of a column of the predictions; rename the column in the file"
        )));
    }
    for (option, is_given) in [
        ("--parties", model.parties.is_some()),
        ("--data", model.data.is_some()),
        ("--calibration", model.calibration.is_some()),
        ("--device", model.device.is_some()),
        ("--labels", labels.is_some()),
        ("--explain", explain.is_some()),
    ] {
        if is_given {
            return Err(input(format!(
                "{option} needs the folder of the run; a service (`fet serve`) does not offer it"
            )));
        }
    }
    if arguments.rows == Path::new(output::STANDARD) {
        return Err(input("--rows -: name a file, so that the same command can continue"));
    }
    if arguments.out != Path::new(output::STANDARD) {
        fet_tables::check_name(&arguments.out).map_err(|error| input(format!("--out: {error}")))?;
    }
    Ok(())
}

/// Reads columns of the new records as they are written.
fn read_as_text(arguments: &PredictArguments, columns: &[String]) -> anyhow::Result<Table> {
    let options = Options {
        kinds: columns.iter().map(|name| (name.clone(), Kind::Text)).collect(),
        columns: Some(columns.to_vec()),
        keep_empty: true,
        keep_spaces: true,
        ..Options::default()
    };
    fet_tables::read(&arguments.rows, &options).map_err(input)
}

fn csv_of(table: &Table, rows: std::ops::Range<usize>) -> anyhow::Result<Vec<u8>> {
    let part = |column: &Column| {
        let values = match &column.values {
            Values::Text(texts) => Values::Text(rows.clone().map(|row| texts.get(row)).collect()),
            _ => Values::Text(rows.clone().map(|_| None::<&str>).collect()),
        };
        Column { name: column.name.clone(), values }
    };
    let part = Table::new(table.columns.iter().map(part).collect()).map_err(input)?;
    let mut bytes = Vec::new();
    fet_tables::write_csv(&mut bytes, &part)?;
    Ok(bytes)
}

/// Returns true if an answer has the rows 0, 1, ... of a request.
fn is_whole(csv: &str, rows: usize) -> bool {
    let options = Options {
        kinds: [(ROW.to_string(), Kind::Number)].into(),
        columns: Some(vec![ROW.to_string()]),
        ..Options::default()
    };
    let found = fet_tables::read_bytes(csv.as_bytes(), Path::new("the service's answer"), &options);
    let Ok(Table { columns, rows: found, .. }) = found else { return false };
    let ordered = |numbers: &[f64]| numbers.iter().enumerate().all(|(row, number)| *number == row as f64);
    found == rows
        && columns
            .first()
            .is_some_and(|column| matches!(&column.values, Values::Number(numbers) if ordered(numbers)))
}

/// Joins the tables of all requests, and counts their rows through.
fn joined(batches: &[Batch], described: &Described, size: usize) -> anyhow::Result<Vec<Column>> {
    let is_class = described.task != "regression";
    let mut all: Vec<Column> = Vec::new();
    for (number, batch) in batches.iter().enumerate() {
        let header = batch.csv.lines().next().unwrap_or_default();
        let texts = ["likely", "missing"].into_iter().chain(is_class.then_some("prediction"));
        let texts = texts.filter(|name| header.split(',').any(|column| column == *name));
        let options = Options {
            kinds: texts.map(|name| (name.to_string(), Kind::Text)).collect(),
            keep_empty: true,
            keep_spaces: true,
            ..Options::default()
        };
        let path = Path::new("the service's answer");
        let mut found = fet_tables::read_bytes(batch.csv.as_bytes(), path, &options).map_err(input)?;
        let row = found.columns.iter_mut().find(|column| column.name == ROW);
        if let Some(Column { values: Values::Number(rows), .. }) = row {
            rows.iter_mut().for_each(|row| *row += (number * size) as f64);
        }
        if number == 0 {
            all = found.columns;
            continue;
        }
        let differ =
            || input("the service's answers have different columns; its model has changed, so start again");
        if found.columns.len() != all.len() {
            return Err(differ());
        }
        for (all, more) in all.iter_mut().zip(found.columns) {
            match (&mut all.values, more.values) {
                (Values::Number(all), Values::Number(more)) => all.extend(more),
                (Values::Text(all), Values::Text(more)) => {
                    (0..found.rows).for_each(|row| all.push(more.get(row)));
                }
                _ => return Err(differ()),
            }
        }
    }
    Ok(all)
}

/// Finished requests.
struct Finished {
    /// `None` if the output is standard output.
    file: Option<(PathBuf, File)>,
    batches: Vec<Batch>,
}

impl Finished {
    /// Reads the finished requests of an earlier command with the same origin, or begins without any. `size` is the number of rows
    /// of a request.
    fn open(
        out: &Path,
        origin: &Origin,
        batches: usize,
        size: &dyn Fn(usize) -> usize,
    ) -> anyhow::Result<Self> {
        if out == Path::new(output::STANDARD) {
            return Ok(Self { file: None, batches: Vec::new() });
        }
        let mut name = out.as_os_str().to_os_string();
        name.push(PARTIAL);
        let path = PathBuf::from(name);
        let refuse = |error: std::io::Error| InputError(format!("{}: {error}", path.display()));
        let bytes = match fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            bytes => bytes.map_err(refuse)?,
        };
        let mut lines = bytes.split(|byte| *byte == b'\n');
        let first = lines.next().unwrap_or_default();
        let found: Option<Origin> = serde_json::from_slice(first).ok();
        if found.is_none() && !bytes.is_empty() {
            return Err(input(format!(
                "{}: this file has the name that the command needs for finished requests; move it, or choose another output",
                path.display()
            )));
        }
        // A kill may have cut the last line.
        let whole = |(number, line): (usize, &[u8])| -> Option<Batch> {
            let batch: Batch = serde_json::from_slice(line).ok()?;
            (number < batches && batch.number == number && is_whole(&batch.csv, size(number)))
                .then_some(batch)
        };
        let batches: Vec<Batch> = match found.as_ref() == Some(origin) {
            true => lines.enumerate().map_while(whole).collect(),
            false => Vec::new(),
        };
        let mut kept = format!("{}\n", serde_json::to_string(origin)?);
        for batch in &batches {
            kept += &format!("{}\n", serde_json::to_string(batch)?);
        }
        fet_io::write(&path, kept.as_bytes()).map_err(refuse)?;
        let file = File::options().append(true).open(&path).map_err(refuse)?;
        if !batches.is_empty() {
            fet_io::note!("{}: continues after {} finished requests", path.display(), batches.len());
        }
        Ok(Self { file: Some((path, file)), batches })
    }

    fn add(&mut self, batch: Batch) -> anyhow::Result<()> {
        if let Some((path, file)) = &mut self.file {
            let line = format!("{}\n", serde_json::to_string(&batch)?);
            let refuse = |error| InputError(format!("{}: {error}", path.display()));
            file.write_all(line.as_bytes()).and_then(|()| file.flush()).map_err(refuse)?;
        }
        self.batches.push(batch);
        Ok(())
    }

    fn remove(&self) {
        if let Some((path, _)) = &self.file {
            let _ = fs::remove_file(path);
        }
    }
}

struct Client<'a> {
    url: &'a str,
    token: Option<String>,
    agent: Agent,
    /// Longest time without an answer.
    patience: Duration,
}

/// Answer of the service.
struct Answered {
    body: Vec<u8>,
    warnings: Vec<String>,
    /// Digest of the model that answered.
    model: Option<String>,
}

type Sent = Result<Response<ureq::Body>, ureq::Error>;

impl Client<'_> {
    fn request<B>(&self, request: ureq::RequestBuilder<B>) -> ureq::RequestBuilder<B> {
        match &self.token {
            Some(token) => request.header("Authorization", format!("Bearer {token}")),
            None => request,
        }
    }

    fn post(&self, csv: &[u8]) -> Sent {
        let request = self.request(self.agent.post(format!("{}/v1/predict", self.url)));
        request.header("Content-Type", "text/csv").header("Accept", "text/csv").send(csv)
    }

    /// Sends a request until it is answered.
    fn ask(&self, send: impl Fn() -> Sent) -> anyhow::Result<Answered> {
        let began = Instant::now();
        let mut late = 0;
        loop {
            let problem = match send() {
                Err(error) => error.to_string(),
                Ok(mut response) => {
                    let status = response.status();
                    let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
                    let warnings =
                        header(WARNINGS).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
                    let model = header(MODEL).map(String::from);
                    match response.body_mut().with_config().limit(u64::MAX).read_to_vec() {
                        Ok(body) if status == StatusCode::OK => {
                            return Ok(Answered { body, warnings, model });
                        }
                        Ok(body) => {
                            let told = reason(&body).unwrap_or_else(|| format!("status {status}"));
                            // Each late answer costs the parties as much as one in time.
                            late += usize::from(status == StatusCode::GATEWAY_TIMEOUT);
                            match status {
                                StatusCode::GATEWAY_TIMEOUT if late < MOST_LATE => {}
                                StatusCode::GATEWAY_TIMEOUT => {
                                    let problem = format!(
                                        "{}: {told}, {late} times; raise `--timeout` of `fet serve`",
                                        self.url
                                    );
                                    return Err(Unreached(problem).into());
                                }
                                StatusCode::SERVICE_UNAVAILABLE
                                | StatusCode::BAD_GATEWAY
                                | StatusCode::TOO_MANY_REQUESTS => {}
                                _ => return Err(input(format!("{}: {told}", self.url))),
                            }
                            told
                        }
                        Err(error) => error.to_string(),
                    }
                }
            };
            if began.elapsed() + PAUSE > self.patience {
                return Err(Unreached(format!("{}: {problem}", self.url)).into());
            }
            std::thread::sleep(PAUSE);
        }
    }
}

/// Returns the reason of a refusal.
fn reason(body: &[u8]) -> Option<String> {
    let refusal: serde_json::Value = serde_json::from_slice(body).ok()?;
    Some(refusal.get("error")?.as_str()?.to_string())
}
