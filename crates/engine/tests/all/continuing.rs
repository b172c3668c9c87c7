//! Tests of runs on a scripted experiment that end early and are continued from their evidence.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use ascertain_engine::Error;
use ascertain_engine::claim::{Bound, Claim, Judging};
use ascertain_engine::evidence::{self, Writer};
use ascertain_engine::experiment::{Experiment, Point, TargetError, Trial};
use ascertain_engine::finding::Reason;
use ascertain_engine::outcome::{ClaimResult, Verdict};
use ascertain_engine::plan::{Config, Plan};
use ascertain_engine::result::RunResult;
use ascertain_engine::run::{Recording, Silent};

use crate::common::{Scripted, noisy, plan, run, take, versus};

fn begin(folder: &Path, experiment: &Scripted, claims: Vec<Claim>, trials: u64) -> RunResult {
    // The limit of trials ends the run, however slow the machine is.
    let config = Config { max_trials: Some(trials), max_time: Duration::from_secs(3600), ..Config::default() };
    let recording = Recording::New {
        runs: folder.into(),
        command_line: vec!["test".into()],
        render: Default::default(),
        label: None,
        revision: None,
        known: None,
    };
    run(&plan(claims, config), &[experiment], recording, &Default::default(), &mut Silent).unwrap()
}

fn continued(before: &RunResult, experiment: &Scripted, max_trials: Option<u64>) -> Result<RunResult, Error> {
    let (writer, recorded) = Writer::resume(before.folder.as_ref().unwrap(), None).unwrap();
    let plan = recorded.header.plan.clone();
    let plan = Plan { config: Config { max_trials, ..plan.config.clone() }, ..plan };
    run(&plan, &[experiment], Recording::Continue(Box::new((writer, recorded))), &Default::default(), &mut Silent)
}

/// Returns the conclusions without durations, because a trial that is read back has no duration.
fn concluded(claims: &[ClaimResult]) -> Vec<ClaimResult> {
    let mut claims = claims.to_vec();
    for claim in &mut claims {
        claim.elapsed_ns = 0;
        for reason in &mut claim.reasons {
            if let Reason::TooEarly { least, run_ns, .. } = reason {
                (least.takes_ns, *run_ns) = (None, None);
            }
        }
    }
    claims
}

/// A run that is ended early and then continued must have the same result as a run without a break.
#[test]
fn continuing_is_as_good_as_going_on() {
    let folder = tempfile::tempdir().unwrap();
    let experiment = Scripted::new(&["slow", "fast"], |variant, trial| {
        let coin = trial.seed % 10 < 6;
        Ok(if (variant == "fast") == coin { 100.0 } else { 110.0 })
    });
    let registry: [&dyn Experiment; 1] = [&experiment];
    let claim = || versus("order", "fast", "slow", Bound::AtLeast(1.0), Judging::Order);
    let recording = || Recording::New {
        runs: folder.path().into(),
        command_line: vec!["test".into()],
        render: Default::default(),
        label: None,
        revision: None,
        known: None,
    };

    let whole =
        run(&plan(vec![claim()], Config::default()), &registry, recording(), &Default::default(), &mut Silent).unwrap();
    let trials = whole.outcome.claims[0].trials;
    assert!(trials > 40, "{trials}: the test wants a verdict that takes long");

    let config = Config { max_trials: Some(40), ..Config::default() };
    let first = run(&plan(vec![claim()], config), &registry, recording(), &Default::default(), &mut Silent).unwrap();
    assert_eq!(first.outcome.claims[0].verdict, Verdict::Undecided);
    let second = continued(&first, &experiment, None).unwrap();
    assert_eq!(concluded(&second.outcome.claims), concluded(&whole.outcome.claims));
    assert_eq!(second.outcome.points, whole.outcome.points);
    let header = evidence::read_header(second.folder.as_ref().unwrap()).unwrap();
    assert_eq!(header.outcome.unwrap().claims[0].trials, trials);
}

/// A continuation has the same verdicts whether the lines were removed or not.
#[cfg(feature = "parquet")]
#[test]
fn removed_lines_change_no_verdict() {
    let experiment = Scripted::new(&["slow", "fast"], |variant, trial| {
        let coin = trial.seed % 10 < 6;
        Ok(if (variant == "fast") == coin { 100.0 } else { 110.0 })
    });
    let outcomes = [false, true].map(|is_restored| {
        let folder = tempfile::tempdir().unwrap();
        let claims = vec![versus("order", "fast", "slow", Bound::AtLeast(1.0), Judging::Order)];
        let first = begin(folder.path(), &experiment, claims, 40);
        let lines = first.folder.as_ref().unwrap().join("trials.jsonl");
        assert_eq!(std::fs::metadata(&lines).unwrap().len(), 0);
        if is_restored {
            drop(Writer::resume(first.folder.as_ref().unwrap(), None).unwrap());
            assert!(std::fs::metadata(&lines).unwrap().len() > 0);
        }
        continued(&first, &experiment, Some(400)).unwrap().outcome
    });
    let [removed, restored] = &outcomes;
    assert_eq!(concluded(&removed.claims), concluded(&restored.claims));
    assert_eq!(removed.points, restored.points);
    assert!(removed.claims[0].trials > 40);
}

/// If a continuation finds other facts about an arm, both are kept: the old ones describe the earlier trials.
#[test]
fn facts_that_changed_meanwhile_are_all_kept() {
    let folder = tempfile::tempdir().unwrap();
    let found = |facts| Scripted { facts, ..Scripted::new(&["even", "odd"], noisy) };
    let cubic = found(|_| Ok(Point::default().with("congestion", "cubic")));
    let bbr = found(|variant| Ok(Point::default().with("congestion", if variant == "odd" { "bbr" } else { "cubic" })));
    let first =
        begin(folder.path(), &cubic, vec![versus("order", "even", "odd", Bound::AtLeast(1.0), Judging::Order)], 4);
    let second = continued(&first, &bbr, Some(8)).unwrap();
    let header = evidence::read_header(second.folder.as_ref().unwrap()).unwrap();
    let kept: Vec<_> =
        header.outcome.unwrap().facts.into_iter().map(|of| format!("{} {}", of.arm.variant, of.facts)).collect();
    assert_eq!(kept, ["odd congestion=cubic", "even congestion=cubic", "odd congestion=bbr"]);
}

/// After an arm has failed, later trials do not contain it. Claims that need this arm do not count these trials.
#[test]
fn a_failed_arm_stays_failed_when_continued() {
    fn breaks_once(variant: &str, trial: &Trial) -> Result<f64, TargetError> {
        match (variant, trial.number) {
            ("breaks", 5) => Err(TargetError::Failed("out of luck".into())),
            _ => noisy(variant, trial),
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let experiment = Scripted::new(&["even", "odd", "breaks"], breaks_once);
    let claims = vec![
        experiment.predicate("alone", "breaks", "time > 0 ns", 0.9),
        versus("paired", "breaks", "even", Bound::AtLeast(1e6), Judging::Rate),
        versus("open", "even", "odd", Bound::AtLeast(1.0), Judging::Order),
    ];
    let first = begin(folder.path(), &experiment, claims, 60);
    let second = continued(&first, &experiment, Some(80)).unwrap();
    for (before, after) in first.outcome.claims.iter().zip(&second.outcome.claims).take(2) {
        assert_eq!((after.verdict, after.trials), (Verdict::Failed, 5));
        assert_eq!(after.reasons, before.reasons);
        assert!(matches!(&after.reasons[..], [Reason::Failed { how, .. }] if how == "out of luck"), "{after:?}");
    }
    assert_eq!(second.outcome.claims[2].trials, 80);
}

/// A claim that was closed by its own time limit is judged by the trials that contained its arm, and by no others.
#[test]
fn a_claim_is_judged_by_trials_that_held_its_arms() {
    let folder = tempfile::tempdir().unwrap();
    let experiment = Scripted::new(&["even", "odd", "fast"], noisy);
    let mut brief = experiment.predicate("brief", "fast", "time > 0 ns", 0.9);
    brief.max_time = Some(Duration::from_nanos(1));
    let claims = vec![
        versus("decided", "fast", "even", Bound::AtLeast(1e6), Judging::Rate),
        versus("open", "even", "odd", Bound::AtLeast(1.0), Judging::Order),
        brief,
    ];
    let first = begin(folder.path(), &experiment, claims, 200);
    let decided = first.outcome.claims[0].trials;
    assert_eq!((first.outcome.claims[2].verdict, first.outcome.claims[2].trials), (Verdict::Undecided, 1));
    let second = continued(&first, &experiment, Some(200)).unwrap();
    assert_eq!(concluded(&second.outcome.claims[..2]), concluded(&first.outcome.claims[..2]));
    let brief = &second.outcome.claims[2];
    assert_eq!((brief.verdict, brief.trials, brief.successes), (Verdict::Undecided, decided, decided));
}

/// Each recorded trial is passed to the lane (group of arms) in which it was measured, even if lanes share arms.
#[test]
fn several_lanes_are_continued() {
    let folder = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..40).map(|number| number.to_string()).collect();
    let experiment = Scripted::new(&names.iter().map(String::as_str).collect::<Vec<_>>(), |variant, trial| {
        let coin = (trial.seed >> (variant.parse::<u32>().unwrap() % 40)) % 10 < 5;
        Ok(if coin { 100.0 } else { 110.0 })
    });
    let claims: Vec<Claim> =
        names[1..].iter().map(|name| versus(name, name, "0", Bound::AtLeast(1.0), Judging::Order)).collect();
    let first = begin(folder.path(), &experiment, claims, 60);
    let second = continued(&first, &experiment, Some(60)).unwrap();
    assert_eq!(concluded(&second.outcome.claims), concluded(&first.outcome.claims));
    let third = continued(&second, &experiment, Some(90)).unwrap();
    let open = third.outcome.claims.iter().filter(|claim| claim.verdict == Verdict::Undecided);
    assert!(open.clone().count() > 0 && open.clone().all(|claim| claim.trials == 90));
}

/// If an arm's answer is found to be wrong, its earlier times are removed. They stay removed when the run is continued.
#[test]
fn what_was_taken_back_stays_so() {
    static TRIAL: AtomicU64 = AtomicU64::new(0);
    fn long(variant: &str, trial: &Trial) -> Result<f64, TargetError> {
        TRIAL.store(trial.number, Relaxed);
        take(Duration::from_micros(300));
        noisy(variant, trial)
    }
    let is_right = |variant: &str| variant != "fast" || TRIAL.load(Relaxed) < 20;
    let experiment = Scripted { is_right, ..Scripted::new(&["slow", "fast"], long) };
    let folder = tempfile::tempdir().unwrap();
    let claim = Claim { rate: 0.999_999, ..versus("claim", "fast", "slow", Bound::AtLeast(1.0), Judging::Rate) };
    let first = begin(folder.path(), &experiment, vec![claim], 400);
    TRIAL.store(0, Relaxed);
    let second = continued(&first, &experiment, Some(400)).unwrap();
    for run in [first, second] {
        assert_eq!(run.outcome.claims[0].verdict, Verdict::Failed);
        assert!(matches!(run.outcome.left_out[0].reason, Reason::Failed { is_wrong: true, .. }));
        let n = |variant: &str| run.outcome.points.iter().find(|point| point.arm.variant == variant).unwrap().n;
        assert!(n("fast") == 0 && n("slow") > 0);
    }
}

/// A continuation that finds a wrong answer removes all values of that arm. The run may then have fewer values than
/// before, but its outcome must still describe the machine of the continuation.
#[test]
fn the_machine_is_that_of_the_latest_values() {
    static TRIAL: AtomicU64 = AtomicU64::new(0);
    fn long(variant: &str, trial: &Trial) -> Result<f64, TargetError> {
        TRIAL.store(trial.number, Relaxed);
        take(Duration::from_micros(300));
        noisy(variant, trial)
    }
    let is_right = |variant: &str| variant != "fast" || TRIAL.load(Relaxed) < 100;
    let experiment = Scripted { is_right, ..Scripted::new(&["slow", "fast"], long) };
    let folder = tempfile::tempdir().unwrap();
    let claim = Claim { rate: 0.999_999, ..versus("claim", "fast", "slow", Bound::AtLeast(1.0), Judging::Rate) };
    let first = begin(folder.path(), &experiment, vec![claim], 100);
    assert_ne!(first.outcome.claims[0].verdict, Verdict::Failed);
    let machine_after = |max_trials| {
        let (writer, mut recorded) = Writer::resume(first.folder.as_ref().unwrap(), None).unwrap();
        recorded.header.outcome.as_mut().unwrap().machine.cpu_model = "another".into();
        let plan = recorded.header.plan.clone();
        let plan = Plan { config: Config { max_trials: Some(max_trials), ..plan.config.clone() }, ..plan };
        let recording = Recording::Continue(Box::new((writer, recorded)));
        let run = run(&plan, &[&experiment as &dyn Experiment], recording, &Default::default(), &mut Silent).unwrap();
        (run.outcome.points.iter().map(|point| point.n).sum::<u64>(), run.outcome.machine.cpu_model)
    };
    assert_eq!(machine_after(100), (200, "another".into()), "nothing was measured");
    let (values, cpu) = machine_after(150);
    assert!(values < 200, "{values}");
    assert_eq!(cpu, first.outcome.machine.cpu_model);
}

#[test]
fn an_experiment_that_has_changed_is_not_continued() {
    let folder = tempfile::tempdir().unwrap();
    let mut experiment = Scripted::new(&["even", "odd"], noisy);
    let claims = vec![versus("open", "even", "odd", Bound::AtLeast(1.0), Judging::Order)];
    let first = begin(folder.path(), &experiment, claims, 10);
    experiment.spec.metrics.clear();
    let error = continued(&first, &experiment, None).unwrap_err();
    assert!(error.to_string().contains("`scripted` has other metrics"), "{error}");
}
