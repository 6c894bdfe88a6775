//! What `nisse resume` prints before the task continues.

use std::path::Path;

use super::{Manner, Width, data, first_line, layout::Fields, plain, say};
use crate::commands::resume::{Nothing, Notice};

/// Says that nothing is pending; also in JSON, since programs read the last line.
pub fn nothing(manner: Manner, copy_of: Option<&Path>) {
    let nothing = Nothing::new(copy_of);
    if manner.json {
        data(manner, &serde_json::json!(nothing).to_string());
    }
    let copy = nothing.copy_of.map_or_else(String::new, |first| {
        format!("; it is a copy of {}, to which tasks from before the copy belong", plain(&first))
    });
    say(manner, &format!("nothing is pending in this checkout{copy}"));
}

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
