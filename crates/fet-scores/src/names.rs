//! What is said about a name that nobody knows.
//!

/// "; did you mean ...?" for the candidate most similar to `given`, or nothing if none is similar.
pub fn did_you_mean<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    known
        .into_iter()
        .map(|name| (strsim::jaro_winkler(given, name), name))
        .filter(|(score, _)| *score > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| format!("; did you mean \"{name}\"?"))
        .unwrap_or_default()
}
