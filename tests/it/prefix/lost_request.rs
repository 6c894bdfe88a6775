//! A request whose fate is not known.

use super::*;

#[test]
fn a_lost_request_is_no_turn_but_is_charged_the_estimate() {
    let world = World::new();
    let journal = Journal::begin(world.log("whole"), CLOCK, TASK, world.started(30), Vec::new()).unwrap();
    let (_, events, _) = world.enter(journal, &[calls(&[hand_back(false)])]);
    let asked = events.iter().position(|event| matches!(event.kind, EventKind::RequestSent { .. })).unwrap();
    let EventKind::RequestSent { estimated_input, max_output, .. } = events[asked].kind else { unreachable!() };
    world.reset(None);
    let log = world.log("cut");
    log.append(&events[..=asked]).unwrap();
    let resumed = Journal::resume(log, CLOCK, TASK, "resumed", Vec::new()).unwrap();
    let task = resumed.task();
    assert_eq!(task.spend.usage, Usage { input: estimated_input, output: max_output / 8, ..Usage::default() });
    assert_eq!(task.spend.turns, 0);
}
