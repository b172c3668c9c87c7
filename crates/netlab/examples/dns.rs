//! Measures how much CPU time it takes to send DNS queries at a given rate over the loopback interface.
//!
//! `cargo run --release -p ascertain-netlab --example dns [QUESTIONS_A_SECOND [SECONDS]]`
#![allow(clippy::print_stdout)]

use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;
use std::{env, error::Error};

use ascertain_netlab::dns::{
    LoadTransport, Name, Prober, QueryMix, QueryRate, Question, RecordType, Rhythm, SimulationSpec, ZoneServer, load,
    probe,
};
use ascertain_netlab::now_ns;
use rustix::time::{ClockId, clock_gettime};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let mut number = |default: u64| arguments.next().map_or(Ok(default), |text| text.parse());
    let (rate_per_s, seconds) = (number(10_000)?, number(5)?);
    let udp = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0));
    let servers = vec![vec![Duration::ZERO; 3]; 4];
    let sockets = (0..servers.len()).map(|_| udp()).collect::<Result<_, _>>()?;
    let served =
        ZoneServer::start(SimulationSpec::new(servers), TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?, sockets)?;
    let sockets = (0..16).map(|_| udp()).collect::<Result<Vec<_>, _>>()?;
    let questions = served.servers().len() * sockets.len();
    let interval = Duration::from_secs_f64(questions as f64 / rate_per_s as f64);
    let rhythm = Rhythm { servers: served.servers().len(), flows: sockets.len(), interval };
    let question = Question::new(Name::from_ascii("new.example.")?, RecordType::TXT)?;
    let (addresses, limit) = (served.servers().to_vec(), Duration::from_secs(1));
    let mut prober = Prober::new(addresses, rhythm.flows, question, |_| false, limit, 1);
    let end_ns = now_ns() + seconds * 1_000_000_000;
    let before_ns = cpu_ns();
    probe(&mut prober, rhythm, &sockets, |_, now_ns| now_ns > end_ns)?;
    let cpu_s = (cpu_ns() - before_ns) as f64 / 1e9;
    let answers = prober.log.probes.iter().map(|asked| Some(asked.answer?.received_ns - asked.sent_ns));
    say("the servers of a zone over UDP", cpu_s, seconds, answers.collect());

    let pace = QueryRate { rate_per_s, time: Duration::from_secs(seconds), limit };
    let connect = || (0..4).map(|_| TcpStream::connect(served.primary())).collect::<Result<_, _>>();
    let ways = [
        ("one server over UDP", LoadTransport::Udp(sockets, served.servers()[0])),
        ("one server over TCP", LoadTransport::Tcp(connect()?)),
    ];
    for (what, way) in ways {
        let before_ns = cpu_ns();
        let result = load(&QueryMix::parse("example. NS\nmissing.example. A")?, pace, way, 1, || false)?;
        let cpu_s = (cpu_ns() - before_ns) as f64 / 1e9;
        say(what, cpu_s, seconds, result.queries.iter().map(|query| Some(query.answer?.took_ns)).collect());
    }
    Ok(())
}

fn say(what: &str, cpu_s: f64, seconds: u64, answers: Vec<Option<u64>>) {
    let mut took_ns: Vec<u64> = answers.iter().copied().flatten().collect();
    took_ns.sort_unstable();
    let quantile_us = |part: f64| took_ns.get((took_ns.len() as f64 * part) as usize).map_or(0, |ns| ns / 1_000);
    let (asked, lost) = (answers.len(), answers.len() - took_ns.len());
    println!(
        "{what}: {asked} queries in {seconds} s, {lost} of them lost; sending took {:.1} % of a CPU; answers took {} µs, \
         p99 {} µs",
        100.0 * cpu_s / seconds as f64,
        quantile_us(0.5),
        quantile_us(0.99)
    );
}

/// Returns the CPU time that this thread has used, in nanoseconds.
fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
