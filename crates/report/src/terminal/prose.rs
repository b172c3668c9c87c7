//! Converting Markdown to text for a terminal. Paragraphs and lists are wrapped, code stays unchanged, and headings are
//! bold if there are colours.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::{Style, wrapped};
use crate::grid::{Cell, Grid};
use crate::text::{escape_controls, escape_controls_in_lines};

/// Converts Markdown with headings, paragraphs, lists, tables and code. Pictures are left out. Other elements are
/// reduced to their text.
pub fn prose(markdown: &str, style: &Style) -> String {
    let mut drawn = Vec::new();
    let (mut text, mut depth) = (String::new(), 0_usize);
    // The rows of the table that is being read, each with its cells. The first row has the headings.
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut in_picture = false;
    for event in Parser::new_ext(markdown, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Image { .. }) => in_picture = true,
            Event::End(TagEnd::Image) => in_picture = false,
            _ if in_picture => {}
            Event::Start(Tag::TableHead | Tag::TableRow) => rows.push(Vec::new()),
            Event::End(TagEnd::TableCell) => {
                let cell = std::mem::take(&mut text);
                rows.last_mut().into_iter().for_each(|row| row.push(cell.clone()));
            }
            Event::End(TagEnd::Table) => drawn.push(style.table(&grid(&std::mem::take(&mut rows)))),
            // A list or code may begin within an item of a list, after the text of the item.
            Event::Start(tag @ (Tag::List(_) | Tag::CodeBlock(_))) => {
                drawn.extend(block(&std::mem::take(&mut text), depth, style));
                depth += usize::from(matches!(tag, Tag::List(_)));
            }
            Event::Text(words) | Event::Html(words) | Event::InlineHtml(words) => text += &words,
            Event::Code(code) => text += &format!("`{code}`"),
            Event::SoftBreak | Event::HardBreak => text.push(' '),
            Event::End(TagEnd::CodeBlock) => {
                let code = escape_controls_in_lines(std::mem::take(&mut text).trim_end());
                drawn.push(format!("    {}\n", code.replace('\n', "\n    ")));
            }
            Event::End(TagEnd::Heading(_)) => {
                let heading = escape_controls(&std::mem::take(&mut text));
                drawn.push(if style.color { format!("\x1b[1m{heading}\x1b[0m\n") } else { format!("{heading}\n") });
            }
            Event::End(TagEnd::Paragraph | TagEnd::Item) => {
                drawn.extend(block(&std::mem::take(&mut text), depth, style));
            }
            Event::End(TagEnd::List(_)) => depth -= 1,
            _ => {}
        }
    }
    drawn.join("\n")
}

/// Returns the table whose first row has the headings.
fn grid(rows: &[Vec<String>]) -> Grid {
    let Some((headings, rows)) = rows.split_first() else { return Grid::new(&[]) };
    let mut grid = Grid::new(&headings.iter().map(String::as_str).collect::<Vec<_>>());
    grid.rows = rows.iter().map(|row| row.iter().map(|cell| Cell::from(cell.as_str())).collect()).collect();
    grid
}

/// Draws a paragraph if `depth` is 0, otherwise an item of a list that is nested to this depth. `None` if the text is
/// empty.
fn block(text: &str, depth: usize, style: &Style) -> Option<String> {
    let indent = 2 * depth;
    let lines = wrapped(text, style.columns().saturating_sub(indent as u16));
    let (bullet, gap) = if depth > 0 { ("- ", " ".repeat(indent)) } else { ("", String::new()) };
    let lines = format!(
        "{}{bullet}{}\n",
        " ".repeat(indent.saturating_sub(2)),
        lines.trim_end().replace('\n', &format!("\n{gap}"))
    );
    (!text.trim().is_empty()).then_some(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_is_drawn_as_text() {
        let markdown = "# Title\n\n**Question.** How *fast* is `sum()` of [numbers](https://example.org), and why would \
                        anybody\nask?\n\n- one item that is too long for the line, which is wrapped\n  - within\n- two\n\n```text\na  b\n  c\n```\n";
        let drawn = prose(markdown, &Style { color: false, width: 40 });
        let expected = "Title\n\nQuestion. How fast is `sum()` of\nnumbers, and why would anybody ask?\n\n- one item that is too long for the\n  line, which is wrapped\n\n  - within\n\n- two\n\n    a  b\n      c\n";
        assert_eq!(drawn, expected);
        let pictured = "a\n\n![A picture](picture.svg)\n\nb ![another](two.svg)\n";
        assert_eq!(prose(pictured, &Style::default()), "a\n\nb\n", "pictures are left out");
        let table = prose("| a | b |\n|---|---|\n| `c` | d e |\n", &Style::default());
        let cells: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!((&cells[0][..], &cells[2][..]), (&["a", "b"][..], &["`c`", "d", "e"][..]), "{table}");
        assert_eq!(prose("- so:\n  ```\n  code\n  ```\n", &Style::default()), "- so:\n\n    code\n");
        assert!(prose(markdown, &Style { color: true, width: 40 }).starts_with("\x1b[1mTitle\x1b[0m\n"));
        assert!(
            !prose("a\x1b[31mb\n\n    \x1b[31m\n", &Style::default()).contains('\x1b'),
            "nothing steers the terminal"
        );
    }
}
