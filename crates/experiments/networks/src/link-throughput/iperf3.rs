//! Runs iperf3's client, and parses its report.

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::Duration;

use ascertain_engine::experiment::TargetError;
use ascertain_netlab::installed::RunningProgram;
use ascertain_netlab::throughput::{Curve, Direction, TrafficSpec, Transport};
use ascertain_netlab::{Side, now_ns};
use ascertain_sys::interrupt::Stop;
use ascertain_sys::tether::tether;
use serde_json::Value;

use super::throughputs::ThroughputReport;
use crate::links::{attended, failed, wait};

/// Time limit for iperf3 in addition to the measured time, and for retries while the iperf3 server is busy. The limit
/// is long, because the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(5);

/// Measures with iperf3. Because iperf3 always runs for whole seconds, intervals beyond the time in `spec` are dropped.
pub fn measure(
    spec: &TrafficSpec,
    server: &RunningProgram,
    near: &Side,
    stop: &Stop,
) -> Result<ThroughputReport, TargetError> {
    let until_ns = now_ns() + PATIENCE.as_nanos() as u64;
    loop {
        let report = run(spec, server, near, stop)?;
        match report["error"].as_str() {
            // The server may still be busy with the previous client, or with the connection that checked whether the
            // server was ready.
            Some(why) if why.contains("busy") && now_ns() < until_ns => wait(LOOK, stop)?,
            Some(why) => return Err(failed(format!("iperf3: {why}"))),
            None => return parse(spec, &report).ok_or_else(|| failed("iperf3's report has an unexpected form")),
        }
    }
}

fn run(spec: &TrafficSpec, server: &RunningProgram, near: &Side, stop: &Stop) -> Result<Value, TargetError> {
    let seconds = spec.time().as_nanos().div_ceil(1_000_000_000);
    let (address, port) = (server.address().ip().to_string(), server.address().port().to_string());
    let mut command = Command::new("iperf3");
    command.args(["--client", &address, "--port", &port, "--json", "--get-server-output"]);
    command.args(["--time", &seconds.to_string(), "--interval", &spec.interval.as_secs_f64().to_string()]);
    command.args(["--parallel", &spec.streams.to_string()]);
    if let Transport::Udp { rate_bits_per_s, datagram_bytes } = spec.transport {
        command.args(["--udp", "--bitrate", &rate_bits_per_s.to_string(), "--length", &datagram_bytes.to_string()]);
    }
    if spec.direction == Direction::Down {
        command.arg("--reverse");
    }
    near.enter(&mut command);
    tether(&mut command);
    let started = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut child = started.map_err(|error| failed(format!("iperf3 could not be started: {error}")))?;
    let Some(mut pipe) = child.stdout.take() else { return Err(failed("iperf3 has no output")) };
    let mut text = Vec::new();
    let limit = Duration::from_secs(seconds as u64) + PATIENCE;
    let read = attended(vec![|| pipe.read_to_end(&mut text)], limit, stop, || _ = child.kill());
    let _ = child.wait();
    let read = read.map_err(|error| match error {
        TargetError::Interrupted => error,
        error => failed(format!("iperf3: {error}")),
    })?;
    read.into_iter().collect::<Result<Vec<_>, _>>().map_err(failed)?;
    serde_json::from_slice(&text).map_err(|error| failed(format!("iperf3's output is not JSON: {error}")))
}

/// Returns the results of both sides from iperf3's report; `None` if the report has an unexpected form.
fn parse(spec: &TrafficSpec, report: &Value) -> Option<ThroughputReport> {
    let is_up = spec.direction == Direction::Up;
    let (near, far) = (report["intervals"].as_array()?, report["server_output_json"]["intervals"].as_array()?);
    let (sender, receiver) = if is_up { (near, far) } else { (far, near) };
    let (from_s, to_s) = ((spec.interval * spec.left_out).as_secs_f64(), spec.time().as_secs_f64());
    let shortest_s = spec.interval.as_secs_f64() / 2.0;
    // The start and end times of iperf3's intervals are inexact, so the middle of each interval decides.
    let counts = |interval: &&Value| {
        let sum = &interval["sum"];
        let [start, end] = ["start", "end"].map(|at| sum[at].as_f64().unwrap_or(f64::NAN));
        (start + end) / 2.0 > from_s && (start + end) / 2.0 < to_s && end - start > shortest_s
    };
    let sum =
        |intervals: &[&Value], field: &str| intervals.iter().map(|interval| interval["sum"][field].as_f64()).sum();
    let sent: Vec<&Value> = sender.iter().filter(counts).collect();
    let arrived: Vec<&Value> = receiver.iter().filter(counts).collect();
    let all: Vec<&Value> = receiver.iter().collect();
    let bytes_each = |interval: &&Value| {
        let rate = interval["sum"]["bits_per_second"].as_f64()? / 8.0;
        Some((rate * spec.interval.as_secs_f64()) as u64)
    };
    // Only the number of the left-out intervals matters, not their content.
    let left_out = spec.left_out as usize;
    let counted = arrived.iter().map(bytes_each).collect::<Option<Vec<u64>>>()?;
    let bytes = [vec![0; left_out], counted].concat();
    let received_bytes: Option<f64> = sum(&all, "bytes");
    let end = &report["end"];
    let cpu = |end_name: &str| {
        // iperf3 reports the CPU time of the whole run, so it is divided by all bytes that arrived.
        let busy_s = end["cpu_utilization_percent"][end_name].as_f64()? / 100.0
            * end["sum_received"]["seconds"].as_f64().or(end["sum"]["seconds"].as_f64())?;
        received_bytes.filter(|bytes| *bytes > 0.0).map(|bytes| busy_s * 1e18 / bytes)
    };
    let packets: Option<f64> = sum(&arrived, "packets");
    let lost: Option<f64> = sum(&arrived, "lost_packets");
    let streams = |interval: &&Value| interval["streams"].as_array().cloned().unwrap_or_default();
    let rtts = sent.last().map(streams).unwrap_or_default();
    let rtt_us = rtts.iter().filter_map(|stream| stream["rtt"].as_f64()).reduce(f64::max);
    let jitter_ms = arrived.last().and_then(|interval| interval["sum"]["jitter_ms"].as_f64());
    Some(ThroughputReport {
        curve: Curve { interval: spec.interval, bytes, left_out },
        received_bytes: received_bytes? as u64,
        retransmitted: sum(&sent, "retransmits"),
        round_trip_ns: rtt_us.map(|us| us * 1e3),
        cpu_ns: [cpu("host_total"), cpu("remote_total")],
        lost: lost.zip(packets).filter(|(_, packets)| *packets > 0.0).map(|(lost, packets)| lost / packets),
        jitter_ns: jitter_ms.map(|ms| ms * 1e6),
        ..ThroughputReport::default()
    })
}
