//! The memory that this process shares with a launcher: the command to start, and the atomic words by which the two
//! communicate. Also finds the inherited memory that a launcher can release.

use std::ffi::{CStr, CString, c_char, c_void};
use std::ops::{Deref, Range};
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64};
use std::{io, ptr};

use rustix::mm::{self, MapFlags, ProtFlags};

/// Size in bytes of the stack that a new process uses until it executes the command.
const STACK_BYTES: usize = 64 * 1024;

/// The data that the launcher needs, at the same address in both processes. The pointers point into the same mapping
/// and never change.
#[repr(C)]
pub(super) struct Control {
    /// The path of the program, ended by a NUL.
    pub program: *const c_char,
    /// The arguments, ended by a null pointer.
    pub argv: *const *const c_char,
    /// The environment, ended by a null pointer.
    pub envp: *const *const c_char,
    /// The upper end of the stack on which the new process begins.
    pub stack_top: *mut c_void,
    /// The address ranges of memory that the launcher inherited from its parent. It releases them before it serves
    /// requests.
    pub discard: *const Range<usize>,
    pub discard_len: usize,

    /// The request to the launcher: the descriptors of the command's standard input, output and error. -1 means that
    /// the command inherits this stream from the process that created the launcher.
    pub streams: [AtomicI32; 3],

    /// The number of replies that the launcher has given: one when it is ready, then one for each request.
    pub replies: AtomicU32,
    /// The ID of the new process; 0 if there is no such process, or if it has ended.
    pub pid: AtomicI32,
    /// The error number if the process could not be created or did not execute the command; otherwise 0.
    pub error: AtomicI32,
    /// The time just before the process was created, by the monotonic clock.
    pub start_ns: AtomicU64,
}

/// The shared mapping, which begins with the [`Control`] and contains everything that its pointers point to.
pub(super) struct Image {
    base: *mut u8,
    len: usize,
}

// SAFETY: the mapping belongs to the `Image` alone, and any thread may use and unmap it.
unsafe impl Send for Image {}

impl Image {
    pub fn new(program: &CStr, args: &[CString], env: &[CString], discard: &[Range<usize>]) -> io::Result<Self> {
        let strings = || [program].into_iter().chain(args.iter().chain(env).map(CString::as_c_str));
        let needed = size_of::<Control>()
            + size_of_val(discard)
            + (args.len() + env.len() + 2) * size_of::<*const c_char>()
            + strings().map(|text| text.count_bytes() + 1).sum::<usize>()
            + STACK_BYTES;
        let len = needed.next_multiple_of(4096);
        // SAFETY: a new anonymous mapping at an address that the kernel chooses does not touch other memory.
        let base =
            unsafe { mm::mmap_anonymous(ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED) }?;
        let image = Self { base: base.cast(), len };

        let mut writer = Writer { next: image.base };
        let control: *mut Control = writer.reserve(1);
        let discard_copy = writer.reserve(discard.len());
        let argv: *mut *const c_char = writer.reserve(args.len() + 1);
        let envp: *mut *const c_char = writer.reserve(env.len() + 1);
        // SAFETY: `needed` counts exactly the bytes that are reserved and written here, all within the new mapping of
        // `len` bytes. Each place is aligned (the base is page-aligned, and the sizes after it are multiples of eight)
        // and written once. The mapping consists of zeros, which are the null pointer at the end of each list.
        // `stack_top` is one past the end of the mapping, which is a multiple of the page size.
        unsafe {
            ptr::copy_nonoverlapping(discard.as_ptr(), discard_copy, discard.len());
            let program = writer.string(program);
            for (at, text) in args.iter().enumerate() {
                argv.add(at).write(writer.string(text));
            }
            for (at, text) in env.iter().enumerate() {
                envp.add(at).write(writer.string(text));
            }
            control.write(Control {
                program,
                argv,
                envp,
                stack_top: image.base.add(len).cast(),
                discard: discard_copy,
                discard_len: discard.len(),
                streams: [const { AtomicI32::new(-1) }; 3],
                replies: AtomicU32::new(0),
                pid: AtomicI32::new(0),
                error: AtomicI32::new(0),
                start_ns: AtomicU64::new(0),
            });
        }
        Ok(image)
    }
}

impl Deref for Image {
    type Target = Control;

    fn deref(&self) -> &Control {
        // SAFETY: `new` wrote a Control at `base`, which stays mapped as long as `self` exists. The launcher changes
        // only its atomics.
        unsafe { &*self.base.cast() }
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        // SAFETY: `base` and `len` are from `mmap`, and no reference outlives `self`.
        let _ = unsafe { mm::munmap(self.base.cast(), self.len) };
    }
}

/// Writes data into the mapping, one piece after the other from the beginning.
struct Writer {
    next: *mut u8,
}

impl Writer {
    fn reserve<T>(&mut self, count: usize) -> *mut T {
        let place = self.next.cast();
        self.next = self.next.wrapping_add(count * size_of::<T>());
        place
    }

    /// Writes `text` with its NUL, and returns the address at which it begins.
    ///
    /// # Safety
    ///
    /// `next` must have room for `text` with its NUL.
    unsafe fn string(&mut self, text: &CStr) -> *const c_char {
        let bytes = text.to_bytes_with_nul();
        let place: *mut u8 = self.reserve(bytes.len());
        // SAFETY: the caller ensures that there is room for these bytes.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len()) };
        place.cast()
    }
}

/// Minimum size of a mapping that is worth releasing, in bytes. The C library keeps its state in smaller mappings.
const DISCARD_MIN_BYTES: usize = 256 * 1024;

/// Size in bytes of the areas before and after each address that the launcher needs. These areas are not released. No
/// page is larger than this size.
const KEEP_BYTES: usize = 64 * 1024;

/// Returns the memory that a launcher can release. These are the large private anonymous mappings in `maps`, the text
/// of `/proc/self/maps`, without the areas around the two addresses in `keep`.
pub(super) fn discardable(maps: &str, keep: [usize; 2]) -> Vec<Range<usize>> {
    let keep = keep.map(|address| {
        let page = address / KEEP_BYTES * KEEP_BYTES;
        page.saturating_sub(KEEP_BYTES)..page + 2 * KEEP_BYTES
    });
    let mappings = maps.lines().filter_map(anonymous);
    let large = mappings.filter(|mapping| mapping.len() >= DISCARD_MIN_BYTES);
    large.flat_map(|mapping| keep.iter().fold(vec![mapping], without)).collect()
}

/// Returns the address range in one line of the file `/proc/self/maps`; `None` unless the mapping is private, writable
/// and anonymous.
fn anonymous(line: &str) -> Option<Range<usize>> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let (mode, _offset, _device) = (fields.next()?, fields.next()?, fields.next()?);
    let (inode, name) = (fields.next()?, fields.next().unwrap_or(""));
    let has_no_file = inode == "0" && (matches!(name, "" | "[heap]" | "[stack]") || name.starts_with("[anon"));
    let address = |text| usize::from_str_radix(text, 16).ok();
    (mode == "rw-p" && has_no_file).then_some(address(start)?..address(end)?)
}

/// Returns the parts of `ranges` that are outside of `hole`.
fn without(ranges: Vec<Range<usize>>, hole: &Range<usize>) -> Vec<Range<usize>> {
    let outside = |range: Range<usize>| [range.start..range.end.min(hole.start), range.start.max(hole.end)..range.end];
    ranges.into_iter().flat_map(outside).filter(|range| !range.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_can_be_read_back_through_the_pointers() {
        let args = [c"echo".to_owned(), c"".to_owned(), c"two words".to_owned()];
        let image = Image::new(c"/bin/echo", &args, &[c"A=1".to_owned()], &[1..2, 3..4]).unwrap();
        // SAFETY: the lists end with null and their strings with NUL; otherwise this test would not end.
        let read = |list: *const *const c_char| unsafe {
            let pointers = (0..).map(|at| *list.add(at)).take_while(|text| !text.is_null());
            pointers.map(|text| CStr::from_ptr(text).to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(read(image.argv), args);
        assert_eq!(read(image.envp), [c"A=1".to_owned()]);
        // SAFETY: `program` points to a string in the image, and `discard` to `discard_len` ranges.
        unsafe {
            assert_eq!(CStr::from_ptr(image.program), c"/bin/echo");
            let discard = std::slice::from_raw_parts(image.discard, image.discard_len);
            assert_eq!(discard, [1..2, 3..4]);
        }
        assert_eq!(image.stack_top.addr() % 16, 0);
    }

    const MAPS: &str = "\
00400000-00800000 r-xp 00000000 fe:00 42 /bin/program
00800000-00900000 rw-p 00400000 fe:00 42 /bin/program
01000000-02000000 rw-p 00000000 00:00 0 [heap]
10000000-10010000 rw-p 00000000 00:00 0 
20000000-30000000 rw-p 00000000 00:00 0 
30000000-31000000 rw-s 00000000 00:01 7 /dev/zero (deleted)
31000000-32000000 ---p 00000000 00:00 0 
33000000-34000000 rw-p 00000000 00:00 0 [anon: glibc: malloc]
40000000-40100000 rw-p 00000000 00:00 0 [stack]
50000000-50100000 r--p 00000000 00:00 0 [vvar]
";

    #[test]
    fn large_private_memory_is_given_back_except_around_what_is_used() {
        let found = discardable(MAPS, [0x400f_f123, 0x2fff_ff00]);
        let expected = [
            0x0100_0000..0x0200_0000,
            0x2000_0000..0x2ffe_0000, // the upper end is kept
            0x3300_0000..0x3400_0000,
            0x4000_0000..0x400e_0000,
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_hole_in_the_middle_leaves_two_parts() {
        assert_eq!(without(vec![10..20, 30..40], &(12..14)), [10..12, 14..20, 30..40]);
        assert_eq!(without(vec![10..20, 30..40, 50..60], &(5..35)), [35..40, 50..60]);
    }
}
