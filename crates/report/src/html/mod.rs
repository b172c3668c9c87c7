//! A run, or several, as one HTML page that opens anywhere, offline, without any experiment's code.
//!
//! The answer comes first; then a line a claim, by experiment, that opens in place; below the claims of an experiment
//! what was measured, with its question, pictures, table and threats. Pictures are drawn here, as SVG. Those of what is
//! closed are packed (`pack`) until it is opened; everything else is there without JavaScript. A content security
//! policy lets nothing else run, and nothing be fetched.
//!
//! Templates, style and scripts are in this crate's `web` folder: `report.js` finds, opens and copies, `plot.js` shows
//! the numbers of pictures.

mod claim;
mod experiment;
mod facts;
mod lead;
mod mark;
mod markup;
mod pack;
mod page;
mod picture;
mod table;

pub use experiment::sections;
pub use lead::missing_trials;
pub use page::page;
pub use picture::pictures;
