//! Reads git's Trace2 events, which tell where the time of a command goes.

use serde_json::Value;

/// The phases of `git status`. Each has the category and the label of a region in the trace. Regions of the same phase
/// are added.
const PHASES: [(&str, &str, &str); 11] = [
    ("index", "do_read_index", "read index"),
    ("fsm_hook", "query", QUERY),
    ("fsm_client", "query", QUERY),
    ("fsmonitor", "apply_results", "apply answer"),
    ("index", "preload", "look up files"),
    ("index", "refresh", "look up files"),
    ("status", "worktrees", "compare files"),
    ("status", "index", "compare index"),
    ("status", "untracked", "find untracked"),
    ("index", "do_write_index", "write index"),
    ("status", "print", "print"),
];
const QUERY: &str = "query monitor";
/// The time outside of all phases.
const REST: &str = "start and rest";

/// The contents of a trace that the experiment uses.
#[derive(Debug, Default, PartialEq)]
pub struct Trace {
    /// The duration of each phase in nanoseconds, in the order in which the phases began.
    pub phases: Vec<(&'static str, f64)>,
    /// Number of files that git looked up; `None` if this git does not report it.
    pub looked_up: Option<u64>,
    /// `true` if the monitor named the changed files, `false` if it gave no answer or answered that everything may have
    /// changed. `None` if the trace has no query of a monitor.
    pub is_short: Option<bool>,
}

/// A region that has begun. `of_phases_ns` is the time of phases inside of the region.
struct Region {
    phase: Option<&'static str>,
    of_phases_ns: f64,
}

impl Trace {
    /// Reads the events of one command, one JSON object per line. `wall_ns` is the duration of the command.
    pub fn read(events: &str, wall_ns: f64) -> Trace {
        let mut trace = Trace::default();
        let mut regions = vec![Region { phase: None, of_phases_ns: 0.0 }];
        for event in events.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            trace.add(&event, &mut regions);
        }
        let known: f64 = trace.phases.iter().map(|(_, ns)| ns).sum();
        trace.phases.push((REST, (wall_ns - known).max(0.0)));
        trace
    }

    fn add(&mut self, event: &Value, regions: &mut Vec<Region>) {
        let text = |key: &str| event[key].as_str().unwrap_or_default();
        let took_ns = event["t_rel"].as_f64().unwrap_or(0.0) * 1e9;
        let is_phase = |known: &&(&str, &str, &str)| known.0 == text("category") && known.1 == text("label");
        match text("event") {
            // Other threads have regions of their own, at the same time.
            "region_enter" if text("thread") == "main" => {
                let phase = PHASES.iter().find(is_phase).map(|(.., phase)| *phase);
                if let Some(phase) = phase {
                    self.begin(phase);
                }
                regions.push(Region { phase, of_phases_ns: 0.0 });
            }
            "region_leave" if text("thread") == "main" && regions.len() > 1 => {
                let region = regions.pop();
                let (phase, of_phases_ns) = region.map_or((None, 0.0), |region| (region.phase, region.of_phases_ns));
                let passed_on_ns = match phase {
                    Some(phase) => {
                        self.spend(phase, took_ns - of_phases_ns);
                        took_ns
                    }
                    None => of_phases_ns,
                };
                if let Some(outer) = regions.last_mut() {
                    outer.of_phases_ns += passed_on_ns;
                }
            }
            // Older gits run the hook outside of any region.
            "child_exit" if regions.iter().all(|region| region.phase != Some(QUERY)) => {
                self.begin(QUERY);
                self.spend(QUERY, took_ns);
                if let Some(outer) = regions.last_mut() {
                    outer.of_phases_ns += took_ns;
                }
            }
            "data" => self.add_data(text("category"), text("key"), &event["value"]),
            _ => {}
        }
        if matches!(text("category"), "fsm_hook" | "fsm_client") {
            self.is_short.get_or_insert(true);
        }
    }

    fn add_data(&mut self, category: &str, key: &str, value: &Value) {
        let number = value.as_u64().or_else(|| value.as_str()?.parse().ok());
        match (category, key) {
            ("index", "preload/sum_lstat" | "refresh/sum_lstat") => {
                *self.looked_up.get_or_insert(0) += number.unwrap_or(0);
            }
            ("fsm_hook" | "fsm_client", "query/trivial-response" | "query/failed") if number != Some(0) => {
                self.is_short = Some(false);
            }
            _ => {}
        }
    }

    /// Adds a phase without any time, unless the phase has begun before.
    fn begin(&mut self, phase: &'static str) {
        if self.phases.iter().all(|(known, _)| *known != phase) {
            self.phases.push((phase, 0.0));
        }
    }

    fn spend(&mut self, phase: &'static str, ns: f64) {
        for (_, sum_ns) in self.phases.iter_mut().filter(|(known, _)| *known == phase) {
            *sum_ns += ns.max(0.0);
        }
    }
}
