//! Record linkage and private set intersection on the command line: `fet link` and `fet psi`.
//!
//! The crate contains no tensor library. The program `fet` has both commands too, and this crate's own program `fet-link` has them for
//! those who link tables without training.

pub mod link;
pub mod psi;

use std::process::ExitCode;

/// Prints the summary of a command: on standard error if standard output holds the links.
pub fn report((summary, links_on_stdout): &(String, bool)) -> anyhow::Result<ExitCode> {
    match links_on_stdout {
        true => fet_io::note!("{}", summary.trim_end()),
        false => fet_io::answer(summary)?,
    }
    Ok(ExitCode::SUCCESS)
}
