//! A loopback server that speaks the proxy's protocol and answers by a script, for `nisse demo`.
//!
//! - It listens on a free port of 127.0.0.1, takes one token that is made up at its start, and is gone when it is dropped.
//! - The answer follows from the request alone (how many replies its history holds), so a request that is sent again gets
//!   the same answer.
//! - Replies are streamed in small pieces with pauses, as a model's are.

mod http;
mod wire;

use std::{io, sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};
use uuid::Uuid;

use self::http::Request;

/// The alias that the server offers.
pub const ALIAS: &str = "scripted";
/// The pause between two pieces of a reply.
const PAUSE: Duration = Duration::from_millis(25);

/// One reply: what the model says, and its calls of tools with their arguments.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// What it says.
    pub text: &'static str,
    /// What it calls.
    pub calls: Vec<(&'static str, Value)>,
}

/// The server.
#[derive(Debug)]
pub struct Server {
    address: String,
    token: String,
    serving: JoinHandle<()>,
}

impl Server {
    /// Starts a server that takes the steps in order, one a reply, and repeats the last. To be called inside a runtime.
    ///
    /// # Errors
    /// No port of 127.0.0.1 can be had.
    pub async fn start(steps: Vec<Step>) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = format!("http://{}", listener.local_addr()?);
        let token = format!("sk-demo-{}", Uuid::now_v7().simple());
        let script = Arc::new(Script { bearer: format!("Bearer {token}"), steps });
        let serving = tokio::spawn(async move {
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => drop(tokio::spawn(serve(stream, Arc::clone(&script)))),
                    // out of descriptors, or a peer that is gone already: others may fare better
                    Err(_) => tokio::time::sleep(PAUSE).await,
                }
            }
        });
        Ok(Self { address, token, serving })
    }

    /// Its address, as `proxy.base_url` takes it.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The token that it takes.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

struct Script {
    bearer: String,
    steps: Vec<Step>,
}

impl Script {
    /// The step that comes after as many replies as the conversation holds.
    fn step(&self, messages: &Value) -> Option<&Step> {
        let replies =
            messages.as_array().into_iter().flatten().filter(|message| message["role"] == "assistant").count();
        self.steps.get(replies).or(self.steps.last())
    }
}

/// Answers the one request of a connection. A peer that goes away is no concern of ours.
async fn serve(mut stream: TcpStream, script: Arc<Script>) {
    if let Ok(request) = http::read(&mut stream).await {
        let _ = answer(&mut stream, &request, &script).await;
    }
}

async fn answer(stream: &mut TcpStream, request: &Request, script: &Script) -> io::Result<()> {
    if request.authorization.as_deref() != Some(script.bearer.as_str()) {
        return http::send(stream, 401, &refusal(401, "auth_error", "the demo takes its own token alone")).await;
    }
    let path = request.path.split('?').next().unwrap_or_default();
    match (request.method.as_str(), path) {
        ("GET", "/model/info") => http::send(stream, 200, &model_info()).await,
        ("GET", "/v1/models") => {
            http::send(stream, 200, &json!({"object": "list", "data": [{"id": ALIAS, "object": "model"}]})).await
        }
        ("POST", "/v1/chat/completions") => {
            let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
            let Some(step) = script.step(&body["messages"]).filter(|_| body["stream"] == true) else {
                return http::send(stream, 400, &refusal(400, "invalid_request_error", "the demo only streams")).await;
            };
            let mut out = http::Chunked::begin(stream, ALIAS).await?;
            for piece in wire::pieces(step, request.body.len()) {
                out.piece(&piece).await?;
                tokio::time::sleep(PAUSE).await;
            }
            out.end().await
        }
        _ => http::send(stream, 404, &json!({"detail": "Not Found"})).await,
    }
}

fn model_info() -> Value {
    json!({"data": [{
        "model_name": ALIAS,
        "litellm_params": {"model": "demo/scripted"},
        "model_info": {
            "id": "demo", "mode": "chat", "litellm_provider": "demo",
            "max_input_tokens": 100_000, "max_output_tokens": 4096,
            "supports_function_calling": true, "supports_tool_choice": false,
            "input_cost_per_token": 1e-6, "output_cost_per_token": 4e-6,
        },
    }]})
}

fn refusal(status: u16, kind: &str, message: &str) -> Value {
    json!({"error": {"message": message, "type": kind, "param": null, "code": status.to_string()}})
}
