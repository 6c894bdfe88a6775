//! A cut inside a command asks a person; either answer leads to the end, and a cut behind the answer asks nobody again.

use nisse::domain::gate::Answer;

use super::*;

/// What the interrupted command had done: a line in a tracked file, and a file of its own.
fn half_done(task: &Task) {
    let root = Path::new(&task.started.workplace.worktree);
    write(root.join("b.txt"), "b\nhalf\n");
    write(root.join("half.txt"), "half\n");
}

fn on_branch(world: &World, task: &Task, file: &str) -> Option<String> {
    let name = format!("{}:{file}", task.started.workplace.branch);
    let listed = git(&world.repo, &["ls-tree", "--name-only", &task.started.workplace.branch, "--", file]);
    (!listed.is_empty()).then(|| git(&world.repo, &["show", &name]))
}

/// What is kept, save what the checks left in a checkout.
fn found_refs(world: &World) -> String {
    let all = git(&world.repo, &["for-each-ref", "--format=%(refname)", "refs/nisse/found"]);
    all.lines().filter(|name| !name.contains("/check")).collect::<Vec<_>>().join("\n")
}

/// `gated` is the log of a task that rests with the question.
pub(super) fn both_lead_on(world: &World, past: &Path, gated: &[Event], scenario: &Scenario, whole: &Outcome) {
    for answer in [Answer::Rollback, Answer::Keep] {
        let (events, decided) = decide(world, past, gated, answer, scenario, whole);
        // what comes after the call's turn is cut often enough elsewhere
        let turn_ended = |event: &Event| matches!(event.kind, EventKind::TurnEnded { .. });
        let last = decided + events[decided..].iter().position(turn_ended).unwrap() + 1;
        for cut in decided..=last {
            let at = format!("{answer:?}, cut behind event {cut}: {:?}", events[cut - 1].kind);
            let prefix = &events[..cut];
            let task = Task::fold(prefix).unwrap().unwrap();
            let open = task.decision.is_some();
            world.reset(Some(past));
            stand(world, &task, task.head.as_ref().unwrap());
            if open {
                half_done(&task);
            }
            let log = world.log(&format!("{}-{answer:?}-{cut}", gated.len()));
            log.append(prefix).unwrap();
            let journal = Journal::resume(log, CLOCK, TASK, "resumed", Vec::new()).unwrap();
            let (outcome, after, _) = world.enter(journal, &scenario.replies);
            assert_eq!(&outcome, whole, "{at}");
            let end = Task::fold(&after).unwrap().unwrap();
            assert!(end.intents.iter().all(|intent| intent.status != Status::Pending), "{at}: {:?}", end.intents);
            if open {
                the_answer_held(world, &end, answer, &at);
            }
        }
    }
}

/// The log of the task once `answer` was given, and where in it the answer stands.
fn decide(
    world: &World,
    past: &Path,
    gated: &[Event],
    answer: Answer,
    scenario: &Scenario,
    whole: &Outcome,
) -> (Vec<Event>, usize) {
    let task = Task::fold(gated).unwrap().unwrap();
    assert!(task.asks_about_files(), "{:?}", task.paused);
    world.reset(Some(past));
    stand(world, &task, task.head.as_ref().unwrap());
    half_done(&task);
    let log = world.log(&format!("{}-{answer:?}", gated.len()));
    log.append(gated).unwrap();
    let mut journal = Journal::resume(log, CLOCK, TASK, "resumed", Vec::new()).unwrap();
    journal.push(EventKind::GateAnswered { answer }).unwrap();
    journal.commit().unwrap();
    let decided = gated.len() + 2;
    let (outcome, events, _) = world.enter(journal, &scenario.replies);
    assert_eq!(&outcome, whole, "{answer:?}");
    let end = Task::fold(&events).unwrap().unwrap();
    the_answer_held(world, &end, answer, "answered");
    // the objects of this run are wanted when its log is cut
    copy(&world.repo.join(".git/objects/."), &past.join(".git/objects/"));
    (events, decided)
}

fn the_answer_held(world: &World, end: &Task, answer: Answer, at: &str) {
    let (half, line) = (on_branch(world, end, "half.txt"), on_branch(world, end, "b.txt").unwrap());
    match answer {
        Answer::Rollback => {
            assert_eq!((half, line.as_str()), (None, "b"), "{at}");
            let kept = found_refs(world);
            assert_eq!(git(&world.repo, &["show", &format!("{kept}:half.txt")]), "half", "{at}");
        }
        Answer::Keep => {
            assert_eq!((half.as_deref(), line.as_str()), (Some("half"), "b\nhalf"), "{at}");
            assert_eq!(found_refs(world), "", "{at}");
        }
        Answer::Drop => unreachable!("it leads to another end"),
    }
}
