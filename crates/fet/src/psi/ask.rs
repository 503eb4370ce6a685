//! The asker's first step: a request, and the secret that opens its answer.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use fet_linkage::psi::labelled::Asker;

use super::Form;
use super::files::{self, Request, State};
use super::table::{Compare, Named};
use crate::input::input;
use crate::link::progress::Progress;
use crate::output;

/// The arguments of `fet psi ask`.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    named: Named,
    /// What you want; the owner decides whether you get it.
    #[arg(long, value_enum, value_name = "WHAT", default_value = "links")]
    want: Form,
    /// How all keys are compared [default: each column as its cells suggest: as numbers where all are plainly numbers, verbatim where they
    /// look like identifiers (077, 1.10, 1e2), else normal].
    #[arg(long, value_enum, value_name = "HOW")]
    compare: Option<Compare>,
    /// Compares no column as numbers: 77 and 77.0 are then two keys.
    #[arg(long)]
    text: bool,
    /// The file of the request, for the owner of the other table.
    #[arg(long)]
    out: PathBuf,
    /// The file of the secret, which only you may read; one that is there is not replaced.
    #[arg(long, value_name = "STATE")]
    secret: PathBuf,
}

/// Writes request and secret, and returns what to say.
pub(super) fn ask(arguments: &Arguments) -> anyhow::Result<String> {
    let Arguments { named, want, compare, text, out, secret } = arguments;
    output::check_own("--out", out, [&named.table])?;
    output::check_own("--secret", secret, [&named.table])?;
    files::spare_secret("--out", out)?;
    if secret.symlink_metadata().is_ok() {
        return Err(taken(secret));
    }
    if same(out, secret) {
        return Err(input(format!(
            "--secret {}: is the file of the request, too; name another",
            secret.display()
        )));
    }
    let own = named.asked(*compare, *text)?;
    let (told, rows) = (own.told(&named.keys), own.keys.len());
    let progress = Progress::of("blinding", "blinded", rows);
    let (asker, elements) = Asker::ask(own.keys, &mut rand::rng(), &|count| progress.add(count));
    drop(progress);
    let id = fet_files::hex(&asker.request());
    let state = State { request: id.clone(), wants: *want, rows, used: false };
    let request = Request { id, wants: *want, compared: own.compared, rows };
    claim(secret)?;
    let both = || {
        files::write(secret, &state, &[&asker.to_bytes()])?;
        if same(out, secret) {
            return Err(input(format!(
                "--out {}: leads to the file of the secret; name another",
                out.display()
            )));
        }
        files::write(out, &request, &[&elements])
    };
    if let Err(error) = both() {
        // Nobody can answer what was not asked; the first error is the one to report.
        let _ = std::fs::remove_file(secret);
        return Err(error);
    }
    Ok(format!(
        "asked for {} of {rows} rows, {} distinct keys\n{told}request written to {}: for the owner of the other table\n\
         secret written to {}: it stays here, and opens one answer\n",
        want.name(),
        asker.distinct(),
        out.display(),
        secret.display()
    ))
}

fn taken(secret: &Path) -> anyhow::Error {
    let problem =
        "is there already, and may be the secret of a request that waits for its answer; name another file";
    input(format!("--secret {}: {problem}", secret.display()))
}

/// Makes the file, which must be new: another request may have been given the same name since that was looked at.
fn claim(secret: &Path) -> anyhow::Result<()> {
    match std::fs::OpenOptions::new().write(true).create_new(true).open(secret) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(taken(secret)),
        // What else is wrong is said by who writes it.
        _ => Ok(()),
    }
}

/// Whether two names are of one file, which need not be there.
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
