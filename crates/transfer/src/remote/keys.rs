//! Signing requests. What is signed, and how, is `object_store`'s to know; tokens are renewed by it.

use std::error::Error;
use std::sync::Arc;

use hyper::header::{AUTHORIZATION, HeaderValue};
use object_store::aws::{AwsAuthorizer, AwsCredentialProvider};
use object_store::azure::{AzureAuthorizer, AzureCredentialProvider};
use object_store::client::HttpRequest;
use object_store::gcp::GcpCredentialProvider;

use crate::{Failure, Kind};

/// Who we are to a store.
pub enum Keys {
    /// Nobody.
    Anonymous,
    Aws {
        credentials: AwsCredentialProvider,
        service: &'static str,
        region: String,
    },
    Azure {
        credentials: AzureCredentialProvider,
        account: String,
    },
    Google(GcpCredentialProvider),
}

impl Keys {
    /// Signs a request, which must not change behind that.
    pub async fn sign(&self, request: &mut HttpRequest) -> Result<(), Failure> {
        match self {
            Self::Anonymous => {}
            Self::Aws { credentials, service, region } => {
                let credential = credentials.get_credential().await.map_err(|error| no_token(&error))?;
                let texts = [Some(&credential.key_id), Some(&credential.secret_key), credential.token.as_ref()];
                visible(texts.into_iter().flatten())?;
                // With S3 a checksum is among the headers that are signed; hashing the body as well would cost more
                // than all the rest of an upload.
                let authorizer = AwsAuthorizer::new(&credential, service, region).with_sign_payload(*service != "s3");
                authorizer.try_authorize(request, None).map_err(|error| no_token(&error))?;
            }
            Self::Azure { credentials, account } => {
                let credential = credentials.get_credential().await.map_err(|error| no_token(&error))?;
                visible([account])?;
                if let object_store::azure::AzureCredential::BearerToken(token) = &*credential {
                    visible([token])?;
                }
                AzureAuthorizer::new(&credential, account).try_authorize(request).map_err(|error| no_token(&error))?;
            }
            Self::Google(credentials) => {
                let credential = credentials.get_credential().await.map_err(|error| no_token(&error))?;
                // A service account with `disable_oauth`, as stores for tests have it.
                if credential.bearer.is_empty() {
                    return Ok(());
                }
                visible([&credential.bearer])?;
                let value = HeaderValue::try_from(format!("Bearer {}", credential.bearer));
                let mut value = value.map_err(|_| unfit())?;
                value.set_sensitive(true);
                request.headers_mut().insert(AUTHORIZATION, value);
            }
        }
        Ok(())
    }
}

/// What is put into headers has to fit there: the signing code relies on it.
fn visible<'a>(texts: impl IntoIterator<Item = &'a String>) -> Result<(), Failure> {
    let fits = texts.into_iter().all(|text| text.bytes().all(|byte| byte.is_ascii_graphic()));
    if fits { Ok(()) } else { Err(unfit()) }
}

fn unfit() -> Failure {
    denied("the credentials have characters that no key has: were they cut or pasted with a line's end?".into())
}

pub fn denied(said: String) -> Failure {
    Failure { kind: Kind::Denied, said }
}

/// Why there is no token. The error's own words can have it in them; those of our client can't.
pub fn no_token(error: &object_store::Error) -> Failure {
    let mut cause: Option<&(dyn Error + 'static)> = error.source();
    while let Some(error) = cause {
        // An error in an `Arc` hides what it is.
        let failure = error.downcast_ref::<Failure>().or_else(|| Some(&**error.downcast_ref::<Arc<Failure>>()?));
        if let Some(failure) = failure {
            return Failure { kind: failure.kind, said: format!("no token: {}", failure.said) };
        }
        cause = error.source();
    }
    denied("no token can be had with these credentials".into())
}
