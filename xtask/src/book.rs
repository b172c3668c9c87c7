//! The book in `docs/`: checks that mdBook can build the book, and writes the outputs of commands into its pages.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use anyhow::{Context, ensure};

use crate::tools::{self, Need};

pub const MDBOOK: Need = Need::Crate("mdbook", "0.5.4");

/// Builds the book. Fails if mdBook prints a warning, or if a link of the built pages leads nowhere. Tests of the
/// `ascertain` command check the sources: links, commands, and that generated pages are up to date.
pub fn check() -> anyhow::Result<()> {
    let folder = tools::new_folder("xtask-book")?;
    let built = tools::capture(MDBOOK.program(), &["build", &tools::in_root("docs"), "--dest-dir", &folder])?;
    let log = String::from_utf8_lossy(&built.stderr).into_owned() + &String::from_utf8_lossy(&built.stdout);
    print!("{log}");
    let is_clean = !log.contains("WARN") && !log.contains("ERROR");
    ensure!(built.status.success() && is_clean, "mdBook reports errors or warnings in docs/");
    let mut pages = BTreeMap::new();
    for path in tools::files(Path::new(&folder), "html")? {
        let text = fs::read_to_string(&path)?;
        pages.insert(path, text);
    }
    let dead: Vec<String> = pages.keys().flat_map(|page| dead_links(page, &pages)).collect();
    ensure!(dead.is_empty(), "dead links in the built book:\n{}", dead.join("\n"));
    println!("{} pages", pages.len());
    Ok(())
}

/// Returns the links of a page that lead to no file, or to no element of a page.
fn dead_links(page: &Path, pages: &BTreeMap<PathBuf, String>) -> Vec<String> {
    // `print.html` repeats all other pages, and `404.html` is served at addresses of any depth.
    if ["print.html", "404.html"].iter().any(|name| page.ends_with(name)) {
        return Vec::new();
    }
    let is_alive = |link: &str| {
        let (file, id) = link.split_once('#').unwrap_or((link, ""));
        let target = if file.is_empty() { page.to_owned() } else { resolved(page, file) };
        match pages.get(&target) {
            Some(text) => id.is_empty() || text.contains(&format!("id=\"{id}\"")),
            None => target.exists() && id.is_empty(),
        }
    };
    let attributes = ["href=\"", "src=\""].into_iter().flat_map(|start| pages[page].split(start).skip(1));
    let links = attributes.filter_map(|rest| rest.split('"').next());
    let local = links.filter(|link| !link.is_empty() && !link.contains("://") && !link.starts_with("data:"));
    local.filter(|link| !is_alive(link)).map(|link| format!("{}: {link}", page.display())).collect()
}

/// Returns the path of the file to which a link in `page` leads, with each `..` resolved.
fn resolved(page: &Path, file: &str) -> PathBuf {
    let mut path = page.parent().unwrap_or(page).to_owned();
    for part in file.split('/') {
        match part {
            ".." => drop(path.pop()),
            "." => {}
            part => path.push(part),
        }
    }
    path
}

/// The beginning of the comment above a block with the output of a command. The comment is `<!-- output: NAME -->`, or
/// `<!-- output: NAME; head N -->` to show only the first N lines.
const MARK: &str = "<!-- output: ";

/// Runs the marked commands in README.md and the book with the release binary. Writes the output of each command below
/// it. If `names` is not empty, runs only the commands with these names. No other program should run meanwhile.
pub fn write_outputs(names: &[String]) -> anyhow::Result<()> {
    let binary = tools::release_binary()?;
    let folder = PathBuf::from(tools::new_folder("xtask-outputs")?);
    write_inputs(&folder)?;
    let mut documents = vec![tools::root().join("README.md")];
    documents.extend(tools::files(&tools::root().join("docs"), "md")?.into_iter().filter(|path| !path.is_symlink()));
    for document in documents {
        let text = fs::read_to_string(&document)?;
        let mut parts = text.split(MARK);
        let mut written = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (mark, rest) = part.split_once(" -->\n```console\n").with_context(|| format!("{part}: no block"))?;
            let (block, rest) = rest.split_once("```").with_context(|| format!("{mark}: the block has no end"))?;
            let (name, head) = mark.split_once("; head ").unwrap_or((mark, "1000"));
            let block = if names.is_empty() || names.iter().any(|wanted| wanted == name) {
                let typed = typed(block);
                println!("{}: {typed}", document.display());
                format!("{}{}", &block[..typed.len()], output(&typed, &binary, &folder, head.parse()?)?)
            } else {
                block.to_owned()
            };
            written += &format!("{MARK}{mark} -->\n```console\n{block}```{rest}");
        }
        fs::write(&document, written)?;
    }
    Ok(())
}

/// Returns the command line at the start of a block, with its continuation lines.
fn typed(block: &str) -> String {
    let mut typed = String::new();
    for line in block.split_inclusive('\n') {
        typed += line;
        if !line.ends_with("\\\n") {
            break;
        }
    }
    typed
}

/// Creates the input files of the commands.
fn write_inputs(folder: &Path) -> anyhow::Result<()> {
    let words: String =
        (0_u64..200_000).map(|word| format!("{:x}\n", word.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
    fs::write(folder.join("words.txt"), words)?;
    fs::copy(tools::in_root("Cargo.lock"), folder.join("Cargo.lock"))?;
    fs::create_dir_all(folder.join("examples/instances"))?;
    for name in ["c6g-c7g.csv", "prices.csv", "claims.toml"] {
        let file = format!("examples/instances/{name}");
        fs::copy(tools::in_root(&file), folder.join(&file))?;
    }
    let page = fs::read_to_string(tools::in_root("docs/claims-files.md"))?;
    let (_, claims) = page.split_once("```toml\n").context("claims-files.md has no claims")?;
    fs::write(folder.join("claims.toml"), claims.split("```").next().unwrap_or_default())?;
    // The values are around 1; those of the second sample are a little larger.
    for (name, shift) in [("before.csv", 0), ("after.csv", 150)] {
        let value = |at: u64| 9_000 + at.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17) % 2_000 + shift;
        let values: String = (1..=1_000).map(|at| format!("{}\n", value(at) as f64 / 10_000.0)).collect();
        fs::write(folder.join(name), values)?;
    }
    Ok(())
}

/// Returns the first lines that a command prints to standard output, without its remark about the load of this machine.
fn output(typed: &str, binary: &Path, folder: &Path, lines: usize) -> anyhow::Result<String> {
    let script = typed.trim_start_matches("$ ").replace("cargo run --release -- ", "ascertain ");
    let manifest = format!("cargo bench --quiet --manifest-path {}", tools::in_root("crates/ascertain/Cargo.toml"));
    let script = script.replace("cargo bench", &manifest);
    let path = env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", binary.parent().unwrap_or(binary).display());
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).current_dir(folder).env("PATH", path).env("XDG_STATE_HOME", folder.join("state"));
    let output =
        shell.env("NO_COLOR", "1").env("COLUMNS", "100").stdin(Stdio::null()).stderr(Stdio::null()).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(!text.trim().is_empty(), "`{}` printed nothing", typed.trim());
    let text = text.split("\nCareful: ").next().unwrap_or_default().replace(&*folder.to_string_lossy(), "/home/me");
    let mut shown: Vec<&str> = text.trim_end().lines().map(str::trim_end).collect();
    if shown.len() > lines {
        shown.truncate(lines);
        shown.push("…");
    }
    Ok(shown.join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dead_links_are_found() {
        let page = Path::new("/book/a/b.html");
        let pages = BTreeMap::from([
            (
                page.to_owned(),
                "<a href=\"../c.html#x\"> <a href=\"../c.html#y\"> <a href=\"#z\"> <a id=\"z\">".to_owned(),
            ),
            (PathBuf::from("/book/c.html"), "<h2 id=\"x\">".to_owned()),
        ]);
        assert_eq!(dead_links(page, &pages), ["/book/a/b.html: ../c.html#y"]);
    }

    #[test]
    fn a_typed_line_has_its_continuations() {
        assert_eq!(typed("$ a \\\n    b\nprinted\n"), "$ a \\\n    b\n");
    }
}
