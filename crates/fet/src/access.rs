//! Token of the service and its header with warnings, which its client shares.

use std::path::Path;

use fet_io::input::input;

/// Header of an answer with its warnings, a list of texts in JSON.
pub(crate) const WARNINGS: &str = "fet-warnings";
/// Header of an answer with the digest of the model, its calibration and its tables.
pub(crate) const MODEL: &str = "fet-model";
/// Shortest token, in bytes.
const SHORTEST_TOKEN: usize = 16;

/// Reads a token, one line of a file that other users cannot read.
pub(crate) fn read_token(path: &Path) -> anyhow::Result<String> {
    let text = fet_io::read_to_string(path).map_err(|error| input(format!("{}: {error}", path.display())))?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = path.metadata().map_or(0, |found| found.permissions().mode());
        if mode & 0o077 != 0 {
            return Err(input(format!(
                "{}: other users can read the token; `chmod 600` the file",
                path.display()
            )));
        }
    }
    let token = text.trim();
    let fits = token.len() >= SHORTEST_TOKEN && token.bytes().all(|byte| byte.is_ascii_graphic());
    if !fits {
        return Err(input(format!(
            "{}: a token must have at least {SHORTEST_TOKEN} visible ASCII characters and no spaces, as `openssl rand -hex 16` \
             prints",
            path.display()
        )));
    }
    Ok(token.to_string())
}
