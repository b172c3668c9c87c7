//! Properties that each parser has for any input. `fuzz/` also checks them.

use std::fs;
use std::io::Read;
use std::path::Path;

use ascertain_engine::claims_file;
use ascertain_engine::evidence::{self, Header};
use ascertain_engine::experiment::{
    Accepts, Arm, Better, Experiment, Factor, Level, Metric, Session, Setup, Spec, TargetError, Variant,
};
use ascertain_engine::predicate::Predicate;
use ascertain_engine::pyperf::{PyperfComparison, PyperfSuite, compare};
use ascertain_engine::recorded;
use ascertain_engine::samples::read_column;
use ascertain_engine::unit::Unit;
use tempfile::TempDir;

/// Checks that parsed claims can be stored in `run.json` and that each mistake has a position in the file.
pub fn claims(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let sums = Sums::new();
    match claims_file::parse(text, Path::new("claims.toml"), &[&sums]) {
        Ok(file) => {
            assert!(!file.claims.is_empty());
            assert!(file.claims.iter().all(|claim| !claim.says.is_empty() && claim.place.is_some()));
            let json = serde_json::to_string(&(&file.claims, &file.commands)).unwrap();
            assert_eq!(serde_json::from_str::<(Vec<_>, Vec<_>)>(&json).unwrap(), (file.claims, file.commands));
        }
        Err(error) => {
            let lines = text.split('\n').count();
            assert!(error.mistakes.iter().all(|mistake| (1..=lines).contains(&mistake.place.line)), "{error}");
        }
    }
}

/// Checks that a predicate is the same after it was printed and parsed again. Only its numbers may differ, because they
/// are printed to twelve digits.
pub fn predicates(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let metrics = Sums::new().spec.metrics;
    match Predicate::parse(text, &metrics) {
        Ok(predicate) => {
            let spelled = predicate.to_string();
            let again = Predicate::parse(&spelled, &metrics).unwrap();
            assert_eq!(again.0.len(), predicate.0.len(), "{spelled}");
            for (again, first) in again.0.iter().zip(&predicate.0) {
                assert_eq!((&again.measure, again.relation), (&first.measure, first.relation), "{spelled}");
                let is_close = (again.bound - first.bound).abs() <= 1e-11 * first.bound.abs() + 5e-324;
                assert!(is_close, "{spelled}: {} and {}", again.bound, first.bound);
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Checks that reading a column returns only finite numbers. The result must be the same if the input arrives one byte
/// at a time. The first byte of the input selects the column.
pub fn columns(bytes: &[u8]) {
    /// A reader that returns one byte at a time, as a pipe may.
    struct Slow<'a>(&'a [u8]);
    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let most = buffer.len().min(1);
            self.0.read(&mut buffer[..most])
        }
    }
    let Some((&which, text)) = bytes.split_first() else { return };
    let column = [None, Some("1"), Some("2"), Some("time")][usize::from(which % 4)];
    let read = read_column(text, "file.csv", column, 1000);
    let slowly = read_column(Slow(text), "file.csv", column, 1000);
    match (read, slowly) {
        (Ok(read), slowly) => {
            assert!(!read.values.is_empty() && read.values.iter().all(|value| value.is_finite()));
            assert_eq!(slowly.unwrap(), read);
        }
        (Err(error), slowly) => assert_eq!(slowly.unwrap_err().to_string(), error.to_string()),
    }
}

/// Uses the bytes as the rows of a killed run. If the run can be read and judged again, each of its rows must also be
/// readable on its own.
pub fn rows(bytes: &[u8]) {
    thread_local!(static RUN: TempDir = killed_run());
    RUN.with(|run| read_rows(run.path(), bytes));
}

fn read_rows(run: &Path, bytes: &[u8]) {
    fs::write(run.join("trials.jsonl"), bytes).unwrap();
    let rows = evidence::read_rows(run).unwrap();
    let row_count = rows.take_while(Result::is_ok).count() as u64;
    match recorded::read(run) {
        Ok(recorded) => assert!(recorded.rows <= row_count, "{} rows of {row_count}", recorded.rows),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Reads bytes as the `run.json` of a run that has rows. A valid header is the same after it is written and read again.
/// Every error has a message.
pub fn headers(bytes: &[u8]) {
    thread_local!(static RUN: TempDir = killed_run());
    RUN.with(|run| {
        let (run, rows) = (run.path(), include_bytes!("../../golden/evidence/trials.jsonl"));
        fs::write(run.join("run.json"), bytes).unwrap();
        fs::write(run.join("trials.jsonl"), rows).unwrap();
        match evidence::read_header(run) {
            Ok(header) => {
                let kept = serde_json::to_vec(&header).unwrap();
                // A NaN becomes `null`, which is not a number when it is read.
                if let Ok(again) = serde_json::from_slice::<Header>(&kept) {
                    assert_eq!(serde_json::to_vec(&again).unwrap(), kept);
                }
                if let Err(error) = recorded::read(run) {
                    assert!(!error.to_string().is_empty());
                }
            }
            Err(error) => assert!(error.to_string().contains("run.json"), "{error}"),
        }
    });
}

/// Reads bytes as a file of pyperf. The benchmarks that it has are the same after they are written and read again, and
/// comparing a file with itself gives ratios of 1.
pub fn pyperf(bytes: &[u8]) {
    let Ok(file) = serde_json::from_slice(bytes) else { return };
    match PyperfSuite::parse("a", &file) {
        Ok(suite) => {
            let text = suite.to_json().to_string();
            let again = PyperfSuite::parse("a", &serde_json::from_str(&text).unwrap()).unwrap();
            assert_eq!(again, suite);
            let compared = compare(&suite, &suite);
            let all = compared.times.workloads.iter().chain(compared.others.iter().map(|other| &other.ratio));
            assert!(all.filter_map(|workload| workload.ratio.value()).all(|ratio| ratio == 1.0), "{compared:?}");
            let json = serde_json::to_string(&compared).unwrap();
            assert_eq!(serde_json::to_string(&serde_json::from_str::<PyperfComparison>(&json).unwrap()).unwrap(), json);
        }
        Err(why) => assert!(!why.is_empty()),
    }
}

/// Returns the golden run without its rows and without its outcome.
fn killed_run() -> TempDir {
    let header: Header = serde_json::from_slice(include_bytes!("../../golden/evidence/run.json")).unwrap();
    let header = Header { outcome: None, lines_bytes: None, lines_checksum: None, parquet_checksum: None, ..header };
    let run = tempfile::tempdir().unwrap();
    fs::write(run.path().join("run.json"), serde_json::to_vec(&header).unwrap()).unwrap();
    run
}

/// An experiment for the claims in the inputs.
struct Sums {
    spec: Spec,
}

impl Sums {
    fn new() -> Sums {
        let variant = |name: &str| Variant { name: name.into(), about: String::new() };
        let factor =
            |name: &str, default, accepts| Factor { name: name.into(), about: String::new(), default, accepts };
        let text = |text: &str| Level::Text(text.into());
        let metric = |name, unit, better| Metric::new(name, "", unit, better);
        let spec = Spec {
            id: "sum".into(),
            variants: vec![variant("naive"), variant("kahan")],
            factors: vec![
                factor("elements", Level::Integer(1000), Accepts::Integers { min: 1, max: 1 << 30 }),
                factor("type", text("f32"), Accepts::OneOf(vec![text("f32"), text("f64")])),
            ],
            metrics: vec![
                metric("time", Unit::Nanosecond, Better::Lower),
                metric("throughput", Unit::BytePerSecond, Better::Higher),
                metric("error", Unit::One, Better::Lower),
            ],
            ..Spec::default()
        };
        Sums { spec }
    }
}

impl Experiment for Sums {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn open(&self, _: &[Arm], _: &Setup) -> Result<Box<dyn Session>, TargetError> {
        unreachable!("nothing is measured")
    }
}
