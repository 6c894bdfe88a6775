//! Whether some git still works in a repository: looked at before a lock file counts as left behind.

use std::path::Path;

/// Whether a process may still hold a lock: one has the file open, or is a git that works in one of the places, or one of
/// which that cannot be told. Where processes cannot be looked at, one may always.
#[cfg(target_os = "linux")]
pub(super) fn may_be_held(lock: &Path, places: &[&Path]) -> bool {
    let Ok(listing) = std::fs::read_dir("/proc") else { return true };
    let numbered = |entry: &std::fs::DirEntry| entry.file_name().to_string_lossy().bytes().all(|c| c.is_ascii_digit());
    let mut processes = listing.flatten().filter(numbered).map(|entry| entry.path());
    processes.any(|process| has_open(&process, lock) || is_git(&process) && may_work_in(&process, places))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn may_be_held(_lock: &Path, _places: &[&Path]) -> bool {
    true
}

#[cfg(target_os = "linux")]
fn has_open(process: &Path, file: &Path) -> bool {
    let open = std::fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
    open.filter_map(|entry| std::fs::read_link(entry.path()).ok()).any(|at| at == file)
}

/// `git`, or `git-…`; one that is dead and only not collected yet is none.
#[cfg(target_os = "linux")]
fn is_git(process: &Path) -> bool {
    let read = |name| std::fs::read_to_string(process.join(name)).unwrap_or_default();
    let name = read("comm");
    let is_named = name.trim_end() == "git" || name.starts_with("git-");
    is_named && !read("stat").rsplit(')').next().unwrap_or_default().trim_start().starts_with(['Z', 'X'])
}

/// By its directory, or by what it was told.
#[cfg(target_os = "linux")]
fn may_work_in(process: &Path, places: &[&Path]) -> bool {
    let directory = match std::fs::read_link(process.join("cwd")) {
        Ok(directory) => directory,
        // somebody else's; otherwise it is gone by now
        Err(error) => return error.kind() == std::io::ErrorKind::PermissionDenied,
    };
    let told = [std::fs::read(process.join("cmdline")), std::fs::read(process.join("environ"))];
    let named = |place: &Path| {
        let place = place.as_os_str().as_encoded_bytes();
        told.iter().flatten().any(|text| memchr::memmem::find(text, place).is_some())
    };
    places.iter().any(|place| directory.starts_with(place) || named(place))
}
