//! Arguments of `fet predict`.

use std::path::PathBuf;

use super::model::ModelArguments;

/// Arguments of `fet predict`.
#[derive(Debug, Clone, clap::Args)]
pub struct PredictArguments {
    /// Finished run that predicts.
    #[command(flatten)]
    pub model: ModelArguments,
    /// New records: a table with the primary's key and feature columns; `-` reads standard input.
    #[arg(long)]
    pub rows: PathBuf,
    /// Output file for the predictions: .csv, .tsv (either with .gz), .parquet or .arrow. `-`, the default,
    /// writes CSV to standard output.
    #[arg(long, default_value = "-")]
    pub out: PathBuf,
    /// Column of the new records, such as an identifier, to copy into the predictions.
    #[arg(long, value_name = "COLUMN")]
    pub id: Option<String>,
    /// Column of the new records with their labels, where they are known. The command prints the run's metrics,
    /// the bias and the coverage on these records, and warns if they are worse than on the run's test rows.
    #[arg(long, value_name = "COLUMN")]
    pub labels: Option<String>,
    /// Column of dates for the error and coverage by time [default: the column of a split by time, or else
    /// the first column of dates].
    #[arg(long, value_name = "COLUMN", requires = "labels")]
    pub time: Option<String>,
    /// File for intervals or sets of classes that are calibrated again, on the records with a label.
    /// `--calibration FILE` uses them. The model does not change.
    #[arg(long, value_name = "FILE", requires = "labels")]
    pub recalibrate: Option<PathBuf>,
    /// File for the reliance of each prediction on each party and column: .csv, .tsv (either with .gz),
    /// .parquet or .arrow. It needs the tables of all parties and the training rows, and takes as long as 20
    /// predictions for each party and column.
    #[arg(long, value_name = "FILE", conflicts_with = "parties")]
    pub explain: Option<PathBuf>,
    /// File with the token of a service (`fet serve`).
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}
