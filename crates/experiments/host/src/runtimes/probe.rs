//! Runtimes, as they describe themselves: their build, what runs at their start, and the program behind a wrapper.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ascertain_engine::experiment::TargetError;
use ascertain_sys::interrupt::Stop;
use ascertain_sys::process::Exit;
use serde_json::Value;

use super::build_id::{identity, mentions};
use super::discover::is_script;
use super::languages::{LANGUAGES, Language};
use super::launch::{self, Program, Ran};
use super::workloads::Folder;

/// Time limit for each process that describes a runtime.
const PROBE_LIMIT: Duration = Duration::from_secs(20);
/// The word before the description in the output of a probe.
const MARK: &str = "ascertain-probe ";
/// Number of starts whose median is the cost of a wrapper.
const STARTS: usize = 5;

/// A runtime that is ready to be measured.
#[derive(Debug)]
pub struct Runtime {
    pub language: &'static Language,
    /// The file that the user gave, or that was found.
    pub given: PathBuf,
    /// The program that is measured.
    pub program: Program,
    /// The wrapper that starts the program; `None` if the given file is the program itself.
    pub wrapper: Option<Wrapper>,
    /// Median time of an empty file, in nanoseconds, if the given file is a script and it is unknown which program does
    /// the work. `None` for all other files.
    pub script_start_ns: Option<f64>,
    /// Facts about the build, by name.
    pub build: BTreeMap<String, String>,
    /// The identity of the build by its content.
    pub identity: String,
    pub hooks: Vec<Hook>,
    /// `true` if the program does not use the seed of hashes that it gets in a variable. Either an option makes it
    /// ignore variables, or the wrapper that is measured sets the variable itself.
    pub ignores_seed: bool,
    /// The file that uses each library, by the name of the module. An empty path stands for the program itself.
    using: BTreeMap<String, PathBuf>,
    mapped: Vec<PathBuf>,
}

/// A wrapper, such as a shim of a version manager.
#[derive(Clone, Debug, PartialEq)]
pub struct Wrapper {
    /// The file that the wrapper starts.
    pub starts: PathBuf,
    /// Median times of an empty program through the wrapper and without it, in nanoseconds.
    pub start_ns: [f64; 2],
    /// Options and variables that the wrapper adds, which the measured program also gets.
    pub kept: Vec<String>,
}

/// Something that runs at each start of a runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    /// Name of the file or module, without blanks.
    pub name: String,
    /// A digest of the content.
    pub content: String,
}

/// The results of [`runtime`], by file and by whether wrappers are followed.
type Known = Vec<((PathBuf, bool), Result<Arc<Runtime>, String>)>;

/// Returns the runtime in a file. Each file is examined only once per process.
///
/// # Errors
/// The reason, for the user, if the file is not a program that runs files.
pub fn runtime(given: &Path, follows: bool) -> Result<Arc<Runtime>, String> {
    static KNOWN: Mutex<Known> = Mutex::new(Vec::new());
    let key = (given.to_path_buf(), follows);
    let find = || {
        let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().find(|(other, _)| *other == key).map(|(_, result)| result.clone())
    };
    if let Some(known) = find() {
        return known;
    }
    let examined = examine(given, follows).map(Arc::new);
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner).push((key, examined.clone()));
    examined
}

fn examine(given: &Path, follows: bool) -> Result<Runtime, String> {
    let folder = Folder::new()?;
    let plain = Program::plain(given);
    let mut first_failure = None;
    for language in LANGUAGES.iter().filter(|language| !language.probe.is_empty()) {
        match describe(&plain, language, &folder)? {
            Ok(description) => return known_language(given, plain, language, &description, (follows, &folder)),
            Err(why) => first_failure = first_failure.or(Some((language, why))),
        }
    }
    match first_failure {
        // A file of this name that cannot run a file of its language is broken, and no other program.
        Some((_, why)) if LANGUAGES[0].is_named(&file_name(given)) => Err(why),
        _ => other_program(given, plain, &folder),
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Runs the probe of a language. Returns its description, or the reason why the program does not run such files.
///
/// # Errors
/// If the program cannot be started at all.
fn describe(program: &Program, language: &Language, folder: &Folder) -> Result<Result<Value, String>, String> {
    let file = folder.write(&format!("probe.{}", language.extension), language.probe)?;
    let ran = start(program, &[file.into()], folder)?;
    let found = ran.output.lines().rev().find_map(|line| line.strip_prefix(MARK));
    let described = found.and_then(|text| serde_json::from_str(text).ok());
    Ok(described.ok_or_else(|| {
        let how = match ran.exit {
            Exit::TimedOut => format!("did not end within {} s", PROBE_LIMIT.as_secs()),
            Exit::Code(0) => "printed no description of itself".to_string(),
            Exit::Code(code) => format!("ended with exit code {code}"),
            exit => format!("ended by {exit:?}"),
        };
        let line = ran.last_error_line();
        let printed = if line.is_empty() { String::new() } else { format!(" (`{line}`)") };
        format!("`{}` {how}{printed} when it ran a small {} file", program.path.display(), language.name)
    }))
}

fn start(program: &Program, arguments: &[OsString], folder: &Folder) -> Result<Ran, String> {
    let ran = launch::run(program, arguments, &[], (folder.path(), PROBE_LIMIT, &Stop::default()));
    ran.map_err(|error: TargetError| error.to_string())
}

/// Returns the text of a key.
fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_string()
}

fn known_language(
    given: &Path,
    plain: Program,
    language: &'static Language,
    description: &Value,
    (follows, folder): (bool, &Folder),
) -> Result<Runtime, String> {
    let started = behind(given, description);
    let mut program = plain.clone();
    let mut wrapper = None;
    if let Some(starts) = started {
        let direct = direct(starts.clone(), description, language);
        let mut variables: Vec<String> = direct
            .environment
            .iter()
            .map(|(name, value)| format!("{}={}", name.to_string_lossy(), value.to_string_lossy()))
            .collect();
        variables.extend(direct.removed.iter().map(|name| format!("{} (unset)", name.to_string_lossy())));
        variables.sort_unstable();
        let options = direct.options.iter().map(|option| option.to_string_lossy().into_owned());
        let kept = options.chain(variables).collect();
        let empty = folder.write(&format!("empty.{}", language.extension), "")?;
        let cost = |program: &Program| median_start(program, &empty, folder);
        wrapper = Some(Wrapper { starts, start_ns: [cost(&plain)?, cost(&direct)?], kept });
        if follows {
            program = direct;
        }
    }
    let seed = description["environment"][language.seed_variable].as_str();
    let sets_seed =
        program == plain && wrapper.is_some() && seed.map(OsString::from) != env::var_os(language.seed_variable);
    let build = description["build"].as_object().into_iter().flatten();
    let build = build.map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_string()));
    let mapped: Vec<PathBuf> =
        description["mapped"].as_array().into_iter().flatten().filter_map(|path| Some(path.as_str()?.into())).collect();
    let hooks = description["hooks"].as_array().into_iter().flatten();
    let mut build: BTreeMap<String, String> = build.collect();
    let preloaded = mapped.iter().map(|path| file_name(path));
    let allocators = ["libjemalloc", "libtcmalloc", "libmimalloc"];
    if let Some(library) = preloaded.into_iter().find(|name| allocators.iter().any(|known| name.starts_with(known))) {
        build.insert("allocator".into(), library);
    }
    Ok(Runtime {
        language,
        given: given.to_path_buf(),
        identity: content(description, &mapped).unwrap_or_else(|| given.display().to_string()),
        program,
        wrapper,
        script_start_ns: None,
        ignores_seed: description["ignores_environment"] == true || !language.seed_variable.is_empty() && sets_seed,
        build,
        hooks: hooks
            .map(|hook| Hook {
                name: text(hook, "name").replace(char::is_whitespace, "_"),
                content: text(hook, "content"),
            })
            .collect(),
        using: description["using"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(module, file)| (module.clone(), file.as_str().unwrap_or_default().into()))
            .collect(),
        mapped,
    })
}

/// Returns the program that the given file starts; `None` if the file is that program, or a link to it. The path that
/// the runtime reports for itself may lie in a virtual environment, so it is preferred to the path that the kernel
/// reports. But it is only a name, which a wrapper may have set to its own (`exec -a "$0" python`).
fn behind(given: &Path, description: &Value) -> Option<PathBuf> {
    let real = |path: &Path| fs::canonicalize(path).ok();
    let running = PathBuf::from(text(description, "running"));
    let own = PathBuf::from(text(description, "executable"));
    if real(given).is_some() && real(given) == real(&running) {
        return None;
    }
    let starts = if own.is_absolute() && real(&own) == real(&running) { own } else { running };
    starts.exists().then_some(starts)
}

/// Returns the program with the options that a wrapper adds, and with the variables that it sets or unsets and that
/// change how the runtime works. The seed of hashes is not one of them, because each process gets its own.
fn direct(path: PathBuf, description: &Value, language: &Language) -> Program {
    let line: Vec<String> =
        description["line"].as_array().into_iter().flatten().filter_map(|word| Some(word.as_str()?.into())).collect();
    let is_probe = |word: &String| word.ends_with(&format!("/probe.{}", language.extension));
    let end = line.iter().position(is_probe).unwrap_or(1).max(1);
    let options = line.iter().take(end).skip(1).map(OsString::from).collect();
    let is_setting = |name: &str| language.is_setting(name) && name != language.seed_variable;
    let variables = description["environment"].as_object();
    let added = variables.into_iter().flatten().filter_map(|(name, value)| {
        let value = value.as_str()?;
        let is_new = env::var_os(name).is_none_or(|known| known != *value);
        (is_new && is_setting(name)).then(|| (name.into(), value.into()))
    });
    let removed = env::vars_os().map(|(name, _)| name).filter(|name| {
        let name = name.to_string_lossy();
        is_setting(&name) && variables.is_some_and(|variables| !variables.contains_key(&*name))
    });
    Program { path, options, environment: added.collect(), removed: removed.collect() }
}

fn median_start(program: &Program, empty: &Path, folder: &Folder) -> Result<f64, String> {
    let mut times = Vec::new();
    for _ in 0..STARTS {
        times.push(start(program, &[empty.into()], folder)?.wall_ns as f64);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[STARTS / 2])
}

/// Returns the identity of a build: the identity of its program and, if it has its own shared library, the identity of
/// that library.
fn content(description: &Value, mapped: &[PathBuf]) -> Option<String> {
    let is_own =
        |path: &&PathBuf| ["libpython", "libpypy", "libnode"].iter().any(|own| file_name(path).starts_with(own));
    let libraries = mapped.iter().filter(is_own).filter_map(|path| identity(path));
    let parts: Vec<String> = identity(Path::new(&text(description, "running"))).into_iter().chain(libraries).collect();
    (!parts.is_empty()).then(|| parts.join("+"))
}

/// Describes a program that is in no table: it is known only by its file and the first line that `--version` prints. If
/// the file is a script, such as a shim of a version manager, the program that does the work is unknown. The content of
/// the script does not identify it.
fn other_program(given: &Path, program: Program, folder: &Folder) -> Result<Runtime, String> {
    let ran = start(&program, &["--version".into()], folder)?;
    let line = ran.output.lines().chain(ran.error_output.lines()).find(|line| !line.trim().is_empty());
    let version: String = line.unwrap_or("unknown").trim().chars().take(60).collect();
    let real = fs::canonicalize(given).unwrap_or_else(|_| given.to_path_buf());
    let is_script = is_script(&real);
    let script_start_ns = match is_script {
        true => Some(median_start(&program, &folder.write("empty", "")?, folder)?),
        false => None,
    };
    Ok(Runtime {
        language: &LANGUAGES[LANGUAGES.len() - 1],
        given: given.to_path_buf(),
        program,
        wrapper: None,
        script_start_ns,
        build: [("version".to_string(), version)].into(),
        identity: identity(&real).filter(|_| !is_script).unwrap_or_else(|| real.display().to_string()),
        hooks: Vec::new(),
        ignores_seed: false,
        using: BTreeMap::new(),
        mapped: Vec::new(),
    })
}

impl Runtime {
    pub fn version(&self) -> &str {
        self.build.get("version").map_or("", String::as_str)
    }

    /// Returns the path and the build ID of the library that does the work of the control. Returns `None` unless the
    /// runtime really uses it: the file that contains the module names the library, and the library is mapped.
    fn library(&self, module: &str, library: &str) -> Option<(PathBuf, String)> {
        let using = self.using.get(module)?;
        let user = if using.as_os_str().is_empty() { &fs::canonicalize(&self.program.path).ok()? } else { using };
        let is_used = mentions(user, library)
            || self.mapped.iter().any(|path| file_name(path).starts_with("libpython") && mentions(path, library));
        let path = self.mapped.iter().find(|path| file_name(path).starts_with(library)).filter(|_| is_used)?;
        Some((path.clone(), identity(path)?))
    }
}

/// A negative control: the module whose library is the same in all runtimes.
#[derive(Clone, Debug, PartialEq)]
pub struct Control {
    pub module: &'static str,
    pub source: &'static str,
    /// The file name of the library, and its build ID.
    pub library: (String, String),
}

/// Returns the first control whose library is the same in all runtimes.
pub fn control(runtimes: &[Arc<Runtime>]) -> Option<Control> {
    let language = runtimes.first()?.language;
    if runtimes.iter().any(|runtime| runtime.language.name != language.name) {
        return None;
    }
    language.controls.iter().find_map(|(module, library, source)| {
        let mut libraries = runtimes.iter().map(|runtime| runtime.library(module, library));
        let (path, id) = libraries.next()??;
        let is_same = libraries.all(|other| other.is_some_and(|(_, other)| other == id));
        is_same.then(|| Control { module, source, library: (file_name(&path), id) })
    })
}
