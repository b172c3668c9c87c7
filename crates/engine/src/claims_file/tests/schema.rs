//! The JSON schema and the table of keys say the same.

use serde_json::{Value, json};

use super::registry::{fill_rate, sum};
use crate::claims_file::json_schema;
use crate::claims_file::keys::KEYS;

fn claim_schema() -> Value {
    json_schema(&[&sum(), &fill_rate()])["properties"]["claim"]["items"].clone()
}

#[test]
fn the_schema_has_every_key_with_a_description() {
    let schema = claim_schema();
    let properties = schema["properties"].as_object().unwrap();
    let mut names: Vec<&str> = KEYS.iter().map(|key| key.name).collect();
    names.sort_unstable();
    let mut known: Vec<&str> = properties.keys().map(String::as_str).collect();
    known.sort_unstable();
    assert_eq!(known, names);
    assert!(properties.values().all(|schema| schema["description"].is_string()));
    assert_eq!(schema["additionalProperties"], false);
}

#[test]
fn the_schema_names_what_can_be_measured() {
    let schema = claim_schema();
    assert_eq!(schema["properties"]["experiment"]["enum"], json!(["sum", "fill-rate"]));
    let of_sum = &schema["allOf"][0];
    assert_eq!(of_sum["if"]["properties"]["experiment"]["const"], "sum");
    let properties = &of_sum["then"]["properties"];
    assert_eq!(properties["metric"]["enum"], json!(["time", "error", "memory", "throughput"]));
    assert_eq!(properties["candidate"]["anyOf"][0]["enum"], json!(["naive", "kahan", "kahan-avx512"]));
    assert_eq!(properties["candidate"]["anyOf"][1]["properties"]["type"]["enum"], json!(["f32", "f64"]));
    let elements = &properties["at"]["properties"]["elements"]["anyOf"];
    assert_eq!(elements[0]["anyOf"][0], json!({"type": "integer", "minimum": 1, "maximum": 1 << 30}));
    assert_eq!(elements[1]["items"], elements[0]);
    assert_eq!(properties["at"]["properties"]["accumulators"]["anyOf"][0]["anyOf"][0]["enum"], json!([1, 2, 4, 8]));
}

#[test]
fn the_schema_wants_exactly_one_bound() {
    let schema = claim_schema();
    let bounds = &schema["allOf"][2]["oneOf"];
    assert_eq!(bounds[3], json!({"required": ["predicate"]}));
    assert_eq!(bounds.as_array().map(Vec::len), Some(4));
}

#[test]
fn the_reference_explains_every_key() {
    let reference = include_str!("../mod.rs");
    for key in KEYS {
        assert!(reference.contains(&format!("//! | `{}` |", key.name)), "{}", key.name);
    }
}
