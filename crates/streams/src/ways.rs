//! The ways out of a join that is refused: whole expressions that are accepted.

use crate::error::{Error, Problem};
use crate::expression::Expression;
use crate::parse::parse;
use crate::plan::Plan;
use crate::refusal::{Way, WayOut};

/// Most joins that are replaced for one way out.
const MOST_JOINS: usize = 16;

/// A join that is refused, and the expressions that can replace it.
#[derive(Clone, Debug)]
pub(crate) struct RefusedJoin {
    pub join: Expression,
    pub ways: Vec<(Way, Expression)>,
}

/// The reason why an expression is refused. If it is a join that runs out of step, this includes the join.
pub(crate) type Refused = (Error, Option<Box<RefusedJoin>>);

/// Adds the ways out to the error of an expression. `plan` plans an expression.
pub(crate) fn with_ways_out(
    whole: &Expression,
    (mut error, refused): Refused,
    plan: impl Fn(&str) -> Result<Plan, Refused>,
) -> Error {
    let (Problem::Unbounded(unbounded), Some(refused)) = (&mut *error.problem, refused) else { return error };
    for (way, _) in &refused.ways {
        match accepted(whole, *way, &refused, &plan) {
            Ok(expression) => unbounded.ways.push(WayOut { way: *way, expression }),
            Err(other) => unbounded.other = unbounded.other.take().or(other),
        }
    }
    error
}

/// Returns the whole expression in which every refused join has the same way out. The error is another problem of the
/// expression, if there is one.
fn accepted(
    whole: &Expression,
    way: Way,
    first: &RefusedJoin,
    plan: impl Fn(&str) -> Result<Plan, Refused>,
) -> Result<String, Option<String>> {
    let (mut expression, mut refused) = (whole.clone(), Box::new(first.clone()));
    for _ in 0..MOST_JOINS {
        let (_, replacement) = refused.ways.iter().find(|(known, _)| *known == way).ok_or(None)?;
        let text = expression.replaced(&refused.join.to_string(), replacement).to_string();
        match plan(&text) {
            Ok(_) => return Ok(text),
            Err((_, Some(next))) => {
                expression = parse(&text).map_err(|error| Some(error.problem().to_string()))?;
                refused = next;
            }
            Err((error, None)) => return Err(Some(error.problem().to_string())),
        }
    }
    Err(None)
}
