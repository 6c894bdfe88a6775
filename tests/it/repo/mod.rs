//! The repository floor against real repositories: what it does to them, and what it must not.

mod commands;
mod configured;
mod ends;
mod ground;
mod kinds;
mod leaves;
mod looks;
mod older;
mod packs;
mod races;
mod refused;
mod rollback;
mod twins;
mod unchanged;
mod work;
