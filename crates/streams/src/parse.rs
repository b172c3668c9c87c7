//! The parser of expressions: words and symbols, then a tree by the strength of the operators.

use std::ops::Range;

use crate::describe::grouped;
use crate::error::{Error, Problem, near};
use crate::expression::{Binary, Expression, FUNCTIONS, Function, Kind, RESERVED};
use crate::unit::{self, Unit};

/// Longest expression that is parsed, in bytes.
pub const MOST_BYTES: usize = 16_384;
/// Deepest nesting of an expression: parentheses, calls, signs and operators one inside another.
pub const MOST_DEPTH: usize = 64;

/// Parses an expression.
///
/// # Errors
/// If the text is not an expression. The error names the place and the way out.
///
/// ```
/// let expression = ascertain_streams::parse("time/hold(quantile(.99,window(time,1000)))")?;
/// assert_eq!(expression.to_string(), "time / hold(quantile(.99, window(time, 1000)))");
/// let error = ascertain_streams::parse("time / (memory").unwrap_err();
/// assert_eq!(error.to_string(), "column 15: the expression ends before a `)`; close the `(` in column 8");
/// # Ok::<(), ascertain_streams::Error>(())
/// ```
pub fn parse(text: &str) -> Result<Expression, Error> {
    if text.len() > MOST_BYTES {
        let [bytes, most] = [text.len(), MOST_BYTES].map(|bytes| grouped(bytes as u64));
        let problem = format!("the expression has {bytes} bytes, and at most {most} are accepted");
        return Err(Error::new(text, 0..0, Problem::Syntax(format!("{problem}; use a shorter expression"))));
    }
    let mut parser = Parser { text, position: 0, token: Token::End, place: 0..0, depth: 0 };
    parser.advance()?;
    let expression = parser.expression(0)?;
    match parser.token {
        Token::End => Ok(expression),
        Token::Symbol(")") => Err(parser.wrong("this `)` closes nothing; remove it".into())),
        _ => {
            Err(parser.wrong(format!("{} does not continue the expression; put an operator before it", parser.shown())))
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Number { value: f64, unit: Unit },
    Word(String),
    Quoted(String),
    Symbol(&'static str),
    End,
}

const SYMBOLS: [&str; 17] = ["<=", ">=", "==", "!=", "+", "-", "*", "/", "<", ">", "(", ")", ",", ".", "−", "×", "÷"];

struct Parser<'a> {
    text: &'a str,
    /// The byte after the current token.
    position: usize,
    token: Token,
    /// The bytes of the current token.
    place: Range<usize>,
    depth: usize,
}

impl Parser<'_> {
    fn wrong(&self, problem: String) -> Error {
        Error::new(self.text, self.place.clone(), Problem::Syntax(problem))
    }

    /// Returns the current token for a message.
    fn shown(&self) -> String {
        match self.token {
            Token::End => "the end".into(),
            _ => format!("`{}`", self.text[self.place.clone()].escape_debug()),
        }
    }

    /// Goes to the next token.
    fn advance(&mut self) -> Result<(), Error> {
        let rest = &self.text[self.position..];
        let start = self.text.len() - rest.trim_start().len();
        let rest = &self.text[start..];
        self.place = start..start;
        let Some(first) = rest.chars().next() else {
            self.position = start;
            self.token = Token::End;
            return Ok(());
        };
        let after_point = rest[first.len_utf8()..].starts_with(|c: char| c.is_ascii_digit());
        if first.is_ascii_digit() || (first == '.' && after_point) {
            return self.number(start);
        }
        if first == '"' {
            return self.quoted(start);
        }
        if first.is_ascii_alphabetic() || first == '_' {
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
            self.place = start..start + end;
            self.token = Token::Word(rest[..end].to_string());
        } else if let Some(symbol) = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
            self.place = start..start + symbol.len();
            self.token = Token::Symbol(match *symbol {
                "−" => "-",
                "×" => "*",
                "÷" => "/",
                symbol => symbol,
            });
        } else {
            self.place = start..start + first.len_utf8();
            let way_out = match first {
                '=' => "; compare with `==`",
                '\'' => "; put names between double quotation marks",
                '&' => "; write `and`",
                '|' => "; write `or`",
                '!' => "; write `not`",
                _ => "; put a name with such characters between double quotation marks",
            };
            return Err(self.wrong(format!("unexpected `{}`{way_out}", first.escape_debug())));
        }
        self.position = self.place.end;
        Ok(())
    }

    /// Reads a number with its unit, such as `.01`, `1e6`, `99%`, `5 ms` or `1.5 MB/s`.
    fn number(&mut self, start: usize) -> Result<(), Error> {
        let bytes = self.text.as_bytes();
        let digits = |mut at: usize| {
            while bytes.get(at).is_some_and(|byte| byte.is_ascii_digit() || *byte == b'_') {
                at += 1;
            }
            at
        };
        let mut end = digits(start);
        if bytes.get(end) == Some(&b'.') {
            end = digits(end + 1);
        }
        if matches!(bytes.get(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
            if bytes.get(end + 1 + sign).is_some_and(u8::is_ascii_digit) {
                end = digits(end + 1 + sign);
            }
        }
        self.place = start..end;
        let digits = self.text[start..end].replace('_', "");
        let number: f64 = digits.parse().map_err(|_| self.wrong(format!("`{digits}` is not a number")))?;
        if !number.is_finite() {
            return Err(self.wrong(format!("`{digits}` is too large; use a number below 1.8e308")));
        }
        let (unit, scale, end) = self.unit(end)?;
        self.place = start..end;
        self.position = end;
        // 99.9 % must become the `f64` 0.999. Neither 99.9 * 0.01 nor 99.9 / 100 does, so move the decimal point.
        let value = match scale {
            Some(scale) => number * scale,
            None => format!("{number}e-2").parse().unwrap_or(number),
        };
        if !value.is_finite() {
            return Err(self.wrong(format!("`{digits}` is too large; use a number below 1.8e308")));
        }
        self.token = Token::Number { value, unit };
        Ok(())
    }

    /// Reads the unit after a number. Returns the unit, its factor (`None` for percent), and the byte after it.
    fn unit(&self, number_end: usize) -> Result<(Unit, Option<f64>, usize), Error> {
        let rest = &self.text[number_end..];
        let start = number_end + rest.len() - rest.trim_start_matches(' ').len();
        let rest = &self.text[start..];
        if rest.starts_with('%') {
            return Ok((Unit::ONE, None, start + 1));
        }
        let is_word = |c: char| c.is_alphabetic() || c == '_';
        let end = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
        let word = &rest[..end];
        let per_second =
            rest[end..].starts_with("/s") && !rest[end + 2..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
        if per_second && let Some((unit, scale)) = unit::of_spelling(&format!("{word}/s")) {
            return Ok((unit, Some(scale), start + end + 2));
        }
        if word.is_empty() || RESERVED.contains(&word) {
            return Ok((Unit::ONE, Some(1.0), number_end));
        }
        let (unit, scale) = unit::of_spelling(word).ok_or_else(|| {
            let known: Vec<&str> = unit::spellings().collect();
            let hint = near(word, unit::spellings());
            let problem = format!("unknown unit `{word}`; use one of {}{hint}", known.join(", "));
            Error::new(self.text, start..start + end, Problem::Syntax(problem))
        })?;
        Ok((unit, Some(scale), start + end))
    }

    /// Reads a name between quotation marks.
    fn quoted(&mut self, start: usize) -> Result<(), Error> {
        let mut name = String::new();
        let mut characters = self.text[start + 1..].char_indices();
        while let Some((at, c)) = characters.next() {
            match c {
                '"' => {
                    self.place = start..start + at + 2;
                    self.position = self.place.end;
                    self.token = Token::Quoted(name);
                    return Ok(());
                }
                '\\' => name.extend(characters.next().map(|(_, escaped)| escaped)),
                c => name.push(c),
            }
        }
        self.place = start..self.text.len();
        Err(self.wrong("the name after this quotation mark has no end; add a `\"`".into()))
    }

    /// Enters a level of nesting.
    fn enter(&mut self) -> Result<(), Error> {
        self.depth += 1;
        if self.depth > MOST_DEPTH {
            let problem = format!("more than {MOST_DEPTH} levels of nesting; split the expression");
            return Err(self.wrong(problem));
        }
        Ok(())
    }

    /// Parses an expression whose operators bind at least as strongly as `least`.
    fn expression(&mut self, least: u8) -> Result<Expression, Error> {
        self.enter()?;
        let start = self.place.start;
        let mut left = self.operand()?;
        let mut levels = 0;
        while let Some(operator) = self.operator().filter(|operator| operator.strength() >= least) {
            // Each further operator makes the tree one level deeper.
            self.enter()?;
            levels += 1;
            self.advance()?;
            let right = self.expression(operator.strength() + 1)?;
            let place = start..right.place.end;
            left = Expression { kind: Kind::Binary(operator, Box::new(left), Box::new(right)), place };
            let next = self.operator().filter(|next| operator.is_comparison() && next.is_comparison());
            if next.is_some() {
                let problem = "comparisons cannot follow one another; join them with `and`";
                return Err(self.wrong(problem.into()));
            }
        }
        self.depth -= levels + 1;
        Ok(left)
    }

    fn operator(&self) -> Option<Binary> {
        Some(match &self.token {
            Token::Symbol("+") => Binary::Add,
            Token::Symbol("-") => Binary::Subtract,
            Token::Symbol("*") => Binary::Multiply,
            Token::Symbol("/") => Binary::Divide,
            Token::Symbol("<") => Binary::Less,
            Token::Symbol("<=") => Binary::LessOrEqual,
            Token::Symbol(">") => Binary::Greater,
            Token::Symbol(">=") => Binary::GreaterOrEqual,
            Token::Symbol("==") => Binary::Equal,
            Token::Symbol("!=") => Binary::NotEqual,
            Token::Word(word) if word == "and" => Binary::And,
            Token::Word(word) if word == "or" => Binary::Or,
            _ => return None,
        })
    }

    /// Parses a number, a series, a call, a sign, or an expression in parentheses.
    fn operand(&mut self) -> Result<Expression, Error> {
        let (token, place) = (self.token.clone(), self.place.clone());
        match token {
            Token::Number { value, unit } => {
                let text = self.text[place.clone()].split_whitespace().collect::<Vec<_>>().join(" ");
                self.advance()?;
                Ok(Expression { kind: Kind::Number { value, unit, text }, place })
            }
            Token::Symbol("-") => {
                self.advance()?;
                self.enter()?;
                let inner = self.signed()?;
                self.depth -= 1;
                let place = place.start..inner.place.end;
                Ok(Expression { kind: Kind::Negate(Box::new(inner)), place })
            }
            Token::Word(word) if word == "not" => {
                self.advance()?;
                // `not` binds more strongly than `and`, and less strongly than a comparison.
                let inner = self.expression(Binary::And.strength() + 1)?;
                let place = place.start..inner.place.end;
                Ok(Expression { kind: Kind::Not(Box::new(inner)), place })
            }
            Token::Symbol("(") => {
                self.advance()?;
                let inner = self.expression(0)?;
                let end = self.close(&place)?;
                Ok(Expression { place: place.start..end, ..inner })
            }
            Token::Word(word) if !RESERVED.contains(&word.as_str()) => {
                self.advance()?;
                match self.token {
                    Token::Symbol("(") => self.call(&word, place),
                    _ => self.series(word, place),
                }
            }
            Token::Quoted(name) => {
                self.advance()?;
                self.series(name, place)
            }
            Token::End => Err(self.wrong("the expression ends here; add a series or a number".into())),
            _ => Err(self.wrong(format!("{} is in the place of a series or a number", self.shown()))),
        }
    }

    /// Parses an operand after a minus sign.
    fn signed(&mut self) -> Result<Expression, Error> {
        match self.token {
            Token::Word(ref word) if word == "not" => {
                Err(self.wrong("`not` cannot follow a minus sign; remove one of them".into()))
            }
            _ => self.operand(),
        }
    }

    /// Parses the rest of `arm.metric`, or returns the series of a metric.
    fn series(&mut self, name: String, place: Range<usize>) -> Result<Expression, Error> {
        if self.token != Token::Symbol(".") {
            return Ok(Expression { kind: Kind::Series { arm: None, metric: name }, place });
        }
        self.advance()?;
        let (Token::Word(metric) | Token::Quoted(metric)) = self.token.clone() else {
            return Err(self.wrong(format!("{} follows a `.`; name a metric there", self.shown())));
        };
        let place = place.start..self.place.end;
        self.advance()?;
        Ok(Expression { kind: Kind::Series { arm: Some(name), metric }, place })
    }

    /// Parses the arguments of a call.
    fn call(&mut self, name: &str, place: Range<usize>) -> Result<Expression, Error> {
        let Some(function) = Function::of_name(name) else {
            let known: Vec<&str> = FUNCTIONS.iter().map(|(_, name, _)| *name).collect();
            let hint = near(name, known.iter().copied());
            let problem = format!("there is no function `{name}`; the functions are {}{hint}", known.join(", "));
            return Err(Error::new(self.text, place, Problem::Syntax(problem)));
        };
        let open = self.place.clone();
        self.advance()?;
        let mut arguments = Vec::new();
        while self.token != Token::Symbol(")") {
            if matches!(&self.token, Token::Word(word) if word == "step")
                && function == Function::Window
                && arguments.len() == 2
            {
                self.advance()?;
            }
            arguments.push(self.expression(0)?);
            match self.token {
                Token::Symbol(",") => self.advance()?,
                _ => break,
            }
        }
        let end = self.close(&open)?;
        Ok(Expression { kind: Kind::Call(function, arguments), place: place.start..end })
    }

    /// Goes past a `)`. Returns the byte after it.
    fn close(&mut self, open: &Range<usize>) -> Result<usize, Error> {
        if self.token == Token::Symbol(")") {
            let end = self.place.end;
            self.advance()?;
            return Ok(end);
        }
        let column = self.text[..open.start].chars().count() + 1;
        Err(self.wrong(match self.token {
            Token::End => format!("the expression ends before a `)`; close the `(` in column {column}"),
            _ => format!("{} is in the place of `,` or `)`; close the `(` in column {column}", self.shown()),
        }))
    }
}
