//! A user's own bench, in a dozen lines: `cargo bench --bench sums`.

use std::process::ExitCode;

use ascertain::bench::{Group, Throughput, black_box, run};

fn main() -> ExitCode {
    let data: Vec<f64> = (0..10_000).map(f64::from).collect();
    let group = Group::new("sums")
        .throughput(Throughput::Bytes(80_000))
        .function("loop", || black_box(&data).iter().sum::<f64>())
        .function("chunks", || black_box(&data).chunks(8).map(|chunk| chunk.iter().sum::<f64>()).sum::<f64>())
        .function_with_setup(
            "sorted",
            || data.clone(),
            |mut data| {
                data.sort_by(f64::total_cmp);
                data
            },
        );
    run([group])
}
