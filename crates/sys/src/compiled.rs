//! Compiles C and C++ code, which is part of this program's source, at run time with a compiler of this machine. The
//! code is used for comparisons, or to show how a compiler translates a loop.
//!
//! A callable function is defined by `ASCERTAIN(name, input, output)`, which stands for
//!
//! ```c
//! int64_t ascertain_name(const input *in, size_t in_count, output *out, size_t out_count)
//! ```
//!
//! All functions have this form, so that one wrapper can call each of them. The macro also stores the input and output
//! types in the object. [`Library::function`] compares them with the types that the caller requests. Nothing checks
//! that a function stays within the lengths that it is given: the source must be trusted, like the other code of this
//! program.
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
use crate::cpu_level::{self, Level};
use crate::process::{Command, Exit, Output, Prepared};

/// The programming language of a [`Source`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Language {
    /// The C language.
    C,
    /// The C++ language.
    Cpp,
}

/// The code of a library, with the compiler and the options that compile it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Source {
    /// The language of the code.
    pub language: Language,
    /// The code, which defines functions as the [module](self) describes. It is as trusted as the code of this program:
    /// its memory accesses are not checked.
    pub text: &'static str,
    /// The compiler's command: `gcc`, `clang++`. The default is the one of the machine, `cc` or `c++`.
    pub compiler: String,
    /// Options, including `-O3` and libraries such as `-lfmt`. The default is `-O3 -march=native`.
    pub options: Vec<String>,
    /// Time limit for the compiler. The default is two minutes; the compiler should need some seconds at most.
    pub time_limit: Duration,
}

impl Source {
    /// Creates a source for the default compiler of the machine, optimized for this machine, or for the
    /// [level](crate::cpu_level) that is forced.
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

    /// Replaces the compiler's command.
    #[must_use]
    pub fn compiler(mut self, command: &str) -> Source {
        self.compiler = command.into();
        self
    }

    /// Replaces all options, including the default ones.
    #[must_use]
    pub fn options(mut self, options: &[&str]) -> Source {
        self.options = options.iter().map(|&option| option.into()).collect();
        self
    }
}

/// C code that is put before each source. It defines the macro `ASCERTAIN`, which also stores the kind and the size of
/// a function's types. [`Library::function`] compares these with the types that the caller requests. The code needs no
/// `#include`.
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
/// [`Error::CompilerMissing`] if there is no such compiler. [`Error::Compile`] with the compiler's message if the
/// compiler rejects the source (a header or a library is missing) or an option. [`Error::CompileTimeout`] if the
/// compiler reached the time limit and was killed. [`Error::Interrupted`] if a signal arrived. [`Error::System`] if the
/// object cannot be written or opened, and [`Error::Load`] if it cannot be loaded.
pub fn compile(source: &Source) -> Result<Library, Error> {
    let folder = Folder::new().map_err(Error::system("could not create a folder for compiled code"))?;
    let (object, message) = (folder.0.join("source.so"), folder.0.join("message"));
    let file = folder.0.join(match source.language {
        Language::C => "source.c",
        Language::Cpp => "source.cpp",
    });
    fs::write(&file, [PRELUDE, source.text].concat())
        .map_err(Error::system("could not write the code to be compiled"))?;
    let command = Command {
        program: source.compiler.clone().into(),
        args: ["-shared".into(), "-fPIC".into(), "-o".into(), object.clone().into(), file.into()]
            .into_iter()
            .chain(source.options.iter().map(|option| for_this_level(option).into()))
            .collect(),
        // The search for the first error expects English messages. If the compiler is killed, its temporary files are
        // removed with the folder.
        env: vec![("LC_ALL".into(), "C".into()), ("TMPDIR".into(), folder.0.clone().into())],
        stderr: Output::File(message.clone()),
        ..Command::default()
    };
    let prepared = Prepared::new(&command).map_err(|error| match error {
        Error::NotFound { program, is_searched: true } => Error::CompilerMissing { compiler: program },
        error => error,
    })?;
    match prepared.run(Some(source.time_limit))?.exit {
        // The object stays loaded without its file. So no files are left behind, however the program ends.
        Exit::Code(0) => Library::load(&object),
        Exit::Interrupted => Err(Error::Interrupted),
        Exit::TimedOut => {
            Err(Error::CompileTimeout { compiler: source.compiler.clone(), limit_s: source.time_limit.as_secs_f64() })
        }
        Exit::Code(_) | Exit::Signal(_) => {
            let message = fs::read(&message).map_err(Error::system("could not read the messages of the compiler"))?;
            let message = String::from_utf8_lossy(&message);
            let first = message.lines().find(|line| line.contains("error")).or(message.lines().next()).unwrap_or("");
            // The folder's path is of no use in a message: the folder no longer exists, and its name differs each time.
            let message = first.trim().replace(&format!("{}/", folder.0.display()), "");
            Err(Error::Compile { compiler: source.compiler.clone(), message })
        }
    }
}

/// Replaces the option that asks for all instruction sets of this machine, if the machine has more than the forced
/// level. A machine below the level keeps the option, because it cannot run all instructions of the level.
fn for_this_level(option: &str) -> String {
    let forced = cpu_level::in_effect().and_then(Level::march);
    match (option, forced) {
        ("-march=native", Some(level)) => format!("-march={level}"),
        _ => option.to_owned(),
    }
}

/// A folder that is removed when this is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> io::Result<Folder> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        loop {
            let name = format!("ascertain-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
            let path = std::env::temp_dir().join(name);
            // Fails if the folder exists, so that no other user can have put files into it.
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
        // A folder that cannot be removed is left to the temporary-file cleaning of the system.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The signature of all functions that `ASCERTAIN` defines: the input and its length, then the output and its length.
type Signature<I, O> = unsafe extern "C" fn(*const I, usize, *mut O, usize) -> i64;

/// Compiled code that is loaded into this process. Clones share it.
#[derive(Clone, Debug)]
pub struct Library(Arc<LoadedLibrary>);

#[derive(Debug)]
struct LoadedLibrary {
    handle: NonNull<c_void>,
    /// The shared object's file, which stays open so that it can be read after its name was removed.
    object: File,
}

// SAFETY: a handle of dlopen may be used from any thread; the rest is plain data.
unsafe impl Send for LoadedLibrary {}
// SAFETY: dlsym is thread-safe; the rest is plain data, and is not changed.
unsafe impl Sync for LoadedLibrary {}

impl Drop for LoadedLibrary {
    fn drop(&mut self) {
        // SAFETY: the handle is from dlopen, and no `Function` exists any more, because each holds the library.
        unsafe { libc::dlclose(self.handle.as_ptr()) };
    }
}

impl Library {
    fn load(object: &Path) -> Result<Library, Error> {
        let file = File::open(object).map_err(Error::system("could not open the compiled code"))?;
        let path = CString::new(object.as_os_str().as_bytes())
            .map_err(|_| Error::Nul { text: object.display().to_string() })?;
        // SAFETY: the path is a C string. The initialisers of the object are those of our own source.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        let handle = NonNull::new(handle).ok_or_else(|| Error::Load { message: last_error() })?;
        Ok(Library(Arc::new(LoadedLibrary { handle, object: file })))
    }

    /// Returns the function that `ASCERTAIN` defines with this name and these types (see the [module](self)).
    ///
    /// # Errors
    /// [`Error::Load`] if the library does not have a function of this name, or if its types differ.
    pub fn function<I: Plain, O: Plain>(&self, name: &str) -> Result<Function<I, O>, Error> {
        let missing = || Error::Load { message: format!("the library does not define `{name}` with ASCERTAIN") };
        let types = self.symbol(&format!("types_{name}"))?.ok_or_else(missing)?;
        // SAFETY: a symbol of such a name is four bytes that `ASCERTAIN` defines. They exist as long as the library.
        let types: [u8; 4] = unsafe { types.cast().read() };
        let wanted = [I::KIND, size_of::<I>() as u8, O::KIND, size_of::<O>() as u8];
        if types != wanted {
            let [theirs, ours] = [types, wanted].map(shown);
            return Err(Error::Load {
                message: format!("the library defines `{name}` from {theirs}, but {ours} was requested"),
            });
        }
        let address = self.symbol(name)?.ok_or_else(missing)?;
        // SAFETY: the four bytes match, so `ASCERTAIN` declared a function of this signature and these types.
        let pointer = unsafe { std::mem::transmute::<NonNull<c_void>, Signature<I, O>>(address) };
        Ok(Function { pointer, library: self.clone() })
    }

    /// Returns the address of the symbol `ascertain_NAME`; `None` if the library does not have such a symbol.
    fn symbol(&self, name: &str) -> Result<Option<NonNull<c_void>>, Error> {
        let text = CString::new(format!("ascertain_{name}")).map_err(|_| Error::Nul { text: name.into() })?;
        // SAFETY: the handle is open, and the name is a C string.
        Ok(NonNull::new(unsafe { libc::dlsym(self.0.handle.as_ptr(), text.as_ptr()) }))
    }

    /// Returns a path by which tools can read the machine code of the shared object, also from other processes. The
    /// file itself has no name any more. On Linux this path (in `/proc`) is valid as long as the library is loaded.
    pub fn object(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.object.as_raw_fd()).into()
    }
}

fn last_error() -> String {
    // SAFETY: dlerror returns null or a C string that is valid until the next call on this thread.
    unsafe {
        let text = libc::dlerror();
        if text.is_null() {
            "the dynamic loader gave no reason".into()
        } else {
            CStr::from_ptr(text).to_string_lossy().into_owned()
        }
    }
}

/// Formats the types of a function by their names in Rust, such as `u32 to u8`. `types` contains the kind and the size
/// in bytes of the input type, and then the kind and the size of the output type.
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
    /// Calls the function. The function defines the meaning of the slices and of the result.
    pub fn call(&self, input: &[I], output: &mut [O]) -> i64 {
        // SAFETY: both slices are alive and have the given lengths and the types of the function, for which any bits
        // are a valid value. The source of the function, which is part of this program, ensures that it stays within
        // the slices.
        unsafe { (self.pointer)(input.as_ptr(), input.len(), output.as_mut_ptr(), output.len()) }
    }

    /// Returns the library that contains the function.
    pub fn library(&self) -> &Library {
        &self.library
    }
}

/// Number types with the same representation in C.
pub trait Plain: Copy + sealed::Sealed {}

mod sealed {
    pub trait Sealed {
        /// The first letter of the type's name in Rust, such as `u` for `u32`. `ASCERTAIN` stores the same letter.
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
