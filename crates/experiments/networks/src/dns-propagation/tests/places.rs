//! What may be asked for, and what is said where it may not.

use super::*;

#[test]
fn what_can_not_be_is_said() {
    let (zone, addresses) = served(&[1]);
    let (primary, silent) = (zone.primary().to_string(), UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
    let silent = silent.local_addr().unwrap().to_string();
    for (variant, levels, says) in [
        (WATCH, vec![("record", "a.example.")], "needs --at expect"),
        (RFC2136, vec![("zone", "example.")], "needs --at server"),
        (TOGETHER, vec![("record", "a.example.")], "`record` is for `watch`"),
        (WATCH, vec![("record", "a..b"), ("expect", "x")], "no name"),
        (WATCH, vec![("record", "a.example."), ("expect", "x"), ("addresses", "no where")], "is no name server"),
        (
            WATCH,
            vec![("record", "a.example."), ("expect", "x"), ("type", "A"), ("addresses", &addresses)],
            "`x` is nothing that a record of the type A says",
        ),
        (WATCH, vec![("record", "a.example."), ("expect", "x"), ("type", "X?"), ("addresses", &addresses)], "no type"),
        (EXEC, vec![("zone", "other."), ("exec", "/bin/true"), ("addresses", &addresses)], "answers Query Refused"),
        (
            WATCH,
            vec![("record", "a.example."), ("expect", "x"), ("interval_ms", "1"), ("addresses", "192.0.2.1")],
            "2000 questions a second to each server: at most 1000",
        ),
        (RFC2136, vec![("zone", "example."), ("server", &silent), ("addresses", &addresses)], "refused"),
        (
            RFC2136,
            vec![("zone", "sub.example."), ("server", &primary), ("addresses", &addresses)],
            "not the zone's primary",
        ),
    ] {
        let error = measured(&told(variant, &levels)).unwrap_err().to_string();
        assert!(error.contains(says), "{levels:?}: {error}");
    }
    let levels = [("zone", "example."), ("exec", "/bin/true"), ("addresses", &*silent)];
    let notes = tempfile::tempdir().unwrap();
    let error = opened(&told(EXEC, &levels), notes.path()).unwrap().verify(0).unwrap_err().to_string();
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

/// Whoever answers like this, with these bits of a message's head, tells nothing.
#[test]
fn servers_that_are_none_are_refused() {
    let kinds = [
        ([0x80, 0], "does not have the zone"),
        ([0x80, 0x80], "asks others and remembers what they said: it is no server of the zone"),
        ([0x84, 2], "answers Server Failure"),
        ([0x86, 0], "has no room for its answer in a datagram"),
        // No answer at all.
        ([4, 0], "does not answer; messages came that were no answers"),
    ];
    // One beside the other: each takes seconds, in which next to nothing is done.
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
            // The load waits this long for each question that is never answered.
            let is_answered = bits != [0x86, 0] && bits != [4, 0];
            let patience = if is_answered { PATIENCE } else { Duration::from_secs(3) };
            measured_within(&arm, patience).map(drop).unwrap_err().to_string()
        };
        let error = failed(told(EXEC, &[("zone", "example."), ("exec", "/bin/true"), ("addresses", &address)]));
        // If another program makes the change, this server may be waited for, but a resolver never is.
        let is_resolver = bits == [0x80, 0x80];
        let limit_s = if is_resolver { "240" } else { "1" };
        let levels = [("record", "a.example."), ("expect", "x"), ("addresses", &address), ("limit_s", limit_s)];
        let watched = failed(told(WATCH, &levels));
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
        (vec![("record", "a.example.")], vec![], "`watch`: needs --at expect=…"),
        (vec![("server", "192.0.2.1")], vec![], "`rfc2136`: needs --at zone=…"),
        (vec![], vec![WATCH], "`watch`: needs --at record=…"),
        (vec![("record", "a.example."), ("expect", "x")], vec![TOGETHER], "`together`: `record` is for `watch`"),
        (vec![("record", "a.example."), ("zone", "example.")], vec![], "no variant has a use for all"),
        (vec![("zone", "example.")], vec![], "route53, cloud-dns: say which with --variants"),
        // Nobody who tells whom to ask, or how, means what is simulated.
        (vec![("addresses", "192.0.2.1")], vec![], "`watch`: needs --at record=…"),
        (vec![("resolver", "192.0.2.1")], vec![TOGETHER], "`together`: `resolver` is for zones that are not simulated"),
        (vec![("type", "A")], vec![], "`watch`: needs --at record=…"),
        (vec![("family", "4")], vec![APART], "`apart`: `family` is for zones that are not simulated"),
    ] {
        let error = chosen(&levels, &names).unwrap_err();
        assert!(error.contains(says), "{levels:?} {names:?}: {error}");
    }
}

#[test]
fn what_is_known_of_the_questions_takes_memory() {
    let addresses = ("addresses", "192.0.2.1,192.0.2.2,192.0.2.3,192.0.2.4");
    let watched = |levels: &[_]| DnsPropagation.memory_bytes(&[told(WATCH, levels)]);
    // Four servers, two ports, ten times a second.
    assert_eq!(watched(&[addresses, ("limit_s", "100")]), 8_000 * super::super::super::QUESTION_BYTES);
    assert!(watched(&[addresses, ("limit_s", "86400")]) > 1 << 30);
    assert!(size_of::<Asked>() as u64 + 40 <= super::super::super::QUESTION_BYTES, "{}", size_of::<Asked>());
}

#[test]
fn names_are_expected_with_or_without_their_dot() {
    let (_zone, addresses) = served(&[1]);
    let is_expected = |kind: RecordType, expected: &str, said: &str| {
        let kind_text = kind.to_string();
        let levels = [("record", "a.example."), ("type", &kind_text), ("expect", expected), ("addresses", &addresses)];
        let updates = Updates::open(&[told(WATCH, &levels)], &Setup::default()).unwrap();
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
        (updates.targets[0].wanted(7).unwrap().is_new)(&answer)
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
        Updates::open(&[told(variant, &[("zone", zone), by, ("resolver", &resolver)])], &Setup::default()).map(|_| ())
    };
    for by in [(RFC2136, ("server", "127.0.0.1:1")), (EXEC, ("exec", "/bin/false"))] {
        for zone in ["mistyped.example", "alias.example"] {
            let error = of(by.0, zone, by.1).unwrap_err().to_string();
            assert!(error.contains(&format!("`{zone}` is no zone: it is in example.")), "{error}");
        }
        of(by.0, "example", by.1).unwrap();
    }
}
