//! The journal: the paths below the root that the daemon knows, each with the number of its last change.
//!
//! Every path is a node with a parent and a name. A node never moves: after a folder is renamed, its paths have other
//! nodes. Memory limits the size of a journal, so a node has only 24 bytes, and all names are in one buffer.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// The root of the tree.
pub const ROOT: NodeId = 0;

/// Index of a node. It is valid until the next [`Tree::compact`].
pub type NodeId = u32;

/// A change of the file or folder itself: its entry in git's index may differ.
pub const ENTRY: u8 = 1;
/// A change directly inside of the folder: the list of its untracked files may differ.
pub const INNER: u8 = 2;
/// A change of everything below the folder.
pub const BELOW: u8 = 4;
/// The node is in every answer, because its changes cause no events.
pub const ALWAYS: u8 = 8;
/// The node is the root of another repository.
pub const NESTED: u8 = 16;
/// The last walk has seen the folder.
pub const SEEN: u8 = 32;
/// The file is in the index.
pub const TRACKED: u8 = 64;

#[derive(Clone, Copy)]
struct Node {
    parent: NodeId,
    /// Position of the name's length in `names`.
    name: u32,
    /// The watch of the folder or file; 0 if there is none.
    watch: i32,
    /// The number of the last change, and the flags in the lowest 8 bits.
    change: u64,
}

/// The tree of nodes.
pub struct Tree {
    nodes: Vec<Node>,
    names: Vec<u8>,
    /// Hash table with open addressing: indices of nodes plus 1.
    slots: Vec<u32>,
    sequence: u64,
    /// Answers to tokens below this number cannot be given.
    floor: u64,
    /// Number of nodes with a change after `floor`.
    pending: usize,
    limit: usize,
    /// Number of nodes after the last [`Tree::compact`].
    compact_len: usize,
}

/// The result of [`Tree::changes`].
pub struct List {
    /// The paths, each followed by a NUL byte.
    pub paths: Vec<u8>,
    /// Number of the paths.
    pub count: u64,
}

/// The end of a path inside of a folder. When an answer contains this path, git reads the folder again. The file need
/// not exist, but git would ignore a name such as `.`.
const INSIDE: &[u8] = b"/_";
const INSIDE_ROOT: &[u8] = b"_";

impl List {
    /// Adds a path, which consists of a start and an end.
    pub fn add(&mut self, path: &[u8], end: &[u8]) {
        self.paths.extend_from_slice(path);
        self.paths.extend_from_slice(end);
        self.paths.push(0);
        self.count += 1;
    }
}

/// Returns whether git accepts this path from a monitor for its cache of untracked files. For this cache, git ignores
/// paths that its index may not contain on some systems: paths with a backslash, or with a name that could stand for
/// `.git`.
fn is_accepted(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/').all(|name| {
        let starts = |start: &[u8]| name.get(..start.len()).is_some_and(|own| own.eq_ignore_ascii_case(start));
        let is_reserved = starts(b"git~") || (starts(b".git") && name.get(4).is_none_or(|byte| b" .:".contains(byte)));
        // The bytes of characters that a Macintosh ignores in names.
        let has_ignored = name.first() == Some(&b'.') && name.iter().any(|byte| *byte == 0xe2 || *byte == 0xef);
        !is_reserved && !has_ignored && !name.contains(&b'\\')
    })
}

impl Tree {
    /// Creates a tree that forgets old changes when it has more than `limit` changes.
    pub fn new(limit: usize) -> Tree {
        let root = Node { parent: ROOT, name: 0, watch: 0, change: 0 };
        Tree {
            nodes: vec![root],
            names: vec![0],
            slots: vec![0; 1024],
            sequence: 1,
            floor: 1,
            pending: 0,
            limit,
            compact_len: 0,
        }
    }

    /// The number of the last change so far.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    pub fn floor(&self) -> u64 {
        self.floor
    }

    pub fn pending(&self) -> usize {
        self.pending
    }

    /// Makes all tokens so far invalid.
    pub fn forget(&mut self) {
        self.sequence += 1;
        self.floor = self.sequence;
        self.pending = 0;
    }

    fn hash(parent: NodeId, name: &[u8]) -> u64 {
        let start = 0xcbf2_9ce4_8422_2325_u64 ^ u64::from(parent).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let hash = name.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
        hash ^ (hash >> 29)
    }

    fn name_at(&self, position: u32) -> &[u8] {
        let start = position as usize + 1;
        &self.names[start..start + usize::from(self.names[start - 1])]
    }

    pub fn name(&self, node: NodeId) -> &[u8] {
        self.name_at(self.nodes[node as usize].name)
    }

    pub fn parent(&self, node: NodeId) -> NodeId {
        self.nodes[node as usize].parent
    }

    /// Returns the slot of a child, or the free slot where it belongs.
    fn slot(&self, parent: NodeId, name: &[u8]) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = Self::hash(parent, name) as usize & mask;
        loop {
            match self.slots[slot] {
                0 => return slot,
                id if self.nodes[id as usize - 1].parent == parent && self.name(id - 1) == name => return slot,
                _ => slot = (slot + 1) & mask,
            }
        }
    }

    /// Returns the node of a path below the root; adds the nodes that are missing.
    pub fn node_of(&mut self, path: &[u8]) -> NodeId {
        let names = path.split(|byte| *byte == b'/').filter(|name| !name.is_empty() && name.len() < 256);
        names.fold(ROOT, |at, name| self.child(at, name))
    }

    /// Returns the child with this name; adds it if it is missing. A name has at most 255 bytes on Linux.
    pub fn child(&mut self, parent: NodeId, name: &[u8]) -> NodeId {
        let name = &name[..name.len().min(255)];
        let slot = self.slot(parent, name);
        if let Some(id) = self.slots[slot].checked_sub(1) {
            return id;
        }
        let id = self.nodes.len() as u32;
        self.slots[slot] = id + 1;
        let position = self.names.len() as u32;
        self.names.push(name.len() as u8);
        self.names.extend_from_slice(name);
        self.nodes.push(Node { parent, name: position, watch: 0, change: 0 });
        if self.nodes.len() * 4 > self.slots.len() * 3 {
            self.rehash();
        }
        id
    }

    fn rehash(&mut self) {
        let length = (self.nodes.len() * 2).next_power_of_two().max(1024);
        self.slots = vec![0; length];
        for id in 1..self.nodes.len() as u32 {
            let slot = self.slot(self.parent(id), self.name(id));
            self.slots[slot] = id + 1;
        }
    }

    pub fn flags(&self, node: NodeId) -> u8 {
        self.nodes[node as usize].change as u8
    }

    pub fn set(&mut self, node: NodeId, flags: u8) {
        self.nodes[node as usize].change |= u64::from(flags);
    }

    pub fn clear(&mut self, node: NodeId, flags: u8) {
        self.nodes[node as usize].change &= !u64::from(flags);
    }

    /// The number of the last change of a node; 0 if it has never changed.
    pub fn last_change(&self, node: NodeId) -> u64 {
        self.nodes[node as usize].change >> 8
    }

    pub fn watch(&self, node: NodeId) -> i32 {
        self.nodes[node as usize].watch
    }

    pub fn set_watch(&mut self, node: NodeId, watch: i32) {
        self.nodes[node as usize].watch = watch;
    }

    /// Records a change of a node, of the kinds in `kinds`.
    pub fn change(&mut self, node: NodeId, kinds: u8) {
        self.sequence += 1;
        let own = &mut self.nodes[node as usize].change;
        if *own >> 8 <= self.floor {
            self.pending += 1;
            // The kinds of a change that no answer contains any more.
            *own &= !u64::from(ENTRY | INNER | BELOW);
        }
        *own = self.sequence << 8 | (*own & 0xff) | u64::from(kinds);
    }

    /// Returns whether a node is below a folder. A folder is not below itself.
    pub fn is_below(&self, node: NodeId, folder: NodeId) -> bool {
        let mut at = node;
        while at != ROOT {
            at = self.parent(at);
            if at == folder {
                return true;
            }
        }
        false
    }

    /// Returns the nodes below a folder that have a watch.
    pub fn below(&self, folder: NodeId) -> Vec<NodeId> {
        self.watched().filter(|node| self.is_below(*node, folder)).collect()
    }

    /// Returns the nodes with a watch.
    pub fn watched(&self) -> impl Iterator<Item = NodeId> {
        (0..self.nodes.len() as u32).filter(|id| self.watch(*id) != 0)
    }

    /// Writes the path of a node below the root to the end of `path`. The path of the root is empty.
    pub fn write_path(&self, node: NodeId, path: &mut Vec<u8>) {
        if node != ROOT {
            let parent = self.parent(node);
            if parent != ROOT {
                self.write_path(parent, path);
                path.push(b'/');
            }
            path.extend_from_slice(self.name(node));
        }
    }

    pub fn path(&self, node: NodeId) -> PathBuf {
        let mut path = Vec::new();
        self.write_path(node, &mut path);
        PathBuf::from(OsStr::from_bytes(&path))
    }

    /// Returns whether a folder above the node changed as a whole after `since`.
    fn is_covered(&self, node: NodeId, since: u64) -> bool {
        let mut at = node;
        while at != ROOT {
            at = self.parent(at);
            let change = self.nodes[at as usize].change;
            if change as u8 & BELOW != 0 && change >> 8 > since {
                return true;
            }
        }
        false
    }

    /// Lists the paths that changed after `since`. Returns `None` if the journal does not reach so far back, if the
    /// list would take git longer than looking at all files, or if git would ignore a folder. With `all_folders`, the
    /// list also contains a path inside of each folder.
    pub fn changes(&self, since: u64, folders_max: usize, all_folders: bool) -> Option<List> {
        if since < self.floor || since > self.sequence {
            return None;
        }
        let mut list = List { paths: Vec::new(), count: 0 };
        let (mut path, mut folders) = (Vec::new(), 0);
        if all_folders {
            list.add(b"", INSIDE_ROOT);
        }
        for (id, node) in self.nodes.iter().enumerate().skip(1) {
            let flags = node.change as u8;
            let is_new = node.change >> 8 > since;
            let is_folder = all_folders && flags & SEEN != 0;
            if !is_new && flags & ALWAYS == 0 && !is_folder {
                continue;
            }
            path.clear();
            self.write_path(id as u32, &mut path);
            if !is_accepted(&path) {
                // Git uses this path for its index, but would keep its list of the untracked files in the folder.
                let mut folder = Vec::new();
                self.write_path(self.parent(id as u32), &mut folder);
                if !is_accepted(&folder) {
                    return None;
                }
                list.add(&folder, if folder.is_empty() { INSIDE_ROOT } else { INSIDE });
            }
            let flags = match (is_new, flags & ALWAYS != 0) {
                (false, false) => INNER,
                (true, _) => flags | if is_folder { INNER } else { 0 },
                (false, true) => flags | ENTRY | if is_folder { INNER } else { 0 },
            };
            let is_covered = flags & (ENTRY | BELOW) != 0 && self.is_covered(id as u32, since);
            if flags & ENTRY != 0 && (!is_covered || flags & ALWAYS != 0) {
                list.add(&path, b"");
            }
            if flags & BELOW != 0 && !is_covered {
                list.add(&path, b"/");
                folders += 1;
            }
            if flags & INNER != 0 {
                list.add(&path, INSIDE);
            }
            if folders > folders_max {
                return None;
            }
        }
        Some(list)
    }

    /// Returns whether [`Tree::compact`] is due.
    pub fn is_full(&self) -> bool {
        self.pending > self.limit || self.nodes.len() > self.compact_len + 8 * self.limit
    }

    /// Forgets the older half of the changes, and removes the nodes that are no longer needed. Returns a list of new
    /// IDs: for each old ID, the new one, or 0 if the node was removed.
    pub fn compact(&mut self) -> Vec<NodeId> {
        let mut numbers: Vec<u64> =
            self.nodes.iter().map(|node| node.change >> 8).filter(|number| *number > self.floor).collect();
        if numbers.len() > self.limit / 2 {
            let middle = (numbers.len() - self.limit / 2).min(numbers.len() - 1);
            self.floor = *numbers.select_nth_unstable(middle).1;
        }
        drop(numbers);
        let mut is_kept = vec![false; self.nodes.len()];
        for (id, node) in self.nodes.iter().enumerate().rev() {
            // A child has a higher number than its parent.
            if id == 0
                || is_kept[id]
                || node.watch != 0
                || node.change >> 8 > self.floor
                || node.change as u8 & (ALWAYS | NESTED) != 0
            {
                is_kept[id] = true;
                is_kept[node.parent as usize] = true;
            }
        }
        let mut moved = vec![0; self.nodes.len()];
        let old = std::mem::take(&mut self.nodes);
        let old_names = std::mem::take(&mut self.names);
        self.pending = 0;
        for (id, mut node) in old.into_iter().enumerate().filter(|(id, _)| is_kept[*id]) {
            let start = node.name as usize;
            let length = usize::from(old_names[start]);
            node.name = self.names.len() as u32;
            self.names.extend_from_slice(&old_names[start..=start + length]);
            node.parent = moved[node.parent as usize];
            moved[id] = self.nodes.len() as u32;
            self.pending += usize::from(node.change >> 8 > self.floor);
            self.nodes.push(node);
        }
        self.compact_len = self.nodes.len();
        self.rehash();
        moved
    }
}
