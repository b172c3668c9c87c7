//! `ascertain get`.

use ascertain::Ending;

use super::moves;

/// Get objects from a store, in ranges, as fast as the link and the store go
///
/// A file has its name once it is whole, and not before. What breaks off is gone on with by the same command. Exit code
/// 5: the store refused it, or gave something else.
///
/// `get s3://b/p to` makes `to`, or `to/p` where `to` is a folder. `get s3://b/p/ to` makes `to/x` of each `p/x`.
#[derive(clap::Args)]
pub struct Args {
    /// s3://BUCKET/NAME, gs://BUCKET/NAME, az://CONTAINER/NAME, https://… or a path; with a slash at its end everything
    /// whose name begins so
    #[arg(value_name = "SOURCE")]
    from: String,
    /// A file or a folder; `-` is standard output
    #[arg(value_name = "DEST")]
    to: String,
    #[command(flatten)]
    moves: moves::Moving,
}

pub fn execute(args: &Args) -> anyhow::Result<Ending> {
    let asked = args.moves.asked(std::slice::from_ref(&args.from), &args.to, None);
    args.moves.carry_out(moves::Way::Get, &asked)
}
