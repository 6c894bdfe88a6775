//! As much of HTTP/1.1 as one client needs that is known: one request a connection, an answer whole or in chunks.

use std::io;

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// The most bytes of a request's head, and of its body.
const MOST: (usize, usize) = (64 << 10, 64 << 20);

/// A request.
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) authorization: Option<String>,
    pub(super) body: Vec<u8>,
}

/// Reads the request of a connection.
pub(super) async fn read(stream: &mut TcpStream) -> io::Result<Request> {
    let wrong = || io::Error::from(io::ErrorKind::InvalidData);
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = memchr::memmem::find(&bytes, b"\r\n\r\n") {
            break at;
        }
        if bytes.len() > MOST.0 || stream.read_buf(&mut bytes).await? == 0 {
            return Err(wrong());
        }
    };
    let head = String::from_utf8_lossy(&bytes[..head_end]).into_owned();
    let mut lines = head.split("\r\n");
    let mut first = lines.next().unwrap_or_default().split(' ');
    let (method, path) = (first.next().unwrap_or_default().to_owned(), first.next().unwrap_or_default().to_owned());
    let headers: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(':')).collect();
    let header = |wanted: &str| {
        headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.trim().to_owned())
    };
    let length: usize = header("content-length").map_or(Ok(0), |length| length.parse()).map_err(|_| wrong())?;
    if length > MOST.1 {
        return Err(wrong());
    }
    let mut body = bytes.split_off(head_end + 4);
    while body.len() < length {
        if stream.read_buf(&mut body).await? == 0 {
            return Err(wrong());
        }
    }
    Ok(Request { method, path, authorization: header("authorization"), body })
}

/// Sends a whole JSON answer.
pub(super) async fn send(stream: &mut TcpStream, status: u16, body: &Value) -> io::Result<()> {
    let body = body.to_string();
    let reason = match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        _ => "Not Found",
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} {reason}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await?;
    stream.shutdown().await
}

/// An event stream that goes out piece by piece.
pub(super) struct Chunked<'a>(&'a mut TcpStream);

impl<'a> Chunked<'a> {
    /// Sends the head.
    pub(super) async fn begin(stream: &'a mut TcpStream, alias: &str) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\
             x-litellm-model-id: demo\r\nx-litellm-model-group: {alias}\r\nx-litellm-attempted-fallbacks: 0\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await?;
        Ok(Self(stream))
    }

    /// Sends a piece.
    pub(super) async fn piece(&mut self, piece: &str) -> io::Result<()> {
        self.0.write_all(format!("{:x}\r\n{piece}\r\n", piece.len()).as_bytes()).await
    }

    /// Ends the stream.
    pub(super) async fn end(self) -> io::Result<()> {
        self.0.write_all(b"0\r\n\r\n").await?;
        self.0.shutdown().await
    }
}
