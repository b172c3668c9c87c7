//! Writes runs of many different shapes and their reports, for the test in a browser. Usage: `shapes DIR`.

#[path = "../tests/all/shapes/mod.rs"]
mod shapes;

use std::path::{Path, PathBuf};

use ascertain_engine::recorded::{self, RecordedRun};
use ascertain_report::{export, html};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let folder: PathBuf = std::env::args_os().nth(1).ok_or("missing argument: the folder to write to")?.into();
    let runs = folder.join("runs");
    let mut written = Vec::new();
    // The second run has as many claims as Ascertain ships.
    let many = [shapes::MILLION(), shapes::many_claims(181)];
    for shape in shapes::SHAPES.iter().map(|shape| shape()).chain(many) {
        let run = shape.write(&runs);
        report(&folder, shape.name, &[&run])?;
        written.push(run);
    }
    let several: Vec<&PathBuf> =
        written.iter().filter(|run| is_one_of(run, &["holds-and-refuted", "killed"])).collect();
    report(&folder, "several-runs", &several)
}

fn is_one_of(run: &Path, names: &[&str]) -> bool {
    names.iter().any(|name| run.to_string_lossy().ends_with(name))
}

fn report(folder: &Path, name: &str, runs: &[&PathBuf]) -> Result<(), Failure> {
    let read = runs.iter().map(|run| recorded::read(run)).collect::<Result<Vec<RecordedRun>, _>>()?;
    export::write(&folder.join(format!("{name}.html")), &html::page(&read))?;
    Ok(())
}
