//! Peers in C and C++: the C library's, the C++ library's, and {fmt} where it is installed.

use ascertain::experiment::Unavailable;
use ascertain_sys::compiled::{Function, Language, Source, compile};

const LIBC: &str = r#"
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

int64_t ascertain_each(const void *input, size_t count, void *output, size_t room) {
    const uint64_t *values = input;
    int64_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        bytes += snprintf(output, room, "%" PRIu64, values[i]);
        __asm__ volatile("" : : "r"(output) : "memory");
    }
    return bytes;
}
"#;

const TO_CHARS: &str = r#"
#include <charconv>
#include <cstddef>
#include <cstdint>

extern "C" int64_t ascertain_each(const void *input, size_t count, void *output, size_t room) {
    auto values = static_cast<const uint64_t *>(input);
    auto text = static_cast<char *>(output);
    int64_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        bytes += std::to_chars(text, text + room, values[i]).ptr - text;
        __asm__ volatile("" : : "r"(output) : "memory");
    }
    return bytes;
}
"#;

const FMT: &str = r#"
#define FMT_HEADER_ONLY
#include <cstddef>
#include <cstdint>
#include <fmt/format.h>

extern "C" int64_t ascertain_each(const void *input, size_t count, void *output, size_t room) {
    auto values = static_cast<const uint64_t *>(input);
    auto text = static_cast<char *>(output);
    int64_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        fmt::format_int formatted(values[i]);
        __builtin_memcpy(text, formatted.data(), formatted.size());
        bytes += static_cast<int64_t>(formatted.size());
        __asm__ volatile("" : : "r"(output) : "memory");
    }
    return bytes;
}
"#;

const STRINGSTREAM: &str = r#"
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <sstream>

extern "C" int64_t ascertain_each(const void *input, size_t count, void *output, size_t room) {
    auto values = static_cast<const uint64_t *>(input);
    int64_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        std::ostringstream stream;
        stream << values[i];
        const std::string text = stream.str();
        std::memcpy(output, text.data(), text.size());
        bytes += static_cast<int64_t>(text.size());
        __asm__ volatile("" : : "r"(output) : "memory");
    }
    return bytes;
}
"#;

/// The function of a peer by its variant's name: it writes one value after the other to the front of the output.
pub fn function(variant: &str) -> Option<Result<Function, Unavailable>> {
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
    Some(function.map_err(|error| Unavailable(format!("{needs}: {error}"))))
}
