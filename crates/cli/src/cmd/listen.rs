//! `ascertain listen`: runs the remote side of the experiment `link-throughput`.

use std::env;
use std::fs::File;
use std::io::Read;
use std::net::{IpAddr, SocketAddr};

use anyhow::Context;
use ascertain::Ending;
use ascertain_engine::unit::{Unit, parse_quantity};
use ascertain_netlab::throughput::{Listener, ListenerLimits, ListenerStats, Token};
use ascertain_sys::interrupt;

use crate::output;

/// Name of the environment variable with the secret token, which the listener and the client both read.
const TOKEN: &str = "ASCERTAIN_LISTEN_TOKEN";
/// Default port of the listener.
const PORT: u16 = 5200;

const EXAMPLES: &str = "\
Examples:
  ascertain listen --on 192.0.2.1
      Listen on one address of this machine
  ascertain listen --on '[2001:db8::1]:5300' --max-bytes 10GB
      Listen on another port, and limit the traffic";

/// Run the remote side of the experiment link-throughput
///
/// Start `listen` on the machine at the far end of the network path. It prints the command to run on the other machine.
///
/// The listener serves one client at a time, and only clients with the token, until SIGTERM or Ctrl-C. Then it prints a
/// summary. The token is not encrypted: anyone who can read the traffic can read the token.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Address of this machine to listen on, with a port if it is not 5200
    ///
    /// `0.0.0.0` and `::` stand for all addresses of the machine. If it has several, name one of them to measure UDP.
    /// Port 0 chooses a free port.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1", value_parser = address)]
    on: SocketAddr,
    /// Secret that the other side must send [default: ASCERTAIN_LISTEN_TOKEN, or a new random token]
    #[arg(long, value_name = "TOKEN", value_parser = |text: &str| text.parse::<Token>())]
    token: Option<Token>,
    /// Maximum number of bytes to send and receive in total
    #[arg(long, value_name = "N", default_value = "100GB", value_parser = bytes)]
    max_bytes: u64,
}

/// Parses an IP address, with or without a port.
fn address(text: &str) -> Result<SocketAddr, String> {
    let ip = || text.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, PORT));
    text.parse()
        .or_else(|_| ip())
        .map_err(|_| "give an address, such as 192.0.2.1, 192.0.2.1:5200 or [2001:db8::1]:5200".into())
}

/// Parses a number of bytes, with or without a unit.
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
        (None, Err(_)) => {
            Token::new().context("the system has no random numbers for a token; give a token with --token")?
        }
    };
    let limits = ListenerLimits { bytes: args.max_bytes, ..ListenerLimits::default() };
    interrupt::install()?;
    let wake = interrupt::wake_fd().context("can't wait for signals")?;
    let listener = Listener::bind(args.on, token.clone(), limits);
    let listener =
        listener.with_context(|| format!("can't listen on {}; choose another address with --on", args.on))?;
    output::print(&invitation(listener.address(), &token, args.max_bytes))?;
    // Wait for a signal. No other thread reads this pipe, to which the signal handlers write.
    let read = File::from(wake.try_clone_to_owned()?).read(&mut [0]);
    read.context("can't wait for signals")?;
    let served = listener.stats();
    drop(listener);
    output::print(&farewell(served))?;
    Ok(Ending::Done)
}

/// Returns the message for the start of the listener, with the command to run on the other machine.
fn invitation(address: SocketAddr, token: &Token, max_bytes: u64) -> String {
    let port = address.port();
    let (named, host) = match address.ip() {
        ip if ip.is_unspecified() => {
            (" (with a name or address of this machine instead of HOST)", format!("HOST:{port}"))
        }
        _ => ("", address.to_string()),
    };
    let ip = if address.is_ipv4() { "" } else { " --at ip=6" };
    let most = Unit::Byte.human(max_bytes as f64);
    format!(
        "listening on {address}, for at most {most}; run on the other machine{named}:\n    \
         {TOKEN}={} ascertain run link-throughput --at listener={host}{ip}\n",
        token.as_str()
    )
}

/// Returns the message for the end of the listener: a summary of what it has served.
fn farewell(ListenerStats { measurements, bytes, refused }: ListenerStats) -> String {
    let plural = |count, one: &str, more: &str| format!("{count} {}", if count == 1 { one } else { more });
    let measurements = plural(measurements, "measurement", "measurements");
    let refused = match refused {
        0 => String::new(),
        _ => format!("; rejected {} without the token", plural(refused, "connection", "connections")),
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
listening on 192.0.2.1:5200, for at most 1.000 GB; run on the other machine:
    ASCERTAIN_LISTEN_TOKEN=a-token-of-mine ascertain run link-throughput --at listener=192.0.2.1:5200
";
        assert_eq!(said("192.0.2.1:5200"), expected);
        assert!(
            said("0.0.0.0:5200").contains("instead of HOST):\n")
                && said("0.0.0.0:5200").contains("listener=HOST:5200\n")
        );
        assert!(said("[::1]:7").ends_with("--at listener=[::1]:7 --at ip=6\n"));
    }

    #[test]
    fn what_was_served_is_said() {
        assert_eq!(farewell(ListenerStats::default()), "served 0 measurements, 0 B\n");
        let served = ListenerStats { measurements: 1, bytes: 1_500, refused: 2 };
        assert_eq!(farewell(served), "served 1 measurement, 1.500 kB; rejected 2 connections without the token\n");
    }
}
