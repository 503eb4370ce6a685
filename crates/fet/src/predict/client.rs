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
use crate::access::{WARNINGS, read_token};
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
/// End of the name of the file with finished requests.
const PARTIAL: &str = ".partial";

/// Description of the service's model.
#[derive(Debug, Deserialize)]
struct Described {
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

/// First line of the file with finished requests: what they answer.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Origin {
    /// SHA-256 of the file with the rows.
    rows: String,
    /// SHA-256 of the model's description.
    model: String,
    /// Rows of a request.
    batch: usize,
}

/// Further line of the file: the CSV and the warnings of one request.
#[derive(Debug, Serialize, Deserialize)]
struct Batch {
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
    let client = Client {
        url,
        token: arguments.token_file.as_deref().map(read_token).transpose()?,
        agent: Agent::config_builder().http_status_as_error(false).build().into(),
        patience: Duration::from_secs(arguments.model.wait.unwrap_or(PATIENCE)),
    };
    let text = client.ask(|| client.request(client.agent.get(format!("{url}/v1/model"))).call())?.0;
    let described: Described = serde_json::from_slice(&text).map_err(|error| {
        input(format!("{url}/v1/model: is no description of a model of `fet serve` ({error})"))
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
    let origin = Origin { rows: fet_io::hex(&of_rows), model: fet_io::hex(&fet_io::sha256(&text)), batch };
    let mut finished = Finished::open(&arguments.out, &origin)?;
    let batches = rows.rows.div_ceil(batch);
    for number in finished.batches.len()..batches {
        let csv = csv_of(&rows, number * batch..((number + 1) * batch).min(rows.rows))?;
        let (answer, warnings) = client.ask(|| client.post(&csv)).map_err(|error| {
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
        let csv = String::from_utf8(answer).map_err(|_| input(format!("{url}: the answer is no text")))?;
        finished.add(Batch { csv, warnings })?;
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
    /// Reads the finished requests of an earlier command with the same origin, or begins without any.
    fn open(out: &Path, origin: &Origin) -> anyhow::Result<Self> {
        if out == Path::new(output::STANDARD) {
            return Ok(Self { file: None, batches: Vec::new() });
        }
        let mut name = out.as_os_str().to_os_string();
        name.push(PARTIAL);
        let path = PathBuf::from(name);
        let refuse = |error: std::io::Error| InputError(format!("{}: {error}", path.display()));
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            text => text.map_err(refuse)?,
        };
        let mut lines = text.lines();
        let is_same =
            lines.next().and_then(|line| serde_json::from_str::<Origin>(line).ok()).as_ref() == Some(origin);
        // A line that was not written completely is no batch.
        let batches: Vec<Batch> = match is_same {
            true => lines.map_while(|line| serde_json::from_str(line).ok()).collect(),
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

    /// Sends a request until it is answered, and returns the answer with its warnings.
    fn ask(&self, send: impl Fn() -> Sent) -> anyhow::Result<(Vec<u8>, Vec<String>)> {
        let began = Instant::now();
        loop {
            let problem = match send() {
                Err(error) => error.to_string(),
                Ok(mut response) => {
                    let status = response.status();
                    let warnings = response.headers().get(WARNINGS).and_then(|value| value.to_str().ok());
                    let warnings =
                        warnings.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
                    match response.body_mut().with_config().limit(u64::MAX).read_to_vec() {
                        Ok(body) if status == StatusCode::OK => return Ok((body, warnings)),
                        Ok(body) => {
                            let told = reason(&body).unwrap_or_else(|| format!("status {status}"));
                            let waits = [StatusCode::SERVICE_UNAVAILABLE, StatusCode::GATEWAY_TIMEOUT];
                            if !waits.contains(&status) {
                                return Err(input(format!("{}: {told}", self.url)));
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
