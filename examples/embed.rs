//! Uses nisse as a library: delegates a brief in the current directory and watches the log as it grows.
//!
//! Settings, proxy and role are those of the command line; see `nisse doctor`.
//!
//! ```text
//! cargo run --example embed -- 'Make the parser accept trailing commas'
//! ```

use std::{error::Error, path::Path};

use nisse::{
    adapters::host::RunningCommands,
    agent::outside::Stopper,
    commands::{
        delegate::{Delegation, delegate},
        open::Opened,
        run::Watch,
        settings::{Environment, Flags},
    },
    domain::{checkout::Isolation, event::EventKind},
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let brief = std::env::args().nth(1).ok_or("say what to do")?;
    let opened = Opened::new(Environment::from_process(), &Flags::default(), Path::new("."))?;

    // whoever watches is called with each event once it is durable, and with the task as it then is
    let (say, mut said) = tokio::sync::mpsc::unbounded_channel();
    let watcher = move |event: &nisse::domain::event::Event, task: &nisse::domain::task::Task| {
        let more = match &event.kind {
            EventKind::ToolResult(result) => result.content.lines().next().unwrap_or_default().to_owned(),
            _ => String::new(),
        };
        let _ = say.send(format!("{:>3} {:<16} {} turns {more}", event.seq, event.kind.name(), task.spend.turns));
    };
    // streamed text as it comes; nothing of it is recorded
    let (live, _text) = tokio::sync::mpsc::unbounded_channel();
    // `stopper.stop()` ends the task in order: it rests, and can be resumed
    let (_stopper, stop) = Stopper::new();

    let delegation = Delegation { brief, branch: None, base: None, isolation: Isolation::Worktree };
    let work = delegate(
        &opened,
        &delegation,
        Watch { subscribers: vec![Box::new(watcher)], live, stop, commands: RunningCommands::default() },
    );
    let print = async {
        let mut out = tokio::io::stdout();
        while let Some(line) = said.recv().await {
            let _ = tokio::io::AsyncWriteExt::write_all(&mut out, format!("{line}\n").as_bytes()).await;
        }
    };
    let (result, ()) = tokio::join!(work, print);
    let result = result?;

    let mut out = tokio::io::stdout();
    let told = format!("{}: {} on {:?}\n", result.outcome, result.cause, result.branch);
    tokio::io::AsyncWriteExt::write_all(&mut out, told.as_bytes()).await?;
    tokio::io::AsyncWriteExt::flush(&mut out).await?;
    Ok(())
}
