//! Links the hook statically, because the dynamic loader takes time at each start.
//!
//! Rust's standard library for glibc names shared libraries. This script writes libraries of the same names, which
//! refer to the static ones, into a folder that the linker searches first. If the machine lacks the static libraries,
//! the hook is linked dynamically: it works, but is slower. For musl, Rust links statically by itself.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const HOOK: &str = "ascertain-fsmonitor-hook";
/// Shared libraries that the standard library names, and the static libraries that replace each.
const LIBRARIES: &[(&str, &[&str])] = &[
    ("gcc_s", &["libgcc_eh.a", "libc.a"]),
    ("c", &["libc.a"]),
    ("m", &["libm.a"]),
    ("rt", &["librt.a"]),
    ("pthread", &["libpthread.a"]),
    ("util", &["libutil.a"]),
    ("dl", &["libdl.a"]),
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=RUSTC_LINKER");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|own| own == value);
    let is_static = env::var("CARGO_CFG_TARGET_FEATURE").is_ok_and(|list| list.split(',').any(|f| f == "crt-static"));
    if is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") && !is_static {
        let _ = link_statically();
    }
}

/// Returns `None`, and prints nothing, if a static library is missing.
fn link_statically() -> Option<()> {
    let folder = PathBuf::from(env::var_os("OUT_DIR")?).join("static");
    fs::create_dir_all(&folder).ok()?;
    for (name, replacements) in LIBRARIES {
        let paths = replacements.iter().map(|file| place_of(file)).collect::<Option<Vec<_>>>()?;
        let quoted: Vec<String> = paths.iter().map(|path| format!("\"{path}\"")).collect();
        fs::write(folder.join(format!("lib{name}.a")), format!("INPUT({})\n", quoted.join(" "))).ok()?;
    }
    println!("cargo::rustc-link-arg-bin={HOOK}=-L{}", folder.to_str()?);
    println!("cargo::rustc-link-arg-bin={HOOK}=-static-pie");
    Some(())
}

/// Returns the path of a library of the linker; `None` if the linker does not have it, or is not a C compiler.
fn place_of(file: &str) -> Option<String> {
    let cross = format!("{}-linux-gnu-gcc", env::var("CARGO_CFG_TARGET_ARCH").ok()?);
    let own = if env::var("HOST") == env::var("TARGET") { "cc".to_owned() } else { cross };
    let linker = env::var("RUSTC_LINKER").unwrap_or(own);
    let output = Command::new(linker).arg(format!("-print-file-name={file}")).output().ok()?;
    let path = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (Path::new(&path).is_absolute() && !path.contains('"')).then_some(path)
}
