//! The repository floor against real repositories: what it does to them, and what it must not.

mod ends;
mod ground;
mod looks;
mod races;
mod refused;
mod rollback;
mod twins;
mod unchanged;
mod work;
