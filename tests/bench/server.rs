//! A loopback server that answers by a script, counts what it gets and notes when.

use std::{
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant, SystemTime},
};

use serde_json::{Value, json};

/// One reply: a call.
#[derive(Clone)]
pub(crate) struct Reply {
    name: &'static str,
    arguments: String,
}

impl Reply {
    pub(crate) fn call(name: &'static str, arguments: &Value) -> Self {
        Self { name, arguments: arguments.to_string() }
    }

    pub(crate) fn give_up() -> Self {
        let note = json!({"changed": "nothing", "now_true": "measured", "next": "nothing", "succeeded": false});
        Self::call("hand_back", &note)
    }
}

/// When a request was there whole, when its reply had been sent, and how large it was.
#[derive(Clone, Copy)]
pub(crate) struct Turn {
    pub(crate) asked: Instant,
    pub(crate) answered: Instant,
    /// From then to the next whole second of the machine's clock.
    pub(crate) left_of_second: Duration,
    pub(crate) bytes: usize,
}

type Turns = Arc<Mutex<Vec<Turn>>>;
type Watch = Arc<Mutex<Option<Box<dyn FnMut(usize) + Send>>>>;

pub(crate) struct Server {
    port: u16,
    turns: Turns,
    watch: Watch,
}

impl Server {
    pub(crate) fn start(script: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (turns, watch, script) = (Turns::default(), Watch::default(), Arc::new(script));
        let (kept, kept_watch) = (Arc::clone(&turns), Arc::clone(&watch));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (turns, watch, script) = (Arc::clone(&kept), Arc::clone(&kept_watch), Arc::clone(&script));
                thread::spawn(move || serve(stream, &script, &turns, &watch));
            }
        });
        Self { port, turns, watch }
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Called with the number of each request, before it is answered.
    pub(crate) fn watch(&self, watch: impl FnMut(usize) + Send + 'static) {
        *self.watch.lock().unwrap() = Some(Box::new(watch));
    }

    pub(crate) fn finish(self) -> Vec<Turn> {
        std::mem::take(&mut *self.turns.lock().unwrap())
    }
}

fn serve(stream: TcpStream, script: &[Reply], turns: &Turns, watch: &Watch) {
    stream.set_nodelay(true).unwrap();
    let mut out = stream.try_clone().unwrap();
    let mut input = BufReader::new(stream);
    while let Some((line, body)) = request(&mut input) {
        if line.starts_with("GET") {
            let answer = catalog(&line).to_string();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                answer.len()
            );
            out.write_all((head + &answer).as_bytes()).unwrap();
            continue;
        }
        let asked = Instant::now();
        let number = turns.lock().unwrap().len();
        if let Some(watch) = watch.lock().unwrap().as_mut() {
            watch(number);
        }
        let reply = script.get(number).cloned().unwrap_or_else(Reply::give_up);
        if out.write_all(&sse(number, &reply)).is_err() {
            return;
        }
        let since = SystemTime::UNIX_EPOCH.elapsed().unwrap();
        let left_of_second = Duration::from_nanos(1_000_000_000 - u64::from(since.subsec_nanos()));
        turns.lock().unwrap().push(Turn { asked, answered: Instant::now(), left_of_second, bytes: body.len() });
    }
}

fn request(input: &mut impl BufRead) -> Option<(String, Vec<u8>)> {
    let mut first = String::new();
    if input.read_line(&mut first).ok()? == 0 {
        return None;
    }
    let mut length = 0;
    loop {
        let mut line = String::new();
        input.read_line(&mut line).ok()?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    input.read_exact(&mut body).ok()?;
    Some((first, body))
}

fn catalog(line: &str) -> Value {
    if line.contains("/model/info") {
        return json!({"data": [{
            "model_name": "bench",
            "litellm_params": {"model": "openai/bench", "custom_llm_provider": "openai"},
            "model_info": {
                "id": "1", "litellm_provider": "openai", "mode": "chat", "max_input_tokens": 200_000,
                "max_output_tokens": 4096, "input_cost_per_token": 1e-9, "output_cost_per_token": 1e-9,
                "supports_function_calling": true,
            },
        }]});
    }
    json!({"object": "list", "data": [{"id": "bench", "object": "model"}]})
}

/// The reply's stream, chunked, in one write.
fn sse(number: usize, reply: &Reply) -> Vec<u8> {
    let chunk = |delta: Value, finish: Value| {
        let data = json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "bench",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
        format!("data: {data}\n\n")
    };
    let call = json!([{"index": 0, "id": format!("call_{number}"), "type": "function",
        "function": {"name": reply.name, "arguments": reply.arguments}}]);
    let usage = json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "bench", "choices": [],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 20, "total_tokens": 1020}});
    let body = chunk(json!({"role": "assistant", "tool_calls": call}), Value::Null)
        + &chunk(json!({}), json!("tool_calls"))
        + &format!("data: {usage}\n\ndata: [DONE]\n\n");
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    format!("{head}{:x}\r\n{body}\r\n0\r\n\r\n", body.len()).into_bytes()
}
