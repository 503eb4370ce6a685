//! The end of a run: best models are written, and what was saved on the way is forgotten.

use fet_core::message::Request;

use super::{RunError, Trainer};

impl Trainer {
    /// Has the secondaries write their best models; the run is over.
    pub fn finish(&mut self) -> Result<(), RunError> {
        let here = self.here();
        Ok(self.federation.command(&here, vec![Request::Finish; here.len()])?)
    }

    /// Has the secondaries forget what they saved on the way; the report is written.
    pub fn forget(&mut self) -> Result<(), RunError> {
        let here = self.here();
        Ok(self.federation.command(&here, vec![Request::Forget; here.len()])?)
    }
}
