//! A run, or several, as one HTML page that opens anywhere, offline, without any experiment's code.
//!
//! The verdicts come first, each as a plain sentence and a line of figures; then each experiment with its
//! question, pictures, table and threats. Pictures are drawn here, as SVG, so that the page says everything
//! without JavaScript; a script adds tooltips only. A content security policy lets nothing else run, and
//! nothing be fetched.
//!
//! Templates, style and script are in this crate's `web` folder.

mod claim;
mod experiment;
mod facts;
mod lead;
mod mark;
mod markup;
mod pack;
mod page;
mod picture;
mod policy;
mod table;

pub use lead::missing_trials;
pub use page::page;
pub use picture::plots;
