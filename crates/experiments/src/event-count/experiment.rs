//! The experiment as data: ways to publish, with and without a sleeper.

use std::sync::LazyLock;

use ascertain_engine::experiment::{
    Accepts, Arm, Better, Experiment, Factor, Metric, Point, Session, Setup, Spec, TargetError, Variant,
};
use ascertain_engine::unit::Unit;

use super::contestants::VARIANTS;
use super::session;

/// Event counts.
pub struct EventCount;

pub(super) const PUSH: usize = 0;
pub(super) const PASS: usize = 1;
pub(super) const PUBLISH: usize = 2;
pub(super) const WAKE: usize = 3;
pub(super) const DELAY: usize = 4;
pub(super) const PUBLISH_TASK: usize = 5;
pub(super) const HOP: usize = 6;

static SPEC: LazyLock<Spec> = LazyLock::new(|| {
    let lower = |name: &str, about: &str| Metric::new(name, about, Unit::Nanosecond, Better::Lower);
    Spec {
        id: "event-count".into(),
        title: "Event counts: publishing so that others can sleep".into(),
        readme: include_str!("README.md").into(),
        variants: VARIANTS
            .iter()
            .map(|variant| Variant { name: variant.name.into(), about: variant.about.into() })
            .collect(),
        factors: vec![Factor::new(
            "sleepers",
            "threads that sleep until something is published",
            0,
            Accepts::Integers { min: 0, max: 1 },
        )],
        metrics: vec![
            lower("push", "a push into a ring whose write index is the event count: the mean of a batch"),
            lower("pass", "a push and the pop of it, by one thread: the mean of a batch"),
            lower("publish", "a publication: the mean of a batch; with a sleeper, a single one that wakes it"),
            lower("wake", "from before the publication until the sleeper runs"),
            Metric::new(
                "delay",
                "`wake` as a share of the time that the sleeper had waited when that was published",
                Unit::One,
                Better::Lower,
            ),
            lower("publish-task", "a publication that wakes a task, which only notes it: the mean of a batch"),
            lower("hop", "from one of two tasks on a thread to the other, which wake each other: the mean of a batch"),
        ],
        plots: Vec::new(),
    }
});

impl Experiment for EventCount {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    /// With nobody waiting, and with a sleeper.
    fn table_arms(&self) -> Vec<Arm> {
        let arm = |name: &str, sleepers: u64| Arm {
            variant: name.into(),
            point: Point::default().with("sleepers", sleepers),
        };
        [0, 1].into_iter().flat_map(|sleepers| VARIANTS.iter().map(move |it| arm(it.name, sleepers))).collect()
    }

    fn open(&self, arms: &[Arm], _: &Setup) -> Result<Box<dyn Session>, TargetError> {
        session::open(arms)
    }
}
