//! Downloads over links and from elsewhere, end to end.
