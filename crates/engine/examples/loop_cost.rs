//! Measures the overhead of a run's main loop between two in-process measurements. The overhead is the time from the
//! end of one measurement to the start of the next. The measured functions read both times from the clock. Run this
//! program with `cargo xtask bench loop`.
#![allow(clippy::print_stdout)]

use std::cell::RefCell;
use std::time::Duration;

use ascertain_engine::claim::Claim;
use ascertain_engine::experiment::{
    Arm, ArmId, Experiment, Metric, Point, Samples, Session, Setup, Spec, TargetError, Trial, Variant,
};
use ascertain_engine::plan::{Config, Plan};
use ascertain_engine::run::{Recording, Silent, run};
use ascertain_sys::clock;

thread_local! {
    /// Gaps between measurements in nanoseconds, and the time at which the last measurement ended.
    static GAPS: RefCell<(Vec<u64>, u64)> = RefCell::new((Vec::with_capacity(1 << 22), 0));
}

struct Nothing(Spec);
struct Gaps;

impl Session for Gaps {
    fn verify(&mut self, _: ArmId) -> Result<(), TargetError> {
        Ok(())
    }

    fn measure(&mut self, _: ArmId, _: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let start_ns = clock::now_ns();
        GAPS.with_borrow_mut(|(gaps, ended_ns)| {
            if *ended_ns > 0 && gaps.len() < gaps.capacity() {
                gaps.push(start_ns - *ended_ns);
            }
        });
        // A value that never leads to a decision, because there are as many ties, wins and losses.
        out.push(0, 100.0 + (start_ns % 3) as f64);
        GAPS.with_borrow_mut(|(_, ended_ns)| *ended_ns = clock::now_ns());
        Ok(())
    }
}

impl Experiment for Nothing {
    fn spec(&self) -> &Spec {
        &self.0
    }

    fn open(&self, _: &[Arm], _: &Setup) -> Result<Box<dyn Session>, TargetError> {
        Ok(Box::new(Gaps))
    }
}

fn main() {
    let variant = |name: &str| Variant { name: name.into(), about: String::new() };
    let nothing = Nothing(Spec {
        id: "nothing".into(),
        variants: vec![variant("a"), variant("b")],
        metrics: vec![Metric::time("time", "")],
        ..Spec::default()
    });
    let arm = |variant: &str| Arm { variant: variant.into(), point: Point::default() };
    let plan = Plan {
        claims: vec![Claim::order("nothing", &Metric::time("time", ""), &arm("b"), &arm("a"))],
        tables: Vec::new(),
        // An error so small that chance never reaches it.
        config: Config { error: 1e-12, max_time: Duration::from_secs(2), ..Config::default() },
        ..Plan::default()
    };
    let folder = std::env::temp_dir().join("ascertain-loop-cost");
    for (name, recording) in [
        ("without evidence", Recording::None),
        (
            "with evidence",
            Recording::New {
                runs: folder.clone(),
                command_line: Vec::new(),
                render: Default::default(),
                label: None,
                revision: None,
                known: None,
            },
        ),
    ] {
        GAPS.with_borrow_mut(|(gaps, ended_ns)| (gaps.clear(), *ended_ns = 0).1);
        let outcome = run(&plan, &[&nothing], recording, &Default::default(), &mut Silent);
        GAPS.with_borrow_mut(|(gaps, _)| {
            gaps.sort_unstable();
            let quantile = |q: f64| gaps[((gaps.len() - 1) as f64 * q) as usize];
            let mean = gaps.iter().sum::<u64>() as f64 / gaps.len() as f64;
            println!(
                "  {name}: {} gaps, median {} ns, p90 {} ns, p99 {} ns, mean {mean:.0} ns{}",
                gaps.len(),
                quantile(0.5),
                quantile(0.9),
                quantile(0.99),
                if outcome.is_ok() { "" } else { " (the run failed)" },
            );
        });
    }
    let _ = std::fs::remove_dir_all(folder);
}
