//! Failures between nisse and a model, in classes that decide what happens next.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The class of a request's failure. The adapter knows what each looks like on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Trouble {
    /// No connection.
    Unreachable,
    /// No first byte, or no content, for too long.
    Timeout,
    /// 5xx, 408, HTML instead of JSON, a 200 that cannot be read.
    Overloaded,
    /// 429: rate limited.
    RateLimited,
    /// A stream that ended before the reply was whole.
    Cut,
    /// A budget of the key, its team or the provider is used up.
    BudgetGone,
    /// The proxy refuses our key.
    KeyRefused,
    /// A vendor refuses the proxy's own key.
    VendorKeyRefused,
    /// The server behind the proxy was started without support for tool calls.
    ServerSetUp,
    /// The key may not use this model.
    ModelDenied,
    /// The proxy does not know this model.
    ModelUnknown,
    /// The request is larger than the model's window.
    ContextOverflow,
    /// The model takes no `tool_choice`.
    ToolChoiceUnsupported,
    /// The model takes no tools.
    ToolsUnsupported,
    /// Another model than the requested one answered, and the role refuses that.
    FallbackRefused,
    /// The model or the proxy declined for reasons of policy.
    Policy,
    /// Any other 4xx: the request was wrong.
    BadRequest,
    /// The proxy's address cannot be used.
    BadAddress,
    /// The proxy's certificate is not trusted.
    BadCertificate,
    /// The user asked to stop.
    Stopped,
}

/// The reaction to a class of trouble.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reaction {
    /// Retry after a wait; after the last attempt, the task is interrupted.
    Retry,
    /// The task is interrupted at once.
    Interrupt,
    /// The request is made smaller and sent again; when that does not help, a person must decide.
    Evict,
    /// The task fails.
    Fail,
    /// Wrong configuration: the process ends with an error, the task stays pending.
    Configuration,
    /// The parameter is dropped for the rest of the task, and the request sent again.
    DropToolChoice,
    /// The task is stopped.
    Stop,
}

impl Trouble {
    /// The reaction to it.
    #[must_use]
    pub fn reaction(self) -> Reaction {
        match self {
            Self::Unreachable | Self::Timeout | Self::Overloaded | Self::RateLimited | Self::Cut => Reaction::Retry,
            Self::BudgetGone | Self::VendorKeyRefused | Self::FallbackRefused => Reaction::Interrupt,
            Self::ContextOverflow => Reaction::Evict,
            Self::ToolChoiceUnsupported => Reaction::DropToolChoice,
            Self::ToolsUnsupported | Self::Policy | Self::BadRequest => Reaction::Fail,
            Self::KeyRefused
            | Self::ServerSetUp
            | Self::ModelDenied
            | Self::ModelUnknown
            | Self::BadAddress
            | Self::BadCertificate => Reaction::Configuration,
            Self::Stopped => Reaction::Stop,
        }
    }

    /// Whether the model may have worked on the request, so that it is charged although no reply came.
    #[must_use]
    pub fn is_charged(self) -> bool {
        matches!(self, Self::Timeout | Self::Cut | Self::Stopped | Self::FallbackRefused)
    }

    /// The word used in output and JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Timeout => "timeout",
            Self::Overloaded => "overloaded",
            Self::RateLimited => "rate limited",
            Self::Cut => "cut",
            Self::BudgetGone => "budget gone",
            Self::KeyRefused => "key refused",
            Self::VendorKeyRefused => "vendor key refused",
            Self::ServerSetUp => "server set up without tool calls",
            Self::ModelDenied => "model denied",
            Self::ModelUnknown => "model unknown",
            Self::ContextOverflow => "context overflow",
            Self::ToolChoiceUnsupported => "tool_choice unsupported",
            Self::ToolsUnsupported => "tools unsupported",
            Self::FallbackRefused => "fallback refused",
            Self::Policy => "refused by policy",
            Self::BadRequest => "bad request",
            Self::BadAddress => "bad address",
            Self::BadCertificate => "bad certificate",
            Self::Stopped => "stopped",
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
