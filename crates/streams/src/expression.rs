//! The syntax tree of an expression, and its printed form.

use std::fmt;
use std::ops::Range;

use crate::unit::Unit;

/// An expression and its place in the text.
#[derive(Clone, Debug)]
pub struct Expression {
    pub(crate) kind: Kind,
    /// The bytes of the text that the expression comes from.
    pub(crate) place: Range<usize>,
}

/// The form of an expression, with its parts.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// A number in the unit of the evidence, and the text that the user wrote.
    Number {
        value: f64,
        unit: Unit,
        text: String,
    },
    /// A recorded series: the arm, if it is named, and the metric.
    Series {
        arm: Option<String>,
        metric: String,
    },
    Negate(Box<Expression>),
    Not(Box<Expression>),
    Binary(Binary, Box<Expression>, Box<Expression>),
    Call(Function, Vec<Expression>),
}

/// An operator between two expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
    And,
    Or,
}

use Binary::{Add, And, Divide, Equal, Greater, GreaterOrEqual, Less, LessOrEqual, Multiply, NotEqual, Or, Subtract};

impl Binary {
    /// Returns the operator as it is written.
    pub fn symbol(self) -> &'static str {
        match self {
            Add => "+",
            Subtract => "-",
            Multiply => "*",
            Divide => "/",
            Less => "<",
            LessOrEqual => "<=",
            Greater => ">",
            GreaterOrEqual => ">=",
            Equal => "==",
            NotEqual => "!=",
            And => "and",
            Or => "or",
        }
    }

    /// Returns how strongly the operator binds; a greater number binds more strongly.
    pub fn strength(self) -> u8 {
        match self {
            Or => 1,
            And => 2,
            Less | LessOrEqual | Greater | GreaterOrEqual | Equal | NotEqual => 4,
            Add | Subtract => 5,
            Multiply | Divide => 6,
        }
    }

    pub fn is_comparison(self) -> bool {
        self.strength() == 4
    }
}

/// A function of the language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Function {
    Again,
    Buffer,
    Count,
    Drop,
    Every,
    Ewma,
    Hold,
    Lag,
    Max,
    Mean,
    Min,
    PerSecond,
    Quantile,
    Repeat,
    Sum,
    Where,
    Window,
    WithGaps,
}

/// The functions, each with its name and the form of its arguments.
pub(crate) const FUNCTIONS: &[(Function, &str, &str)] = &[
    (Function::Again, "again", "again(series)"),
    (Function::Buffer, "buffer", "buffer(series, 1000)"),
    (Function::Count, "count", "count(window(series, 1000))"),
    (Function::Drop, "drop", "drop(series, 10)"),
    (Function::Every, "every", "every(series, 2)"),
    (Function::Ewma, "ewma", "ewma(series, 0.01)"),
    (Function::Hold, "hold", "hold(series)"),
    (Function::Lag, "lag", "lag(series, 10)"),
    (Function::Max, "max", "max(window(series, 1000))"),
    (Function::Mean, "mean", "mean(window(series, 1000))"),
    (Function::Min, "min", "min(window(series, 1000))"),
    (Function::PerSecond, "per_second", "per_second(count(window(series, 10 s)))"),
    (Function::Quantile, "quantile", "quantile(0.99, window(series, 1000))"),
    (Function::Repeat, "repeat", "repeat(series, 2)"),
    (Function::Sum, "sum", "sum(window(series, 1000))"),
    (Function::Where, "where", "where(series, series > 5 ms)"),
    (Function::Window, "window", "window(series, 1000, step 10)"),
    (Function::WithGaps, "with_gaps", "with_gaps(series)"),
];

impl Function {
    /// Returns the function with this name.
    pub fn of_name(name: &str) -> Option<Function> {
        FUNCTIONS.iter().find(|(_, known, _)| *known == name).map(|(function, ..)| *function)
    }

    pub fn name(self) -> &'static str {
        self.entry().1
    }

    /// Returns an example of a call.
    pub fn form(self) -> &'static str {
        self.entry().2
    }

    fn entry(self) -> &'static (Function, &'static str, &'static str) {
        FUNCTIONS.iter().find(|(function, ..)| *function == self).expect("every function is in the table")
    }
}

/// Binding strength of `not`.
const NOT: u8 = 3;
/// Binding strength of a minus sign before an expression.
const NEGATE: u8 = 7;
/// Binding strength of a number, a series or a call.
const WHOLE: u8 = 8;

impl Expression {
    /// Returns an operator between two expressions. It is printed with the parentheses that it needs.
    pub(crate) fn joined(left: Expression, operator: Binary, right: Expression) -> Expression {
        Expression { kind: Kind::Binary(operator, Box::new(left), Box::new(right)), place: 0..0 }
    }

    /// Returns the expression as the first argument of a function.
    pub(crate) fn within(&self, function: Function, more: &[Expression]) -> Expression {
        let arguments = [self.clone()].into_iter().chain(more.iter().cloned()).collect();
        Expression { kind: Kind::Call(function, arguments), place: self.place.clone() }
    }

    /// Returns a whole number as an expression.
    pub(crate) fn number(value: u64) -> Expression {
        let kind = Kind::Number { value: value as f64, unit: Unit::ONE, text: value.to_string() };
        Expression { kind, place: 0..0 }
    }

    /// Returns the number zero, in a unit that expressions can contain.
    pub(crate) fn zero(unit: Unit) -> Option<Expression> {
        let text = match unit {
            Unit::ONE => "0".to_string(),
            unit => format!("0 {}", unit.spelling()?),
        };
        Some(Expression { kind: Kind::Number { value: 0.0, unit, text }, place: 0..0 })
    }

    /// Returns a number that has no unit with this unit. Returns `None` for everything but such a number.
    pub(crate) fn with_unit(&self, unit: Unit) -> Option<Expression> {
        let kind = match &self.kind {
            Kind::Number { value, unit: Unit::ONE, text } if !text.ends_with('%') => {
                Kind::Number { value: *value, unit, text: format!("{text} {}", unit.spelling()?) }
            }
            Kind::Negate(inner) => Kind::Negate(Box::new(inner.with_unit(unit)?)),
            _ => return None,
        };
        Some(Expression { kind, place: self.place.clone() })
    }

    /// Returns whether the expression consists of numbers and operators.
    pub(crate) fn is_number(&self) -> bool {
        match &self.kind {
            Kind::Number { .. } => true,
            Kind::Negate(inner) => inner.is_number(),
            Kind::Binary(_, left, right) => left.is_number() && right.is_number(),
            Kind::Series { .. } | Kind::Not(_) | Kind::Call(..) => false,
        }
    }

    /// Returns the expression with `replacement` in the place of each part that is printed as `part`.
    pub(crate) fn replaced(&self, part: &str, replacement: &Expression) -> Expression {
        if self.to_string() == part {
            return replacement.clone();
        }
        let of = |inner: &Expression| Box::new(inner.replaced(part, replacement));
        let kind = match &self.kind {
            Kind::Number { .. } | Kind::Series { .. } => self.kind.clone(),
            Kind::Negate(inner) => Kind::Negate(of(inner)),
            Kind::Not(inner) => Kind::Not(of(inner)),
            Kind::Binary(operator, left, right) => Kind::Binary(*operator, of(left), of(right)),
            Kind::Call(function, arguments) => {
                Kind::Call(*function, arguments.iter().map(|argument| argument.replaced(part, replacement)).collect())
            }
        };
        Expression { kind, place: self.place.clone() }
    }

    /// Returns the argument of a `buffer`, and every other expression as it is.
    pub(crate) fn without_buffer(&self) -> &Expression {
        match &self.kind {
            Kind::Call(Function::Buffer, arguments) => arguments.first().unwrap_or(self),
            _ => self,
        }
    }

    fn strength(&self) -> u8 {
        match &self.kind {
            Kind::Binary(operator, ..) => operator.strength(),
            Kind::Not(_) => NOT,
            Kind::Negate(_) => NEGATE,
            Kind::Number { .. } | Kind::Series { .. } | Kind::Call(..) => WHOLE,
        }
    }

    /// Writes the expression, in parentheses if it binds less strongly than `needed`.
    fn write(&self, needed: u8, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.strength() < needed {
            f.write_str("(")?;
            self.write(0, f)?;
            return f.write_str(")");
        }
        match &self.kind {
            Kind::Number { text, .. } => f.write_str(text),
            Kind::Series { arm, metric } => {
                if let Some(arm) = arm {
                    write!(f, "{}.", quoted_if_needed(arm))?;
                }
                f.write_str(&quoted_if_needed(metric))
            }
            Kind::Negate(inner) => {
                f.write_str("-")?;
                inner.write(NEGATE, f)
            }
            Kind::Not(inner) => {
                f.write_str("not ")?;
                inner.write(NOT, f)
            }
            Kind::Binary(operator, left, right) => {
                let strength = operator.strength();
                // Comparisons cannot follow one another, so both sides of one need more strength.
                left.write(strength + u8::from(operator.is_comparison()), f)?;
                write!(f, " {} ", operator.symbol())?;
                right.write(strength + 1, f)
            }
            Kind::Call(function, arguments) => {
                write!(f, "{}(", function.name())?;
                for (index, argument) in arguments.iter().enumerate() {
                    f.write_str(match (index, *function) {
                        (0, _) => "",
                        (2, Function::Window) => ", step ",
                        _ => ", ",
                    })?;
                    argument.write(0, f)?;
                }
                f.write_str(")")
            }
        }
    }
}

/// Returns a name as it is written in an expression: between quotation marks, unless it is a plain word.
///
/// ```
/// use ascertain_streams::quoted_if_needed;
/// assert_eq!([quoted_if_needed("wall"), quoted_if_needed("sleep 1")], ["wall", "\"sleep 1\""]);
/// ```
#[must_use]
pub fn quoted_if_needed(name: &str) -> String {
    let is_start = |c: char| c.is_ascii_alphabetic() || c == '_';
    let is_word = name.starts_with(is_start) && name.chars().all(|c| is_start(c) || c.is_ascii_digit());
    match is_word && !RESERVED.contains(&name) {
        true => name.to_string(),
        false => format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}

/// Returns whether a text begins with a call of a function of the language.
///
/// ```
/// use ascertain_streams::is_call;
/// assert!(is_call("mean(window(time, 10))") && is_call("lag (time") && !is_call("mean") && !is_call("sin(time)"));
/// ```
#[must_use]
pub fn is_call(text: &str) -> bool {
    text.split_once('(').is_some_and(|(name, _)| Function::of_name(name.trim()).is_some())
}

/// Words that cannot be the name of a series, unless they are between quotation marks.
pub(crate) const RESERVED: [&str; 4] = ["and", "or", "not", "step"];

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(0, f)
    }
}
