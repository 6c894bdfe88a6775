//! Any prefix of a task's log can be resumed, and ends as if it had never been cut.
//!
//! A task is run to its end; then, for every event, its log is cut behind it, branch and worktree are set to the last
//! checkpoint that the prefix names, and the loop is entered again with a model that answers by what a request holds.

mod decisions;
mod ends;
mod in_place;
mod lost_request;
mod verdicts;
mod window;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Mutex},
};

use nisse::{
    adapters::{
        host::Local,
        scripted::{Scripted, reply},
    },
    agent::{
        outside::{Outside, Stopper},
        roles, turn,
        workplace::Workplace,
    },
    domain::{
        caps::Caps,
        checkout::Isolation,
        event::{Event, EventKind},
        id::{CommitId, IntentId, TaskId},
        intent::{IntentKind, Status},
        mask::Mask,
        message::{self, Call, Part},
        model::{PinnedModel, Prices, Route, Usage},
        money::Money,
        outcome::{Outcome, Pause},
        reasoning::Reasoning,
        started::{Assignment, CommandRules, FileLimits, HostName, Models, Sandbox, TaskStarted, Tree, WorkplaceSpec},
        task::Task,
    },
    log::{Access, Journal, Log},
    ports::{
        clock::Clock,
        llm::{self, Message, Request},
    },
    repo::{Checkout, Environment, Worktree, WorktreeSpec},
};
use serde_json::{Value, json};

pub(crate) const TASK: TaskId = TaskId(uuid::Uuid::from_u128(0x7000_8000_0000_0000_0042));
pub(crate) const CLOCK: Clock = Clock::Fixed { at_ms: 1_796_000_000_000 };

/// One reply of the scripted model.
#[derive(Clone)]
enum Reply {
    Calls(Vec<(&'static str, Value)>),
    Prose(&'static str),
}

struct Scenario {
    replies: Vec<Reply>,
    turns: u32,
    outcome: &'static str,
    model: Model,
    evicts: bool,
}

/// What the model can hold.
#[derive(Clone, Copy)]
struct Model {
    /// Its window, as the task knows it.
    window: u64,
    /// Requests of more estimated tokens are refused as too large, whatever the task knows.
    holds: u64,
}

const LARGE: Model = Model { window: 100_000, holds: u64::MAX };

fn calls(calls: &[(&'static str, Value)]) -> Reply {
    Reply::Calls(calls.to_vec())
}

fn hand_back(succeeded: bool) -> (&'static str, Value) {
    ("hand_back", json!({"changed": "a.txt", "now_true": "it is so", "next": "nothing", "succeeded": succeeded}))
}

/// How a run of the loop went: its outcome, its events, the requests that were sent.
pub(crate) type Entered = (Outcome, Vec<Event>, Vec<Request>);

/// A world of its own: a repository with unfinished work, a state directory, a place for logs.
pub(crate) struct World {
    _dir: tempfile::TempDir,
    pub(crate) repo: PathBuf,
    pristine: PathBuf,
    pub(crate) worktree: PathBuf,
    logs: PathBuf,
    environment: Environment,
}

pub(crate) fn git(dir: &Path, args: &[&str]) -> String {
    #[expect(clippy::disallowed_methods, reason = "tests look at repositories with git itself")]
    let output = Command::new("git").arg("-C").arg(dir).args(args).output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

pub(crate) fn copy(from: &Path, to: &Path) {
    #[expect(clippy::disallowed_methods, reason = "a copy that keeps everything")]
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap();
    assert!(status.success());
}

#[expect(clippy::disallowed_methods, reason = "a test's own files")]
fn write(path: PathBuf, text: &str) {
    fs::write(path, text).unwrap();
}

impl World {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (repo, pristine) = (root.join("repo"), root.join("pristine"));
        fs::create_dir(&repo).unwrap();
        git(&repo, &["init", "-q", "-b", "main"]);
        write(repo.join("a.txt"), "one\ntwo\n");
        write(repo.join("b.txt"), "b\n");
        write(repo.join("long.txt"), &"a line of which nothing matters much\n".repeat(120));
        git(&repo, &["add", "-A"]);
        git(&repo, &["-c", "user.name=D", "-c", "user.email=d@example.invalid", "commit", "-qm", "base"]);
        write(repo.join("unfinished.txt"), "mine\n");
        copy(&repo, &pristine);
        fs::create_dir(root.join("logs")).unwrap();
        let environment = Environment::new([("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())]);
        Self {
            repo,
            pristine,
            worktree: root.join("state/worktrees/t"),
            logs: root.join("logs"),
            environment,
            _dir: dir,
        }
    }

    pub(crate) fn started(&self, turns: u32) -> TaskStarted {
        let checkout = self.checkout();
        TaskStarted {
            tree: Tree::root(TASK),
            role: roles::delegate(),
            wording: roles::wording(),
            assignment: Assignment::Brief("say three where it says two".to_owned()),
            models: Models {
                own: PinnedModel {
                    alias: "scripted".to_owned(),
                    backing: "test/scripted".to_owned(),
                    provider: "test".to_owned(),
                    route: Route::Normalized,
                    window: LARGE.window,
                    max_output: 4096,
                    tool_choice: false,
                    reasoning: Reasoning::Off,
                    prices: Prices { input: Some(Money(1)), output: Some(Money(2)), ..Prices::default() },
                },
                others: BTreeMap::new(),
            },
            caps: Caps { turns, tokens: 1 << 40, cost: None, time_ms: 1 << 40 },
            workplace: WorkplaceSpec {
                host: HostName::Here,
                checkout: self.repo.to_str().unwrap().to_owned(),
                base: checkout.base().unwrap(),
                branch: "nisse/prefix".to_owned(),
                worktree: self.worktree.to_str().unwrap().to_owned(),
                isolation: Isolation::Worktree,
                filters: nisse::domain::filters::Filters::default(),
                copy: Vec::new(),
                setup: Some("touch left-by-the-setup".to_owned()),
            },
            checks: vec!["grep -q three a.txt && touch left-by-the-check".to_owned()],
            commands: CommandRules {
                time_ms: 60_000,
                pass_env: Vec::new(),
                keep_output: 16_384,
                sandbox: Sandbox::None,
            },
            files: FileLimits { deny: Vec::new(), max_untracked: 1 << 20 },
        }
    }

    pub(crate) fn checkout(&self) -> Checkout {
        Checkout::open(&self.repo, &self.environment).unwrap()
    }

    /// Back to the beginning, with the objects of `past` so that recorded commits can be found.
    pub(crate) fn reset(&self, past: Option<&Path>) {
        for dir in [&self.repo, &self.worktree] {
            if dir.exists() {
                fs::remove_dir_all(dir).unwrap();
            }
        }
        copy(&self.pristine, &self.repo);
        if let Some(past) = past {
            copy(&past.join(".git/objects/."), &self.repo.join(".git/objects/"));
        }
    }

    /// Enters the loop with a model that takes these replies.
    fn enter(&self, journal: Journal, replies: &[Reply]) -> Entered {
        let replies = replies.to_vec();
        self.enter_with(journal, move |request| Ok(reply(request, answer(request, &replies))))
    }

    /// Enters the loop; gives the outcome, the events and the requests that were sent.
    pub(crate) fn enter_with(
        &self,
        mut journal: Journal,
        script: impl Fn(&Request) -> Result<message::Reply, llm::Error> + Send + Sync + 'static,
    ) -> Entered {
        let sent = Arc::new(Mutex::new(Vec::new()));
        let model = {
            let sent = Arc::clone(&sent);
            Scripted::new(move |request| {
                sent.lock().unwrap().push(request.clone());
                script(request)
            })
        };
        let checkout = self.checkout();
        let host = Local::new(
            Path::new(&journal.task().started.workplace.worktree),
            [("PATH", "/usr/local/bin:/usr/bin:/bin")],
        );
        let (_stopper, stop) = Stopper::new();
        let (live, _shown) = tokio::sync::mpsc::unbounded_channel();
        let outside = Outside { llm: Some(&model), mask: Mask::new(&[]), stop, live };
        let mut place = Workplace::new(&host, &checkout);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let outcome = runtime.block_on(turn::run(&mut journal, &mut place, &outside)).unwrap();
        let requests = std::mem::take(&mut *sent.lock().unwrap());
        (outcome, journal.events().unwrap(), requests)
    }

    pub(crate) fn log(&self, name: &str) -> Log {
        Log::open(&self.logs.join(name), Access::Write).unwrap().unwrap()
    }

    /// A place for what a test keeps.
    pub(crate) fn log_dir(&self, name: &str) -> PathBuf {
        self.logs.join(name)
    }

    pub(crate) fn tree(&self) -> Option<String> {
        let refs =
            git(&self.repo, &["for-each-ref", "--format=%(refname)", "refs/heads/nisse", "refs/nisse/discarded"]);
        let name = refs.lines().next()?.to_owned();
        Some(format!("{} {}", name, git(&self.repo, &["rev-parse", &format!("{name}^{{tree}}")])))
    }
}

/// By the number of this task's turns that the request shows, which an empty reply would not be among.
fn answer(request: &Request, replies: &[Reply]) -> Vec<Part> {
    let shown = request.messages.iter().filter(|message| matches!(&***message, Message::Assistant { .. })).count();
    match &replies[shown.min(replies.len() - 1)] {
        Reply::Prose(text) => vec![Part::Text((*text).to_owned())],
        Reply::Calls(calls) => calls
            .iter()
            .enumerate()
            .map(|(index, (name, arguments))| {
                let arguments = match arguments {
                    Value::String(raw) => raw.clone(),
                    other => other.to_string(),
                };
                Part::Call(Call::minted(request.turn, index, "", name, &arguments, &[]))
            })
            .collect(),
    }
}

/// What must be equal: everything but what only a cut causes, and the numbers that such events shift.
pub(crate) fn story(events: &[Event]) -> Vec<String> {
    let mut told: Vec<String> = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::ReplyReceived { turn, reply, .. } => Some(format!("{turn} {reply:?}")),
            EventKind::WorktreeReady { .. }
            | EventKind::Nudged { .. }
            | EventKind::ToolResult(_)
            | EventKind::EndingAccepted { .. }
            | EventKind::TurnEnded { .. }
            | EventKind::ContextEvicted { .. }
            | EventKind::TaskEnded { .. } => Some(format!("{:?}", event.kind)),
            EventKind::CheckRan { call, command, status, .. } => Some(format!("{call} {command} {status:?}")),
            _ => None,
        })
        .collect();
    // a check that was cut off is run again
    told.dedup_by(|a, b| a == b && a.starts_with("c0"));
    told
}

pub(crate) fn without_number(request: &Request) -> Request {
    Request { id: String::new(), ..request.clone() }
}

/// Enters the loop with the scenario's model, which refuses what it cannot hold.
fn enter(world: &World, journal: Journal, scenario: &Scenario) -> Entered {
    let (replies, holds) = (scenario.replies.clone(), scenario.model.holds);
    world.enter_with(journal, move |request| {
        if request.estimated_input() > holds {
            return Err(window::too_large());
        }
        Ok(reply(request, answer(request, &replies)))
    })
}

fn every_prefix(scenario: &Scenario) {
    every_prefix_of(&World::new(), scenario, |_| ());
}

/// The same of a task that is begun in another way.
fn every_prefix_of(world: &World, scenario: &Scenario, begin: impl Fn(&mut TaskStarted)) {
    let mut started = world.started(scenario.turns);
    begin(&mut started);
    started.models.own.window = scenario.model.window;
    let journal = Journal::begin(world.log("whole"), CLOCK, TASK, started, Vec::new()).unwrap();
    let (outcome, events, requests) = enter(world, journal, scenario);
    assert_eq!(outcome.word(), scenario.outcome, "{outcome:?}");
    let (whole_story, whole_tree) = (story(&events), world.tree());
    let evicted = events.iter().any(|event| matches!(event.kind, EventKind::ContextEvicted { .. }));
    assert_eq!(evicted, scenario.evicts, "whether it outgrew its window");
    let past = world.logs.join("past");
    copy(&world.repo, &past);

    for cut in 1..events.len() {
        let prefix = &events[..cut];
        let task = Task::fold(prefix).unwrap().unwrap();
        world.reset(Some(&past));
        if let Some(head) = &task.head {
            stand(world, &task, head);
        }
        let log = world.log(&cut.to_string());
        log.append(prefix).unwrap();
        let journal = Journal::resume(log, CLOCK, TASK, "resumed", Vec::new()).unwrap();
        let (resumed, after, sent) = enter(world, journal, scenario);
        let at = format!("cut behind event {cut}: {:?}", events[cut - 1].kind);

        let in_command = task.pending_intents().any(|intent| {
            matches!(&intent.kind, IntentKind::Command { call, .. }
                if task.unanswered().is_some_and(|open| open.id == *call))
        });
        if in_command {
            assert!(matches!(resumed, Outcome::Paused { pause: Pause::Gated, .. }), "{at}: {resumed:?}");
            decisions::both_lead_on(world, &past, &after, scenario, &outcome);
            continue;
        }
        assert_eq!(resumed, outcome, "{at}");
        assert_eq!(story(&after), whole_story, "{at}");
        assert_eq!(world.tree(), whole_tree, "{at}");
        in_place::assert_given_back(world, &at);
        for request in sent {
            // one too large is sent again smaller, so that a turn may have several
            let same = requests.iter().any(|whole| without_number(whole) == without_number(&request));
            assert!(same, "{at}: {request:?} was not sent");
        }
        verdicts::each_has_its_cause(&task, &after[cut..], &at);
        let end = Task::fold(&after).unwrap().unwrap();
        let may_pend = |id| id == IntentId::TASK && matches!(outcome, Outcome::Paused { .. });
        let open = end.intents.iter().find(|intent| intent.status == Status::Pending && !may_pend(intent.id));
        assert!(open.is_none(), "{at}: {open:?}");
        let lost = u64::from(task.request.is_some());
        let whole = Task::fold(&events).unwrap().unwrap();
        assert_eq!(
            end.requests,
            whole.requests + u32::try_from(lost).unwrap(),
            "{at}: nothing recorded is asked again"
        );
        assert!(end.spend.usage.total() >= whole.spend.usage.total(), "{at}: caps may come earlier, never later");
    }
}

/// Branch and worktree as the prefix says.
pub(crate) fn stand(world: &World, task: &Task, head: &CommitId) {
    if task.started.workplace.isolation == Isolation::InPlace {
        return in_place::stand(world, task, head);
    }
    let spec = WorktreeSpec {
        task: TASK,
        path: world.worktree.clone(),
        branch: task.started.workplace.branch.clone(),
        start: head.clone(),
        isolation: Isolation::Worktree,
    };
    let worktree = Worktree::create(&world.checkout(), &spec).unwrap();
    let settled = |kind: fn(&IntentKind) -> bool| {
        task.intents.iter().any(|intent| kind(&intent.kind) && intent.status == Status::Settled)
    };
    if settled(|kind| matches!(kind, IntentKind::Discard { .. })) {
        worktree.discard(head).unwrap();
    }
    if settled(|kind| matches!(kind, IntentKind::CleanUp)) {
        worktree.remove_worktree().unwrap();
    }
}

#[test]
fn of_a_task_that_is_handed_back() {
    every_prefix(&Scenario {
        replies: vec![
            calls(&[
                ("read_file", json!({"path": "a.txt"})),
                ("write_file", json!({"path": "n.txt", "content": "n\n"})),
            ]),
            calls(&[("run_command", json!({"command": "echo more >> b.txt; echo said"}))]),
            calls(&[("read_file", json!("not an object")), ("no_such_tool", json!({}))]),
            Reply::Prose("I think that I am done."),
            calls(&[hand_back(true), ("read_file", json!({"path": "b.txt"}))]),
            calls(&[("edit_file", json!({"path": "a.txt", "old": "two", "new": "three"}))]),
            calls(&[hand_back(true)]),
        ],
        turns: 30,
        outcome: "handback",
        model: LARGE,
        evicts: false,
    });
}
