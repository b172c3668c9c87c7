//! Peers in C and C++: the C library's, the C++ library's, and {fmt} where it is installed.

use ascertain_engine::experiment::Unavailable;
use ascertain_sys::compiled::{Function, Language, Source, compile};

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

/// A peer's function, or why there is none.
pub type Compiled = Result<Function<u64, u8>, Unavailable>;

/// The function of a peer by its variant's name: it writes one value after the other to the front of the output.
pub fn function(variant: &str) -> Option<Compiled> {
    let source = match variant {
        "libc" => Source::new(Language::C, LIBC),
        "to-chars" => Source::new(Language::Cpp, TO_CHARS).options(&["-O3", "-march=native", "-std=c++17"]),
        "stringstream" => Source::new(Language::Cpp, STRINGSTREAM),
        "fmt" => Source::new(Language::Cpp, FMT).options(&["-O3", "-march=native", "-std=c++17"]),
        _ => return None,
    };
    let needs = match variant {
        "fmt" => "needs a C++ compiler and {fmt} (Debian: libfmt-dev)",
        "to-chars" => "needs a C++17 compiler",
        "stringstream" => "needs a C++ compiler",
        _ => "needs a C compiler",
    };
    let function = compile(&source).and_then(|library| library.function("each"));
    Some(function.map_err(|error| Unavailable::other(format!("{needs}: {error}"))))
}
