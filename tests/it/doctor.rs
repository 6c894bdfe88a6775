//! `doctor` and `models` against a proxy that answers as the real one does.

use std::{collections::BTreeMap, ffi::OsString};

use axum::{Json, Router, http::StatusCode, routing::get};
use nisse::{
    cli::{
        error,
        render::{self, Width, models::Detail},
    },
    commands::{
        doctor::{self, Report, Verdict},
        models,
        settings::{Directories, Environment, Flags, Settings},
    },
};
use serde_json::{Value, json};

/// A proxy with these deployments, on a free port.
async fn proxy(status: StatusCode, info: Value) -> String {
    let names: Vec<Value> = info["data"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|d| json!({"id": d["model_name"], "metadata": {"fallbacks": d["falls_back_to"]}}))
        .collect();
    let models = json!({ "data": names });
    let answer = move |body: Value| get(move || async move { (status, Json(body)) });
    let router = Router::new().route("/model/info", answer(info)).route("/v1/models", answer(models));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

fn catalog() -> Value {
    let full = json!({"max_input_tokens": 100_000, "max_output_tokens": 4096, "supports_function_calling": true,
        "supports_tool_choice": true, "supports_reasoning": true,
        "cache_read_input_token_cost": 1e-7, "cache_creation_input_token_cost": 1.25e-6, "input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6});
    json!({"data": [
        {"model_name": "strong", "litellm_params": {"model": "anthropic/claude-x"}, "model_info": full},
        {"model_name": "weak", "litellm_params": {"model": "openai/tiny"},
         "model_info": {"max_input_tokens": 8192, "supports_function_calling": false}},
        {"model_name": "vague", "litellm_params": {"model": "openai/vague"}, "model_info": {}},
    ]})
}

fn models_text(report: &models::Report, detail: Detail, columns: Option<usize>) -> String {
    anstream::adapter::strip_str(&render::models::text(report, detail, Width::of(columns))).to_string()
}

struct Place(tempfile::TempDir);

impl Place {
    /// An empty repository with a home beside it.
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        git2::Repository::init(temp.path().join("repository")).unwrap();
        std::fs::create_dir(temp.path().join("home")).unwrap();
        Self(temp)
    }

    fn repository(&self) -> std::path::PathBuf {
        self.0.path().join("repository")
    }

    fn environment(&self, variables: &[(&str, &str)]) -> Environment {
        let path = Environment::from_process().get("PATH").unwrap().to_owned();
        let mut all: BTreeMap<OsString, OsString> = variables.iter().map(|(k, v)| (k.into(), v.into())).collect();
        all.extend([("PATH".into(), path), ("HOME".into(), self.0.path().join("home").into())]);
        let directories = Directories { state: Some(self.0.path().join("state")), ..Directories::default() };
        Environment::new(all, directories)
    }

    async fn doctor(&self, variables: &[(&str, &str)]) -> Report {
        doctor::doctor(&self.environment(variables), &Flags::default(), &self.repository(), false).await
    }

    fn settings(&self, variables: &[(&str, &str)]) -> Settings {
        Settings::load(&self.environment(variables), &Flags::default(), None).unwrap()
    }
}

fn found<'r>(report: &'r Report, subject: &str) -> Vec<(Verdict, &'r str)> {
    report.checks.iter().filter(|c| c.subject == subject).map(|c| (c.verdict, c.found.as_str())).collect()
}

#[tokio::test]
async fn a_sound_place_is_good_and_nothing_is_made() {
    let (place, address) = (Place::new(), proxy(StatusCode::OK, catalog()).await);
    let variables =
        [("NISSE_LLM_BASE_URL", address.as_str()), ("NISSE_LLM_TOKEN", "sk-token"), ("NISSE_ROLE_DELEGATE", "strong")];
    let report = place.doctor(&variables).await;
    let bad: Vec<_> = report.checks.iter().filter(|check| check.verdict != Verdict::Good).collect();
    assert!(bad.is_empty(), "{bad:?}");
    assert_eq!(report.exit(), 0);
    let subjects: Vec<_> = report.checks.iter().map(|check| check.subject).collect();
    assert_eq!(subjects, ["settings", "git", "repository", "state directory", "log", "proxy", "delegate"]);
    let role = report.settings.iter().find(|setting| setting.key == "roles.delegate").unwrap();
    assert_eq!((role.value.as_deref(), role.source.as_str()), (Some("strong"), "NISSE_ROLE_DELEGATE"));
    assert!(!place.0.path().join("state").exists());
    let (text, json) = (render::doctor::text(&report, true, Width::of(None)), serde_json::to_string(&report).unwrap());
    let text = anstream::adapter::strip_str(&text).to_string();
    assert!(
        text.contains("✓ delegate        strong (anthropic/claude-x of anthropic), native, window 100000"),
        "{text}"
    );
    for shown in [text, json] {
        assert!(!shown.contains("sk-token"), "{shown}");
    }
}

#[tokio::test]
async fn every_bad_role_is_told_at_once_with_what_is_near() {
    let (place, address) = (Place::new(), proxy(StatusCode::OK, catalog()).await);
    let base = [("NISSE_LLM_BASE_URL", address.as_str()), ("NISSE_LLM_TOKEN", "sk-token")];
    let report = place
        .doctor(&[&base[..], &[("NISSE_ROLE_DELEGATE", "stronk"), ("NISSE_ROLE_PLANNER", "vague")]].concat())
        .await;
    let (delegate, planner) = (found(&report, "delegate"), found(&report, "planner"));
    assert!(
        matches!(delegate[..], [(Verdict::BadConfiguration, text)] if text.contains("similar names: strong")),
        "{delegate:?}"
    );
    assert!(matches!(planner[..], [(Verdict::Warning, text)] if text.contains("the context window of")), "{planner:?}");
    assert_eq!(report.exit(), 2);
    assert_eq!(found(&place.doctor(&base).await, "delegate")[0].0, Verdict::BadConfiguration);
}

#[tokio::test]
async fn what_a_weak_model_lacks_is_a_warning() {
    let (place, address) = (Place::new(), proxy(StatusCode::OK, catalog()).await);
    let base = [("NISSE_LLM_BASE_URL", address.as_str()), ("NISSE_LLM_TOKEN", "t"), ("NISSE_ROLE_DELEGATE", "weak")];
    let report = place.doctor(&base).await;
    let told: Vec<_> = found(&report, "delegate").iter().map(|(_, text)| *text).collect();
    let warned = |words: &str| told.iter().any(|text| text.contains(words));
    assert!(warned("output limit of 16384") && warned("without tool support"), "{told:?}");
    // nothing could be done about it
    assert!(!warned("normalized route"), "{told:?}");
    assert_eq!(report.exit(), 0);
    // what holds for two roles is told once
    let report = place.doctor(&[&base[..], &[("NISSE_ROLE_PLANNER", "weak")]].concat()).await;
    let ceilings = report.checks.iter().filter(|check| check.found.contains("output limit of 16384")).count();
    assert_eq!(ceilings, 1, "{report:?}");
    // a cap on what cannot be counted is not a warning
    let capped = place.doctor(&[&base[..], &[("NISSE_DELEGATE_MAX_COST", "1")]].concat()).await;
    assert_eq!(capped.exit(), 2);
}

#[tokio::test]
async fn a_model_of_anthropics_that_is_declared_to_be_anothers_is_a_warning() {
    let mut catalog = catalog();
    catalog["data"][0]["litellm_params"]["model"] = json!("openai/claude-x");
    let (place, address) = (Place::new(), proxy(StatusCode::OK, catalog).await);
    let base = [("NISSE_LLM_BASE_URL", address.as_str()), ("NISSE_LLM_TOKEN", "t"), ("NISSE_ROLE_DELEGATE", "strong")];
    let report = place.doctor(&base).await;
    assert!(found(&report, "delegate").iter().any(|(_, text)| text.contains("normalized route")), "{report:?}");
}

#[tokio::test]
async fn every_variable_is_counted_and_a_settings_file_below_the_root_is_not_read() {
    let (place, address) = (Place::new(), proxy(StatusCode::OK, catalog()).await);
    let base = [("NISSE_LLM_BASE_URL", address.as_str()), ("NISSE_LLM_TOKEN", "t"), ("NISSE_ROLE_DELEGATE", "strong")];
    let report = place.doctor(&base).await;
    let settings = found(&report, "settings");
    assert!(
        matches!(settings[..], [(Verdict::Good, text)] if text.ends_with(", 3 from NISSE_* variables")),
        "{settings:?}"
    );
    let root = place.repository();
    let below = root.join("a/b");
    std::fs::create_dir_all(&below).unwrap();
    std::fs::write(root.join("a/nisse.toml"), "[check]\n").unwrap();
    let unread = async |directory: &std::path::Path| {
        let report = doctor::doctor(&place.environment(&base), &Flags::default(), directory, false).await;
        found(&report, "settings").iter().any(|(_, text)| text.contains("a/nisse.toml is ignored"))
    };
    assert!(unread(&below).await && !unread(&root).await);
    // the one at the root is
    std::fs::rename(root.join("a/nisse.toml"), root.join("nisse.toml")).unwrap();
    assert!(!unread(&below).await);
}

#[tokio::test]
async fn a_proxy_that_is_down_is_told_from_a_key_that_is_refused() {
    let place = Place::new();
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let down = format!("http://{free}");
    let refusal = json!({"error": {"message": "Authentication Error, Invalid proxy server token passed", "type": "auth_error", "code": "401"}});
    let refusing = proxy(StatusCode::UNAUTHORIZED, refusal).await;
    let unset = place.doctor(&[]).await;
    assert_eq!((found(&unset, "proxy").len(), found(&unset, "delegate").len()), (1, 1), "{unset:?}");
    for (address, verdict, exit, kind) in [
        (down.as_str(), Verdict::BadEnvironment, 1, "proxy_unreachable"),
        (refusing.as_str(), Verdict::BadConfiguration, 2, "key_refused"),
        ("http://127.0.0.1:notaport", Verdict::BadConfiguration, 2, "proxy_configuration"),
    ] {
        let variables =
            [("NISSE_LLM_BASE_URL", address), ("NISSE_LLM_TOKEN", "sk-token"), ("NISSE_ROLE_DELEGATE", "strong")];
        let report = place.doctor(&variables).await;
        assert_eq!((found(&report, "proxy")[0].0, report.exit()), (verdict, exit), "{report:?}");
        let error =
            models::models(&place.settings(&variables), &place.environment(&variables), None).await.unwrap_err();
        let told = error::report(&error);
        assert_eq!((told.kind, told.exit), (kind, exit), "{told:?}");
        assert!(told.lines().len() <= 3);
    }
}

#[tokio::test]
async fn wrong_settings_and_no_repository_are_told_together() {
    let place = Place::new();
    let environment = place.environment(&[("NISSE_MAX_OUTPUT_TOKENS", "x"), ("NISSE_ROLE_DELGATE", "y")]);
    let report = doctor::doctor(&environment, &Flags::default(), &place.0.path().join("home"), false).await;
    assert_eq!(found(&report, "settings").len(), 2);
    assert_eq!(found(&report, "repository")[0].0, Verdict::BadEnvironment);
    assert_eq!(report.exit(), 2);
    assert!(report.settings.is_empty());
}

#[tokio::test]
async fn variables_of_somebody_elses_and_a_token_too_short_to_be_masked_are_told() {
    let (place, address) = (Place::new(), proxy(StatusCode::OK, catalog()).await);
    let variables = [
        ("NISSE_LLM_BASE_URL", address.as_str()),
        ("NISSE_LLM_TOKEN", "sk-12"),
        ("NISSE_ROLE_DELEGATE", "strong"),
        // as Kubernetes sets them for a service of that name
        ("NISSE_PORT", "tcp://10.0.0.7:80"),
        ("NISSE_SERVICE_HOST", "10.0.0.7"),
        ("NISSE_VERSION", "1.2"),
    ];
    let report = place.doctor(&variables).await;
    assert_eq!(report.exit(), 0, "{report:?}");
    let warnings: Vec<_> = report.checks.iter().filter(|check| check.verdict == Verdict::Warning).collect();
    let told: Vec<_> = warnings.iter().map(|check| (check.subject, check.found.split(' ').next().unwrap())).collect();
    let names = ["NISSE_PORT", "NISSE_SERVICE_HOST", "NISSE_VERSION"].map(|name| ("settings", name));
    assert_eq!(told, [&names[..], &[("proxy", "the")]].concat(), "{warnings:?}");
    assert!(warnings[3].found.contains("too short to be masked"), "{warnings:?}");
    let long_enough = [&variables[..], &[("NISSE_LLM_TOKEN", "sk-123")]].concat();
    assert_eq!(found(&place.doctor(&long_enough).await, "proxy").len(), 1);
}

#[tokio::test]
async fn models_shows_what_the_proxy_says_and_nothing_else() {
    let (place, address) = (Place::new(), proxy(StatusCode::OK, catalog()).await);
    let variables = [
        ("NISSE_LLM_BASE_URL", address.as_str()),
        ("NISSE_LLM_TOKEN", "t"),
        ("NISSE_ROLE_DELEGATE", "strong"),
        ("NISSE_ROLE_EXECUTOR", "weka"),
    ];
    let report = models::models(&place.settings(&variables), &place.environment(&variables), None).await.unwrap();
    let every = Detail { all: true, columns: true };
    let text = models_text(&report, every, None).replace(&address, "PROXY");
    insta::assert_snapshot!(text);
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!((&json["v"], &json["type"]), (&json!(1), &json!("models")));
    assert_eq!(json["models"][0]["roles"], json!(["delegate"]));
    assert_eq!(json["models"][2]["max_input_tokens"], Value::Null);
    assert_eq!(json["missing"][0]["near"], json!(["weak"]));
}

#[tokio::test]
async fn models_are_those_that_could_do_a_task_and_a_filter_picks() {
    let mut catalog = catalog();
    catalog["data"].as_array_mut().unwrap().push(json!({"model_name": "vectors",
        "litellm_params": {"model": "openai/text-embedding-3"}, "model_info": {"mode": "embedding"}}));
    let (place, address) = (Place::new(), proxy(StatusCode::OK, catalog).await);
    let variables =
        [("NISSE_LLM_BASE_URL", address.as_str()), ("NISSE_LLM_TOKEN", "t"), ("NISSE_ROLE_DELEGATE", "vague")];
    let (settings, environment) = (place.settings(&variables), place.environment(&variables));
    let told = async |filter, all| {
        let report = models::models(&settings, &environment, filter).await.unwrap();
        models_text(&report, Detail { all, columns: false }, Some(80))
    };
    let text = told(None, false).await;
    let aliases: Vec<&str> =
        text.lines().skip(1).map_while(|line| line.split(' ').next().filter(|a| !a.is_empty())).collect();
    assert_eq!(aliases, ["vague", "strong"], "roles first, and nothing without tools:\n{text}");
    assert!(text.contains("100k    4k      $1/2  yes") && text.contains("2 more models without tools"), "{text}");
    let all = told(None, true).await;
    assert!(all.contains("\nweak ") && all.contains("\nvectors ") && !all.contains("more models"), "{all}");
    let picked = told(Some("CLAUDE"), false).await;
    assert!(picked.contains("strong") && !picked.contains("vague"), "{picked}");
    assert!(told(Some("none such"), false).await.contains("no model with \"none such\" in its name"));
    // no header over nothing, and the way to what is hidden
    assert_eq!(told(Some("vectors"), false).await, "… 1 more model without tools: nisse models vectors --all\n");
}

#[tokio::test]
async fn a_fallback_of_the_proxys_is_warned_of_with_what_the_settings_make_of_it() {
    let mut catalog = catalog();
    catalog["data"][0]["falls_back_to"] = json!(["weak"]);
    let (place, address) = (Place::new(), proxy(StatusCode::OK, catalog).await);
    let base = [("NISSE_LLM_BASE_URL", address.as_str()), ("NISSE_LLM_TOKEN", "t"), ("NISSE_ROLE_DELEGATE", "strong")];
    for (fallback, advice) in [("refuse", "refuses fallbacks"), ("allow", "may go there")] {
        let report = place.doctor(&[&base[..], &[("NISSE_DELEGATE_FALLBACK", fallback)]].concat()).await;
        let warning =
            report.checks.iter().find(|check| check.found.contains("falls back from strong to weak")).unwrap();
        assert_eq!(warning.verdict, Verdict::Warning);
        assert!(warning.advice.as_ref().unwrap().contains(advice), "{warning:?}");
        assert_eq!(report.exit(), 0);
    }
    let variables = [&base[..], &[("NISSE_DELEGATE_FALLBACK", "allow")]].concat();
    let report = models::models(&place.settings(&variables), &place.environment(&variables), None).await.unwrap();
    assert!(
        models_text(&report, Detail { all: false, columns: false }, None)
            .contains("strong: the proxy falls back to weak")
    );
}
