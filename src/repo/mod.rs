//! Branches, worktrees, checkpoints.
