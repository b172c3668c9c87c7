//! Sequential tests, confidence sequences and exact bounds for Bernoulli claims.
