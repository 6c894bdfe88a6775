//! What is said before a task goes on.

use super::{Manner, Width, first_line, layout::Fields, plain, say};
use crate::commands::resume::Notice;

/// Names the task, its branch, its brief and where it stopped.
pub fn notice(manner: Manner, notice: &Notice) {
    if manner.quiet {
        return;
    }
    for line in text(notice, Width::of_stderr()).lines() {
        say(manner, line);
    }
}

fn text(notice: &Notice, width: Width) -> String {
    let mut fields = Fields::new(width, 8);
    fields.field("resuming", &format!("{:#}", notice.task));
    fields.field("branch", &plain(&notice.branch));
    fields.field("brief", &plain(&first_line(&notice.brief, 200)));
    fields.field("found", &plain(&notice.found));
    fields.into_text()
}
