//! `ascertain put`.

use ascertain::Ending;

use super::moves;

/// Put files into a store, in blocks, as fast as the link and the store go
///
/// A few of the first blocks find out what the link is like; what is planned then is said, followed, and planned again
/// as it goes. What breaks off is gone on with by the same command. Nothing is ever removed: this is no
/// synchronisation. Exit code 5: the store refused it, or stored something else.
///
/// `put a.txt s3://b/p` makes `p`, and `put a.txt s3://b/p/` makes `p/a.txt`. `put dir s3://b/p` makes `p/x` of
/// `dir/x`, with slashes or without.
#[derive(clap::Args)]
pub struct Args {
    /// Files and folders; `-` is standard input; a pipe is read to its end, as that is
    #[arg(value_name = "SOURCE", required = true)]
    from: Vec<String>,
    /// s3://BUCKET/NAME, gs://BUCKET/NAME, az://CONTAINER/NAME, https://ACCOUNT.blob.core.windows.net/CONTAINER/NAME or
    /// a path; with a slash at its end files keep their names behind it
    #[arg(value_name = "DEST")]
    to: String,
    /// The media type, instead of what the name's ending says
    #[arg(long, value_name = "TYPE")]
    content_type: Option<String>,
    #[command(flatten)]
    moves: moves::Moving,
}

pub fn execute(args: &Args) -> anyhow::Result<Ending> {
    let asked = args.moves.asked(&args.from, &args.to, args.content_type.clone());
    args.moves.carry_out(moves::Way::Put, &asked)
}
