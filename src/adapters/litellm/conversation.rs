//! Requests for tests: a task that grows turn by turn.

use std::sync::Arc;

use serde_json::json;

use crate::{
    domain::{
        message::Call,
        model::{PinnedModel, Prices, Route},
        reasoning::Reasoning,
        role::{OfferedTool, ToolName},
    },
    ports::llm::{Answer, AssistantPart, Message, Request},
};

/// A request without messages and tools.
pub(super) fn empty(route: Route) -> Request {
    let model = PinnedModel {
        alias: "alias".to_owned(),
        backing: "backing".to_owned(),
        provider: "provider".to_owned(),
        route,
        window: 8192,
        max_output: 1024,
        tool_choice: false,
        reasoning: Reasoning::Off,
        prices: Prices::default(),
    };
    Request {
        id: "id".to_owned(),
        turn: 1,
        model,
        system: String::new(),
        tools: Vec::new(),
        messages: Vec::new(),
        max_output: 1024,
        reasoning: Reasoning::Off,
        require_call: false,
        fallbacks: false,
        vendor_ids: vec!["old".to_owned()],
    }
}

/// The request after `turns` replies, each with reasoning, text and a call, and each second result followed by a word.
pub(super) fn after(turns: u32, route: Route, reasoning: &str, vendor: Option<&str>) -> Request {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    let tool = |name| OfferedTool { name, description: "Does it".to_owned(), parameters: schema.clone() };
    let mut messages = vec![Message::User("The \"brief\".\n".to_owned())];
    for turn in 1..=turns {
        let wire_id = format!("toolu_{turn}");
        let mut call = Call::minted(turn, 0, &wire_id, "read_file", r#"{"path" : "a\u00e9", "n": 1.50}"#, &[]);
        call.vendor = vendor.map(str::to_owned);
        let answer =
            Answer { call: call.id.clone(), wire_id: wire_id.clone(), content: "text".to_owned(), is_error: turn == 2 };
        messages.push(Message::Assistant {
            text: "I look.".to_owned(),
            parts: vec![
                AssistantPart::Reasoning(reasoning.to_owned()),
                AssistantPart::Text("I look.".to_owned()),
                AssistantPart::Call { wire_id, call },
            ],
        });
        messages.push(Message::Results(vec![answer]));
        if turn % 2 == 0 {
            messages.push(Message::User("Go on.".to_owned()));
        }
    }
    let mut request = Request {
        system: "You are a coding agent.".to_owned(),
        tools: vec![tool(ToolName::ReadFile), tool(ToolName::Search)],
        messages: messages.into_iter().map(Arc::new).collect(),
        ..empty(route)
    };
    request.model.tool_choice = true;
    request
}

/// Asserts that each body of a growing task begins with the one before it, closing brackets aside.
pub(super) fn assert_prefixes(bodies: &[String]) {
    for pair in bodies.windows(2) {
        let before = pair[0].trim_end_matches([']', '}']);
        assert!(pair[1].starts_with(before), "{}\nis no beginning of\n{}", pair[0], pair[1]);
        assert!(pair[1].len() > pair[0].len());
    }
}
