//! Arguments of `fet serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::nats::NatsArguments;
use crate::predict::ModelArguments;
use crate::reporter::{Log, LogLevel};

/// Arguments of `fet serve`.
#[derive(Debug, Clone, clap::Args)]
pub struct ServeArguments {
    /// Finished run that predicts.
    #[command(flatten)]
    pub model: ModelArguments,
    /// Address and port on which the server listens; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8787")]
    pub listen: SocketAddr,
    /// File with the token that clients send as `Authorization: Bearer TOKEN`; required for addresses that other
    /// machines reach.
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Requests that may wait; the server refuses further ones with 503 until one is answered.
    #[arg(long, value_name = "NUMBER", default_value_t = 64)]
    pub queue: u16,
    /// Largest number of rows of a request.
    #[arg(long, value_name = "NUMBER", default_value_t = 10_000)]
    pub most_rows: usize,
    /// Number of records whose representations the service keeps. A request whose keys are all among them is answered without
    /// the parties, which do not count it and cannot refuse it.
    #[arg(long, value_name = "NUMBER", default_value_t = 0, requires = "parties")]
    pub cache: usize,
    /// Seconds within which a request is answered, or ends with 504; a request may state a shorter time.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub timeout: u32,
    /// Server that passes requests as messages.
    #[command(flatten)]
    pub nats: NatsArguments,
    /// Form of log messages.
    #[arg(long, value_enum, default_value_t)]
    pub log: Log,
    /// Least important messages that are shown.
    #[arg(long, value_enum, default_value_t)]
    pub log_level: LogLevel,
}
