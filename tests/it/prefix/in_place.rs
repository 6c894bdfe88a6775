//! The same of tasks that work in the checkout itself, which is the person's again in the end.

use nisse::repo::TaskBranch;

use super::*;

/// Sets up a checkout that a task has, or gave back, as the prefix says.
pub(super) fn stand(world: &World, task: &Task, head: &CommitId) {
    let switch = task.intents.iter().find_map(|intent| match &intent.kind {
        IntentKind::CheckoutSwitch { snapshot, .. } => Some(snapshot),
        _ => None,
    });
    let snapshot = switch.unwrap();
    let mut spec = WorktreeSpec {
        task: TASK,
        path: world.repo.clone(),
        branch: task.started.workplace.branch.clone(),
        start: snapshot.clone(),
        isolation: Isolation::InPlace,
    };
    let checkout = world.checkout();
    let worktree = Worktree::switch_to_task(&checkout, &spec).unwrap();
    git(&world.repo, &["update-ref", &format!("refs/heads/{}", spec.branch), &head.0]);
    worktree.restore(head).unwrap();
    spec.start = head.clone();
    let branch = TaskBranch::new(&checkout, &spec).unwrap();
    if task.checkout_restored().is_some() {
        branch.switch_to_base(&task.started.workplace.base, head, 0).unwrap();
    }
    let discarded = |intent: &nisse::domain::intent::Intent| {
        matches!(intent.kind, IntentKind::Discard { .. }) && intent.status == Status::Settled
    };
    if task.intents.iter().any(discarded) {
        branch.discard(head).unwrap();
    }
}

/// HEAD, index and files of the checkout are the person's.
pub(super) fn assert_given_back(world: &World, at: &str) {
    for ask in
        [&["symbolic-ref", "HEAD"][..], &["--no-optional-locks", "status", "--porcelain"], &["ls-files", "--stage"]]
    {
        assert_eq!(git(&world.repo, ask), git(&world.pristine, ask), "{at}");
    }
}

fn every_prefix_in_place(scenario: &Scenario) {
    let world = World::new();
    git(&world.repo, &["add", "-A"]);
    git(&world.repo, &["-c", "user.name=D", "-c", "user.email=d@example.invalid", "commit", "-qm", "clean"]);
    fs::remove_dir_all(&world.pristine).unwrap();
    copy(&world.repo, &world.pristine);
    let root = world.repo.to_str().unwrap().to_owned();
    every_prefix_of(&world, scenario, |started| {
        started.workplace.isolation = Isolation::InPlace;
        started.workplace.worktree.clone_from(&root);
    });
}

#[test]
fn of_a_task_in_place_that_is_handed_back() {
    every_prefix_in_place(&Scenario {
        replies: vec![
            calls(&[
                ("edit_file", json!({"path": "unfinished.txt", "old": "mine", "new": "three"})),
                ("run_command", json!({"command": "rm b.txt; echo said"})),
            ]),
            calls(&[("edit_file", json!({"path": "a.txt", "old": "two", "new": "three"}))]),
            calls(&[hand_back(true)]),
        ],
        turns: 30,
        outcome: "handback",
        model: LARGE,
        evicts: false,
    });
}

#[test]
fn of_a_task_in_place_that_fails() {
    every_prefix_in_place(&Scenario {
        replies: vec![calls(&[("write_file", json!({"path": "n.txt", "content": "n\n"}))]), calls(&[hand_back(false)])],
        turns: 30,
        outcome: "failed",
        model: LARGE,
        evicts: false,
    });
}
