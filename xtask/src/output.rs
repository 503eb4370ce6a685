//! What every command does with its output; the harness of studies has the same needs and defines it.

pub(crate) use fet_study::output::{Failed, answer, shell_quoted, write};
