//! Colours and line widths can be distinguished by colour-blind readers.

use ascertain_plot::svg::{DARK, GROUND, LIGHT};

use super::*;

/// Returns the relative luminance and the OKLab coordinates (Ottosson 2020) of a colour, as seen with this colour
/// vision.
fn seen(hex: &str, vision: [[f64; 3]; 3]) -> (f64, [f64; 3]) {
    let apply = |matrix: [[f64; 3]; 3], v: [f64; 3]| matrix.map(|row| row[0] * v[0] + row[1] * v[1] + row[2] * v[2]);
    let linear = [1, 3, 5].map(|at| {
        let value = f64::from(u8::from_str_radix(&hex[at..at + 2], 16).unwrap()) / 255.0;
        if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    });
    let [red, green, blue] = apply(vision, linear).map(|v| v.clamp(0.0, 1.0));
    let cones = apply(
        [
            [0.412_221_470_8, 0.536_332_536_3, 0.051_445_992_9],
            [0.211_903_498_2, 0.680_699_545_1, 0.107_396_956_6],
            [0.088_302_461_9, 0.281_718_837_6, 0.629_978_700_5],
        ],
        [red, green, blue],
    );
    let lab = apply(
        [
            [0.210_454_255_3, 0.793_617_785_0, -0.004_072_046_8],
            [1.977_998_495_1, -2.428_592_205_0, 0.450_593_709_9],
            [0.025_904_037_1, 0.782_771_766_2, -0.808_675_766_0],
        ],
        cones.map(f64::cbrt),
    );
    (0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2], lab)
}

/// For each kind of colour vision, the matrix that is applied to linear red, green and blue. The kinds are normal,
/// protanopia, deuteranopia and tritanopia (Machado, Oliveira and Fernandes 2009, severity 1).
const VISIONS: [[[f64; 3]; 3]; 4] = [
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
    [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
];

#[test]
fn colours_are_told_apart_by_everybody() {
    let contrast = |a: &str, b: &str| {
        let [a, b] = [a, b].map(|hex| seen(hex, VISIONS[0]).0 + 0.05);
        a.max(b) / a.min(b)
    };
    let paper = GROUND.iter().find(|(name, ..)| *name == "paper").unwrap();
    for (colors, ground) in [(LIGHT, paper.1), (DARK, paper.2)] {
        for (index, color) in colors.iter().enumerate() {
            assert!(contrast(color, ground) >= 3.0, "{color} on {ground}");
            for other in &colors[..index] {
                for vision in VISIONS {
                    let [a, b] = [color, other].map(|hex| seen(hex, vision).1);
                    let distance = (0..3).map(|at| (a[at] - b[at]).powi(2)).sum::<f64>().sqrt();
                    assert!(distance >= 0.1, "{color} and {other} are {distance:.3} apart");
                }
            }
        }
    }
    for (name, light, dark) in GROUND.iter().filter(|(name, ..)| matches!(*name, "ink" | "muted")) {
        assert!(contrast(light, paper.1) >= 4.5 && contrast(dark, paper.2) >= 4.5, "{name} is for text");
    }
}

#[test]
fn sixteen_series_differ_beyond_their_colours() {
    let svg = svg::render(&plots::sixteen(), Size::Wide);
    let document = parsed(&svg);
    let styles = document.descendants().filter(|node| node.attribute("class") == Some("line")).map(|line| {
        let color = line.parent_element().and_then(|group| group.attribute("class")).unwrap_or_default();
        (color.to_string(), line.attribute("stroke-dasharray").unwrap_or_default().to_string())
    });
    assert_eq!(styles.collect::<BTreeSet<_>>().len(), 16);
    let text = text::render(&plots::sixteen(), 100, 30, false);
    let samples: BTreeSet<&str> = text.split_whitespace().filter(|word| word.starts_with('─')).collect();
    assert_eq!(samples.iter().filter(|sample| sample.chars().count() == 3).count(), 16);
}
