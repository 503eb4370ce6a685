//! The guides as a site: which pages it has, where their links lead, and the folder that mdBook makes it from.
//!
//! The pages stay what they are on a forge: Markdown with links between files. Nothing here renders; with the feature `book`
//! the program `fet-site` does.

pub mod html;
pub mod markdown;
pub mod stage;
