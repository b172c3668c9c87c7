//! Derived series: each output against a file in `golden/`; `BLESS=1` rewrites the files.

use ascertain_engine::unit::Unit;
use ascertain_report::html;
use ascertain_report::options::Format;
use ascertain_report::series::{SeriesDigest, SeriesHeader, SeriesMemory, SeriesWriter};
use ascertain_report::terminal::Style;

use crate::common::compare_with_golden;
use crate::html::check;

fn header(has_ranges: bool) -> SeriesHeader {
    SeriesHeader {
        expression: "wall / hold(mean(window(wall, 100)))".into(),
        unit: Unit::Nanosecond,
        plan: "plan of wall / hold(mean(window(wall, 100)))\n  #1  wall  1 per observation\nmemory: 4,176 B".into(),
        memory: SeriesMemory {
            states_bytes: 16,
            in_flight_bytes: 8,
            steps_bytes: 56,
            reading_bytes: 4096,
            total_bytes: 4176,
        },
        has_ranges,
        recorded_every: 1,
    }
}

/// A thousand results that rise, the first ten of which are null.
fn rising() -> Vec<f64> {
    (0..1000)
        .map(|index| if index < 10 { f64::NAN } else { 1e6 + f64::from(index % 7) * 1e4 + f64::from(index) * 1e3 })
        .collect()
}

fn digest() -> SeriesDigest {
    let mut digest = SeriesDigest::new(header(false));
    rising().chunks(256).for_each(|results| digest.add(results, results));
    digest.end(3);
    digest
}

/// A long measurement may record only a part of its observations.
#[test]
fn the_share_that_was_recorded_is_part_of_each_output() {
    let style = Style { color: false, width: 80 };
    let start = |recorded_every, format| {
        SeriesWriter::new(SeriesHeader { recorded_every, ..header(false) }, format, style).start()
    };
    let sentence = "The series has one observation in 1,024, because the run recorded only one in 1,024.";
    for format in [Format::Table, Format::Markdown] {
        assert!(start(1024, format).trim_end().ends_with(sentence), "{}", start(1024, format));
        assert!(!start(1, format).contains("The series has"), "{}", start(1, format));
    }
    assert!(start(1024, Format::Json).contains("\"recorded_every\":1024"), "{}", start(1024, Format::Json));
    let digest = SeriesDigest::new(SeriesHeader { recorded_every: 1024, ..header(false) });
    assert!(digest.markdown().contains(sentence), "{}", digest.markdown());
}

#[test]
fn a_series_in_a_report_has_its_picture_its_table_and_its_plan() {
    let digest = digest();
    compare_with_golden("series.md", &digest.markdown());
    compare_with_golden("series-80.txt", &digest.text(&Style { color: false, width: 80 }));
    let page = html::page_with_series(&[check()], &[vec![digest.clone(), digest]]);
    let section = page.split_once("<section class=\"group\" id=\"series\">").unwrap().1;
    let section = section.split_once("</section>").unwrap().0;
    for part in ["id=\"series-1\"", "The plan and its memory", "memory: 4,176 B", "1,000 results", "<svg"] {
        assert!(section.contains(part), "{part}");
    }
    crate::html::tree_of(&page, |_| {});
    let first = section.split_once("<h3>").unwrap().1.split_once("<h3>").unwrap().0;
    compare_with_golden("series.html", first);
    assert!(!html::page(&[check()]).contains("id=\"series\""));
}

#[test]
fn series_without_finite_results_have_no_picture() {
    let mut digest = SeriesDigest::new(header(true));
    assert!(digest.picture(0).is_none() && digest.markdown().contains("There are no results"));
    digest.add(&[1.0, f64::NAN], &[f64::INFINITY, f64::NAN]);
    let text = digest.markdown();
    assert!(digest.picture(0).is_none(), "{text}");
    assert!(text.contains("2 results, of which 1 is null and 1 is infinite or unbounded."), "{text}");
}

#[test]
fn the_outputs_of_the_command_are_complete() {
    let written = |format, has_ranges: bool| {
        let mut writer = SeriesWriter::new(header(has_ranges), format, Style { color: false, width: 80 });
        let mut text = writer.start();
        let highs = [f64::NAN, 1e6, 3e6, f64::INFINITY];
        let lows = if has_ranges { [f64::NAN, 1e6, 2e6, 4e6] } else { highs };
        writer.add(&lows, &highs, &mut text);
        text + &writer.end(1)
    };
    for (name, format) in
        [("table", Format::Table), ("md", Format::Markdown), ("csv", Format::Csv), ("json", Format::Json)]
    {
        compare_with_golden(&format!("series-values.{name}"), &written(format, false));
        compare_with_golden(&format!("series-ranges.{name}"), &written(format, true));
    }
}
