//! Gets credentials from a program of the user's (`credential_process` in a profile of AWS).

use std::process::{Command, Stdio};
use std::time::Duration;

use async_trait::async_trait;
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::Result;
use super::renewal::{Issued, Issuer};
use super::sts::SessionCredentials;
use crate::Failure;

/// Maximum duration of the program. AWS's own tools use the same limit.
const LIMIT: Duration = Duration::from_secs(60);

/// A command line that prints credentials. A shell runs this command line. Its standard error is that of this process.
pub struct CredentialProcess {
    pub command: String,
    /// Description of the configuration, for messages.
    pub place: String,
}

#[derive(Deserialize)]
struct Printed {
    #[serde(rename = "Version")]
    version: u32,
    #[serde(flatten)]
    credentials: SessionCredentials,
}

#[async_trait]
impl Issuer for CredentialProcess {
    async fn issue(&self) -> Result<Issued> {
        let failed = |how: String| {
            Failure::denied(format!("the program in credential_process of {} {how}; run it to check it", self.place))
        };
        let mut command = Command::new("sh");
        // The program must not read standard input, because that may be the data to transfer.
        command.arg("-c").arg(&self.command).stdin(Stdio::null()).stdout(Stdio::piped());
        let child = command.spawn().map_err(|error| failed(format!("could not be started: {error}")))?;
        let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let Ok(waited) = timeout(LIMIT, spawn_blocking(move || child.wait_with_output())).await else {
            if let Some(id) = id {
                let _ = kill_process(id, Signal::KILL);
            }
            return Err(failed(format!("did not end within {} s", LIMIT.as_secs())));
        };
        let output = match waited {
            Ok(Ok(output)) => output,
            Ok(Err(error)) => return Err(failed(format!("could not be read: {error}"))),
            Err(_) => return Err(failed("was cancelled".into())),
        };
        if !output.status.success() {
            return Err(failed(format!("failed ({})", output.status)));
        }
        let printed: Option<Printed> = serde_json::from_slice(&output.stdout).ok();
        // The output is not shown, because it may contain secrets.
        let printed = printed.filter(|printed| printed.version == 1).and_then(|printed| printed.credentials.issued());
        printed.ok_or_else(|| failed("did not print credentials as JSON of version 1".into()))
    }
}
