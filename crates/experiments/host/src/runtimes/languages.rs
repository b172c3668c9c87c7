//! The table of languages: how to find their runtimes, and which files they run.

/// A language whose runtimes run files.
#[derive(Debug)]
pub struct Language {
    /// Name of the language, which is also the name of the variant.
    pub name: &'static str,
    /// Beginnings of the names of the language's programs. Digits and dots may follow.
    pub programs: &'static [&'static str],
    /// File name extension of the language's files.
    pub extension: &'static str,
    /// A file that prints facts about the runtime; empty if there is none.
    pub probe: &'static str,
    /// A file that runs a workload in passes; empty if there is none.
    pub drive: &'static str,
    /// The workloads of this experiment in this language: name and source.
    pub workloads: &'static [(&'static str, &'static str)],
    /// The negative controls: name of the module, beginning of the library's file name, source.
    pub controls: &'static [(&'static str, &'static str, &'static str)],
    /// The environment variable for the seed of hashes; empty if there is none.
    pub seed_variable: &'static str,
    /// The option for the seed of hashes, to which the seed is appended; empty if there is none.
    pub seed_option: &'static str,
    /// Beginnings of the environment variables that change how the runtime works.
    pub settings: &'static [&'static str],
}

macro_rules! python {
    ($($name:literal)*) => { &[$(($name, include_str!(concat!("workloads/python/", $name, ".py")))),*] };
}
macro_rules! javascript {
    ($($name:literal)*) => { &[$(($name, include_str!(concat!("workloads/javascript/", $name, ".js")))),*] };
}

/// Environment variables of the C library and the dynamic linker that change how any program works.
const OF_LIBRARIES: [&str; 4] = ["LD_", "MALLOC_", "GLIBC_TUNABLES", "MIMALLOC_"];

/// All languages. The last one stands for any other program that runs a file.
pub static LANGUAGES: [Language; 3] = [
    Language {
        name: super::PYTHON,
        programs: &["python3", "python", "pypy3", "pypy", "graalpy"],
        extension: "py",
        probe: include_str!("probe.py"),
        drive: include_str!("drive.py"),
        workloads: python![
            "calls" "dicts" "documents" "floats" "generators" "integers" "objects" "regex" "sorting" "strings"
        ],
        controls: &[
            ("zlib", "libz.so", include_str!("control/zlib.py")),
            ("bz2", "libbz2.so", include_str!("control/bz2.py")),
            ("lzma", "liblzma.so", include_str!("control/lzma.py")),
        ],
        seed_variable: "PYTHONHASHSEED",
        seed_option: "",
        settings: &["PYTHON", "PYPY"],
    },
    Language {
        name: super::JAVASCRIPT,
        programs: &["node", "nodejs", "bun"],
        extension: "js",
        probe: include_str!("probe.js"),
        drive: include_str!("drive.js"),
        workloads: javascript![
            "calls" "dicts" "documents" "floats" "generators" "integers" "objects" "regex" "sorting" "strings"
        ],
        controls: &[],
        seed_variable: "",
        seed_option: "--hash-seed=",
        settings: &["NODE_", "BUN_"],
    },
    Language {
        name: super::OTHER,
        programs: &[],
        extension: "",
        probe: "",
        drive: "",
        workloads: &[],
        controls: &[],
        seed_variable: "",
        seed_option: "",
        settings: &[],
    },
];

/// The results of the workloads of this experiment, which are the same in every language.
pub const RESULTS: [(&str, &str); 10] = [
    ("calls", "6765"),
    ("dicts", "14040508"),
    ("documents", "120660"),
    ("floats", "1789379"),
    ("generators", "58251328"),
    ("integers", "193409216775657"),
    ("objects", "4919499"),
    ("regex", "231692"),
    ("sorting", "8633809"),
    ("strings", "16024"),
];

impl Language {
    /// Returns whether the environment variable changes how this runtime works.
    pub fn is_setting(&self, variable: &str) -> bool {
        self.settings.iter().chain(&OF_LIBRARIES).any(|beginning| variable.starts_with(beginning))
    }

    /// Returns whether a program of this name may be a runtime of this language, such as `python3.12` or `python3.13t`.
    pub fn is_named(&self, program: &str) -> bool {
        let is_version = |rest: &str| rest.chars().all(|c| c.is_ascii_digit() || c == '.' || c == 't');
        self.programs.iter().any(|name| program.strip_prefix(name).is_some_and(is_version))
    }
}

/// Returns the language with this name, or the last language in the table if the name is unknown.
pub fn named(name: &str) -> &'static Language {
    LANGUAGES.iter().find(|language| language.name == name).unwrap_or(&LANGUAGES[LANGUAGES.len() - 1])
}
