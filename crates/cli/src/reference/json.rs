//! The keys of everything that `--format json` prints. They are read from the source of the types that are serialised.
//! A field gives a key's name and type, and the field's documentation gives the key's meaning.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::{code, escaped, head, in_root, row};

/// Folders with the source files of the serialised types.
const SOURCES: [&str; 6] = ["engine/src", "report/src", "sys/src", "transfer/src", "permute/src", "fsmonitor/src"];

/// A schema of JSON output: its name, the commands that print it, and the serialised type. The list at the end has the
/// keys that other code adds to the output of the type, each with its name, type and meaning.
type Schema = (&'static str, &'static str, &'static str, &'static [(&'static str, &'static str, &'static str)]);

const SCHEMAS: &[Schema] = &[
    (
        "ascertain.run/1",
        "`compare`, `slo`, `check`, `run`, `continue`, `report`",
        "Outcome",
        &[
            (
                "threat_codes",
                "list of objects",
                "The same as `threats`, in structured form: each has a `code` and its figures.",
            ),
            (
                "claims[].reason_codes",
                "list of objects",
                "The same as `reason`, in structured form: each has a `code` and its figures.",
            ),
            (
                "claims[].unlike_codes",
                "list of objects",
                "The same as `unlike`, in structured form: each has a `code` and its figures.",
            ),
            ("claims[].size", "string or null", "For a claim about a ratio: the size of the difference in words."),
            (
                "claims[].times_baseline",
                "number or null",
                "For a claim about a ratio: the candidate's value over the baseline's. 1.3 is 1.3 times as long.",
            ),
            ("claims[].times_baseline_low", "number or null", "The lower end of the interval of `times_baseline`."),
            ("claims[].times_baseline_high", "number or null", "The upper end of the interval of `times_baseline`."),
            ("left_out[].reason_code", "object", "The same as `reason`, in structured form."),
            ("remarks[].remark_code", "object", "The same as `remark`, in structured form."),
        ],
    ),
    ("ascertain.identical/1", "`compare --against`, if the programs are equal", "IdenticalPrograms", &[]),
    ("ascertain.judgement/1", "`judge`", "Judgement", &[]),
    ("ascertain.power/1", "`power`", "PowerAnalysis", &[]),
    (
        "ascertain.cost/1",
        "`cost`",
        "CostReport",
        &[
            ("comparisons[].answer", "string", "The answer as a sentence."),
            ("findings[].sentence", "string", "The finding as a sentence."),
        ],
    ),
    ("ascertain.pyperf/1", "`pyperf`", "PyperfReport", &[]),
    ("ascertain.figures/1", "`cost --figures` without prices", "RecordedFigures", &[]),
    ("ascertain.permute/1", "`permute`", "Permutation", &[]),
    (
        "ascertain.series/1",
        "`series`",
        "",
        &[
            ("expression", "string", "The expression."),
            ("unit", "string", "The unit of the results."),
            ("has_ranges", "boolean", "`true` if results are ranges, because observations were cut off."),
            (
                "recorded_every",
                "number",
                "The n of a run that recorded every n-th observation; 1 if the run recorded all of them.",
            ),
            ("memory.states_bytes", "number", "Buffers and states of the operators, in bytes."),
            ("memory.in_flight_bytes", "number", "Values in flight between the operators, in bytes."),
            ("memory.steps_bytes", "number", "The list of steps, in bytes."),
            ("memory.reading_bytes", "number", "Columns into which the rows of a block are read, in bytes."),
            ("memory.total_bytes", "number", "Sum of the other four, in bytes; `--memory` limits it."),
            (
                "results[]",
                "number, list or null",
                "The results in their order. `null` stands for a value that was not observed or is undefined. With \
                 ranges, each other result is a list of a lower and an upper bound; a bound that is `null` is \
                 infinite. Without ranges, an infinite result is `null` too, and `infinite` counts it.",
            ),
            ("count", "number", "The number of results."),
            ("nulls", "number", "The number of results that were not observed or are undefined."),
            ("infinite", "number", "The number of results that are infinite or have an infinite bound."),
            ("undecided", "number", "The number of values that `where` left out because its condition was null."),
        ],
    ),
    ("ascertain.calibration/1", "`calibrate-here`", "Calibration", &[]),
    ("ascertain.history/1", "`history`, `history list`", "RunList", &[]),
    ("ascertain.trend/1", "`history trend`", "RunTrend", &[]),
    ("ascertain.changes/1", "`history changes`", "Changes", &[]),
    (
        "ascertain.comparison/1",
        "`history compare`",
        "RunComparison",
        &[
            ("points[].experiment", "string", "The experiment."),
            ("points[].variant", "string", "The variant."),
            ("points[].at", "object", "The level of each factor."),
            ("points[].metric", "string", "The metric."),
            ("points[].unit", "string", "The unit of the metric."),
            ("points[].better", "string", "`lower` or `higher`."),
            ("points[].estimates[]", "object", "`n`, `median`, `low` and `high`, in the first run and in the second."),
            ("points[].ratio", "number or null", "The second median divided by the first."),
            ("claims[].experiment", "string", "The experiment."),
            ("claims[].id", "string", "The id of the claim."),
            ("claims[].says", "string", "The claim as a sentence."),
            (
                "claims[].sides[]",
                "object",
                "`answer`, `trials`, `ratio`, `ratio_low`, `ratio_high`, `rate`, `rate_low`, `rate_high` and `figure`, \
                 in the first run and in the second.",
            ),
        ],
    ),
    ("ascertain.prune/1", "`history prune`", "Pruning", &[]),
    (
        "ascertain.list/1",
        "`list`",
        "",
        &[
            ("experiments[].id", "string", "The name of the experiment."),
            ("experiments[].title", "string", "A line about the experiment."),
            ("experiments[].variants[].name", "string", "The name of a variant."),
            ("experiments[].variants[].about", "string", "A line about the variant."),
            (
                "experiments[].variants[].unavailable",
                "string or null",
                "The reason why this machine cannot run the variant.",
            ),
            ("experiments[].factors[].name", "string", "The name of a factor."),
            ("experiments[].factors[].about", "string", "A line about the factor."),
            ("experiments[].factors[].default", "string or number", "The level that is used if none is given."),
            ("experiments[].factors[].accepts", "string or object", "The levels that the factor accepts."),
            ("experiments[].metrics[]", "Metric", ""),
            ("experiments[].claims[]", "string", "The ids of the shipped claims about the experiment."),
        ],
    ),
    (
        "ascertain.explanation/1",
        "`explain`; it has either `experiment` or `claim`",
        "",
        &[
            ("experiment.id", "string", "The name of the experiment."),
            ("experiment.readme", "string", "The README of the experiment, in Markdown."),
            ("experiment.claims[].id", "string", "The id of a shipped claim."),
            ("experiment.claims[].says", "string", "The claim as a sentence."),
            ("claim.id", "string", "The id of the claim."),
            ("claim.says", "string", "The claim as a sentence."),
            ("claim.source", "string", "The document that makes the claim."),
            ("claim.source_value", "string", "The figure that the claim states, as written in the source."),
            (
                "claim.analysis",
                "string",
                "The reasons why the claim should hold, and the conditions under which it will not.",
            ),
            ("claim.restated", "string", "The claim of the source, restated as a rate of successful trials."),
            ("claim.experiment", "string", "The experiment that measures the claim."),
            ("claim.rate", "number", "The share of trials in which the condition of the claim must be true."),
            ("claim.asked", "Hypothesis", ""),
        ],
    ),
    (
        "ascertain.transfer/1",
        "`put`, `get`",
        "TransferReport",
        &[
            ("files[].path", "string", "The local path."),
            ("files[].name", "string", "The address in the store."),
            ("files[].bytes", "number", "The size of the file in bytes."),
            ("files[].done", "string", "`dry-run`, `moved`, `exists`, `unchanged` or `failed`."),
            ("files[].error", "string or null", "The reason of a failure."),
            ("files[].resumed_bytes", "number or null", "The bytes that an earlier attempt had transferred."),
            (
                "files[].begun_anew",
                "string",
                "The reason why an interrupted transfer was restarted; left out if it was not.",
            ),
            (
                "files[].repaired[].offset",
                "number",
                "The offset in bytes of a range that arrived damaged and was fetched again. Left out if there is none.",
            ),
            ("files[].repaired[].bytes", "number", "The size of the damaged range in bytes."),
            ("files[].blocks", "number or null", "The number of parts."),
            ("files[].elapsed_s", "number or null", "The duration of the transfer, in seconds."),
            ("files[].crc64", "string or null", "The CRC-64/NVME of the file, in hexadecimal."),
            ("files[].verified", "boolean or null", "`true` if the stored file was read back and compared."),
            ("files[].requests", "RequestSummary", ""),
            ("files[].plan", "TransferPlan", ""),
        ],
    ),
    ("ascertain.ls/1", "`ls`", "ObjectList", &[]),
    ("ascertain.fsmonitor-enable/1", "`fsmonitor enable`", "Enabled", &[]),
    (
        "ascertain.fsmonitor-disable/1",
        "`fsmonitor disable`",
        "",
        &[("was_enabled", "boolean", "`true` if the monitor was enabled.")],
    ),
    ("ascertain.fsmonitor-status/1", "`fsmonitor status`", "MonitorStatus", &[]),
    (
        "ascertain.fsmonitor-since/1",
        "`fsmonitor since`",
        "",
        &[
            ("token", "string", "The token for the next question."),
            (
                "paths[]",
                "string",
                "The paths that may have changed, relative to the root. `null` if anything may have changed.",
            ),
            ("everything", "string or null", "The reason why anything may have changed."),
        ],
    ),
    (
        "ascertain.barrierd/1",
        "`barrierd --status`",
        "",
        &[
            ("path", "string or null", "The path of the daemon's socket."),
            ("pid", "number", "The process ID of the daemon."),
            ("virtual_time", "number", "The virtual time: the number of interrupts on all CPUs until now."),
            ("beats", "number", "The number of heartbeats."),
            ("period_ns", "number", "The minimum time between two heartbeats."),
            ("cpu_time_ns", "number", "The CPU time that the daemon has used."),
            (
                "barrier_ns",
                "number or null",
                "With `--once`: the time of one barrier, which waits until every CPU was interrupted or idle.",
            ),
            ("cpus[].cpu", "number", "The number of a CPU."),
            ("cpus[].idle", "boolean", "`true` if the CPU is idle."),
            ("cpus[].interrupts", "number", "The number of recorded interrupts of the CPU."),
            ("cpus[].age_ns", "number", "The time since the last interrupt of the CPU."),
        ],
    ),
];

/// A field of a serialised type.
struct Field {
    key: String,
    kind: String,
    about: String,
    is_flattened: bool,
    has_own_form: bool,
}

/// A type that is serialised, as it is declared in the source code.
enum Type {
    Struct(Vec<Field>),
    /// An enumeration whose variants are plain words.
    Words(Vec<String>),
    Other,
}

/// Returns the text of the reference page about JSON output.
pub fn page() -> String {
    let mut types = BTreeMap::new();
    for folder in SOURCES {
        read_folder(&in_root("crates").join(folder), &mut types);
    }
    let mut text =
        "# JSON output\n\n`--format json` prints one object. `schema` is the name and the version of its format. \
                    A value that is not known is `null`. In the names below, `[]` marks the elements of a list.\n"
            .to_owned();
    for (schema, commands, root, added) in SCHEMAS {
        let _ = write!(text, "\n## {schema}\n\nPrinted by {commands}.\n\n{}", head(&["key", "type", "meaning"]));
        let mut rows = Rows { types: &types, expanded: BTreeMap::new(), text: &mut text };
        if !root.is_empty() {
            rows.add(root, "");
        }
        for (key, kind, about) in *added {
            match types.get(*kind) {
                Some(Type::Struct(_)) => rows.add(kind, &format!("{key}.")),
                Some(_) => {
                    rows.text.push_str(&row(&[&code(key), "object", "The condition that must be true of a trial."]))
                }
                None if kind.starts_with(char::is_uppercase) => panic!("no serialised type `{kind}`"),
                None => rows.text.push_str(&row(&[&code(key), kind, about])),
            }
        }
    }
    text
}

/// The rows of a schema's table, which are appended to the reference page.
struct Rows<'a> {
    types: &'a BTreeMap<String, Type>,
    /// The types whose keys already have rows, with the prefix of these keys. Later rows for the same type refer to
    /// them.
    expanded: BTreeMap<String, String>,
    text: &'a mut String,
}

impl Rows<'_> {
    /// Adds a row for each key of a type, and for the keys of the types of its fields.
    fn add(&mut self, name: &str, prefix: &str) {
        let types = self.types;
        let Some(Type::Struct(fields)) = types.get(name) else { panic!("no serialised type `{name}`") };
        self.expanded.insert(name.to_owned(), prefix.trim_end_matches('.').to_owned());
        for Field { key, kind, about, is_flattened, has_own_form } in fields {
            if *is_flattened {
                self.add(&unwrapped(kind).0, prefix);
                continue;
            }
            let (inner, suffix, is_optional) = unwrapped(kind);
            let key = format!("{prefix}{key}{suffix}");
            let null = if is_optional { " or null" } else { "" };
            let about = escaped(about);
            let mut is_nested = false;
            let (kind, about) = match types.get(&inner) {
                Some(Type::Struct(_)) if !has_own_form => match self.expanded.get(&inner) {
                    Some(first) => ("object", format!("{about} The keys are those of `{first}`.")),
                    None => {
                        is_nested = true;
                        ("object", about)
                    }
                },
                Some(Type::Words(words)) => {
                    let words: Vec<String> = words.iter().map(|word| code(word)).collect();
                    ("string", format!("{about} One of: {}.", words.join(", ")))
                }
                _ => (plain(&inner), about),
            };
            self.text.push_str(&row(&[&code(&key), &format!("{kind}{null}"), &about]));
            if is_nested {
                self.add(&inner, &format!("{key}."));
            }
        }
    }
}

/// Returns three properties of a field's type. The first is the type inside of `Option`, lists and references. The
/// second is a suffix for the key, with `[]` for each list. The third is `true` if the value can be `null`.
fn unwrapped(kind: &str) -> (String, String, bool) {
    let mut kind = kind.trim();
    let (mut suffix, mut is_optional) = (String::new(), false);
    loop {
        kind = kind.trim_start_matches('&').trim_start_matches("'static ").trim_start_matches("'a ");
        let inside = |open: &str, close: char| kind.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
        if let Some(inner) = inside("Option<", '>') {
            (kind, is_optional) = (inner, true);
        } else if let Some(inner) = inside("Vec<", '>') {
            kind = inner;
            suffix += "[]";
        } else if let Some(inner) = inside("[", ']') {
            kind = inner.split(';').next().unwrap_or(inner);
            suffix += "[]";
        } else {
            return (kind.trim().to_owned(), suffix, is_optional);
        }
    }
}

/// Returns JSON's name of a simple type.
fn plain(kind: &str) -> &'static str {
    match kind {
        "String" | "str" | "PathBuf" | "Unit" | "Reason" | "Remark" | "Threat" | "Unlike" => "string",
        "f64" | "f32" | "u64" | "u32" | "u8" | "u16" | "i64" | "i32" | "usize" => "number",
        "bool" => "boolean",
        _ => "object",
    }
}

fn read_folder(folder: &Path, types: &mut BTreeMap<String, Type>) {
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            read_folder(&path, types);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            read_types(&fs::read_to_string(path).unwrap(), types);
        }
    }
}

/// Finds the types with `Serialize` in the text of a source file, and adds them to `types` by their names. Relies on
/// the format that rustfmt gives them.
fn read_types(source: &str, types: &mut BTreeMap<String, Type>) {
    let mut lines = source.lines();
    let mut attributes = String::new();
    while let Some(line) = lines.next() {
        if line.starts_with("#[") || line.starts_with("///") {
            attributes += line;
        } else if let Some((kind, own)) = declaration(line) {
            if attributes.contains("Serialize") {
                let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "}").collect();
                let read = if kind == "struct" { Type::Struct(fields(&body)) } else { words(&body, &attributes) };
                types.entry(own.to_owned()).or_insert(read);
            }
            attributes.clear();
        } else {
            attributes.clear();
        }
    }
}

/// Returns the kind and the name of the type that a line declares; `None` if the line declares no type with a body.
fn declaration(line: &str) -> Option<(&str, &str)> {
    let line = line.strip_suffix(" {")?;
    let line = line.strip_prefix("pub ").or_else(|| line.strip_prefix("pub(crate) ")).unwrap_or(line);
    let (kind, rest) = line.split_once(' ').filter(|(kind, _)| ["struct", "enum"].contains(kind))?;
    Some((kind, rest.split('<').next()?))
}

fn fields(body: &[&str]) -> Vec<Field> {
    let mut fields = Vec::new();
    let (mut about, mut serde, mut is_about_over) = (String::new(), String::new(), false);
    for line in body.iter().map(|line| line.trim()) {
        if let Some(words) = line.strip_prefix("///") {
            is_about_over |= words.trim().is_empty();
            if !is_about_over {
                about = format!("{about} {}", words.trim()).trim().to_owned();
            }
        } else if line.starts_with("#[serde") {
            serde += line;
        } else if let Some((name, kind)) = line.strip_suffix(',').and_then(|line| line.split_once(": ")) {
            let name = name.rsplit(' ').next().unwrap_or(name);
            let value = |key: &str| Some(serde.split_once(&format!("{key} = \""))?.1.split('"').next()?.to_owned());
            let is_skipped = serde.contains("(skip)") || serde.contains(" skip,") || serde.contains("(skip,");
            let remote = value("with").filter(|_| serde.contains("flatten"));
            if !is_skipped {
                let about = match about.as_str() {
                    _ if about.starts_with("[`SCHEMA`]") => "The name and version of this format.".to_owned(),
                    about => without_links(about).replace("`None`", "`null`"),
                };
                fields.push(Field {
                    key: value("rename").unwrap_or_else(|| name.to_owned()),
                    kind: remote.unwrap_or_else(|| kind.to_owned()),
                    about,
                    is_flattened: serde.contains("flatten"),
                    has_own_form: serde.contains("serialize_with"),
                });
            }
            (about, serde, is_about_over) = (String::new(), String::new(), false);
        }
    }
    fields
}

/// Returns the text without the targets of its links, because rustdoc's link targets lead nowhere in a book.
fn without_links(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once('[') {
        let Some((label, after)) = link.split_once(']') else { break };
        shown += before;
        shown += label;
        rest = after.strip_prefix('(').and_then(|target| target.split_once(')')).map_or(after, |(_, after)| after);
    }
    shown + rest
}

fn words(body: &[&str], attributes: &str) -> Type {
    let variants: Vec<&str> =
        body.iter().map(|line| line.trim()).filter(|line| !line.starts_with("//") && !line.starts_with("#[")).collect();
    let is_word = |line: &&str| line.strip_suffix(',').is_some_and(|name| name.chars().all(char::is_alphanumeric));
    if !attributes.contains("snake_case") || !variants.iter().all(is_word) {
        return Type::Other;
    }
    let snake = |name: &&str| {
        let mut word = String::new();
        for c in name.trim_end_matches(',').chars() {
            if c.is_uppercase() && !word.is_empty() {
                word.push('_');
            }
            word.extend(c.to_lowercase());
        }
        word
    };
    Type::Words(variants.iter().map(snake).collect())
}

#[test]
fn types_are_read_from_their_source() {
    let source = "/// A run.\n#[derive(Serialize)]\npub struct Run {\n    /// Its [name](x).\n    ///\n    /// More.\n    \
                  #[serde(rename = \"id\")]\n    pub name: Option<Vec<String>>,\n    #[serde(skip)]\n    cache: u64,\n}\n\n\
                  #[derive(Serialize)]\n#[serde(rename_all = \"snake_case\")]\nenum State {\n    /// Ended.\n    HasEnded,\n}\n";
    let mut types = BTreeMap::new();
    read_types(source, &mut types);
    let Type::Struct(fields) = &types["Run"] else { panic!("a struct") };
    assert_eq!(fields.iter().map(|field| (&*field.key, &*field.about)).collect::<Vec<_>>(), [("id", "Its name.")]);
    assert_eq!(unwrapped(&fields[0].kind), ("String".into(), "[]".into(), true));
    assert!(matches!(&types["State"], Type::Words(words) if words == &["has_ended"]));
}
