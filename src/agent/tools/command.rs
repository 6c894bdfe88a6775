//! `run_command`.

use std::{fmt::Write as _, time::Duration};

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    domain::{event::ResultStatus, started::CommandRules},
    ports::host::{Command, CommandEnd, CommandOutput},
};

pub(super) const DESCRIPTION: &str = "Run a command line by bash in the root of the project. Answers its exit status and its output (standard output and \
     error together; of a long output the beginning and the end). It has no terminal and no input. Whatever still runs \
     when it exits is ended: start a server and use it in one command. git commit is not needed: changes are kept.";

/// Bytes kept of an output, from its beginning and from its end each.
pub const KEEP: u64 = 16 * 1024;
/// From here on the answer says how long it took; below, it would differ from run to run.
const LONG: Duration = Duration::from_secs(10);

/// Runs a shell command line.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunCommand {
    /// The command line, e.g. `ls`.
    #[schemars(length(min = 1))]
    pub command: String,
    /// End it after this many seconds, if that is sooner than the limit of the project.
    #[schemars(range(min = 1))]
    pub timeout_s: Option<u64>,
}

impl RunCommand {
    /// The command for a host, ended after `most` at the latest.
    #[must_use]
    pub fn on_host(&self, most: Duration, rules: &CommandRules) -> Command {
        Command {
            line: self.command.clone(),
            limit: self.timeout_s.map_or(most, |seconds| most.min(Duration::from_secs(seconds))),
            keep: usize::try_from(rules.keep_output).unwrap_or(usize::MAX),
            pass_env: rules.pass_env.clone(),
        }
    }
}

/// The answer to a command that ran; failed unless it exited with 0.
#[must_use]
pub fn answer(line: &str, output: &CommandOutput) -> (ResultStatus, String) {
    let seconds = output.duration.as_secs();
    let took = if output.duration >= LONG { format!(" after {seconds} s") } else { String::new() };
    let (status, mut text) = match output.end {
        CommandEnd::Exited(0) => (ResultStatus::Done, format!("exit status 0{took}")),
        CommandEnd::Exited(code) => (ResultStatus::Failed, format!("exit status {code}{took}")),
        CommandEnd::Signalled(signal) => (ResultStatus::Failed, format!("ended by signal {signal}{took}")),
        CommandEnd::TimedOut => {
            (ResultStatus::Failed, format!("ended by nisse{took}: the time limit was reached; nothing of it runs on"))
        }
    };
    if status == ResultStatus::Done && hides_failure(line) {
        text.push_str(" (of the last command only: in this command line others may have failed unseen)");
    }
    if output.omitted > 0 {
        let _ = write!(text, "; {} bytes of output left out in the middle", output.omitted);
    }
    if output.lossy {
        text.push_str("; bytes that are not UTF-8 are shown as \u{fffd}");
    }
    if output.text.trim().is_empty() {
        text.push_str("\n[no output]");
    } else {
        let _ = write!(text, "\n{}", output.text.trim_end_matches('\n'));
    }
    (status, text)
}

/// Whether status 0 of this line may hide a failure within: a pipe, or an `|| true`. Quotes are not looked at; a word
/// too many does no harm.
fn hides_failure(line: &str) -> bool {
    let bytes = line.as_bytes();
    let is_bar = |at: usize| bytes.get(at) == Some(&b'|');
    let is_pipe = |at: usize| is_bar(at) && !is_bar(at + 1) && (at == 0 || !is_bar(at - 1));
    let gives_in = line.split("||").skip(1).any(|rest| {
        let word = rest.split_whitespace().next().unwrap_or_default().trim_end_matches([';', ')', '}']);
        matches!(word, "true" | ":" | "echo")
    });
    !line.contains("pipefail") && (0..bytes.len()).any(is_pipe) || gives_in
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::started::Sandbox;

    fn output(end: CommandEnd, text: &str) -> CommandOutput {
        CommandOutput { end, text: text.to_owned(), omitted: 0, lossy: false, duration: Duration::from_millis(9_999) }
    }

    #[test]
    fn the_answer_says_how_it_ended_and_is_the_same_each_time() {
        for (end, status, text) in [
            (CommandEnd::Exited(0), ResultStatus::Done, "exit status 0\nok"),
            (CommandEnd::Exited(5), ResultStatus::Failed, "exit status 5\nok"),
            (CommandEnd::Signalled(9), ResultStatus::Failed, "ended by signal 9\nok"),
        ] {
            assert_eq!(answer("x", &output(end, "ok\n")), (status, text.to_owned()));
        }
        let mut slow = output(CommandEnd::TimedOut, "");
        slow.duration = Duration::from_secs(61);
        let (status, text) = answer("x", &slow);
        assert_eq!(status, ResultStatus::Failed);
        assert!(text.starts_with("ended by nisse after 61 s: the time limit") && text.ends_with("\n[no output]"));
    }

    #[test]
    fn what_was_cut_and_replaced_is_told() {
        let mut cut = output(CommandEnd::Exited(0), "a");
        (cut.omitted, cut.lossy) = (77, true);
        let (_, text) = answer("x", &cut);
        assert!(text.contains("77 bytes of output left out") && text.contains("not UTF-8"), "{text}");
    }

    #[test]
    fn a_success_that_may_hide_a_failure_is_flagged() {
        for line in ["./t.sh | tail", "./t.sh || true", "./t.sh ||:", "(a|| true)", "a |& tee log"] {
            assert!(answer(line, &output(CommandEnd::Exited(0), "")).1.contains("others may have failed"), "{line}");
        }
        for line in ["./t.sh", "a || b", "set -o pipefail; a | b", "a && b"] {
            assert!(!answer(line, &output(CommandEnd::Exited(0), "")).1.contains("others may have failed"), "{line}");
        }
        assert!(!answer("a | b", &output(CommandEnd::Exited(1), "")).1.contains("others"));
    }

    #[test]
    fn the_shorter_limit_holds() {
        let run = |timeout_s| RunCommand { command: "x".to_owned(), timeout_s };
        let most = Duration::from_mins(1);
        let rules = CommandRules { time_ms: 1, pass_env: Vec::new(), keep_output: KEEP, sandbox: Sandbox::None };
        assert_eq!(run(Some(5)).on_host(most, &rules).limit, Duration::from_secs(5));
        assert_eq!(run(Some(u64::MAX)).on_host(most, &rules).limit, most);
        assert_eq!(run(None).on_host(most, &rules).limit, most);
    }
}
