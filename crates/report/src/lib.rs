#![doc = include_str!("../README.md")]

pub mod bench;
pub mod csv;
pub mod export;
pub mod figure;
pub mod html;
pub mod hyperfine;
pub mod json;
pub mod judgement;
pub mod markdown;
pub mod plot;
pub mod sentence;
pub mod terminal;

mod clause;
mod grid;
mod grids;
mod text;
