//! The front door on the command line: arguments in, words and an exit code out.

pub mod args;
mod candidates;
pub mod completions;
pub mod error;
mod guard;
pub mod man;
mod manual;
pub mod render;
mod signals;
mod stdin;

use std::{ffi::OsString, io::IsTerminal as _, path::PathBuf, sync::Arc};

use clap::Parser as _;

use self::{
    args::{Args, Command},
    render::{Manner, Width, ask, models::Detail, progress::Progress, result},
};
use crate::{
    adapters::host::RunningCommands,
    agent::outside::Stopper,
    commands::{
        self,
        delegate::Delegation,
        demo, init,
        named::{self, Named, Purpose},
        open::Opened,
        result::TaskResult,
        resume::{self, Choice},
        run::Watch,
        settings::Environment,
        tidy, trust,
        worker::{self, Job},
    },
    domain::{checkout::Isolation, gate::Answer, id::TaskId},
    repo::Checkout,
};

/// Parses, resolves, dispatches, renders; returns the exit status.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if let Some(status) = completions::answer(&arguments) {
        return status;
    }
    let args = match Args::try_parse_from(&arguments) {
        Ok(args) => args,
        Err(error) => {
            let printed = error.print();
            return if error.use_stderr() { misused(&arguments, &error) } else { render::status_of_output(0, printed) };
        }
    };
    signals::status(render::status_of_output(guard::guarded(args.common.json, || work(&args)), Ok(())))
}

fn work(args: &Args) -> u8 {
    let manner = Manner::of(&args.common, &Environment::from_process());
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            render::say(manner, &format!("error: cannot start: {error}"));
            return 1;
        }
    };
    match runtime.block_on(dispatch(args, manner)) {
        Ok(code) => code,
        Err(error) => {
            let report =
                error::report(&error).masked(&commands::secrets::mask(&Environment::from_process(), None, None, &[]));
            render::error(manner, &report);
            report.exit
        }
    }
}

/// Reports wrong usage in JSON, too, if asked for; clap has printed it for people.
fn misused(arguments: &[OsString], error: &clap::Error) -> u8 {
    let report = error::Report::usage(error);
    if arguments.iter().any(|argument| argument == "--json") {
        render::bytes(format!("{}\n", report.json()).as_bytes());
    }
    report.exit
}

/// Printed if the proxy is slow.
const WAITING: &str = "waiting for the proxy, 10 s at most";

async fn dispatch(args: &Args, manner: Manner) -> Result<u8, commands::Error> {
    match &args.command {
        Command::Delegate(delegate) => {
            let brief = stdin::brief(manner, &delegate.brief(std::io::stdin().is_terminal()))?;
            let opened = Arc::new(trusted(args, manner, open(args)?)?);
            let delegation = Delegation {
                brief,
                branch: delegate.branch.clone(),
                base: delegate.base.clone(),
                isolation: delegate.isolation.unwrap_or(Isolation::Worktree),
            };
            let work = |watch| worker::run(&opened, Job::Delegate(delegation), watch);
            ended(manner, &opened, &watched(manner, result::go_on, work).await?)
        }
        Command::Resume(task) => {
            let opened = Arc::new(Opened::to_go_on(Environment::from_process(), &args.flags(), &here(args))?);
            let choice = match &task.task {
                Some(name) => Choice::Task(named(manner, &opened, name, Purpose::Resume)?),
                None => resume::choose(&opened)?,
            };
            let Some(id) = chosen(args, manner, choice)? else {
                render::resume::nothing(manner, opened.checkout()?.copy_of());
                return Ok(0);
            };
            let mut answer = task.answer();
            if let Some(notice) = resume::notice(&opened, id)? {
                render::resume::notice(manner, &notice);
            }
            loop {
                let work = |watch| worker::run(&opened, Job::Resume { task: id, answer }, watch);
                let result = Box::pin(watched(manner, result::go_on, work)).await?;
                answer = decided(args, manner, &opened, &result)?;
                if answer.is_none() {
                    return ended(manner, &opened, &result);
                }
            }
        }
        Command::Apply(asked) => {
            let opened = open_begun(args)?;
            let id = named(manner, &opened, &asked.task, Purpose::Apply)?;
            signals::listen_for_commits(manner, opened.git().clone())?;
            let applied = commands::apply::apply(&opened, id, asked.wish())?;
            render::document(
                manner,
                || serde_json::json!(applied),
                || render::apply::text(&applied, Width::of_stdout()),
            );
            Ok(applied.exit)
        }
        Command::Drop(task) => {
            let opened = Arc::new(open_begun(args)?);
            let id = named(manner, &opened, &task.task, Purpose::Drop)?;
            let work = |watch| worker::run(&opened, Job::Drop(id), watch);
            ended(manner, &opened, &watched(manner, result::go_on, work).await?)
        }
        Command::Log(log) => {
            let opened = open_begun(args)?;
            match &log.task {
                None => {
                    let listing =
                        commands::log::list(&opened, log.number.and_then(|number| usize::try_from(number).ok()))?;
                    if let Some(first) = opened.checkout().ok().and_then(Checkout::copy_of) {
                        let first = first.display();
                        render::say(
                            manner,
                            &format!("this is a copy of {first}, to which tasks from before the copy belong"),
                        );
                    }
                    let reports: Vec<_> = listing.unreadable.iter().map(error::report).collect();
                    render::tasks::list(manner, &listing.tasks, &reports);
                    Ok(reports.first().map_or(0, |report| report.exit))
                }
                Some(name) if log.follow => {
                    let id = named(manner, &opened, name, Purpose::Log)?;
                    let mut teller = render::log::Teller::new(manner);
                    let task = commands::log::follow(&opened, id, |event| teller.tell(event)).await?;
                    teller.end(&task);
                    Ok(0)
                }
                Some(name) if log.diff => {
                    let id = named(manner, &opened, name, Purpose::Log)?;
                    render::diff::diff(manner, &commands::log::diff(&opened, id)?);
                    Ok(0)
                }
                Some(name) => {
                    let id = named(manner, &opened, name, Purpose::Log)?;
                    let (task, events) = commands::log::one(&opened, id)?;
                    render::log::one(manner, &task, &events, commands::log::is_held(&opened, id)?);
                    Ok(0)
                }
            }
        }
        Command::Models(models) => {
            let opened = open(args)?;
            let asked = commands::models::models(&opened.settings, &opened.environment, models.filter.as_deref());
            let report = render::while_waiting(manner, WAITING, asked).await?;
            render::document(
                manner,
                || serde_json::json!(report),
                || {
                    let detail = Detail { all: models.all, columns: manner.verbose };
                    render::models::text(&report, detail, Width::of_stdout())
                },
            );
            Ok(0)
        }
        Command::Doctor { fix } => {
            let process = Environment::from_process();
            let (flags, place) = (args.flags(), here(args));
            let looked = commands::doctor::doctor(&process, &flags, &place, *fix);
            let report = Box::pin(render::while_waiting(manner, WAITING, looked)).await;
            render::document(
                manner,
                || serde_json::json!(report),
                || render::doctor::text(&report, manner.verbose, Width::of_stdout()),
            );
            Ok(report.exit())
        }
        Command::Init => {
            let (environment, flags, place) = (Environment::from_process(), args.flags(), here(args));
            let looked = init::gather(&environment, &flags, &place);
            let mut found = Box::pin(render::while_waiting(manner, WAITING, looked)).await?;
            if found.model.is_none() && !found.offered.is_empty() && may_ask(args, manner) {
                found.model = ask::model(&found.offered);
            }
            let written = init::write(found)?;
            render::document(
                manner,
                || serde_json::json!(written),
                || render::settings::written(&written, args.common.config.as_deref(), Width::of_stdout()),
            );
            Ok(0)
        }
        Command::Trust { revoke } => {
            let project = trust::read_project(&Environment::from_process(), &args.flags(), &here(args))?;
            let said = if *revoke { project.revoke()? } else { project.trust()? };
            render::document(manner, || serde_json::json!(said), || render::settings::trust(&said, Width::of_stdout()));
            Ok(0)
        }
        Command::Demo => {
            let environment = Environment::from_process();
            let scratch = demo::scratch(&environment)?;
            render::demo::before(manner, &scratch);
            let work = |watch| demo::demo(&environment, &scratch, watch);
            // the model's text is what the demo shows
            let progress = Progress::new(manner).with_words();
            let shown = watched_with(progress, manner, render::demo::again, work).await?;
            render::demo::after(manner, &scratch, &shown);
            Ok(shown.result.exit)
        }
        Command::Completions { shell } => {
            render::bytes(&completions::script(*shell));
            Ok(0)
        }
        Command::Man { page } => {
            render::bytes(&man::page(*page).unwrap_or_default());
            Ok(0)
        }
    }
}

/// Runs a task's work with progress and signal handlers. `way_on` says how to continue after a stop.
async fn watched<T, W>(
    manner: Manner,
    way_on: fn(TaskId) -> String,
    work: impl FnOnce(Watch) -> W,
) -> Result<T, commands::Error>
where
    W: Future<Output = Result<T, commands::Error>>,
{
    watched_with(Progress::new(manner), manner, way_on, work).await
}

async fn watched_with<T, W>(
    progress: Progress,
    manner: Manner,
    way_on: fn(TaskId) -> String,
    work: impl FnOnce(Watch) -> W,
) -> Result<T, commands::Error>
where
    W: Future<Output = Result<T, commands::Error>>,
{
    let (stopper, stop) = Stopper::new();
    let commands = RunningCommands::default();
    signals::listen(stopper, commands.clone(), manner, progress.clone(), way_on)?;
    let (live, mut passing) = tokio::sync::mpsc::unbounded_channel();
    let mut subscribers = vec![progress.subscriber()];
    if manner.json {
        subscribers.push(Box::new(move |event, _| render::data(manner, &render::json::event(event).to_string())));
    }
    // spawned, because some steps of the work block
    let telling = tokio::spawn(progress.clone().keep_telling());
    let words = progress.clone();
    tokio::spawn(async move {
        while let Some(passing) = passing.recv().await {
            words.pass(&passing);
        }
    });
    let worked = work(Watch { subscribers, live, stop, commands }).await;
    telling.abort();
    progress.finish();
    worked
}

/// The task that a name means; says so if it belongs to another checkout.
fn named(manner: Manner, opened: &Opened, name: &str, purpose: Purpose) -> Result<TaskId, commands::Error> {
    let Named { id, elsewhere } = named::task(opened, name, purpose)?;
    if let Some(checkout) = elsewhere {
        render::say(manner, &format!("task {id:#} belongs to {checkout}"));
    }
    Ok(id)
}

/// Shows the result of a run, then packs what it left; returns the exit status of the result.
fn ended(manner: Manner, opened: &Opened, result: &TaskResult) -> Result<u8, commands::Error> {
    render::result::result(manner, result);
    signals::listen_while_tidying(opened.git().clone())?;
    render::tidy::packed(manner, |begun| tidy::pack(opened, result.task, begun));
    Ok(result.exit)
}

/// The task to resume; asks if there are several and there is someone to ask.
fn chosen(args: &Args, manner: Manner, choice: Choice) -> Result<Option<TaskId>, commands::Error> {
    match choice {
        Choice::Nothing => Ok(None),
        Choice::Task(id) => Ok(Some(id)),
        Choice::Several(tasks) => {
            let ids = tasks.iter().map(|task| task.id).collect();
            if !may_ask(args, manner) {
                return Err(commands::Error::Several(ids));
            }
            Ok(Some(ask::which(&tasks).ok_or(commands::Error::Several(ids))?))
        }
    }
}

/// The user's decision about the files of a gated task; none if it is not gated, or the user does not decide.
fn decided(
    args: &Args,
    manner: Manner,
    opened: &Opened,
    result: &TaskResult,
) -> Result<Option<Answer>, commands::Error> {
    if result.answers.is_empty() || !may_ask(args, manner) {
        return Ok(None);
    }
    Ok(ask::about_files(manner, result, resume::found(opened, result.task)?.as_ref()))
}

/// The same after the user trusted the repository's settings file, if that is necessary.
fn trusted(args: &Args, manner: Manner, opened: Opened) -> Result<Opened, commands::Error> {
    if !opened.settings.waits_for_trust() || !may_ask(args, manner) {
        return Ok(opened);
    }
    let project = trust::read_project(&opened.environment, &args.flags(), &here(args))?;
    if !ask::trust(manner, &project.report()) {
        return Ok(opened);
    }
    project.trust()?;
    // reads the file again: a change since it was shown is not trusted
    open(args)
}

fn may_ask(args: &Args, manner: Manner) -> bool {
    !args.common.no_input && !manner.json && ask::can_ask()
}

fn open(args: &Args) -> Result<Opened, commands::Error> {
    Opened::new(Environment::from_process(), &args.flags(), &here(args))
}

/// For commands on existing tasks.
fn open_begun(args: &Args) -> Result<Opened, commands::Error> {
    Opened::for_begun_tasks(Environment::from_process(), &args.flags(), &here(args))
}

fn here(args: &Args) -> PathBuf {
    args.common.repo.clone().unwrap_or_else(|| PathBuf::from("."))
}
