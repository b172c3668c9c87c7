//! Every ordering and fence of a file, each made weaker.

use anyhow::ensure;

use super::Mutant;

/// What it is made of an ordering: the next weaker ones. What notices those notices still weaker ones.
fn weaker(ordering: &str) -> &'static [&'static str] {
    match ordering {
        "Acquire" | "Release" => &["Relaxed"],
        "AcqRel" => &["Acquire", "Release"],
        "SeqCst" => &["AcqRel"],
        _ => &[],
    }
}

/// Not in comments, nor in tests, which are what comes last in a file.
pub(super) fn mutants(file: &'static str, text: &str) -> anyhow::Result<Vec<Mutant>> {
    let mut mutants: Vec<Mutant> = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if line.starts_with("#[cfg(test)]") || line.starts_with("#[cfg(all(test") {
            break;
        }
        let code = line.split("//").next().unwrap_or(line).trim_end();
        let shown = code.trim_start();
        let mut add = |at: usize, len: usize, what: String, to: &'static str| {
            // Some lines come twice in a file.
            let same = mutants.iter().filter(|mutant| mutant.what.starts_with(&what)).count();
            let what = if same == 0 { what } else { format!("{what} ({})", same + 1) };
            mutants.push(Mutant { file, what, at: start + at..start + at + len, to });
        };
        if !shown.starts_with("use ") {
            for (at, word) in words(code) {
                if let Some(at) = code[..at].rfind("fence(") {
                    let at =
                        code[..at].rfind(|c: char| c != '_' && !c.is_alphanumeric()).map_or(0, |before| before + 1);
                    ensure!(code.ends_with(");"), "{file}: a fence in the middle of `{shown}`");
                    // What notices a fence that is weaker notices that there is none; the compiler's has no weaker one.
                    let (how, to) = if shown.starts_with("compiler") {
                        ("is not there", "();")
                    } else {
                        ("is `AcqRel`", "fence(Ordering::AcqRel);")
                    };
                    add(at, code.len() - at, format!("`{shown}` {how}"), to);
                } else {
                    for to in weaker(word) {
                        add(at, word.len(), format!("`{shown}`: `{word}` is `{to}`"), to);
                    }
                }
            }
        }
        start += line.len();
    }
    Ok(mutants)
}

/// The orderings that can be weaker, and where they begin.
fn words(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_part = |c: char| c == '_' || c.is_alphanumeric();
    let ends = code.char_indices().filter(move |&(_, c)| !is_part(c)).map(|(at, _)| at).chain([code.len()]);
    let mut start = 0;
    let words = ends.map(move |end| {
        let word = (start, &code[start..end]);
        start = end + 1;
        word
    });
    words.filter(|(_, word)| !weaker(word).is_empty())
}
