//! Enables, disables and queries the monitor of the current folder: `cargo run --example monitor enable HOOK`.

use std::error::Error;
use std::path::{Path, PathBuf};

use ascertain_fsmonitor::{Changes, EnableOptions, disable, enable, log, since, status};

#[allow(clippy::print_stdout, reason = "an example")]
fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let here = Path::new(".");
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["enable", hook] => {
            let options = EnableOptions { hook: Some(PathBuf::from(hook)), ..EnableOptions::default() };
            println!("{:#?}", enable(here, &options)?);
        }
        ["disable"] => println!("{}", disable(here)?),
        ["status"] => println!("{:#?}", status(here)?),
        ["log"] => print!("{}", log(here)?),
        ["since", token] => {
            let (token, changes) = since(here, token.as_bytes())?;
            println!("{}", String::from_utf8_lossy(&token));
            match changes {
                Changes::Everything(reason) => println!("everything, because {}", reason.explanation()),
                Changes::Paths(paths) => {
                    paths.iter().for_each(|path| println!("{}", String::from_utf8_lossy(path)));
                }
            }
        }
        _ => println!("usage: monitor enable HOOK | disable | status | log | since TOKEN"),
    }
    Ok(())
}
