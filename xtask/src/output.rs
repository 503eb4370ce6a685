//! Output of the commands, defined in `fet-study`, which has the same needs.

pub(crate) use fet_study::output::{Failed, answer, shell_quoted, write};
