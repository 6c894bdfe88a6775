//! A settings file: read, parsed, and laid over the settings, with all its mistakes at once.
//!
//! The repository's file may be hostile: it is read only if it is a regular file of moderate size, nothing of it is
//! quoted unescaped, and it sets only what [`super::keys`] lets it.

use std::{
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use rustix::fs::{Mode, OFlags};
use toml::de::{DeTable, DeValue};

use super::{
    Error, Problem, Settings,
    declared::MODEL_KEYS,
    given::{Given, Raw},
    keys::KEYS,
    near::nearest,
    source::Source,
    trust::ProjectFile,
};

/// The most bytes that a settings file may have.
const MOST: u64 = 1 << 20;

/// A settings file as text.
pub(super) struct SettingsFile {
    path: PathBuf,
    text: String,
    project: bool,
}

impl SettingsFile {
    /// The user's own file; none where it need not exist and does not.
    pub(super) fn own(path: &Path, must_exist: bool) -> Result<Option<Self>, Error> {
        match File::open(path) {
            Ok(file) => Self::read(path, file, false).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !must_exist => Ok(None),
            Err(source) => Err(Error::Unreadable { path: path.to_owned(), source }),
        }
    }

    /// The `nisse.toml` of the repository with that root; none where there is none.
    pub(super) fn project(root: &Path) -> Result<Option<Self>, Error> {
        let path = root.join("nisse.toml");
        // a link could lead to any file of the user's, and opening a pipe could wait forever
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match rustix::fs::open(&path, flags, Mode::empty()) {
            Ok(descriptor) => File::from(descriptor),
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            Err(rustix::io::Errno::LOOP) => return Err(Error::NotAFile(path)),
            Err(errno) => return Err(Error::Unreadable { path, source: errno.into() }),
        };
        match file.metadata() {
            Ok(metadata) if metadata.is_file() => Self::read(&path, file, true).map(Some),
            Ok(_) => Err(Error::NotAFile(path)),
            Err(source) => Err(Error::Unreadable { path, source }),
        }
    }

    fn read(path: &Path, file: File, project: bool) -> Result<Self, Error> {
        let path = path.to_owned();
        let mut bytes = Vec::new();
        if let Err(source) = file.take(MOST + 1).read_to_end(&mut bytes) {
            return Err(Error::Unreadable { path, source });
        }
        if bytes.len() as u64 > MOST {
            return Err(Error::TooLarge(path));
        }
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Self { path, text, project }),
            Err(error) => {
                let valid = error.utf8_error().valid_up_to();
                let source = Source::in_file(&path, line_after(&error.as_bytes()[..valid]), project);
                Err(Error::Wrong(vec![Problem::new(source, "the file is not UTF-8 text")]))
            }
        }
    }

    /// Lays the file over `settings`; its mistakes join `problems`, in the order of their lines.
    pub(super) fn apply(&self, settings: &mut Settings, home: Option<&Path>, problems: &mut Vec<Problem>) {
        let (table, errors) = DeTable::parse_recoverable(&self.text);
        if !errors.is_empty() {
            problems.extend(errors.iter().map(|error| {
                let at = error.span().map_or(0, |span| span.start);
                Problem::new(
                    self.at(at),
                    format!("not valid TOML: {}", error.message().replace('\n', ", ").escape_debug()),
                )
            }));
            return;
        }
        let mut walk = Walk { file: self, home, settings, problems: Vec::new() };
        walk.section("", table.get_ref());
        let mut found = walk.problems;
        found.sort_by_key(|(at, _)| *at);
        problems.extend(found.into_iter().map(|(_, problem)| problem));
    }

    /// The file as the user trusts it or does not.
    pub(super) fn as_project(&self) -> ProjectFile {
        ProjectFile::new(&self.path, &self.text)
    }

    /// The place of the byte `at`.
    fn at(&self, at: usize) -> Source {
        let before = self.text.as_bytes().get(..at).unwrap_or(self.text.as_bytes());
        Source::in_file(&self.path, line_after(before), self.project)
    }
}

/// One pass over a file's tables.
struct Walk<'a> {
    file: &'a SettingsFile,
    home: Option<&'a Path>,
    settings: &'a mut Settings,
    /// With the byte where each is.
    problems: Vec<(usize, Problem)>,
}

impl Walk<'_> {
    fn section(&mut self, prefix: &str, table: &DeTable<'_>) {
        for (key, value) in table {
            let at = key.span().start;
            let name =
                if prefix.is_empty() { key.get_ref().to_string() } else { format!("{prefix}.{}", key.get_ref()) };
            if name == "models" {
                self.models(at, value.get_ref());
            } else if let Some(known) = KEYS.iter().find(|known| known.name == name) {
                if self.file.project && !known.project {
                    self.misplaced(at, &name);
                } else {
                    let given = self.given(at, value.get_ref());
                    let set = (known.set)(self.settings, &given);
                    self.wrong(at, &name, set);
                }
            } else if let Some(inner) = KEYS.iter().find(|key| below(&name, key.name).is_some()) {
                match value.get_ref().as_table() {
                    Some(table) => self.section(&name, table),
                    None => self.wrong(at, &name, Err(format!("is a section with keys such as {}", inner.name))),
                }
            } else {
                self.unknown(at, prefix, key.get_ref());
            }
        }
    }

    fn models(&mut self, at: usize, value: &DeValue<'_>) {
        let Some(models) = value.as_table() else {
            return self.wrong(at, "models", Err("is a section: write [models.\"alias\"]".to_owned()));
        };
        for (alias, value) in models {
            let at = alias.span().start;
            let name = format!("models.{:?}", alias.get_ref());
            let Some(keys) = value.get_ref().as_table() else {
                self.wrong(at, &name, Err(format!("is a section: write [{name}]")));
                continue;
            };
            for (key, value) in keys {
                let at = key.span().start;
                let full = format!("{name}.{}", key.get_ref().escape_debug());
                let Some(known) = MODEL_KEYS.iter().find(|known| known.name == key.get_ref()) else {
                    let near = nearest(key.get_ref(), MODEL_KEYS.iter().map(|known| known.name));
                    self.push(at, format!("unknown key {full}"), near.map(|near| format!("{name}.{near}")));
                    continue;
                };
                if self.file.project && !known.project {
                    self.misplaced(at, &full);
                    continue;
                }
                let given = self.given(at, value.get_ref());
                let declared = self.settings.models.entry(alias.get_ref().to_string()).or_default();
                let set = (known.set)(declared, &given);
                self.wrong(at, &full, set);
            }
        }
    }

    fn given<'v>(&self, at: usize, value: &'v DeValue<'v>) -> Given<'v>
    where
        Self: 'v,
    {
        Given {
            raw: Raw::Toml(value),
            source: self.file.at(at),
            base: self.file.path.parent().unwrap_or(Path::new(".")),
            home: self.home,
        }
    }

    /// An unknown key: the near ones of its section, else the same key of another section.
    fn unknown(&mut self, at: usize, prefix: &str, key: &str) {
        let name = if prefix.is_empty() { key.to_owned() } else { format!("{prefix}.{key}") };
        if matches!(name.as_str(), "proxy.token" | "proxy.key" | "proxy.api_key") {
            let instead = "holds no token; set token_command, token_file or NISSE_LLM_TOKEN";
            return self.push(at, format!("unknown key {name}: the file {instead}"), None);
        }
        let siblings = KEYS
            .iter()
            .filter_map(|known| if prefix.is_empty() { Some(known.name) } else { below(prefix, known.name) })
            .filter_map(|rest| rest.split('.').next())
            .chain(prefix.is_empty().then_some("models"));
        let near = match nearest(key, siblings) {
            Some(near) if prefix.is_empty() => Some(near.to_owned()),
            Some(near) => Some(format!("{prefix}.{near}")),
            None => {
                let last = |known: &'static str| known.rsplit('.').next().unwrap_or(known);
                let near = nearest(key, KEYS.iter().map(|known| last(known.name)));
                KEYS.iter().find(|known| near == Some(last(known.name))).map(|known| known.name.to_owned())
            }
        };
        self.push(at, format!("unknown key {}", name.escape_debug()), near);
    }

    fn misplaced(&mut self, at: usize, name: &str) {
        let problem = format!("a repository may not set {name}; set it in your own settings file");
        self.problems.push((at, Problem::new(self.file.at(at), problem)));
    }

    fn wrong(&mut self, at: usize, name: &str, set: Result<(), String>) {
        if let Err(what) = set {
            self.problems.push((at, Problem::new(self.file.at(at), format!("{name} {what}"))));
        }
    }

    fn push(&mut self, at: usize, what: String, near: Option<String>) {
        self.problems.push((at, Problem { near, ..Problem::new(self.file.at(at), what) }));
    }
}

/// The line, from 1, on which the text after `before` begins.
fn line_after(before: &[u8]) -> usize {
    before.split(|byte| *byte == b'\n').count()
}

/// What is left of `name` below `section`.
fn below<'n>(section: &str, name: &'n str) -> Option<&'n str> {
    name.strip_prefix(section)?.strip_prefix('.')
}
