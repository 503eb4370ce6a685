//! The querier's first step: creates a request, and the secret that opens its answer.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use fet_linkage::psi::labelled::Querier;

use super::files::{self, PsiResult, RequestHeader, SecretHeader};
use super::table::{KeyComparison, TableArguments};
use crate::link::progress::RowProgress;
use fet_io::input::input;
use fet_io::output;

/// Arguments of `fet psi ask`.
#[derive(Debug, Clone, clap::Args)]
pub struct PsiAskArguments {
    #[command(flatten)]
    named: TableArguments,
    /// Result that you want; the data holder of the other table decides whether you get it.
    #[arg(long, value_enum, value_name = "WHAT", default_value = "links")]
    want: PsiResult,
    /// Comparison of all keys [default: by the cells of each column: as numbers if all cells are numbers
    /// without a leading zero, verbatim if they look like identifiers, else normal].
    #[arg(long, value_enum, value_name = "HOW")]
    compare: Option<KeyComparison>,
    /// Compare no column as numbers; 77 and 77.0 are then two keys.
    #[arg(long)]
    text: bool,
    /// Output file for the request, to send to the data holder of the other table.
    #[arg(long)]
    out: PathBuf,
    /// Output file for the secret, which only you may read; the command never replaces an existing file.
    #[arg(long, value_name = "STATE")]
    secret: PathBuf,
}

/// Writes the request and the secret, and returns the summary.
pub(super) fn ask(arguments: &PsiAskArguments) -> anyhow::Result<String> {
    let PsiAskArguments { named, want, compare, text, out, secret } = arguments;
    output::check_own("--out", out, [&named.table])?;
    output::check_own("--secret", secret, [&named.table])?;
    files::spare_secret("--out", out)?;
    if secret.symlink_metadata().is_ok() {
        return Err(secret_exists(secret));
    }
    if same(out, secret) {
        return Err(input(format!(
            "--secret {}: is also the file of the request; name another file",
            secret.display()
        )));
    }
    let own = named.querier_keys(*compare, *text)?;
    let (told, rows) = (own.describe(&named.keys), own.keys.len());
    let progress = RowProgress::start("blinding", "blinded", rows);
    let (querier, elements) = Querier::ask(own.keys, &mut rand::rng(), &|count| progress.add(count));
    drop(progress);
    let id = fet_io::hex(&querier.request());
    let state = SecretHeader { request: id.clone(), wants: *want, rows, used: false };
    let request = RequestHeader { id, wants: *want, compared: own.compared, rows };
    claim(secret)?;
    let both = || {
        files::write(secret, &state, &[&querier.to_bytes()])?;
        if same(out, secret) {
            return Err(input(format!(
                "--out {}: leads to the file of the secret; name another file",
                out.display()
            )));
        }
        files::write(out, &request, &[&elements])
    };
    if let Err(error) = both() {
        // Without a request the secret is useless; the first error is the one to report.
        let _ = std::fs::remove_file(secret);
        return Err(error);
    }
    Ok(format!(
        "asked for {} of {rows} rows, {} distinct keys\n{told}request written to {}: send it to the data holder of the other \
         table\nsecret written to {}: keep it; it opens one answer\n",
        want.name(),
        querier.distinct(),
        out.display(),
        secret.display()
    ))
}

fn secret_exists(secret: &Path) -> anyhow::Error {
    let problem =
        "exists already, and may be the secret of a request without an answer yet; name another file";
    input(format!("--secret {}: {problem}", secret.display()))
}

/// Creates the file, which must not exist: another process may have created a file of the same name after the
/// check.
fn claim(secret: &Path) -> anyhow::Result<()> {
    match std::fs::OpenOptions::new().write(true).create_new(true).open(secret) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(secret_exists(secret)),
        // Writing the file reports any other problem.
        _ => Ok(()),
    }
}

/// Returns true if two paths name the same file, which need not exist.
fn same(one: &Path, other: &Path) -> bool {
    let whole = |path: &Path| {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Some((folder.canonicalize().ok()?, path.file_name()?.to_os_string()))
    };
    let real = |path: &Path| path.canonicalize().ok();
    one == other
        || (real(one).is_some() && real(one) == real(other))
        || (whole(one).is_some() && whole(one) == whole(other))
}
