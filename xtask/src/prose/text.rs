//! Finds the prose in a file: all of a Markdown file, or the comments and string literals of Rust code.

use std::mem;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// Abbreviations whose full stop does not end a sentence.
const ABBREVIATIONS: &[&str] = &["e.g.", "i.e.", "vs.", "cf.", "al.", "no.", "fig."];

/// Smallest accepted number of words in a doc comment.
const MIN_WORDS: usize = 3;

/// Minimum number of words of a string literal that counts as prose. Shorter literals are names and phrases.
const MIN_WORDS_OF_LITERAL: usize = 4;

/// A comment, a string literal or a whole Markdown file.
#[derive(Debug, PartialEq, Eq)]
pub struct Text {
    /// Line number at which the text begins in the file, counted from 1.
    pub line: usize,
    pub contents: String,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Markdown,
    DocComment,
    Comment,
    Literal,
}

impl Text {
    /// Creates the text of a Markdown file.
    pub fn markdown(contents: &str) -> Text {
        Text { line: 1, contents: contents.into(), kind: Kind::Markdown }
    }

    /// Returns whether this is a doc comment with fewer than three words.
    pub fn is_too_short(&self) -> bool {
        let is_word = |word: &&str| word.contains(char::is_alphanumeric);
        let words = self.contents.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(is_word).count();
        self.kind == Kind::DocComment && (1..MIN_WORDS).contains(&words)
    }

    /// Returns the sentences, each with its line number in the file. Code blocks are skipped.
    pub fn sentences(&self) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        let mut paragraph = Paragraph::default();
        let mut is_code = false;
        for (event, range) in Parser::new_ext(&self.contents, Options::ENABLE_TABLES).into_offset_iter() {
            match event {
                Event::Start(Tag::CodeBlock(_)) => is_code = true,
                Event::End(TagEnd::CodeBlock) => is_code = false,
                Event::Text(text) if !is_code => paragraph.push(&text, range.start),
                Event::Code(code) => paragraph.push(&format!("`{code}`"), range.start),
                Event::SoftBreak | Event::HardBreak => paragraph.push(" ", range.start),
                Event::Start(tag) if begins_paragraph(&tag) => paragraph.finish(&mut found),
                Event::End(
                    TagEnd::Paragraph | TagEnd::Heading(_) | TagEnd::Item | TagEnd::TableCell | TagEnd::HtmlBlock,
                ) => paragraph.finish(&mut found),
                _ => {}
            }
        }
        paragraph.finish(&mut found);
        if self.kind == Kind::Literal {
            found.retain(|(_, sentence)| sentence.split_whitespace().count() >= MIN_WORDS_OF_LITERAL);
        }
        let line = |offset: usize| self.line + self.contents[..offset].matches('\n').count();
        found.into_iter().map(|(offset, sentence)| (line(offset), sentence)).collect()
    }
}

fn begins_paragraph(tag: &Tag) -> bool {
    matches!(tag, Tag::Paragraph | Tag::Heading { .. } | Tag::Item | Tag::TableCell)
}

/// The text of a paragraph, and where its pieces are in the whole text.
#[derive(Default)]
struct Paragraph {
    text: String,
    /// For each piece, its offset in `text` and its offset in the whole text.
    pieces: Vec<(usize, usize)>,
}

impl Paragraph {
    fn push(&mut self, text: &str, offset: usize) {
        self.pieces.push((self.text.len(), offset));
        self.text.push_str(text);
    }

    /// Ends the paragraph. Adds its sentences to `found`, each with its offset in the whole text.
    fn finish(&mut self, found: &mut Vec<(usize, String)>) {
        let Paragraph { text, pieces } = mem::take(self);
        for (start, sentence) in split(&text) {
            let piece = pieces.iter().rfind(|(length, _)| *length <= start);
            found.push((piece.map_or(0, |(_, offset)| *offset), sentence.to_owned()));
        }
    }
}

/// Splits a paragraph into sentences, each with its offset in the paragraph.
fn split(text: &str) -> Vec<(usize, &str)> {
    let mut sentences = Vec::new();
    let mut start = 0;
    for (at, _) in text.match_indices(char::is_whitespace) {
        let before = text[start..at].trim_end_matches(['"', '\'', ')', '*', '”', '`']);
        let last = before.rsplit(char::is_whitespace).next().unwrap_or_default();
        let is_end = before.ends_with(['.', '!', '?']) && !ABBREVIATIONS.contains(&last.trim_start_matches('('));
        let is_followed = text[at..].trim_start().starts_with(|c: char| !c.is_lowercase());
        if is_end && is_followed {
            sentences.push((start, text[start..at].trim()));
            start = at + text[at..].len() - text[at..].trim_start().len();
        }
    }
    sentences.push((start.min(text.len()), text.get(start..).unwrap_or_default().trim()));
    sentences.retain(|(_, sentence)| !sentence.is_empty());
    sentences
}

/// Returns the comments and the string literals of Rust code. Leaves out the literals of tests, because most of them
/// are data.
pub fn of_rust(code: &str) -> Vec<Text> {
    let tests_begin = code.find("#[cfg(test)]\nmod ").unwrap_or(code.len());
    let mut found: Vec<Text> = Vec::new();
    let mut lexer = Lexer { code, at: 0 };
    let mut last_line = 0;
    while let Some((kind, start, contents)) = lexer.next() {
        let line = 1 + code[..start].matches('\n').count();
        if kind == Kind::Literal {
            if start < tests_begin {
                found.push(Text { line, contents: unescaped(contents), kind });
            }
            continue;
        }
        let contents = contents.strip_prefix(' ').unwrap_or(contents);
        match found.last_mut() {
            Some(last) if last.kind == kind && last_line + 1 == line => {
                last.contents.push('\n');
                last.contents.push_str(contents);
            }
            _ => found.push(Text { line, contents: contents.into(), kind }),
        }
        last_line = line;
    }
    found
}

/// Returns the content of a string literal. Replaces only those escapes that matter for prose. Each line becomes a
/// paragraph, because literals with several lines are layouts or code.
fn unescaped(literal: &str) -> String {
    let mut text = literal.replace("\\n\\\n", "\n").replace("\\n", "\n").replace("\\\"", "\"").replace("\\t", " ");
    while let Some(at) = text.find("\\\n") {
        let rest = text[at + 2..].trim_start().to_owned();
        text.truncate(at);
        text.push_str(&rest);
    }
    text.replace('\n', "\n\n")
}

/// Finds the line comments and string literals of Rust code. Ignores block comments, which this repository does not
/// use.
struct Lexer<'a> {
    code: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    /// Returns the kind, the offset and the content of the next comment line or literal; `None` at the end.
    fn next(&mut self) -> Option<(Kind, usize, &'a str)> {
        loop {
            let rest = &self.code[self.at..];
            let offset = rest.find(['/', '"', '\'', 'r'])?;
            let start = self.at + offset;
            let rest = &rest[offset..];
            if let Some(comment) = rest.strip_prefix("//") {
                let comment = &comment[..comment.find('\n').unwrap_or(comment.len())];
                self.at = start + 2 + comment.len();
                return Some(match comment.strip_prefix(['/', '!']) {
                    Some(contents) => (Kind::DocComment, start, contents),
                    None => (Kind::Comment, start, comment),
                });
            }
            let is_within_name = self.code[..start].ends_with(|c: char| c.is_alphanumeric() || c == '_');
            let is_byte = self.code[..start].ends_with('b');
            if rest.starts_with('r') && (!is_within_name || is_byte) {
                let hashes = rest[1..].len() - rest[1..].trim_start_matches('#').len();
                if let Some(raw) = rest[1 + hashes..].strip_prefix('"') {
                    let end = format!("\"{}", &rest[1..=hashes]);
                    let raw = &raw[..raw.find(&end)?];
                    self.at = start + 2 + hashes + raw.len() + end.len();
                    return Some((Kind::Literal, start, raw));
                }
            }
            if let Some(literal) = rest.strip_prefix('"') {
                let length = end_of(literal, '"')?;
                self.at = start + length + 2;
                return Some((Kind::Literal, start, &literal[..length]));
            }
            self.at = start + 1;
            if let Some(character) = rest.strip_prefix('\'') {
                // `'a'` and `'\n'` are characters, but `'a` is a lifetime.
                let mut following = character.chars();
                let first = following.next()?;
                if first == '\\' || following.next() == Some('\'') {
                    self.at = start + 2 + end_of(character, '\'')?;
                }
            }
        }
    }
}

/// Returns the length of a literal up to its closing mark; `None` if the mark is missing.
fn end_of(literal: &str, mark: char) -> Option<usize> {
    let mut is_escaped = false;
    literal.char_indices().find_map(|(at, c)| {
        let is_end = c == mark && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_end.then_some(at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentences(markdown: &str) -> Vec<(usize, String)> {
        Text::markdown(markdown).sentences()
    }

    #[test]
    fn markdown_is_split_into_sentences() {
        let found = sentences(
            "# A title\n\nOne is `1.5`. Two, e.g. B, is\nlonger. (Three!)\n\n| a b | c |\n|---|---|\n| d | e |\n",
        );
        let expected = [
            (1, "A title"),
            (3, "One is `1.5`."),
            (3, "Two, e.g. B, is longer."),
            (4, "(Three!)"),
            (6, "a b"),
            (6, "c"),
        ];
        assert_eq!(found[..6], expected.map(|(line, sentence)| (line, sentence.to_owned())));
        assert_eq!(found.len(), 8);
    }

    #[test]
    fn code_and_addresses_are_not_prose() {
        let found = sentences("See [this page](https://example.com/What). \n\n```\nWhat is code.\n```\n- an item\n");
        assert_eq!(found, [(1, "See this page.".to_owned()), (6, "an item".to_owned())]);
    }

    #[test]
    fn comments_and_literals_of_rust_are_found() {
        let code = "//! Module.\n\n/// A doc\n/// comment.\nfn f<'a>(x: &'a str) { let q = '\"'; let s = \"a \\\"b\\\" \\\n   c\"; } // end\nlet r = br#\"raw \" text\"#; let n = 'r';\n#[cfg(test)]\nmod tests {\n    // why\n    let s = \"data\";\n}\n";
        let found: Vec<_> =
            of_rust(code).into_iter().map(|Text { line, contents, kind }| (line, contents, kind)).collect();
        let expected = [
            (1, "Module.", Kind::DocComment),
            (3, "A doc\ncomment.", Kind::DocComment),
            (5, "a \"b\" c", Kind::Literal),
            (6, "end", Kind::Comment),
            (7, "raw \" text", Kind::Literal),
            (10, "why", Kind::Comment),
        ];
        assert_eq!(found, expected.map(|(line, contents, kind)| (line, contents.to_owned(), kind)));
    }

    #[test]
    fn short_doc_comments_are_found() {
        let is_short = |code| of_rust(code).iter().any(Text::is_too_short);
        assert!(is_short("/// The name.\nx"));
        assert!(!is_short("/// The server's name.\nx"));
        assert!(!is_short("// Why.\nx"));
    }
}
