//! The size of a function's machine code.

/// Defines two functions. `$name` only calls `$body`, which must be inlined. `$name` is the only function in its
/// section of the executable. `$size` returns the length of this section.
///
/// The section's name is `$family` and `$variant`, joined by an underscore. The whole name must be an identifier. The
/// section's length is the function's share of the instruction cache; tables are not counted. `$size` needs the
/// linker's symbols for sections (ELF), so it returns `None` unless the target is Linux. With `unsafe` before the
/// arguments, `$name` is an unsafe function.
macro_rules! sized {
    (
        $family:literal $variant:literal, $name:ident, $size:ident,
        $($unsafe:ident)? ($($arg:ident: $type:ty),*) -> $result:ty, $body:expr $(, $feature:literal)?
    ) => {
        #[inline(never)]
        $(#[target_feature(enable = $feature)])?
        // SAFETY: the section contains only this function.
        #[cfg_attr(target_os = "linux", unsafe(link_section = concat!($family, "_", $variant)))]
        pub(super) $($unsafe)? fn $name($($arg: $type),*) -> $result {
            $body($($arg),*)
        }

        // The function exists to be measured, so the linker must not drop it.
        const _: () = {
            #[used]
            static KEPT: unsafe fn($($type),*) -> $result = $name;
        };

        pub(super) fn $size() -> Option<usize> {
            #[cfg(target_os = "linux")]
            {
                unsafe extern "C" {
                    #[link_name = concat!("__start_", $family, "_", $variant)]
                    static START: u8;
                    #[link_name = concat!("__stop_", $family, "_", $variant)]
                    static STOP: u8;
                }
                Some((&raw const STOP).addr() - (&raw const START).addr())
            }
            #[cfg(not(target_os = "linux"))]
            None
        }
    };
}
pub(crate) use sized;
