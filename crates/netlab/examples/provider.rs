//! Serves a zone on this machine through the API of Route 53 or Cloud DNS, until Ctrl-C. Prints the commands that
//! change the zone and watch its servers follow.
//!
//! `cargo run -p ascertain-netlab --features providers --example provider -- route53|cloud-dns`
#![allow(clippy::print_stdout)]

use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::time::Duration;

use ascertain_netlab::dns::{SimulationSpec, ZoneServer};
use ascertain_netlab::provider::{HostedZone, Provider};

const LOCAL: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let is_google = std::env::args().nth(1).as_deref() == Some("cloud-dns");
    let plan =
        SimulationSpec::new([300, 600, 1_200, 2_400].map(|delay_ms| vec![Duration::from_millis(delay_ms); 2]).into());
    let sockets = (0..plan.servers.len()).map(|_| UdpSocket::bind(LOCAL)).collect::<Result<_, _>>()?;
    let served = ZoneServer::start(plan, TcpListener::bind(LOCAL)?, sockets)?;
    let zones = vec![HostedZone::new("Z1", "example.", served.primary())];
    let provider = if is_google { Provider::cloud_dns(zones) } else { Provider::route53(zones) };
    let provider = Provider { done_after: Duration::from_secs(1), ..provider };
    let running = provider.start(TcpListener::bind(LOCAL)?)?;
    let addresses: Vec<String> = served.servers().iter().map(ToString::to_string).collect();
    let (url, at) = (running.url(), format!("--at zone=example --at addresses={}", addresses.join(",")));
    if is_google {
        let path = std::env::temp_dir().join(format!("ascertain-key-{}.json", std::process::id()));
        std::fs::write(&path, running.service_account())?;
        let key = path.display();
        println!("GOOGLE_APPLICATION_CREDENTIALS={key} \\");
        println!("    ascertain run dns-propagation --variants cloud-dns --trials 3 --at endpoint={url} {at}");
    } else {
        let Provider { account, secret, .. } = running.provider();
        println!("AWS_ACCESS_KEY_ID={account} AWS_SECRET_ACCESS_KEY={secret} \\");
        println!("    ascertain run dns-propagation --variants route53 --trials 3 --at endpoint={url} {at}");
    }
    loop {
        std::thread::park();
    }
}
