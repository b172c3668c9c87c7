use std::collections::BTreeSet;

use crate::{Layer, Range};

/// The largest number of marks in a plot. Cells of a heat map and rows of a forest plot don't count, because they can't
/// be left out.
pub const MOST_MARKS: usize = 5_000;

/// Returns at most `most` of the points, in their order. Returns all points if there are at most `most`.
///
/// The points are divided into sections with equal numbers of points. Each section keeps its lowest, highest, leftmost
/// and rightmost point, so that the result has the outline of the original. If the points are in the order of x, the
/// leftmost and the rightmost point are the first and the last one (Jugel, Jerzak, Hackenbroich and Markl 2014, "M4").
/// A section also keeps one of its points that are not finite, because such a point interrupts a line. If `most` is at
/// least 2, the lowest and the highest of all points are kept.
///
/// ```
/// use ascertain_plot::thin;
/// let noise: Vec<[f64; 2]> = (0..100_000).map(|i| [f64::from(i), f64::from(i * 7919 % 1000)]).collect();
/// let kept = thin(&noise, 500);
/// assert!(kept.len() <= 500 && kept.iter().any(|p| p[1] == 999.0) && kept.iter().any(|p| p[1] == 0.0));
/// ```
pub fn thin(points: &[[f64; 2]], most: usize) -> Vec<[f64; 2]> {
    survivors(points, most, |&[x, y]| [y, -y, x, -x])
}

/// Thins intervals like [`thin`]. Each section keeps four intervals: the one with the lowest low end, the one with the
/// highest high end, the first and the last.
pub fn thin_ranges(ranges: &[Range], most: usize) -> Vec<Range> {
    survivors(ranges, most, |range| [range.low, -range.high, range.x, -range.x])
}

/// Returns at most `most` of the items, in their order. The items are divided into sections. The function `keys`
/// returns four sort keys of an item, and each section keeps four items: for each key, the item with the lowest value.
/// A section also keeps its first item with a key that is not finite. If `most` is too small for one section, all items
/// form one section, which keeps only `most` of its four items.
fn survivors<T: Clone>(items: &[T], most: usize, keys: impl Fn(&T) -> [f64; 4]) -> Vec<T> {
    if items.len() <= most {
        return items.to_vec();
    }
    let is_finite = |index: &usize| keys(&items[*index]).iter().all(|key| key.is_finite());
    let (drawn, broken): (Vec<usize>, Vec<usize>) = (0..items.len()).partition(is_finite);
    let least = |stretch: &[usize], key: usize| {
        stretch.iter().copied().min_by(|&a, &b| keys(&items[a])[key].total_cmp(&keys(&items[b])[key]))
    };
    let stretches = most / if broken.is_empty() { 4 } else { 5 };
    let mut kept = BTreeSet::new();
    if stretches == 0 {
        kept.extend((0..4).filter_map(|key| least(&drawn, key)).take(most));
    }
    for stretch in 0..stretches {
        let [from, to] = [stretch, stretch + 1].map(|end| end * items.len() / stretches);
        let within = |indices: &[usize]| {
            let [from, to] = [from, to].map(|end| indices.partition_point(|&index| index < end));
            from..to
        };
        let present = &drawn[within(&drawn)];
        kept.extend((0..4).filter_map(|key| least(present, key)));
        kept.extend(broken[within(&broken)].first());
    }
    kept.into_iter().map(|index| items[index].clone()).collect()
}

/// Thins layers to at most `most` marks in total; each layer keeps a share of them. Also returns the original number of
/// marks, or `None` if no mark was left out.
pub(crate) fn thinned(layers: &[Layer], most: usize) -> (Vec<Layer>, Option<usize>) {
    let all: usize = layers.iter().map(marks).sum();
    if all <= most && layers.iter().all(|layer| marks(layer) <= most_of(layer, most)) {
        return (layers.to_vec(), None);
    }
    // A layer with few marks keeps them all, even if another layer has a million marks.
    let few = most / (4 * layers.len());
    let small: usize = layers.iter().map(marks).filter(|&n| n <= few).sum();
    let share = |n: usize| if n <= few || all <= most { n } else { (most - small) * n / (all - small) };
    let thinned = layers.iter().cloned().map(|mut layer| {
        let most = share(marks(&layer)).min(most_of(&layer, most));
        match &mut layer {
            Layer::Line { points, .. } | Layer::Dots { points, .. } | Layer::Area { points, .. } => {
                *points = thin(points, most);
            }
            Layer::Band { ranges, .. } => *ranges = thin_ranges(ranges, most),
            Layer::Intervals { .. } | Layer::Cells { .. } | Layer::Rule { .. } => {}
        }
        layer
    });
    (thinned.collect(), Some(all))
}

/// Returns the largest number of marks for one layer of a plot with at most `most` marks. Dots get more marks than
/// other layers, because a line, a band or an area is also drawn between its marks.
fn most_of(layer: &Layer, most: usize) -> usize {
    if let Layer::Dots { .. } = layer { most } else { most / 3 }
}

/// Returns the number of marks of a layer that may be left out; 0 for rows and cells, which are always drawn.
fn marks(layer: &Layer) -> usize {
    match layer {
        Layer::Line { points, .. } | Layer::Dots { points, .. } | Layer::Area { points, .. } => points.len(),
        Layer::Band { ranges, .. } => ranges.len(),
        Layer::Intervals { .. } | Layer::Cells { .. } | Layer::Rule { .. } => 0,
    }
}
