//! C and C++ code of ours, compiled by this machine's compiler when it is needed: peers to measure
//! against, and what a compiler makes of a loop.
//!
//! A function that can be called is defined by `ASCERTAIN(name, input, output)`, which stands for
//!
//! ```c
//! int64_t ascertain_name(const input *in, size_t in_count, output *out, size_t out_count)
//! ```
//!
//! so that one wrapper calls them all; and it has the compiler note in the object what the two types are, which is
//! compared with the caller's before any call. That a function reads and writes no more than it is told that there is,
//! no compiler looks after: a source is part of this program, as its other code is.
//!
//! ```no_run
//! use ascertain_sys::compiled::{Language, Source, compile};
//!
//! let text = "#include <stdint.h>\n ASCERTAIN(count, uint32_t, uint8_t) { return in_count; }";
//! let library = compile(&Source::new(Language::C, text))?;
//! let count = library.function::<u32, u8>("count")?;
//! assert_eq!(count.call(&[1, 2, 3], &mut []), 3);
//! assert!(library.function::<u64, u8>("count").is_err());
//! # Ok::<(), ascertain_sys::Error>(())
//! ```

use std::ffi::{CStr, CString, c_void};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

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
    /// The code, with functions defined as the [module](self) says. It is part of this program: what it does with
    /// memory is this program's doing.
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

/// Comes before each source. What it notes of a type, [`Plain`] says too. It needs nothing included.
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
        Error::NotFound { program, is_searched: true } => Error::CompilerMissing { compiler: program },
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
            // The folder is gone, and another one each time.
            let said = first.trim().replace(&format!("{}/", folder.0.display()), "");
            Err(Error::Compile { compiler: source.compiler.clone(), said })
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

/// The one interface, of functions that `ASCERTAIN` defines.
type Signature<I, O> = unsafe extern "C" fn(*const I, usize, *mut O, usize) -> i64;

/// Compiled code that is loaded. Clones share it.
#[derive(Clone, Debug)]
pub struct Library(Arc<Loaded>);

#[derive(Debug)]
struct Loaded {
    handle: NonNull<c_void>,
    /// Still to be read when its name is gone.
    object: File,
}

// SAFETY: a handle of dlopen may be used from any thread; the rest is plain data.
unsafe impl Send for Loaded {}
// SAFETY: as above; dlsym locks for itself.
unsafe impl Sync for Loaded {}

impl Drop for Loaded {
    fn drop(&mut self) {
        // SAFETY: the handle is from dlopen, and no `Function` is left: each holds the library.
        unsafe { libc::dlclose(self.handle.as_ptr()) };
    }
}

impl Library {
    fn load(object: &Path) -> Result<Library, Error> {
        let file = File::open(object).map_err(Error::system("opening compiled code"))?;
        let path = CString::new(object.as_os_str().as_bytes())
            .map_err(|_| Error::Nul { text: object.display().to_string() })?;
        // SAFETY: the path is a C string. The object's initialisers are our own source's.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        let handle = NonNull::new(handle).ok_or_else(|| Error::Load { said: last_error() })?;
        Ok(Library(Arc::new(Loaded { handle, object: file })))
    }

    /// The function that is defined by this name and these types: see the [module](self).
    ///
    /// # Errors
    /// [`Error::Load`] when the library has none.
    pub fn function<I: Plain, O: Plain>(&self, name: &str) -> Result<Function<I, O>, Error> {
        let missing = || Error::Load { said: format!("it has no function `{name}` defined by ASCERTAIN") };
        let types = self.symbol(&format!("types_{name}"))?.ok_or_else(missing)?;
        // SAFETY: what has such a name is four bytes, says `ASCERTAIN`, and lasts as long as the library.
        let types: [u8; 4] = unsafe { types.cast().read() };
        let wanted = [I::KIND, size_of::<I>() as u8, O::KIND, size_of::<O>() as u8];
        if types != wanted {
            let [theirs, ours] = [types, wanted].map(shown);
            return Err(Error::Load { said: format!("its function `{name}` is from {theirs}, not from {ours}") });
        }
        let address = self.symbol(name)?.ok_or_else(missing)?;
        // SAFETY: beside those bytes `ASCERTAIN` has declared a function of this signature, of these types.
        let pointer = unsafe { std::mem::transmute::<NonNull<c_void>, Signature<I, O>>(address) };
        Ok(Function { pointer, library: self.clone() })
    }

    /// What has the name in the object, with `ascertain_` before it.
    fn symbol(&self, name: &str) -> Result<Option<NonNull<c_void>>, Error> {
        let text = CString::new(format!("ascertain_{name}")).map_err(|_| Error::Nul { text: name.into() })?;
        // SAFETY: the handle is open, the name is a C string.
        Ok(NonNull::new(unsafe { libc::dlsym(self.0.handle.as_ptr(), text.as_ptr()) }))
    }

    /// The shared object, for tools that read machine code, also in other processes; there for as long as the library
    /// is, on Linux. It has no name of its own any more.
    pub fn object(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.object.as_raw_fd()).into()
    }
}

fn last_error() -> String {
    // SAFETY: dlerror gives null or a C string that lasts until the next call on this thread.
    unsafe {
        let text = libc::dlerror();
        if text.is_null() { "it can't be loaded".into() } else { CStr::from_ptr(text).to_string_lossy().into_owned() }
    }
}

/// Two types as Rust has them.
fn shown(types: [u8; 4]) -> String {
    let [from, from_bytes, to, to_bytes] = types;
    let shown = |kind, bytes| format!("{}{}", char::from(kind), 8 * u32::from(bytes));
    format!("{} to {}", shown(from, from_bytes), shown(to, to_bytes))
}

/// A compiled function from `I` to `O`.
#[derive(Clone, Debug)]
pub struct Function<I, O> {
    pointer: Signature<I, O>,
    library: Library,
}

impl<I: Plain, O: Plain> Function<I, O> {
    /// Calls it. What the slices hold and what the result means is the function's affair.
    pub fn call(&self, input: &[I], output: &mut [O]) -> i64 {
        // SAFETY: both slices are alive, of the lengths given and of the types that the function is for, of which any
        // bits are a value. That it keeps to them is a matter of its source, which is part of this program.
        unsafe { (self.pointer)(input.as_ptr(), input.len(), output.as_mut_ptr(), output.len()) }
    }

    /// The library that it is in.
    pub fn library(&self) -> &Library {
        &self.library
    }
}

/// Numbers that C knows by the same bits.
pub trait Plain: Copy + sealed::Sealed {}

mod sealed {
    pub trait Sealed {
        /// The letter before the type's bits: what `ASCERTAIN` notes of a type.
        const KIND: u8;
    }
}

macro_rules! plain {
    ($($kind:literal: $($number:ty),*;)*) => {
        $($(impl sealed::Sealed for $number {
            const KIND: u8 = $kind;
        }
        impl Plain for $number {})*)*
    };
}
plain!(b'u': u8, u16, u32, u64; b'i': i8, i16, i32, i64; b'f': f32, f64;);
