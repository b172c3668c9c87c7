//! Tests that recorded rows can be read back from `trials.jsonl` and `trials.parquet`, whatever the rows contain.
//! Golden tests compare the exact bytes of these files, with a fixed machine and clock. If you change the bytes on
//! purpose, run the tests with `BLESS=1`, and consider a new version of the schema.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::{env, fs};

use ascertain_sys::clock;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row as ParquetRow};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use super::super::folder::{HEADER, LINES, PARQUET, read_header, write_header};
use super::super::lines::{LineReader, RowBuffer};
use super::super::{Error, Trials, read_run};
use super::*;

#[test]
fn a_run_comes_back() {
    let runs = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(&runs.path().join("state/runs"), header(), None).unwrap();
    let arm_number = writer.add_arm(&spec(), 0, &arm());
    record_trial(&mut writer, arm_number, 0);
    record_trial(&mut writer, arm_number, 1);
    let run = writer.finish(outcome()).unwrap();

    assert_eq!(run, runs.path().join("state/runs").join(RUN_ID));
    let read = read_header(&run).unwrap();
    let Header { lines_bytes, lines_checksum, parquet_checksum, .. } = read.clone();
    assert!(lines_bytes.is_some() && lines_checksum.is_some() && parquet_checksum.is_some());
    assert_eq!(read, Header { outcome: Some(outcome()), lines_bytes, lines_checksum, parquet_checksum, ..header() });
    let rows = rows(&run);
    assert_eq!(rows.len(), 8);
    let first = Row { start_ns: 0, ..rows[0].clone() };
    let expected = Row {
        run_id: RUN_ID.into(),
        experiment: "sum".into(),
        lane: 0,
        variant: "naive".into(),
        point: r#"{"elements":187500,"type":"f32"}"#.into(),
        trial: 0,
        position: 0,
        metric: "time".into(),
        key: "".into(),
        offset_ns: 0,
        value: 0.25,
        unit: Unit::Nanosecond,
        status: Status::Ok,
        start_ns: 0,
        worker: "".into(),
    };
    assert_eq!(first, expected);
    let files: Vec<_> = std::fs::read_dir(&run).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(files.len(), 3, "nothing half-written is left: {files:?}");
}

#[test]
fn rows_of_slow_trials_are_written_at_once() {
    let runs = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(runs.path(), header(), None).unwrap();
    let run = runs.path().join(RUN_ID);
    let arm = writer.add_arm(&spec(), 0, &arm());
    for (trial, trial_ns, written) in [(0, 1e6, 1), (1, 1e3, 1), (2, 1e6, 3)] {
        record_trial(&mut writer, arm, trial);
        writer.end_trial(trial_ns).unwrap();
        assert_eq!(rows(&run).len(), 4 * written, "trial {trial}");
    }
    // The rows of many fast trials are also written before the run ends.
    for trial in 3..3_000 {
        record_trial(&mut writer, arm, trial);
        writer.end_trial(1e3).unwrap();
    }
    assert!(rows(&run).len() > 1_000);
}

#[test]
fn parquet_has_the_columns_of_the_lines() {
    let runs = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(runs.path(), header(), None).unwrap();
    let arm = writer.add_arm(&spec(), 0, &arm());
    record_trial(&mut writer, arm, 0);
    let run = writer.finish(outcome()).unwrap();
    restore_lines(&run);
    let text = std::fs::read_to_string(run.join(LINES)).unwrap();
    let line = text.lines().next().unwrap();
    let file = SerializedFileReader::new(File::open(run.join(PARQUET)).unwrap()).unwrap();
    let mut at = 0;
    for column in file.metadata().file_metadata().schema_descr().columns() {
        let key = format!("\"{}\":", column.name());
        let found = line.find(&key).unwrap_or_else(|| panic!("{key} is not in {line}"));
        assert!(found >= at, "{key} is in another place");
        at = found;
    }
    assert_eq!(line.matches("\":").count() - line.matches("\\\":").count(), 15, "{line}");
}

#[derive(Clone, Debug)]
struct Observation {
    experiment: String,
    variant: String,
    point: BTreeMap<String, Level>,
    trial: u64,
    position: u32,
    metric: String,
    samples: Vec<(String, u64, f64, Status)>,
}

/// Returns a strategy for numbers up to 2^63 − 1, in which small numbers are frequent.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..3_u64, 0..=i64::MAX as u64]
}

/// Returns a strategy for arbitrary texts, in which texts that need escapes are frequent.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), "[\\x00-\\x20\"\\\\\\x7fé\u{2028}\u{1f600}]{0,4}", "[0-9]{1,3}"]
}

fn observation() -> impl Strategy<Value = Observation> {
    let level = prop_oneof![any::<u64>().prop_map(Level::Integer), text().prop_map(Level::Text)];
    let status = prop_oneof![Just(Status::Ok), Just(Status::Censored), Just(Status::Failed), Just(Status::Lost)];
    let value = prop_oneof![any::<f64>(), any::<i32>().prop_map(f64::from), Just(f64::INFINITY), Just(-0.0)];
    let samples = vec((text(), number(), value, status), 1..4);
    let names = (text(), text(), text());
    let place = (btree_map(text(), level, 0..3), number(), any::<u32>());
    (names, place, samples).prop_map(|((experiment, variant, metric), (point, trial, position), samples)| Observation {
        experiment,
        variant,
        point,
        trial,
        position,
        metric,
        samples,
    })
}

/// Returns the value and status that are read back. They can differ from the written value and status, because JSON has
/// no infinities and no NaN.
fn expected(value: f64, status: Status) -> (f64, Status) {
    match value {
        f64::INFINITY => (value, Status::Censored),
        value if value.is_finite() => (value, status),
        _ if status == Status::Censored => (f64::INFINITY, status),
        _ => (f64::NAN, status),
    }
}

/// Returns the index of the lane (group of arms) in which the trial is recorded.
fn lane_of(trial: u64) -> u32 {
    (trial % 3) as u32
}

fn assert_row(row: &Row, parquet: &ParquetRow, of: &Observation, sample: &(String, u64, f64, Status)) {
    let (key, offset_ns, value, status) = sample;
    let (value, status) = expected(*value, *status);
    let point = serde_json::to_string(&Point(of.point.clone())).unwrap();
    assert_eq!((&*row.experiment, &*row.variant, &*row.point), (&*of.experiment, &*of.variant, &*point));
    assert_eq!((row.trial, row.position, &*row.metric), (of.trial, of.position, &*of.metric));
    assert_eq!((&*row.key, row.offset_ns, row.unit, row.status), (&**key, *offset_ns, Unit::One, status));
    assert!(row.value.to_bits() == value.to_bits() || row.value.is_nan() && value.is_nan(), "{} {value}", row.value);

    let lane = lane_of(of.trial);
    assert_eq!(row.lane, lane);
    let mut cells = [RUN_ID, &of.experiment].map(|text| Field::Str(text.into())).to_vec();
    cells.push(Field::Long(lane.into()));
    cells.extend([&of.variant, &point].map(|text| Field::Str(text.into())));
    cells.extend([of.trial, of.position.into()].map(|number| Field::Long(number as i64)));
    cells.extend([&of.metric, key].map(|text| Field::Str(text.clone())));
    cells.push(Field::Long(*offset_ns as i64));
    cells.push(Field::Double(value));
    cells.extend(["1", status.word()].map(|text| Field::Str(text.into())));
    cells.push(Field::Long(row.start_ns as i64));
    cells.push(Field::Str(String::new()));
    let found: Vec<_> = parquet.get_column_iter().map(|(_, field)| field.clone()).collect();
    // Compared as text, because NaN is not equal to itself.
    assert_eq!(format!("{found:?}"), format!("{cells:?}"));
}

/// Checks that the trials have exactly these rows, in the same order, and that all rows of a trial have the same
/// experiment and index.
fn assert_trials(trials: &Trials, rows: &[Row]) {
    let mut rows = rows.iter();
    let observed = trials.for_each(|trial| {
        for (observation, row) in trial.observations.iter().zip(&mut rows) {
            let series = &trials.series[observation.series];
            assert_eq!((trial.experiment, trial.number), (&*row.experiment, row.trial));
            assert_eq!(trial.lane, row.lane as usize);
            assert_eq!(trials.arms[observation.arm], (series.experiment.clone(), series.arm.clone()));
            assert_eq!((&*series.experiment, &*series.arm.variant), (&*row.experiment, &*row.variant));
            assert_eq!(serde_json::to_string(&series.arm.point).unwrap(), row.point);
            assert_eq!((&*series.metric, &*series.key), (&*row.metric, &*row.key));
            // Compared as text, because NaN is not equal to itself.
            assert_eq!(format!("{:?}", observation.value), format!("{:?}", row.status.bounds(row.value)));
        }
        Ok::<_, Error>(())
    });
    observed.unwrap();
    assert!(rows.next().is_none());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_recorded_comes_back(observations in vec(observation(), 0..32)) {
        let runs = tempfile::tempdir().unwrap();
        let mut writer = Writer::create(runs.path(), header(), None).unwrap();
        for of in &observations {
            let mut spec = Spec { id: of.experiment.clone(), ..spec() };
            spec.metrics.truncate(1);
            spec.metrics[0] = Metric { name: of.metric.clone(), unit: Unit::One, ..spec.metrics[0].clone() };
            let arm = Arm { variant: of.variant.clone(), point: Point(of.point.clone()) };
            let number = writer.add_arm(&spec, lane_of(of.trial) as usize, &arm);
            let samples: Vec<_> = of.samples.iter().map(|(key, offset_ns, value, status)| Sample {
                metric: 0,
                key: key.clone().into(),
                offset_ns: *offset_ns,
                value: *value,
                status: *status,
            }).collect();
            writer.record(number, of.trial, of.position, clock::now_ns(), &samples);
        }
        let run = writer.finish(outcome()).unwrap();
        let file = SerializedFileReader::new(File::open(run.join(PARQUET)).unwrap()).unwrap();
        let parquet: Vec<_> = file.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        let rows = rows(&run);
        let all = observations.iter().flat_map(|of| of.samples.iter().map(move |sample| (of, sample)));
        let all: Vec<_> = all.collect();
        prop_assert_eq!((rows.len(), parquet.len()), (all.len(), all.len()));
        for ((row, parquet), (of, sample)) in rows.iter().zip(&parquet).zip(all) {
            assert_row(row, parquet, of, sample);
        }
        prop_assert_eq!(std::fs::metadata(run.join(LINES)).unwrap().len(), 0, "the Parquet file gives every byte");
        let from_parquet = read_run(&run).unwrap().trials;
        restore_lines(&run);
        let (from_lines, whole_end) = Trials::read(&mut LineReader::open(&run).unwrap()).unwrap();
        prop_assert_eq!(format!("{from_parquet:?}"), format!("{from_lines:?}"));
        prop_assert_eq!(whole_end, std::fs::metadata(run.join(LINES)).unwrap().len());
        assert_trials(&from_lines, &rows);
    }
}

fn assert_golden(name: &str, actual: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/evidence").join(name);
    if env::var_os("BLESS").is_some() {
        fs::write(&path, actual).unwrap();
    }
    assert_eq!(actual, fs::read_to_string(&path).unwrap(), "{}", path.display());
}

#[test]
fn run_json() {
    let run = tempfile::tempdir().unwrap();
    let header = Header { outcome: Some(outcome()), ..header() };
    write_header(run.path(), &header).unwrap();
    assert_golden("run.json", &fs::read_to_string(run.path().join(HEADER)).unwrap());
    assert_eq!(read_header(run.path()).unwrap(), header);
}

#[test]
fn trials_jsonl() {
    let mut rows = RowBuffer::new(RUN_ID.into(), 500);
    let arm = rows.add_arm(&spec(), 0, &arm());
    let limit = Sample { status: Status::Censored, ..sample(0, f64::INFINITY) };
    let of_a_server = Sample { key: "server \"b\"\n".into(), offset_ns: 250, ..sample(1, 1.5e9) };
    rows.record(arm, 0, 0, 1_000, &[sample(0, 51_234.625), of_a_server]);
    rows.record(arm, 1, 0, 2_000, &[limit]);
    let mut text = Vec::new();
    rows.write_to(&mut text).unwrap();
    assert_golden("trials.jsonl", &String::from_utf8(text).unwrap());
}
