//! Files moved to and from stores, in blocks: `put` and `get`.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{self, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ascertain_sys::{files, interrupt, standard};
pub use ascertain_transfer::model::{Link, Plan, Shape};
pub use ascertain_transfer::{
    BrokenOff, Done, Environment, Error, Filter, GivenUp, Kind, LeftOut, Links, Many, Moved, Observer, Options,
    Outcome, Place, Progress, Requests, Resume, Retried, Skipped, Spread, Stop, Terms, Way, broken_off, unfinished,
};
use ascertain_transfer::{Local, Mover, shown};
use tokio::runtime::{Builder, Runtime};

/// What stands for standard input, and for standard output.
pub const STANDARD: &str = "-";
/// How soon it is noticed that the end was asked for.
const NOTICE: Duration = Duration::from_millis(50);

/// A move that was broken off, and what came of giving it up.
pub type Ended = (BrokenOff, Result<Option<GivenUp>, Error>);

/// Gives up moves that were broken off, with what came of each; see [`BrokenOff::give_up`].
///
/// # Errors
/// When there are no threads for it.
pub fn give_up(broken_off: Vec<BrokenOff>, options: &Options) -> Result<Vec<Ended>, Error> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Error::Request(format!("no timers to wait with: {error}")))?;
    let mover = Mover::new(Terms::default(), Stop::default(), Box::new(()));
    let given_up = broken_off.into_iter().map(|broken_off| {
        let given_up = runtime.block_on(broken_off.give_up(&mover, options));
        (broken_off, given_up)
    });
    Ok(given_up.collect())
}

/// What is to be moved, how, and by whose leave.
#[derive(Clone, Debug, Default)]
pub struct Move {
    /// Files and folders for `put`, with `-` for standard input; one address for `get`.
    pub from: Vec<OsString>,
    /// An address for `put`; a file or folder for `get`, with `-` for standard output.
    pub to: OsString,
    /// What of many.
    pub many: Many,
    /// How.
    pub terms: Terms,
    /// What is known of the store beside its address.
    pub options: Options,
}

/// Who is told, and who may end it.
pub struct MoveContext {
    /// Ends it: what was begun can be gone on with.
    pub stop: interrupt::Stop,
    /// Is told how far it is.
    pub observer: Box<dyn Observer>,
}

impl Move {
    /// Puts files into a store: each with what came of it, and the failures of some are the others' no matter.
    ///
    /// # Errors
    /// When the address is none, when a source is not there; a single file's own failure.
    pub fn put(&self, context: MoveContext) -> Result<Vec<Outcome>, Error> {
        if self.to == STANDARD {
            return Err(not_standard("the target of `put`"));
        }
        if self.from.len() > 1 && self.from.iter().any(|source| source == STANDARD) {
            return Err(not_standard("one of several sources"));
        }
        let to = self.place(&self.to)?;
        if is_read_only(&to) {
            return Err(Error::Request(format!("{}: HTTP can only be read from", to.shown)));
        }
        if self.terms.content_type.is_some() && to.store.file(&to.name).is_some() {
            return Err(Error::Request(format!("{}: a file has no media type", to.shown)));
        }
        if let [path] = &*self.from {
            let is_one = path == STANDARD || Path::new(path).exists() && !Path::new(path).is_dir();
            self.check_filter(!is_one, &path.to_string_lossy())?;
        }
        let (mover, runtime) = self.begin(context)?;
        let put = async {
            if self.from == [STANDARD] {
                named(&to)?;
                if standard::input_was_closed() {
                    return Err(Error::Request("standard input is closed".into()));
                }
                if self.many.dry_run {
                    let path = Path::new(STANDARD);
                    return Ok(vec![outcome(path, &to, 0, mover.dry(Way::Put, path, &to, 0).await?)]);
                }
                let moved = mover.put_stream(&mut tokio::io::stdin(), &to).await?;
                return Ok(vec![of_moved(Path::new(STANDARD), &to, moved)]);
            }
            let from: Vec<PathBuf> = self.from.iter().map(PathBuf::from).collect();
            match &*from {
                [] => Err(Error::Request("there is nothing to put".into())),
                [path] if !path.is_dir() && !self.many.dry_run && is_direct(&to) => {
                    Ok(vec![of_moved(path, &to, put_directly(&mover, path, &to).await?)])
                }
                [path] if !path.is_dir() && !is_folder(&to.name) && !self.many.dry_run => {
                    Ok(vec![of_moved(path, &to, mover.put_file(path, &to).await?)])
                }
                [_, _, ..] if !is_folder(&to.name) => {
                    Err(Error::Request(format!("{}: the address of several files ends with a slash", to.shown)))
                }
                _ => Ok(addressed(mover.put_many(&from, &to, &self.many).await?, &to)),
            }
        };
        let done = runtime.block_on(put);
        // Somebody may wait for standard input, which nobody can call back.
        runtime.shutdown_background();
        done
    }

    /// Gets objects: one by its name, or all whose names begin with an address that ends with a slash.
    ///
    /// # Errors
    /// When the address is none, when there is nothing; a single object's own failure.
    pub fn get(&self, context: MoveContext) -> Result<Vec<Outcome>, Error> {
        let [from] = &*self.from else { return Err(Error::Request("one address is got at a time".into())) };
        if from == STANDARD {
            return Err(not_standard("the source of `get`"));
        }
        let from = self.place(from)?;
        if is_read_only(&from) && is_folder(&from.name) {
            return Err(Error::Request(format!("{}: HTTP has no folders; give the address of a file", from.shown)));
        }
        self.check_filter(is_folder(&from.name), &from.shown)?;
        let target = match self.to.to_str() {
            Some(text) => Path::new(local_path(text)?),
            None => Path::new(&self.to),
        };
        let (mover, runtime) = self.begin(context)?;
        let to = target;
        let get = async {
            if self.to == STANDARD {
                named(&from)?;
                if standard::output_was_closed() {
                    return Err(Error::Request("standard output is closed".into()));
                }
                if self.many.dry_run {
                    let bytes = mover.size(&from).await?.unwrap_or(0);
                    return Ok(vec![outcome(to, &from, bytes, Done::Said)]);
                }
                let moved = mover.get_stream(&from, &mut io::stdout()).await?;
                return Ok(vec![of_moved(to, &from, moved)]);
            }
            if is_folder(&from.name) {
                return Ok(addressed(mover.get_many(&from, to, &self.many).await?, &from));
            }
            let last = from.name.rsplit('/').next().unwrap_or_default();
            let is_folder = to.is_dir() || target.as_os_str().as_encoded_bytes().ends_with(b"/");
            let last = from
                .store
                .file(&from.name)
                .and_then(|file| file.file_name().map(OsStr::to_os_string))
                .unwrap_or(last.into());
            let path = if is_folder { to.join(last) } else { to.to_path_buf() };
            if self.many.dry_run {
                from.other_than(&path)?;
                let bytes = mover.size(&from).await?.unwrap_or(0);
                let done = mover.dry(Way::Get, &path, &from, bytes).await?;
                return Ok(vec![outcome(&path, &from, bytes, done)]);
            }
            let moved = mover.get_file(&from, &path).await?;
            Ok(vec![of_moved(&path, &from, moved)])
        };
        let done = runtime.block_on(get);
        runtime.shutdown_background();
        done
    }

    /// Refuses patterns for a single file.
    fn check_filter(&self, are_many: bool, source: &str) -> Result<(), Error> {
        let Filter { include, exclude } = &self.many.filter;
        if are_many || include.is_empty() && exclude.is_empty() {
            return Ok(());
        }
        Err(Error::Request(format!(
            "{source}: patterns that include or exclude need a folder, and this is a single file"
        )))
    }

    fn begin(&self, context: MoveContext) -> Result<(Arc<Mover>, Runtime), Error> {
        let runtime = Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Error::Request(format!("no threads to move with: {error}")))?;
        let (stop, asked) = (Stop::default(), context.stop);
        let token = stop.clone();
        runtime.spawn(async move {
            while !asked.is_asked() {
                tokio::time::sleep(NOTICE).await;
            }
            token.ask();
        });
        Ok((Arc::new(Mover::new(self.terms.clone(), stop, context.observer)), runtime))
    }

    /// What an address names: a store's object, or a file of this machine.
    fn place(&self, address: &OsStr) -> Result<Place, Error> {
        let Some(address) = address.to_str() else { return self.place_of_bytes(Path::new(address)) };
        let path = match address.split_once("://") {
            Some(("file", path)) => path,
            Some(_) => {
                // Nothing was asked of a store yet: what is missing is missing here.
                return ascertain_transfer::open(address, &self.options).map(Place::from).map_err(
                    |failure| match failure.kind == Kind::Denied && !self.options.anonymous {
                        true => Error::NoCredentials(failure),
                        false => Error::Request(failure.said),
                    },
                );
            }
            None => local_path(address)?,
        };
        self.options.fit(path).map_err(|failure| Error::Request(format!("{address}: {failure}")))?;
        let absolute = path::absolute(path).map_err(|error| Error::Request(format!("`{address}`: {error}")))?;
        // Names have no `..` in them: what is above the last part is looked up.
        let absolute = match (absolute.parent(), absolute.file_name()) {
            (Some(folder), Some(name)) => folder.canonicalize().unwrap_or(folder.to_path_buf()).join(name),
            _ => absolute,
        };
        let Some(name) = absolute.to_str().map(|name| name.trim_start_matches('/')) else {
            return self.place_of_bytes(&absolute);
        };
        let is_folder = path.ends_with('/') || absolute.is_dir();
        let name = if is_folder { format!("{name}/") } else { name.to_string() };
        Ok(Place { store: Arc::new(Local::new("/")), shown: format!("file:///{name}"), name })
    }

    /// A file or folder whose path is not UTF-8.
    fn place_of_bytes(&self, path: &Path) -> Result<Place, Error> {
        let shown = shown(path);
        self.options.fit(&shown).map_err(|failure| Error::Request(format!("{shown}: {failure}")))?;
        if path.is_dir() {
            return Ok(Place { store: Arc::new(Local::new(path)), name: String::new(), shown: format!("{shown}/") });
        }
        Ok(Place { store: Arc::new(Local::of_file(path)), name: shown.clone(), shown })
    }
}

/// Whether a file of this machine is a device or a pipe, which is written to as it is.
fn is_direct(place: &Place) -> bool {
    let path = place.store.file(&place.name);
    path.is_some_and(|path| !path.is_dir() && matches!(files::target(&path), Ok(files::Target::Direct(_))))
}

/// Writes a file into a device or a pipe.
async fn put_directly(mover: &Mover, from: &Path, to: &Place) -> Result<Moved, Error> {
    let path = to.store.file(&to.name).unwrap_or_default();
    to.other_than(from)?;
    let file = |path: &Path| Place { store: Arc::new(Local::of_file(path)), name: shown(path), shown: shown(path) };
    mover.get_file(&file(from), &path).await
}

fn not_standard(place: &str) -> Error {
    Error::Request(format!("`{STANDARD}` cannot be {place}; for a file of that name, write `./{STANDARD}`"))
}

/// Returns the path of a file or folder of this machine that `text` names, with `file://` in front or without.
///
/// # Errors
/// If `text` is an address, or looks like one: `s3:bucket/name` is the form of other programs, and a folder `s3:` would
/// be a surprise.
fn local_path(text: &str) -> Result<&str, Error> {
    match text.split_once("://") {
        Some(("file", path)) => Ok(path),
        Some((scheme, _)) => {
            Err(Error::Request(format!("the target is a file or folder of this machine; `put` writes to {scheme}://")))
        }
        None if names_a_scheme(text) => {
            let path = text.strip_prefix("file:").map_or_else(|| format!("./{text}"), str::to_string);
            Err(Error::Request(format!(
                "`{text}` is not an address (`s3://BUCKET/NAME`); for a file of this machine, write `{path}`"
            )))
        }
        None => Ok(text),
    }
}

/// Whether a store takes nothing, as HTTP.
fn is_read_only(place: &Place) -> bool {
    place.store.limits().max_put_bytes == 0
}

fn is_folder(name: &str) -> bool {
    name.is_empty() || name.ends_with('/')
}

/// A stream is one object, which has a name.
fn named(place: &Place) -> Result<(), Error> {
    match is_folder(&place.name) {
        true => Err(Error::Request(format!("{}: a stream is one object; give its name", place.shown))),
        false => Ok(()),
    }
}

/// The names of objects as addresses.
fn addressed(mut outcomes: Vec<Outcome>, place: &Place) -> Vec<Outcome> {
    outcomes.iter_mut().for_each(|outcome| outcome.name = place.named(&outcome.name).shown);
    outcomes
}

/// Whether it begins like an address (`s3:`, `file:`), and not with the name of a folder.
fn names_a_scheme(address: &str) -> bool {
    let is_plain = |scheme: &str| scheme.len() > 1 && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric());
    address.split_once(':').is_some_and(|(scheme, _)| is_plain(scheme)) && !Path::new(address).exists()
}

fn of_moved(path: &Path, place: &Place, moved: Moved) -> Outcome {
    outcome(path, place, moved.bytes, moved.into())
}

fn outcome(path: &Path, place: &Place, bytes: u64, done: Done) -> Outcome {
    Outcome { path: path.to_path_buf(), name: place.shown.clone(), bytes, done }
}
