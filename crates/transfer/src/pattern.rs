//! Patterns for names, as in a shell.

use std::fmt;
use std::str::{Chars, FromStr};

use crate::error::Error;

/// Maximum number of alternatives that the braces of a pattern may expand to.
const MAX_ALTERNATIVES: usize = 256;

/// A pattern for the names of files and objects, such as `*.log`, `2026-??/**` or `node_modules/`.
///
/// - `*` matches any number of characters except slashes, and `?` matches one such character.
/// - `**` matches any number of any characters. `**/` also matches no folder: `a/**/b` matches `a/b`.
/// - `[ab]` and `[a-z]` match one of the characters, and `[!ab]` matches one other character, but no slash.
/// - `{a,b}` matches `a` or `b`, which may be patterns.
/// - `\` before a character removes its special meaning.
///
/// A pattern without a slash is compared only with the last part of a name, after the last slash in the name. A pattern
/// with a slash at its beginning or inside is compared with the whole name. A pattern with a slash or `/**` at its end
/// matches folders only.
///
/// ```
/// use ascertain_transfer::Pattern;
///
/// let pattern: Pattern = "*.{log,txt}".parse()?;
/// assert!(pattern.includes("var/today.log") && !pattern.includes("var/today.gz"));
/// let folder: Pattern = "node_modules".parse()?;
/// assert!(folder.excludes("web/node_modules/a/b.js") && !folder.includes("web/node_modules/a/b.js"));
/// # Ok::<(), ascertain_transfer::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    /// The sequences of tokens that the braces expand to. A name must match one of them.
    alternatives: Vec<Vec<Token>>,
    /// `true` to compare the pattern with the whole name; `false` to compare it with the name after its last slash.
    is_anchored: bool,
    /// `true` if the pattern matches only folders, and therefore only names below these folders.
    is_folder: bool,
}

/// A part of a pattern that matches a number of characters.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// One certain character.
    Character(char),
    /// `?`: one character, but no slash.
    Any,
    /// `[a-c]` or `[!a-c]`: one character of these ranges, or one outside of them, but no slash.
    Class { is_negated: bool, ranges: Vec<(char, char)> },
    /// `*`: any number of characters, but no slash.
    Star,
    /// `**`: any number of any characters.
    DeepStar,
    /// `**/` at the beginning of a part of the path: any number of folders, or none.
    Folders,
}

impl Token {
    fn matches(&self, character: char) -> bool {
        match self {
            Self::Character(own) => *own == character,
            Self::Class { is_negated, ranges } => {
                let is_in = ranges.iter().any(|(first, last)| (*first..=*last).contains(&character));
                is_in != *is_negated && character != '/'
            }
            Self::Any | Self::Star => character != '/',
            Self::DeepStar | Self::Folders => true,
        }
    }
}

impl Pattern {
    /// Returns whether the file `name` is selected if this pattern is used to select names. A pattern for folders
    /// selects all files below them.
    #[must_use]
    pub fn includes(&self, name: &str) -> bool {
        if self.is_folder { self.matches_folder_of(name) } else { self.matches(name) }
    }

    /// Returns whether the file `name` is excluded if this pattern is used to exclude names. A folder that the pattern
    /// matches is excluded with all files below it.
    #[must_use]
    pub fn excludes(&self, name: &str) -> bool {
        self.includes(name) || self.matches_folder_of(name)
    }

    /// Returns whether the folder `name` is excluded, with all files below it, if this pattern is used to exclude
    /// names.
    #[must_use]
    pub fn excludes_folder(&self, name: &str) -> bool {
        self.matches(name)
    }

    /// Returns the common beginning of all names that the pattern matches.
    pub(crate) fn prefix(&self) -> String {
        let literal = |tokens: &Vec<Token>| -> String {
            let characters = tokens.iter().map_while(|token| match token {
                Token::Character(character) => Some(*character),
                _ => None,
            });
            characters.collect()
        };
        let prefixes = self.alternatives.iter().filter(|_| self.is_anchored).map(literal);
        let common = |one: String, other: String| {
            let both = one.chars().zip(other.chars()).take_while(|(one, other)| one == other);
            both.map(|(one, _)| one).collect()
        };
        prefixes.reduce(common).unwrap_or_default()
    }

    /// Returns whether the pattern matches one of the folders in the path of the file `name`.
    fn matches_folder_of(&self, name: &str) -> bool {
        name.match_indices('/').any(|(end, _)| self.matches(&name[..end]))
    }

    /// Returns whether the pattern matches the name of a file or folder.
    fn matches(&self, name: &str) -> bool {
        let name = if self.is_anchored { name } else { name.rsplit('/').next().unwrap_or(name) };
        let name: Vec<char> = name.chars().collect();
        self.alternatives.iter().any(|tokens| matches(tokens, &name))
    }
}

fn matches(tokens: &[Token], name: &[char]) -> bool {
    // `reached[i]` is `true` if the tokens so far match the first i characters of the name.
    let mut reached = vec![false; name.len() + 1];
    reached[0] = true;
    for token in tokens {
        let mut next = vec![false; name.len() + 1];
        let mut is_reached_before = false;
        for at in 0..=name.len() {
            let last = at.checked_sub(1).map(|at| name[at]);
            next[at] = match token {
                Token::Star | Token::DeepStar => {
                    reached[at] || last.is_some_and(|last| next[at - 1] && token.matches(last))
                }
                Token::Folders => reached[at] || is_reached_before && last == Some('/'),
                _ => last.is_some_and(|last| reached[at - 1] && token.matches(last)),
            };
            is_reached_before |= reached[at];
        }
        reached = next;
    }
    reached[name.len()]
}

/// The reason why a text is not a valid pattern.
type Reason = &'static str;

impl FromStr for Pattern {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = |reason| Error::Pattern { pattern: text.escape_debug().to_string(), reason };
        let body = text.strip_prefix('/').unwrap_or(text);
        let (body, is_folder, is_below) = match (body.strip_suffix('/'), body.strip_suffix("/**")) {
            (Some(folder), _) => (folder, true, false),
            (_, Some(folder)) => (folder, true, true),
            _ => (body, false, false),
        };
        if body.is_empty() {
            return Err(wrong("it names no file or folder"));
        }
        let mut expanded = Vec::new();
        expand(body, &mut expanded).map_err(wrong)?;
        let alternatives = expanded.iter().map(|text| tokens(text)).collect::<Result<_, _>>().map_err(wrong)?;
        let is_anchored = text.starts_with('/') || body.contains('/') || is_below;
        Ok(Self { text: text.into(), alternatives, is_anchored, is_folder })
    }
}

/// Expands the braces of a pattern, and appends the resulting texts to `expanded`.
fn expand(text: &str, expanded: &mut Vec<String>) -> Result<(), Reason> {
    // The innermost open brace of the first pair of braces has the depth 1.
    let (mut depth, mut ends, mut is_class) = (0, Vec::new(), false);
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => _ = characters.next(),
            // A closing bracket directly after the opening one is a character of the class.
            '[' if !is_class => {
                is_class = true;
                let class = text[at + 1..].trim_start_matches(['!', '^']);
                if class.starts_with(']') {
                    _ = characters.find(|(_, character)| *character == ']');
                }
            }
            ']' => is_class = false,
            _ if is_class => {}
            '{' => {
                depth += 1;
                if depth == 1 {
                    ends.push(at);
                }
            }
            ',' if depth == 1 => ends.push(at),
            '}' if depth == 1 => {
                ends.push(at);
                for pair in ends.windows(2) {
                    let choice = &text[pair[0] + 1..pair[1]];
                    expand(&[&text[..ends[0]], choice, &text[at + 1..]].concat(), expanded)?;
                }
                return Ok(());
            }
            '}' => depth = usize::saturating_sub(depth, 1),
            _ => {}
        }
    }
    if depth > 0 {
        return Err("a brace is not closed; write `\\{` for the character");
    }
    if expanded.len() == MAX_ALTERNATIVES {
        return Err("its braces have too many alternatives");
    }
    expanded.push(text.into());
    Ok(())
}

/// Parses a pattern without braces.
fn tokens(text: &str) -> Result<Vec<Token>, Reason> {
    let (mut tokens, mut rest) = (Vec::new(), text.chars());
    while let Some(character) = rest.next() {
        tokens.push(match character {
            '[' => class(&mut rest)?,
            '?' => Token::Any,
            '*' if rest.as_str().starts_with('*') => {
                rest = rest.as_str().trim_start_matches('*').chars();
                let is_part = matches!(tokens.last(), None | Some(Token::Character('/') | Token::Folders));
                match rest.as_str().strip_prefix('/').filter(|_| is_part) {
                    Some(after) => {
                        rest = after.chars();
                        Token::Folders
                    }
                    None => Token::DeepStar,
                }
            }
            '*' => Token::Star,
            '\\' => Token::Character(rest.next().ok_or("it ends with a backslash")?),
            other => Token::Character(other),
        });
    }
    Ok(tokens)
}

/// Parses a class of characters after its opening bracket.
fn class(rest: &mut Chars<'_>) -> Result<Token, Reason> {
    const UNCLOSED: Reason = "a bracket is not closed; write `\\[` for the character";
    let is_negated = rest.as_str().starts_with(['!', '^']);
    if is_negated {
        rest.next();
    }
    let mut ranges = Vec::new();
    loop {
        let first = match rest.next().ok_or(UNCLOSED)? {
            // A closing bracket directly after the opening one is a character of the class.
            ']' if !ranges.is_empty() => return Ok(Token::Class { is_negated, ranges }),
            '\\' => rest.next().ok_or(UNCLOSED)?,
            first => first,
        };
        let mut last = first;
        if rest.as_str().starts_with('-') && !rest.as_str().starts_with("-]") {
            rest.next();
            last = match rest.next().ok_or(UNCLOSED)? {
                '\\' => rest.next().ok_or(UNCLOSED)?,
                last => last,
            };
        }
        if first > last {
            return Err("a range in brackets ends before it begins");
        }
        ranges.push((first, last));
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pattern").field(&self.text).finish()
    }
}

/// Splits the name of an object that contains special characters into a folder and a pattern for the rest of the name.
/// The folder is empty or ends with a slash. Returns `None` if the name has no special characters. A backslash counts
/// as special only in the last part of the name. It escapes the next character, so it is not part of the names that the
/// pattern matches.
pub(crate) fn split_name(name: &str) -> Result<Option<(String, Pattern)>, Error> {
    let (mut folder, mut part, mut part_start, mut characters) = (String::new(), String::new(), 0, name.char_indices());
    while let Some((at, character)) = characters.next() {
        match character {
            // The slash in front makes the pattern match whole names.
            '*' | '?' | '[' | '{' => return Ok(Some((folder, format!("/{}", &name[part_start..]).parse()?))),
            '\\' => part.extend(characters.next().map(|(_, escaped)| escaped)),
            '/' => {
                folder = folder + &part + "/";
                (part, part_start) = (String::new(), at + 1);
            }
            other => part.push(other),
        }
    }
    if name[part_start..].contains('\\') {
        return Ok(Some((folder, format!("/{}", &name[part_start..]).parse()?)));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Pattern {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn included_files() {
        for (text, name, is_match) in [
            ("*", "a", true),
            ("*", "a/b", true),
            ("a*", "b/abc", true),
            ("a/*", "a/b", true),
            ("a/*", "a/b/c", false),
            ("a/**", "a/b/c", true),
            ("a/**", "b/a/c", false),
            ("**/c", "a/b/c", true),
            ("**/c", "c", true),
            ("a/**/c", "a/c", true),
            ("a/**/c", "a/b/b/c", true),
            ("a/**/c", "a/bc", false),
            ("x/a**c", "x/a/b/c", true),
            ("/a", "a", true),
            ("/a", "b/a", false),
            ("/*.txt", "a.txt", true),
            ("/*.txt", "b/a.txt", false),
            ("a?c", "abc", true),
            ("a?c", "aüc", true),
            ("a?c", "ac", false),
            ("a/?/c", "a/b/c", true),
            ("x/a?c", "x/a/c", false),
            ("*.txt", "a.txt.gz", false),
            ("ü*", "üb", true),
            ("*a*b*c*", "xaybzc", true),
            ("[ab]c", "bc", true),
            ("[ab]c", "cc", false),
            ("[a-cx]", "x", true),
            ("[a-cx]", "d", false),
            ("[!a-c]", "d", true),
            ("[!a-c]", "b", false),
            ("x/a[!b]c", "x/a/c", false),
            ("[]-]", "]", true),
            ("[]-]", "-", true),
            ("[ä-ü]", "ö", true),
            ("*.{log,txt}", "a/b.txt", true),
            ("*.{log,txt}", "a/b.gz", false),
            ("{a,b/{c,d}}/e", "b/d/e", true),
            ("{a,b/{c,d}}/e", "b/e", false),
            ("a{,b}", "a", true),
            ("{**/,}x", "a/b/x", true),
            ("[{]a", "{a", true),
            ("[]{]a", "{a", true),
            ("[!]{]a", "{a", false),
            ("[]{]a", "]a", true),
            ("a}", "a}", true),
            (r"\*", "*", true),
            (r"\*", "a", false),
            (r"\{a,b}", "{a,b}", true),
            (r"[\]]", "]", true),
            ("photos/", "photos/a/b.jpg", true),
            ("photos/", "x/photos/a", true),
            ("photos/", "photos", false),
            ("/photos/", "x/photos/a", false),
            ("photos", "photos/a", false),
        ] {
            assert_eq!(pattern(text).includes(name), is_match, "{text} {name}");
        }
        // The time is at most proportional to the product of the lengths of pattern and name.
        assert!(!pattern(&"*a".repeat(200)).includes(&"a".repeat(199)));
    }

    #[test]
    fn an_excluded_folder_is_excluded_with_all_its_contents() {
        for (text, name, is_match) in [
            (".git", ".git/config", true),
            (".git", "a/.git/objects/00/1", true),
            (".git", ".git", true),
            (".git", ".gitignore", false),
            ("node_modules/", "web/node_modules/a/b.js", true),
            ("node_modules/", "web/node_modules", false),
            ("build/out", "build/out/a", true),
            ("build/out", "x/build/out/a", false),
            ("*.d/", "etc/a.d/b", true),
            ("/tmp", "a/tmp/b", false),
            ("a/**", "a/b/c", true),
            ("**", "a/b", true),
            ("*.{o,d}", "src/a.o", true),
        ] {
            assert_eq!(pattern(text).excludes(name), is_match, "{text} {name}");
        }
        for (text, folder, is_match) in [
            (".git", "a/.git", true),
            ("node_modules/", "node_modules", true),
            ("a/**", "a", true),
            ("a/**", "b/a", false),
            ("**", "a", true),
            ("*.txt", "a", false),
        ] {
            assert_eq!(pattern(text).excludes_folder(folder), is_match, "{text} {folder}");
        }
    }

    #[test]
    fn an_invalid_pattern_is_refused() {
        for (text, reason) in [
            ("", "names no file"),
            ("/", "names no file"),
            ("[ab", r"`\[`"),
            ("a[]", r"`\[`"),
            ("{a,b", r"`\{`"),
            ("{a,{b}", r"`\{`"),
            ("[b-a]", "ends before it begins"),
            ("a\\", "backslash"),
        ] {
            let error = text.parse::<Pattern>().unwrap_err().to_string();
            assert!(error.contains(reason) && error.contains(&text.escape_debug().to_string()), "{text}: {error}");
        }
        let many = "{a,b}".repeat(9);
        assert!(many.parse::<Pattern>().unwrap_err().to_string().contains("too many"));
    }

    #[test]
    fn names_are_split_before_the_first_special_character() {
        let split = |name: &str| {
            let (folder, pattern) = split_name(name).unwrap()?;
            Some((folder, pattern.prefix(), pattern.text))
        };
        let some = |folder: &str, prefix: &str, pattern: &str| Some((folder.into(), prefix.into(), pattern.into()));
        assert_eq!(split("logs/2026-*/x.gz"), some("logs/", "2026-", "/2026-*/x.gz"));
        assert_eq!(split("*.gz"), some("", "", "/*.gz"));
        assert_eq!(split("a/b{cd,ce/f}g/"), some("a/", "bc", "/b{cd,ce/f}g/"));
        assert_eq!(split(r"a\*/\bc?"), some("a*/", "bc", r"/\bc?"));
        assert_eq!(split("logs/x.gz"), None);
        assert_eq!(split(r"a/b\*"), some("a/", "b*", r"/b\*"));
        assert!(split_name(r"a\*").unwrap().unwrap().1.includes("a*"));
        assert_eq!(pattern("logs").prefix(), "");
        assert!(split_name("a[").is_err());
    }
}
