//! The client: one attempt per request, and the token in headers only.

use std::{
    collections::HashMap,
    fmt::Write as _,
    path::PathBuf,
    sync::{Mutex, PoisonError, RwLock},
    time::Duration,
};

use futures_util::StreamExt as _;
use reqwest::{
    RequestBuilder, Response,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue},
};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use tokio::time::{Instant, timeout, timeout_at};

use super::{
    Catalog, Error,
    address::Address,
    answered::answered_by,
    chat,
    connect::no_response,
    error::{cleaned, failure, from_response},
    header, json, messages,
    stream::{self, Assembly, Limits, unreadable},
};
use crate::{
    domain::{
        message::Reply,
        model::{Prices, Route},
        money::Money,
        upstream::{Reaction, Trouble},
    },
    ports::{
        BoxFuture,
        llm::{self, Deltas, Llm, Request},
    },
};

/// The time limit for connecting.
const CONNECT: Duration = Duration::from_secs(30);
/// The limits of time and size for reading an error's body.
const ERROR_BODY: (Duration, usize) = (Duration::from_secs(10), 256 << 10);

/// The connection settings of the proxy.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Its address, with or without a slash at its end, with or without `/v1`.
    pub address: String,
    /// The token, sent as a bearer.
    pub token: SecretString,
    /// How long the first content of a reply may take.
    pub first_byte: Duration,
    /// How long a reply may pause between two pieces of content.
    pub idle: Duration,
    /// A file with further certificate authorities in PEM form, trusted beside the system's.
    pub extra_ca: Option<PathBuf>,
    /// The HTTP proxy for the address, for error messages, as in `HTTP_PROXY=http://gate:3128`. The client itself reads it
    /// from the environment.
    pub through: Option<String>,
}

impl Settings {
    /// The settings for an address and a token: 300 s to the first content, 120 s between two, no further authority.
    #[must_use]
    pub fn new(address: impl Into<String>, token: SecretString) -> Self {
        Self {
            address: address.into(),
            token,
            first_byte: Duration::from_mins(5),
            idle: Duration::from_mins(2),
            extra_ca: None,
            through: None,
        }
    }
}

/// The proxy.
#[derive(Debug)]
pub struct Proxy {
    address: Address,
    token: SecretString,
    /// The token once more, as the native route wants it.
    api_key: HeaderValue,
    limits: Limits,
    through: Option<String>,
    http: reqwest::Client,
    /// From the last catalog.
    known: RwLock<Known>,
    /// The messages of the last request.
    written: Mutex<chat::Written>,
}

/// What the catalog tells of whoever answers.
#[derive(Debug, Default)]
struct Known {
    /// Backing models by the deployment's id.
    backings: HashMap<String, String>,
    /// Prices by alias.
    prices: HashMap<String, Prices>,
}

impl Proxy {
    /// A client for the proxy; nothing is sent yet.
    pub fn new(settings: Settings) -> Result<Self, Error> {
        let address = Address::new(&settings.address)?;
        let token = SecretString::from(settings.token.expose_secret().trim());
        let secret = |text: String| {
            let mut value = HeaderValue::try_from(text).map_err(|_| Error::Token)?;
            value.set_sensitive(true);
            Ok::<_, Error>(value)
        };
        if token.expose_secret().is_empty() {
            return Err(Error::Token);
        }
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, secret(format!("Bearer {}", token.expose_secret()))?);
        let api_key = secret(token.expose_secret().to_owned())?;

        // an error means that one is installed already, which is fine
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("nisse/", env!("CARGO_PKG_VERSION")))
            .default_headers(headers)
            .connect_timeout(CONNECT)
            .tcp_keepalive(Duration::from_secs(30))
            // a redirect would carry the token to wherever it points
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never());
        let loopback = address.is_loopback();
        if loopback {
            builder = builder.no_proxy();
            if !address.is_https() {
                // without encryption, no certificates are needed, and reading the system's takes milliseconds
                builder = builder.tls_certs_only([]);
            }
        }
        if let Some(path) = settings.extra_ca {
            let pem = std::fs::read(&path).map_err(|source| Error::CaFile { path: path.clone(), source })?;
            match reqwest::Certificate::from_pem_bundle(&pem) {
                Ok(authorities) if !authorities.is_empty() => builder = builder.tls_certs_merge(authorities),
                Ok(_) | Err(_) => return Err(Error::CaContent { path }),
            }
        }
        Ok(Self {
            address,
            token,
            api_key,
            limits: Limits { first_byte: settings.first_byte, idle: settings.idle },
            through: settings.through.filter(|_| !loopback),
            http: builder.build().map_err(|source| Error::Client { source })?,
            known: RwLock::default(),
            written: Mutex::default(),
        })
    }

    /// The token, to be masked.
    #[must_use]
    pub fn token(&self) -> &SecretString {
        &self.token
    }

    /// What the proxy offers to this key. Only the two lists are required; other requests may fail. `limit` is per
    /// answer.
    ///
    /// # Errors
    /// If neither list can be had: why not, from the one that every proxy has.
    pub async fn catalog(&self, within: Duration) -> Result<Catalog, llm::Error> {
        let with_fallbacks = |kind: &str| format!("/v1/models?include_metadata=true&fallback_type={kind}");
        let (general, context, policy) =
            (with_fallbacks("general"), with_fallbacks("context_window"), with_fallbacks("content_policy"));
        let (info, models, general, context, policy) = tokio::join!(
            self.get("/model/info", within),
            self.get("/v1/models", within),
            self.get(&general, within),
            self.get(&context, within),
            self.get(&policy, within)
        );
        let mut notes = Vec::new();
        let may_pass = |error: &&llm::Error| error.trouble.reaction() == Reaction::Retry;
        let outage = info.as_ref().err().filter(may_pass).cloned();
        let (info, models) = match (info, models) {
            (Err(_), Err(error)) => return Err(error),
            (info, models) => {
                let mut or_note = |path: &str, answer: Result<Value, llm::Error>| {
                    answer.unwrap_or_else(|error| {
                        notes.push(format!("could not read {path} ({error}); its information is missing"));
                        Value::Null
                    })
                };
                (or_note("/model/info", info), or_note("/v1/models", models))
            }
        };
        let mut catalog = Catalog::new(&info, &models);
        for answer in [general, context, policy].into_iter().flatten() {
            catalog.add_fallbacks(&answer);
        }
        catalog.notes.extend(notes);
        catalog.outage = outage;
        let prices = catalog.entries.iter().map(|entry| (entry.alias.clone(), entry.prices.clone())).collect();
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Known { backings: catalog.backings(), prices };
        Ok(catalog)
    }

    async fn get(&self, path: &str, within: Duration) -> Result<Value, llm::Error> {
        let url = self.address.at(path);
        let answer = timeout(within, async {
            let response = self.http.get(&url).send().await.map_err(|error| no_response(error, &url))?;
            let response = self.checked(response, &url).await?;
            let text = response.text().await.map_err(|error| no_response(error, &url))?;
            json::parse(&text).map_err(|_| unreadable(&text))
        });
        let answer = answer.await.unwrap_or_else(|_| {
            Err(failure(Trouble::Timeout, format!("{url}: no answer within {} s", within.as_secs())))
        });
        answer.map_err(|error| self.cleaned(error))
    }

    /// The response if its status is 2xx, else the error in its body.
    async fn checked(&self, response: Response, url: &str) -> Result<Response, llm::Error> {
        if response.status().is_success() {
            return Ok(response);
        }
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let mut body = Vec::new();
        let mut chunks = response.bytes_stream();
        // what has come by then tells enough
        let _ = timeout(ERROR_BODY.0, async {
            while let Some(Ok(chunk)) = chunks.next().await {
                body.extend_from_slice(&chunk);
                if body.len() > ERROR_BODY.1 {
                    break;
                }
            }
        })
        .await;
        Err(from_response(status, &headers, &String::from_utf8_lossy(&body), url))
    }

    async fn attempt(&self, request: &Request, deltas: &Deltas) -> Result<Reply, llm::Error> {
        let (path, body) = match request.model.route {
            Route::Normalized => {
                (chat::PATH, chat::body(request, &mut self.written.lock().unwrap_or_else(PoisonError::into_inner))?)
            }
            Route::Native => (messages::PATH, messages::body(request)?),
        };
        let url = self.address.at(path);
        let started = Instant::now();
        let response = self.send(request, &url, body, started).await?;
        let headers = response.headers().clone();
        let answered = answered_by(&headers, &request.model, |id| {
            self.known.read().unwrap_or_else(PoisonError::into_inner).backings.get(id).cloned()
        });
        if let Some(answered) = answered.as_ref().filter(|answered| answered.fallback && !request.fallbacks) {
            let message =
                format!("{} ({}) answered instead of {}", answered.alias, answered.backing, request.model.alias);
            return Err(failure(Trouble::FallbackRefused, message));
        }
        let mut reply = match request.model.route {
            Route::Normalized => self.read(response, chat::Reading::new(request, answered), started, deltas).await?,
            Route::Native => self.read(response, messages::Reading::new(request, answered), started, deltas).await?,
        };
        // a stream's headers leave before its cost is known and say 0 or nothing
        let told = header(&headers, "x-litellm-response-cost").and_then(|cost| cost.parse::<f64>().ok());
        reply.cost = reply.cost.or_else(|| told.filter(|cost| *cost > 0.0).and_then(Money::from_usd));
        if let Some(who) = reply.answered_by.as_mut().filter(|who| who.fallback) {
            // the task knows the prices of the model that it asked, and no other's
            let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
            who.prices = known.prices.get(&who.alias).cloned();
        }
        Ok(reply)
    }

    async fn send(&self, request: &Request, url: &str, body: String, started: Instant) -> Result<Response, llm::Error> {
        let call_id = HeaderValue::try_from(request.id.as_str())
            .map_err(|_| failure(Trouble::BadRequest, "the request's id cannot be sent as a header"))?;
        let post: RequestBuilder = self
            .http
            .post(url)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "text/event-stream")
            .header("x-litellm-call-id", call_id)
            .body(body);
        let post = match request.model.route {
            Route::Normalized => post,
            Route::Native => {
                post.header("x-api-key", self.api_key.clone()).header("anthropic-version", messages::VERSION)
            }
        };
        let limit = self.limits.first_byte;
        let sent = timeout_at(started + limit, post.send())
            .await
            .map_err(|_| failure(Trouble::Timeout, format!("{url}: no response for {} s", limit.as_secs_f64())))?;
        let response = sent.map_err(|error| no_response(error, url))?;
        self.checked(response, url).await
    }

    async fn read<A: Assembly>(
        &self,
        response: Response,
        assembly: A,
        started: Instant,
        deltas: &Deltas,
    ) -> Result<Reply, llm::Error> {
        stream::read(response.bytes_stream(), self.limits, started, assembly, deltas).await
    }

    fn cleaned(&self, mut error: llm::Error) -> llm::Error {
        if let (Trouble::Unreachable, Some(through)) = (error.trouble, &self.through) {
            let _ = write!(error.message, "; requests go through {through}, except to hosts in NO_PROXY");
        }
        cleaned(error, self.token.expose_secret())
    }
}

impl Llm for Proxy {
    fn ask<'a>(&'a self, request: &'a Request, deltas: &'a Deltas) -> BoxFuture<'a, Result<Reply, llm::Error>> {
        Box::pin(async move { self.attempt(request, deltas).await.map_err(|error| self.cleaned(error)) })
    }
}
