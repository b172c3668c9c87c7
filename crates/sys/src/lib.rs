//! What this machine is and can do: clocks, processes, signals, topology.
