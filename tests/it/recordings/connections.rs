//! What stands between us and the proxy: addresses, certificates, redirects.

use std::{
    io::{Read as _, Write as _},
    path::PathBuf,
    sync::Arc,
};

use nisse::{
    adapters::litellm::{Error, Proxy, Settings},
    domain::{model::Route, upstream::Trouble},
    ports::llm::{self, Llm as _},
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};
use tokio::sync::mpsc::unbounded_channel;

use super::replay::{Replay, TOKEN, request};

async fn failure(proxy: &Proxy) -> llm::Error {
    let (deltas, _shown) = unbounded_channel();
    proxy.ask(&request("any", Route::Normalized), &deltas).await.unwrap_err()
}

#[tokio::test]
async fn redirects_are_not_followed_and_named() {
    let replay = Replay::start().await;
    replay.answers_bytes("HTTP/1.1 301 gone\r\nlocation: https://elsewhere/\r\ncontent-length: 0\r\n\r\n");
    let error = failure(&replay.proxy()).await;
    assert_eq!(error.trouble, Trouble::BadAddress);
    assert!(error.message.contains("https://elsewhere/"), "{error}");
}

#[tokio::test]
async fn nobody_there_is_unreachable() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let error = failure(&Proxy::new(Settings::new(&address, TOKEN.into())).unwrap()).await;
    assert_eq!(error.trouble, Trouble::Unreachable, "{error}");
    assert!(error.message.contains(&address), "{error}");
}

#[tokio::test]
async fn a_connection_that_ends_in_the_head_is_unreachable() {
    let replay = Replay::start().await;
    replay.answers_bytes("HTTP/1.1 200");
    assert_eq!(failure(&replay.proxy()).await.trouble, Trouble::Unreachable);
}

#[tokio::test]
async fn a_connection_that_ends_in_the_body_is_a_cut() {
    let replay = Replay::start().await;
    let chunk = "data: {\"choices\":[{\"delta\":{\"content\":\"Hello\"}}]}\n\n";
    replay.answers_bytes(format!("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{chunk}"));
    assert_eq!(failure(&replay.proxy()).await.trouble, Trouble::Cut);
}

#[tokio::test]
async fn a_server_without_tls_behind_https_is_a_wrong_address() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("https://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let _ = connection.read(&mut [0; 4096]);
            let _ = connection.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n");
        }
    });
    let error = failure(&Proxy::new(Settings::new(address, TOKEN.into())).unwrap()).await;
    assert_eq!(error.trouble, Trouble::BadAddress, "{error}");
}

fn certificates() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/certificates")
}

/// A TLS server whose certificate only `authority.pem` vouches for; it answers 404 to everything.
fn tls_server() -> String {
    let chain = vec![CertificateDer::from_pem_file(certificates().join("server.pem")).unwrap()];
    let key = PrivateKeyDer::from_pem_file(certificates().join("server.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let config = Arc::new(config);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("https://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let tls = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = rustls::StreamOwned::new(tls, connection.unwrap());
            // an untrusted certificate ends it here
            let mut request = [0; 4096];
            if stream.read(&mut request).is_ok() {
                let body = r#"{"error":{"message":"none","type":"not_found_error"}}"#;
                let _ = write!(stream, "HTTP/1.1 404 no\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            }
        }
    });
    address
}

#[tokio::test]
async fn a_certificate_is_trusted_through_the_named_authority_alone() {
    let mut settings = Settings::new(tls_server(), TOKEN.into());
    let error = failure(&Proxy::new(settings.clone()).unwrap()).await;
    assert_eq!(error.trouble, Trouble::BadCertificate, "{error}");
    settings.extra_ca = Some(certificates().join("authority.pem"));
    let error = failure(&Proxy::new(settings).unwrap()).await;
    assert_eq!(error.trouble, Trouble::ModelUnknown, "the server was heard: {error}");
}

#[test]
fn wrong_settings_are_refused_before_anything_is_sent() {
    let with_token = |token: &str| Proxy::new(Settings::new("http://p", token.to_owned().into()));
    for token in ["", " \n", "sk-a\nb"] {
        assert!(matches!(with_token(token), Err(Error::Token)), "{token:?}");
    }
    assert!(with_token(" sk-a\n").is_ok(), "a file's last line ending is no part of the token");
    let mut settings = Settings::new("http://p", TOKEN.into());
    settings.extra_ca = Some(certificates().join("none.pem"));
    assert!(matches!(Proxy::new(settings.clone()), Err(Error::CaFile { .. })));
    settings.extra_ca = Some(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"));
    assert!(matches!(Proxy::new(settings), Err(Error::CaContent { .. })));
}
