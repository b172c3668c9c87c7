//! Prints the JSON schema of claims files. `cargo xtask schema` writes it to `claims/schema.json`.
#![allow(clippy::print_stdout)]

fn main() {
    let schema = ascertain_engine::claims_file::json_schema(&ascertain_experiments::registry());
    println!("{schema:#}");
}
