//! iperf3's client, and what it and its server say.

use std::io::Read;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use ascertain_engine::experiment::TargetError;
use ascertain_netlab::installed::Running;
use ascertain_netlab::throughput::{Curve, Direction, Plan, Transport};
use ascertain_netlab::{Side, now_ns};
use ascertain_sys::interrupt::Stop;
use ascertain_sys::tether::tether;
use serde_json::Value;

use super::throughputs::Seen;
use crate::links::{failed, wait};

/// Longer than it takes beside what it measures, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(5);

/// Measures the same with iperf3. It measures whole seconds, of which those intervals count that the plan has.
pub fn measured(plan: &Plan, server: &Running, near: &Side, stop: &Stop) -> Result<Seen, TargetError> {
    let until_ns = now_ns() + PATIENCE.as_nanos() as u64;
    loop {
        let said = said(plan, server, near, stop)?;
        match said["error"].as_str() {
            // With whom it measured last, or who asked whether it is there.
            Some(why) if why.contains("busy") && now_ns() < until_ns => wait(LOOK, stop)?,
            Some(why) => return Err(failed(format!("iperf3: {why}"))),
            None => return seen(plan, &said).ok_or_else(|| failed("iperf3 does not say what it should")),
        }
    }
}

fn said(plan: &Plan, server: &Running, near: &Side, stop: &Stop) -> Result<Value, TargetError> {
    let seconds = plan.time().as_nanos().div_ceil(1_000_000_000);
    let (address, port) = (server.address().ip().to_string(), server.address().port().to_string());
    let mut command = Command::new("iperf3");
    command.args(["--client", &address, "--port", &port, "--json", "--get-server-output"]);
    command.args(["--time", &seconds.to_string(), "--interval", &plan.interval.as_secs_f64().to_string()]);
    command.args(["--parallel", &plan.streams.to_string()]);
    if let Transport::Udp { rate_bits_per_s, datagram_bytes } = plan.transport {
        command.args(["--udp", "--bitrate", &rate_bits_per_s.to_string(), "--length", &datagram_bytes.to_string()]);
    }
    if plan.direction == Direction::Down {
        command.arg("--reverse");
    }
    near.enter(&mut command);
    tether(&mut command);
    let started = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut child = started.map_err(|error| failed(format!("iperf3 could not be started: {error}")))?;
    let Some(mut pipe) = child.stdout.take() else { return Err(failed("iperf3 has no output")) };
    let reading = thread::spawn(move || {
        let mut text = Vec::new();
        pipe.read_to_end(&mut text).map(|_| text)
    });
    let until_ns = now_ns() + (Duration::from_secs(seconds as u64) + PATIENCE).as_nanos() as u64;
    let waited = loop {
        if child.try_wait().map_err(failed)?.is_some() {
            break Ok(());
        }
        if now_ns() > until_ns {
            break Err(failed(format!("iperf3 has not ended {} s after its time", PATIENCE.as_secs())));
        }
        if let Err(interrupted) = wait(LOOK, stop) {
            break Err(interrupted);
        }
    };
    if waited.is_err() {
        let _ = child.kill();
        let _ = child.wait();
    }
    let text = reading.join().map_err(|_| failed("the reader of iperf3 ended by a mistake of ours"))?;
    waited?;
    serde_json::from_slice(&text.map_err(failed)?)
        .map_err(|error| failed(format!("iperf3 says what is no JSON: {error}")))
}

/// What both ends said, in one.
fn seen(plan: &Plan, said: &Value) -> Option<Seen> {
    let is_up = plan.direction == Direction::Up;
    let (near, far) = (said["intervals"].as_array()?, said["server_output_json"]["intervals"].as_array()?);
    let (sender, receiver) = if is_up { (near, far) } else { (far, near) };
    let (from_s, to_s) = ((plan.interval * plan.left_out).as_secs_f64(), plan.time().as_secs_f64());
    let shortest_s = plan.interval.as_secs_f64() / 2.0;
    // Its intervals begin and end when it happens to look.
    let counts = |interval: &&Value| {
        let sum = &interval["sum"];
        let [start, end] = ["start", "end"].map(|at| sum[at].as_f64().unwrap_or(f64::NAN));
        (start + end) / 2.0 > from_s && (start + end) / 2.0 < to_s && end - start > shortest_s
    };
    let sum = |intervals: &[&Value], of: &str| intervals.iter().map(|interval| interval["sum"][of].as_f64()).sum();
    let sent: Vec<&Value> = sender.iter().filter(counts).collect();
    let arrived: Vec<&Value> = receiver.iter().filter(counts).collect();
    let all: Vec<&Value> = receiver.iter().collect();
    let bytes_each = |interval: &&Value| {
        let rate = interval["sum"]["bits_per_second"].as_f64()? / 8.0;
        Some((rate * plan.interval.as_secs_f64()) as u64)
    };
    // Where they are is all that is known of those before.
    let left_out = plan.left_out as usize;
    let counted = arrived.iter().map(bytes_each).collect::<Option<Vec<u64>>>()?;
    let bytes = [vec![0; left_out], counted].concat();
    let received_bytes: Option<f64> = sum(&all, "bytes");
    let end = &said["end"];
    let cpu = |of: &str| {
        // Of all the time, for all that arrived.
        let busy_s = end["cpu_utilization_percent"][of].as_f64()? / 100.0
            * end["sum_received"]["seconds"].as_f64().or(end["sum"]["seconds"].as_f64())?;
        received_bytes.filter(|bytes| *bytes > 0.0).map(|bytes| busy_s * 1e18 / bytes)
    };
    let packets: Option<f64> = sum(&arrived, "packets");
    let lost: Option<f64> = sum(&arrived, "lost_packets");
    let streams = |interval: &&Value| interval["streams"].as_array().cloned().unwrap_or_default();
    let rtts = sent.last().map(streams).unwrap_or_default();
    let rtt_us = rtts.iter().filter_map(|stream| stream["rtt"].as_f64()).reduce(f64::max);
    let jitter_ms = arrived.last().and_then(|interval| interval["sum"]["jitter_ms"].as_f64());
    Some(Seen {
        curve: Curve { interval: plan.interval, bytes, left_out },
        received_bytes: received_bytes? as u64,
        retransmitted: sum(&sent, "retransmits"),
        round_trip_ns: rtt_us.map(|us| us * 1e3),
        cpu_ns: [cpu("host_total"), cpu("remote_total")],
        lost: lost.zip(packets).filter(|(_, packets)| *packets > 0.0).map(|(lost, packets)| lost / packets),
        jitter_ns: jitter_ms.map(|ms| ms * 1e6),
        ..Seen::default()
    })
}
