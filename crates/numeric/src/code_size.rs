//! How many bytes of machine code a function is.

/// Makes a function `$name` that only calls `$body` (which must be inlined), alone in a section of the
/// program (its name is that of the family and the variant, which must be words together), and a function `$size` that
/// tells how long that section is: what it takes of the instruction cache, without tables. `None` where the linker
/// keeps no account of sections (it does for ELF).
macro_rules! sized {
    ($family:literal $variant:literal, $name:ident, $size:ident, ($($arg:ident: $type:ty),*) -> $result:ty, $body:expr $(, $feature:literal)?) => {
        #[inline(never)]
        $(#[target_feature(enable = $feature)])?
        // SAFETY: the section holds nothing but this function.
        #[cfg_attr(target_os = "linux", unsafe(link_section = concat!($family, "_", $variant)))]
        fn $name($($arg: $type),*) -> $result {
            $body($($arg),*)
        }

        // It is there to be measured, and must not be dropped.
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
