//! The catalog, read from recordings of both lists.

use nisse::{
    adapters::litellm::{Catalog, Instead, Override, PinError},
    domain::{
        model::{Prices, Route},
        money::Money,
        upstream::Trouble,
    },
};
use serde_json::{Value, json};

use super::replay::{Recording, Replay};

const LIMIT: std::time::Duration = std::time::Duration::from_mins(1);

fn recorded() -> Catalog {
    let mut catalog = Catalog::new(&Recording::json("info_model_info.json"), &Recording::json("info_v1_models.json"));
    catalog.add_fallbacks(&Recording::json("info_models_metadata.json"));
    catalog.add_fallbacks(&Recording::json("info_models_fallbacks_context_window.json"));
    catalog
}

#[test]
fn an_entry_says_what_the_proxy_says() {
    let catalog = recorded();
    let fast = catalog.find("local-fast").unwrap();
    assert_eq!(fast.backing.as_deref(), Some("openai/up-model"));
    assert_eq!((fast.provider.as_deref(), fast.route), (Some("openai"), Some(Route::Normalized)));
    assert_eq!((fast.max_input_tokens, fast.max_output_tokens), (Some(8192), Some(2048)));
    assert_eq!((fast.tools, fast.tool_choice, fast.parallel), (Some(true), Some(true), Some(true)));
    assert_eq!((fast.prices.input, fast.prices.output), (Some(Money(1_000_000)), Some(Money(2_000_000))));
    assert!(fast.notes.is_empty(), "{:?}", fast.notes);
    let claude = catalog.find("remote-architecture").unwrap();
    assert_eq!((claude.route, claude.max_input_tokens), (Some(Route::Native), Some(200_000)));
    assert_eq!(claude.prices.cache_read, Some(Money(300_000)));
    let unknown = catalog.find("unknown-limits").unwrap();
    assert_eq!((unknown.max_input_tokens, unknown.tools, unknown.tool_choice), (None, None, None));
    assert_eq!(unknown.prices, Prices::default());
}

#[test]
fn deployments_of_an_alias_give_the_least_of_them_and_a_note() {
    let catalog = recorded();
    let twins = catalog.find("twins").unwrap();
    assert_eq!(twins.deployments.len(), 2);
    assert_eq!((twins.max_input_tokens, twins.max_output_tokens), (Some(4096), Some(1024)));
    assert_eq!((twins.tools, twins.tool_choice), (None, None), "one of them does not say");
    assert_eq!(twins.notes.len(), 1);
    assert!(twins.notes[0].contains("window") && twins.notes[0].contains("abilities"), "{:?}", twins.notes);
    let mixed = catalog.find("twins-mixed").unwrap();
    assert_eq!((mixed.provider.as_deref(), mixed.route), (Some("openai+anthropic"), Some(Route::Normalized)));
    assert_eq!(mixed.max_input_tokens, Some(8192));
    assert_eq!(mixed.prices.input, None, "one of them has no price");
}

#[test]
fn providers_come_from_the_most_certain_source() {
    let catalog = Catalog::new(&Recording::json("misc_model_info.json"), &Value::Null);
    for (alias, provider) in [
        ("db-style", Some("openai")), // custom_llm_provider; the backing model has no prefix
        ("lemonade/up-model", Some("lemonade")), // litellm_provider
        ("wild-openai/up-model", Some("wild-openai")), // the prefix
        ("local-vllm", Some("hosted_vllm")),
    ] {
        assert_eq!(catalog.find(alias).unwrap().provider.as_deref(), provider, "{alias}");
    }
}

#[test]
fn fallbacks_are_listed_where_the_proxy_knows_them() {
    let catalog = recorded();
    assert_eq!(catalog.find("fb-claude").unwrap().fallbacks, ["remote-architecture"]);
    assert_eq!(catalog.find("fb-ctx").unwrap().fallbacks, ["remote-architecture"], "for a window too small");
    assert!(catalog.find("local-fast").unwrap().fallbacks.is_empty());
}

#[test]
fn either_list_alone_is_a_catalog_and_pseudo_models_are_none() {
    let listed = Catalog::new(&json!({"data": []}), &Recording::json("info_v1_models.json"));
    assert_eq!(listed.find("local-fast").unwrap().max_input_tokens, Some(8192));
    assert!(matches!(listed.pin("local-fast", 1000), Err(PinError::NoProvider { .. })));
    let described = Catalog::new(&Recording::json("info_model_info.json"), &Value::Null);
    assert!(described.pin("local-fast", 1000).is_ok());
    let pseudo = json!({"data": [{"id": "all-team-models"}, {"id": "no-default-models"}, {"id": "real"}, {"id": 7}]});
    let odd = json!({"data": [{"model_name": "all-proxy-models", "litellm_params": {}}, "nonsense", null]});
    let catalog = Catalog::new(&odd, &pseudo);
    assert_eq!(catalog.entries.iter().map(|entry| entry.alias.as_str()).collect::<Vec<_>>(), ["real"]);
}

#[test]
fn ids_lead_to_backing_models_unless_several_share_one() {
    let backings = recorded().backings();
    let id = "96c8b78655ebeb3defa8c8f04dbd22c3af5031be758616e5f475249f9d1b3a2e";
    assert_eq!(backings.get(id).map(String::as_str), Some("openai/up-model"));
    let haiku = recorded().find("anthropic/claude-haiku-4-5-20251001").unwrap().deployments[0].id.clone().unwrap();
    assert_eq!(backings.get(&haiku), None, "all models of a wildcard have one id");
}

#[test]
fn a_model_is_pinned_or_the_error_says_what_to_declare() {
    let mut catalog = recorded();
    let pinned = catalog.pin("local-fast", 100_000).unwrap();
    assert_eq!((pinned.window, pinned.max_output, pinned.tool_choice), (8192, 2048, true));
    assert_eq!(catalog.pin("local-fast", 500).unwrap().max_output, 500);
    assert!(!catalog.pin("local-coder", 500).unwrap().tool_choice, "not declared");
    let unknown = catalog.pin("local-fats", 1).unwrap_err();
    assert!(
        matches!(&unknown, PinError::Unknown { instead: Instead::Near(near), .. } if near[0] == "local-fast"),
        "{unknown:?}"
    );
    assert!(
        matches!(catalog.pin("zzzzzz", 1), Err(PinError::Unknown { instead: Instead::Any(all), .. }) if all.iter().any(|alias| alias == "local-fast"))
    );
    let told = catalog.pin("unknown-limits", 1).unwrap_err().to_string();
    assert!(told.contains("max_input_tokens") && told.contains("[models.\"unknown-limits\"]"), "{told}");
    let declared = Override { max_input_tokens: Some(16_000), tool_choice: Some(true), ..Override::default() };
    catalog.apply("unknown-limits", &declared);
    let pinned = catalog.pin("unknown-limits", 4096).unwrap();
    assert_eq!((pinned.window, pinned.max_output, pinned.tool_choice), (16_000, 4096, true));
}

#[test]
fn overrides_decide_and_add_what_is_not_listed() {
    let mut catalog = recorded();
    catalog.apply("local-fast", &Override { provider: Some("anthropic".to_owned()), ..Override::default() });
    assert_eq!(catalog.pin("local-fast", 1).unwrap().route, Route::Native);
    let both =
        Override { provider: Some("anthropic".to_owned()), route: Some(Route::Normalized), ..Override::default() };
    catalog.apply("local-fast", &both);
    assert_eq!(catalog.pin("local-fast", 1).unwrap().route, Route::Normalized);
    assert!(matches!(catalog.pin("hidden-fast", 1), Err(PinError::Unknown { .. })));
    let hidden = Override { route: Some(Route::Normalized), max_input_tokens: Some(1000), ..Override::default() };
    catalog.apply("hidden-fast", &hidden);
    assert_eq!(catalog.pin("hidden-fast", 1).unwrap().window, 1000);
}

#[test]
fn a_wildcard_covers_what_is_under_it() {
    let info = json!({"data": [
        {"model_name": "openai/*", "litellm_params": {"model": "openai/*"}, "model_info": {"id": "w"}}
    ]});
    let mut catalog = Catalog::new(&info, &json!({"data": [{"id": "openai/*"}, {"id": "*"}]}));
    assert!(matches!(catalog.pin("openai/new", 1), Err(PinError::NoWindow { .. })));
    assert!(matches!(catalog.pin("other/new", 1), Err(PinError::Unknown { .. })));
    catalog.apply("openai/new", &Override { max_input_tokens: Some(1000), ..Override::default() });
    let pinned = catalog.pin("openai/new", 1).unwrap();
    assert_eq!((pinned.alias.as_str(), pinned.provider.as_str()), ("openai/new", "openai"));
}

#[tokio::test]
async fn a_proxy_that_answers_neither_list_is_an_error_of_its_class() {
    let replay = Replay::start().await;
    for (file, wanted) in [
        ("auth_bad_key_model_info.json", Trouble::KeyRefused),
        ("auth_missing_key_pip_without_prisma.txt", Trouble::Overloaded),
    ] {
        replay.answers(&Recording::read(file));
        assert_eq!(replay.proxy().catalog(LIMIT).await.unwrap_err().trouble, wanted, "{file}");
    }
    replay.answers(&Recording::read("key_models_modelinfo.json"));
    assert!(replay.proxy().catalog(LIMIT).await.unwrap().find("local-fast").is_some());
}
