//! `ascertain listen`.

use std::env;
use std::fs::File;
use std::io::Read;
use std::net::{IpAddr, SocketAddr};

use anyhow::Context;
use ascertain::Ending;
use ascertain_engine::unit::{Unit, parse_quantity};
use ascertain_netlab::throughput::{Limits, Listener, Served, Token};
use ascertain_sys::interrupt;

use crate::output;

/// Where the other side looks for the token, and this one too.
const TOKEN: &str = "ASCERTAIN_LISTEN_TOKEN";
/// Where nobody says another one.
const PORT: u16 = 5200;

const EXAMPLES: &str = "\
Examples:
  ascertain listen --on 192.0.2.1
      Listen on one address of this machine
  ascertain listen --on '[2001:db8::1]:5300' --max-bytes 10GB
      Listen on another port, and limit the traffic";

/// Be the far side of `run link-throughput`, on the machine to which a network is measured
///
/// It prints the command for the other machine, and serves who knows the token, one at a time, until SIGTERM or Ctrl-C;
/// then it prints what it served. Whoever can read the line on the way can read the token.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Where to listen: an address of this machine, with a port if that is not to be 5200. `0.0.0.0` and `::` are all
    /// that it has, where one is to be named for UDP if there are several; port 0 is one that nobody uses
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1", value_parser = address)]
    on: SocketAddr,
    /// What the other side has to know [default: ASCERTAIN_LISTEN_TOKEN, or a new one]
    #[arg(long, value_name = "TOKEN", value_parser = |text: &str| text.parse::<Token>())]
    token: Option<Token>,
    /// What it sends and receives in its life, at most
    #[arg(long, value_name = "N", default_value = "100GB", value_parser = bytes)]
    max_bytes: u64,
}

/// An address, or one with a port.
fn address(text: &str) -> Result<SocketAddr, String> {
    let ip = || text.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, PORT));
    text.parse()
        .or_else(|_| ip())
        .map_err(|_| "give an address, such as 192.0.2.1, 192.0.2.1:5200 or [2001:db8::1]:5200".into())
}

/// A number of bytes, with a unit or without.
fn bytes(text: &str) -> Result<u64, String> {
    if let Ok(bytes) = text.parse() {
        return Ok(bytes);
    }
    parse_quantity(text, Unit::Byte).map(|bytes| bytes as u64).map_err(|error| error.to_string())
}

pub fn execute(args: &Args) -> anyhow::Result<Ending> {
    let token = match (&args.token, env::var(TOKEN)) {
        (Some(token), _) => token.clone(),
        (None, Ok(token)) => token.parse().map_err(anyhow::Error::msg).context(TOKEN)?,
        (None, Err(_)) => Token::new().context("the system has no chance to make a token of: give one by --token")?,
    };
    let limits = Limits { bytes: args.max_bytes, ..Limits::default() };
    interrupt::install()?;
    let wake = interrupt::wake_fd().context("signals can't be waited for")?;
    let listener = Listener::bind(args.on, token.clone(), limits);
    let listener = listener.with_context(|| format!("nobody can listen on {}; --on takes another address", args.on))?;
    output::print(&invitation(listener.address(), &token, args.max_bytes))?;
    // Nobody else waits for signals here, so that what they write may be read.
    let read = File::from(wake.try_clone_to_owned()?).read(&mut [0]);
    read.context("signals can't be waited for")?;
    let served = listener.served();
    drop(listener);
    output::print(&farewell(served))?;
    Ok(Ending::Done)
}

/// What there is, and what to type at the other side.
fn invitation(address: SocketAddr, token: &Token, max_bytes: u64) -> String {
    let port = address.port();
    let (named, host) = match address.ip() {
        ip if ip.is_unspecified() => (" (put a name or address of this machine for HOST)", format!("HOST:{port}")),
        _ => ("", address.to_string()),
    };
    let ip = if address.is_ipv4() { "" } else { " --at ip=6" };
    let most = Unit::Byte.human(max_bytes as f64);
    format!(
        "listening on {address}, for {most} at most; on the other side{named}:\n    \
         {TOKEN}={} ascertain run link-throughput --at listener={host}{ip}\n",
        token.as_str()
    )
}

/// What came of it.
fn farewell(Served { measurements, bytes, refused }: Served) -> String {
    let plural = |count, one: &str, more: &str| format!("{count} {}", if count == 1 { one } else { more });
    let measurements = plural(measurements, "measurement", "measurements");
    let refused = match refused {
        0 => String::new(),
        _ => format!("; hung up on {} without the token", plural(refused, "connection", "connections")),
    };
    format!("served {measurements}, {}{refused}\n", Unit::Byte.human(bytes as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_port() {
        for (text, is) in [
            ("127.0.0.1", "127.0.0.1:5200"),
            ("0.0.0.0:7", "0.0.0.0:7"),
            ("::1", "[::1]:5200"),
            ("[2001:db8::1]:7", "[2001:db8::1]:7"),
        ] {
            assert_eq!(address(text).unwrap().to_string(), is);
        }
        assert!(address("localhost").is_err() && address("127.0.0.1:x").is_err() && address("").is_err());
    }

    #[test]
    fn the_other_side_is_told_what_to_type() {
        let token: Token = "a-token-of-mine".parse().unwrap();
        let said = |address: &str| invitation(address.parse().unwrap(), &token, 1_000_000_000);
        let expected = "\
listening on 192.0.2.1:5200, for 1.000 GB at most; on the other side:
    ASCERTAIN_LISTEN_TOKEN=a-token-of-mine ascertain run link-throughput --at listener=192.0.2.1:5200
";
        assert_eq!(said("192.0.2.1:5200"), expected);
        assert!(said("0.0.0.0:5200").contains("for HOST):\n") && said("0.0.0.0:5200").contains("listener=HOST:5200\n"));
        assert!(said("[::1]:7").ends_with("--at listener=[::1]:7 --at ip=6\n"));
    }

    #[test]
    fn what_was_served_is_said() {
        assert_eq!(farewell(Served::default()), "served 0 measurements, 0 B\n");
        let served = Served { measurements: 1, bytes: 1_500, refused: 2 };
        assert_eq!(farewell(served), "served 1 measurement, 1.500 kB; hung up on 2 connections without the token\n");
    }
}
