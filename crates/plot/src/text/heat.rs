//! Heat maps in characters: a shade for each cell. If the columns are wide enough, each cell also shows its value. If
//! the terminal has colours, the cells have the colours of the scale.

use unicode_width::UnicodeWidthStr;

use super::canvas::{Canvas, Frame, Paint};
use super::{Drawing, fitting, y_ticks};
use crate::ink::terminal_ramp;
use crate::scene::Scene;
use crate::svg::colored_cells;
use crate::values::Values;

/// Shades of cells, from low to high.
const SHADES: [&str; 5] = ["·", "░", "▒", "▓", "█"];

fn shade(share: f64) -> &'static str {
    SHADES[((share * SHADES.len() as f64) as usize).min(SHADES.len() - 1)]
}

/// Returns the [`Paint`] of a shade. Text and background have the same colour, so that the character itself is
/// invisible.
fn shade_paint(share: f64) -> Paint {
    let (color, _) = terminal_ramp(share);
    Paint::Ground { color, text: color }
}

/// Returns the [`Paint`] of a number in a cell: the cell's colour as the background, and a readable text colour.
fn number_paint(share: f64) -> Paint {
    let (color, text) = terminal_ramp(share);
    Paint::Ground { color, text }
}

impl Drawing<'_> {
    /// Draws a heat map: title, scale of shades, and a line for each row of cells. If the terminal has fewer columns
    /// than the map, several cells share a column, which shows the greatest of their values.
    pub(super) fn heat_map(&self) -> Canvas {
        let (scene, width) = (self.scene, self.width);
        let Some((cells, label, values)) = colored_cells(scene) else { return Canvas::new(width, 0) };
        let (columns, rows) = (Scene::names(&scene.x).unwrap_or(1), Scene::names(&scene.y).unwrap_or(1));
        let y_ticks = y_ticks(&scene.y, rows, width / 3);
        let left = y_ticks.iter().map(|tick| tick.label.width()).max().unwrap_or(0) + 1;
        let number = cells.iter().map(|cell| values.short(cell.value).width()).max().unwrap_or(0);
        let room = width - left;
        // A cell has a shade and a number with a space on each side if there is enough width, otherwise only a shade.
        let cell_width = if room / columns >= number + 3 { number + 3 } else { (room / columns).clamp(1, 2) };
        let frame = Frame { left, top: 5, width: (cell_width * columns).min(room), height: rows };
        let mut canvas = Canvas::new(width, frame.top + rows + 2);
        canvas.write(0, 0, &fitting(&scene.plot.title, width), Paint::Bold);
        canvas.write(0, 4, &fitting(&scene.y.axis.label, width), Paint::Plain);
        self.write_shades(&values, label, &mut canvas);
        for tick in &y_ticks {
            let column = left - 1 - tick.label.width();
            canvas.write(column, frame.row(tick.share), &tick.label, Paint::Plain);
        }
        let mut greatest = vec![f64::NEG_INFINITY; columns];
        for row in 0..rows {
            greatest.fill(f64::NEG_INFINITY);
            for cell in cells.iter().filter(|cell| cell.y == row && cell.x < columns) {
                let column = if cell_width * columns <= room { cell.x } else { cell.x * room / columns };
                let shown = &mut greatest[column];
                if values.share(cell.value).is_some() {
                    *shown = shown.max(cell.value);
                }
            }
            for (column, value) in greatest.iter().enumerate() {
                let Some(share) = values.share(*value) else { continue };
                let (at, row) = (left + column * cell_width, frame.top + row);
                if cell_width > 2 {
                    let text = format!("{:>width$} ", values.short(*value), width = cell_width - 2);
                    canvas.write(at, row, shade(share), shade_paint(share));
                    canvas.write(at + 1, row, &text, number_paint(share));
                } else {
                    canvas.write(at, row, &shade(share).repeat(cell_width), shade_paint(share));
                }
            }
        }
        let most_name = if cell_width > 6 { cell_width - 1 } else { 8 };
        let x_ticks = self.x_ticks(&frame, most_name);
        self.write_x_labels(&frame, &x_ticks, frame.top + rows, &mut canvas);
        canvas
    }

    /// Writes the legend: the label, and the shades between the lowest and the highest value.
    fn write_shades(&self, values: &Values, label: &str, canvas: &mut Canvas) {
        let unit = if values.symbol.is_empty() { String::new() } else { format!(", {}", values.symbol) };
        canvas.write(0, 1, &fitting(&format!("{label}{unit}"), self.width), Paint::Plain);
        let (low, high) = values.ruler.ends();
        let low = values.short(low);
        canvas.write(0, 2, &low, Paint::Plain);
        let mut column = low.width() + 1;
        for index in 0..SHADES.len() {
            let share = (index as f64 + 0.5) / SHADES.len() as f64;
            canvas.write(column, 2, &shade(share).repeat(3), shade_paint(share));
            column += 3;
        }
        canvas.write(column + 1, 2, &values.short(high), Paint::Plain);
    }
}
