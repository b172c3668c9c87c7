//! Tracked files with several names (hard links). A write through a name outside of the worktree causes no event on the
//! folder of the other names. So such a file has its own watch.
//!
//! A new name outside of the worktree also causes an event on the file only. If there are few tracked files, each has a
//! watch. Otherwise the daemon looks at the numbers of names from time to time.

use std::collections::{BTreeSet, HashMap};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::inotify;

use super::tree::{ALWAYS, ENTRY, NodeId, TRACKED, Tree};
use super::walk::{self, FILE_EVENTS};
use crate::Reason;

/// Maximum number of files without a watch that every answer names.
const ALWAYS_MAX: usize = 10_000;

/// The files that have their own watches, and the files that need a watch.
#[derive(Default)]
pub struct Files {
    /// The names of each watched file below the root, by its watch.
    watched: HashMap<i32, Vec<NodeId>>,
    /// Files with several names.
    linked: BTreeSet<NodeId>,
    /// Files with several names that have no watch.
    unwatched: BTreeSet<NodeId>,
    /// Number of files that may be watched.
    pub limit: usize,
    /// `true` if every tracked file has a watch.
    pub are_all_watched: bool,
    /// `true` after the tracked files have been listed.
    pub is_known: bool,
}

impl Files {
    pub fn has(&self, watch: i32) -> bool {
        self.watched.contains_key(&watch)
    }

    pub fn nodes(&self, watch: i32) -> Vec<NodeId> {
        self.watched.get(&watch).cloned().unwrap_or_default()
    }

    pub fn count(&self) -> usize {
        self.watched.len()
    }

    pub fn linked_count(&self) -> usize {
        self.linked.len()
    }

    pub fn always_count(&self) -> usize {
        self.unwatched.len()
    }

    /// Returns the reason why no answer can name paths.
    pub fn problem(&self) -> Option<Reason> {
        if !self.is_known {
            return Some(Reason::Walking);
        }
        (self.unwatched.len() > ALWAYS_MAX).then_some(Reason::Links)
    }

    /// Prepares for a list of the tracked files, which the caller then passes to [`Files::check`]. `since` is the
    /// number of the last change before git began to list them.
    pub fn begin_list(&mut self, tree: &mut Tree, kernel: BorrowedFd<'_>, are_all: bool, since: u64) {
        self.is_known = true;
        self.are_all_watched = are_all;
        // The list contains every tracked file that had several names, so a file that did not change is untracked if
        // the list lacks it.
        let is_old = |tree: &Tree, node: NodeId| tree.last_change(node) <= since;
        let old: Vec<NodeId> = self.unwatched.iter().copied().filter(|node| is_old(tree, *node)).collect();
        for node in old {
            self.forget(tree, kernel, node);
        }
        if self.watched.len() * 2 < self.limit {
            return;
        }
        // Room for tracked files.
        let is_spare =
            |node: &NodeId| tree.flags(*node) & TRACKED == 0 && (!self.linked.contains(node) || is_old(tree, *node));
        let spare: Vec<NodeId> = self.watched.values().flatten().copied().filter(is_spare).collect();
        for node in spare {
            self.forget(tree, kernel, node);
        }
    }

    /// Marks a file as tracked.
    pub fn track(&mut self, tree: &mut Tree, node: NodeId) {
        tree.set(node, TRACKED);
    }

    /// Looks at a file, and gives it a watch if it needs one.
    pub fn check(&mut self, tree: &mut Tree, root: BorrowedFd<'_>, kernel: BorrowedFd<'_>, node: NodeId) {
        let path = tree.path(node);
        let is_tracked = tree.flags(node) & TRACKED != 0;
        // A new file may become a tracked one before the next list.
        let is_wanted = self.are_all_watched && (is_tracked || self.watched.len() * 2 < self.limit);
        if !is_wanted && !self.linked.contains(&node) && walk::names_of(root, &path).is_none_or(|names| names < 2) {
            return;
        }
        let Ok(Some((file, names))) = walk::open_regular(root, &path) else {
            return self.forget(tree, kernel, node);
        };
        if names > 1 {
            self.linked.insert(node);
        } else {
            self.linked.remove(&node);
            if !is_wanted {
                return self.forget(tree, kernel, node);
            }
        }
        let old = tree.watch(node);
        let may_add = old != 0 || self.watched.len() < self.limit;
        let watch = may_add.then(|| walk::add_watch(kernel, file.as_fd(), FILE_EVENTS));
        if let Some(Ok(watch)) = watch {
            if old != watch {
                self.detach(tree, kernel, node);
                self.watched.entry(watch).or_default().push(node);
                tree.set_watch(node, watch);
                // It may have changed before it had the watch.
                tree.change(node, ENTRY);
            }
            self.unwatched.remove(&node);
            tree.clear(node, ALWAYS);
        } else {
            self.are_all_watched &= !is_tracked;
            self.detach(tree, kernel, node);
            if names > 1 {
                self.unwatched.insert(node);
                tree.set(node, ALWAYS);
            }
        }
    }

    fn detach(&mut self, tree: &mut Tree, kernel: BorrowedFd<'_>, node: NodeId) {
        let watch = tree.watch(node);
        if let Some(nodes) = self.watched.get_mut(&watch) {
            nodes.retain(|other| *other != node);
            if nodes.is_empty() {
                self.watched.remove(&watch);
                let _ = inotify::remove_watch(kernel, watch);
            }
            tree.set_watch(node, 0);
        }
    }

    /// Handles a name that no longer stands for a file that needs a watch.
    pub fn forget(&mut self, tree: &mut Tree, kernel: BorrowedFd<'_>, node: NodeId) {
        self.detach(tree, kernel, node);
        self.linked.remove(&node);
        if self.unwatched.remove(&node) {
            tree.clear(node, ALWAYS);
        }
    }

    /// Forgets the files without a watch below a folder that is gone.
    pub fn forget_below(&mut self, tree: &mut Tree, folder: NodeId) {
        let gone: Vec<NodeId> = self.linked.iter().copied().filter(|node| tree.is_below(*node, folder)).collect();
        for node in gone {
            self.linked.remove(&node);
            if self.unwatched.remove(&node) {
                tree.clear(node, ALWAYS);
            }
        }
    }

    /// Handles a watch that the kernel has removed.
    pub fn ignored(&mut self, tree: &mut Tree, watch: i32) {
        for node in self.watched.remove(&watch).unwrap_or_default() {
            if tree.watch(node) == watch {
                tree.set_watch(node, 0);
            }
            self.linked.remove(&node);
        }
    }

    /// Replaces all node numbers.
    pub fn renumber(&mut self, new: &impl Fn(NodeId) -> NodeId) {
        self.watched.values_mut().flatten().for_each(|node| *node = new(*node));
        self.watched.values_mut().for_each(|nodes| nodes.retain(|node| *node != 0));
        self.linked = self.linked.iter().map(|node| new(*node)).filter(|node| *node != 0).collect();
        self.unwatched = self.unwatched.iter().map(|node| new(*node)).filter(|node| *node != 0).collect();
    }
}
