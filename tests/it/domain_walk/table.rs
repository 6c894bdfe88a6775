//! The transition table, said once more in other words: what follows from it for each event that it lets pass.

use nisse::domain::{
    event::EventKind,
    gate::Answer,
    id::{CallId, IntentId},
    intent::{IntentKind, Status, Way},
    note::Note,
    outcome::End,
    task::Task,
};

/// Asserts that an event that the table allows may follow.
pub(super) fn is_as_the_design_says(task: &Task, kind: &EventKind) {
    let answered = task.turns.last().map_or(0, |turn| turn.results.len());
    let open = task.turns.last().filter(|turn| !turn.closed);
    let next_call = open.and_then(|turn| turn.reply.calls().nth(answered)).map(|call| &call.id);
    let accepted = open.and_then(|turn| turn.ending.as_ref()).map(|(call, _)| call);
    let pending: Vec<_> = task.intents[1..].iter().filter(|intent| intent.status == Status::Pending).collect();
    let turns = u32::try_from(task.turns.len()).unwrap();
    match kind {
        EventKind::RequestSent { request, turn, .. } => {
            assert!(open.is_none() && pending.is_empty() && task.request.is_none() && task.ended.is_none());
            let discards = task.intents.iter().filter(|intent| matches!(intent.kind, IntentKind::Discard { .. }));
            assert_eq!((discards.count(), task.gave_back()), (0, None), "its end is decided");
            assert_eq!((*request, *turn), (task.requests + 1, turns + 1));
        }
        EventKind::ReplyReceived { turn, reply, .. } => {
            assert!(task.request.is_some());
            let ids: Vec<_> = reply.calls().map(|call| call.id.clone()).collect();
            assert_eq!(ids, (0..ids.len()).map(|index| CallId::new(*turn, index)).collect::<Vec<_>>());
        }
        EventKind::ToolResult(result) => assert_eq!(Some(&result.call), next_call),
        EventKind::EndingAccepted { call, .. } => {
            assert_eq!(Some(call), next_call);
            assert!(accepted.is_none(), "two ending calls of one turn");
        }
        EventKind::CheckRan { call, .. } => assert_eq!((Some(call), Some(call)), (next_call, accepted)),
        EventKind::IntentOpened { kind, .. } => match kind {
            IntentKind::FileEdit { call, .. } | IntentKind::Command { call, .. } => {
                assert!(pending.is_empty());
                assert_eq!(Some(call), next_call);
            }
            IntentKind::Check { call } => {
                assert!(pending.is_empty());
                assert_eq!((Some(call), Some(call)), (next_call, accepted));
            }
            IntentKind::Squash { .. } | IntentKind::Discard { .. } => {
                assert!(pending.is_empty() && open.is_none() && task.ended.is_none());
            }
            IntentKind::CleanUp => assert!(task.ended.is_some()),
            IntentKind::CheckoutSwitch { way, .. } => {
                assert!(pending.is_empty() && open.is_none() && task.ended.is_none());
                assert_eq!(task.ready.is_none(), *way == Way::There);
            }
            IntentKind::Apply { .. } | IntentKind::Land(_) => {
                assert!(matches!(task.ended, Some((End::Handback, _))));
            }
            IntentKind::PutBack { plan } => {
                let brought = |kind: &IntentKind| matches!(kind, IntentKind::Apply { plan: of, .. } if of == plan);
                assert!(task.ended.is_some() && task.intents.iter().any(|one| brought(&one.kind)));
            }
            IntentKind::Task => panic!("the task's own intent is opened once"),
        },
        EventKind::IntentSettled { intent, .. } | EventKind::IntentAbandoned { intent, .. } => {
            let moved = task.intent(*intent).unwrap();
            assert_eq!(moved.status, Status::Pending);
            assert!(*intent != IntentId::TASK || task.ended.is_some(), "the task's own intent before its end");
            assert!(!matches!(kind, EventKind::IntentAbandoned { .. }) || *intent != IntentId::TASK);
        }
        EventKind::TurnEnded { turn } => {
            assert!(open.is_some() && next_call.is_none() && pending.is_empty());
            assert_eq!(*turn, turns);
        }
        EventKind::TaskEnded { end, .. } => {
            assert!(task.ended.is_none(), "a second completion");
            assert!(task.ready.is_some() || *end == End::Dropped, "only what is given up ends before it stands");
            assert!(open.is_none() && task.request.is_none() && task.paused.is_none());
            assert!(pending.iter().all(|intent| matches!(intent.kind, IntentKind::Discard { .. })));
            assert!(*end != End::Handback || task.note.as_ref().is_some_and(Note::claims_success));
        }
        EventKind::GateAnswered { answer } => {
            assert!(task.ended.is_none() && task.paused.is_none() && task.request.is_none());
            assert!(*answer == Answer::Drop || (task.ready.is_some() && !task.given_up()));
        }
        EventKind::TaskPaused { .. } => assert!(task.ended.is_none() && task.paused.is_none()),
        EventKind::RequestEnded { request, .. } => assert_eq!(Some(*request), task.request.map(|open| open.request)),
        EventKind::WorktreeReady { .. } => assert!(task.ready.is_none()),
        EventKind::TaskStarted(_) => panic!("a task begins once"),
        EventKind::LeftOut { .. } => {
            assert!(task.left_out.is_none() && task.ready.is_some() && task.ended.is_none() && pending.is_empty());
            assert!(open.is_none() && task.request.is_none() && task.paused.is_none());
        }
        EventKind::FilesChanged { .. } => assert!(open.is_some() && pending.is_empty() && task.paused.is_none()),
        EventKind::RepositoryChanged { .. } | EventKind::UncommittableMade { .. } | EventKind::KeptAside { .. } => {
            assert!(task.paused.is_none() && task.request.is_none());
        }
        EventKind::WorktreeRepaired { .. } => {
            assert!(task.ended.is_none() && task.paused.is_none() && task.request.is_none());
        }
        EventKind::LocksRemoved { .. } => assert!(task.paused.is_none() && task.request.is_none()),
        EventKind::SpanStarted { .. }
        | EventKind::SetupRan { .. }
        | EventKind::ContextEvicted { .. }
        | EventKind::RequestWithheld { .. }
        | EventKind::Nudged { .. }
        | EventKind::Recovered { .. } => {}
    }
}
