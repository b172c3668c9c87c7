//! A user's own bench: `cargo bench --bench sums`.

use std::process::ExitCode;

use ascertain::bench::{Group, Throughput, run};

fn main() -> ExitCode {
    let inputs = [100, 10_000].map(|elements| (elements, (0..elements).map(|i| i as f64).collect::<Vec<f64>>()));
    let mut group = Group::new("sums");
    for (elements, data) in &inputs {
        group = group
            .at("elements", elements)
            .throughput(Throughput::Bytes(8 * elements))
            .function_with_input("loop", data, |data| data.iter().sum::<f64>())
            .function_with_input("chunks", data, |data| data.chunks(8).map(|c| c.iter().sum::<f64>()).sum::<f64>())
            .function_with_setup_ref("sorted", || data.clone(), |data| data.sort_by(f64::total_cmp));
    }
    run([group])
}
