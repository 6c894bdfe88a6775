//! Every recording of a real proxy that bears on a client, replayed over a socket and read as a task would read it.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test's own failure")]

mod catalog;
mod connections;
mod replay;

use std::{collections::BTreeMap, time::Duration};

use nisse::{
    domain::{
        message::{Part, Reply, Stop},
        model::{Route, Usage},
        money::Money,
        upstream::Trouble,
    },
    ports::llm::{Delta, Error, Llm as _},
};
use replay::{Recording, Replay, TOKEN, request};
use tokio::sync::mpsc::unbounded_channel;

/// What each recording is read as, where the role takes fallbacks.
const READ_AS: [(&str, &str); 19] = [
    (
        "end",
        "auth_xapikey_chat by_model_id chat_alias_group chat_err_stream_eofmid chat_nodone_stream chat_nousage \
         chat_nousage_stream chat_ok chat_ok_engines_path chat_ok_first chat_ok_nov1 chat_ok_stream \
         chat_ok_stream_nousageopt chat_reason chat_reason_stream chat_thinktag chat_wild_anthropic chat_wild_openai \
         def_claude_after def_pair_after_429 def_pair_after_429_msg def_pair_after_429_noretry \
         def_pair_after_429_stream def_pair_after_500 def_solo_after_400 def_solo_after_403 def_solo_after_422 \
         def_solo_after_429 def_solo_after_500 def_solo_after_503 def_solo_after_ctx def_solo_after_rst0 \
         defaultfb_bad defaultfb_bad2 deployment_budget_0 direct_backing_model_prefixed fb_claude_chat \
         fb_claude_chat_stream fb_claude_msg fb_claude_msg_stream fb_claude_to_local_chat \
         fb_claude_to_local_chat_stream fb_claude_to_local_msg fb_claude_to_local_msg_stream fb_ctx_chat \
         fb_ctx_chat_stream fb_ctx_msg fb_ctx_msg_stream fb_openai_chat fb_openai_chat_stream fb_openai_msg \
         fb_openai_msg_stream hidden_alias hist_badargs_openai hist_ids_anthropic_via_chat hist_ids_messages \
         hist_ids_openai hist_orphan_tool_anthropic_via_chat hist_thinking_anthropic_via_chat hist_thinking_openai \
         key_accessgroup_use key_budget key_budget_headers key_budget_zero_cost_model key_modelbudget_0 key_plain \
         key_rpm_0 key_small_maxtokens1_0 key_small_maxtokens1_1 key_small_maxtokens1_2 key_smallbudget_0 \
         key_teammodels_denied key_tpm_0 misc_assistant_last misc_big_chunks_ping misc_client_headers_forwarded \
         misc_control_params_forwarded misc_control_params_forwarded_msg misc_dbstyle misc_drop_params \
         misc_drop_params_parallel_vllm misc_gzip misc_msg_openai_via_chat_stream_eofmid misc_pass_client_key \
         misc_pass_use_in_pass_through misc_precheck_ctx_twins misc_two_user model_rpm_0 msg_emptyc \
         msg_interleaved_beta_body msg_no_version_header msg_ok msg_ok_first msg_pause msg_rthink_stream msg_xapikey \
         param_callid param_coder_default_temp param_max_completion param_parallel_true param_response_format \
         param_strict param_tool_history_no_tools param_toolchoice_named param_toolchoice_none \
         param_unknown_anthropic param_unknown_openai param_unsupported_dropped_by_client pass_alias pass_xapikey \
         provider_budget_0 proxy_max_budget_nodb retries_flaky rpm_limited_0 rpm_limited_1 rpm_limited_2 \
         rpm_limited_msg team_budget twin_half_bad_1 twin_half_bad_2 twins_0 twins_1 twins_2 x_chat_anth_ctxstop \
         x_chat_anth_emptyc x_chat_anth_err_stream_eofmid x_chat_anth_ok x_chat_anth_pause x_chat_anth_rthink \
         x_chat_anth_think_effort x_chat_anth_think_native x_chat_think_nohist x_chat_think_toolchoice_required \
         x_msg_openai_hist x_msg_openai_ok x_msg_vllm_ok",
    ),
    (
        "1 call",
        "chat_toolbad chat_toolbad_stream chat_toolempty chat_toolempty_stream chat_toolnoid chat_toolnoid_stream \
         msg_thinktool msg_thinktool_stream msg_toolbad_stream msg_toolempty pass_vendor pass_vendor_stream \
         x_chat_anth_thinktool x_chat_anth_thinktool_stream x_chat_anth_toolbad_stream x_chat_anth_toolempty \
         x_chat_anth_toolempty_stream x_msg_openai_stream x_msg_openai_tool",
    ),
    (
        "2 calls",
        "chat_tool chat_tool_stream chat_toolstop chat_vllm_tool misc_msg_openai_via_chat msg_any \
         param_toolchoice_required_no_support_flag param_toolchoice_required_unknown x_msg_vllm_tool_stream",
    ),
    (
        "truncated",
        "chat_length msg_ctxstop msg_length msg_lengthtool_stream x_chat_anth_length x_chat_anth_lengthtool_stream \
         x_msg_openai_length",
    ),
    ("declined", "chat_cf chat_refusal msg_refusal x_chat_anth_refusal"),
    (
        "cut",
        "chat_err_stream_garbage chat_err_stream_rstmid chat_err_stream_sseerr chat_err_stream_tooleof \
         chat_err_stream_toolrst chat_silence_ping chat_timeout_midstream msg_err_stream_eofmid msg_err_stream_rstmid \
         msg_err_stream_sseerr msg_silence_ping msg_timeout_midstream pass_err_stream_rstmid pass_err_stream_sseerr \
         x_chat_anth_err_stream_rstmid x_chat_anth_err_stream_sseerr x_msg_vllm_err_rstmid",
    ),
    (
        "overloaded",
        "chat_empty chat_err_500 chat_err_502html chat_err_503 chat_err_stream_500 chat_err_stream_sseerr0 \
         chat_nochoices chat_nojson chat_stream_timeout_hdr chat_timeout chat_timeout_client_header \
         chat_timeout_stream client_disable_fallbacks client_disable_fallbacks_msg client_fallbacks_param \
         client_num_retries0 client_num_retries_header0 def_claude_529 def_pair_500 def_pairbad_0 def_pairbad_1 \
         def_pairbad_2 def_pairbad_3 def_pairbad_4 def_solo_500 def_solo_503 defaultfb_bad2_disabled \
         defaultfb_bad_disabled err_callid_echo fb_dead_end_chat fb_dead_end_chat_stream fb_dead_end_msg \
         fb_dead_end_msg_stream key_plain_default_retries_500 key_plain_disable_fallbacks key_plain_num_retries \
         msg_client_timeout_hdr msg_err_500 msg_err_503 msg_err_529 msg_err_nojson msg_err_rst0 \
         msg_err_stream_529 msg_err_stream_rst0 msg_err_stream_sseerr0 msg_refused msg_timeout msg_timeout_stream \
         pass_err_529 pass_rst0 retries_500 retries_500_stream twin_half_bad_0 x_chat_anth_err_500 \
         x_chat_anth_err_529 x_chat_anth_err_stream_sseerr0",
    ),
    ("vendor key refused", "chat_err_401 def_pair_401 def_solo_401 msg_err_401 x_chat_anth_err_401"),
    ("unreachable", "chat_err_rst0 chat_err_stream_rst0 chat_refused chat_refused_stream def_solo_rst0"),
    (
        "rate limited",
        "chat_err_429 chat_err_stream_429 def_claude_429 def_claude_429_chat def_pair_429 def_pair_429_noretry \
         def_pair_after_401 def_solo_429 def_solo_after_401 def_solo_after_404 key_parallel key_rpm_1 key_rpm_2 \
         key_rpm_msg key_tpm_1 key_tpm_2 model_rpm_1 model_rpm_2 model_rpm_msg msg_err_429 msg_err_stream_429 \
         msg_openai_err_stream_429 pass_err_429 pass_err_stream_429 x_chat_anth_err_429 x_chat_anth_err_stream_429",
    ),
    (
        "budget gone",
        "chat_err_429quota deployment_budget_1 deployment_budget_2 key_budget_msg key_budget_pass key_budget_stream \
         key_modelbudget_1 key_modelbudget_2 key_smallbudget_1 key_smallbudget_2 key_smallbudget_3 msg_err_credit \
         provider_budget_1 provider_budget_2 provider_budget_chat x_chat_anth_err_credit",
    ),
    (
        "key refused",
        "auth_bad_key auth_bad_key_nosk auth_bad_key_pip_without_prisma auth_missing_key key_bad_custom \
         key_bad_custom_msg key_expired msg_bad_key msg_missing_key pass_bad_key pass_no_env",
    ),
    (
        "model denied",
        "chat_err_403 def_solo_403 key_models_denied key_models_denied_msg key_models_unknown \
         key_team_denied_fallback_target msg_err_403 pass_restricted_key",
    ),
    (
        "model unknown",
        "chat_err_404 def_solo_404 defaultfb_unknown_model direct_backing_model missing_model msg_err_404 \
         unknown_model unknown_model_messages unknown_model_stream wrong_case_model",
    ),
    (
        "context overflow",
        "chat_err_413 chat_err_ctx chat_err_ctxgeneric chat_err_ctxllama chat_err_ctxvllm chat_err_stream_ctx \
         def_solo_ctx misc_precheck_ctx misc_precheck_ctx_stream msg_err_413 msg_err_ctx msg_err_ctxmax \
         msg_err_stream_ctx pass_err_ctx x_chat_anth_err_ctx x_chat_anth_err_ctxmax x_chat_anth_err_stream_ctx \
         x_msg_openai_err_ctx",
    ),
    ("tools unsupported", "chat_err_notools"),
    ("refused by policy", "chat_err_cf400 msg_err_cf400"),
    (
        "bad request",
        "bad_json chat_err_400 chat_err_422 client_mock_fallback def_solo_400 def_solo_422 \
         hist_badargs_anthropic_via_chat misc_empty_messages misc_system_only missing_messages msg_badsig_hist \
         msg_err_400 msg_err_badsig msg_no_max_tokens param_unsupported_anthropic x_chat_anth_err_badsig \
         x_chat_badsig_hist",
    ),
    ("bad address", "unknown_path"),
];

fn summary(answer: &Result<Reply, Error>) -> String {
    match answer {
        Ok(reply) => match (&reply.stop, reply.calls().count()) {
            (Stop::Calls, 1) => "1 call".to_owned(),
            (Stop::Calls, calls) => format!("{calls} calls"),
            (Stop::End, 0) => "end".to_owned(),
            (Stop::End, calls) => format!("end with {calls} calls"),
            (Stop::Truncated, _) => "truncated".to_owned(),
            (Stop::Declined(_), _) => "declined".to_owned(),
        },
        Err(error) => error.trouble.to_string(),
    }
}

async fn ask(file: &str, fallbacks: bool) -> (Result<Reply, Error>, Vec<Delta>) {
    let (replay, recording) = (Replay::start().await, Recording::read(file));
    replay.answers(&recording);
    let (deltas, mut shown) = unbounded_channel();
    let mut request = request(recording.alias.as_deref().unwrap(), recording.route().unwrap());
    request.fallbacks = fallbacks;
    let answer = replay.proxy().ask(&request, &deltas).await;
    drop(deltas);
    let mut seen = Vec::new();
    while let Some(delta) = shown.recv().await {
        seen.push(delta);
    }
    (answer, seen)
}

async fn reply(file: &str) -> Reply {
    ask(file, true).await.0.unwrap_or_else(|error| panic!("{file}: {error}"))
}

async fn trouble(file: &str) -> Error {
    ask(file, true).await.0.expect_err(file)
}

#[tokio::test]
async fn every_recording_is_read_as_what_it_is() {
    let mut expected = BTreeMap::new();
    for (class, names) in READ_AS {
        for name in names.split_whitespace() {
            assert_eq!(expected.insert(name, class), None, "{name} stands twice in the table");
        }
    }
    let replay = Replay::start().await;
    let proxy = replay.proxy();
    let mut wrong = Vec::new();
    for recording in Recording::all() {
        let Some(route) = recording.route() else { continue };
        replay.answers(&recording);
        let (deltas, _shown) = unbounded_channel();
        let answer = proxy.ask(&request(recording.alias.as_deref().unwrap_or("none"), route), &deltas).await;
        if let Err(error) = &answer {
            let length = error.message.chars().count();
            assert!((1..=2000).contains(&length) && !error.message.contains('\n'), "{}: {error}", recording.name);
        }
        let (read, wanted) = (summary(&answer), expected.remove(recording.name.as_str()));
        if wanted != Some(read.as_str()) {
            wrong.push(format!("{}: {read}, not {wanted:?}: {answer:?}", recording.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(expected.is_empty(), "no such recordings: {expected:?}");
}

#[tokio::test]
async fn a_fallback_is_told_by_headers_and_refused_where_the_role_refuses() {
    let mut seen = 0;
    for recording in Recording::all().iter().filter(|recording| recording.name.starts_with("fb_")) {
        if recording.name.starts_with("fb_dead_end") {
            continue;
        }
        seen += 1;
        let file = format!("{}.{}", recording.name, if recording.name.ends_with("stream") { "sse" } else { "json" });
        let answered = reply(&file).await.answered_by.unwrap();
        assert!(answered.fallback && Some(&answered.alias) != recording.alias.as_ref(), "{file}: {answered:?}");
        assert!(answered.backing.contains('/') && answered.backing != "pinned/backing", "{file}: {answered:?}");
        let (refused, shown) = ask(&file, false).await;
        assert_eq!(refused.unwrap_err().trouble, Trouble::FallbackRefused, "{file}");
        assert_eq!(shown, [], "{file}: nothing of a refused reply is shown");
    }
    assert_eq!(seen, 16);
    let own = reply("chat_alias_group.json").await.answered_by.unwrap();
    assert_eq!((own.alias.as_str(), own.backing.as_str(), own.fallback), ("aliased-fast", "openai/up-model", false));
}

#[tokio::test]
async fn usage_means_the_same_on_both_routes() {
    let cached = Some(Usage { input: 112, output: 20, cache_read: 64, cache_write: 12 });
    for file in ["msg_thinktool_stream.sse", "msg_thinktool.json", "x_chat_anth_thinktool_stream.sse"] {
        assert_eq!(reply(file).await.usage, cached, "{file}");
    }
    // the translation for other vendors tells its input only at the end
    let translated = Some(Usage { input: 100, output: 20, cache_read: 64, cache_write: 0 });
    assert_eq!(reply("x_msg_openai_stream.sse").await.usage, translated);
    for file in ["chat_nousage.json", "chat_ok_stream_nousageopt.sse"] {
        assert_eq!(reply(file).await.usage, None, "{file}");
    }
    // a cut reply is charged at least by what came
    let cut = trouble("msg_err_stream_eofmid.sse").await.usage.unwrap();
    assert!(cut.input == 112 && cut.output > 1, "{cut:?}");
}

#[tokio::test]
async fn the_cost_is_the_proxys_or_unknown() {
    for (file, wanted) in [
        ("chat_ok_stream.sse", Some(82_400_000)), // from the last chunk; the headers say 0.0
        ("chat_ok.json", Some(82_400_000)),       // from the header
        ("msg_thinktool_stream.sse", None),
        ("key_budget_zero_cost_model.json", None),
    ] {
        assert_eq!(reply(file).await.cost, wanted.map(Money), "{file}");
    }
}

#[tokio::test]
async fn opaque_reasoning_is_put_together_as_it_was() {
    let thinking =
        r#"{"type":"thinking","thinking":"Let me look at the file first.","signature":"EqQBCkYIBxgCKkDsigAAAA=="}"#;
    for file in ["msg_thinktool_stream.sse", "msg_thinktool.json"] {
        assert_eq!(reply(file).await.parts[0], Part::Reasoning(thinking.to_owned()), "{file}");
    }
    let normalized =
        format!(r#"{{"reasoning_content":"Let me look at the file first.","thinking_blocks":[{thinking}]}}"#);
    for file in ["x_chat_anth_thinktool_stream.sse", "x_chat_anth_thinktool.json"] {
        assert_eq!(reply(file).await.parts[0], Part::Reasoning(normalized.clone()), "{file}");
    }
    let redacted = r#"{"type": "redacted_thinking", "data": "EmwKAhgBEgyREDACTED=="}"#;
    assert_eq!(reply("msg_rthink_stream.sse").await.parts[1], Part::Reasoning(redacted.to_owned()));
}

#[tokio::test]
async fn calls_keep_what_was_written_and_get_ids() {
    let reply = reply("chat_tool_stream.sse").await;
    let calls: Vec<_> =
        reply.calls().map(|c| (c.id.0.as_str(), c.vendor_id.as_deref(), c.arguments.as_str())).collect();
    let wanted = [
        ("c00001n00", Some("call_AAA"), r#"{"path": "src/main.rs"}"#),
        ("c00001n01", Some("call_BBB"), r#"{"pattern": "fn main"}"#),
    ];
    assert_eq!(calls, wanted);
    let nameless = self::reply("chat_toolnoid_stream.sse").await;
    assert_eq!(nameless.calls().next().unwrap().vendor_id, None);
    let broken = self::reply("msg_toolbad_stream.sse").await;
    assert_eq!(broken.calls().next().unwrap().arguments, r#"{"path": "src/main.rs", oops"#);
}

#[tokio::test]
async fn text_and_reasoning_are_shown_as_they_come() {
    for file in ["msg_thinktool_stream.sse", "x_chat_anth_thinktool_stream.sse"] {
        let (_, shown) = ask(file, true).await;
        let (mut text, mut reasoning) = (String::new(), String::new());
        let mut called = (String::new(), 0, 0);
        for delta in &shown {
            match delta {
                Delta::Text(piece) => text.push_str(piece),
                Delta::Reasoning(piece) => reasoning.push_str(piece),
                Delta::Call { name, bytes, more } => called = (name.clone(), *bytes, called.2 + more),
            }
        }
        assert!(shown.len() > 5, "{file}: in pieces");
        let wanted = ("Hello from upstream Claude.", "Let me look at the file first.");
        assert_eq!((text.as_str(), reasoning.as_str()), wanted, "{file}");
        // and of a call its name, and how much of it there is
        assert!(called.0 == "read_file" && called.1 > 0 && called.1 == called.2, "{file}: {called:?}");
    }
}

#[tokio::test]
async fn the_wait_that_is_asked_for_is_found_wherever_it_stands() {
    for (file, wanted) in [
        ("chat_err_429.json", Some(7)),       // only as the vendor's header
        ("key_rpm_1.json", Some(60)),         // the proxy's own
        ("def_solo_after_401.json", Some(5)), // all deployments cooling down
        ("def_solo_503.json", Some(9)),
        ("msg_err_429.json", None), // the native route does not say
    ] {
        assert_eq!(trouble(file).await.retry_after, wanted.map(Duration::from_secs), "{file}");
    }
}

#[tokio::test]
async fn errors_speak_to_people() {
    for (file, wanted) in [
        ("msg_err_credit.json", "Your credit balance is too low to access the Anthropic API."),
        ("x_chat_anth_err_stream_429.json", "your organization's rate limit of 50 requests per minute."),
        ("key_budget_msg.json", "Current cost: 0.015493, Max budget: 0.0001"),
        ("chat_err_401.json", "the vendor refuses the proxy's own key"),
        ("unknown_path.json", "/v1/chat/completions: Not Found"),
    ] {
        let told = if file == "unknown_path.json" { not_found().await } else { trouble(file).await.message };
        assert!(told.contains(wanted), "{file}: {told}");
        assert!(!told.contains("Fallbacks are configured for"), "{file}: {told}");
    }
}

async fn not_found() -> String {
    let replay = Replay::start().await;
    replay.answers(&Recording::read("unknown_path.json"));
    let (deltas, _shown) = unbounded_channel();
    replay.proxy().ask(&request("any", Route::Normalized), &deltas).await.unwrap_err().message
}

#[tokio::test]
async fn a_request_says_what_it_must_and_the_token_stands_in_headers_alone() {
    let replay = Replay::start().await;
    for (route, file, path) in [
        (Route::Normalized, "chat_ok.json", "POST /v1/chat/completions HTTP/1.1"),
        (Route::Native, "msg_ok.json", "POST /v1/messages HTTP/1.1"),
    ] {
        replay.answers(&Recording::read(file));
        let (deltas, _shown) = unbounded_channel();
        let mut request = request("local-fast", route);
        request.fallbacks = true;
        replay.proxy().ask(&request, &deltas).await.unwrap();
        let asked = replay.asked().pop().unwrap();
        let (head, body) = asked.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with(path), "{head}");
        let mut wanted = vec!["x-litellm-call-id: request-1".to_owned(), format!("authorization: Bearer {TOKEN}")];
        if route == Route::Native {
            wanted.extend(["anthropic-version: 2023-06-01".to_owned(), format!("x-api-key: {TOKEN}")]);
        }
        for line in wanted {
            assert!(head.lines().any(|header| header == line), "{line} is missing in {head}");
        }
        assert!(!body.contains(TOKEN), "{body}");
    }
    let proxy = format!("{:?}", replay.proxy());
    assert!(!proxy.contains(TOKEN), "{proxy}");
}

#[tokio::test]
async fn a_token_that_comes_back_in_an_error_is_masked() {
    let replay = Replay::start().await;
    let body = format!(r#"{{"error":{{"message":"bad key {TOKEN}","type":"auth_error"}}}}"#);
    replay.answers_bytes(format!("HTTP/1.1 401 no\r\ncontent-length: {}\r\n\r\n{body}", body.len()));
    let (deltas, _shown) = unbounded_channel();
    let error = replay.proxy().ask(&request("any", Route::Normalized), &deltas).await.unwrap_err();
    assert_eq!((error.trouble, error.message.as_str()), (Trouble::KeyRefused, "HTTP 401: bad key ***"));
}
