//! Output that is available in all formats: text, Markdown, JSON and CSV.

use serde::Serialize;

use crate::grid::Grid;
use crate::terminal::Style;
use crate::text::{parted, plain};
use crate::{json, markdown};

/// The height of a plot in a terminal, in lines.
#[cfg(feature = "plot")]
const PLOT_LINES: usize = 18;

/// A result that can be written in all formats, for people and for programs.
pub trait Report: Serialize {
    /// The name and version of the JSON schema.
    const SCHEMA: &'static str;

    /// Returns the elements of the human-readable output, in display order.
    fn elements(&self) -> Vec<Element>;

    /// Returns the result as CSV; the first line has the names of the columns.
    fn csv(&self) -> String;

    /// Returns the elements as text for a terminal.
    fn text(&self, style: &Style) -> String {
        parted(self.elements().iter().map(|element| element.text(style)))
    }

    /// Returns the elements as Markdown.
    fn markdown(&self) -> String {
        parted(self.elements().iter().map(Element::markdown))
    }

    /// Returns the result as a JSON object, whose first key is the schema.
    fn json(&self) -> String {
        #[derive(Serialize)]
        struct Schema<'a, T: ?Sized> {
            schema: &'static str,
            #[serde(flatten)]
            report: &'a T,
        }
        json::object(&Schema { schema: Self::SCHEMA, report: self })
    }
}

/// An element of the human-readable output. Names in its sentences are between special characters, see
/// `crate::text::NAME_START`.
pub enum Element {
    /// Sentences, each of which is a paragraph.
    Sentences(Vec<String>),
    /// Sentences that together are one paragraph in Markdown.
    Paragraph(Vec<String>),
    /// A sentence that is printed in a terminal, but not in Markdown.
    Note(String),
    /// A table, drawn as characters or as Markdown.
    Table(Grid),
    /// A plot. Only a terminal draws it. Markdown has the title in its place, or nothing if there is no title.
    #[cfg(feature = "plot")]
    Plot(Box<ascertain_plot::Plot>, Option<String>),
}

impl Element {
    fn text(&self, style: &Style) -> String {
        match self {
            Element::Sentences(sentences) | Element::Paragraph(sentences) => style.paragraphs(sentences),
            Element::Note(sentence) => style.paragraph(&plain(sentence)),
            Element::Table(grid) => style.table(grid),
            #[cfg(feature = "plot")]
            Element::Plot(plot, _) => ascertain_plot::text::render(plot, style.width, PLOT_LINES, style.color),
        }
    }

    fn markdown(&self) -> String {
        match self {
            Element::Sentences(sentences) => parted(sentences.iter().map(|sentence| markdown::paragraph(sentence))),
            Element::Paragraph(sentences) => markdown::paragraph(&sentences.join(" ")),
            Element::Note(_) => String::new(),
            Element::Table(grid) => markdown::table(grid),
            #[cfg(feature = "plot")]
            Element::Plot(_, title) => title.as_deref().map_or_else(String::new, markdown::paragraph),
        }
    }
}
