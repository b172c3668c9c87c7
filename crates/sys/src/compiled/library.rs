//! Compiled code, loaded and called.

use std::ffi::{CStr, CString, c_void};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::Arc;

use crate::Error;

/// The one interface.
type Signature = unsafe extern "C" fn(*const c_void, usize, *mut c_void, usize) -> i64;

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

    /// The function of this name, which in the source has `ascertain_` before it.
    ///
    /// # Errors
    /// [`Error::Load`] when the library has none.
    pub fn function(&self, name: &str) -> Result<Function, Error> {
        let text = CString::new(format!("ascertain_{name}")).map_err(|_| Error::Nul { text: name.into() })?;
        // SAFETY: the handle is open, the name is a C string.
        let address = unsafe { libc::dlsym(self.0.handle.as_ptr(), text.as_ptr()) };
        if address.is_null() {
            return Err(Error::Load { said: format!("it has no function `{name}`") });
        }
        // SAFETY: every function of our sources whose name begins so has this signature (see the module's docs).
        let pointer = unsafe { std::mem::transmute::<*mut c_void, Signature>(address) };
        Ok(Function { pointer, library: self.clone() })
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

/// A compiled function.
#[derive(Clone, Debug)]
pub struct Function {
    pointer: Signature,
    library: Library,
}

impl Function {
    /// Calls it. What the slices hold and what the result means is the function's affair.
    pub fn call<I: Plain, O: Plain>(&self, input: &[I], output: &mut [O]) -> i64 {
        // SAFETY: both slices are alive and of the lengths given, and any bits are a value of their types.
        // That the function keeps to them is a matter of its source, which is part of this program.
        unsafe { (self.pointer)(input.as_ptr().cast(), input.len(), output.as_mut_ptr().cast(), output.len()) }
    }

    /// The library that it is in.
    pub fn library(&self) -> &Library {
        &self.library
    }
}

/// Numbers that C knows by the same bits.
pub trait Plain: Copy + sealed::Sealed {}

mod sealed {
    pub trait Sealed {}
}

macro_rules! plain {
    ($($number:ty),*) => {
        $(impl sealed::Sealed for $number {}
        impl Plain for $number {})*
    };
}
plain!(u8, i8, u16, i16, u32, i32, u64, i64, f32, f64);
