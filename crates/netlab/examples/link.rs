//! What a link costs and how true it is, by carrier: `cargo run --release -p ascertain-netlab --example link`.
//!
//! Each line is five seconds of one stream of TCP, or of pings of one datagram at a time. Segments a CPU second are
//! those of the emulator's thread, both ways, with the kernel's work for them. On a machine that does anything else the
//! figures say little.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::io::{Read, Write};
use std::thread;
use std::time::{Duration, Instant};

use ascertain_netlab::{Carrier, Link, Report, RunningLink};

const TIME: Duration = Duration::from_secs(5);

fn main() -> Result<(), Box<dyn Error>> {
    let carriers = [
        ("TUN with offloads", Carrier::Tun { has_offloads: true }),
        ("TUN", Carrier::Tun { has_offloads: false }),
        ("veth", Carrier::Veth),
    ];
    println!("carrier           link                     Gbit/s  segments/CPU s  late p50  p99  max µs  lost unread");
    for (name, carrier) in carriers {
        let plain = Link { carrier: Some(carrier), ..Link::default() };
        let ms = |ms| Duration::from_millis(ms);
        // So fast that it never waits, but each segment is a frame of its own.
        let cut = Link { rate_bits_per_s: Some(100_000_000_000), queue_bytes: 64 << 20, ..plain.clone() };
        let slow = Link { rtt: ms(20), rate_bits_per_s: Some(100_000_000), queue_bytes: 1 << 20, ..plain.clone() };
        let reno = Link { congestion_control: Some("reno".into()), ..slow.clone() };
        let links = [
            ("at once", plain.clone()),
            ("at once, each one cut", cut),
            ("20 ms, 100 Mbit/s", slow),
            ("20 ms, 100 Mbit/s, reno", reno),
        ];
        for (link_name, link) in links {
            match link.start() {
                Ok(running) => {
                    let (bytes, report) = stream(&running)?;
                    let gbit_per_s = bytes as f64 * 8e-9 / TIME.as_secs_f64();
                    println!("{name:<17} {link_name:<23} {gbit_per_s:>7.3} {}", figures(&report));
                }
                Err(error) => println!("{name:<17} {error}"),
            }
        }
        if let Ok(running) = (Link { rtt: ms(20), ..plain }).start() {
            let (mut trips_us, report) = pings(&running)?;
            trips_us.sort_by(f64::total_cmp);
            let at = |share: f64| trips_us[((trips_us.len() - 1) as f64 * share) as usize];
            let trips = format!("20 ms: there and back {:.0} µs, p99 {:.0}", at(0.5), at(0.99));
            println!("{name:<17} {trips} {}", figures(&report));
        }
    }
    Ok(())
}

fn figures(report: &Report) -> String {
    let segments = report.to_far.offered.segments + report.to_near.offered.segments;
    let per_cpu_s = segments as f64 / (report.cpu_ns as f64 * 1e-9);
    let late_us = |share| report.lateness.quantile_ns(share).unwrap_or(0) as f64 * 1e-3;
    let [p50, p99, max] = [0.5, 0.99, 1.0].map(late_us);
    let real_time = if report.is_real_time { ", FIFO" } else { "" };
    format!("{per_cpu_s:>14.0} {p50:>9.1} {p99:>7.1} {max:>8.1} {:>6}{real_time}", report.unread_frames)
}

/// How much one stream carries.
fn stream(link: &RunningLink) -> Result<(u64, Report), Box<dyn Error>> {
    let listener = link.far().listen((link.far().address(), 80))?;
    let mut near = link.near().connect((link.far().address(), 80))?;
    let (mut far, _) = listener.accept()?;
    let sender = thread::spawn(move || {
        let buffer = vec![7; 1 << 20];
        while near.write_all(&buffer).is_ok() {}
    });
    let mut buffer = vec![0; 1 << 20];
    // Without what the stream takes to find its rate.
    let warm = Instant::now();
    while warm.elapsed() < TIME / 5 {
        let _ = far.read(&mut buffer)?;
    }
    let (start, before, mut bytes) = (Instant::now(), link.report()?, 0);
    while start.elapsed() < TIME {
        bytes += far.read(&mut buffer)? as u64;
    }
    let report = link.report()?.since(&before);
    far.shutdown(std::net::Shutdown::Both)?;
    drop(far);
    sender.join().map_err(|_| "the sender panicked")?;
    Ok((bytes, report))
}

/// How long a datagram takes there and back, in µs.
fn pings(link: &RunningLink) -> Result<(Vec<f64>, Report), Box<dyn Error>> {
    let far = link.far().udp((link.far().address(), 7))?;
    let near = link.near().udp((link.near().address(), 0))?;
    near.connect(far.local_addr()?)?;
    thread::spawn(move || {
        let mut buffer = [0; 8];
        while let Ok((8, from)) = far.recv_from(&mut buffer)
            && far.send_to(&buffer, from).is_ok()
        {}
    });
    let (start, mut trips_us) = (Instant::now(), Vec::new());
    while start.elapsed() < TIME {
        let sent = Instant::now();
        near.send(&[7; 8])?;
        near.recv(&mut [0; 8])?;
        trips_us.push(sent.elapsed().as_secs_f64() * 1e6);
    }
    // The far end's thread stops at what is not eight bytes.
    near.send(&[])?;
    Ok((trips_us, link.report()?))
}
