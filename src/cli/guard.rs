//! A panic is a bug in nisse: it says so, in JSON too if asked for, and the exit status is 70.

use std::{
    io::Write as _,
    panic::{AssertUnwindSafe, catch_unwind},
};

use serde_json::json;

use super::{error::ErrorObject, render};

/// Exit status of a bug in nisse.
const BUG: u8 = 70;
const MESSAGE: &str = "this is a bug in nisse, not in your work";
const HINT: &str = "nothing is lost: `nisse resume` continues from the last event; please report the lines above";

/// Does the work and returns its exit status.
///
/// After a panic the process ends, so half-changed memory is never used.
pub(super) fn guarded(json: bool, work: impl FnOnce() -> u8) -> u8 {
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        // or the message would be mixed with the live line
        render::live::erase();
        told(panic);
    }));
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        if json {
            let object = json!(ErrorObject::new("bug", BUG, None, MESSAGE.to_owned(), Some(HINT.to_owned())));
            render::bytes(format!("{object}\n").as_bytes());
        }
        let _ = writeln!(std::io::stderr(), "error: {MESSAGE}\n  try: {HINT}");
        BUG
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_70_and_anything_else_is_what_it_is() {
        assert_eq!(guarded(false, || 3), 3);
        assert_eq!(guarded(false, || panic!("on purpose")), 70);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        assert_eq!(guarded(false, || runtime.block_on(async { panic!("on purpose") })), 70);
    }
}
