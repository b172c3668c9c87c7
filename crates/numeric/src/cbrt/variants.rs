//! Every method. A new one is a line here, and a function under `method`.

use super::exact::{cbrt_each, cbrt_u64};
use super::method;
use super::variant::{Variant, chain, each};
use crate::code_size::sized;

macro_rules! variants {
    ($($function:path, $name:literal, $is_exact:literal, $about:literal;)*) => {
        &[EACH, $({
            sized!("cbrt" $name, alone, code_bytes, (x: u64) -> u32, $function);
            Variant {
                name: $name,
                about: $about,
                is_exact: $is_exact,
                each: |numbers, roots| each($function, numbers, roots),
                chain: Some(|numbers| chain($function, numbers)),
                code_bytes,
            }
        }),*]
    };
}

/// What [`cbrt_each`] chose for this machine.
const EACH: Variant = Variant {
    name: "exact-each",
    about: "eight at a time with AVX-512 where the machine has it, else as exact",
    is_exact: true,
    each: cbrt_each,
    chain: None,
    code_bytes: || None,
};

/// Every method, under its name in the source; `exact` is [`cbrt_u64`].
#[rustfmt::skip] // One variant, one line.
pub const VARIANTS: &[Variant] = variants! {
    cbrt_u64,           "exact",      true,  "a table on the leading byte, a parabola, one correction";
    method::libm,       "libm",       true,  "the C library's cbrt of a double, put right";
    method::tab0,       "tab0",       false, "a table of 64 bytes, no division";
    method::tab1,       "tab1",       false, "the table and one 64-bit division: what the kernel took";
    method::div0,       "0div",       false, "a guess from two bits: not for use";
    method::div1,       "1div",       false, "the guess and one division";
    method::div2,       "2div",       false, "the guess and two divisions";
    method::ndiv3,      "ndiv3",      false, "the same, with multiplications for the divisions by three";
    method::div3,       "3div",       false, "the guess and three divisions";
    method::ncubic,     "ncubic",     false, "three iterations of Newton's, in 64 bits";
    method::ncubic32,   "ncubic32",   false, "the same, in 32 bits where they will do";
    method::ncubic32_1, "ncubic32_1", false, "the same, divided by a little less, for the error";
    method::ocubic,     "ocubic",     false, "Newton's iteration until it moves by one at most";
    method::bictcp,     "bictcp",     true,  "Newton's iteration with two divisions, to its end";
    method::acbrt,      "acbrt",      true,  "bit by bit, by multiplications";
    method::hcbrt,      "hcbrt",      false, "bit by bit in 32 bits, by shifts and additions";
};
