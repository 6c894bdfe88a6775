//! A proxy that does not say what it offers: an outage is told as one, and nobody who only looks waits for long.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    thread,
};

use crate::support::{TestEnvironment, Wire};

/// A proxy that answers each question with what `answer` makes of its path; none: nothing comes.
fn proxy(answer: impl Fn(&str) -> Option<(u16, String)> + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        let mut silent = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            let path = lines.next().unwrap_or_default().split(' ').nth(1).unwrap_or_default().to_owned();
            lines.find(String::is_empty);
            match answer(&path) {
                Some((status, body)) => {
                    let head = "content-type: application/json\r\nconnection: close";
                    let _ =
                        write!(stream, "HTTP/1.1 {status} x\r\n{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
                }
                None => silent.push(stream),
            }
        }
    });
    address
}

#[test]
fn a_catalog_that_is_down_is_an_outage_and_no_matter_of_settings() {
    let half = proxy(|path| {
        Some(if path.contains("model/info") {
            (503, r#"{"error": {"message": "down", "type": "internal"}}"#.to_owned())
        } else {
            (200, r#"{"object": "list", "data": [{"id": "case-model", "object": "model"}]}"#.to_owned())
        })
    });
    let env = TestEnvironment::new(Wire::Chat, Vec::new());
    env.set("NISSE_LLM_BASE_URL", &half);
    let run = env.delegate(&[], "Make b.txt.");
    let error = run.exits(1).json().pop().unwrap();
    assert_eq!(error["error"]["kind"], "proxy_unreachable", "{}", run.report());
    assert!(!run.stderr.contains("declare") && run.stderr.contains("down"), "{}", run.report());
    let doctor = env.run(&["doctor"]);
    assert!(doctor.exits(1).stdout.contains("down") && !doctor.stdout.contains("provider"), "{}", doctor.report());
    // what the settings say is enough
    env.configure("[models.\"case-model\"]\nprovider = \"openai\"\nmax_input_tokens = 32000\n");
    let run = env.delegate(&[], "Make b.txt.");
    assert_ne!(run.json().pop().unwrap()["error"]["kind"], "bad_role", "{}", run.report());
    assert!(run.stdout.contains("task_started"), "{}", run.report());
}

#[test]
fn who_only_looks_does_not_wait_for_long() {
    let env = TestEnvironment::new(Wire::Chat, Vec::new());
    env.set("NISSE_LLM_BASE_URL", &proxy(|_| None));
    for command in ["models", "doctor"] {
        let run = env.run(&[command]);
        run.exits(1);
        let told = format!("{}{}", run.stdout, run.stderr);
        assert!(run.stderr.contains("waiting for the proxy"), "{}", run.report());
        assert!(told.contains("no answer within 10 s"), "{}", run.report());
    }
}
