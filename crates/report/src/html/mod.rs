//! The HTML page of a run, or of several. It works everywhere, offline, and without the code of any experiment.
//!
//! The answer comes first. Then there is a line for each claim, grouped by experiment; a click opens its details. Below
//! the claims of an experiment are its question, pictures, table and threats. Pictures are SVG; those in closed
//! sections are compressed (see `pack`) and need JavaScript to open. Everything else works without JavaScript. A
//! content security policy blocks all other scripts and all requests.
//!
//! Templates, style and scripts are in the folder `web` of this crate. `report.js` searches, opens and copies claims,
//! `plot.js` shows the numbers in pictures.

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
pub use page::{page, page_with_series};
pub use picture::pictures;
