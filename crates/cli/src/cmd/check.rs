//! `ascertain check`.

use std::path::PathBuf;

pub use ascertain::check::USE_CASE;
use ascertain::check::{self, Check};
use ascertain::{Done, Ending, GatedVerdict, Request};
use ascertain_engine::outcome::Verdict;
use ascertain_report::terminal::{self, Shown};

use super::report;
use crate::exit::{FAIL_ON, fail_on};
use crate::options::{Common, Display, one_of, with_default};
use crate::output;
use crate::session::{self, Printed};

const EXAMPLES: &str = "\
Examples:
  ascertain check claims.toml
      Judge the claims of a file
  ascertain check --only sum. --max-time 2min
      Judge the shipped claims whose id contains `sum.`";

/// Judge a file of claims; without one, the shipped claims that this machine can run
///
/// The sources' claims do not gate: that one is refuted here is a finding. A file of your own does:
/// exit code 1 when a claim is refuted, 3 when one is undecided.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("max_time", |arg| with_default(arg, "165 s")))]
pub struct Args {
    /// Files of claims
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Only claims whose id contains this; or, where it is a verdict, print only claims of it: `--only
    /// refuted,undecided`
    #[arg(long, value_name = "TEXT", value_delimiter = ',')]
    only: Vec<String>,
    /// Print each verdict as a sentence, however many there are, and a table of all claims
    #[arg(long, help_heading = "Output")]
    all: bool,
    /// Verdicts that fail: refuted (exit code 1), undecided (3), nothing. For the shipped claims: nothing
    #[arg(long, value_parser = one_of(FAIL_ON), value_delimiter = ',', help_heading = "Judging")]
    fail_on: Option<Vec<Option<GatedVerdict>>>,
    #[command(flatten)]
    common: Common,
}

pub fn execute(args: &Args) -> anyhow::Result<Ending> {
    let (shown, ids) = args.only();
    let check = args.check(&ids)?;
    if check.claims.claims.is_empty() {
        output::note(&format!("no claim's id contains {}", ids.join(" or ")));
        return Ok(Ending::Nothing);
    }
    let (request, plan) = check.plan();
    session::carry_out((Request { shown, ..request }, plan), &args.common)
}

/// The verdicts.
pub fn print(done: &Done, display: &Display) -> anyhow::Result<()> {
    session::print(done, display, &Printed { asks_verdicts: true, has_report: true }, |outcome, style| {
        let report = done.run.folder.as_deref().map(report::command);
        terminal::checked(outcome, &done.request.shown, report.as_deref(), style)
    })
}

impl Args {
    /// What is printed, and what the ids of the claims contain.
    fn only(&self) -> (Shown, Vec<String>) {
        let (mut shown, mut ids) = (Shown { all: self.all, only: Vec::new() }, Vec::new());
        for word in &self.only {
            match Verdict::ALL.into_iter().find(|verdict| verdict.word() == word) {
                Some(verdict) => shown.only.push(verdict),
                None => ids.push(word.clone()),
            }
        }
        (shown, ids)
    }

    /// What is asked for.
    fn check(&self, ids: &[String]) -> anyhow::Result<Check> {
        let mut claims = match self.files.as_slice() {
            [] => ascertain_experiments::shipped_claims()?,
            files => check::read(files, ascertain_experiments::registry())?,
        };
        check::retain(&mut claims, ids);
        Ok(Check { claims, fail_on: self.gates(), terms: session::terms(&self.common) })
    }

    /// What a run of the first version was asked for beside its plan.
    pub fn without_plan(&self) -> Request {
        Request { fail_on: self.gates(), ..Request::new(USE_CASE) }
    }

    fn gates(&self) -> Vec<GatedVerdict> {
        let own = if self.files.is_empty() { Vec::new() } else { Check::FAIL_ON.to_vec() };
        self.fail_on.as_deref().map_or(own, fail_on)
    }
}
