"""Virtual keys for a proxy without a database: the proxy's own checks of budget, rate and models run on them."""

from datetime import datetime, timedelta, timezone

from fastapi import Request
from litellm.proxy._types import LitellmUserRoles, ProxyException, UserAPIKeyAuth, hash_token

MASTER = "sk-test-proxy-master"
KEYS = {
    "sk-test-plain": {},
    "sk-test-spent": {"max_budget": 0.0001, "spend": 0.5, "key_alias": "spent-key"},
    "sk-test-small": {"max_budget": 0.02, "spend": 0.0, "key_alias": "small-key"},
    "sk-test-model-spent": {"model_max_budget": {"local-coder": {"max_budget": 0.0000001, "budget_duration": "1d"}}},
    "sk-test-slow": {"rpm_limit": 1},
    "sk-test-narrow": {"models": ["local-coder"]},
    "sk-test-expired": {"expires": datetime.now(timezone.utc) - timedelta(days=1)},
}


async def user_api_key_auth(request: Request, api_key: str) -> UserAPIKeyAuth:
    if api_key == MASTER:
        return UserAPIKeyAuth(api_key=api_key, user_role=LitellmUserRoles.PROXY_ADMIN)
    if api_key not in KEYS:
        text = (
            f"Authentication Error, Invalid proxy server token passed. Received API Key = sk-...{api_key[-4:]}, "
            "Key Hash (Token) =<hash>. Unable to find token in cache or `LiteLLM_VerificationTokenTable`"
        )
        raise ProxyException(message=text, type="token_not_found_in_db", param="key", code=401)
    return UserAPIKeyAuth(
        api_key=api_key,
        token=hash_token(api_key),
        key_name="sk-..." + api_key[-4:],
        user_id="user-of-" + api_key,
        user_role=LitellmUserRoles.INTERNAL_USER,
        **KEYS[api_key],
    )
