//! Many tasks in one process: each is watched and stopped by itself, and none meets another.

use std::{fs, path::PathBuf, sync::Arc, time::Duration};

use nisse::{
    adapters::host::RunningCommands,
    agent::outside::Stopper,
    commands::{
        delegate::Delegation,
        result::TaskResult,
        run::Watch,
        worker::{Job, Worker},
    },
    domain::checkout::Isolation,
};
use serde_json::json;

use crate::support::{Script, Step, TestEnvironment, Wire, is_alive, wait_until};

const LONG: Duration = Duration::from_mins(2);

/// A task whose command waits for `go`, in a world of its own or in one that another works in too.
struct Begun<'a> {
    env: &'a TestEnvironment,
    worker: Worker,
    stopper: Stopper,
    commands: RunningCommands,
}

impl<'a> Begun<'a> {
    fn new(env: &'a TestEnvironment, opened: &Arc<nisse::commands::open::Opened>) -> Self {
        let brief = "Make out.txt.".to_owned();
        let delegation = Delegation { brief, branch: None, base: None, isolation: Isolation::Worktree };
        let (stopper, stop) = Stopper::new();
        let (live, _shown) = tokio::sync::mpsc::unbounded_channel();
        let commands = RunningCommands::default();
        let watch = Watch { subscribers: Vec::new(), live, stop, commands: commands.clone() };
        let worker = Worker::start(Arc::clone(opened), Job::Delegate(delegation), watch).unwrap();
        Self { env, worker, stopper, commands }
    }
}

/// The shells that wait in a world, with the worktrees that they stand in.
fn waiting(env: &TestEnvironment) -> Vec<(i32, PathBuf)> {
    let begun = fs::read_dir(env.root()).unwrap().flatten().filter_map(|entry| {
        let shell: i32 = entry.file_name().to_str()?.strip_prefix("begun.")?.parse().ok()?;
        Some((shell, fs::read_link(format!("/proc/{shell}/cwd")).ok()?))
    });
    begun.collect()
}

fn result(runtime: &tokio::runtime::Runtime, begun: Begun<'_>) -> TaskResult {
    runtime.block_on(begun.worker.result()).unwrap()
}

#[test]
fn eight_work_at_once_and_one_is_stopped() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let worlds: Vec<_> = (0..7)
        .map(|nth| {
            let wire = if nth % 2 == 0 { Wire::Chat } else { Wire::Messages };
            let wait = "touch ../../../begun.$$; until [ -e ../../../go ]; do sleep 0.05; done; echo out > out.txt";
            let wait = Step::call("run_command", json!({"command": wait}));
            TestEnvironment::new(wire, Script::ByHistory(vec![wait, Step::hand_back(), Step::give_up()]))
        })
        .collect();
    // the last world has two: one repository, one log
    let mut begun = Vec::new();
    for env in &worlds {
        let opened = env.opened();
        begun.push(Begun::new(env, &opened));
        if begun.len() == worlds.len() {
            begun.push(Begun::new(env, &opened));
        }
    }
    let all = || worlds.iter().flat_map(waiting).collect::<Vec<_>>();
    assert!(wait_until(LONG, || all().len() == 8), "all run a command at once: {:?}", all());

    let stopped = begun.pop().unwrap();
    stopped.stopper.stop();
    let shared = stopped.env;
    let rests = result(&runtime, stopped);
    assert_eq!((rests.outcome, rests.exit), ("stopped", 7), "{}", rests.cause);
    let place = shared.state().join("worktrees").join(rests.task.to_string());
    let living: Vec<_> = all().into_iter().filter(|(shell, _)| is_alive(*shell)).collect();
    assert_eq!(living.len(), 7, "only its own command is ended: {living:?}");
    assert!(living.iter().all(|(_, at)| *at != place));

    // an end at once is for one task's commands too
    let killed = begun.remove(0);
    killed.commands.kill();
    let answered = result(&runtime, killed);
    assert_eq!(answered.outcome, "failed", "{}", answered.cause);
    assert_eq!(all().into_iter().filter(|(shell, _)| is_alive(*shell)).count(), 6);

    for env in &worlds {
        fs::write(env.root().join("go"), "").unwrap();
    }
    for one in begun {
        let env = one.env;
        let done = result(&runtime, one);
        assert_eq!((done.outcome, done.exit), ("handback", 0), "{}", done.cause);
        assert_eq!(env.on_branch(&json!(done), "out.txt").unwrap(), b"out\n");
        assert_eq!(env.checkout.git(&["status", "--porcelain"]), "");
        assert_eq!(env.server.violations(), Vec::<String>::new());
    }
}
