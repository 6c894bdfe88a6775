//! A server that answers like a recording, and remembers what it was asked.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
};

use nisse::{
    adapters::litellm::{Proxy, Settings},
    domain::{
        model::{PinnedModel, Prices, Route},
        reasoning::Reasoning,
        role::{OfferedTool, ToolName},
    },
    ports::llm::{Message, Request},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

/// One recorded exchange.
pub(super) struct Recording {
    pub(super) name: String,
    /// Method and path.
    pub(super) asked: String,
    /// The `model` of the request.
    pub(super) alias: Option<String>,
    /// Status line and headers, as they are on the wire.
    head: String,
    /// The body, as it is on the wire.
    pub(super) body: String,
}

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/recordings/litellm")
}

impl Recording {
    pub(super) fn all() -> Vec<Self> {
        let mut paths: Vec<PathBuf> = directory().read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths.iter().map(|path| Self::read(path.file_name().unwrap().to_str().unwrap())).collect()
    }

    /// By its file name.
    pub(super) fn read(file: &str) -> Self {
        let text = std::fs::read_to_string(directory().join(file)).unwrap();
        let (top, body) = text.split_once("\n\n").unwrap();
        let (notes, head): (Vec<&str>, Vec<&str>) = top.lines().partition(|line| line.starts_with("# "));
        let request = notes.iter().find_map(|line| line.strip_prefix("# request: ")).unwrap();
        let asked: Vec<&str> = request.splitn(3, ' ').collect();
        let sent: Option<Value> = asked.get(2).and_then(|body| serde_json::from_str(body).ok());
        Self {
            name: file.split('.').next().unwrap().to_owned(),
            asked: format!("{} {}", asked[0], asked[1]),
            alias: sent.and_then(|body| body.get("model")?.as_str().map(str::to_owned)),
            head: head.join("\r\n"),
            body: body.to_owned(),
        }
    }

    pub(super) fn json(file: &str) -> Value {
        serde_json::from_str(&Self::read(file).body).unwrap()
    }

    /// The route whose reply this is, if it is one.
    pub(super) fn route(&self) -> Option<Route> {
        match self.asked.split_once(' ')? {
            ("POST", path) if path.ends_with("/chat/completions") || path == "/v1/nope" => Some(Route::Normalized),
            ("POST", path) if path.ends_with("/messages") => Some(Route::Native),
            _ => None,
        }
    }

    fn response(&self) -> Vec<u8> {
        let length = self.body.len();
        format!("{}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{}", self.head, self.body).into_bytes()
    }
}

/// A server on this machine.
pub(super) struct Replay {
    pub(super) address: String,
    answer: Arc<Mutex<Vec<u8>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Replay {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (answer, asked) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(Vec::new())));
        let (to_send, to_keep) = (Arc::clone(&answer), Arc::clone(&asked));
        tokio::spawn(async move {
            loop {
                let (mut connection, _) = listener.accept().await.unwrap();
                let request = read_request(&mut connection).await;
                to_keep.lock().unwrap().push(request);
                let response = to_send.lock().unwrap().clone();
                connection.write_all(&response).await.unwrap();
                connection.shutdown().await.ok();
            }
        });
        Self { address, answer, asked }
    }

    pub(super) fn answers(&self, recording: &Recording) {
        self.answers_bytes(recording.response());
    }

    pub(super) fn answers_bytes(&self, bytes: impl Into<Vec<u8>>) {
        *self.answer.lock().unwrap() = bytes.into();
    }

    /// The requests so far, head and body as they came.
    pub(super) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    pub(super) fn proxy(&self) -> Proxy {
        Proxy::new(Settings::new(&self.address, TOKEN.into())).unwrap()
    }
}

pub(super) const TOKEN: &str = "sk-the-token-of-this-test";

async fn read_request(connection: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return text;
            }
        }
        if connection.read_buf(&mut bytes).await.unwrap() == 0 {
            return text;
        }
    }
}

/// A small request for an alias.
pub(super) fn request(alias: &str, route: Route) -> Request {
    Request {
        id: "request-1".to_owned(),
        turn: 1,
        model: PinnedModel {
            alias: alias.to_owned(),
            backing: "pinned/backing".to_owned(),
            provider: "openai".to_owned(),
            route,
            window: 8192,
            max_output: 1024,
            tool_choice: true,
            reasoning: Reasoning::Off,
            prices: Prices::default(),
        },
        system: "You are a coding agent.".to_owned(),
        tools: vec![OfferedTool {
            name: ToolName::ReadFile,
            description: "Reads a file".to_owned(),
            parameters: json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}),
        }],
        messages: vec![Arc::new(Message::User("Say hello.".to_owned()))],
        max_output: 1024,
        reasoning: Reasoning::Off,
        require_call: false,
        fallbacks: true,
        vendor_ids: Vec::new(),
    }
}
