//! The test house: a world of its own for each test, and a scripted proxy that checks what it is sent.

mod checkout;
mod environment;
mod fingerprint;
mod history;
mod inspect;
mod process;
mod script;
mod server;
mod skip;
mod transcript;
mod wire_chat;
mod wire_messages;

pub(crate) use checkout::Checkout;
pub(crate) use environment::TestEnvironment;
pub(crate) use fingerprint::Fingerprint;
pub(crate) use history::Asked;
pub(crate) use process::{Run, is_alive, wait_until};
pub(crate) use script::{Finish, Piece, Script, Step};
pub(crate) use server::{Server, Switch, TOKEN, Wire};
pub(crate) use skip::{Needs, lacks, other_file_system};
pub(crate) use transcript::{opening, transcript};
