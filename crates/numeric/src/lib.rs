//! Fast and accurate numeric techniques, each variant addressable by name.
