//! A scripted proxy on a port of its own: the catalog and both routes in the recorded shapes.
//!
//! Two aliases, [`Wire::alias`]: `case-model` behind the normalized route and `case-native` behind the native one.
//! Every request is checked ([`super::inspect`]) and kept.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::watch};

use super::{
    history::Asked,
    inspect::{self, Memory},
    script::{Answer, Piece, Script, Step},
    wire_chat, wire_messages,
};

/// The token that the server takes.
pub(crate) const TOKEN: &str = "sk-house-7f3a9c51e0b24d68";
/// Input window of both aliases, in tokens.
const WINDOW: u64 = 100_000;
/// Output limit of both aliases, in tokens.
pub(super) const MAX_OUTPUT: u64 = 4096;

/// The route of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wire {
    /// `/v1/chat/completions`, the normalized route.
    Chat,
    /// `/v1/messages`, the native route.
    Messages,
}

impl Wire {
    /// Both.
    pub(crate) const BOTH: [Self; 2] = [Self::Chat, Self::Messages];

    /// The alias that is spoken to by this route.
    pub(crate) fn alias(self) -> &'static str {
        match self {
            Self::Chat => "case-model",
            Self::Messages => "case-native",
        }
    }

    fn provider(self) -> &'static str {
        match self {
            Self::Chat => "openai",
            Self::Messages => "anthropic",
        }
    }
}

/// A server; it goes down when it is dropped.
pub(crate) struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
}

/// A switch that takes the server off the network and back, also from a step's hook.
#[derive(Clone)]
pub(crate) struct Switch {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    script: Script,
    memory: Mutex<Memory>,
    asked: Mutex<Vec<Asked>>,
    violations: Mutex<Vec<String>>,
    up: watch::Sender<bool>,
    unpriced: AtomicBool,
}

impl Server {
    /// A server that is up.
    pub(crate) fn new(script: impl Into<Script>) -> Self {
        let shared = Arc::new(Shared {
            script: script.into(),
            memory: Mutex::default(),
            asked: Mutex::default(),
            violations: Mutex::default(),
            up: watch::Sender::new(false),
            unpriced: AtomicBool::new(false),
        });
        let address = serve(&shared, SocketAddr::from(([127, 0, 0, 1], 0)));
        Self { address, shared }
    }

    /// The proxy's address, as a person would configure it.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Every request for a reply so far, oldest first, refused ones too.
    pub(crate) fn requests(&self) -> Vec<Asked> {
        self.shared.asked.lock().expect("no test thread dies here").clone()
    }

    /// Says no prices from now on.
    pub(crate) fn without_prices(&self) {
        self.shared.unpriced.store(true, Ordering::SeqCst);
    }

    /// Lets requests leave `disable_fallbacks` out.
    pub(crate) fn takes_fallbacks(&self) {
        self.shared.memory.lock().expect("no test thread dies here").fallbacks = true;
    }

    /// Makes it remember that a model sent this thinking before: texts and signatures.
    pub(crate) fn sent_thinking(&self, wire: Wire, thoughts: &[(&str, &str)]) {
        let mut memory = self.shared.memory.lock().expect("no test thread dies here");
        let thought =
            |(text, signature): &(&str, &str)| (wire.alias().to_owned(), (*text).to_owned(), (*signature).to_owned());
        memory.thinking.extend(thoughts.iter().map(thought));
    }

    /// Takes the wording of a task that an earlier version began.
    pub(crate) fn takes_old_wording(&self) {
        self.shared.memory.lock().expect("no test thread dies here").old_wording = true;
    }

    /// What it remembers of the requests so far.
    pub(super) fn memory(&self) -> Memory {
        self.shared.memory.lock().expect("no test thread dies here").clone()
    }

    /// Makes it remember that and no more, as where a world is brought back.
    pub(super) fn remember(&self, memory: Memory) {
        *self.shared.memory.lock().expect("no test thread dies here") = memory;
    }

    /// What was wrong with the requests so far.
    pub(crate) fn violations(&self) -> Vec<String> {
        self.shared.violations.lock().expect("no test thread dies here").clone()
    }

    /// Takes note of what was wrong, once: for tests of the checks themselves.
    pub(crate) fn take_violations(&self) -> Vec<String> {
        std::mem::take(&mut *self.shared.violations.lock().expect("no test thread dies here"))
    }

    /// Its switch.
    pub(crate) fn switch(&self) -> Switch {
        Switch { address: self.address, shared: Arc::clone(&self.shared) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.switch().down();
    }
}

impl Switch {
    /// Closes the port and every connection.
    pub(crate) fn down(&self) {
        self.shared.up.send_replace(false);
    }

    /// Opens the same port again.
    pub(crate) fn up(&self) {
        serve(&self.shared, self.address);
    }
}

/// Serves from a thread with a runtime of its own until the switch goes down; then every connection breaks.
fn serve(shared: &Arc<Shared>, address: SocketAddr) -> SocketAddr {
    let (ready, bound) = std::sync::mpsc::channel();
    let mut up = shared.up.subscribe();
    let state = Arc::clone(shared);
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        runtime.block_on(async {
            let listener = bind(address).await;
            state.up.send_replace(true);
            ready.send(listener.local_addr().expect("an address")).expect("the test waits for it");
            let routes = Router::new()
                .route("/model/info", get(model_info))
                .route("/v1/model/info", get(model_info))
                .route("/v1/models", get(models))
                .route("/v1/chat/completions", post(chat))
                .route("/v1/messages", post(messages))
                .fallback(async || (StatusCode::NOT_FOUND, json_body(&json!({"detail": "Not Found"}))))
                .layer(axum::extract::DefaultBodyLimit::max(64 << 20))
                .with_state(state);
            tokio::select! {
                served = axum::serve(listener, routes) => served.expect("the scripted server serves"),
                _ = up.wait_for(|up| !up) => {}
            }
        });
        runtime.shutdown_background();
    });
    bound.recv_timeout(Duration::from_mins(1)).expect("the scripted server starts")
}

/// A listener; patient, since the one before it on the same port may not be gone yet.
async fn bind(address: SocketAddr) -> TcpListener {
    for _ in 0..500 {
        match TcpListener::bind(address).await {
            Ok(listener) => return listener,
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
    panic!("no port for the scripted server at {address}")
}

async fn model_info(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    if let Some(refused) = key_refused(&headers) {
        return refused;
    }
    let price = |usd: f64| if shared.unpriced.load(Ordering::SeqCst) { Value::Null } else { json!(usd) };
    let entries: Vec<Value> = Wire::BOTH
        .iter()
        .map(|wire| {
            let (alias, provider) = (wire.alias(), wire.provider());
            json!({
                "model_name": alias,
                "litellm_params": {"model": backing(*wire), "use_in_pass_through": false},
                "model_info": {
                    "id": format!("id-{alias}"), "db_model": false, "key": backing(*wire), "litellm_provider": provider,
                    "mode": "chat", "max_tokens": MAX_OUTPUT, "max_input_tokens": WINDOW, "max_output_tokens": MAX_OUTPUT,
                    "input_cost_per_token": price(1e-06), "output_cost_per_token": price(2e-06), "cache_read_input_token_cost": null,
                    "supports_function_calling": true, "supports_tool_choice": null, "supports_vision": null,
                },
            })
        })
        .collect();
    json_body(&json!({"data": entries}))
}

async fn models(headers: HeaderMap) -> Response {
    if let Some(refused) = key_refused(&headers) {
        return refused;
    }
    let entries: Vec<Value> = Wire::BOTH
        .iter()
        .map(|wire| {
            json!({
                "id": wire.alias(), "object": "model", "created": 1_677_610_602, "owned_by": "openai", "mode": "chat",
                "max_input_tokens": WINDOW, "max_output_tokens": MAX_OUTPUT, "metadata": {"fallbacks": []},
            })
        })
        .collect();
    json_body(&json!({"data": entries, "object": "list"}))
}

async fn chat(State(shared): State<Arc<Shared>>, headers: HeaderMap, bytes: Bytes) -> Response {
    answer(shared, Wire::Chat, headers, bytes).await
}

async fn messages(State(shared): State<Arc<Shared>>, headers: HeaderMap, bytes: Bytes) -> Response {
    answer(shared, Wire::Messages, headers, bytes).await
}

async fn answer(shared: Arc<Shared>, wire: Wire, headers: HeaderMap, bytes: Bytes) -> Response {
    if let Some(refused) = key_refused(&headers) {
        return refused;
    }
    let (asked, nth) = match accept(&shared, wire, &headers, &bytes) {
        Ok(accepted) => accepted,
        Err(broken) => {
            let message = broken.join("; ");
            shared.violations.lock().expect("no test thread dies here").extend(broken);
            let error = json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}});
            return (StatusCode::BAD_REQUEST, json_body(&error)).into_response();
        }
    };
    let Some(step) = shared.script.step(&asked, nth) else {
        let message = format!("the script has no answer for request {nth}");
        shared.violations.lock().expect("no test thread dies here").push(message.clone());
        let error = json!({"error": {"message": message, "type": "invalid_request_error", "code": "400"}});
        return (StatusCode::BAD_REQUEST, json_body(&error)).into_response();
    };
    let Step { answer, delay, headers: more, before, instead } = step;
    if let Some(hook) = before {
        tokio::task::spawn_blocking(move || hook()).await.expect("a step's hook");
    }
    tokio::time::sleep(delay).await;
    let alias = asked.body["model"].as_str().unwrap_or_default();
    let mut response = match answer {
        Answer::Reply(reply) => {
            if let Some((text, signature)) = &reply.thinking {
                // what another model thought must never come back
                let thinker = instead.map_or(alias, |(_, backing)| backing);
                let thinking = (thinker.to_owned(), text.clone(), signature.clone());
                shared.memory.lock().expect("no test thread dies here").thinking.insert(thinking);
            }
            event_stream(match wire {
                Wire::Chat => wire_chat::stream(&reply, alias, nth),
                Wire::Messages => wire_messages::stream(&reply, alias, nth),
            })
            .map_headers(wire, &headers)
        }
        Answer::Stream(pieces) => event_stream(pieces).map_headers(wire, &headers),
        Answer::Plain { status, headers: more, content_type, body } => {
            let mut response = Response::builder().status(status).header(header::CONTENT_TYPE, content_type);
            for (name, value) in more {
                response = response.header(name, value);
            }
            response.body(Body::from(body)).expect("a plain answer").map_headers(wire, &headers)
        }
    };
    for (name, value) in more {
        let name = header::HeaderName::try_from(name).expect("a header's name");
        response.headers_mut().insert(name, value.parse().expect("a header's value"));
    }
    if let Some((alias, backing)) = instead {
        let told = [
            ("x-litellm-model-group", alias),
            ("x-litellm-model-name", backing),
            ("x-litellm-model-id", "id-of-another"),
            ("x-litellm-attempted-fallbacks", "1"),
        ];
        for (name, value) in told {
            response.headers_mut().insert(name, value.parse().expect("a header's value"));
        }
    }
    response
}

/// Reads and checks a request: it with its number, or what is wrong with it.
fn accept(shared: &Shared, wire: Wire, headers: &HeaderMap, bytes: &[u8]) -> Result<(Asked, usize), Vec<String>> {
    let asked = inspect::read(wire, bytes).map_err(|unreadable| vec![unreadable])?;
    let nth = {
        let mut all = shared.asked.lock().expect("no test thread dies here");
        all.push(asked.clone());
        all.len() - 1
    };
    let mut memory = shared.memory.lock().expect("no test thread dies here");
    let found = inspect::violations(&asked, headers, &mut memory);
    if asked.body["model"] != wire.alias() {
        return Err([found, vec![format!("{} was asked on {wire:?}", asked.body["model"])]].concat());
    }
    if found.is_empty() {
        Ok((asked, nth))
    } else {
        Err(found.into_iter().map(|one| format!("request {nth}: {one}")).collect())
    }
}

/// The proxy's answer to a wrong key.
fn key_refused(headers: &HeaderMap) -> Option<Response> {
    let key = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    if key == Some(&format!("Bearer {TOKEN}")) {
        return None;
    }
    let message = "Authentication Error, Invalid proxy server token passed.";
    let error = json!({"error": {"message": message, "type": "token_not_found_in_db", "param": "key", "code": "401"}});
    Some((StatusCode::UNAUTHORIZED, json_body(&error)).into_response())
}

fn backing(wire: Wire) -> String {
    format!("{}/{}-backing", wire.provider(), wire.alias())
}

fn json_body(value: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

fn event_stream(pieces: Vec<Piece>) -> Response {
    let stream = futures_util::stream::unfold(pieces.into_iter(), async |mut pieces| {
        loop {
            match pieces.next()? {
                Piece::Bytes(bytes) => return Some((Ok(Bytes::from(bytes)), pieces)),
                Piece::Pause(pause) => tokio::time::sleep(pause).await,
                Piece::Cut => {
                    // what was sent before must be on its way first
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    return Some((Err(std::io::Error::other("the script breaks the connection here")), pieces));
                }
            }
        }
    });
    let head = [(header::CONTENT_TYPE, "text/event-stream; charset=utf-8")];
    (head, Body::from_stream(stream)).into_response()
}

/// The headers that the proxy adds to an answer.
trait ProxyHeaders {
    fn map_headers(self, wire: Wire, request: &HeaderMap) -> Self;
}

impl ProxyHeaders for Response {
    fn map_headers(mut self, wire: Wire, request: &HeaderMap) -> Self {
        let mut set = |name: &'static str, value: &str| {
            self.headers_mut().insert(name, value.parse().expect("a header's value"));
        };
        if let Some(id) = request.get("x-litellm-call-id").and_then(|id| id.to_str().ok()) {
            set("x-litellm-call-id", id);
        }
        set("x-litellm-version", "1.106.12");
        set("x-litellm-model-group", wire.alias());
        set("x-litellm-model-name", &backing(wire));
        set("x-litellm-model-id", &format!("id-{}", wire.alias()));
        set("x-litellm-attempted-retries", "0");
        set("x-litellm-attempted-fallbacks", "0");
        self
    }
}
