//! From a source to a library, by this machine's compiler.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::library::Library;
use crate::Error;
use crate::process::{Command, Exit, Output, Prepared};

/// The language of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Language {
    /// C.
    C,
    /// C++.
    Cpp,
}

/// What is to be compiled, and how.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Source {
    /// Its language.
    pub language: Language,
    /// The code, with functions defined as the [module](super) says. It is part of this program: what it does with memory
    /// is this program's doing.
    pub text: &'static str,
    /// The compiler's command: `gcc`, `clang++`. At first the machine's own, `cc` or `c++`.
    pub compiler: String,
    /// Options, `-O3` and `-lfmt` among them. At first `-O3 -march=native`.
    pub options: Vec<String>,
    /// How long the compiler may take. At first two minutes, of which it should need some seconds at worst.
    pub time_limit: Duration,
}

impl Source {
    /// For the machine's own compiler, at its best for this machine.
    pub fn new(language: Language, text: &'static str) -> Source {
        let compiler = match language {
            Language::C => "cc",
            Language::Cpp => "c++",
        };
        Source {
            language,
            text,
            compiler: compiler.into(),
            options: vec!["-O3".into(), "-march=native".into()],
            time_limit: Duration::from_secs(120),
        }
    }

    /// With another compiler.
    #[must_use]
    pub fn compiler(mut self, command: &str) -> Source {
        self.compiler = command.into();
        self
    }

    /// With these options instead.
    #[must_use]
    pub fn options(mut self, options: &[&str]) -> Source {
        self.options = options.iter().map(|&option| option.into()).collect();
        self
    }

    /// With this long to compile.
    #[must_use]
    pub fn time_limit(mut self, limit: Duration) -> Source {
        self.time_limit = limit;
        self
    }
}

/// Comes before each source. What it notes of a type, [`Plain`](super::Plain) says too. It needs nothing included.
const PRELUDE: &str = r#"
#ifdef __cplusplus
#define ASCERTAIN_IN_C(declarations) extern "C" { declarations }
#else
#define ASCERTAIN_IN_C(declarations) declarations
#endif
#define ASCERTAIN_KIND(type) ((type)0.5 != 0 ? 'f' : (type)-1 < 0 ? 'i' : 'u')
#define ASCERTAIN(name, input, output) \
    ASCERTAIN_IN_C( \
        extern const unsigned char ascertain_types_##name[4]; \
        __INT64_TYPE__ ascertain_##name(const input *, __SIZE_TYPE__, output *, __SIZE_TYPE__); \
    ) \
    const unsigned char ascertain_types_##name[4] = \
        {ASCERTAIN_KIND(input), sizeof(input), ASCERTAIN_KIND(output), sizeof(output)}; \
    __INT64_TYPE__ ascertain_##name(const input *in, __SIZE_TYPE__ in_count, output *out, __SIZE_TYPE__ out_count)
#line 1
"#;

/// Compiles a source into a shared object and loads it.
///
/// # Errors
/// [`Error::CompilerMissing`] when there is no such compiler, [`Error::Compile`] with what it said when it
/// refuses the source (a header or a library that is missing, an option that it doesn't know),
/// [`Error::CompileTimeout`] when it takes too long and was killed, [`Error::Interrupted`] when a signal arrived,
/// [`Error::System`] when the object can't be written or loaded.
pub fn compile(source: &Source) -> Result<Library, Error> {
    let folder = Folder::new().map_err(Error::system("creating a folder for compiled code"))?;
    let (object, said) = (folder.0.join("source.so"), folder.0.join("said"));
    let file = folder.0.join(match source.language {
        Language::C => "source.c",
        Language::Cpp => "source.cpp",
    });
    fs::write(&file, [PRELUDE, source.text].concat()).map_err(Error::system("writing code to be compiled"))?;
    let command = Command {
        program: source.compiler.clone().into(),
        args: ["-shared".into(), "-fPIC".into(), "-o".into(), object.clone().into(), file.into()]
            .into_iter()
            .chain(source.options.iter().map(Into::into))
            .collect(),
        // What it says is looked through for its first error, in English; what it leaves when it is killed goes too.
        env: vec![("LC_ALL".into(), "C".into()), ("TMPDIR".into(), folder.0.clone().into())],
        stderr: Output::File(said.clone()),
        ..Command::default()
    };
    let prepared = Prepared::new(&command).map_err(|error| match error {
        Error::NotFound { program, path: Some(path) } => Error::CompilerMissing { compiler: program, path },
        error => error,
    })?;
    match prepared.run(Some(source.time_limit))?.exit {
        // What is loaded stays: nothing is left behind, however the program ends.
        Exit::Code(0) => Library::load(&object),
        Exit::Interrupted => Err(Error::Interrupted),
        Exit::TimedOut => {
            Err(Error::CompileTimeout { compiler: source.compiler.clone(), limit_s: source.time_limit.as_secs_f64() })
        }
        Exit::Code(_) | Exit::Signal(_) => {
            let said = fs::read(&said).map_err(Error::system("reading what the compiler said"))?;
            let said = String::from_utf8_lossy(&said);
            let first = said.lines().find(|line| line.contains("error")).or(said.lines().next()).unwrap_or("");
            Err(Error::Compile { compiler: source.compiler.clone(), said: first.trim().into() })
        }
    }
}

/// A folder that goes when its owner does.
struct Folder(PathBuf);

impl Folder {
    fn new() -> io::Result<Folder> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        loop {
            let name = format!("ascertain-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
            let path = std::env::temp_dir().join(name);
            // Fails where it exists, so that nobody else can have put anything there.
            match create_private(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                created => return created.map(|()| Folder(path)),
            }
        }
    }
}

fn create_private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().mode(0o700).create(path)
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What can't be removed is left to the system's own cleaning.
        let _ = fs::remove_dir_all(&self.0);
    }
}
