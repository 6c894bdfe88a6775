//! Manual pages, made from the definition of the command line; `man/` holds the same.

use std::io;

use clap::{CommandFactory as _, ValueEnum as _};
use clap_mangen::{
    Man,
    roff::{Roff, roman},
};

use super::args::{Args, Page};

/// The manual page of a command, or of nisse itself.
///
/// # Errors
/// None in practice: it is written to memory.
pub fn page(of: Option<Page>) -> io::Result<Vec<u8>> {
    let mut nisse = Args::command().disable_help_subcommand(true);
    nisse.build();
    let named = of.and_then(|page| page.to_possible_value());
    let command = named.and_then(|name| nisse.find_subcommand(name.get_name()).cloned()).unwrap_or(nisse);
    let manual = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
    let source = concat!("nisse ", env!("CARGO_PKG_VERSION"));
    let (man, mut page) = (Man::new(command.clone()).manual("nisse").source(source), Vec::new());
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    sections(&manual, &mut page)?;
    Ok(page)
}

/// The help's own sections, their lines kept as they are: `clap_mangen` would fill them.
fn sections(manual: &str, page: &mut Vec<u8>) -> io::Result<()> {
    let mut roff = Roff::default();
    for section in manual.split("\n\n").filter(|section| !section.is_empty()) {
        let (title, lines) = section.split_once(":\n").unwrap_or(("Notes", section));
        roff.control("SH", [title.to_uppercase().as_str()]).control("nf", []);
        for line in lines.lines() {
            roff.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
        }
        roff.control("fi", []);
    }
    roff.to_writer(page)
}

/// All pages with the names of their files under `man/`.
///
/// # Errors
/// As [`page`].
pub fn all() -> io::Result<Vec<(String, Vec<u8>)>> {
    let pages = Page::value_variants().iter().map(|page| Some(*page));
    std::iter::once(None).chain(pages).map(|of| Ok((file_name(of), page(of)?))).collect()
}

fn file_name(of: Option<Page>) -> String {
    match of.and_then(|page| page.to_possible_value()) {
        Some(page) => format!("nisse-{}.1", page.get_name()),
        None => "nisse.1".to_owned(),
    }
}
