//! Another model than the one asked for: refused, unless the person allows it; then it is told, and never shown what is
//! not its own.

use serde_json::{Value, json};

use crate::support::{Step, TestEnvironment, Wire};

fn write(file: &str) -> Step {
    Step::call("write_file", json!({"path": file, "content": "b\n"}))
}

#[test]
fn a_fallback_is_refused_unless_it_is_allowed() {
    for wire in Wire::BOTH {
        let env = TestEnvironment::new(wire, vec![write("b.txt").answered_by("other", "openai/other")]);
        let run = env.delegate(&[], "Make b.txt.");
        let result = run.ends(5, "interrupted");
        assert!(run.stderr.contains("other (openai/other) answered instead of"), "{}", run.report());
        assert_eq!((env.server.requests().len(), &result["turns"]), (1, &json!(0)));
        assert_eq!(env.on_branch(&result, "b.txt"), None, "what another model asked for was done");
    }
}

#[test]
fn an_allowed_fallback_is_told_and_counted_to_whoever_answered() {
    for wire in Wire::BOTH {
        let steps = vec![
            write("b.txt").thinking("Mine.", "c2ln").ids(&["own_1"]),
            write("c.txt").thinking("Another's.", "b3RoZXI").ids(&["other_1"]).answered_by("other", "openai/other"),
            write("d.txt").ids(&["own_2"]),
            Step::hand_back().answered_by("other", "openai/other"),
        ];
        let env = TestEnvironment::new(wire, steps);
        env.server.takes_fallbacks();
        env.configure(&format!(
            "[delegate]\nfallback = \"allow\"\n[models.\"{}\"]\nreasoning = \"low\"\n",
            wire.alias()
        ));
        let run = env.delegate(&[], "Make three files.");
        let result = run.ends(0, "handback");
        assert_eq!(result["model"]["answered_by"], "openai/other");
        let notices = result["notices"].to_string();
        assert!(notices.contains("other (openai/other)") && notices.contains("2 of 4"), "{result}");
        assert!(run.stderr.contains("answered by other (openai/other) instead"), "{}", run.report());

        let asked = env.server.requests();
        let effort = |body: &Value| match wire {
            Wire::Chat => body["reasoning_effort"].clone(),
            Wire::Messages => body["thinking"]["type"].clone(),
        };
        let thinks: Vec<bool> = asked.iter().map(|asked| !effort(&asked.body).is_null()).collect();
        // behind another model's calls no vendor goes on reasoning
        assert_eq!(thinks, [true, true, false, false]);
        let last = &asked[3].raw;
        assert!(last.contains("Mine.") && !last.contains("Another's."), "{last}");
        assert!(last.contains("own_1") && last.contains("own_2") && !last.contains("other_1"), "{last}");
    }
}

#[test]
fn what_another_models_reply_costs_is_not_told_at_the_price_of_the_one_asked() {
    // the native route's streams name no cost, and nobody says what `other` costs
    let steps = vec![write("b.txt").answered_by("other", "openai/other"), Step::hand_back()];
    let env = TestEnvironment::new(Wire::Messages, steps);
    env.server.takes_fallbacks();
    env.configure("[delegate]\nfallback = \"allow\"\n");
    let result = env.delegate(&[], "Make b.txt.").ends(0, "handback");
    assert_eq!(result["cost_usd"], Value::Null);
}

#[test]
fn a_repository_may_not_allow_fallbacks() {
    let env = TestEnvironment::new(Wire::Chat, Vec::<Step>::new());
    env.checkout.write("nisse.toml", "[delegate]\nfallback = \"allow\"\n").commit("settings");
    let run = env.delegate(&[], "Make b.txt.");
    run.exits(2);
    assert!(run.stderr.contains("delegate.fallback"), "{}", run.report());
}
