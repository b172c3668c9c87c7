//! Tests a client that outlives the daemon. The test is alone in its process, because it counts the descriptors of the
//! process.

use std::fs;

use ascertain_sync::barrierd::Client;
use ascertain_sys::testing::alone;

use crate::common::daemon::daemon;

/// Returns the number of BPF programs that are attached to this event by descriptors of this process.
fn programs_at(event: &str) -> usize {
    let infos = fs::read_dir("/proc/self/fdinfo").unwrap().flatten();
    let texts = infos.filter_map(|info| fs::read_to_string(info.path()).ok());
    texts.filter(|text| text.contains(&format!("tp_name:\t{event}\n"))).count()
}

/// Two BPF programs observe idle CPUs, and CPUs that come online. They run as long as a client lives, so the data that
/// the client reads stays correct after the daemon has ended.
#[test]
fn idleness_stays_true_when_the_daemon_is_gone() {
    alone(|| {
        let Some(mut daemon) = daemon() else { return };
        let client: Client = daemon.connect().unwrap();
        assert_eq!((programs_at("cpu_idle"), programs_at("local_timer_entry")), (2, 1));
        drop(daemon);
        assert!(!client.is_alive());
        assert_eq!(programs_at("cpuhp_enter"), 1);
        assert_eq!((programs_at("cpu_idle"), programs_at("local_timer_entry")), (1, 0));
        drop(client);
        assert_eq!((programs_at("cpu_idle"), programs_at("cpuhp_enter")), (0, 0));
    });
}
