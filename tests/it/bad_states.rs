//! The bad states that weak models were seen in, replayed: what each wording tells the model next, word for word.
//!
//! The replies are recorded shapes (prose, cut-off text, calls written as text, the same call again, …). Each goes through the
//! loop with every version of the wording, today's prompt and tools, and the request that follows is kept as a snapshot.
//!
//! Whether a model goes on from there only a model can say: [`how_many_states_a_model_goes_on_from`] asks one, and counts the
//! replies that hold a call which could be run. It runs none, and says nothing of whether the call is a good one.

use std::{fmt::Write as _, time::Duration};

use nisse::{
    adapters::{
        litellm::{Proxy, Settings, chat, messages},
        scripted::reply,
    },
    agent::{
        budget::{Fit, fit},
        context::View,
        tools,
    },
    domain::{
        event::{Event, EventKind},
        id::TaskId,
        message::{Call, Part, Reply, Stop},
        model::{PinnedModel, Route},
        task::Task,
        upstream::Trouble,
        wording::Wording,
    },
    log::Journal,
    ports::llm::{self, Llm as _, Request},
};
use serde_json::{Value, json};

use crate::{
    prefix::{CLOCK, World},
    support::{Needs, lacks},
};

/// A recorded reply.
enum Said {
    /// Text, and nothing else.
    Text(&'static str),
    /// The same, so many times.
    Again(&'static str, usize),
    /// Text that the output limit cut off.
    Cut(&'static str),
    /// A call that the output limit cut off.
    CutCall(&'static str, &'static str),
    /// Reasoning, and nothing else.
    Thought(&'static str),
    /// One call: its name, and its arguments as they were written.
    Call(&'static str, &'static str),
}

use Said::{Again, Cut, CutCall, Text, Thought};

/// What a model had said when it did not go on; the first reply of each task is the oldest.
const STATES: [(&str, &[Said]); 20] = [
    ("prose", &[Text("To say three where it says two, I will first look at the file a.txt.")]),
    ("nothing", &[Text("")]),
    ("nothing, twice", &[Text(""), Text(" \n")]),
    ("only reasoning", &[Thought("I should read the file.")]),
    ("newlines", &[Again("\n", 500)]),
    ("prose, cut off", &[Cut("The file a.txt holds the lines one and two. I will now explain in detail how to")]),
    ("one line of JSON again and again", &[Again("{\"path\": \"a.txt\"}\n", 60)]),
    (
        "a call in tags",
        &[Text("<tool_call>\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a.txt\"}}\n</tool_call>")],
    ),
    ("a call in a fence", &[Text("```json\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a.txt\"}}\n```")]),
    ("a call as code", &[Text("read_file({\"path\": \"a.txt\"})")]),
    (
        "the note as text",
        &[Text("{\"changed\": \"a.txt\", \"now_true\": \"three\", \"next\": \"nothing\", \"succeeded\": true}")],
    ),
    ("an unknown tool", &[Said::Call("execute_python", "{\"code\": \"print(1)\"}")]),
    ("arguments that are no object", &[Said::Call("read_file", "{\"path\": ")]),
    ("other arguments", &[Said::Call("read_file", "{\"file\": \"a.txt\"}")]),
    ("a placeholder", &[Said::Call("read_file", "{\"path\": \"<path>\"}")]),
    ("a call that was cut off", &[CutCall("write_file", "{\"path\": \"a.txt\", \"content\": \"one\\nthr")]),
    (
        "a text to replace that is not there",
        &[Said::Call("edit_file", "{\"path\": \"a.txt\", \"old\": \"twoo\", \"new\": \"three\"}")],
    ),
    (
        "the same call three times",
        &[
            Said::Call("read_file", "{\"path\": \"a.txt\"}"),
            Said::Call("read_file", "{\"path\": \"a.txt\"}"),
            Said::Call("read_file", "{\"path\": \"a.txt\"}"),
        ],
    ),
    ("half a note", &[Said::Call("hand_back", "{\"succeeded\": true}")]),
    (
        "success without a change",
        &[Said::Call(
            "hand_back",
            "{\"changed\": \"a.txt\", \"now_true\": \"it says three\", \"next\": \"nothing\", \"succeeded\": true}",
        )],
    ),
];

impl Said {
    fn reply(&self, request: &Request) -> Reply {
        let call = |name: &str, arguments: &str| Part::Call(Call::minted(request.turn, 0, "", name, arguments, &[]));
        let text = |text: String| if text.is_empty() { Vec::new() } else { vec![Part::Text(text)] };
        let (parts, cut) = match self {
            Text(said) => (text((*said).to_owned()), false),
            Again(said, times) => (text(said.repeat(*times)), false),
            Cut(said) => (text((*said).to_owned()), true),
            CutCall(name, arguments) => (vec![call(name, arguments)], true),
            Thought(thought) => (vec![Part::Reasoning(json!({"reasoning_content": thought}).to_string())], false),
            Said::Call(name, arguments) => (vec![call(name, arguments)], false),
        };
        let reply = reply(request, parts);
        if cut { Reply { stop: Stop::Truncated, ..reply } } else { reply }
    }
}

/// The request that follows the state, and the task's events by then.
fn after(
    world: &World,
    number: u128,
    state: &'static [Said],
    wording: u32,
    model: impl Fn(&mut PinnedModel),
) -> (Request, Vec<Event>) {
    let mut started = world.started(30);
    (started.workplace.setup, started.checks, started.wording.version) = (None, Vec::new(), wording);
    started.workplace.branch = format!("nisse/state-{number}");
    let worktree = world.worktree.with_file_name(format!("state-{number}"));
    started.workplace.worktree = worktree.into_os_string().into_string().unwrap();
    model(&mut started.models.own);
    let id = TaskId(uuid::Uuid::from_u128(0x7000_8000_0000_0000_0000 + number));
    let journal = Journal::begin(world.log("states"), CLOCK, id, started, Vec::new()).unwrap();
    let (_, mut events, mut requests) = world.enter_with(journal, move |request| {
        state.get(request.turn as usize - 1).map(|said| said.reply(request)).ok_or_else(|| {
            let message = "the replay ends here".to_owned();
            llm::Error { trouble: Trouble::Stopped, message, retry_after: None, usage: None }
        })
    });
    let turns = events.iter().rposition(|event| matches!(event.kind, EventKind::TurnEnded { .. })).unwrap();
    events.truncate(turns + 1);
    assert_eq!(requests.len(), state.len() + 1, "the loop asks again after such a reply");
    (requests.pop().unwrap(), events)
}

/// The same request as a task of the other route would send it.
fn natively(mut events: Vec<Event>) -> Request {
    let EventKind::TaskStarted(started) = &mut events[0].kind else { panic!("a task begins with its start") };
    started.models.own.route = Route::Native;
    let task = Task::fold(&events).unwrap().unwrap();
    match fit(&task, &mut View::default()) {
        Fit::Send(request) => *request,
        other => panic!("{other:?}"),
    }
}

/// What the request holds after the brief, as it is sent.
fn told(request: &Request) -> String {
    let body = match request.model.route {
        Route::Normalized => chat::body(request, &mut chat::Written::default()).unwrap(),
        Route::Native => messages::body(request).unwrap(),
    };
    let body: Value = serde_json::from_str(&body).unwrap();
    let sent = body["messages"].as_array().unwrap().iter().filter(|message| message["role"] != "system").skip(1);
    sent.fold(String::new(), |mut text, message| {
        let _ = writeln!(text, "{message:#}");
        text
    })
}

#[test]
fn what_each_wording_tells_a_model_in_a_bad_state() {
    let (world, mut number) = (World::new(), 0);
    for wording in 1..=Wording::NEWEST {
        let (mut normalized, mut native) = (String::new(), String::new());
        for (name, state) in STATES {
            number += 1;
            let (request, events) = after(&world, number, state, wording, |_| ());
            let _ = write!(normalized, "=== {name}\n{}", told(&request));
            let _ = write!(native, "=== {name}\n{}", told(&natively(events)));
        }
        insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(format!("bad_states_wording_{wording}_normalized"), normalized);
            insta::assert_snapshot!(format!("bad_states_wording_{wording}_native"), native);
        });
    }
}

/// Nothing without a model: `NISSE_REPLAY_URL`, `NISSE_REPLAY_TOKEN` and `NISSE_REPLAY_MODEL` name a proxy and an
/// alias of it, `NISSE_REPLAY_WINDOW` its window (8192), `NISSE_REPLAY_TIMES` how often each state is asked (1). Then
/// `cargo test --test it -- --nocapture bad_states`.
#[test]
fn how_many_states_a_model_goes_on_from() {
    let variable = |name: &str| std::env::var(format!("NISSE_REPLAY_{name}")).ok();
    let number = |name: &str, else_it_is: u64| variable(name).map_or(else_it_is, |text| text.parse().unwrap());
    let needed = |name: &str| variable(name).unwrap_or_else(|| panic!("set NISSE_REPLAY_{name}"));
    if lacks(Needs::Model) {
        return;
    }
    let url = needed("URL");
    let alias = needed("MODEL");
    let (window, times) = (number("WINDOW", 8192), number("TIMES", 1));
    let proxy = Proxy::new(Settings {
        idle: Duration::from_mins(5),
        ..Settings::new(url, secrecy::SecretString::from(needed("TOKEN")))
    });
    let proxy = proxy.unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (world, mut tasks) = (World::new(), 0);
    for wording in 1..=Wording::NEWEST {
        let mut all = 0;
        for (name, state) in STATES {
            let mut went_on = 0;
            for _ in 0..times {
                tasks += 1;
                let (request, _) = after(&world, tasks, state, wording, |model| {
                    model.alias.clone_from(&alias);
                    (model.window, model.max_output) = (window, (window / 8).min(1024));
                });
                let (deltas, _shown) = tokio::sync::mpsc::unbounded_channel();
                match runtime.block_on(proxy.ask(&request, &deltas)) {
                    Ok(reply) => went_on += u64::from(goes_on(state, &request, &reply)),
                    Err(error) => eprintln!("  {name}: {error}"),
                }
            }
            all += went_on;
            eprintln!("wording {wording}: {went_on} of {times}  {name}");
        }
        eprintln!("wording {wording}: {all} of {} went on", STATES.len() as u64 * times);
    }
}

/// Whether a reply holds a call that could be run, and that is not the one before once more.
fn goes_on(state: &[Said], request: &Request, reply: &Reply) -> bool {
    let again = |call: &Call| match state.last() {
        Some(Said::Call(name, arguments)) => call.name == *name && call.arguments == *arguments,
        Some(Text(_) | Again(..) | Cut(_) | CutCall(..) | Thought(_)) | None => false,
    };
    let runs = |call: &Call| !again(call) && tools::parse(call, &request.tools).is_ok();
    reply.stop != Stop::Truncated && reply.calls().any(runs)
}

#[test]
fn what_counts_as_going_on() {
    let world = World::new();
    let (request, _) = after(&world, 1, &[Text("")], Wording::NEWEST, |_| ());
    let read = || Said::Call("read_file", "{\"path\": \"a.txt\"}");
    let counts = |said: &Said| goes_on(&[Text("")], &request, &said.reply(&request));
    assert!(counts(&read()));
    assert!(!goes_on(&[read()], &request, &read().reply(&request)), "the same call once more");
    for not in [
        Text("read_file"),
        Said::Call("read_file", "{\"file\": \"a.txt\"}"),
        Said::Call("execute_python", "{}"),
        CutCall("read_file", "{\"path\": \"a.txt\"}"),
    ] {
        assert!(!counts(&not));
    }
}
