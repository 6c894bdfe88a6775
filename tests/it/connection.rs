//! The way to the proxy: certificates, proxies of the network, spellings of the address, and a token that is never told.

use std::{
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::PathBuf,
    sync::{Arc, Mutex},
    thread,
};

use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};

use crate::support::{Run, Step, TestEnvironment, Wire};

fn certificates(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/certificates").join(name);
    path.to_str().unwrap().to_owned()
}

fn environment() -> TestEnvironment {
    TestEnvironment::new(Wire::Chat, Vec::<Step>::new())
}

/// An HTTPS server with a catalog of one model, whose certificate only `authority.pem` vouches for; its port.
fn https() -> u16 {
    let chain = vec![CertificateDer::from_pem_file(certificates("server.pem")).unwrap()];
    let key = PrivateKeyDer::from_pem_file(certificates("server.key")).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for connection in listener.incoming() {
            let config = Arc::clone(&config);
            thread::spawn(move || {
                let connection = connection.unwrap();
                let mut stream = rustls::StreamOwned::new(rustls::ServerConnection::new(config).unwrap(), connection);
                // an untrusted certificate ends it here
                if stream.read(&mut [0; 8192]).is_ok_and(|read| read > 0) {
                    let body = r#"{"data":[{"id":"behind-tls"}]}"#;
                    let length = body.len();
                    let head = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
                    let _ = stream.write_all((head + body).as_bytes());
                    stream.conn.send_close_notify();
                    let _ = stream.flush();
                }
            });
        }
    });
    port
}

/// A network proxy that tunnels where it is asked to, and keeps what it was asked.
fn tunnel() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&asked);
    thread::spawn(move || {
        for connection in listener.incoming() {
            let keep = Arc::clone(&keep);
            thread::spawn(move || tunnel_one(connection.unwrap(), &keep));
        }
    });
    (address, asked)
}

fn tunnel_one(mut near: TcpStream, keep: &Mutex<Vec<String>>) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && near.read(&mut byte).is_ok_and(|read| read > 0) {
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    keep.lock().unwrap().push(head.clone());
    let target = head.strip_prefix("CONNECT ").and_then(|rest| rest.split(' ').next()).unwrap();
    let mut far = TcpStream::connect(target).unwrap();
    near.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
    let (mut back_from, mut back_to) = (far.try_clone().unwrap(), near.try_clone().unwrap());
    let back = thread::spawn(move || {
        let _ = std::io::copy(&mut back_from, &mut back_to);
        let _ = back_to.shutdown(std::net::Shutdown::Write);
    });
    let _ = std::io::copy(&mut near, &mut far);
    let _ = far.shutdown(std::net::Shutdown::Write);
    let _ = back.join();
}

fn models(env: &TestEnvironment, variables: &[(&str, &str)]) -> Run {
    for (name, value) in variables {
        env.set(name, value);
    }
    env.run(&["models"])
}

#[test]
fn a_private_authority_is_trusted_when_it_is_named_or_the_systems_store_holds_it() {
    let address = format!("https://127.0.0.1:{}", https());
    let untrusted = models(&environment(), &[("NISSE_LLM_BASE_URL", &address)]);
    assert!(untrusted.exits(2).stderr.contains("proxy.ca_file"), "{}", untrusted.report());
    for variable in ["NISSE_LLM_CA_FILE", "SSL_CERT_FILE"] {
        let trusted =
            models(&environment(), &[("NISSE_LLM_BASE_URL", &address), (variable, &certificates("authority.pem"))]);
        assert!(trusted.exits(0).stdout.contains("behind-tls"), "{variable}\n{}", trusted.report());
    }
}

#[test]
fn the_networks_proxy_is_used_and_left_out_where_the_environment_says_so() {
    let address = format!("https://127.0.0.1:{}", https());
    let (through, asked) = tunnel();
    let authority = certificates("authority.pem");
    let base = [
        ("NISSE_LLM_BASE_URL", address.as_str()),
        ("NISSE_LLM_CA_FILE", authority.as_str()),
        ("HTTPS_PROXY", through.as_str()),
    ];
    let run = models(&environment(), &base);
    assert!(run.exits(0).stdout.contains("behind-tls"), "{}", run.report());
    let before = asked.lock().unwrap().clone();
    assert!(!before.is_empty(), "nothing went through the proxy");
    assert!(before.iter().all(|head| head.starts_with("CONNECT 127.0.0.1:") && !head.contains("sk-")), "{before:?}");

    let around = models(&environment(), &[&base[..], &[("NO_PROXY", "127.0.0.1")]].concat());
    assert!(around.exits(0).stdout.contains("behind-tls"), "{}", around.report());
    assert_eq!(asked.lock().unwrap().len(), before.len(), "NO_PROXY was not heeded");
}

#[test]
fn every_spelling_of_the_address_works() {
    for spelling in ["", "/", "/v1", "/v1/"] {
        let steps = vec![Step::call("write_file", serde_json::json!({"path": "b", "content": "b"})), Step::hand_back()];
        for wire in Wire::BOTH {
            let env = TestEnvironment::new(wire, steps.clone());
            env.set("NISSE_LLM_BASE_URL", &format!("{}{spelling}", env.server.url()));
            env.delegate(&[], "Make b.").ends(0, "handback");
        }
    }
}

#[test]
fn an_address_that_leads_nowhere_is_named() {
    let env = environment();
    let wrong = format!("{}/elsewhere", env.server.url());
    env.set("NISSE_LLM_BASE_URL", &wrong);
    let run = env.run(&["models"]);
    assert!(run.exits(2).stderr.contains(&format!("404 at {wrong}/v1/models")), "{}", run.report());
}

#[test]
fn the_token_is_told_nowhere_even_where_the_proxy_echoes_it() {
    const TOKEN: &str = "sk-house-7f3a9c51e0b24d68";
    for wire in Wire::BOTH {
        let echo = format!("litellm.BadRequestError: Received API Key = {TOKEN}, Bearer {TOKEN}");
        let steps = vec![
            Step::error(503, &[], "internal_server_error", &echo),
            Step::call("run_command", serde_json::json!({"command": "env | sort"})),
            Step::error(400, &[], "invalid_request_error", &echo),
        ];
        let env = TestEnvironment::new(wire, steps);
        let run = env.delegate(&["-v"], "Make b.txt.");
        run.ends(3, "failed");
        let logged = env.run(&["log", "--json"]);
        let doctor = env.run(&["doctor", "--json"]);
        for told in [&run, &logged, &doctor] {
            assert!(!told.stdout.contains(TOKEN) && !told.stderr.contains(TOKEN), "{}", told.report());
        }
    }
}
