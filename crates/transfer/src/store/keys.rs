//! Signs requests. The crate `object_store` computes the signatures and renews tokens.

use std::error::Error;
use std::sync::Arc;

use hyper::header::{AUTHORIZATION, HeaderValue};
use object_store::aws::{AwsAuthorizer, AwsCredentialProvider};
use object_store::azure::{AzureAuthorizer, AzureCredentialProvider};
use object_store::client::HttpRequest;
use object_store::gcp::GcpCredentialProvider;

use super::Result;
use crate::Failure;

/// The credentials with which requests to a store are signed.
pub enum Keys {
    /// No credentials: requests are sent without a signature.
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
    /// Signs a request. The request must not be changed afterwards. `region` replaces the configured region of AWS.
    pub async fn sign(&self, request: &mut HttpRequest, region: Option<&str>) -> Result<()> {
        match self {
            Self::Anonymous => {}
            Self::Aws { credentials, service, region: own } => {
                let credential = credentials.get_credential().await.map_err(|error| no_token(&error))?;
                let texts = [Some(&credential.key_id), Some(&credential.secret_key), credential.token.as_ref()];
                visible(texts.into_iter().flatten())?;
                let region = region.unwrap_or(own);
                // For S3, the signed headers already contain a checksum of the body. To hash the body again for the
                // signature would cost more than all other work of an upload.
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
                // A service account with `disable_oauth` has an empty token. Emulators use such accounts.
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

/// Returns an error if the credentials contain characters that headers can't contain. With such characters, the signing
/// code would panic.
fn visible<'a>(texts: impl IntoIterator<Item = &'a String>) -> Result<()> {
    let fits = texts.into_iter().all(|text| text.bytes().all(|byte| byte.is_ascii_graphic()));
    if fits { Ok(()) } else { Err(unfit()) }
}

fn unfit() -> Failure {
    Failure::denied("the credentials contain characters that no key has; check for a line break")
}

/// Explains why the token service gave no token. Shows the message of an error only if our own client created it,
/// because other messages may contain secrets.
pub fn no_token(error: &object_store::Error) -> Failure {
    let mut cause: Option<&(dyn Error + 'static)> = error.source();
    while let Some(error) = cause {
        // `object_store` may have wrapped our failure in an `Arc`.
        let failure = error.downcast_ref::<Failure>().or_else(|| Some(&**error.downcast_ref::<Arc<Failure>>()?));
        if let Some(failure) = failure {
            return failure.clone().about("no token");
        }
        cause = error.source();
    }
    Failure::denied("could not get a token with these credentials")
}
