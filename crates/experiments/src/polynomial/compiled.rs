//! The source's two loops, in C.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use ascertain_engine::experiment::{Arm, Unavailable};
use ascertain_sys::compiled::{Function, Language, Source, compile};

/// The loops' names, which are those of their functions with `c-` before them.
pub const LOOPS: [(&str, &str); 2] =
    [("c-multiplications", "A·i·i + B·i + C, in C"), ("c-additions", "the same by two running sums, in C")];

/// The levels and the compilers' options for them.
pub const LEVELS: [(&str, &[&str]); 5] =
    [("O0", &["-O0"]), ("O1", &["-O1"]), ("O2", &["-O2"]), ("O3", &["-O3"]), ("O3-native", &["-O3", "-march=native"])];

const TEXT: &str = r"
ASCERTAIN(multiplications, double, double) {
    const double A = 1.1, B = 2.2, C = 3.3;
    int i;
    for (i = 0; i < (int)out_count; i++) out[i] = A * i * i + B * i + C;
    return 0;
}

ASCERTAIN(additions, double, double) {
    const double A = 1.1, B = 2.2, C = 3.3, twice = A + A;
    double value = C, rise = A + B;
    int i;
    for (i = 0; i < (int)out_count; i++) {
        out[i] = value;
        value += rise;
        rise += twice;
    }
    return 0;
}
";

/// A loop, or why there is none.
type Compiled = Result<Function<f64, f64>, Unavailable>;

/// Whether the machine has the arm's compiler.
pub fn available(arm: &Arm) -> Result<(), Unavailable> {
    function(arm).map(|_| ())
}

/// The arm's loop, compiled as its point says.
pub fn function(arm: &Arm) -> Compiled {
    /// What is compiled lasts as long as the program: a run asks several times.
    static COMPILED: Mutex<BTreeMap<Arm, Compiled>> = Mutex::new(BTreeMap::new());
    let key = Arm { variant: arm.variant.clone(), point: arm.point.clone().with("elements", 0) };
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    compiled.entry(key).or_insert_with(|| compile_anew(arm)).clone()
}

fn compile_anew(arm: &Arm) -> Compiled {
    let word = |factor: &str| arm.point.get(factor).map(ToString::to_string).unwrap_or_default();
    let (compiler, level) = (word("compiler"), word("level"));
    let options = LEVELS.iter().find(|(name, _)| *name == level).map(|(_, options)| *options);
    let options = options.ok_or_else(|| Unavailable::other(format!("there is no level `{level}`")))?;
    let name = arm.variant.strip_prefix("c-").ok_or_else(|| Unavailable::other("there is no such variant"))?;
    let source = Source::new(Language::C, TEXT).compiler(&compiler).options(options);
    let needs =
        |error: ascertain_sys::Error| Unavailable::Program { program: "a C compiler".into(), error: error.to_string() };
    compile(&source).and_then(|library| library.function(name)).map_err(needs)
}
