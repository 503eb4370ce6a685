//! What linkers that read no key have in common: the primary sends a zero for each key.
//!
//! The zeros say how many keys there are: to claim many keys, a primary must send as many bytes. Which records belong
//! to a row is decided in `aligned` and `random`.

use fet_core::data::{KeyKind, Keys, Sealed};
use fet_core::linker::{About, Asker, LinkError, LinkTask, Reveals, check_shapes};

use crate::wire;

/// What such a linker says about itself: it tells nothing but a number, and gives no similarities.
pub(crate) fn about(neighbours: usize) -> About {
    let reveals = Reveals {
        secondary: "how many primary records there are",
        primary: "nothing",
        eavesdropper: "how many primary records there are",
    };
    let about = About::new(neighbours, KeyKind::Either, reveals);
    About { similarities: false, in_the_clear: false, ..about }
}

/// The primary's side: a zero for each key.
pub(crate) struct Count;

impl Asker for Count {
    fn conceal(&mut self, queries: &Keys) -> Result<Keys, LinkError> {
        Ok(Keys::Sealed(Sealed::new(queries.rows(), queries.columns(), vec![0; queries.rows()])))
    }
}

/// The number of keys that a primary sent as zeros; the task must have `neighbours` records or more.
pub(crate) fn count(task: &LinkTask<'_>, neighbours: usize) -> Result<usize, LinkError> {
    let (queries, records) = (wire::sealed(task.queries)?, task.records);
    check_shapes(queries.columns(), records.columns(), records.rows(), neighbours, false)?;
    wire::expect(queries.bytes().len(), queries.rows(), 1)?;
    Ok(queries.rows())
}
