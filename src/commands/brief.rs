//! The brief of a task: from the command line, from stdin or from a file. Stdin is read only if asked for.

use std::{
    fs::File,
    io::{self, Read},
    path::PathBuf,
};

/// The most bytes of a brief: a larger one is surely a mistake.
const MOST: u64 = 1 << 20;

/// The byte order mark, which some editors write.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Where to read the brief from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Origin {
    /// The command line itself.
    Argument(String),
    /// Standard input, to its end.
    Stdin,
    /// The command line, followed by standard input to its end.
    ArgumentAndStdin(String),
    /// Nowhere.
    Nothing,
    /// A file.
    File(PathBuf),
}

/// Why there is no brief.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be read.
    #[error("cannot read the brief from {origin}")]
    Unreadable {
        /// A file, or stdin.
        origin: String,
        /// What the system said.
        source: io::Error,
    },
    /// There is none.
    #[error("there is no brief")]
    Missing,
    /// It is empty.
    #[error("the brief from {0} is empty")]
    Empty(String),
    /// It is more than a mebibyte.
    #[error("the brief from {0} is over 1 MiB")]
    TooLong(String),
    /// It is not UTF-8, or holds a NUL character.
    #[error("the brief from {0} is not UTF-8 text")]
    NotText(String),
}

/// Reads the brief, without the white space around it.
///
/// # Errors
/// See [`Error`].
pub fn read(origin: &Origin, stdin: impl Read) -> Result<String, Error> {
    let (bytes, name) = match origin {
        Origin::Argument(text) => (Ok(text.clone().into_bytes()), "the command line".to_owned()),
        Origin::Stdin => (bounded(stdin), "stdin".to_owned()),
        Origin::ArgumentAndStdin(text) => {
            let appended = read(&Origin::Stdin, stdin)?;
            (Ok(format!("{}\n\n{appended}", text.trim()).into_bytes()), "the command line and stdin".to_owned())
        }
        Origin::Nothing => return Err(Error::Missing),
        Origin::File(path) => (File::open(path).and_then(bounded), path.display().to_string()),
    };
    let bytes = match bytes {
        Ok(bytes) if bytes.len() as u64 > MOST => return Err(Error::TooLong(name)),
        Ok(bytes) => bytes,
        Err(source) => return Err(Error::Unreadable { origin: name, source }),
    };
    match String::from_utf8(bytes) {
        Ok(text) if text.contains('\0') => Err(Error::NotText(name)),
        Ok(text) => match text.trim_start_matches(BYTE_ORDER_MARK).trim() {
            "" => Err(Error::Empty(name)),
            brief => Ok(brief.to_owned()),
        },
        Err(_) => Err(Error::NotText(name)),
    }
}

fn bounded(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(MOST + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_brief_is_text_without_the_space_around_it() {
        let stdin = |bytes: &[u8]| read(&Origin::Stdin, bytes);
        assert_eq!(stdin(b" do\n it\n\n").unwrap(), "do\n it");
        assert!(matches!(stdin(b" \n"), Err(Error::Empty(_))));
        assert_eq!(stdin("\u{feff}do it\r\n".as_bytes()).unwrap(), "do it");
        assert!(matches!(stdin("\u{feff}\n".as_bytes()), Err(Error::Empty(_))));
        let both = |bytes: &[u8]| read(&Origin::ArgumentAndStdin(" do it \n".to_owned()), bytes);
        assert_eq!(both(b"like this\n").unwrap(), "do it\n\nlike this");
        // whoever appends nothing has lost something on the way
        assert!(matches!(both(b"\n"), Err(Error::Empty(_))));
        assert!(matches!(read(&Origin::Nothing, &b"x"[..]), Err(Error::Missing)));
        assert!(matches!(stdin(b"a\0b"), Err(Error::NotText(_))));
        assert!(matches!(stdin(b"\xff"), Err(Error::NotText(_))));
        assert!(matches!(stdin(&vec![b'x'; (1 << 20) + 1]), Err(Error::TooLong(_))));
        assert!(matches!(read(&Origin::File("/no/such".into()), &b""[..]), Err(Error::Unreadable { .. })));
    }
}
