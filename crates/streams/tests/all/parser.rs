//! The parser: what it accepts, and properties that hold for any text.

use ascertain_streams::{MOST_DEPTH, parse};
use ascertain_sys::testing;
use proptest::prelude::*;

mod targets;

#[test]
fn corpus_of_expressions() {
    testing::replay(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/parser"), targets::expressions);
}

#[test]
fn expressions_are_printed_in_one_form() {
    for (text, printed) in [
        ("time/2", "time / 2"),
        ("(a-b)-c", "a - b - c"),
        ("a-(b-c)", "a - (b - c)"),
        ("a*(b+c)/d", "a * (b + c) / d"),
        ("- - a", "--a"),
        ("-(a+b)", "-(a + b)"),
        ("not(a<b)and c>=5ms", "not a < b and c >= 5ms"),
        ("not (a < b and c < d)", "not (a < b and c < d)"),
        ("window(time,10s,step 1s)", "window(time, 10s, step 1s)"),
        ("window(time, 10 s, 1 s)", "window(time, 10 s, step 1 s)"),
        ("\"sleep 0.010\".wall", "\"sleep 0.010\".wall"),
        ("kahan.\"time\"", "kahan.time"),
        ("\"step\" + \"a\\\"b\"", "\"step\" + \"a\\\"b\""),
        ("a − b × c ÷ d", "a - b * c / d"),
        (".01 + 1_000 + 99% + 5 MB/s", ".01 + 1_000 + 99% + 5 MB/s"),
        ("5 MB / s2", "5 MB / s2"),
    ] {
        assert_eq!(parse(text).map(|expression| expression.to_string()).as_deref(), Ok(printed), "{text}");
    }
}

#[test]
fn nesting_is_limited() {
    let nested = |depth: usize| format!("{}time{}", "(".repeat(depth), ")".repeat(depth));
    assert!(parse(&nested(MOST_DEPTH - 1)).is_ok());
    let error = parse(&nested(MOST_DEPTH)).unwrap_err().to_string();
    assert_eq!(error, "column 65: more than 64 levels of nesting; split the expression");
    for deep in ["-".repeat(10_000), "not ".repeat(4_000), "ewma(".repeat(3_000), "a+".repeat(8_000)] {
        assert!(parse(&deep).unwrap_err().to_string().contains("levels of nesting"), "{}", &deep[..9]);
    }
    assert!(parse(&"a".repeat(20_000)).is_err());
}

proptest! {
    #[test]
    fn any_text_parses_or_has_an_error_with_a_place(text in "\\PC{0,60}") {
        targets::expressions(text.as_bytes());
    }

    #[test]
    fn any_words_parse_or_have_an_error_with_a_place(
        words in prop::collection::vec(
            prop::sample::select(vec![
                "time", "memory", "x", "(", ")", ",", ".", "+", "-", "*", "/", "<", ">=", "and", "or", "not", "every(",
                "repeat(", "window(", "mean(", "quantile(", "hold(", "where(", "lag(", "again(", "buffer(", "2", "1000",
                "5 ms", "1 s", "step ", ".5", "ewma(", "per_second(", "count(", "0", "drop(",
            ]),
            0..24,
        )
    ) {
        targets::expressions(words.concat().as_bytes());
        targets::expressions(words.join(" ").as_bytes());
    }
}
