//! The names of rows and series in pictures.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use ascertain_engine::experiment::{Arm, Level, Variant};
use ascertain_plot::{COLORS, SHAPES};

use crate::text::distinct;

/// The labels beside the rows of a picture, from the top. A label is the name of a row, or a heading above the names of
/// several rows.
pub(super) struct Lines {
    pub names: Vec<String>,
    /// The label of the axis with the names.
    pub label: String,
    /// For each row, the index of its name in `names`. The index is also the row's position on the y axis.
    pub places: Vec<f64>,
}

/// Returns the name of a metric as in a sentence: `memory_peak` becomes `peak memory`.
pub(super) fn spoken(metric: &str) -> String {
    match metric {
        "wall" | "user" | "system" => format!("{metric} time"),
        "memory_peak" => "peak memory".into(),
        metric => metric.replace('_', " "),
    }
}

/// Returns short names that distinguish the rows. A name has the variant, the levels that differ, and the key.
pub(super) fn of_rows(rows: &[(&Arm, &str)]) -> Vec<String> {
    let Some(((first, _), _)) = rows.split_first() else { return Vec::new() };
    let factors: BTreeSet<&str> = rows.iter().flat_map(|(arm, _)| arm.point.0.keys().map(String::as_str)).collect();
    let differs = |factor: &&str| rows.iter().any(|(arm, _)| arm.point.get(factor) != first.point.get(factor));
    let differing: Vec<&str> = factors.into_iter().filter(differs).collect();
    // For each factor, the level that most rows have. If there are several variants, this level is left out of the
    // names.
    let usual: Vec<(&str, &Level)> =
        differing.iter().filter_map(|factor| Some((*factor, usual(rows, factor)?))).collect();
    let is_told = |factor: &str, level: &Level| usual.iter().all(|(other, most)| *other != factor || *most != level);
    let one_variant = rows.iter().all(|(arm, _)| arm.variant == first.variant);
    let one_arm = one_variant && differing.is_empty();
    let name = |&(arm, key): &(&Arm, &str)| {
        let levels = differing.iter().filter_map(|factor| Some((*factor, arm.point.get(factor)?)));
        let levels: Vec<String> = levels
            .filter(|(factor, level)| one_variant || is_told(factor, level))
            .map(|(factor, level)| setting(factor, level))
            .collect();
        let levels = levels.join(" ");
        let arm = match () {
            () if levels.is_empty() => arm.variant.clone(),
            () if one_variant => levels,
            () => format!("{} ({levels})", arm.variant),
        };
        match key {
            "" => arm,
            key if one_arm => key.to_string(),
            key => format!("{arm} {key}"),
        }
    };
    rows.iter().map(name).collect()
}

/// Returns the names of the factors whose levels differ, and for each row its levels of these factors: `4, skewed`.
/// `None` if a row has a key, or if the rows differ in the names of their factors. Also `None` if all rows have the
/// same variant, or the same levels.
pub(super) fn levels(rows: &[(&Arm, &str)]) -> Option<(String, Vec<String>)> {
    let ((first, _), _) = rows.split_first()?;
    let is_one = rows.iter().all(|(arm, _)| arm.variant == first.variant);
    let factors: Vec<&String> = first.point.0.keys().collect();
    let differs = |factor: &&&String| rows.iter().any(|(arm, _)| arm.point.get(factor) != first.point.get(factor));
    let differing: Vec<&str> = factors.iter().filter(differs).map(|factor| factor.as_str()).collect();
    let is_known = |(arm, key): &(&Arm, &str)| key.is_empty() && arm.point.0.keys().eq(factors.iter().copied());
    if is_one || differing.is_empty() || !rows.iter().all(is_known) {
        return None;
    }
    let of_row = |(arm, _): &(&Arm, &str)| {
        let levels = differing.iter().filter_map(|factor| arm.point.get(factor)).map(ToString::to_string);
        levels.collect::<Vec<_>>().join(", ")
    };
    Some((
        differing.iter().map(|factor| spoken(factor)).collect::<Vec<_>>().join(", "),
        rows.iter().map(of_row).collect(),
    ))
}

/// Returns the level of a factor that at least three quarters of the rows have; `None` if there are few rows.
fn usual<'a>(rows: &[(&'a Arm, &str)], factor: &str) -> Option<&'a Level> {
    const MANY: usize = 8;
    let levels = || rows.iter().filter_map(|(arm, _)| arm.point.get(factor));
    let have = |level: &Level| levels().filter(|other| *other == level).count();
    let most = levels().max_by_key(|level| have(level))?;
    (rows.len() >= MANY && 4 * have(most) >= 3 * rows.len()).then_some(most)
}

/// Returns a level with its factor, as in names: `elements=4`.
pub(super) fn setting(factor: &str, level: &Level) -> String {
    format!("{factor}={level}")
}

/// Returns a short form of the name with only characters that are allowed in URLs.
fn slug(name: &str) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    let slug: String = words.collect::<Vec<_>>().join("-").to_lowercase().chars().take(100).collect();
    if slug.is_empty() { "x".into() } else { slug }
}

/// Returns a short form of each name, unique and with only characters that are allowed in URLs.
pub(super) fn slugs<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let mut free = |name: &str| {
        let slug = slug(name);
        let mut candidate = slug.clone();
        let mut number = 2;
        while !taken.insert(candidate.clone()) {
            candidate = format!("{slug}-{number}");
            number += 1;
        }
        candidate
    };
    names.into_iter().map(&mut free).collect()
}

/// Returns the common beginning of all names up to a separator. Empty if it is too short to be worth leaving out.
fn shared_beginning<'a>(names: &[&'a str]) -> &'a str {
    const LEAST: usize = 6;
    let Some((first, rest)) = names.split_first().filter(|(_, rest)| !rest.is_empty()) else { return "" };
    let alike = |other: &&str| first.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    // The text between brackets in `name[factor=level]` is not divided.
    let parts = first.find('[').unwrap_or(first.len());
    let shared = rest.iter().map(alike).min().unwrap_or(0).min(parts);
    let is_joint = |c: char| "-._/=( ".contains(c);
    // The decimal point in `0.01` is not a separator.
    let is_in_number = |at: usize| first[at..].starts_with('.') && first[..at].ends_with(|c: char| c.is_ascii_digit());
    let ends = first.char_indices().filter(|(at, c)| is_joint(*c) && !is_in_number(*at));
    let end = ends.map(|(at, c)| (at + c.len_utf8(), c)).filter(|(end, _)| *end <= shared);
    // No name may become empty.
    let end = end.map(|(end, _)| end).rfind(|end| names.iter().all(|name| name.len() > *end));
    end.filter(|end| *end >= LEAST).map_or("", |end| &first[..end])
}

/// Returns the names without their common beginning, and a label for their axis that has this beginning.
pub(super) fn on_axis(names: &[&str]) -> (Vec<String>, String) {
    let shared = shared_beginning(names);
    let label = if shared.is_empty() { String::new() } else { format!("each begins with: {shared}") };
    (names.iter().map(|name| name[shared.len()..].to_string()).collect(), label)
}

/// Returns the index of each row's series, and the names of all series. A variant has the same series, and so the same
/// colour and shape, in all pictures of its experiment. If several rows have the same variant, series are numbered by
/// row instead.
pub(super) fn series(variants: &[Variant], rows: &[(&Arm, String)]) -> (Vec<usize>, Vec<String>) {
    let known = series_of(variants);
    let place = |arm: &Arm| known.iter().find(|(name, _)| **name == arm.variant).map(|(_, series)| *series);
    let places: Option<Vec<usize>> = rows.iter().map(|(arm, _)| place(arm)).collect();
    let are_apart = || rows.iter().map(|(arm, _)| &arm.variant).collect::<BTreeSet<_>>().len() == rows.len();
    let Some(mut places) = places.filter(|_| are_apart()) else {
        return ((0..rows.len()).collect(), rows.iter().map(|(_, name)| name.clone()).collect());
    };
    // If there are many variants, two may have the same series. Then one gets another shape or, if all shapes of its
    // colour are used, another colour. Rows look the same only if there are more rows than combinations of colour and
    // shape.
    for row in 1..places.len() {
        let (before, rest) = places.split_at_mut(row);
        let first = rest[0];
        let is_free = |place: &usize| before.iter().all(|other| other % PAIRS != place % PAIRS);
        let mut other_pairs = (0..PAIRS).map(|step| first + COLORS * step + step / SHAPES);
        let alike = || (first..).step_by(PAIRS).find(|place| !before.contains(place));
        rest[0] = other_pairs.find(is_free).or_else(alike).unwrap_or(first);
    }
    let mut names = vec![String::new(); places.iter().max().map_or(0, |last| last + 1)];
    places.iter().zip(rows).for_each(|(place, (_, name))| names[*place] = name.clone());
    (places, names)
}

/// Number of series that look different, because each has its own combination of a colour and a shape.
const PAIRS: usize = COLORS * SHAPES;

/// Returns the index of the series for each variant. Variants form a family if their names begin with the name of
/// another variant: `kahan-avx2` belongs to the family of `kahan`. All variants of a family have the same colour. The
/// ending of the name determines the shape, so `-avx2` has the same shape in all families. Without families, the series
/// are numbered in the order of the variants.
fn series_of(variants: &[Variant]) -> Vec<(&str, usize)> {
    let names: Vec<&str> = variants.iter().map(|variant| variant.name.as_str()).collect();
    let is_of = |name: &str, family: &str| name.strip_prefix(family).is_some_and(|rest| rest.starts_with('-'));
    let parted = names.iter().map(|name| {
        let families = names.iter().filter(|family| is_of(name, family));
        name.split_at(families.map(|family| family.len()).min().unwrap_or(name.len()))
    });
    let parted: Vec<(&str, &str)> = parted.collect();
    if parted.iter().all(|(_, ending)| ending.is_empty()) {
        return names.into_iter().zip(0..).collect();
    }
    let families = distinct(parted.iter().map(|(family, _)| *family));
    let endings = distinct(parted.iter().map(|(_, ending)| *ending));
    let place = |known: &[&str], wanted: &str| known.iter().position(|one| *one == wanted).unwrap_or(0);
    // Adding 7 to a series changes the colour but not the shape; adding 8 changes the shape but not the colour.
    let series = |(family, ending): &(&str, &str)| SHAPES * place(&families, family) + COLORS * place(&endings, ending);
    names.iter().copied().zip(parted.iter().map(series)).collect()
}

/// Compares names so that numbers within them are in numerical order: `2` before `10`, `core2` before `core10`.
pub(super) fn natural(a: &str, b: &str) -> Ordering {
    let (parts_a, parts_b) = (parts(a), parts(b));
    let by_parts = parts_a.iter().zip(&parts_b).map(|(a, b)| match (number(a), number(b)) {
        (Some(one), Some(other)) => one.cmp(&other),
        _ => a.cmp(b),
    });
    by_parts.fold(Ordering::Equal, Ordering::then).then(parts_a.len().cmp(&parts_b.len())).then(a.cmp(b))
}

/// Splits a text into pieces that are all digits or have no digits.
fn parts(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_digit = first.is_ascii_digit();
        let end = rest.find(|c: char| c.is_ascii_digit() != is_digit).unwrap_or(rest.len());
        parts.push(&rest[..end]);
        rest = &rest[end..];
    }
    parts
}

fn number(part: &str) -> Option<u128> {
    part.parse().ok()
}

#[cfg(test)]
mod tests {
    use ascertain_engine::experiment::Point;

    use super::*;

    #[test]
    fn rows_are_told_apart_by_what_differs() {
        let point = |elements: u64| Point::default().with("elements", elements).with("type", "f32");
        let arm = |variant: &str, elements| Arm { variant: variant.into(), point: point(elements) };
        let names = |arms: &[Arm]| of_rows(&arms.iter().map(|arm| (arm, "")).collect::<Vec<_>>());
        assert_eq!(names(&[arm("a", 1), arm("b", 1)]), ["a", "b"]);
        assert_eq!(names(&[arm("a", 1), arm("a", 2)]), ["elements=1", "elements=2"]);
        assert_eq!(names(&[arm("a", 1), arm("b", 2)]), ["a (elements=1)", "b (elements=2)"]);
        let (a, b) = (arm("a", 1), arm("b", 1));
        assert_eq!(of_rows(&[(&a, "near"), (&a, "far")]), ["near", "far"]);
        assert_eq!(of_rows(&[(&a, "near"), (&b, "near")]), ["a near", "b near"]);
        let variants = ["a", "b", "c", "d", "e", "f", "g"].map(|variant| arm(variant, 1));
        let many: Vec<Arm> = variants.into_iter().chain([arm("a", 2)]).collect();
        assert_eq!(names(&many), ["a", "b", "c", "d", "e", "f", "g", "a (elements=2)"], "all but one are at 1");
        let bare = Arm { variant: "a".into(), point: Point::default() };
        assert_eq!(of_rows(&[(&bare, ""), (&arm("a", 7), "")]), ["a", "elements=7 type=f32"]);
    }

    #[test]
    fn a_variant_has_one_series_in_all_pictures() {
        let variants = ["a", "b", "c"].map(|name| Variant { name: name.into(), about: String::new() });
        let arm = |variant: &str, elements: u64| Arm {
            variant: variant.into(),
            point: Point::default().with("elements", elements),
        };
        let of =
            |arms: &[Arm]| series(&variants, &arms.iter().map(|arm| (arm, arm.variant.clone())).collect::<Vec<_>>()).0;
        assert_eq!(of(&[arm("a", 1), arm("b", 1), arm("c", 1)]), [0, 1, 2]);
        assert_eq!(of(&[arm("c", 1), arm("b", 1)]), [2, 1], "independent of other rows");
        assert_eq!(of(&[arm("c", 1), arm("c", 2)]), [0, 1], "rows of one variant have different series");
        assert_eq!(of(&[arm("c", 1), arm("other", 1)]), [0, 1], "unknown variant");
        let families = ["sum", "kahan", "kahan-avx2", "sum-avx2"];
        let families = families.map(|name| Variant { name: name.into(), about: String::new() });
        let places: Vec<usize> = series_of(&families).into_iter().map(|(_, series)| series).collect();
        let [colors, shapes] = [8, 7].map(|count| places.iter().map(|place| place % count).collect::<Vec<_>>());
        assert_eq!((colors[0], colors[1]), (colors[3], colors[2]), "a family has a colour: {colors:?}");
        assert_eq!((shapes[0], shapes[2]), (shapes[1], shapes[3]), "what repeats has a shape: {shapes:?}");
        assert!(colors[0] != colors[1] && shapes[0] != shapes[2]);
        let many: Vec<Variant> = (0..60).map(|n| Variant { name: format!("v{n}"), about: String::new() }).collect();
        let arms: Vec<(Arm, String)> = [1, 57].map(|n| (arm(&format!("v{n}"), 1), String::new())).into();
        let (met, _) = series(&many, &arms.iter().map(|(arm, name)| (arm, name.clone())).collect::<Vec<_>>());
        assert!(met[0] % 56 != met[1] % 56, "no two in a picture look alike: {met:?}");
        for count in [8, PAIRS, PAIRS + 4] {
            let name = |n| if n == 0 { "f".to_string() } else { format!("f-{n}") };
            let variants: Vec<Variant> = (0..count).map(|n| Variant { name: name(n), about: String::new() }).collect();
            let arms: Vec<Arm> = variants.iter().map(|variant| arm(&variant.name, 1)).collect();
            let rows: Vec<(&Arm, String)> = arms.iter().map(|arm| (arm, arm.variant.clone())).collect();
            let (places, names) = series(&variants, &rows);
            let pairs: BTreeSet<usize> = places.iter().map(|place| place % PAIRS).collect();
            assert_eq!(pairs.len(), count.min(PAIRS), "a family has more members than a colour has shapes: {places:?}");
            assert!(rows.iter().zip(&places).all(|((_, name), place)| names[*place] == *name), "{names:?}");
        }
        let (_, names) = series(&variants, &[(&arm("b", 1), "b".into())]);
        assert_eq!(names, ["", "b"], "a series that is not drawn has no name");
    }

    #[test]
    fn what_all_names_begin_with_is_said_once() {
        assert_eq!(shared_beginning(&["sort -n big.txt", "sort -n small.txt"]), "sort -n ");
        assert_eq!(shared_beginning(&["sleep 0.012", "sleep 0.013"]), "sleep ");
        assert_eq!(shared_beginning(&["decimal.packed-a", "decimal.packed-b"]), "decimal.packed-");
        assert_eq!(shared_beginning(&["decimal.packed", "decimal.packed-b"]), "decimal.");
        assert_eq!(shared_beginning(&["decimal.packed[size=1]", "decimal.packed[size=2]"]), "decimal.");
        assert_eq!([&["one"][..], &["a-b", "a-c"], &["éa", "éb"], &["", "a"]].map(shared_beginning), [""; 4]);
        assert_eq!(on_axis(&["decimal.a", "decimal.b"]).1, "each begins with: decimal.");
    }

    #[test]
    fn slugs_are_distinct() {
        assert_eq!(
            slugs(["sum.a", "sum-a", "<script>", "🚀", "sum a", ""]),
            ["sum-a", "sum-a-2", "script", "x", "sum-a-3", "x-2"]
        );
        assert_eq!(slugs(["a-2", "a", "a"]), ["a-2", "a", "a-3"]);
    }

    #[test]
    fn numbers_in_names_count() {
        let mut names = ["core10", "core2", "core", "b", "10", "9"];
        names.sort_by(|a, b| natural(a, b));
        assert_eq!(names, ["9", "10", "b", "core", "core2", "core10"]);
    }
}
