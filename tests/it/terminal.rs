//! What a person sees on a terminal while a task runs, and what is left on it.

use std::time::Duration;

use serde_json::json;

use crate::support::{Piece, Script, Step, TestEnvironment, Wire};

/// A screen of 80 columns, as far as nisse's progress uses one.
#[derive(Default)]
struct Screen {
    lines: Vec<Vec<char>>,
    row: usize,
    column: usize,
    /// The longest line that was ever drawn.
    widest: usize,
    /// Every escape sequence that came.
    sequences: Vec<String>,
}

impl Screen {
    fn of(output: &str) -> Self {
        let mut screen = Self::default();
        let mut rest = output.chars();
        while let Some(c) = rest.next() {
            match c {
                '\r' => screen.column = 0,
                '\n' => screen.row += 1,
                '\u{1b}' => {
                    let sequence = sequence(&mut rest);
                    screen.control(&sequence);
                    screen.sequences.push(sequence);
                }
                c => screen.put(c),
            }
        }
        screen
    }

    fn control(&mut self, sequence: &str) {
        if sequence == "[A" {
            self.row = self.row.saturating_sub(1);
        } else if sequence == "[J" || sequence == "[K" {
            if sequence == "[J" {
                self.lines.truncate(self.row + 1);
            }
            if let Some(line) = self.lines.get_mut(self.row) {
                line.truncate(self.column);
            }
        } else {
            assert!(sequence.ends_with('m'), "the screen does not know {sequence:?}");
        }
    }

    fn put(&mut self, c: char) {
        self.lines.resize(self.lines.len().max(self.row + 1), Vec::new());
        let line = &mut self.lines[self.row];
        line.resize(line.len().max(self.column + 1), ' ');
        line[self.column] = c;
        self.column += 1;
        self.widest = self.widest.max(self.column);
    }

    fn text(&self) -> String {
        self.lines.iter().map(|line| line.iter().collect::<String>().trim_end().to_owned() + "\n").collect()
    }
}

/// The rest of an escape sequence, which ends with a letter.
fn sequence(rest: &mut std::str::Chars<'_>) -> String {
    let mut taken = String::new();
    for c in rest {
        taken.push(c);
        if c.is_ascii_alphabetic() {
            break;
        }
    }
    taken
}

fn world() -> TestEnvironment {
    let words = "I look at everything first, one file after the other, before I write a single line of it.\n";
    let long = format!("sleep 1; : {}", "very ".repeat(40));
    let first = Step::text(&words.repeat(2)).and_call("run_command", json!({"command": long}));
    let steps = vec![first, Step::call("write_file", json!({"path": "b.txt", "content": "b\n"})), Step::hand_back()];
    let env = TestEnvironment::new(Wire::Chat, Script::ByHistory(steps));
    env.set("TERM", "xterm-256color");
    env
}

#[test]
fn nothing_wraps_and_nothing_is_left_of_the_live_line() {
    for colourless in [false, true] {
        let env = world();
        if colourless {
            env.set("NO_COLOR", "1");
        }
        let run = env.finish(env.start_on_terminal(&["delegate", "Make b.txt.", "--check", "true"]));
        run.exits(0);
        assert!(run.stdout.contains("left  running sleep 1"), "the live line never came:\n{}", run.report());
        // the result is data, which nobody folds
        let (progress, result) = run.stdout.split_once("handed back").unwrap();
        let screen = Screen::of(progress);
        assert!(screen.widest < 80, "a line has {} columns", screen.widest);
        let text = screen.text();
        let kept: Vec<&str> = text.lines().collect();
        assert!(kept[0].starts_with("I look at everything first") && kept[0].len() < 80, "{text}");
        assert!(kept.iter().any(|line| line.starts_with("turn 1/30") && line.ends_with('…')), "{text}");
        assert!(!text.contains(" left  ") && !text.contains('⠋'), "remains:\n{text}");
        assert!(result.contains("branch     nisse/"), "{result}");
        let styles = screen.sequences.iter().filter(|sequence| sequence.ends_with('m')).count();
        assert_eq!(styles == 0, colourless, "{:?}", screen.sequences);
    }
}

/// A piece of a normalized stream.
fn chunk(delta: &serde_json::Value) -> Piece {
    Piece::Bytes(format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": delta}]})).into_bytes())
}

#[test]
fn what_arrives_is_seen_before_it_is_whole() {
    let pause = || Piece::Pause(Duration::from_millis(400));
    let call = |name: &str, arguments: &str| {
        let function = json!({"name": name, "arguments": arguments});
        chunk(&json!({"tool_calls": [{"index": 0, "id": "a", "function": function}]}))
    };
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]});
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 1000, "completion_tokens": 50}});
    let end = || Piece::Bytes(format!("data: {end}\n\ndata: {usage}\n\ndata: [DONE]\n\n").into_bytes());
    let first = vec![
        chunk(&json!({"content": "Half of a sent"})),
        pause(),
        chunk(&json!({"content": "ence.\n"})),
        call("run_command", "{\"command\": \"echo begun; sleep 0.4; echo half; "),
        pause(),
        call("run_command", "sleep 0.4; echo b > b.txt\"}"),
        end(),
    ];
    let note = json!({"changed": "b.txt", "now_true": "it is so", "next": "nothing", "succeeded": true});
    let second = vec![
        chunk(&json!({"reasoning_content": "Let me think of"})),
        pause(),
        chunk(&json!({"reasoning_content": " pages.\n"})),
        pause(),
        call("hand_back", &note.to_string()),
        end(),
    ];
    let env = TestEnvironment::new(Wire::Chat, vec![Step::stream(first), Step::stream(second)]);
    env.set("TERM", "xterm-256color");
    let run = env.finish(env.start_on_terminal(&["delegate", "Make b.txt."]));
    run.exits(0);
    let mut seen = 0;
    // in this order, each before the next had come; a last word may be the beginning of a secret, and waits
    for part in [
        "Half of a\u{1b}[0m",
        "case-model is writing, 10 B",
        "Half of a sentence.\u{1b}[0m",
        "→ run_command 47 B\u{1b}[0m",
        "│ begun\u{1b}[0m",
        "│ half\u{1b}[0m",
        "┊ Let me think\u{1b}[0m",
        "┊ Let me think of pages.\u{1b}[0m",
    ] {
        let found = run.stdout[seen..].find(part);
        seen += found.unwrap_or_else(|| panic!("{part:?} does not come, or not in its place:\n{}", run.report()));
    }
    let (progress, _) = run.stdout.split_once("handed back").unwrap();
    let text = Screen::of(progress).text();
    assert!(!text.contains("│ half") && !text.contains("→ run"), "remains:\n{text}");
}

#[test]
fn a_dumb_terminal_and_json_on_the_same_one_get_plain_lines() {
    for (term, options) in
        [("dumb", &["delegate", "Make b.txt."][..]), ("xterm", &["delegate", "--json", "Make b.txt."])]
    {
        let env = world();
        env.set("TERM", term);
        let run = env.finish(env.start_on_terminal(options));
        assert!(!run.exits(0).stdout.contains("\u{1b}["), "{}", run.report());
        assert!(run.stdout.contains("turn 2/30"), "{}", run.report());
    }
}

#[test]
fn of_several_checks_the_one_that_runs_is_named() {
    let env = TestEnvironment::new(
        Wire::Chat,
        vec![Step::call("write_file", json!({"path": "b.txt", "content": "b\n"})), Step::hand_back()],
    );
    env.set("TERM", "xterm-256color");
    let checks = ["--check", "sleep 0.5; : first", "--check", "sleep 0.5; : second"];
    let run = env.finish(env.start_on_terminal(&[&["delegate", "Make b.txt."], &checks[..]].concat()));
    run.exits(0);
    let at = |words: &str| run.stdout.find(words).unwrap_or_else(|| panic!("{words} never came:\n{}", run.report()));
    assert!(at("check 1/2: sleep 0.5") < at("check 2/2: sleep 0.5"));
}

#[test]
fn a_signal_at_a_question_ends_nisse_and_gives_the_cursor_back() {
    let limited = || Step::error(429, &[("retry-after", "86400")], "throttling_error", "Rate limit exceeded.");
    let env = TestEnvironment::new(Wire::Chat, vec![limited(), limited()]);
    env.set("TERM", "xterm-256color").may_add("nisse.toml");
    for brief in ["One.", "Two."] {
        env.delegate(&[], brief).ends(5, "interrupted");
    }
    env.unset("NISSE_ROLE_DELEGATE");
    env.person(|checkout| {
        std::fs::write(checkout.path().join("nisse.toml"), "[worktree]\nsetup = \"true\"\n").unwrap();
    });
    // the shell around it says how it ended
    let told = |line: &str| format!("{line}; echo \"ended with $?\"");
    for (arguments, question) in [
        (&["resume"][..], "Task to resume"),
        (&["init"], "Model for tasks"),
        (&["delegate", "Three."], "Trust this file"),
    ] {
        let run = env.run_within_with_keys(told, arguments, &[(question, "\u{3}")]);
        let hidden = run.stdout.rfind("\u{1b}[?25l").expect("a question");
        assert!(run.stdout[hidden..].contains("\u{1b}[?25hended with 130"), "{}", run.report());
    }
    assert!(!env.root().join("home/config/nisse/config.toml").exists());
}

/// Marks that turn the order of what is written make a command read as another one.
#[test]
fn nothing_turns_what_is_shown_around() {
    let env = TestEnvironment::new(
        Wire::Chat,
        vec![
            Step::call("run_command", json!({"command": "printf 'a\u{202e}b\u{2066}c\\n'; echo x > 'b\u{202e}.txt'"})),
            Step::hand_back(),
        ],
    );
    env.set("TERM", "xterm-256color");
    let run = env.finish(env.start_on_terminal(&["delegate", "Make\u{2067} b.txt."]));
    let log = env.finish(env.start_on_terminal(&["log", "--diff", "000"]));
    for shown in [&run.exits(0).stdout, &log.stdout] {
        assert!(shown.contains("txt"), "{shown}");
        let turns = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        assert!(!shown.contains(turns), "{shown:?}");
    }
}
