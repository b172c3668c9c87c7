//! Tests of the first forecast, which is based on earlier commands to the same store.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use ascertain_netlab::store::{RunningStore, Store as Served};
use ascertain_transfer::{Direction, Forecast, Observer, Progress, Settings, Stop, TransferRequest, run};

use crate::common::{address, bytes, options_for, start};

/// The number of transferred bytes and the forecast of a progress report.
type Report = (u64, Option<Forecast>);

/// Records each progress report.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<Report>>>);

impl Observer for Recorder {
    fn progress(&self, progress: &Progress<'_>) {
        self.0.lock().unwrap().push((progress.done_bytes, progress.forecast));
    }
}

/// Carries out a command whose journals are below `folder`. Returns the recorded forecasts.
fn transfer(
    store: &RunningStore,
    folder: &Path,
    direction: Direction,
    [from, to]: [&str; 2],
    change: fn(&mut Settings),
) -> Vec<Report> {
    let journals = Some(folder.join("journals"));
    let mut request = TransferRequest {
        direction,
        sources: vec![from.into()],
        destination: to.into(),
        settings: Settings { journals, ..Settings::default() },
        store: options_for(store),
        ..TransferRequest::default()
    };
    change(&mut request.settings);
    let recorder = Recorder::default();
    let results = run(&request, Box::new(recorder.clone()), Stop::default()).unwrap();
    assert!(results.iter().all(|result| result.is_transferred()), "{results:?}");
    recorder.0.lock().unwrap().clone()
}

/// After three commands, the first report comes before the first byte, and has a forecast. A forecast that is based on
/// the command's own parts replaces it.
#[test]
fn after_three_commands_a_forecast_comes_before_the_first_byte() {
    let folder = tempfile::tempdir().unwrap();
    let (file, many) = (folder.path().join("file"), folder.path().join("many"));
    fs::write(&file, bytes(4_000_000)).unwrap();
    fs::create_dir(&many).unwrap();
    (0..8).for_each(|index| fs::write(many.join(index.to_string()), bytes(500_000)).unwrap());
    let [file, many, target] = [file, many, folder.path().join("target")].map(|path| path.display().to_string());
    let store = start(Served::azure());
    let [object, prefix] = ["file", "many/"].map(|name| address(&store, name));
    let put = |paths: [&str; 2], change| transfer(&store, folder.path(), Direction::Put, paths, change);
    for _ in 0..3 {
        let reports = put([&file, &object], |_| {});
        assert!(reports[0].0 > 0 && reports.iter().all(|(_, forecast)| forecast.is_none_or(|one| one.earlier == 0)));
    }
    for command in [[&*file, &*object], [&many, &prefix]] {
        let (done_bytes, forecast) = put(command, |_| {})[0];
        let Forecast { expected_s, low_s, high_s, earlier } = forecast.unwrap();
        assert!(done_bytes == 0 && earlier >= 3, "{command:?}: {forecast:?}");
        assert!(0.0 < low_s && low_s < expected_s && expected_s < high_s, "{command:?}: {forecast:?}");
    }
    // Without a folder for journals, earlier commands are not known. A command that reads the object back takes longer
    // than they did.
    let changes: [fn(&mut Settings); 2] = [|settings| settings.journals = None, |settings| settings.verify = true];
    for change in changes {
        let reports = put([&file, &object], change);
        assert!(reports.iter().all(|(_, forecast)| forecast.is_none_or(|one| one.earlier == 0)), "{reports:?}");
    }
    // A command that may skip files needs time for these files, too.
    let changes: [fn(&mut Settings); 2] =
        [|settings| settings.skip_unchanged = true, |settings| settings.no_clobber = true];
    for (index, change) in changes.into_iter().enumerate() {
        let reports = put([&file, &address(&store, &index.to_string())], change);
        assert!(reports.iter().all(|(_, forecast)| forecast.is_none_or(|one| one.earlier == 0)), "{reports:?}");
    }
    let got = transfer(&store, folder.path(), Direction::Get, [&object, &target], |_| {});
    assert!(got[0].0 > 0, "the other direction has no history: {got:?}");
    let histories: Vec<_> =
        fs::read_dir(folder.path().join("journals")).unwrap().map(|one| one.unwrap().path()).collect();
    assert_eq!(histories.len(), 2, "{histories:?}");
    let texts = histories.iter().map(|path| fs::read_to_string(path).unwrap());
    let secrets = |text: String| text.contains("file") || text.contains(&store.store().secret);
    assert!(!texts.map(|text| text.replace("\"files\"", "")).any(secrets), "names or credentials are recorded");
}
