//! Walks of tree objects.

use std::{collections::BTreeSet, path::PathBuf};

use git2::{ObjectType, Oid, Repository};

use super::Submodule;

/// The trees that lead to these paths, from the root on.
pub(super) fn trees_of(repository: &Repository, tree: Oid, paths: &[PathBuf]) -> Result<BTreeSet<String>, git2::Error> {
    let root = repository.find_tree(tree)?;
    let mut trees = BTreeSet::from([tree.to_string()]);
    for path in paths {
        for above in path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()) {
            match root.get_path(above) {
                Ok(entry) if entry.kind() == Some(ObjectType::Tree) => {
                    trees.insert(entry.id().to_string());
                }
                // it went with its last file
                Ok(_) | Err(_) => {}
            }
        }
    }
    Ok(trees)
}

/// Walks by hand: libgit2's own walk gives up at a directory whose name is no text.
pub(super) fn collect_submodules(
    repository: &Repository,
    tree: &git2::Tree<'_>,
    parent: &[u8],
    found: &mut Vec<Submodule>,
) -> Result<(), git2::Error> {
    for entry in tree {
        let mut path = [parent, entry.name_bytes()].concat();
        match entry.kind() {
            Some(ObjectType::Commit) => found.push(Submodule { path, commit: entry.id().to_string() }),
            Some(ObjectType::Tree) => {
                path.push(b'/');
                collect_submodules(repository, &repository.find_tree(entry.id())?, &path, found)?;
            }
            Some(ObjectType::Any | ObjectType::Blob | ObjectType::Tag) | None => {}
        }
    }
    Ok(())
}
