#![doc = include_str!("README.md")]

mod domain;
mod pointer;

pub use domain::{Domain, Retirer};
pub use pointer::{Guard, Hazard, OwnedGuard};

/// An object that readers protect with a [`Hazard`] while writers replace it.
pub type Published<T, B> = crate::reclaim::Published<T, Domain<B>>;
