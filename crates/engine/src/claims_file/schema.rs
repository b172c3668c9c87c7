//! The JSON schema of claims files, for editors that complete and check TOML.

use serde_json::{Map, Value, json};

use super::keys::{BOUNDS, Form, KEYS};
use crate::experiment::{Accepts, Experiment, Factor, Spec};
use crate::plan::Registry;

/// Returns the JSON schema for claims files about these experiments (draft 7, which TOML editors support). The schema
/// is less strict than [`parse`](super::parse): it checks words and types, but not quantities, predicates, or
/// combinations of keys.
///
/// ```
/// let schema = ascertain_engine::claims_file::json_schema(&[]);
/// assert_eq!(schema["properties"]["claim"]["items"]["required"], serde_json::json!(["id"]));
/// ```
pub fn json_schema(registry: &Registry<'_>) -> Value {
    let ids: Vec<&str> = registry.iter().map(|experiment| experiment.spec().id.as_str()).collect();
    let mut properties: Map<String, Value> = Map::new();
    for key in KEYS {
        let mut schema = form(key.form);
        schema["description"] = json!(key.about);
        properties.insert(key.name.to_string(), schema);
    }
    properties["experiment"]["enum"] = json!(ids);
    let of_experiment = |experiment: &&dyn Experiment| with_experiment(experiment.spec());
    let mut rules: Vec<Value> = registry.iter().map(of_experiment).collect();
    rules.push(json!({"oneOf": BOUNDS.map(|key| json!({"required": [key]}))}));
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Ascertain: a file of claims",
        "type": "object",
        "properties": {
            "claim": {
                "description": "The claims.",
                "type": "array",
                "minItems": 1,
                "items": {
                    "type": "object",
                    "properties": properties,
                    "required": ["id"],
                    "additionalProperties": false,
                    "allOf": rules,
                },
            },
        },
        "required": ["claim"],
        "additionalProperties": false,
    })
}

/// Returns the schema for values of this form, as far as it does not depend on the experiment.
fn form(form: Form) -> Value {
    match form {
        Form::Id => json!({"type": "string", "pattern": "^[a-z0-9._-]+$"}),
        Form::Text => json!({"type": "string"}),
        Form::Line => json!({"type": "string", "pattern": "\\S"}),
        Form::OneOf(words) => json!({"enum": words}),
        Form::Flag => json!({"type": "boolean"}),
        Form::Share => json!({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}),
        Form::Count => json!({"type": "integer", "minimum": 1}),
        Form::Duration => json!({"type": "string", "examples": ["30 s"]}),
        Form::Bound => json!({"type": ["number", "string"]}),
        Form::Pair => json!({"type": "array", "items": {"type": ["number", "string"]}, "minItems": 2, "maxItems": 2}),
        Form::Levels => json!({"type": "object"}),
        Form::Metrics => json!({"type": "object", "additionalProperties": {"anyOf": [
            {"type": "string"},
            {
                "type": "object",
                "properties": {
                    "pattern": {"type": "string"},
                    "unit": {"type": "string"},
                    "better": {"enum": ["higher", "lower"]},
                },
                "required": ["pattern"],
                "additionalProperties": false,
            },
        ]}}),
        Form::Side => json!({"type": ["string", "object"]}),
    }
}

/// Returns the schema for claims about this experiment.
fn with_experiment(spec: &Spec) -> Value {
    let variants: Vec<&str> = spec.variants.iter().map(|variant| variant.name.as_str()).collect();
    let metrics: Vec<&str> = spec.metrics.iter().map(|metric| metric.name.as_str()).collect();
    let of_factors = |schema: &dyn Fn(&Factor) -> Value| -> Map<String, Value> {
        spec.factors.iter().map(|factor| (factor.name.clone(), schema(factor))).collect()
    };
    let levels = of_factors(&|factor| {
        let one = level(&factor.accepts);
        json!({"description": factor.about, "anyOf": [one, {"type": "array", "items": one, "minItems": 1}]})
    });
    let mut overrides = of_factors(&|factor| level(&factor.accepts));
    overrides.insert("variant".into(), json!({"enum": variants}));
    let side = json!({"anyOf": [
        {"enum": variants},
        {"type": "object", "properties": overrides, "required": ["variant"], "additionalProperties": false},
    ]});
    json!({
        "if": {"properties": {"experiment": {"const": spec.id}}, "required": ["experiment"]},
        "then": {"properties": {
            "at": {"properties": levels, "additionalProperties": false},
            "metric": {"enum": metrics},
            "candidate": side,
            "baseline": side,
        }},
    })
}

/// Returns the schema for one level of a factor.
fn level(accepts: &Accepts) -> Value {
    let with_suffix = json!({"type": "string", "pattern": "^[0-9][0-9_]*(Ki|Mi|Gi|k|M|G)?$"});
    match accepts {
        Accepts::Integers { min, max } => {
            json!({"anyOf": [{"type": "integer", "minimum": min, "maximum": max}, with_suffix]})
        }
        Accepts::OneOf(levels) if levels.iter().any(|level| level.integer().is_some()) => {
            json!({"anyOf": [{"enum": levels}, with_suffix]})
        }
        Accepts::OneOf(levels) => json!({"enum": levels}),
        Accepts::Anything => json!({"type": ["integer", "string"]}),
        Accepts::List => json!({"type": "string"}),
        Accepts::Address { .. } => json!({"type": "string"}),
    }
}
