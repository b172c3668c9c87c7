//! Puts performance claims on trial: randomised, paired trials that stop as soon as the evidence suffices.
