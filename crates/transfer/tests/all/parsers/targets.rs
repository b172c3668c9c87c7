//! The properties that hold for every journal, answer and address, valid or not. `fuzz/` checks the same properties.

// The path is explicit, because `fuzz/` includes this file without its folder.
#[path = "../common/web.rs"]
#[allow(dead_code)]
pub mod web;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

use ascertain_transfer::{
    Attempt, Environment, Error, Failure, Limits, Location, ObjectMeta, Options, PartBody, PutOptions, RangeWriter,
    Resume, Settings, Stop, Store, TransferManager, Upload, crc64, open,
};
use async_trait::async_trait;
use bytes::Bytes;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// A store with a single object that contains these bytes.
#[derive(Debug)]
struct FixedObject(Bytes);

#[async_trait]
impl Store for FixedObject {
    fn limits(&self) -> Limits {
        Limits { min_part_bytes: 1, max_part_bytes: 1 << 40, max_parts: 1000, max_put_bytes: 1 << 40 }
    }

    async fn head(&self, name: &str, _: &mut Attempt) -> Result<Option<ObjectMeta>, Failure> {
        let (bytes, crc64) = (self.0.len() as u64, Some(crc64(&self.0)));
        let (name, etag) = (name.into(), Some("1".into()));
        Ok(Some(ObjectMeta { name, bytes, etag, crc64, ..ObjectMeta::default() }))
    }

    async fn get_range(&self, _: &ObjectMeta, mut into: RangeWriter, _: &mut Attempt) -> Result<RangeWriter, Failure> {
        let range = into.range();
        let bytes = self.0.slice(range.start as usize..range.end as usize);
        into.add(&bytes).map(|()| into)
    }

    async fn put(&self, _: &str, _: PartBody, _: &PutOptions, _: &mut Attempt) -> Result<ObjectMeta, Failure> {
        unreachable!("nothing is put")
    }

    async fn start_upload(&self, _: &str, _: &PutOptions, _: &mut Attempt) -> Result<Upload, Failure> {
        unreachable!("nothing is put")
    }

    async fn put_part(&self, _: &Upload, _: usize, _: PartBody, _: &mut Attempt) -> Result<String, Failure> {
        unreachable!("nothing is put")
    }

    async fn commit(
        &self,
        _: &Upload,
        _: &[String],
        _: u64,
        _: &PutOptions,
        _: &mut Attempt,
    ) -> Result<ObjectMeta, Failure> {
        unreachable!("nothing is put")
    }

    async fn abort(&self, _: &Upload, _: &mut Attempt) -> Result<(), Failure> {
        unreachable!("nothing is put")
    }

    async fn list(&self, _: &str, _: &mut Attempt) -> Result<Vec<ObjectMeta>, Failure> {
        unreachable!("nothing is listed")
    }
}

/// A download into a folder of its own.
struct Download {
    folder: TempDir,
    target: PathBuf,
    journal: PathBuf,
    place: Location,
    content: Bytes,
    runtime: Runtime,
}

impl Download {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().canonicalize().unwrap().join("target");
        let content: Bytes = (0..100_u8).collect();
        let place = Location {
            store: Arc::new(FixedObject(content.clone())),
            name: "kept".into(),
            address: "kept://kept".into(),
        };
        let id = crc64(format!("{}\n{}", place.address, target.display()).as_bytes());
        let journal = folder.path().join(format!("{id:016x}.journal"));
        Self { folder, target, journal, place, content, runtime: runtime() }
    }

    fn get(&self, resume: Resume) -> Result<(), Error> {
        let journals = Some(self.folder.path().into());
        let manager =
            TransferManager::new(Settings { journals, resume, ..Settings::default() }, Stop::default(), Box::new(()));
        self.runtime.block_on(manager.get_file(&self.place, &self.target)).map(drop)
    }
}

/// Checks that any journal either leads to a correct download or is refused. After a refusal, a download from the
/// beginning must succeed. In the text, `TARGET` is replaced by the path of the target. If the text has an empty
/// `upload`, the test adds the record of a temporary file, so that the text describes a half-complete download.
pub fn journals(bytes: &[u8]) {
    thread_local!(static DOWNLOAD: Download = Download::new());
    DOWNLOAD.with(|download| {
        let part = download.target.with_file_name(".target.part");
        fs::write(&part, &download.content[..50]).unwrap();
        let there = fs::metadata(&part).unwrap();
        let name = format!(r#"{{"Unix":{:?}}}"#, b".target.part");
        let of = format!(r#"{{"name":{name},"device":{},"inode":{}}}"#, there.dev(), there.ino());
        let text: Vec<u8> = match std::str::from_utf8(bytes) {
            Ok(text) => {
                let text = text.replace("TARGET", download.target.to_str().unwrap());
                text.replacen(r#""upload":"""#, &format!(r#""upload":"","temporary":{of}"#), 1).into()
            }
            Err(_) => bytes.into(),
        };
        fs::write(&download.journal, &text).unwrap();
        if let Err(error) = download.get(Resume::Only) {
            assert!(matches!(error, Error::CantResume(..)), "{error}");
            assert!(!download.target.exists(), "{error}");
            download.get(Resume::Never).unwrap();
        }
        assert_eq!(fs::read(&download.target).unwrap(), download.content);
        assert!(!download.journal.exists());
        fs::remove_file(&download.target).unwrap();
        // If the journal does not name the incomplete file, the download does not remove it.
        let _ = fs::remove_file(&part);
    });
}

/// Clients of all stores and services, and the server that answers them.
struct Clients {
    stores: Vec<Arc<dyn Store>>,
    runtime: Runtime,
    _folder: TempDir,
}

/// The next answer of the server: its status and its body.
static ANSWER: Mutex<(&str, Vec<u8>)> = Mutex::new(("200 OK", Vec::new()));

fn url() -> String {
    static WEB: OnceLock<web::Web> = OnceLock::new();
    let web = WEB.get_or_init(|| {
        web::Web::start(|_, _| {
            let (status, body) = ANSWER.lock().unwrap().clone();
            web::answer(status, "ETag: \"1\"\r\n", &body)
        })
    });
    web.url("")
}

impl Clients {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let token = folder.path().join("token");
        fs::write(&token, "token").unwrap();
        let tokens = [
            ("AWS_CONTAINER_CREDENTIALS_FULL_URI", url() + "/token"),
            ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", token.display().to_string()),
            ("AZURE_STORAGE_ACCOUNT", "any".into()),
        ];
        let environment: Environment = tokens.into_iter().collect();
        let with = |anonymous| Options {
            environment: environment.clone(),
            endpoint_url: Some(url()),
            anonymous,
            ..Options::default()
        };
        let addresses =
            [("s3://bucket/", true), ("az://bucket/", true), ("gs://bucket/", true), ("s3://bucket/", false)];
        let stores = addresses.map(|(address, anonymous)| open(address, &with(anonymous)).unwrap().store);
        Self { stores: stores.into(), runtime: runtime(), _folder: folder }
    }
}

/// Any answer of a store or token server is either accepted, or leads to a failure with a message. The first byte of
/// the input selects the status, the client and the request.
pub fn answers(bytes: &[u8]) {
    thread_local!(static CLIENTS: Clients = Clients::new());
    let Some((&which, body)) = bytes.split_first() else { return };
    let status = ["200 OK", "201 Created", "403 Forbidden", "503 Service Unavailable"][usize::from(which & 3)];
    *ANSWER.lock().unwrap() = (status, body.to_vec());
    CLIENTS.with(|clients| {
        let store = &clients.stores[usize::from(which >> 2 & 3)];
        let upload = Upload { name: "name".into(), id: "id".into() };
        let (mut seen, options) = (Attempt::default(), PutOptions::default());
        let refused = clients.runtime.block_on(async {
            match which >> 4 & 3 {
                0 => store.list("", &mut seen).await.map(drop),
                1 => {
                    store.start_upload("name", &options, &mut seen).await.map(|upload| assert_eq!(upload.name, "name"))
                }
                2 => store.commit(&upload, &["1 AAAAAAAAAAA= x".into()], 0, &options, &mut seen).await.map(drop),
                _ => store.commit(&upload, &["1 AAAA".into()], 0, &options, &mut seen).await.map(drop),
            }
        });
        if let Err(Failure { kind, message, .. }) = refused {
            assert!(message.len() < 1000 && message.contains("://bucket"), "{kind:?}: {message}");
        }
    });
}

/// Any address and any profile file is either parsed, or leads to a failure that does not show the password. The first
/// line of the input is the address, to which a password is added. The other lines are the profile file.
pub fn addresses(bytes: &[u8]) {
    thread_local!(static FOLDER: TempDir = tempfile::tempdir().unwrap());
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (address, profiles) = text.split_once('\n').unwrap_or((text, ""));
    let file = FOLDER.with(|folder| folder.path().join("profiles"));
    fs::write(&file, profiles).unwrap();
    let environment = ["AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"].map(|name| (name, file.to_str().unwrap()));
    let environment: Environment = environment.into_iter().collect();
    let options = Options { environment, profile: Some("work".into()), ..Options::default() };
    for url in [address, &format!("https://user:hunter2@{address}")] {
        if let Err(error) = open(url, &options) {
            let message = error.to_string();
            assert!(text.contains("hunter2") || !message.contains("hunter2"), "{message}");
        }
    }
}
