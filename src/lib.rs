//! nisse is a coding agent for the command line that never loses work and never lies about success.
//!
//! # The idea
//!
//! A task is nothing but its events, kept in a [`log`]. One pure function folds them into a state
//! ([`domain::task::Task::apply`]), one looks at the state and says what happens next ([`domain::next::next`]), and one
//! loop does it ([`agent::turn`], **start reading there**). Starting a task is resuming one that has a single event, so
//! there is no separate way to resume; planner, executor and delegate are three [values](domain::role::Role) of one loop.
//!
//! ```text
//!           next(state, now)                 Prepare | Recover | Act | Skip | Check | Close | Ask | Finish
//!  events ──fold──▶ state ──▶ step ──▶ do ──▶ events …
//!     ▲                                          │
//!     └────────── committed before any effect ───┘
//! ```
//!
//! A run has two surroundings: the [outside](agent::outside::Outside) (model, mask, whoever watches and may stop it), and
//! the task's own [workplace](agent::workplace::Workplace). What a task does to the world is one file an effect, with its
//! do and its recover, in [`agent::intents`]. A process can work on many tasks, each on a [worker](commands::worker).
//!
//! # The floors
//!
//! A file names only its own floor and the floors below it; `tests/architecture.rs` holds that.
//!
//! | floor | folder | what it is |
//! |---|---|---|
//! | 6 | [`cli`] | the front door: arguments in, text and exit codes out |
//! | 5 | [`commands`] | use cases: delegate, resume, apply, drop, log, models, doctor, init, trust, demo; settings; wiring of adapters |
//! | 4 | [`agent`] | the turn loop, tools, context, recovery, roles; names no adapter |
//! | 3 | [`adapters`] | the proxy ([`adapters::litellm`]), this machine ([`adapters::host`]), scripted models |
//! | 3 | [`log`] | the event log in `SQLite`: append, read, one owner a task |
//! | 3 | [`repo`] | git: snapshot, worktree, checkpoint, squash, discard, apply |
//! | 2 | [`ports`] | what we ask of the outside: a model, a machine, the time |
//! | 1 | [`domain`] | what things are; no I/O, no async, no clock |
//!
//! # Three kinds of "went wrong"
//!
//! - A *refusal* is a value that the model can read: it asked for something impossible, forbidden or unreadable.
//! - An [outcome](domain::outcome::Outcome) is how a task ended or why it rests. It is not an error.
//! - An *error* means that we or the world broke. The process ends, the task stays pending, and `nisse resume` goes on.
//!
//! # Where do I put a new …
//!
//! | a new … | touch |
//! |---|---|
//! | tool | a file in `agent/tools/`, a variant of [`domain::role::ToolName`], a line in `agent/roles`; the compiler finds the rest |
//! | event | a variant of [`domain::event::EventKind`], arms in `domain/fold`, `domain/legal`, `cli/render`: exhaustive matches |
//! | durable effect | a variant of [`domain::intent::IntentKind`], a file in `agent/intents` with its do and its recover, a line in its table |
//! | subcommand | `cli/args`, a file in `commands/`, a test file of the same name |
//! | member of the first event | its part in `domain/started`, and as below |
//! | member of an event | a step in `log/upcast` that gives older logs the value that it meant, then record `tests/logs` |
//! | table or index | a step in `log/schema`, and `log/schema.sql` |
//! | setting | `commands/settings`, and `cli/args` if it is a flag too; then make man pages and completions again |

pub mod adapters;
pub mod agent;
pub mod cli;
pub mod commands;
pub mod domain;
pub mod log;
pub mod ports;
pub mod repo;
