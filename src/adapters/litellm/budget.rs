//! Whose budget a refusal is about, and its figures: the proxy and the vendors word each kind differently.

/// One clause for people: whose budget is used up, and the dollars spent and allowed, if known.
pub(super) fn used_up(text: &str) -> String {
    if VENDORS.iter().any(|wording| text.to_lowercase().contains(wording)) {
        return "the proxy's own account with the vendor has no credit left".to_owned();
    }
    let whose = whose(text);
    let spent = SPENT.iter().find_map(|mark| figure(text, mark));
    let allowed = ALLOWED.iter().find_map(|mark| figure(text, mark));
    match (spent, allowed) {
        (Some(spent), Some(allowed)) => format!("{whose} is used up: ${spent} spent of ${allowed}"),
        (Some(spent), None) => format!("{whose} is used up: ${spent} spent"),
        (None, Some(allowed)) => format!("{whose} of ${allowed} is used up"),
        (None, None) => format!("{whose} is used up"),
    }
}

/// What vendors say about the proxy's account.
const VENDORS: [&str; 3] = ["insufficient_quota", "exceeded your current quota", "credit balance is too low"];
const SPENT: [&str; 4] = ["Current cost: ", "tag_spend=", "Spend=", ": "];
const ALLOWED: [&str; 5] = ["Max budget: ", "tag_budget_limit=", "Budget=", "Limit=", " >= "];

fn whose(text: &str) -> String {
    let named = |mark: &str, ends: &[char]| {
        let (_, rest) = text.split_once(mark)?;
        rest.split(ends).next().map(str::trim).filter(|name| !name.is_empty())
    };
    if let Some(provider) = named("Exceeded budget for provider ", &[':']) {
        return format!("the budget of the provider {provider}");
    }
    if let Some(deployment) = named("Exceeded budget for deployment model_name: ", &[',', ':']) {
        return format!("the budget of the deployment {deployment}");
    }
    if let Some(tag) = named("Exceeded budget for tag='", &['\'']) {
        return format!("the budget of the tag {tag}");
    }
    if let Some(model) = named("exceeded budget for model=", &[' ', ',']) {
        let holder = ["Virtual Key", "End User", "User", "Team"]
            .into_iter()
            .find_map(|kind| Some((kind, named(&format!("LiteLLM {kind}: "), &[','])?)));
        return format!("{} for {model}", holder.map_or_else(|| ANY.to_owned(), |(kind, name)| held_by(kind, name)));
    }
    // `Key=… Current cost:`, `End User=dev over budget.`, `Key over 1d budget.`
    let told =
        ["Budget has been exceeded! ", "ExceededBudget: "].iter().find_map(|mark| Some(text.split_once(mark)?.1));
    let holder = told.and_then(|told| told.split(" Current cost:").next()?.split(" over ").next());
    match holder.map(|holder| holder.split_once('=').unwrap_or((holder, ""))) {
        Some((kind, name)) if kind.chars().all(|c| c.is_alphabetic() || c == ' ') && kind.len() < 30 => {
            held_by(kind, name)
        }
        Some(_) | None => ANY.to_owned(),
    }
}

/// An unknown owner.
const ANY: &str = "a budget";

fn held_by(kind: &str, name: &str) -> String {
    match kind.trim() {
        "" | "Current cost" => ANY.to_owned(),
        // its name is a hash, or the alias that its owner gave it
        "Key" | "Virtual Key" => "the key's budget".to_owned(),
        kind => format!("the budget of the {} {name}", kind.to_lowercase()).trim_end().to_owned(),
    }
}

/// The number after a mark, to six digits, if there is one.
fn figure(text: &str, mark: &str) -> Option<f64> {
    let mut places = text.match_indices(mark).map(|(at, _)| text.get(at + mark.len()..).unwrap_or_default());
    places.find_map(|rest| {
        let word = rest.split([' ', ',', '\n']).next()?.trim_start_matches('$').trim_end_matches('.');
        let number = word.parse::<f64>().ok().filter(|number| number.is_finite())?;
        format!("{number:.5e}").parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_budget_and_both_figures_are_told() {
        for (text, wanted) in [
            (
                "Budget has been exceeded! Key=db8a89c5 Current cost: 0.009687999999999999, Max budget: 0.0001",
                "the key's budget is used up: $0.009688 spent of $0.0001",
            ),
            ("Budget has been exceeded! Current cost: 26.07, Max budget: 25.0", {
                "a budget is used up: $26.07 spent of $25"
            }),
            (
                "Budget has been exceeded! Team=core Current cost: 3, Estimated request cost: 1, Max budget: 2.5",
                "the budget of the team core is used up: $3 spent of $2.5",
            ),
            ("ExceededBudget: Key over 1d budget. Spend=$0.5000, Limit=$0.25", {
                "the key's budget is used up: $0.5 spent of $0.25"
            }),
            (
                "litellm.BadRequestError: OpenAIException - ExceededBudget: End User=dev over budget. Spend=0.9, Budget=0.5",
                "the budget of the end user dev is used up: $0.9 spent of $0.5",
            ),
            ("LiteLLM Virtual Key: a2a0, key_alias: None, exceeded budget for model=fast", {
                "the key's budget for fast is used up"
            }),
            ("LiteLLM Team: core, exceeded budget for model=fast", "the budget of the team core for fast is used up"),
            (
                "No deployments available - crossed budget: Exceeded budget for provider anthropic: 0.0004722 >= 1e-07\n",
                "the budget of the provider anthropic is used up: $0.0004722 spent of $0.0000001",
            ),
            // this proxy's bug: where the figure should stand, it names the span
            (
                "crossed budget: Exceeded budget for deployment model_name: dear, litellm_params.model: openai/x, \
                 model_id: 52d6: 0.00037 >= 1d",
                "the budget of the deployment dear is used up: $0.00037 spent",
            ),
            ("Exceeded budget for tag='ci', tag_spend=2, tag_budget_limit=1", {
                "the budget of the tag ci is used up: $2 spent of $1"
            }),
            ("You exceeded your current quota, please check your plan and billing details.", {
                "the proxy's own account with the vendor has no credit left"
            }),
            ("no more money today", "a budget is used up"),
        ] {
            assert_eq!(used_up(text), wanted, "{text}");
        }
    }
}
