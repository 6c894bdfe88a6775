//! The floor: the barest loop that does the same work. It keeps no log, commits nothing and checks nothing.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    path::Path,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

/// Bytes of a request from which on the older half is left out: what nisse takes for the tokens that a window of 200,000
/// leaves for input.
const VIEW: usize = 615_000;

/// Asks, does the one call of the reply, appends the result, asks again, until the reply gives up.
pub(crate) fn run(address: &str, directory: &Path) {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    let mut out = stream.try_clone().unwrap();
    let mut input = BufReader::new(stream);
    let mut messages = vec![json!({"role": "user", "content": "measure"})];
    loop {
        let body = json!({"model": "bench", "stream": true, "messages": messages}).to_string();
        let head = format!("POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", body.len());
        out.write_all((head + &body).as_bytes()).unwrap();
        let call = reply(&mut input);
        let name = call["function"]["name"].as_str().unwrap().to_owned();
        let arguments: Value = serde_json::from_str(call["function"]["arguments"].as_str().unwrap()).unwrap();
        let result = match name.as_str() {
            "run_command" => shell(directory, arguments["command"].as_str().unwrap()),
            "read_file" => std::fs::read_to_string(directory.join(arguments["path"].as_str().unwrap())).unwrap(),
            _ => return,
        };
        messages.push(json!({"role": "assistant", "tool_calls": [call]}));
        messages.push(json!({"role": "tool", "tool_call_id": call["id"], "content": result}));
        // as much in view as nisse keeps for a model of that window
        if body.len() > VIEW {
            let mut left = body.len();
            while left > VIEW / 2 {
                left = left.saturating_sub(messages.drain(1..3).map(|gone| gone.to_string().len()).sum());
            }
        }
    }
}

fn shell(directory: &Path, line: &str) -> String {
    let output = Command::new("bash").args(["-c", line]).current_dir(directory).stdin(Stdio::null()).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn reply(input: &mut impl BufRead) -> Value {
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        input.read_line(&mut line).unwrap();
    }
    line.clear();
    input.read_line(&mut line).unwrap();
    let mut body = vec![0; usize::from_str_radix(line.trim(), 16).unwrap()];
    input.read_exact(&mut body).unwrap();
    let mut end = [0; 7];
    input.read_exact(&mut end).unwrap();
    let body = String::from_utf8(body).unwrap();
    let data = body.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
    let chunk: Value = serde_json::from_str(data).unwrap();
    chunk["choices"][0]["delta"]["tool_calls"][0].clone()
}
