//! Peers in C and C++: the C library, the C++ library, and {fmt} if it is installed.

use ascertain_engine::experiment::{Unavailable, compiled_function};
use ascertain_sys::compiled::{Function, Language, Source};

const LIBC: &str = r#"
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

ASCERTAIN(each, uint64_t, uint8_t) {
    int64_t bytes = 0;
    for (size_t i = 0; i < in_count; i++) {
        bytes += snprintf((char *)out, out_count, "%" PRIu64, in[i]);
        __asm__ volatile("" : : "r"(out) : "memory");
    }
    return bytes;
}
"#;

const TO_CHARS: &str = r#"
#include <charconv>
#include <cstddef>
#include <cstdint>

ASCERTAIN(each, uint64_t, uint8_t) {
    auto text = reinterpret_cast<char *>(out);
    int64_t bytes = 0;
    for (size_t i = 0; i < in_count; i++) {
        bytes += std::to_chars(text, text + out_count, in[i]).ptr - text;
        __asm__ volatile("" : : "r"(out) : "memory");
    }
    return bytes;
}
"#;

const FMT: &str = r#"
#define FMT_HEADER_ONLY
#include <cstddef>
#include <cstdint>
#include <fmt/format.h>

ASCERTAIN(each, uint64_t, uint8_t) {
    auto text = reinterpret_cast<char *>(out);
    int64_t bytes = 0;
    for (size_t i = 0; i < in_count; i++) {
        fmt::format_int formatted(in[i]);
        if (formatted.size() > out_count) return -1;
        __builtin_memcpy(text, formatted.data(), formatted.size());
        bytes += static_cast<int64_t>(formatted.size());
        __asm__ volatile("" : : "r"(out) : "memory");
    }
    return bytes;
}
"#;

const STRINGSTREAM: &str = r#"
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <sstream>

ASCERTAIN(each, uint64_t, uint8_t) {
    int64_t bytes = 0;
    for (size_t i = 0; i < in_count; i++) {
        std::ostringstream stream;
        stream << in[i];
        const std::string text = stream.str();
        if (text.size() > out_count) return -1;
        std::memcpy(out, text.data(), text.size());
        bytes += static_cast<int64_t>(text.size());
        __asm__ volatile("" : : "r"(out) : "memory");
    }
    return bytes;
}
"#;

/// Returns the C or C++ function of the variant with this name. The function writes the text of each value to the front
/// of the output, over the previous text.
///
/// # Errors Returns the reason if this machine cannot compile or run the function.
pub fn function(variant: &str) -> Result<Function<u64, u8>, Unavailable> {
    let (source, needs) = match variant {
        "libc" => (Source::new(Language::C, LIBC), "a C compiler"),
        "to-chars" => (cpp17(TO_CHARS), "a C++17 compiler"),
        "stringstream" => (Source::new(Language::Cpp, STRINGSTREAM), "a C++ compiler"),
        "fmt" => (cpp17(FMT), "a C++ compiler and {fmt} (Debian: libfmt-dev)"),
        _ => return Err(Unavailable::Variant),
    };
    compiled_function(&source, "each", needs)
}

fn cpp17(text: &'static str) -> Source {
    Source::new(Language::Cpp, text).options(&["-O3", "-march=native", "-std=c++17"])
}
