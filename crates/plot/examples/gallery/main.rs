//! Writes a page with plots of every kind in both sizes, on light and on dark background: `cargo run -p ascertain-plot
//! --example gallery -- FOLDER`. The folder also gets each plot as an SVG document and as text.

mod plots;

use std::error::Error;
use std::fs;
use std::path::PathBuf;

use ascertain_plot::svg::{self, Size};
use ascertain_plot::text;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "target/gallery".into()));
    fs::create_dir_all(&folder)?;
    let plots = plots::all();
    for is_dark in [false, true] {
        let mut page = format!(
            "<!doctype html><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
             <title>Gallery</title><style>:root{{{}}}{}body{{background:var(--paper);margin:16px;\
             font-family:system-ui,sans-serif;color:var(--ink)}}section{{display:flex;gap:32px;align-items:start}}</style>",
            svg::properties(is_dark),
            svg::sheet()
        );
        for plot in &plots {
            let [wide, narrow] = [Size::Wide, Size::Narrow].map(|size| svg::render(plot, size));
            page += &format!("<section>{wide}{narrow}</section><hr>\n");
        }
        fs::write(folder.join(if is_dark { "dark.html" } else { "light.html" }), page)?;
    }
    for (index, plot) in plots.iter().enumerate() {
        fs::write(folder.join(format!("{index:02}.svg")), svg::standalone(plot))?;
        for (kind, color) in [("txt", false), ("ansi", true)] {
            fs::write(folder.join(format!("{index:02}.{kind}")), text::render(plot, 80, 24, color))?;
        }
    }
    Ok(())
}
