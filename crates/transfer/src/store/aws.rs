//! Finds the endpoints, the regions and the credentials of AWS: in explicit options, the environment, and the shared
//! files of AWS's tools.

use std::sync::Arc;

use object_store::StaticCredentialProvider;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, AwsCredential, AwsCredentialProvider};

use super::Result;
use super::credential_process::CredentialProcess;
use super::credentials::no_retries;
use super::keys::{Keys, no_token};
use super::open::{Environment, Options, parse_endpoint};
use super::profile::Profile;
use super::renewal::{Issuer, Renewing};
use super::sso::{SsoRole, cache_name};
use super::sts::{Proof, Role};
use super::transport::Transport;
use crate::Failure;

/// The name of the session of a role, if none is configured. It appears in the logs of AWS.
const SESSION_NAME: &str = "ascertain";
/// The message if there are no credentials for AWS.
const NO_AWS: &str = "there are no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a profile of \
                      ~/.aws/credentials";

/// Returns the AWS region that the options, the environment or the profile name; `us-east-1` by default.
pub fn region<'a>(options: &'a Options, profile: &'a Profile) -> &'a str {
    let named = options.environment.first(&["AWS_REGION", "AWS_DEFAULT_REGION"]);
    options.region.as_deref().or(named).or_else(|| profile.get("region")).unwrap_or("us-east-1")
}

/// Returns the domain of AWS's services in a region.
pub fn domain(region: &str) -> &'static str {
    if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" }
}

/// Returns the endpoint that the environment or the profile configures for a service; `None` for AWS's own endpoint.
/// `service` is the identifier that AWS uses in profiles, for example `s3` or `route_53`.
pub fn endpoint<'a>(environment: &'a Environment, profile: &'a Profile, service: &str) -> Option<&'a str> {
    let ignored = environment.first(&["AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"]);
    let ignored = ignored.or_else(|| profile.get("ignore_configured_endpoint_urls"));
    if ignored.is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return None;
    }
    let variable = format!("AWS_ENDPOINT_URL_{}", service.to_ascii_uppercase());
    let nested = format!("{service}.endpoint_url");
    environment
        .first(&[&variable, "AWS_ENDPOINT_URL"])
        .or_else(|| profile.get_in("services", profile.get("services")?, &nested))
        // Plugins of the AWS CLI read this setting.
        .or_else(|| profile.get(&nested))
        .or_else(|| profile.get("endpoint_url"))
}

/// Finds the credentials for AWS. `service` is the name of the service in signatures, for example `s3`.
pub fn keys(
    options: &Options,
    profile: &Profile,
    service: &'static str,
    region: &str,
    transport: &Transport,
) -> Result<Keys> {
    if options.anonymous {
        return Ok(Keys::Anonymous);
    }
    let finder = Finder { options, region, transport };
    // If the options name a profile, the profile has priority over the environment.
    let environment = if options.profile.is_some() { &Environment::default() } else { &options.environment };
    let credentials = if let Some(credentials) = in_environment(environment)? {
        credentials
    } else if let Some(credentials) = finder.of_profile(profile, &[])? {
        credentials
    } else if let Some(file) = environment.first(&["AWS_WEB_IDENTITY_TOKEN_FILE"]) {
        let arn = environment.first(&["AWS_ROLE_ARN"]);
        let arn = arn.ok_or_else(|| unset("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN"))?;
        let name = environment.first(&["AWS_ROLE_SESSION_NAME"]);
        let place = "AWS_WEB_IDENTITY_TOKEN_FILE".to_string();
        finder.role(profile, arn, name, Proof::TokenFile(file.into()), place)?
    } else if let Some(credentials) = finder.of_container(environment)? {
        credentials
    } else if options.machine_credentials {
        finder.provider(AmazonS3Builder::new())?
    } else {
        return Err(Failure::denied(NO_AWS));
    };
    Ok(Keys::Aws { credentials, service, region: region.into() })
}

fn fixed(key_id: &str, secret_key: &str, token: Option<&str>) -> AwsCredentialProvider {
    let (key_id, secret_key, token) = (key_id.into(), secret_key.into(), token.map(Into::into));
    Arc::new(StaticCredentialProvider::new(AwsCredential { key_id, secret_key, token }))
}

fn renewing(issuer: impl Issuer + 'static) -> AwsCredentialProvider {
    Arc::new(Renewing::new(issuer))
}

fn unset(set: &str, other: &str) -> Failure {
    Failure::denied(format!("{set} is set, but {other} is not; set both"))
}

/// Returns the access key in the environment.
fn in_environment(environment: &Environment) -> Result<Option<AwsCredentialProvider>> {
    match (environment.first(&["AWS_ACCESS_KEY_ID"]), environment.first(&["AWS_SECRET_ACCESS_KEY"])) {
        (Some(id), Some(secret)) => Ok(Some(fixed(id, secret, environment.first(&["AWS_SESSION_TOKEN"])))),
        (None, None) => Ok(None),
        _ => Err(Failure::denied(
            "only one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY is set; set both, or none of them",
        )),
    }
}

/// Returns the access key in a profile.
fn in_profile(profile: &Profile) -> Option<AwsCredentialProvider> {
    let (id, secret) = (profile.get("aws_access_key_id")?, profile.get("aws_secret_access_key")?);
    Some(fixed(id, secret, profile.get("aws_session_token")))
}

/// The settings that all sources of credentials need.
struct Finder<'a> {
    options: &'a Options,
    region: &'a str,
    transport: &'a Transport,
}

impl Finder<'_> {
    /// Returns the credentials of a profile; `None` if it configures none. `users` are the profiles that use this
    /// profile as their `source_profile`.
    fn of_profile(&self, profile: &Profile, users: &[&str]) -> Result<Option<AwsCredentialProvider>> {
        let place = format!("the profile {}", profile.name());
        let key = in_profile(profile);
        // A role may name its own profile as the source, which then contains an access key.
        if let Some(arn) = profile.get("role_arn").filter(|_| users.is_empty() || key.is_none()) {
            let proof = self.proof(profile, &place, users)?;
            return self.role(profile, arn, profile.get("role_session_name"), proof, place).map(Some);
        }
        if profile.get("sso_session").or_else(|| profile.get("sso_start_url")).is_some() {
            return self.sso(profile, &place).map(Some);
        }
        if let Some(key) = key {
            return Ok(Some(key));
        }
        let command = profile.get("credential_process").map(String::from);
        Ok(command.map(|command| renewing(CredentialProcess { command, place })))
    }

    /// Returns the proof that the role of a profile may be assumed.
    fn proof(&self, profile: &Profile, place: &str, users: &[&str]) -> Result<Proof> {
        if let Some(file) = profile.get("web_identity_token_file") {
            return Ok(Proof::TokenFile(file.into()));
        }
        if profile.get("mfa_serial").is_some() {
            let name = profile.name();
            let way = format!("eval \"$(aws configure export-credentials --profile {name} --format env)\"");
            return Err(Failure::denied(format!(
                "{place} in ~/.aws contains mfa_serial, which is not supported because a user must enter a code; run \
                 {way}, and then leave out the profile"
            )));
        }
        let credentials = match (profile.get("source_profile"), profile.get("credential_source")) {
            (Some(_), Some(_)) => {
                return Err(Failure::denied(format!(
                    "{place} contains both source_profile and credential_source; remove one of them"
                )));
            }
            (Some(source), _) if users.contains(&source) => {
                return Err(Failure::denied(format!(
                    "{place} and its source_profile {source} refer to each other in a circle; name another \
                     source_profile"
                )));
            }
            (Some(source), _) => {
                let users = [users, &[profile.name()]].concat();
                let found = match profile.other(source) {
                    Ok(of) if of.name() == profile.name() => in_profile(&of),
                    Ok(of) => self.of_profile(&of, &users)?,
                    Err(failure) => return Err(failure.about(&format!("source_profile of {place}"))),
                };
                found.ok_or_else(|| {
                    Failure::denied(format!("the profile {source}, the source_profile of {place}, has no credentials"))
                })?
            }
            (None, Some("Environment")) => in_environment(&self.options.environment)?.ok_or_else(|| {
                Failure::denied(format!(
                    "{place} takes its credentials from the environment; set AWS_ACCESS_KEY_ID and \
                     AWS_SECRET_ACCESS_KEY"
                ))
            })?,
            // The profile names the metadata address explicitly, so no further permission is needed.
            (None, Some("Ec2InstanceMetadata")) => self.provider(AmazonS3Builder::new())?,
            (None, Some("EcsContainer")) => self.of_container(&self.options.environment)?.ok_or_else(|| {
                Failure::denied(format!(
                    "{place} takes its credentials from the container, but AWS_CONTAINER_CREDENTIALS_RELATIVE_URI is \
                     not set"
                ))
            })?,
            (None, Some(other)) => {
                return Err(Failure::denied(format!(
                    "{place} has the unknown credential_source {other}; expected Environment, Ec2InstanceMetadata or \
                     EcsContainer"
                )));
            }
            (None, None) => {
                return Err(Failure::denied(format!(
                    "{place} contains role_arn, but no source of credentials; add source_profile or credential_source"
                )));
            }
        };
        Ok(Proof::Keys(Keys::Aws { credentials, service: "sts", region: self.region_of(profile) }))
    }

    /// Returns the region in which the credentials of a profile are requested.
    fn region_of(&self, profile: &Profile) -> String {
        profile.get("region").unwrap_or(self.region).into()
    }

    /// Returns credentials that STS issues for a role.
    fn role(
        &self,
        profile: &Profile,
        arn: &str,
        session_name: Option<&str>,
        proof: Proof,
        place: String,
    ) -> Result<AwsCredentialProvider> {
        let region = self.region_of(profile);
        let parameter = |name, key| profile.get(key).map(|value| (name, value.into()));
        let parameters = [parameter("ExternalId", "external_id"), parameter("DurationSeconds", "duration_seconds")];
        let endpoint = self.endpoint(profile, "sts", "sts", &region)?;
        Ok(renewing(Role {
            transport: self.transport.clone(),
            endpoint: format!("{endpoint}/"),
            arn: arn.into(),
            session_name: session_name.unwrap_or(SESSION_NAME).into(),
            parameters: parameters.into_iter().flatten().collect(),
            proof,
            place,
        }))
    }

    /// Returns credentials that IAM Identity Center issues for a role, with a login from the cache.
    fn sso(&self, profile: &Profile, place: &str) -> Result<AwsCredentialProvider> {
        let session = profile.get("sso_session");
        let setting = |key: &'static str| {
            let value = session.and_then(|session| profile.get_in("sso-session", session, key));
            let missing = || {
                let section = session.map(|session| format!(" and [sso-session {session}]")).unwrap_or_default();
                Failure::denied(format!("{key} is missing in {place}{section}; run `aws configure sso`"))
            };
            value.or_else(|| profile.get(key)).ok_or_else(missing)
        };
        let (region, start) = (setting("sso_region")?, setting("sso_start_url")?);
        let cache = self.options.environment.home(".aws/sso/cache");
        let cache = cache.ok_or_else(|| Failure::denied(format!("{place} uses SSO, but HOME is not set; set it")))?;
        let login = match profile.name() {
            "default" => "aws sso login".into(),
            name => format!("aws sso login --profile {name}"),
        };
        Ok(renewing(SsoRole {
            transport: self.transport.clone(),
            portal: self.endpoint(profile, "sso", "portal.sso", region)?,
            oidc: self.endpoint(profile, "sso_oidc", "oidc", region)?,
            account: setting("sso_account_id")?.into(),
            role: setting("sso_role_name")?.into(),
            cache: cache.join(cache_name(session.unwrap_or(start))),
            login,
        }))
    }

    /// Returns the endpoint of a service that issues credentials, without a slash at its end. `host` is the first part
    /// of the host at AWS.
    fn endpoint(&self, profile: &Profile, service: &str, host: &str, region: &str) -> Result<String> {
        match endpoint(&self.options.environment, profile, service) {
            Some(endpoint) => Ok(parse_endpoint(endpoint)?.trimmed().into()),
            None => Ok(format!("https://{host}.{region}.{}", domain(region))),
        }
    }

    /// Returns credentials for the container in which this process runs; `None` if the environment names none.
    fn of_container(&self, environment: &Environment) -> Result<Option<AwsCredentialProvider>> {
        use AmazonS3ConfigKey as Key;
        const RELATIVE: &str = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI";
        const FULL: &str = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
        const TOKEN: &str = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE";
        let builder = AmazonS3Builder::new();
        let builder = if let Some(path) = environment.first(&[RELATIVE]) {
            builder.with_config(Key::ContainerCredentialsRelativeUri, path)
        } else if let Some(url) = environment.first(&[FULL]) {
            let token = environment.first(&[TOKEN]).ok_or_else(|| unset(FULL, TOKEN))?;
            let builder = builder.with_config(Key::ContainerCredentialsFullUri, url);
            builder.with_config(Key::ContainerAuthorizationTokenFile, token)
        } else {
            return Ok(None);
        };
        self.provider(builder).map(Some)
    }

    /// Returns the credentials that a configuration of `object_store` gets and renews.
    fn provider(&self, builder: AmazonS3Builder) -> Result<AwsCredentialProvider> {
        let builder = builder.with_bucket_name("any").with_region(self.region).with_retry(no_retries());
        let store = builder.with_http_connector(self.transport.clone()).build().map_err(|error| no_token(&error))?;
        Ok(Arc::clone(store.credentials()))
    }
}
