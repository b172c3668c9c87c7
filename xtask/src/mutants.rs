//! Mutants: the code with one ordering, fence or instruction wrong, under the tests that are quick. A mutant that no test
//! notices is a test that is missing, unless it says here why nothing can notice it.

use std::fs;
use std::path::Path;

use anyhow::ensure;

use crate::tools;

/// One change to the text of a file, which has it once.
struct Mutant {
    what: &'static str,
    file: &'static str,
    from: &'static str,
    to: &'static str,
    /// Of `cargo test`.
    tests: &'static [&'static str],
    /// Why nobody notices it.
    explanation: Option<&'static str>,
}

const STACKS: &str = "crates/sys/src/rseq/stacks.rs";
const SEQUENCES: &str = "crates/sys/src/rseq/x86_64.rs";
const FENCE: &str = "crates/sys/src/rseq/fence.rs";
const LOCK: &str = "crates/sync/src/per_cpu/lock.rs";
const RSEQ: &[&str] = &["--package", "ascertain-sys", "--lib", "rseq"];
const PER_CPU: &[&str] =
    &["--package", "ascertain-sync", "--test", "per_cpu", "--test", "per_cpu_pinned", "--test", "per_cpu_machine"];

const fn mutant(what: &'static str, file: &'static str, from: &'static str, to: &'static str) -> Mutant {
    Mutant { what, file, from, to, tests: RSEQ, explanation: None }
}

const MUTANTS: &[Mutant] = &[
    mutant(
        "a stack is stopped without the kernel's fence",
        STACKS,
        "self.stop_by(cpu, fence)",
        "self.stop_by(cpu, |_| Ok(()))",
    ),
    mutant("a stopped stack does not refuse", STACKS, "        stack.admit(false);\n", ""),
    mutant(
        "a fence fences nobody",
        FENCE,
        "    let fenced = membarrier::restart_sequences(cpu);",
        "    let fenced = Ok(());",
    ),
    mutant(
        "a push reads the top before the limit",
        SEQUENCES,
        r#""mov {limit}, qword ptr [{stacks} + {cpu} + {ceiling}]\n",
            "mov {slot}, qword ptr [{stacks} + {cpu} + {top}]\n","#,
        r#""mov {slot}, qword ptr [{stacks} + {cpu} + {top}]\n",
            "mov {limit}, qword ptr [{stacks} + {cpu} + {ceiling}]\n","#,
    ),
    mutant(
        "a pop reads the top before the limit",
        SEQUENCES,
        r#""mov {limit}, qword ptr [{stacks} + {cpu} + {floor}]\n",
            "mov {item}, qword ptr [{stacks} + {cpu} + {top}]\n","#,
        r#""mov {item}, qword ptr [{stacks} + {cpu} + {top}]\n",
            "mov {limit}, qword ptr [{stacks} + {cpu} + {floor}]\n","#,
    ),
    mutant(
        "a push goes past the end",
        SEQUENCES,
        r#""jae {refused}\n",
            "mov qword"#,
        r#""ja {refused}\n",
            "mov qword"#,
    ),
    mutant("a pop goes past the beginning", SEQUENCES, "jbe 6f", "jb 6f"),
    mutant(
        "a push writes behind its commit",
        SEQUENCES,
        r#""mov qword ptr [{slot}], {item}\n",
            "add qword ptr [{stacks} + {cpu} + {top}], {slot_bytes}","#,
        r#""add qword ptr [{stacks} + {cpu} + {top}], {slot_bytes}\n",
            "mov qword ptr [{slot}], {item}","#,
    ),
    mutant(
        "a store does not look who owns the words",
        SEQUENCES,
        r#""jne {refused}\n",
            "mov qword ptr [{word}]"#,
        r#""mov qword ptr [{word}]"#,
    ),
    Mutant {
        tests: PER_CPU,
        ..mutant("sequences are not announced", SEQUENCES, r#""mov qword ptr fs:[{area} + 8], {cpu}""#, r#""nop""#)
    },
    Mutant { tests: PER_CPU, ..mutant("a revocation has no fence", LOCK, "rseq::fence(None)", "Ok(())") },
    Mutant {
        explanation: Some("x86's exchange is a full barrier; what is left is a compiler's freedom across an atomic"),
        ..mutant(
            "a stopper's Acquire is relaxed",
            STACKS,
            "is_stopped.swap(true, Acquire)",
            "is_stopped.swap(true, Relaxed)",
        )
    },
    Mutant {
        explanation: Some("x86 keeps stores in order; what is left is a compiler's freedom to move them"),
        ..mutant(
            "sequences are admitted by a relaxed store",
            STACKS,
            "self.floor.store(floor.as_ptr(), Release);",
            "self.floor.store(floor.as_ptr(), Relaxed);",
        )
    },
];

/// Tries each mutant, or those whose description has one of the words, and prints a table.
pub fn run(words: &[String]) -> anyhow::Result<()> {
    let chosen = |mutant: &&Mutant| words.is_empty() || words.iter().any(|word| mutant.what.contains(word.as_str()));
    let tree = tools::target().join("xtask-mutants/tree");
    let _ = fs::remove_dir_all(&tree);
    fs::create_dir_all(&tree)?;
    // With the times of now: what is older than the last mutant's build would not be compiled again.
    let copied = ["-r", "Cargo.toml", "Cargo.lock", "crates", "xtask", "claims", &*tree.to_string_lossy()];
    tools::run("cp", &copied)?;
    let (mut rows, mut missed) = (Vec::new(), 0);
    for mutant in MUTANTS.iter().filter(chosen) {
        let path = tree.join(mutant.file);
        let text = fs::read_to_string(&path)?;
        let found = text.matches(mutant.from).count();
        ensure!(found == 1, "{}: {} has its text {found} times, not once", mutant.what, mutant.file);
        fs::write(&path, text.replacen(mutant.from, mutant.to, 1))?;
        let noticed = noticed_by(&tree, mutant)?;
        fs::write(&path, text)?;
        let outcome = match (&noticed, mutant.explanation) {
            (Some(test), _) => test.clone(),
            (None, Some(why)) => format!("nobody: {why}"),
            (None, None) => "**nobody**".into(),
        };
        missed += usize::from(noticed.is_none() && mutant.explanation.is_none());
        println!("{}: {outcome}", mutant.what);
        rows.push(format!("| {} | {outcome} |", mutant.what));
    }
    println!("\n| mutant | noticed by |\n|---|---|\n{}", rows.join("\n"));
    ensure!(missed == 0, "{missed} mutants are noticed by no test");
    Ok(())
}

/// The first test that fails; none if all pass. A mutant that does not compile is an error.
fn noticed_by(tree: &Path, mutant: &Mutant) -> anyhow::Result<Option<String>> {
    let [manifest, folder] = [tree.join("Cargo.toml"), tree.with_file_name("target")];
    let cargo = |end: &[&str]| {
        let start = [
            "300",
            "cargo",
            "test",
            "--manifest-path",
            &*manifest.to_string_lossy(),
            "--target-dir",
            &*folder.to_string_lossy(),
        ];
        tools::capture("timeout", &[&start, mutant.tests, end].concat())
    };
    let built = cargo(&["--no-run"])?;
    ensure!(built.status.success(), "{}: {}", mutant.what, String::from_utf8_lossy(&built.stderr));
    let output = cargo(&[])?;
    if output.status.success() {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let failed = text.lines().find_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"));
    Ok(Some(failed.map_or_else(|| "a crash, or no end".into(), |test| format!("`{test}`"))))
}
