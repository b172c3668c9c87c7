//! Lists the objects of a store, for `ls` and for `get`. Resolves addresses with patterns.

use std::ffi::OsStr;

use ascertain_sys::interrupt::Stop;

use crate::error::{Error, Result};
use crate::location::Location;
use crate::manager::{Settings, TransferManager};
use crate::part::LARGE_BYTES;
use crate::pattern::{Pattern, split_name};
use crate::result::Observer;
use crate::retry::request;
use crate::run::on_runtime;
use crate::store::{Failure, Kind, ListCursor, ObjectMeta, Options};

/// An object of a store in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedObject {
    /// Address of the object, without user, password and query.
    pub address: String,
    /// The object as the list of the store describes it.
    pub meta: ObjectMeta,
}

/// Lists the objects at an address, in the order of names.
///
/// If the name in the address is empty or ends with a slash, returns all objects whose names begin with this name.
/// Otherwise returns the object with this name, and all objects below a folder with this name. If there are no such
/// objects and the name has special characters of a [`Pattern`], returns all objects whose names match the pattern.
///
/// # Errors
/// Fails if the address is invalid, if the store can't be listed (such as an HTTP server), or if it refuses the
/// request. `observer` receives outages.
pub fn list(
    address: &OsStr,
    options: &Options,
    settings: Settings,
    observer: Box<dyn Observer>,
    stop: Stop,
) -> Result<Vec<ListedObject>> {
    let manager = TransferManager::new(settings, stop, observer);
    let (address, options) = (address.to_owned(), options.clone());
    on_runtime(async move {
        let from = Location::open(&address, &options)?;
        if from.is_read_only() {
            let message =
                format!("{}: can't list the files of an HTTP server; give the address of a store", from.address);
            return Err(Error::Request(message));
        }
        let (from, only) = manager.resolve_pattern(from).await?;
        manager.list_all(&from, only.as_ref()).await
    })
}

impl TransferManager {
    /// Lists the objects at a location. If `only` is set, the location is a prefix, and only the objects below it whose
    /// relative names match the pattern are listed.
    async fn list_all(&self, from: &Location, only: Option<&Pattern>) -> Result<Vec<ListedObject>> {
        let mut objects = Vec::new();
        let mut prefix = format!("{}{}", from.name, only.map(Pattern::prefix).unwrap_or_default());
        if !from.is_prefix() {
            prefix.push('/');
            objects.extend(self.head_if_permitted(from).await?);
        }
        // On this machine, a path is either a file or a folder.
        if objects.is_empty() || from.store.local_path(&from.name).is_none() {
            objects.extend(self.list_names(from, &prefix).await?);
        }
        let is_listed = |meta: &ObjectMeta| {
            only.is_none_or(|only| meta.name.strip_prefix(&from.name).is_some_and(|name| only.includes(name)))
        };
        let listed = objects.into_iter().filter(is_listed);
        Ok(listed.map(|meta| ListedObject { address: from.named(&meta.name).address, meta }).collect())
    }

    /// Describes an object. Returns `None` if it does not exist, or if the credentials do not permit reading it.
    /// Without the permission to list, S3 refuses access even if the object does not exist.
    async fn head_if_permitted(&self, from: &Location) -> Result<Option<ObjectMeta>> {
        match self.head_strict(from).await {
            Err(Error::Store(Failure { kind: Kind::Denied, concerns_whole_store: false, .. })) => Ok(None),
            head => Ok(head?.0),
        }
    }

    /// Lists the objects of a store whose names begin with `prefix`, with retries.
    pub(crate) async fn list_names(&self, from: &Location, prefix: &str) -> Result<Vec<ObjectMeta>> {
        let mut objects = Vec::new();
        let add = |page| {
            objects.extend(page);
            true
        };
        self.list_pages(from, prefix, add).await.map(|_| objects)
    }

    /// Lists the objects of a store whose names begin with `prefix`, page by page, and repeats only the requests that
    /// fail. Passes each page to `take`, and stops if `take` returns `false`. Returns whether the list is complete.
    pub(crate) async fn list_pages(
        &self,
        from: &Location,
        prefix: &str,
        mut take: impl FnMut(Vec<ObjectMeta>) -> bool,
    ) -> Result<bool> {
        let mut cursor = ListCursor::default();
        loop {
            let (objects, is_last) = self.list_page(from, prefix, &mut cursor).await?;
            let is_wanted = take(objects);
            if is_last || !is_wanted {
                return Ok(is_last);
            }
        }
    }

    /// Requests the next page of a list, with retries. Returns its objects, and whether it is the last page.
    pub(crate) async fn list_page(
        &self,
        from: &Location,
        prefix: &str,
        cursor: &mut ListCursor,
    ) -> Result<(Vec<ObjectMeta>, bool)> {
        let page = cursor.page();
        let request = request!(attempt = self.gate, from.store.list_page(prefix, page, &mut attempt));
        // The timeout is long, because a local store reads all its folders in one request.
        let listed = self.gate.retry.run(LARGE_BYTES, Kind::Transient(None), request);
        let ((objects, next), _) = self.or_stopped(listed).await??;
        let has_next = cursor.advance(next).map_err(|failure| failure.about(&from.address))?;
        Ok((objects, !has_next))
    }

    /// Resolves the special characters of a [`Pattern`] in the name of a location. Returns the folder in front of the
    /// pattern, and the pattern for the names of objects relative to this folder. Returns the location itself, without
    /// a pattern, if its name has no special characters, or if an object has exactly this name or prefix.
    pub(crate) async fn resolve_pattern(&self, from: Location) -> Result<(Location, Option<Pattern>)> {
        if from.is_read_only() {
            return Ok((from, None));
        }
        // A name that is no valid pattern, such as `a[`, can still be the name of an object.
        let Ok(Some((folder, pattern))) = split_name(&from.name) else { return Ok((from, None)) };
        let is_literal = if from.is_prefix() {
            let mut is_found = false;
            let look = |page: Vec<ObjectMeta>| {
                is_found |= !page.is_empty();
                !is_found
            };
            self.list_pages(&from, &from.name, look).await?;
            is_found
        } else {
            self.head_if_permitted(&from).await?.is_some()
        };
        if is_literal {
            return Ok((from, None));
        }
        Ok((from.folder(folder), Some(pattern)))
    }
}
