//! The list of the objects in a store: the output of `ascertain ls`.

use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use ascertain_engine::evidence::rfc3339;
use ascertain_engine::unit::Unit;
use ascertain_transfer::ListedObject;
use serde::Serialize;

use crate::csv::record;
use crate::formats::{Element, Report};
use crate::grid::{Cell, ColumnKind, Grid};
use crate::terminal::Style;
use crate::text::{counted, escape_controls};

/// The objects of a store under an address.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ObjectList {
    /// Number of objects.
    pub count: u64,
    /// Total size of the objects, in bytes.
    pub bytes: u64,
    /// The objects, in the order of names.
    pub objects: Vec<StoredObject>,
}

/// An object of a store.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StoredObject {
    /// The address of the object.
    pub name: String,
    /// The size of the object in bytes.
    pub bytes: u64,
    /// When the object was stored, in RFC 3339, UTC.
    pub modified: Option<String>,
    /// A tag that changes whenever the object changes.
    pub etag: Option<String>,
}

impl From<ListedObject> for StoredObject {
    fn from(ListedObject { address, meta }: ListedObject) -> Self {
        let unix_ns = |time: SystemTime| time.duration_since(UNIX_EPOCH).ok()?.as_nanos().try_into().ok();
        let modified = meta.modified.and_then(unix_ns).map(rfc3339);
        Self { name: address, bytes: meta.bytes, modified, etag: meta.etag }
    }
}

impl StoredObject {
    /// Returns the time as `2026-11-29 03:00:39`, in UTC; empty if it is unknown.
    fn time(&self) -> String {
        let time = self.modified.as_deref().unwrap_or_default();
        time.get(..19).unwrap_or(time).replace('T', " ")
    }

    fn size(&self) -> String {
        Unit::Byte.human(self.bytes as f64)
    }
}

impl ObjectList {
    /// Creates the list of these objects.
    #[must_use]
    pub fn new(objects: Vec<ListedObject>) -> Self {
        let objects: Vec<StoredObject> = objects.into_iter().map(StoredObject::from).collect();
        Self { count: objects.len() as u64, bytes: objects.iter().map(|object| object.bytes).sum(), objects }
    }

    fn sum(&self) -> String {
        format!("{}, {}", counted(self.count, "object"), Unit::Byte.human(self.bytes as f64))
    }
}

impl Report for ObjectList {
    const SCHEMA: &'static str = "ascertain.ls/1";

    fn elements(&self) -> Vec<Element> {
        let mut grid = Grid::new(&["Modified (UTC)", "Size", "Name"])
            .kind(ColumnKind::Word, &["Modified (UTC)"])
            .kind(ColumnKind::Number, &["Size"]);
        for object in &self.objects {
            let name = Cell::Code(escape_controls(&object.name));
            grid.rows.push(vec![object.time().into(), object.size().into(), name]);
        }
        vec![Element::Table(grid), Element::Sentences(vec![self.sum()])]
    }

    fn csv(&self) -> String {
        let mut text = String::from("name,bytes,modified,etag\n");
        for StoredObject { name, bytes, modified, etag } in &self.objects {
            text += &record(&[name, bytes, modified, etag]);
        }
        text
    }

    /// Returns a line for each object. No line is wrapped, so that other programs can search the lines.
    fn text(&self, _style: &Style) -> String {
        let mut text = String::new();
        for object in &self.objects {
            let _ = writeln!(text, "{:19}  {:>8}  {}", object.time(), object.size(), escape_controls(&object.name));
        }
        text + &self.sum() + "\n"
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ascertain_transfer::ObjectMeta;

    use super::*;

    fn list() -> ObjectList {
        let object = |address: &str, bytes, modified| ListedObject {
            address: address.into(),
            meta: ObjectMeta { bytes, modified, etag: Some("\"1\"".into()), ..ObjectMeta::default() },
        };
        let time = UNIX_EPOCH + Duration::from_secs(1_795_921_239);
        ObjectList::new(vec![object("s3://b/a b", 1_234_567, Some(time)), object("s3://b/\u{1b}[2J", 7, None)])
    }

    #[test]
    fn each_object_has_a_line_and_there_is_a_total() {
        let text = list().text(&Style::of_stdout(Some(false)));
        assert_eq!(
            text,
            "2026-11-29 03:00:39  1.235 MB  s3://b/a b\n                          7 B  s3://b/\\u{1b}[2J\n2 objects, 1.235 MB\n"
        );
    }

    #[test]
    fn programs_get_whole_numbers() {
        let list = list();
        assert_eq!(
            list.csv(),
            "name,bytes,modified,etag\ns3://b/a b,1234567,2026-11-29T03:00:39.000Z,\"\"\"1\"\"\"\ns3://b/\u{1b}[2J,7,,\"\"\"1\"\"\"\n"
        );
        let json: serde_json::Value = serde_json::from_str(&list.json()).unwrap();
        assert_eq!(
            (&json["schema"], &json["count"], &json["bytes"]),
            (&"ascertain.ls/1".into(), &2.into(), &1_234_574.into())
        );
        assert_eq!(json["objects"][0]["modified"], "2026-11-29T03:00:39.000Z");
        assert!(list.markdown().contains("`s3://b/a b`"), "{}", list.markdown());
    }
}
