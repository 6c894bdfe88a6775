//! The LiteLLM proxy.
