//! `ascertain check`: judges the claims of a file, or the shipped claims.

use std::path::PathBuf;

use ascertain::check::{self, Check};
use ascertain::{Ending, GatedVerdict, Request};
use ascertain_engine::outcome::Verdict;
use ascertain_report::options::{RenderOptions, Shown};

use crate::exit::{FAIL_ON, fail_on};
use crate::measure::{Start, measure};
use crate::options::{Common, one_of, with_default};
use crate::output;

const EXAMPLES: &str = "\
Examples:
  ascertain check claims.toml
      Judge the claims of a file
  ascertain check --only sum. --max-time 2min
      Judge the shipped claims whose id contains `sum.`";

/// Judge the claims in a file, or the shipped claims
///
/// Without a file, `check` judges the shipped claims that this machine can run. By default, no verdict on a shipped
/// claim makes the command fail. For a file of your own, the exit code is 1 if a claim is refuted, and 3 if one is
/// undecided.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("max_time", |arg| with_default(arg, "165 s")))]
pub struct Args {
    /// Files of claims, in TOML
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Parts of ids that select the claims to judge, or verdicts that select the claims to print
    ///
    /// With a part of an id, `check` judges only the claims whose id contains it. With a verdict, such as `--only
    /// refuted,undecided`, it judges all claims and prints those with this verdict.
    #[arg(long, value_name = "TEXT", value_delimiter = ',')]
    only: Vec<String>,
    /// Print a sentence for every verdict, even if there are many, and a table of all claims
    #[arg(long, help_heading = "Output")]
    all: bool,
    /// Verdicts that make the command fail [default: refuted,undecided for files; nothing for the shipped claims]
    #[arg(long, value_parser = one_of(FAIL_ON), value_delimiter = ',', help_heading = "Judging")]
    fail_on: Option<Vec<Option<GatedVerdict>>>,
    #[command(flatten)]
    common: Common,
}

pub fn execute(args: &Args) -> anyhow::Result<Ending> {
    let (shown, ids) = args.only();
    let check = args.request(&ids)?;
    if check.claims.claims.is_empty() {
        output::note(&format!("no claim's id contains {}", ids.join(" or ")));
        return Ok(Ending::Nothing);
    }
    let options = RenderOptions { shown, ..args.common.render() };
    measure(Start::New(Box::new(Request::Check(check)), &args.common), &options, &args.common.exports)
}

impl Args {
    /// Splits the values of `--only` into two kinds. Verdicts select the claims to print. All other values are parts of
    /// ids, which select the claims to judge.
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

    /// Returns the request that the options describe.
    fn request(&self, ids: &[String]) -> anyhow::Result<Check> {
        let mut claims = match self.files.as_slice() {
            [] => ascertain_experiments::shipped_claims()?,
            files => check::read(files, &ascertain_experiments::registry())?,
        };
        check::retain(&mut claims, ids);
        let mut config = self.common.config(check::config());
        match &self.fail_on {
            Some(words) => config.fail_on = fail_on(words),
            None if self.files.is_empty() => config.fail_on.clear(),
            None => {}
        }
        Ok(Check { claims, config })
    }
}
