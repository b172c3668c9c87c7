//! Compiled code, loaded and called.

use std::ffi::{CStr, CString, c_void};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::Arc;

use crate::Error;

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
    pub(super) fn load(object: &Path) -> Result<Library, Error> {
        let file = File::open(object).map_err(Error::system("opening compiled code"))?;
        let path = CString::new(object.as_os_str().as_bytes())
            .map_err(|_| Error::Nul { text: object.display().to_string() })?;
        // SAFETY: the path is a C string. The object's initialisers are our own source's.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        let handle = NonNull::new(handle).ok_or_else(|| Error::Load { said: last_error() })?;
        Ok(Library(Arc::new(Loaded { handle, object: file })))
    }

    /// The function that is defined by this name and these types: see the [module](super).
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

    /// The shared object, for tools that read machine code, also in other processes; there for as long as the library is,
    /// on Linux. It has no name of its own any more.
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
        // SAFETY: both slices are alive, of the lengths given and of the types that the function is for, of which any bits
        // are a value. That it keeps to them is a matter of its source, which is part of this program.
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
