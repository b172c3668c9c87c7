//! An example of your own bench: `cargo bench --bench sums`.

use std::process::ExitCode;

use ascertain::bench::{Group, Throughput, run};

fn main() -> ExitCode {
    let inputs = [100, 10_000].map(|elements| (elements, (0..elements).map(|i| i as f64).collect::<Vec<f64>>()));
    let numbers: Vec<u64> = (0..10_000).map(|n| n * 7919 % 10_007).collect();

    let mut sums = Group::new("sums");
    for (elements, data) in &inputs {
        sums = sums
            .at("elements", elements)
            .throughput(Throughput::Bytes(8 * elements))
            .function_with_input("loop", data, |data| data.iter().sum::<f64>())
            .function_with_input("chunks", data, |data| data.chunks(8).map(|c| c.iter().sum::<f64>()).sum::<f64>())
            .function_with_input("halves", data, |data| {
                let (low, high) = data.split_at(data.len() / 2);
                low.iter().zip(high).map(|(a, b)| a + b).sum::<f64>()
            });
    }
    let sorts = Group::new("sorts")
        .function_with_setup_ref("stable", || numbers.clone(), |numbers| numbers.sort())
        .function_with_setup_ref("unstable", || numbers.clone(), |numbers| numbers.sort_unstable());
    run([sums, sorts])
}
