//! End-to-end tests with zones at providers, which change their zones on HTTP requests. Credentials come only from the
//! environment, and `clean` removes the records of a killed run.

use std::fs;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use ascertain_netlab::dns::{SimulationSpec, ZoneServer};
use ascertain_netlab::provider::{HostedZone, Interface, Provider, RunningProvider};
use ascertain_sys::testing::wait_until;

use crate::common::{Ran, command, kill, ran};

const LOCAL: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);
const BOTH: [Interface; 2] = [Interface::Route53, Interface::CloudDns];

/// A simulated provider of a zone, whose servers publish changes immediately, and the settings for changing the zone.
struct Stand {
    running: RunningProvider,
    zone: ZoneServer,
    state: tempfile::TempDir,
    variables: Vec<(&'static str, String)>,
    secrets: Vec<String>,
}

impl Stand {
    fn new(interface: Interface, done_after: Duration) -> Self {
        let servers = vec![vec![Duration::ZERO]; 2];
        let sockets = servers.iter().map(|_| UdpSocket::bind(LOCAL).unwrap()).collect();
        let zone = ZoneServer::start(SimulationSpec::new(servers), TcpListener::bind(LOCAL).unwrap(), sockets).unwrap();
        let zones = vec![HostedZone::new("Z1", "example.", zone.primary())];
        let plan = match interface {
            Interface::Route53 => Provider::route53(zones),
            Interface::CloudDns => Provider::cloud_dns(zones),
        };
        let running = Provider { done_after, ..plan }.start(TcpListener::bind(LOCAL).unwrap()).unwrap();
        let state = tempfile::tempdir().unwrap();
        let Provider { account, secret, .. } = running.provider().clone();
        let (variables, secrets) = match interface {
            Interface::Route53 => (
                vec![
                    ("AWS_ACCESS_KEY_ID", account),
                    ("AWS_SECRET_ACCESS_KEY", secret.clone()),
                    ("AWS_ENDPOINT_URL_ROUTE_53", running.url().into()),
                ],
                vec![secret],
            ),
            Interface::CloudDns => {
                let (path, key) = (state.path().join("key.json"), running.service_account());
                fs::write(&path, &key).unwrap();
                // Parts of secrets: a line of the key, and the beginning of a token.
                let line = key.split("\\n").nth(3).unwrap().to_string();
                (
                    vec![("GOOGLE_APPLICATION_CREDENTIALS", path.display().to_string())],
                    vec![line, "ya29.".into(), "eyJ".into()],
                )
            }
        };
        Self { running, zone, state, variables, secrets }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = command(self.state.path(), arguments);
        // Remove all credentials: the user who runs the tests may have some for the real providers.
        for name in ["AWS_PROFILE", "AWS_SESSION_TOKEN", "GOOGLE_OAUTH_ACCESS_TOKEN", "GOOGLE_SERVICE_ACCOUNT_KEY"] {
            command.env_remove(name);
        }
        command.env("HOME", self.state.path()).env("NO_PROXY", "127.0.0.1").env_remove("CLOUDSDK_CONFIG");
        command
    }

    fn run(&self) -> Command {
        let addresses: Vec<String> = self.zone.servers().iter().map(ToString::to_string).collect();
        let (addresses, endpoint) =
            (format!("addresses={}", addresses.join(",")), format!("endpoint={}", self.running.url()));
        let mut arguments = vec![
            "run",
            "dns-propagation",
            "--trials",
            "1",
            "--max-time",
            "10min",
            "--at",
            "zone=example",
            "--at",
            &addresses,
        ];
        match self.running.provider().interface {
            Interface::Route53 => arguments.extend(["--variants", "route53"]),
            Interface::CloudDns => arguments.extend(["--variants", "cloud-dns", "--at", &endpoint]),
        }
        arguments.extend(["--at", "interval_ms=100", "--at", "ports=2"]);
        let mut command = self.command(&arguments);
        command.envs(self.variables.iter().cloned());
        command
    }

    /// Checks that neither the output nor any file contains a secret.
    fn check_secrets(&self, said: &[&Ran]) {
        let mut written: Vec<(String, Vec<u8>)> = Vec::new();
        for ran in said {
            written.push(("what it said".into(), [ran.stdout.as_bytes(), ran.stderr.as_bytes()].concat()));
        }
        read_all(&self.state.path().join("ascertain"), &mut written);
        assert!(written.len() > said.len(), "there is evidence");
        for ((place, bytes), secret) in written.iter().flat_map(|file| self.secrets.iter().map(move |s| (file, s))) {
            let is_in = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!is_in, "`{secret}` is in {place}");
        }
    }
}

fn read_all(folder: &Path, files: &mut Vec<(String, Vec<u8>)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_all(&path, files);
        } else {
            files.push((path.display().to_string(), fs::read(&path).unwrap()));
        }
    }
}

#[test]
fn a_zone_at_a_provider_is_changed_and_left_as_it_was() {
    for interface in BOTH {
        let stand = Stand::new(interface, Duration::from_millis(10));
        let ran = ran(stand.run().output().unwrap());
        assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
        assert!(ran.stdout.contains("done_before"), "{}", ran.stdout);
        assert!(stand.running.names().is_empty());
        let changes =
            stand.running.seen().iter().filter(|(what, _)| what.contains("Z1/") && what.starts_with("POST")).count();
        assert_eq!(changes, 2, "{:?}", stand.running.seen());
        stand.check_secrets(&[&ran]);
    }
}

#[test]
fn what_a_killed_run_has_left_is_cleaned_through_the_same_provider() {
    for interface in BOTH {
        let stand = Stand::new(interface, Duration::MAX);
        let mut child = stand.run().stderr(std::process::Stdio::null()).spawn().unwrap();
        wait_until("the record is there", || {
            assert!(child.try_wait().unwrap().is_none(), "it has ended");
            !stand.running.names().is_empty()
        });
        kill(child);
        let [name] = &stand.running.names()[..] else { panic!("one is left") };
        // Without credentials, `clean` keeps the record and the note about it.
        let without = ran(stand.command(&["clean", "."]).output().unwrap());
        assert_eq!(without.code, Some(5), "{}{}", without.stdout, without.stderr);
        assert!(without.stderr.contains("there are no credentials"), "{}", without.stderr);
        let clean = || ran(stand.command(&["clean", "."]).envs(stand.variables.iter().cloned()).output().unwrap());
        let cleaned = clean();
        assert_eq!(cleaned.code, Some(0), "{}{}", cleaned.stdout, cleaned.stderr);
        let by = if interface == Interface::Route53 { "at route53 Z1\n" } else { "at cloud-dns project Z1 http://" };
        assert!(cleaned.stdout.contains(name) && cleaned.stdout.contains(by), "{}", cleaned.stdout);
        assert!(stand.running.names().is_empty());
        assert_eq!(clean().stdout, "nothing to remove\n");
        stand.check_secrets(&[&without, &cleaned]);
    }
}
