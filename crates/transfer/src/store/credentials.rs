//! Finds credentials for Azure and Google, in the same order as other tools: explicit options, the environment, shared
//! files, token services. A cloud's machines get tokens from a metadata address. This address is used only if the
//! options permit it, because on other machines any host may answer there.

use std::sync::Arc;

use object_store::azure::{AzureAccessKey, AzureCredential, MicrosoftAzureBuilder, split_sas};
use object_store::gcp::{GcpCredential, GoogleCloudStorageBuilder};
use object_store::{RetryConfig, StaticCredentialProvider};

use super::Result;
use super::keys::{Keys, no_token};
use super::open::{Environment, Options};
use super::transport::Transport;
use crate::Failure;

/// Returns a configuration that disables retries in `object_store`, because our caller repeats failed requests.
pub fn no_retries() -> RetryConfig {
    RetryConfig { max_retries: 0, ..RetryConfig::default() }
}

/// An Azure storage account: its endpoint and credentials.
pub struct AzureAccount {
    pub endpoint: String,
    pub keys: Keys,
}

/// The properties of an Azure account that the address of an object contains. They have priority over a connection
/// string and the environment.
#[derive(Default)]
pub struct AzureHints {
    pub account: Option<String>,
    pub endpoint: Option<String>,
    pub sas: Option<String>,
}

pub fn azure(hints: AzureHints, options: &Options, transport: &Transport) -> Result<AzureAccount> {
    let environment = &options.environment;
    let string = environment.first(&["AZURE_STORAGE_CONNECTION_STRING"]).unwrap_or_default();
    let emulated = "UseDevelopmentStorage=true;AccountName=devstoreaccount1;\
                    BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1;";
    let string = if part(string, "UseDevelopmentStorage").is_some() { emulated } else { string };
    // A connection string for another account is ignored.
    let string =
        if hints.account.is_some() && hints.account.as_deref() != part(string, "AccountName") { "" } else { string };
    // If the environment names another account, the keys in the environment are ignored too.
    let named = environment.first(&["AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_ACCOUNT_NAME"]);
    let is_other = hints.account.as_deref().zip(named).is_some_and(|(asked, named)| !asked.eq_ignore_ascii_case(named));
    let account = hints.account.or_else(|| part(string, "AccountName").or(named).map(String::from));
    let endpoint = hints
        .endpoint
        .or_else(|| options.endpoint_url.clone())
        .or_else(|| part(string, "BlobEndpoint").map(Into::into));
    let endpoint = match (endpoint, &account) {
        (Some(endpoint), _) => endpoint,
        (None, Some(account)) => {
            let suffix = part(string, "EndpointSuffix").unwrap_or("core.windows.net");
            let protocol = part(string, "DefaultEndpointsProtocol").unwrap_or("https");
            format!("{protocol}://{account}.blob.{suffix}")
        }
        (None, None) => {
            return Err(Failure::denied(
                "the account is not known; set AZURE_STORAGE_ACCOUNT or AZURE_STORAGE_CONNECTION_STRING",
            ));
        }
    };
    let key = part(string, "AccountKey").or_else(|| (string == emulated).then_some(EMULATED_KEY)).map(String::from);
    let sas = hints.sas.or_else(|| part(string, "SharedAccessSignature").map(String::from));
    // A SAS has priority over a key below. So if there are credentials already, the environment is not read: a SAS in
    // the environment must not replace a key from the connection string.
    let (key, sas) = if key.is_some() || sas.is_some() || is_other {
        (key, sas)
    } else {
        let set = |names| environment.first(names).map(String::from);
        (
            set(&["AZURE_STORAGE_KEY", "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_ACCESS_KEY"]),
            set(&["AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_SAS_KEY"]),
        )
    };
    let fixed = |credential| Arc::new(StaticCredentialProvider::new(credential)) as _;
    let account = account.unwrap_or_default();
    let keys = if options.anonymous {
        Keys::Anonymous
    } else if let Some(sas) = sas {
        let pairs = split_sas(sas.trim_start_matches('?')).map_err(|_| Failure::denied("the SAS is incomplete"))?;
        Keys::Azure { credentials: fixed(AzureCredential::SASToken(pairs)), account }
    } else if let Some(key) = key {
        let key = AzureAccessKey::try_new(&key).map_err(|_| Failure::denied("the account's key is not in base64"))?;
        Keys::Azure { credentials: fixed(AzureCredential::AccessKey(key)), account }
    } else {
        let credentials = entra(options, &account, transport)?;
        Keys::Azure { credentials, account }
    };
    Ok(AzureAccount { endpoint, keys })
}

/// The account key of the Azurite emulator. The key is public and the same in every installation.
const EMULATED_KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// Returns credentials that get tokens from Microsoft Entra ID, Azure's directory service.
fn entra(
    options: &Options,
    account: &str,
    transport: &Transport,
) -> Result<object_store::azure::AzureCredentialProvider> {
    let environment = &options.environment;
    let builder = MicrosoftAzureBuilder::new()
        .with_account(if account.is_empty() { "any" } else { account })
        .with_container_name("any")
        .with_retry(no_retries())
        .with_http_connector(transport.clone());
    let [tenant, id, secret, file, authority] = [
        "AZURE_TENANT_ID",
        "AZURE_CLIENT_ID",
        "AZURE_CLIENT_SECRET",
        "AZURE_FEDERATED_TOKEN_FILE",
        "AZURE_AUTHORITY_HOST",
    ]
    .map(|name| environment.first(&[name]));
    let builder = match authority {
        Some(authority) => builder.with_authority_host(authority),
        None => builder,
    };
    let builder = match (tenant, id, secret, file) {
        (Some(tenant), Some(id), Some(secret), _) => {
            builder.with_client_secret_authorization(id, secret, tenant).with_credential_type("client_secret")
        }
        (Some(tenant), Some(id), None, Some(file)) => builder
            .with_tenant_id(tenant)
            .with_client_id(id)
            .with_federated_token_file(file)
            .with_credential_type("workload_identity"),
        _ if options.machine_credentials => builder.with_credential_type("managed_identity"),
        _ => {
            return Err(Failure::denied(
                "there are no credentials: set AZURE_STORAGE_CONNECTION_STRING, AZURE_STORAGE_KEY or \
                 AZURE_STORAGE_SAS_TOKEN",
            ));
        }
    };
    Ok(builder.build().map_err(|error| no_token(&error))?.credentials().clone())
}

/// Returns the value of the field `key` in an Azure connection string (`AccountName=…;AccountKey=…`).
fn part<'a>(string: &'a str, key: &str) -> Option<&'a str> {
    let parts = string.split(';').filter_map(|part| part.split_once('='));
    parts
        .map(|(name, value)| (name.trim(), value.trim()))
        .find(|(name, _)| name.eq_ignore_ascii_case(key))
        .map(|(_, value)| value)
}

pub fn google(options: &Options, transport: &Transport) -> Result<Keys> {
    if options.anonymous {
        return Ok(Keys::Anonymous);
    }
    let environment = &options.environment;
    if let Some(keys) = google_token(environment) {
        return Ok(keys);
    }
    let builder = GoogleCloudStorageBuilder::new()
        .with_bucket_name("any")
        .with_retry(no_retries())
        .with_http_connector(transport.clone());
    let file = google_file(environment);
    let builder = if let Some(key) = environment.first(&["GOOGLE_SERVICE_ACCOUNT_KEY"]) {
        builder.with_service_account_key(key)
    } else if let Some(file) = &file {
        // If the file did not exist, `object_store` would ask the metadata address.
        if let Err(error) = std::fs::metadata(file) {
            return Err(Failure::denied(format!("could not read the credentials in {file}: {error}")));
        }
        builder.with_application_credentials(file)
    } else if options.machine_credentials {
        builder
    } else {
        return Err(Failure::denied(NO_GOOGLE));
    };
    let store = builder.build().map_err(|_| {
        let place = file.unwrap_or_else(|| "GOOGLE_SERVICE_ACCOUNT_KEY".into());
        Failure::denied(format!("{place} contains neither a service account's key nor a user's login"))
    })?;
    Ok(Keys::Google(store.credentials().clone()))
}

/// The message if there are no credentials for Google.
pub const NO_GOOGLE: &str = "there are no credentials: name a service account's file in \
                             GOOGLE_APPLICATION_CREDENTIALS, or log in with `gcloud auth application-default login`";

/// Returns credentials with the token in the environment; `None` if the environment has no token.
pub fn google_token(environment: &Environment) -> Option<Keys> {
    let token = environment.first(&["GOOGLE_OAUTH_ACCESS_TOKEN", "CLOUDSDK_AUTH_ACCESS_TOKEN"])?;
    Some(Keys::Google(Arc::new(StaticCredentialProvider::new(GcpCredential { bearer: token.into() }))))
}

/// Returns the path of the file with Google credentials. It contains a service account's key, or the login of a user.
pub fn google_file(environment: &Environment) -> Option<String> {
    let named = environment.first(&["GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT"]).map(String::from);
    named.or_else(|| {
        let folder = environment.first(&["CLOUDSDK_CONFIG"]).map(Into::into);
        let folder = folder.or_else(|| environment.home(".config/gcloud"))?;
        let file = folder.join("application_default_credentials.json");
        file.is_file().then(|| file.to_string_lossy().into_owned())
    })
}
