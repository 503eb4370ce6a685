//! The guides as a site: the list of pages, the targets of their links, and the source folder for mdBook.
//!
//! The pages remain readable on a forge: Markdown with links between files. This library does not render
//! pages; the program `fet-site` with the feature `book` does.

pub mod html;
pub mod markdown;
pub mod stage;
