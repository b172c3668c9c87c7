//! The program that git calls (`core.fsmonitor`), which is also the daemon.

fn main() {
    ascertain_fsmonitor::hook_main()
}
