//! The rules that each sentence must keep.

use std::fmt;

/// Largest accepted number of words in a sentence.
const MAX_WORDS: usize = 30;

/// Words that begin a clause that is used as a noun. A sentence may begin with them only if it is a question.
const STARTS: &[&str] = &["What", "Who", "Whoever", "Whether", "Where"];

/// Phrases that hide who does something, or that are translated word by word from another language.
const PHRASES: &[&str] = &[
    "is said",
    "are said",
    "is told",
    "are told",
    "is asked",
    "are asked",
    "gone on with",
    "of one's own",
    "as it was",
];

/// Nouns for which "an X a Y" is refused. The correct form is "one X per Y".
const PER: &[&str] = &["line", "row", "dot", "cell", "file", "value", "page"];

/// A rule that a sentence or a comment breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The sentence begins with a clause that is used as a noun.
    Start,
    /// The sentence contains one of [`PHRASES`], or a noun of [`PER`] in "an X a Y".
    Phrase,
    /// The sentence has more than [`MAX_WORDS`] words.
    LongSentence,
    /// The doc comment has fewer than three words.
    ShortDocComment,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Rule::Start => f.write_str("a sentence that begins with What, Who, Whoever, Whether or Where"),
            Rule::Phrase => f.write_str("a phrase that hides the actor or is translated word by word"),
            Rule::LongSentence => write!(f, "a sentence of more than {MAX_WORDS} words"),
            Rule::ShortDocComment => f.write_str("a doc comment of fewer than three words"),
        }
    }
}

/// Returns the rules that a sentence breaks.
pub fn broken_by(sentence: &str) -> impl Iterator<Item = Rule> {
    let words: Vec<_> = sentence.split_whitespace().map(bare).filter(|word| !word.is_empty()).collect();
    let is_question = sentence.trim_end_matches(|c: char| !c.is_alphanumeric() && c != '?').ends_with('?');
    let begins_badly = words.first().is_some_and(|word| STARTS.contains(word)) && !is_question;
    let lower = words.join(" ").to_lowercase();
    let has_phrase = PHRASES.iter().any(|phrase| contains_words(&lower, phrase))
        || sentence.split_whitespace().collect::<Vec<_>>().windows(3).any(|three| {
            // With a comma after the noun, it is an enumeration: "a file, a folder".
            let [article, noun, second] = three else { return false };
            ["a", "A", "an", "An"].contains(article) && PER.contains(noun) && ["a", "an"].contains(second)
        });
    let rules =
        [(begins_badly, Rule::Start), (has_phrase, Rule::Phrase), (words.len() > MAX_WORDS, Rule::LongSentence)];
    rules.into_iter().filter(|(is_broken, _)| *is_broken).map(|(_, rule)| rule)
}

/// Returns a word without the punctuation around it.
fn bare(word: &str) -> &str {
    word.trim_matches(|c: char| !c.is_alphanumeric())
}

/// Returns whether `text` contains `phrase` as whole words.
fn contains_words(text: &str, phrase: &str) -> bool {
    text.match_indices(phrase).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + phrase.len()..].chars().next();
        ![before, after].into_iter().flatten().any(char::is_alphanumeric)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(sentence: &str) -> Vec<Rule> {
        broken_by(sentence).collect()
    }

    #[test]
    fn clauses_used_as_nouns_are_refused_and_questions_are_not() {
        assert_eq!(rules("What servers carry is measured."), [Rule::Start]);
        assert_eq!(rules("**Where** it is slow, try more connections."), [Rule::Start]);
        assert_eq!(rules("(What is it?)"), []);
        assert_eq!(rules("Whatever happens, the file is whole."), []);
        assert_eq!(rules("Returns what remains, and whether it is empty."), []);
    }

    #[test]
    fn phrases_are_refused_as_whole_words() {
        assert_eq!(rules("The reason is said once."), [Rule::Phrase]);
        assert_eq!(rules("It leaves the file as it was."), [Rule::Phrase]);
        assert_eq!(rules("It prints a line a claim."), [Rule::Phrase]);
        assert_eq!(rules("It prints a line with a claim, or a file, a folder, as it waits."), []);
        assert_eq!(rules("This said, the analysis said nothing."), []);
    }

    #[test]
    fn long_sentences_are_refused() {
        assert_eq!(rules(&"word ".repeat(MAX_WORDS)), []);
        assert_eq!(rules(&"word — ".repeat(MAX_WORDS + 1)), [Rule::LongSentence]);
    }
}
