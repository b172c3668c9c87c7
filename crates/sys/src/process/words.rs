//! A function that splits a command line into words without a shell.

use crate::command::SHELL_WORDS;

/// The reason why a command line cannot be split into words. Columns count characters from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SplitError {
    /// The command line is empty, or consists of blanks.
    #[error("the command is empty")]
    Empty,
    /// The command line ends within a quotation.
    #[error("column {column}: the quote {quote} is not closed")]
    UnclosedQuote {
        /// The quote: `'` or `"`.
        quote: char,
        /// The column of the opening quote.
        column: usize,
    },
    /// The last character of the command line is a backslash, which must be followed by the character that it quotes.
    #[error("column {column}: the command ends with a backslash: remove it, or add the character that it quotes")]
    TrailingBackslash {
        /// The column of the backslash.
        column: usize,
    },
    /// A character outside of quotes has a special meaning in a shell, and no shell is used.
    #[error(
        "column {column}: {character:?} has a meaning in a shell, and no shell is used: \
         quote it to pass it on unchanged, or use a shell"
    )]
    ShellCharacter {
        /// The character that the shell would interpret.
        character: char,
        /// The column of the character.
        column: usize,
    },
    /// The command begins with a word that only a shell knows, such as `if` or `NAME=value`.
    #[error(
        "`{word}` as the first word needs a shell, and no shell is used: for a variable write \
         `env NAME=value command`, for anything else use a shell"
    )]
    ShellWord {
        /// The first word of the command line, which a shell would interpret itself instead of starting a program.
        word: String,
    },
}

/// Splits a command line into words by the shell's rules of quoting, but starts no shell.
///
/// Single quotes keep all characters. Double quotes keep all characters except `\` before `"`, `\`, `$`, `` ` `` and a
/// newline. A backslash keeps the next character. Everything else that has a meaning in a shell causes an error,
/// because no shell interprets it:
///
/// - `|`, `&`, `;`, `<`, `>`, `(`, `)`, `$`, `` ` ``, `*` and `?` outside of quotes (`$` and `` ` `` also inside of
///   double quotes),
/// - a newline between words,
/// - `#` and `~` at the start of a word, and `[…]`, `{…,…}` and `{…..…}` within a word,
/// - `NAME=value`, or a word like `if`, in the place of the program.
///
/// `{name}`, `{}`, `a~`, `a#b` and `[` alone have no special meaning in a shell, so they are allowed.
///
/// ```
/// use ascertain_sys::process::{SplitError, split};
///
/// assert_eq!(split("grep -c 'two words' file").unwrap(), ["grep", "-c", "two words", "file"]);
/// assert_eq!(
///     split("sort file | uniq"),
///     Err(SplitError::ShellCharacter { character: '|', column: 11 })
/// );
/// ```
///
/// # Errors
///
/// Returns a [`SplitError`] with the character and its column.
pub fn split(command_line: &str) -> Result<Vec<String>, SplitError> {
    Splitter { line: command_line.chars().collect(), next: 0 }.run()
}

/// A character of a word. `bare` is `true` if it is neither quoted nor escaped. `column` is its column in the command
/// line.
#[derive(Clone, Copy)]
struct Letter {
    character: char,
    bare: bool,
    column: usize,
}

struct Splitter {
    line: Vec<char>,
    next: usize,
}

impl Splitter {
    fn run(&mut self) -> Result<Vec<String>, SplitError> {
        let mut words = Vec::new();
        while let Some(&character) = self.line.get(self.next) {
            let rest = &self.line[self.next + 1..];
            match character {
                ' ' | '\t' => self.next += 1,
                '\n' if words.is_empty() || rest.iter().all(|c| " \t\n".contains(*c)) => {
                    self.next += 1;
                }
                '\n' => {
                    return Err(SplitError::ShellCharacter { character, column: self.next + 1 });
                }
                '\\' if rest.first() == Some(&'\n') => self.next += 2,
                _ => words.push(self.word()?),
            }
        }
        let Some(first) = words.first() else { return Err(SplitError::Empty) };
        let word = text(first);
        if is_shell_word(&word, first) {
            return Err(SplitError::ShellWord { word });
        }
        if word.is_empty() {
            return Err(SplitError::Empty);
        }
        Ok(words.iter().map(|word| text(word)).collect())
    }

    /// Parses the word that begins at `next`, which is not a blank. Returns its characters without the quotes.
    fn word(&mut self) -> Result<Vec<Letter>, SplitError> {
        let mut word = Vec::new();
        while let Some(&character) = self.line.get(self.next) {
            let column = self.next + 1;
            match character {
                ' ' | '\t' | '\n' => break,
                '\'' => self.single_quoted(&mut word)?,
                '"' => self.double_quoted(&mut word)?,
                '\\' => match self.line.get(self.next + 1) {
                    None => return Err(SplitError::TrailingBackslash { column }),
                    Some(&next) => {
                        if next != '\n' {
                            word.push(Letter { character: next, bare: false, column });
                        }
                        self.next += 2;
                    }
                },
                '|' | '&' | ';' | '<' | '>' | '(' | ')' | '$' | '`' | '*' | '?' => {
                    return Err(SplitError::ShellCharacter { character, column });
                }
                '#' | '~' if word.is_empty() && self.at_start_of_word() => {
                    return Err(SplitError::ShellCharacter { character, column });
                }
                _ => {
                    word.push(Letter { character, bare: true, column });
                    self.next += 1;
                }
            }
        }
        match bracket_pattern(&word) {
            Some(Letter { character, column, .. }) => Err(SplitError::ShellCharacter { character, column }),
            None => Ok(word),
        }
    }

    /// Returns whether the character `next` would be the first one of a word. After `''`, the word has begun, although
    /// it is still empty.
    fn at_start_of_word(&self) -> bool {
        self.next == 0 || matches!(self.line[self.next - 1], ' ' | '\t' | '\n')
    }

    fn single_quoted(&mut self, word: &mut Vec<Letter>) -> Result<(), SplitError> {
        let column = self.next + 1;
        self.next += 1;
        while let Some(&character) = self.line.get(self.next) {
            self.next += 1;
            if character == '\'' {
                return Ok(());
            }
            word.push(Letter { character, bare: false, column: self.next });
        }
        Err(SplitError::UnclosedQuote { quote: '\'', column })
    }

    fn double_quoted(&mut self, word: &mut Vec<Letter>) -> Result<(), SplitError> {
        let opened = self.next + 1;
        self.next += 1;
        while let Some(&character) = self.line.get(self.next) {
            let column = self.next + 1;
            let following = self.line.get(self.next + 1).copied();
            self.next += 1;
            let kept = match (character, following) {
                ('"', _) => return Ok(()),
                ('$' | '`', _) => return Err(SplitError::ShellCharacter { character, column }),
                ('\\', Some('\n')) => {
                    self.next += 1;
                    continue;
                }
                ('\\', Some(quoted @ ('"' | '\\' | '$' | '`'))) => {
                    self.next += 1;
                    quoted
                }
                _ => character,
            };
            word.push(Letter { character: kept, bare: false, column });
        }
        Err(SplitError::UnclosedQuote { quote: '"', column: opened })
    }
}

fn text(word: &[Letter]) -> String {
    word.iter().map(|letter| letter.character).collect()
}

/// Returns the first character that begins a pattern of a shell: the bracket of `[…]`, or the brace of an expansion
/// with a comma or two dots. Quoted characters do not count. `None` if there is no pattern.
fn bracket_pattern(word: &[Letter]) -> Option<Letter> {
    let bare = |letter: &&Letter, wanted: char| letter.bare && letter.character == wanted;
    word.iter().enumerate().find_map(|(at, &opening)| {
        let rest = &word[at + 1..];
        let closes = |with| rest.iter().position(|letter| bare(&letter, with));
        let expands = match opening.character {
            '[' => closes(']').is_some_and(|end| end > 0),
            '{' => closes('}').is_some_and(|end| {
                let inside = &rest[..end];
                inside.iter().any(|letter| bare(&letter, ','))
                    || inside.windows(2).any(|pair| pair.iter().all(|l| bare(&l, '.')))
            }),
            _ => false,
        };
        (opening.bare && expands).then_some(opening)
    })
}

/// Returns whether `word`, the first word of a command line, is one that only a shell knows: an unquoted word of its
/// grammar, or an assignment to a variable.
fn is_shell_word(word: &str, letters: &[Letter]) -> bool {
    if SHELL_WORDS.contains(&word) {
        return letters.iter().all(|letter| letter.bare);
    }
    let Some((name, _)) = word.split_once('=') else { return false };
    let equals = name.chars().count();
    letters[..=equals].iter().all(|letter| letter.bare)
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::command::join;

    #[track_caller]
    fn words(line: &str, expected: &[&str]) {
        assert_eq!(split(line).expect(line), expected, "{line}");
    }

    #[track_caller]
    fn shell_character(line: &str, character: char, column: usize) {
        let expected = Err(SplitError::ShellCharacter { character, column });
        assert_eq!(split(line), expected, "{line}");
    }

    #[test]
    fn words_and_quotes() {
        words("true", &["true"]);
        words("  a\tb  c \n", &["a", "b", "c"]);
        words("\n a b", &["a", "b"]);
        words("a 'b c' \"d e\" f\\ g", &["a", "b c", "d e", "f g"]);
        words("a '' \"\"", &["a", "", ""]);
        words("a x'y'\"z\"", &["a", "xyz"]);
        words(r#"a '\n$`"' "\"\\\$\`\n'""#, &["a", r#"\n$`""#, r#""\$`\n'"#]);
        words("a \\\n b\\\nc \"d\\\ne\"", &["a", "bc", "de"]);
        words("a \\ ", &["a", " "]);
        words("grüße 'wörld €'", &["grüße", "wörld €"]);
        words("a 'b\nc'", &["a", "b\nc"]);
    }

    #[test]
    fn what_is_plain_to_a_shell_too() {
        words("find -exec {} +", &["find", "-exec", "{}", "+"]);
        words("sleep {delay} {a}{b}", &["sleep", "{delay}", "{a}{b}"]);
        words("git diff HEAD~1 a#b x!", &["git", "diff", "HEAD~1", "a#b", "x!"]);
        words("[ -f x ]", &["[", "-f", "x", "]"]);
        words("env A=1 dd if=x", &["env", "A=1", "dd", "if=x"]);
        words("a ''#b ''~c", &["a", "#b", "~c"]);
        words("a % ^ , . : @ + -", &["a", "%", "^", ",", ".", ":", "@", "+", "-"]);
        words("'A=1' 'if'", &["A=1", "if"]);
        words("\\if", &["if"]);
        words("3=x", &["3=x"]);
    }

    #[test]
    fn shell_characters_are_errors_with_a_column() {
        for character in "|&;<>()$`*?".chars() {
            shell_character(&format!("ü b{character}c"), character, 4);
            words(&format!("a '{character}' \\{character}"), &["a", &character.to_string(), &character.to_string()]);
        }
        shell_character("a \"b$c\"", '$', 5);
        shell_character("a \"`b`\"", '`', 4);
        shell_character("a # b", '#', 3);
        shell_character("a ~/b", '~', 3);
        shell_character("~/a b", '~', 1);
        shell_character("a b\nc d", '\n', 4);
        shell_character("a b[0-9]", '[', 4);
        shell_character("a x{1..3}", '{', 4);
        shell_character("a {x}{b,c}", '{', 6);
        words("a '{b,c}' b'['0-9]", &["a", "{b,c}", "b[0-9]"]);
    }

    #[test]
    fn split_refuses_what_it_can_not_cut() {
        for empty in ["", " \t\n", "''", "\\\n"] {
            assert_eq!(split(empty), Err(SplitError::Empty), "{empty:?}");
        }
        let unclosed = |quote, column| Err(SplitError::UnclosedQuote { quote, column });
        assert_eq!(split("a 'b\" c"), unclosed('\'', 3));
        assert_eq!(split("  a \"b' c\\\""), unclosed('"', 5));
        assert_eq!(split("a b\\"), Err(SplitError::TrailingBackslash { column: 4 }));
        for word in ["A=1", "_x=", "if", "for", "!", "{", "[["] {
            let expected = Err(SplitError::ShellWord { word: word.to_owned() });
            assert_eq!(split(&format!("{word} b")), expected);
        }
        let message = split("a | b").unwrap_err().to_string();
        assert!(message.contains("column 3") && message.contains("use a shell"), "{message}");
    }

    proptest! {
        #[test]
        fn joined_words_are_split_again(
            first in any::<String>().prop_filter("a program", |first| !first.is_empty()),
            rest in proptest::collection::vec(any::<String>(), 0..4),
        ) {
            let words: Vec<String> = std::iter::once(first).chain(rest).collect();
            prop_assert_eq!(split(&join(&words)), Ok(words));
        }

        /// Tests strings of the significant characters, so that all branches are covered.
        #[test]
        fn never_panics_and_joins_back(line in "[ab {}\\[\\].,=~#!$`'\"\\\\\n\t|-]{0,24}") {
            if let Ok(words) = split(&line) {
                prop_assert_eq!(split(&join(&words)), Ok(words));
            }
        }
    }
}
