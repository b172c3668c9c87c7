//! Tests of the emulated stores, and of the choice of arms.

use ascertain_sys::testing::wait_until;

use super::super::levels::{bills, check, chosen};
use super::super::*;
use super::*;

const SCALE: (&str, u64) = ("scale", 100);

fn quick(variant: &str, levels: &[(&str, Level)]) -> Arm {
    let levels: Vec<(&str, Level)> = levels.iter().cloned().chain([(SCALE.0, SCALE.1.into())]).collect();
    arm(variant, &levels)
}

fn phases(out: &Samples) -> Vec<String> {
    let mut names: Vec<String> =
        out.iter().filter(|sample| sample.metric == PHASE).map(|sample| sample.key.to_string()).collect();
    names.sort();
    names.dedup();
    names
}

#[test]
fn a_download_has_its_phases() {
    for (connection, expected) in [
        ("kept", vec!["4 send", "5 header", "6 first byte", "7 body"]),
        ("fresh", vec!["1 look-up", "2 connect", "4 send", "5 header", "6 first byte", "7 body"]),
    ] {
        let arm = quick(S3, &[("size", 100_000.into()), ("connection", connection.into())]);
        let mut opened = open(&arm).unwrap();
        let out = opened.measure(3).unwrap();
        // A machine that stalls for seconds lets the store close an idle connection, which the client then reopens.
        let was_reopened = values(&out, REOPENED).iter().any(|share| *share > 0.0);
        assert!(expected.iter().all(|phase| phases(&out).iter().any(|found| found == phase)), "{connection}");
        assert!(phases(&out).len() == expected.len() || was_reopened, "{connection} {:?}", phases(&out));
        assert_eq!(values(&out, TIME).len(), 3);
        assert_eq!(values(&out, INCOMPLETE), [0.0; 3]);
        assert_eq!(values(&out, REOPENED).len(), if connection == "kept" { 3 } else { 0 });
        assert_eq!(values(&out, GAP).len(), values(&out, REOPENED).len());
        // The emulated store answers no request before its quickest time to the first byte.
        let least_ns = 0.8 * 10.6e6 / 100.0;
        assert!(values(&out, FIRST_BYTE).iter().all(|ns| *ns >= least_ns), "{out:?}");
        for (time, first_byte) in values(&out, TIME).iter().zip(values(&out, FIRST_BYTE)) {
            assert!(*time >= first_byte);
        }
    }
}

#[test]
fn every_operation_transfers_its_bytes() {
    for (operation, object) in [(DOWNLOAD, "warm"), (DOWNLOAD, "cold"), (RANGED, "warm"), (UPLOAD, "warm")] {
        let levels = [("operation", operation.into()), ("object", object.into()), ("size", Level::from(200_000))];
        let out = open(&quick(AZURE, &levels)).unwrap().measure(2).unwrap();
        for (time, throughput) in values(&out, TIME).iter().zip(values(&out, THROUGHPUT)) {
            assert!((throughput * time * 1e-9 - 2_000.0).abs() < 1e-3, "{operation} {object}: the size is scaled");
        }
        assert_eq!(values(&out, FIRST_BYTE).len(), if operation == UPLOAD { 0 } else { 2 }, "{operation}");
    }
}

/// Streams and an open loop: all requests are sent, and each has a time.
#[test]
fn several_streams_share_the_requests() {
    for rate in [0, 2_000] {
        let levels = [("concurrency", Level::from(4)), ("requests", 10.into()), ("rate", rate.into())];
        let mut opened = open(&quick(S3, &levels)).unwrap();
        let out = opened.measure(1).unwrap();
        assert_eq!(values(&out, TIME).len(), 10);
        assert_eq!(values(&out, TOTAL_THROUGHPUT).len(), 1);
        let facts = opened.session.facts(0).unwrap();
        let begins = if rate == 0 { "closed" } else { "open" };
        assert!(facts.get("loop").unwrap().to_string().starts_with(begins), "{facts}");
    }
}

#[test]
fn a_crossover_measures_both_stores_at_every_size() {
    let levels = [("pair", "google,azure".into()), ("smallest", Level::from(16_000)), ("largest", 256_000.into())];
    let mut opened = open(&quick(CROSSOVER, &levels)).unwrap();
    let [mut first, mut second] = [0; 2];
    // Two sizes are needed for a fit. The number of pairs of a trial depends on how busy the machine is.
    wait_until("both stores have a fit", || {
        let out = opened.measure(1).unwrap();
        first += values(&out, FIRST_TIME).len();
        second += values(&out, SECOND_TIME).len();
        matches!(opened.remark(|_| true), Some(Remark::Crossover { fits, .. }) if fits.len() == 2)
    });
    let Some(Remark::Crossover { stores, ranges, pairs, fits, fill, .. }) = opened.remark(|_| true) else { panic!() };
    assert_eq!(first, second);
    assert_eq!((stores, pairs), (vec!["google".to_string(), "azure".into()], first as u64));
    assert_eq!((ranges[0].from_bytes, ranges.last().unwrap().to_bytes), (16_000, 256_000));
    assert_eq!((fits.len(), fill.len()), (2, 2));
}

#[test]
fn the_default_table_has_the_stores_of_the_source() {
    let trimmed = |arms: Vec<Arm>| arms.iter().map(|arm| Storage.trimmed(arm)).collect::<Vec<_>>();
    let arms = chosen(trimmed(Storage.table_arms()), false).unwrap();
    assert!(arms.iter().all(|arm| check(arm).is_ok() && arm.variant != URL));
    assert_eq!(arms.iter().filter(|arm| arm.variant == CROSSOVER).count(), 6);
    assert_eq!(bills(&arms, 100), Ok(Vec::new()), "an emulated store costs nothing");
}

#[test]
fn two_addresses_get_a_crossover() {
    let url = |url: &str| arm(URL, &[("url", url.into())]);
    let mut arms: Vec<Arm> = Storage.table_arms().iter().map(|arm| Storage.trimmed(arm)).collect();
    arms.retain(|arm| arm.variant != URL);
    arms.extend([url("s3://a/x"), url("az://b/y")]);
    let of = chosen(arms, false).unwrap();
    let variants: Vec<&str> = of.iter().map(|arm| &*arm.variant).collect();
    assert_eq!(variants, [URL, URL, CROSSOVER]);
    assert_eq!(of[2].point.get("pair"), Some(&"s3://a/x,az://b/y".into()));
    assert_eq!(of[2].point.get("url"), Some(&"s3://a/x".into()), "nothing is emulated");
    assert_eq!(SPEC.emulated(&of[2]), None);
    assert_eq!(of[2].point.get("smallest"), Some(&1.into()));
    assert!(of[2].point.get("scale").is_none(), "real stores are not scaled");
    let [Remark::Bill { stores }] = &bills(&of, 100).unwrap()[..] else { panic!() };
    assert_eq!((stores.len(), stores[0].max_requests, stores[0].cost.clone()), (2, 5_000, None));
}

/// The emulated store verifies every checksum. Without one, it stores a flipped bit. Its answers have a CRC-64, unless
/// the upload had another checksum.
#[test]
fn a_flipped_bit_in_a_body_needs_a_checksum() {
    use ascertain_engine::finding::FaultNoticed::{ByClient, ByStore, Unnoticed};
    for (checksum, uploaded, downloaded) in [("none", Unnoticed, ByClient), ("sha256", ByStore, Unnoticed)] {
        let mut opened = open(&arm(FAULTS, &[("checksum", checksum.into())])).unwrap();
        let out = opened.measure(1).unwrap();
        let Some(Remark::Faults { places, .. }) = opened.remark(|_| true) else { panic!() };
        let noticed = |place: &str| places.iter().find(|one| one.place == place).unwrap().noticed;
        assert_eq!(
            (noticed("upload: body"), noticed("download: body")),
            (uploaded, downloaded),
            "{checksum} {places:?}"
        );
        assert_eq!((noticed("upload: key"), noticed("upload: signature")), (ByStore, ByStore), "{checksum}");
        assert_eq!(values(&out, NOTICED).len(), 10);
    }
}
