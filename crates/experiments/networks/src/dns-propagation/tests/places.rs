//! Tests of the levels that are accepted, and of the errors for other levels.

use super::*;

#[test]
fn what_can_not_be_is_said() {
    let (zone, addresses) = served(&[1]);
    let (primary, silent) = (zone.primary().to_string(), UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
    let silent = silent.local_addr().unwrap().to_string();
    for (variant, levels, says) in [
        (WATCH, vec![("record", "a.example.")], "needs `expect="),
        (RFC2136, vec![("zone", "example.")], "needs `server="),
        (TOGETHER, vec![("record", "a.example.")], "`record` is only for `watch`"),
        (WATCH, vec![("record", "a..b"), ("expect", "x")], "is not a domain name"),
        (WATCH, vec![("record", "a.example."), ("expect", "x"), ("addresses", "no where")], "is not a name server"),
        (
            WATCH,
            vec![("record", "a.example."), ("expect", "x"), ("type", "A"), ("addresses", &addresses)],
            "`x` is not a value of a record of type A",
        ),
        (
            WATCH,
            vec![("record", "a.example."), ("expect", "x"), ("type", "X?"), ("addresses", &addresses)],
            "is not a record type",
        ),
        (EXEC, vec![("zone", "other."), ("exec", "/bin/true"), ("addresses", &addresses)], "answers Query Refused"),
        (
            WATCH,
            vec![("record", "a.example."), ("expect", "x"), ("interval_ms", "1"), ("addresses", "192.0.2.1")],
            "2000 queries per second to each server, but at most 1000",
        ),
        (RFC2136, vec![("zone", "example."), ("server", &silent), ("addresses", &addresses)], "refused"),
        (
            RFC2136,
            vec![("zone", "sub.example."), ("server", &primary), ("addresses", &addresses)],
            "not the zone's primary",
        ),
    ] {
        let error = measured(&arm_with(variant, &levels)).unwrap_err().to_string();
        assert!(error.contains(says), "{levels:?}: {error}");
    }
    let levels = [("zone", "example."), ("exec", "/bin/true"), ("addresses", &*silent)];
    let notes = tempfile::tempdir().unwrap();
    let error = opened(&arm_with(EXEC, &levels), notes.path()).unwrap().verify(0).unwrap_err().to_string();
    assert!(error.contains("does not answer"), "{error}");
}

#[test]
fn levels_are_settled_before_anything_is_asked() {
    let (folder, settled) = (tempfile::tempdir().unwrap(), |factor, text: &str| {
        DnsPropagation.settled(factor, Level::Text(text.into())).map(|level| level.to_string())
    });
    let program = folder.path().join("program").display().to_string();
    for (factor, text, is) in [
        ("addresses", "192.0.2.1,[2001:db8::1]:5353", "192.0.2.1:53,[2001:db8::1]:5353"),
        ("addresses", "192.0.2.1:53+192.0.2.2", "192.0.2.1:53,192.0.2.2:53"),
        ("resolver", "192.0.2.1", "192.0.2.1:53"),
        ("type", "aaaa", "aaaa"),
        ("record", "a.example", "a.example"),
        ("exec", "none", "none"),
    ] {
        assert_eq!(settled(factor, text).as_deref(), Ok(is));
    }
    for (factor, text) in [
        ("addresses", "192.0.2.1,no where"),
        ("resolver", "a b"),
        ("type", "X"),
        ("zone", "a..b"),
        ("exec", &program),
        ("zone_id", "a?b"),
    ] {
        settled(factor, text).unwrap_err();
    }
}

/// Servers must be refused if the bits in the header of their answers show that the answers cannot be used.
#[test]
fn servers_that_are_none_are_refused() {
    let kinds = [
        ([0x80, 0], "is not authoritative for the zone"),
        ([0x80, 0x80], "is a resolver with a cache, and not a server of the zone"),
        ([0x84, 2], "answers Server Failure"),
        ([0x86, 0], "truncates its answer over UDP"),
        // These bits are those of a query, not of an answer.
        ([4, 0], "does not answer; messages arrived, but none of them answers a query"),
    ];
    // Runs in parallel, because each case takes seconds in which almost nothing happens.
    thread::scope(|scope| {
        for (bits, says) in kinds {
            scope.spawn(move || is_refused(bits, says));
        }
    });
}

fn is_refused(bits: [u8; 2], says: &str) {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = socket.local_addr().unwrap().to_string();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| answer_with(&socket, bits, &is_over));
        let failed = |arm: Arm| {
            // The prober waits this long for each query that gets no answer.
            let is_answered = bits != [0x86, 0] && bits != [4, 0];
            let patience = if is_answered { PATIENCE } else { Duration::from_secs(3) };
            measured_within(&arm, patience).map(drop).unwrap_err().to_string()
        };
        let error = failed(arm_with(EXEC, &[("zone", "example."), ("exec", "/bin/true"), ("addresses", &address)]));
        // If another program makes the change, the run waits until its time limit for a correct answer of such a
        // server. A resolver is refused at once even then.
        let is_resolver = bits == [0x80, 0x80];
        let limit_s = if is_resolver { "240" } else { "1" };
        let levels = [("record", "a.example."), ("expect", "x"), ("addresses", &address), ("limit_s", limit_s)];
        let watched = failed(arm_with(WATCH, &levels));
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(watched.contains("after 1s "), !is_resolver, "{watched}");
        assert_eq!(watched == error, is_resolver, "{watched}");
        assert!(error.contains(says), "{bits:?}: {error}");
    });
}

#[test]
fn what_is_told_chooses_the_variant() {
    let chosen = |levels: &[(&str, &str)], names: &[&str]| {
        let point = levels
            .iter()
            .fold(DnsPropagation.spec().default_point(), |point, (factor, level)| point.with(factor, *level));
        let mut arms = DnsPropagation.table_arms();
        arms.iter_mut().for_each(|arm| arm.point = point.clone());
        arms.retain(|arm| names.is_empty() || names.contains(&arm.variant.as_str()));
        let variants = |arms: Vec<Arm>| arms.into_iter().map(|arm| arm.variant).collect::<Vec<_>>();
        DnsPropagation.chosen(arms, !names.is_empty()).map(variants)
    };
    assert_eq!(chosen(&[], &[]).unwrap().len(), 7);
    assert_eq!(chosen(&[("record", "a.example."), ("expect", "x")], &[]).unwrap(), [WATCH]);
    assert_eq!(chosen(&[("zone", "example."), ("server", "192.0.2.1")], &[]).unwrap(), [RFC2136]);
    for (levels, names, says) in [
        (vec![("record", "a.example.")], vec![], "`watch`: needs `expect=…`"),
        (vec![("server", "192.0.2.1")], vec![], "`rfc2136`: needs `zone=…`"),
        (vec![], vec![WATCH], "`watch`: needs `record=…`"),
        (vec![("record", "a.example."), ("expect", "x")], vec![TOGETHER], "`together`: `record` is only for `watch`"),
        (vec![("record", "a.example."), ("zone", "example.")], vec![], "no variant accepts all"),
        (vec![("zone", "example.")], vec![], "route53, cloud-dns; choose one"),
        // Factors about the servers to query do not select a variant with a simulated zone.
        (vec![("addresses", "192.0.2.1")], vec![], "`watch`: needs `record=…`"),
        (
            vec![("resolver", "192.0.2.1")],
            vec![TOGETHER],
            "`together`: `resolver` is only for zones that are not simulated",
        ),
        (vec![("type", "A")], vec![], "`watch`: needs `record=…`"),
        (vec![("family", "4")], vec![APART], "`apart`: `family` is only for zones that are not simulated"),
    ] {
        let error = chosen(&levels, &names).unwrap_err();
        assert!(error.contains(says), "{levels:?} {names:?}: {error}");
    }
}

#[test]
fn what_is_known_of_the_questions_takes_memory() {
    let addresses = ("addresses", "192.0.2.1,192.0.2.2,192.0.2.3,192.0.2.4");
    let watched = |levels: &[_]| DnsPropagation.memory_bytes(&[arm_with(WATCH, levels)]);
    // Four servers are each queried from two ports, ten times per second.
    assert_eq!(watched(&[addresses, ("limit_s", "100")]), 8_000 * super::super::super::QUESTION_BYTES);
    assert!(watched(&[addresses, ("limit_s", "86400")]) > 1 << 30);
    assert!(size_of::<Probe>() as u64 + 40 <= super::super::super::QUESTION_BYTES, "{}", size_of::<Probe>());
}

#[test]
fn names_are_expected_with_or_without_their_dot() {
    let (_zone, addresses) = served(&[1]);
    let is_expected = |kind: RecordType, expected: &str, said: &str| {
        let kind_text = kind.to_string();
        let levels = [("record", "a.example."), ("type", &kind_text), ("expect", expected), ("addresses", &addresses)];
        let updates = Updates::open(&[arm_with(WATCH, &levels)], &Setup::default()).unwrap();
        let answer = Answer {
            code: ResponseCode::NoError,
            is_authoritative: true,
            asks_others: false,
            is_truncated: false,
            serial: None,
            nsid: None,
            alias: None,
            values: vec![RData::try_from_str(kind, said).unwrap()],
        };
        (updates.arms[0].wanted(7).unwrap().is_new)(&answer)
    };
    use RecordType::{A, CNAME, MX};
    assert!(is_expected(CNAME, "There.example.net", "there.example.net."));
    assert!(is_expected(CNAME, "there.example.net.", "there.example.net."));
    assert!(is_expected(MX, "10 there.example.net", "10 there.example.net."));
    assert!(is_expected(A, "192.0.2.1", "192.0.2.1"));
    assert!(!is_expected(CNAME, "here.example.net", "there.example.net."));
    assert!(!is_expected(A, "192.0.2.1", "192.0.2.2"));
}

#[test]
fn a_zone_that_nobody_named_is_not_changed() {
    use RecordType::{A, CNAME, NS};
    let known = [
        ("alias.example.", CNAME, "example.org."),
        ("example.", NS, "ns.example."),
        ("example.org.", NS, "ns.example."),
        ("ns.example.", A, "127.0.0.1"),
    ];
    let of = |variant, zone: &str, by| {
        let resolver = resolver(&known, 100).to_string();
        Updates::open(&[arm_with(variant, &[("zone", zone), by, ("resolver", &resolver)])], &Setup::default())
            .map(|_| ())
    };
    for by in [(RFC2136, ("server", "127.0.0.1:1")), (EXEC, ("exec", "/bin/false"))] {
        for zone in ["mistyped.example", "alias.example"] {
            let error = of(by.0, zone, by.1).unwrap_err().to_string();
            assert!(error.contains(&format!("`{zone}` is not a zone; it is in example.")), "{error}");
        }
        of(by.0, "example", by.1).unwrap();
    }
}
