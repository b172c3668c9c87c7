//! Keeps temporary credentials for AWS, and renews them before they expire.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use object_store::CredentialProvider;
use object_store::aws::AwsCredential;

use super::Result;
use crate::Failure;

/// Remaining lifetime of credentials at which they are renewed. It leaves time for long requests and for retries.
pub const MARGIN: Duration = Duration::from_secs(5 * 60);
/// Wait until the next attempt if credentials can't be renewed, but are still valid.
const WAIT: Duration = Duration::from_secs(10);

/// Credentials, and the time at which they expire. `None` if they never expire.
pub struct Issued {
    pub credential: AwsCredential,
    pub expires_at: Option<SystemTime>,
}

/// A service, a program or a cache that issues credentials.
#[async_trait]
pub trait Issuer: Send + Sync {
    async fn issue(&self) -> Result<Issued>;
}

/// Returns the current time. Tests use their own function.
type Clock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// Credentials that are issued for the first request, and again before they expire. All requests share them.
pub struct Renewing {
    issuer: Box<dyn Issuer>,
    clock: Clock,
    kept: Mutex<Option<Kept>>,
    /// Held while credentials are issued, so that this happens only once at a time.
    renewing: tokio::sync::Mutex<()>,
}

#[derive(Clone)]
struct Kept {
    credential: Arc<AwsCredential>,
    /// The times of the renewal and of the expiry; `None` if the credentials never expire.
    until: Option<(SystemTime, SystemTime)>,
}

impl Kept {
    fn is_fresh(&self, now: SystemTime) -> bool {
        self.until.is_none_or(|(renewal, _)| now < renewal)
    }

    fn is_valid(&self, now: SystemTime) -> bool {
        self.until.is_none_or(|(_, expiry)| now < expiry)
    }
}

impl Renewing {
    pub fn new(issuer: impl Issuer + 'static) -> Self {
        Self::with_clock(issuer, Arc::new(SystemTime::now))
    }

    fn with_clock(issuer: impl Issuer + 'static, clock: Clock) -> Self {
        Self { issuer: Box::new(issuer), clock, kept: Mutex::default(), renewing: tokio::sync::Mutex::default() }
    }

    fn kept(&self) -> Option<Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn keep(&self, kept: Kept) -> Arc<AwsCredential> {
        let credential = Arc::clone(&kept.credential);
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(kept);
        credential
    }

    /// Returns valid credentials. Near their expiry, the first request renews them, and other requests use the old
    /// credentials meanwhile. If the renewal fails, the old credentials are used until they expire.
    async fn get(&self) -> Result<Arc<AwsCredential>> {
        let now = (self.clock)();
        let valid = self.kept().filter(|kept| kept.is_valid(now));
        let _turn = match &valid {
            Some(kept) if kept.is_fresh(now) => return Ok(Arc::clone(&kept.credential)),
            Some(kept) => match self.renewing.try_lock() {
                Ok(turn) => turn,
                Err(_) => return Ok(Arc::clone(&kept.credential)),
            },
            None => self.renewing.lock().await,
        };
        // Another request may have renewed them while this one waited.
        if let Some(kept) = self.kept().filter(|kept| kept.is_fresh((self.clock)())) {
            return Ok(kept.credential);
        }
        match (self.issuer.issue().await, valid) {
            (Ok(issued), _) => {
                let until = issued.expires_at.map(|expiry| self.until(expiry)).transpose()?;
                Ok(self.keep(Kept { credential: Arc::new(issued.credential), until }))
            }
            (Err(failure), Some(Kept { credential, until: Some((_, expiry)) })) => {
                let now = (self.clock)();
                if now >= expiry {
                    return Err(failure);
                }
                Ok(self.keep(Kept { credential, until: Some((now + WAIT, expiry)) }))
            }
            (Err(failure), _) => Err(failure),
        }
    }

    /// Returns the times of the renewal and of the expiry of credentials that were just issued. Credentials with a
    /// short lifetime are renewed after half of it.
    fn until(&self, expiry: SystemTime) -> Result<(SystemTime, SystemTime)> {
        let lifetime = expiry.duration_since((self.clock)()).unwrap_or_default();
        if lifetime.is_zero() {
            return Err(Failure::denied("the new credentials have already expired; check this machine's clock"));
        }
        Ok((expiry - MARGIN.min(lifetime / 2), expiry))
    }
}

#[async_trait]
impl CredentialProvider for Renewing {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<AwsCredential>> {
        let failed = |failure| object_store::Error::Generic { store: "AWS", source: Box::<Failure>::new(failure) };
        self.get().await.map_err(failed)
    }
}

impl fmt::Debug for Renewing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Renewing").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use tokio::sync::Semaphore;

    use super::*;

    /// A clock that the test sets, and the state of an issuer that numbers its credentials. The issuer waits for a
    /// permit of the semaphore before it issues any.
    struct World {
        now_s: Mutex<u64>,
        lifetime_s: Mutex<Option<u64>>,
        issued: Mutex<u32>,
        is_down: Mutex<bool>,
        permits: Semaphore,
    }

    struct Counting(Arc<World>);

    #[async_trait]
    impl Issuer for Counting {
        async fn issue(&self) -> Result<Issued> {
            self.0.permits.acquire().await.unwrap().forget();
            if *self.0.is_down.lock().unwrap() {
                return Err(Failure::transient("down"));
            }
            let mut issued = self.0.issued.lock().unwrap();
            *issued += 1;
            let credential = AwsCredential { key_id: issued.to_string(), secret_key: "s".into(), token: None };
            let now_s = *self.0.now_s.lock().unwrap();
            let expires_at =
                self.0.lifetime_s.lock().unwrap().map(|lifetime| UNIX_EPOCH + Duration::from_secs(now_s + lifetime));
            Ok(Issued { credential, expires_at })
        }
    }

    fn start(lifetime_s: Option<u64>, permits: usize) -> (Arc<World>, Arc<Renewing>) {
        let world = Arc::new(World {
            now_s: Mutex::new(1_000_000),
            lifetime_s: Mutex::new(lifetime_s),
            issued: Mutex::new(0),
            is_down: Mutex::new(false),
            permits: Semaphore::new(permits),
        });
        let clock = Arc::clone(&world);
        let clock: Clock = Arc::new(move || UNIX_EPOCH + Duration::from_secs(*clock.now_s.lock().unwrap()));
        let renewing = Renewing::with_clock(Counting(Arc::clone(&world)), clock);
        (world, Arc::new(renewing))
    }

    impl World {
        fn pass(&self, seconds: u64) {
            *self.now_s.lock().unwrap() += seconds;
        }
    }

    async fn key(renewing: &Renewing) -> Result<String> {
        renewing.get().await.map(|credential| credential.key_id.clone())
    }

    #[tokio::test]
    async fn credentials_are_renewed_before_they_expire_and_not_earlier() {
        let (world, renewing) = start(Some(3600), 100);
        for (passed, expected) in [(0, "1"), (3299, "1"), (1, "2"), (10, "2"), (10_000, "3")] {
            world.pass(passed);
            assert_eq!(key(&renewing).await.unwrap(), expected, "after {passed} s");
        }
        // If they are valid for a minute, half of it is left for the requests.
        let (world, renewing) = start(Some(60), 100);
        for (passed, expected) in [(0, "1"), (29, "1"), (1, "2"), (29, "2"), (1, "3")] {
            world.pass(passed);
            assert_eq!(key(&renewing).await.unwrap(), expected, "after {passed} s");
        }
        let (world, renewing) = start(None, 100);
        for passed in [0, 1_000_000_000] {
            world.pass(passed);
            assert_eq!(key(&renewing).await.unwrap(), "1");
        }
        let (_, renewing) = start(Some(0), 100);
        let failure = key(&renewing).await.unwrap_err();
        assert!(failure.message.contains("already expired"), "{failure}");
    }

    #[tokio::test]
    async fn a_failed_renewal_is_repeated_later_while_the_old_credentials_are_valid() {
        let (world, renewing) = start(Some(3600), 100);
        assert_eq!(key(&renewing).await.unwrap(), "1");
        *world.is_down.lock().unwrap() = true;
        world.pass(3400);
        assert_eq!(key(&renewing).await.unwrap(), "1");
        let left = world.permits.available_permits();
        // The next attempt is made after ten seconds.
        world.pass(9);
        assert_eq!((key(&renewing).await.unwrap(), world.permits.available_permits()), ("1".into(), left));
        world.pass(1);
        assert_eq!((key(&renewing).await.unwrap(), world.permits.available_permits()), ("1".into(), left - 1));
        world.pass(190);
        assert_eq!(key(&renewing).await.unwrap_err().message, "down");
        *world.is_down.lock().unwrap() = false;
        assert_eq!(key(&renewing).await.unwrap(), "2");
    }

    #[tokio::test]
    async fn one_request_renews_them_for_all() {
        let (world, renewing) = start(Some(3600), 0);
        let get = |renewing: &Arc<Renewing>| {
            let renewing = Arc::clone(renewing);
            tokio::spawn(async move { key(&renewing).await.unwrap() })
        };
        let waiting: Vec<_> = (0..5).map(|_| get(&renewing)).collect();
        tokio::task::yield_now().await;
        world.permits.add_permits(1);
        for task in waiting {
            assert_eq!(task.await.unwrap(), "1");
        }
        // Near the expiry, only one request waits for new credentials.
        world.pass(3400);
        let first = get(&renewing);
        tokio::task::yield_now().await;
        for _ in 0..5 {
            assert_eq!(key(&renewing).await.unwrap(), "1");
        }
        world.permits.add_permits(1);
        assert_eq!(first.await.unwrap(), "2");
        assert_eq!(key(&renewing).await.unwrap(), "2");
    }
}
