//! Globs over paths relative to a root, with `/` between their parts.
//!
//! A glob without `/` matches names at any depth; `*` and `?` never match a `/`, `**` does.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// A set of globs.
#[derive(Clone, Debug)]
pub struct PathGlobs {
    set: GlobSet,
    with_directories: bool,
}

/// Why a set of globs is invalid.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Error {
    /// A glob cannot be read.
    #[error("`{glob}` is not a glob: {reason}")]
    Unreadable {
        /// The glob.
        glob: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl PathGlobs {
    /// Globs that select paths: case-sensitive, and only a whole path matches.
    pub fn picking(glob: &str) -> Result<Self, Error> {
        Ok(Self { set: built(&[glob], false)?, with_directories: false })
    }

    /// Globs that deny paths: case-insensitive, like some file systems, and everything under a matching directory is
    /// denied, too.
    pub fn denying<S: AsRef<str>>(globs: &[S]) -> Result<Self, Error> {
        Ok(Self { set: built(globs, true)?, with_directories: true })
    }

    /// Whether the path matches.
    #[must_use]
    pub fn matches(&self, path: &str) -> bool {
        self.set.is_match(path)
            || (self.with_directories && path.match_indices('/').any(|(end, _)| self.set.is_match(&path[..end])))
    }
}

fn built<S: AsRef<str>>(globs: &[S], any_case: bool) -> Result<GlobSet, Error> {
    let mut set = GlobSetBuilder::new();
    for glob in globs {
        let written = glob.as_ref();
        let trimmed = written.trim_start_matches("./").trim_end_matches('/');
        let anchored = match trimmed.strip_prefix('/') {
            Some(from_root) => from_root.to_owned(),
            None if trimmed.contains('/') => trimmed.to_owned(),
            None => format!("**/{trimmed}"),
        };
        let unreadable =
            |error: globset::Error| Error::Unreadable { glob: written.to_owned(), reason: error.kind().to_string() };
        set.add(
            GlobBuilder::new(&anchored)
                .literal_separator(true)
                .case_insensitive(any_case)
                .build()
                .map_err(unreadable)?,
        );
    }
    set.build().map_err(|error| Error::Unreadable {
        glob: error.glob().unwrap_or_default().to_owned(),
        reason: error.kind().to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picking_glob_without_a_slash_is_meant_at_any_depth() -> Result<(), Error> {
        let rust = PathGlobs::picking("*.rs")?;
        assert!(rust.matches("main.rs") && rust.matches("src/deep/lib.rs"));
        assert!(!rust.matches("src/lib.RS") && !rust.matches("a.rs/b"));
        let direct = PathGlobs::picking("src/*.rs")?;
        assert!(direct.matches("src/lib.rs") && !direct.matches("src/deep/lib.rs") && !direct.matches("x/src/lib.rs"));
        assert!(PathGlobs::picking("src/**/*.rs")?.matches("src/a/b/c.rs"));
        assert!(!PathGlobs::picking("/a.rs")?.matches("x/a.rs"));
        Ok(())
    }

    #[test]
    fn a_denied_directory_denies_what_is_in_it_in_any_case() -> Result<(), Error> {
        let deny = PathGlobs::denying(&[".env*", "keys/"])?;
        for path in [".env", "a/.ENV.local", ".env.d/x/y", "keys/id", "deep/keys/id"] {
            assert!(deny.matches(path), "{path}");
        }
        for path in ["env", "a.env", "monkeys/id", "src/environment.rs"] {
            assert!(!deny.matches(path), "{path}");
        }
        Ok(())
    }

    #[test]
    fn an_unreadable_glob_is_named() {
        let error = PathGlobs::picking("src/[a").map(|_| ()).unwrap_err();
        assert!(error.to_string().starts_with("`src/[a` is not a glob: "), "{error}");
    }
}
