use std::collections::BTreeSet;

use crate::{Layer, Range};

/// The most marks that a plot draws; the cells of a heat map, of which none can be left out, aside.
pub const MOST_MARKS: usize = 5_000;

/// At most `most` of the points, in their order. The points are cut into stretches of equally many, and of each
/// stretch the lowest, the highest, the leftmost and the rightmost stay, so that a picture of what is left has
/// the outline of the whole (for a line in the order of x these are the first and the last: Jugel, Jerzak,
/// Hackenbroich and Markl 2014, "M4"). One point a stretch that is not finite stays too, since it breaks a line.
/// The least and the greatest y survive wherever `most` is 2 or more; points that are few enough are all kept.
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

/// The same for intervals: of each stretch the lowest low end and the highest high end stay, the first and the last.
pub fn thin_ranges(ranges: &[Range], most: usize) -> Vec<Range> {
    survivors(ranges, most, |range| [range.low, -range.high, range.x, -range.x])
}

/// The items that have the least of any key in their stretch, and the first without finite keys. Where there may be
/// no item for each key, those that have the least of all.
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

/// The layers with at most so many marks together, each with its share, and how many marks there were when some were
/// left out.
pub(crate) fn thinned(layers: &[Layer], most: usize) -> (Vec<Layer>, Option<usize>) {
    let all: usize = layers.iter().map(marks).sum();
    if all <= most && layers.iter().all(|layer| marks(layer) <= most_of(layer, most)) {
        return (layers.to_vec(), None);
    }
    // A layer of a few marks beside one of a million keeps them.
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

/// A line needs fewer marks than dots do: what lies between two of them is drawn.
fn most_of(layer: &Layer, most: usize) -> usize {
    if let Layer::Dots { .. } = layer { most } else { most / 3 }
}

/// How many marks of a layer count: rows and cells are all read, so none may go.
fn marks(layer: &Layer) -> usize {
    match layer {
        Layer::Line { points, .. } | Layer::Dots { points, .. } | Layer::Area { points, .. } => points.len(),
        Layer::Band { ranges, .. } => ranges.len(),
        Layer::Intervals { .. } | Layer::Cells { .. } | Layer::Rule { .. } => 0,
    }
}
