//! Paths into JSON, and the search for JSON in the output of a command.

use serde_json::{Deserializer, Value};

/// A path such as `.stats.p99` or `.runs[0]["wall time"]`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct JsonPath(Vec<Step>);

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Key(String),
    /// Leads to an item of a list; a negative index counts from the end.
    Index(i64),
}

impl JsonPath {
    /// Parses a path; returns `None` if the text is not a path.
    pub fn parse(text: &str) -> Option<JsonPath> {
        let (mut steps, mut rest) = (Vec::new(), text);
        while !rest.is_empty() {
            if let Some(key) = rest.strip_prefix('.') {
                let end = key.find(['.', '[']).unwrap_or(key.len());
                // `.["key"]` is the form that jq prints.
                if end > 0 {
                    steps.push(Step::Key(key[..end].to_string()));
                } else if !key.starts_with('[') {
                    return None;
                }
                rest = &key[end..];
            } else {
                let inside = rest.strip_prefix('[')?;
                let mut values = Deserializer::from_str(inside).into_iter::<Value>();
                let step = match values.next()?.ok()? {
                    Value::String(key) => Step::Key(key),
                    number => Step::Index(number.as_i64()?),
                };
                steps.push(step);
                rest = inside[values.byte_offset()..].strip_prefix(']')?;
            }
        }
        (!steps.is_empty()).then_some(JsonPath(steps))
    }

    pub fn last_key(&self) -> Option<String> {
        self.0.iter().rev().find_map(|step| match step {
            Step::Key(key) => Some(key.clone()),
            Step::Index(_) => None,
        })
    }

    /// Returns the value at this path; `None` if there is none.
    pub fn find<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        self.0.iter().try_fold(value, |value, step| match step {
            Step::Key(key) => value.get(key),
            Step::Index(index) => {
                let list = value.as_array()?;
                let at = if *index < 0 { list.len().checked_add_signed(*index as isize)? } else { *index as usize };
                list.get(at)
            }
        })
    }
}

/// Returns the last JSON object or list that begins at the start of a line. Skips all other text, including objects and
/// lists that begin on an indented line. These belong to a larger value, which must be invalid or incomplete: otherwise
/// it would have been read as a whole.
pub(super) fn last_value(output: &str) -> Option<Value> {
    let (mut last, mut at) = (None, 0);
    while at < output.len() {
        let rest = &output[at..];
        let next_line = || at + rest.find('\n').map_or(rest.len(), |end| end + 1);
        if !rest.starts_with(['{', '[']) {
            at = next_line();
            continue;
        }
        let mut values = Deserializer::from_str(rest).into_iter::<Value>();
        at = match values.next() {
            Some(Ok(value)) => {
                last = Some(value);
                at + values.byte_offset()
            }
            _ => next_line(),
        };
    }
    last
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_lead_to_keys_and_places() {
        let value = json!({"stats": {"p99": 5, "a.b": 6}, "runs": [{"t": 1}, {"t": 2}]});
        let found = |path: &str| JsonPath::parse(path).unwrap().find(&value).cloned();
        assert_eq!(found(".stats.p99"), Some(json!(5)));
        assert_eq!(found(".stats[\"a.b\"]"), Some(json!(6)));
        assert_eq!(found(".stats.[\"a.b\"]"), Some(json!(6)), "as jq prints it");
        assert_eq!(found(".runs[0].t"), Some(json!(1)));
        assert_eq!(found(".runs[-1].t"), Some(json!(2)));
        for nowhere in [".runs[2]", ".runs[-3]", ".stats[0]", ".runs.t", ".stats.p99.x"] {
            assert_eq!(found(nowhere), None, "{nowhere}");
        }
        for wrong in ["", "stats", ".", "..a", ".a.", ".a[", ".a[x]", ".a[0", ".a[1.5]", ".a[\"x]", "[]"] {
            assert_eq!(JsonPath::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_last_value_of_the_output_counts() {
        assert_eq!(last_value("{\"a\": 1}\n{\"a\": 2}\n"), Some(json!({"a": 2})));
        assert_eq!(last_value("{\"a\": 1}{\"a\": 2}"), Some(json!({"a": 2})));
        assert_eq!(last_value("warning: [x]\n{\n  \"a\": [\n1\n]\n}\n[ok] done\n"), Some(json!({"a": [1]})));
        assert_eq!(last_value("{\n  \"a\": {\"b\": 1},\n  {\"b\": 2}\n}\n"), None, "a part is not the whole");
        assert_eq!(last_value("12\n\"x\"\nnull\n"), None);
        assert_eq!(last_value(""), None);
    }
}
