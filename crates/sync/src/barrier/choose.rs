//! The best barrier of this machine, as a type.

use super::unavailable::{Method, Unavailable};
use super::{Barrier, Expedited, Fences, Global, Interrupts};

/// What is to be done with a barrier whose type is known only when the program runs: code that is compiled once for
/// each, so that the light side stays free.
pub trait Visitor {
    /// What comes of it.
    type Output;

    /// Gets the barrier.
    fn visit<B: Barrier>(self, barrier: B) -> Self::Output;
}

/// Cheap to wait for first. [`Method::Fences`] is always there.
pub const BEST_FIRST: [Method; 4] = [Method::Expedited, Method::Interrupts, Method::Global, Method::Fences];

/// Runs the visitor with the first of the methods that this machine has, or else with [`Fences`].
///
/// ```
/// use ascertain_sync::barrier::{BEST_FIRST, Barrier, Visitor, choose};
/// use ascertain_sync::hazard::Domain;
///
/// struct Server;
///
/// impl Visitor for Server {
///     type Output = usize;
///
///     fn visit<B: Barrier>(self, barrier: B) -> usize {
///         let domain = Domain::new(barrier);
///         // … the whole program, with `Domain<B>` in it …
///         domain.slots()
///     }
/// }
///
/// assert_eq!(choose(&BEST_FIRST, Server), 0);
/// ```
pub fn choose<V: Visitor>(methods: &[Method], visitor: V) -> V::Output {
    for method in methods {
        match method {
            Method::Expedited => {
                if let Ok(barrier) = Expedited::new() {
                    return visitor.visit(barrier);
                }
            }
            Method::Interrupts => {
                if let Ok(barrier) = Interrupts::new() {
                    return visitor.visit(barrier);
                }
            }
            Method::Global => {
                if let Ok(barrier) = Global::new() {
                    return visitor.visit(barrier);
                }
            }
            Method::Fences => break,
        }
    }
    visitor.visit(Fences)
}

impl Method {
    /// Whether this machine has it.
    ///
    /// # Errors
    /// Why it has not.
    pub fn is_available(self) -> Result<(), Unavailable> {
        match self {
            Self::Expedited => Expedited::new().map(drop),
            Self::Interrupts => Interrupts::new().map(drop),
            Self::Global => Global::new().map(drop),
            Self::Fences => Ok(()),
        }
    }
}
