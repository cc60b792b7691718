"""Provider: an OpenID provider, asked by the authorization code flow with PKCE (OpenID Connect Core 1.0, 3.1; RFC 7636).

joserfc checks the tokens; what is sent are two requests.
"""

import base64
import hashlib
import json
import time
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlencode

import aiohttp
import structlog
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from services.accounts.store.logins.external import Begun, Claims
from services.rim.http.tls import connector

log = structlog.get_logger(__name__)

#: Signatures alone: none, and no shared secrets.
ALGORITHMS: Final = ("RS256", "PS256", "ES256", "ES384", "RS512", "EdDSA", "Ed25519")
SCOPE: Final = "openid email profile"
ANSWER_BYTES_MAX: Final = 256 * 1024
SECONDS_MAX: Final = 10.0
#: How long what a provider says of itself is used.
FRESH_SECONDS: Final = 600.0
#: Clocks may differ by so much.
LEEWAY_SECONDS: Final = 60


class ProviderAway(RuntimeError):
    """The provider does not answer."""


class ProviderRefused(ValueError):
    """The provider's answer is refused; the text gives the reason and holds no secret."""


class Provider:
    """Belongs to one event loop. `redirect_url` is where it sends browsers back to."""

    def __init__(
        self,
        issuer: str,
        client_id: str,
        client_secret: str,
        redirect_url: str,
        *,
        now_seconds: Callable[[], float] = time.time,
    ) -> None:
        self.issuer: Final = issuer
        self._client_id = client_id
        self._client_secret = client_secret
        self._redirect_url = redirect_url
        self._now_seconds = now_seconds
        self._described: tuple[float, dict[str, Any]] | None = None
        self._keys: KeySet | None = None

    async def login_address(self, state: str, begun: Begun) -> str:
        """Where the browser logs in. Raises `ProviderAway` or `ProviderRefused`."""
        described = await self._description()
        challenge = base64.urlsafe_b64encode(hashlib.sha256(begun.verifier.encode()).digest()).rstrip(b"=").decode()
        asked = {
            "response_type": "code",
            "client_id": self._client_id,
            "redirect_uri": self._redirect_url,
            "scope": SCOPE,
            "state": state,
            "nonce": begun.nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        endpoint = _text(described, "authorization_endpoint")
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(asked)}"

    async def claims(self, code: str, begun: Begun) -> Claims:
        """The claims of the person who has logged in. Raises `ProviderAway` or `ProviderRefused`."""
        described = await self._description()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._redirect_url,
            "code_verifier": begun.verifier,
        }
        # Both parts are encoded as a form's are (RFC 6749, 2.3.1).
        proof = aiohttp.encode_basic_auth(_quoted(self._client_id), _quoted(self._client_secret))
        headers = {"Authorization": proof}
        answer = await self._asked("POST", _text(described, "token_endpoint"), data=form, headers=headers)
        given = await self._checked(_text(answer, "id_token"), begun.nonce)
        if "email" not in given and "userinfo_endpoint" in described:
            headers = {"Authorization": f"Bearer {_text(answer, 'access_token')}"}
            more = await self._asked("GET", _text(described, "userinfo_endpoint"), headers=headers)
            if more.get("sub") != given["sub"]:
                raise ProviderRefused("it speaks of somebody else")
            given = {**more, **given}
        email = given.get("email") if given.get("email_verified") is True else None
        name = given.get("name")
        return Claims(
            self.issuer,
            str(given["sub"]),
            email if isinstance(email, str) else None,
            name if isinstance(name, str) and name.isprintable() else "",
        )

    async def _checked(self, token: str, nonce: str) -> dict[str, Any]:
        """The claims of an ID token (OpenID Connect Core 1.0, 3.1.3.7)."""
        for is_again in (False, True):
            try:
                decoded = jwt.decode(token, await self._key_set(renew=is_again), algorithms=list(ALGORITHMS))
                break
            except (JoseError, ValueError) as error:
                # A key that is not known may be new.
                if is_again:
                    raise ProviderRefused(f"its token does not hold: {type(error).__name__}") from None
        registry = jwt.JWTClaimsRegistry(
            now=lambda: int(self._now_seconds()),
            leeway=LEEWAY_SECONDS,
            iss={"essential": True, "value": self.issuer},
            aud={"essential": True, "value": self._client_id},
            exp={"essential": True},
            iat={"essential": True},
            sub={"essential": True},
            nonce={"essential": True, "value": nonce},
        )
        try:
            registry.validate(decoded.claims)
        except JoseError as error:
            raise ProviderRefused(f"its token does not hold: {type(error).__name__}") from None
        if decoded.claims.get("azp", self._client_id) != self._client_id:
            raise ProviderRefused("its token is for somebody else")
        return dict(decoded.claims)

    async def _key_set(self, *, renew: bool) -> KeySet:
        if self._keys is None or renew:
            described = await self._description()
            try:
                self._keys = KeySet.import_key_set(await self._asked("GET", _text(described, "jwks_uri")))  # type: ignore[arg-type]
            except (JoseError, ValueError, KeyError, TypeError) as error:
                raise ProviderRefused(f"its keys cannot be read: {type(error).__name__}") from None
        return self._keys

    async def _description(self) -> dict[str, Any]:
        if self._described is None or self._now_seconds() - self._described[0] > FRESH_SECONDS:
            found = await self._asked("GET", f"{self.issuer.rstrip('/')}/.well-known/openid-configuration")
            if found.get("issuer") != self.issuer:
                raise ProviderRefused("it is not the issuer that it is asked as")
            self._described, self._keys = (self._now_seconds(), found), None
        return self._described[1]

    async def _asked(self, method: str, url: str, **options: Any) -> dict[str, Any]:
        timeout = aiohttp.ClientTimeout(total=SECONDS_MAX)
        try:
            async with (
                aiohttp.ClientSession(
                    connector=connector(), timeout=timeout, cookie_jar=aiohttp.DummyCookieJar()
                ) as session,
                session.request(method, url, allow_redirects=False, **options) as answer,
            ):
                body = b""
                async for piece in answer.content.iter_chunked(ANSWER_BYTES_MAX):
                    body += piece
                    if len(body) > ANSWER_BYTES_MAX:
                        raise ProviderRefused("its answer is too long")
        except (aiohttp.ClientError, TimeoutError) as error:
            log.warning("provider_away", kind=type(error).__name__)
            raise ProviderAway(type(error).__name__) from error
        if answer.status >= 500:
            raise ProviderAway(str(answer.status))
        if answer.status != 200:
            log.error("provider_refuses", status=answer.status)
            raise ProviderRefused(f"it answers {answer.status}")
        try:
            found = json.loads(body)
        except (ValueError, RecursionError):
            raise ProviderRefused("its answer is no JSON") from None
        if not isinstance(found, dict):
            raise ProviderRefused("its answer is no JSON object")
        return found


def _text(found: Mapping[str, Any], name: str) -> str:
    value = found.get(name)
    if not isinstance(value, str):
        raise ProviderRefused(f"its answer has no {name}")
    return value


def _quoted(text: str) -> str:
    return urlencode({"": text})[1:]
