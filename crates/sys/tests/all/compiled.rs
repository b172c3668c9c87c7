//! Tests of calling C and C++ code, with the compilers that this machine has.

use std::fs;
use std::time::Duration;

use ascertain_sys::Error;
use ascertain_sys::compiled::{Language, Source, compile};

use ascertain_sys::testing::{left_out, or_left_out};

const DOUBLE: &str = r#"
#include <stddef.h>
#include <stdint.h>
ASCERTAIN(twice, double, double) {
    if (out_count < in_count) return -1;
    for (size_t i = 0; i < in_count; i++) out[i] = 2 * in[i];
    return (int64_t)in_count;
}
ASCERTAIN(fill, int8_t, uint64_t) {
    for (size_t i = 0; i < out_count; i++) out[i] = UINT64_MAX;
    return 0;
}
ASCERTAIN(narrow, float, int16_t) { return 0; }
#ifdef __cplusplus
extern "C"
#endif
int64_t ascertain_of_another_type(char *all) { return all[0]; }
"#;

fn is_unavailable(error: &Error) -> bool {
    let reasons = ["failed to map segment", "Dynamic loading not supported"];
    match error {
        Error::CompilerMissing { .. } => true,
        Error::Load { message } => reasons.iter().any(|reason| message.contains(reason)),
        _ => false,
    }
}

#[test]
fn code_is_compiled_called_and_removed() {
    for language in [Language::C, Language::Cpp] {
        let library = match compile(&Source::new(language, DOUBLE)) {
            Ok(library) => library,
            // There is no compiler, or the folder for temporary files does not allow loading code, or this is a static
            // program with musl, which cannot load anything.
            Err(error) if is_unavailable(&error) => {
                left_out(error);
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        let object = library.object();
        assert!(std::fs::read(&object).unwrap().starts_with(b"\x7fELF"));
        let was_at = std::fs::read_link(&object).unwrap();
        assert!(!was_at.parent().unwrap().exists(), "nothing is left behind, even if this process is killed now");
        let twice = library.function::<f64, f64>("twice").unwrap();
        let mut output = [0.0; 3];
        assert_eq!(twice.call(&[1.0, -2.5, 1e300], &mut output), 3);
        assert_eq!(output, [2.0, -5.0, 2e300]);
        assert_eq!(twice.call(&[1.0, 2.0], &mut output[..1]), -1);
        let twice_of_f32 = library.function::<f32, f64>("twice").unwrap_err().to_string();
        assert!(twice_of_f32.contains("`twice` from f64 to f64, but f32 to f64 was requested"), "{twice_of_f32}");
        // A function for elements of the wrong size would write past the end of the output.
        assert!(library.function::<i8, u64>("fill").is_ok() && library.function::<i8, u8>("fill").is_err());
        assert!(library.function::<i8, i64>("fill").is_err() && library.function::<u8, u64>("fill").is_err());
        assert!(library.function::<f32, i16>("narrow").is_ok() && library.function::<i32, i16>("narrow").is_err());
        for name in ["thrice", "of_another_type", "types_twice"] {
            assert!(library.function::<f64, f64>(name).unwrap_err().to_string().contains(name));
        }
        let twice = { library }.function::<f64, f64>("twice").unwrap();
        assert_eq!(twice.call(&[3.0], &mut output), 1, "a function holds its library");
    }
}

#[test]
fn what_cannot_be_compiled_says_why() {
    let missing = compile(&Source::new(Language::C, DOUBLE).compiler("no-such-compiler-here")).unwrap_err();
    assert!(
        matches!(&missing, Error::CompilerMissing { compiler, .. } if compiler == "no-such-compiler-here"),
        "{missing}"
    );
    assert!(missing.to_string().contains("install it") && !missing.to_string().contains("shell"), "{missing}");
    let broken = Source::new(Language::C, "#include <no_such_header.h>\n");
    match compile(&broken) {
        Err(error @ Error::CompilerMissing { .. }) => left_out(error),
        Err(error) => {
            assert!(error.to_string().contains("source.c:1:10: fatal error: no_such_header.h"), "{error}");
            assert!(!error.to_string().contains("/source.c"), "the folder is gone by now: {error}");
        }
        Ok(_) => panic!("there is no such header"),
    }
    let odd = Source::new(Language::C, DOUBLE).options(&["--no-such-option-here"]);
    assert!(compile(&odd).is_err());
}

/// The compiler creates a temporary file, starts a child process and hangs. After it is stopped, its temporary folder
/// must be gone.
#[test]
fn a_compiler_that_takes_too_long_is_stopped() {
    let folder = crate::common::folder();
    let seen = folder.path().join("seen");
    let script = format!("#!/bin/sh\ntouch \"$TMPDIR/temporary\"\necho $TMPDIR > '{}'\nsleep 3600\n", seen.display());
    let compiler = crate::common::program(folder.path(), "compiler", &script);
    let source = Source::new(Language::C, DOUBLE).compiler(compiler.to_str().unwrap());
    let error = compile(&Source { time_limit: Duration::from_millis(500), ..source }).unwrap_err();
    assert!(matches!(error, Error::CompileTimeout { limit_s: 0.5, .. }), "{error}");
    assert!(error.to_string().contains("did not finish within 0.5 s"), "{error}");
    // On a very busy machine the script may not have got this far; then there is nothing to check.
    if let Some(scratch) = or_left_out(fs::read_to_string(&seen)) {
        assert!(!fs::exists(scratch.trim()).unwrap());
    }
}
