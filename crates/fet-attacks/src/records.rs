//! What the primary learns of single records: whether a secondary has one, and whether a link is a true one.

mod linkage;
mod membership;

pub use linkage::LinkageSettings;
pub use membership::MembershipSettings;
