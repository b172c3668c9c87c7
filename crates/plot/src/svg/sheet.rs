//! The style sheet of plots.

use std::fmt::Write;

use super::{DARK, GROUND, LIGHT};

/// The CSS rules of marks, except their colours.
const LOOK: &str = "\
.plot{font:12px system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;max-width:100%;height:auto}\
.plot text{fill:currentColor}.plot path{fill:none;stroke:currentColor}\
.plot .line,.plot .step{stroke-width:2;stroke-linejoin:round}.plot .dots,.plot .within{stroke-linecap:round}\
.plot .band,.plot .area{fill:currentColor;fill-opacity:.18;stroke:none}.plot .open{fill-opacity:.07}\
.plot .marks,.plot .estimates{stroke:none}.plot .mark{fill:currentColor;stroke:none}.plot .dot{fill-opacity:.85}\
.plot .ring{stroke-width:1.4}.plot marker{overflow:visible}.plot .interval{stroke-width:1.75}\
.plot .rule{stroke-width:1.25;stroke-dasharray:5 3}.plot .rows{stroke-dasharray:1 3}\
.plot .y,.plot .slanted,.plot .at-rows{text-anchor:end}.plot .x{text-anchor:middle}.plot .at-rows{font-variant-numeric:tabular-nums}";

/// Returns the style sheet for plots in a page. The page also needs the declarations of
/// [`properties`](super::properties).
pub fn sheet() -> String {
    colors(|name| format!("var(--{name})")) + LOOK
}

/// Returns the style sheet for an SVG document. It has no custom properties, because not every SVG renderer supports
/// them.
pub(super) fn of_document() -> String {
    let [light, dark] = [false, true].map(|is_dark| {
        let known = palette(is_dark);
        colors(|name| {
            known.iter().find(|(other, _)| other == name).map_or_else(String::new, |(_, hex)| hex.to_string())
        })
    });
    format!("{light}{LOOK}@media screen and (prefers-color-scheme:dark){{{dark}}}")
}

/// Returns the names of all colours, each with its hexadecimal notation.
pub(super) fn palette(is_dark: bool) -> Vec<(String, &'static str)> {
    let series = if is_dark { DARK } else { LIGHT };
    let of_series = series.into_iter().enumerate().map(|(index, hex)| (format!("s{index}"), hex));
    let ground = GROUND.into_iter().map(|(name, light, dark)| (name.to_string(), if is_dark { dark } else { light }));
    of_series.chain(ground).collect()
}

/// Returns a CSS rule for each colour. The rule applies the colour to elements whose class is the name of the colour.
/// The argument `color` returns the CSS value for the name of a colour.
fn colors(color: impl Fn(&str) -> String) -> String {
    let mut rules = format!(".plot{{color:{}}}.plot .ring{{fill:{}}}", color("ink"), color("paper"));
    for (name, _) in palette(false) {
        let _ = write!(rules, ".plot .{name}{{color:{}}}", color(&name));
    }
    rules
}
