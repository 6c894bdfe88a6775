//! The tools offered to a model.
