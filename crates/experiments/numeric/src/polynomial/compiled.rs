//! The two loops of the publication that the README cites, in C. Properties of the compiled loops are read from the
//! machine code with objdump.

use std::path::Path;
use std::process::Command;

use ascertain_engine::experiment::{Arm, Unavailable, compiled_function};
use ascertain_sys::compiled::{Function, Language, Source};

/// The loops in C, each with the name of its variant and a description. The C function has the variant's name without
/// `c-`.
pub const LOOPS: [(&str, &str); 2] =
    [("c-multiplications", "A·i·i + B·i + C, in C"), ("c-additions", "A·i·i + B·i + C by two running sums, in C")];

/// The optimisation levels, and the compiler options of each.
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

/// Returns the C loop of the arm's variant, compiled with the compiler and the optimisation level of the arm.
///
/// # Errors Returns the reason if this machine cannot compile or run the loop.
pub fn function(arm: &Arm) -> Result<Function<f64, f64>, Unavailable> {
    let word = |factor: &str| arm.point.get(factor).map(ToString::to_string).unwrap_or_default();
    let (compiler, level) = (word("compiler"), word("level"));
    let options = LEVELS.iter().find(|(name, _)| *name == level).map(|(_, options)| *options);
    let options = options.ok_or_else(|| Unavailable::levels(format!("unknown level `{level}`")))?;
    let name = arm.variant.strip_prefix("c-").ok_or(Unavailable::Variant)?;
    let source = Source::new(Language::C, TEXT).compiler(&compiler).options(options);
    compiled_function(&source, name, "a C compiler")
}

/// The properties of a loop, read from its machine code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loop {
    /// The width in bits of the widest register that the loop uses for floating-point numbers: 64 if it calculates with
    /// one double at a time.
    pub width_bits: u32,
    /// The number of instructions in the loop.
    pub instructions: u32,
    /// Number of doubles that one iteration of the loop stores in memory other than the stack.
    pub values: u32,
}

/// Returns the main loop of a C function in a shared object. The function's symbol is `ascertain_` followed by the
/// name. The main loop is the one that calculates in the widest registers. Returns `None` if objdump is missing, or if
/// the code is not for x86-64.
pub fn main_loop(object: &Path, function: &str) -> Option<Loop> {
    let output = Command::new("objdump")
        .args(["-d", "--no-show-raw-insn", &format!("--disassemble=ascertain_{function}")])
        .arg(object)
        .output()
        .ok()?;
    find_loop(&String::from_utf8_lossy(&output.stdout))
}

/// An instruction of the disassembly: its address, its name and its operands.
type Instruction<'a> = (u64, &'a str, &'a str);

fn find_loop(disassembly: &str) -> Option<Loop> {
    let instructions: Vec<Instruction> = disassembly.lines().filter_map(parse).collect();
    let loops = instructions.iter().enumerate().filter_map(|(last, (address, name, operands))| {
        let target = u64::from_str_radix(operands.split_whitespace().next()?, 16).ok()?;
        let is_backward = name.starts_with('j') && target <= *address;
        let first = instructions.iter().position(|(address, ..)| *address == target).filter(|_| is_backward)?;
        let body = &instructions[first..=last];
        let width_bits = body.iter().map(|(_, name, operands)| width_bits(name, operands)).max()?;
        let values = body.iter().map(|(_, name, operands)| stored_doubles(name, operands)).sum();
        Some(Loop { width_bits, instructions: body.len() as u32, values })
    });
    // Of nested loops the shortest is the innermost.
    loops.filter(|found| found.width_bits > 0).max_by_key(|found| (found.width_bits, u32::MAX - found.instructions))
}

/// Parses a line of objdump: an address, a colon and a tab, then the name and the operands.
fn parse(line: &str) -> Option<Instruction<'_>> {
    let (address, code) = line.split_once(":\t")?;
    let address = u64::from_str_radix(address.trim(), 16).ok()?;
    let (name, operands) = code.split_once(char::is_whitespace).unwrap_or((code, ""));
    Some((address, name, operands.trim()))
}

/// Returns the width in bits of the doubles that an addition or multiplication handles at once; 0 for other
/// instructions.
fn width_bits(name: &str, operands: &str) -> u32 {
    let name = name.trim_start_matches('v');
    let calculates = ["add", "mul", "fmadd"].iter().any(|operation| name.starts_with(operation));
    match calculates {
        true if name.ends_with("sd") => 64,
        true if name.ends_with("pd") && operands.contains("%zmm") => 512,
        true if name.ends_with("pd") && operands.contains("%ymm") => 256,
        true if name.ends_with("pd") => 128,
        _ => 0,
    }
}

/// Returns the number of doubles that an instruction moves from a register to memory. Moves to the stack, where the
/// compiler keeps variables, are not counted.
fn stored_doubles(name: &str, operands: &str) -> u32 {
    let name = name.trim_start_matches('v');
    let (from, to) = operands.split_once(',').unwrap_or((operands, ""));
    let is_store = name.starts_with("mov") && to.ends_with(')') && !["%rbp", "%rsp"].iter().any(|at| to.contains(at));
    match from.get(..4).filter(|_| is_store) {
        Some("%zmm") => 8,
        Some("%ymm") => 4,
        // Instructions for vectors of singles can also move two doubles.
        Some("%xmm") if ["movapd", "movupd", "movaps", "movups"].contains(&name) => 2,
        Some("%xmm") => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_on_the_stack_are_variables() {
        let stored = [
            ("movsd", "%xmm1,(%rax,%rdx,8)", 1),
            ("movsd", "%xmm1,-0x28(%rbp)", 0),
            ("movsd", "(%rax),%xmm1", 0),
            ("mov", "%rax,(%rdx)", 0),
            ("movups", "%xmm0,-0x10(%rax)", 2),
            ("vmovapd", "%zmm0,(%rax)", 8),
        ];
        for (name, operands, doubles) in stored {
            assert_eq!(stored_doubles(name, operands), doubles, "{name} {operands}");
        }
    }

    /// Tests code with two loops: one takes one double at a time, and the other takes four. The loop that takes four
    /// must be chosen.
    #[test]
    fn the_widest_loop_is_found() {
        let scalar = "\
0000000000001100 <additions>:
    1100:\tpxor   %xmm1,%xmm1
    1104:\tmovsd  %xmm1,(%rax)
    1108:\tadd    $0x8,%rax
    110c:\taddsd  %xmm0,%xmm1
    1110:\tcmp    %rdx,%rax
    1113:\tjne    1104 <additions+0x4>
";
        assert_eq!(find_loop(scalar), Some(Loop { width_bits: 64, instructions: 5, values: 1 }));
        let vector = format!(
            "{scalar}    1120:\tvmovupd %ymm1,(%rax)
    1124:\tvfmadd231pd %ymm0,%ymm2,%ymm1
    1128:\tjne    1120 <additions+0x20>
    112c:\tjmp    1100 <additions>
"
        );
        assert_eq!(find_loop(&vector), Some(Loop { width_bits: 256, instructions: 3, values: 4 }));
        assert_eq!(find_loop(""), None);
        assert_eq!(find_loop("    1100:\tjne    1100 <x>\n"), None, "the loop calculates nothing");
    }
}
