//! The experiments that ship with Ascertain.
