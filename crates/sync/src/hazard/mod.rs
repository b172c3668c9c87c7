#![doc = include_str!("README.md")]

mod domain;
mod pointer;
mod retirer;

pub use domain::Domain;
pub use pointer::{Guard, Hazard, OwnedGuard};
pub use retirer::Retirer;

/// An object that readers protect with a [`Hazard`] while writers replace it.
pub type Published<T, B> = crate::reclaim::Published<T, Domain<B>>;
