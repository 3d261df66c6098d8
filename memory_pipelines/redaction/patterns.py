"""Secrets that are known by their shape: vendor tokens, key blocks, URLs, headers, cards. Pure."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from math import log2
from typing import cast


@dataclass(frozen=True)
class Found:
    """One secret in a text."""

    start: int  # of the secret itself, without its name or quotes
    end: int  # exclusive
    kind: str  # lower-case words and digits, as shown in the marker


_EDGES = " \t\r\n\"'"


@dataclass(frozen=True)
class Rule:
    """One shape: looked for only when the lower-cased text holds one of the needles."""

    kind: str  # of what it finds
    needles: tuple[str, ...]  # lower case; one of them is in every match
    pattern: re.Pattern[str]  # anchored or bounded, so that a long line costs linear time
    group: int = 0  # which group is the secret
    check: Callable[[str], bool] | None = None  # a second look at the secret

    def may_match(self, low: str) -> bool:
        """Say cheaply whether a text, given in lower case, is worth looking into."""
        return any(needle in low for needle in self.needles)

    def find(self, text: str) -> Iterator[Found]:
        """Yield what the rule sees in a text."""
        for match in self.pattern.finditer(text):
            start, end = match.span(self.group)
            while start < end and text[start] in _EDGES:
                start += 1
            while start < end and text[end - 1] in _EDGES:
                end -= 1
            if start < end and (self.check is None or self.check(text[start:end])):
                yield Found(start, end, self.kind)


def entropy(value: str) -> float:
    """Shannon entropy of the characters, in bits a character."""
    return -sum((n := value.count(c)) / len(value) * log2(n / len(value)) for c in set(value))


def is_slug(value: str) -> bool:
    """Whether the value is words and numbers joined by punctuation, as names of things are."""
    parts = [part for part in re.split(r"[-_./:@]+", value) if part]
    return all(p.isdigit() or (p.isalpha() and (p.islower() or p.isupper() or p.istitle())) for p in parts)


def is_random(value: str) -> bool:
    """Whether the value looks made by a machine: long, letters and digits mixed, not words."""
    if len(value) < 16 or not re.search(r"[A-Za-z]", value) or not re.search(r"\d", value):
        return False
    return not is_slug(value) and entropy(value[:256]) >= 3.0


def _not_slug(value: str) -> bool:
    return not is_slug(value) or bool(re.search(r"[A-Za-z0-9]{24}", value))


def _is_card(value: str) -> bool:
    digits = re.sub(r"\D", "", value)
    if not re.match(r"3[0-9]|4|5[1-5]|6|2[2-7]", digits) or len(set(digits)) < 2:
        return False
    doubled = (int(d) * (1 + i % 2) for i, d in enumerate(reversed(digits)))
    return sum(d - 9 if d > 9 else d for d in doubled) % 10 == 0


# \b takes CJK and Arabic letters for parts of a word, so edges are spelt out for ASCII.
_L = r"(?<![A-Za-z0-9])"

_PREFIXED = (  # (kind, prefix as it is written, what follows)
    ("api key", "sk-", r"[A-Za-z0-9_-]{16,}"),
    ("api key", "sk_", r"(?:live|test|prod)_[A-Za-z0-9]{10,}"),
    ("api key", "rk_", r"(?:live|test)_[A-Za-z0-9]{10,}"),
    ("api key", "whsec_", r"[A-Za-z0-9+/=]{16,}"),
    ("api key", "AIza", r"[A-Za-z0-9_-]{30,}"),
    ("api key", "gsk_", r"[A-Za-z0-9]{20,}"),
    ("api key", "xai-", r"[A-Za-z0-9]{20,}"),
    ("api key", "pplx-", r"[A-Za-z0-9]{20,}"),
    ("api key", "nvapi-", r"[A-Za-z0-9_-]{20,}"),
    ("api key", "r8_", r"[A-Za-z0-9]{30,}"),
    ("api key", "lin_api_", r"[A-Za-z0-9]{20,}"),
    ("api key", "PMAK-", r"[a-f0-9]{20,}-[a-f0-9]{20,}"),
    ("api key", "NRAK-", r"[A-Z0-9]{20,}"),
    ("api key", "key-", r"[a-f0-9]{32,}"),
    ("aws access key", "AKIA", r"[A-Z0-9]{12,}"),
    ("aws access key", "ASIA", r"[A-Z0-9]{16,}"),
    ("github token", "ghp_", r"[A-Za-z0-9]{16,}"),
    ("github token", "gho_", r"[A-Za-z0-9]{16,}"),
    ("github token", "ghu_", r"[A-Za-z0-9]{16,}"),
    ("github token", "ghs_", r"[A-Za-z0-9]{16,}"),
    ("github token", "ghr_", r"[A-Za-z0-9]{16,}"),
    ("github token", "github_pat_", r"[A-Za-z0-9_]{20,}"),
    ("gitlab token", "glpat-", r"[A-Za-z0-9_.-]{16,}"),
    ("gitlab token", "glrt-", r"[A-Za-z0-9_.-]{16,}"),
    ("gitlab token", "gldt-", r"[A-Za-z0-9_.-]{16,}"),
    ("gitlab token", "glptt-", r"[A-Za-z0-9_.-]{16,}"),
    ("gitlab token", "glsoat-", r"[A-Za-z0-9_.-]{16,}"),
    ("slack token", "xoxa-", r"[A-Za-z0-9-]{10,}"),
    ("slack token", "xoxb-", r"[A-Za-z0-9-]{10,}"),
    ("slack token", "xoxe-", r"[A-Za-z0-9-]{10,}"),
    ("slack token", "xoxp-", r"[A-Za-z0-9-]{10,}"),
    ("slack token", "xoxr-", r"[A-Za-z0-9-]{10,}"),
    ("slack token", "xoxs-", r"[A-Za-z0-9-]{10,}"),
    ("slack token", "xapp-", r"[A-Za-z0-9-]{10,}"),
    ("google token", "ya29.", r"[A-Za-z0-9._-]{20,}"),
    ("google token", "GOCSPX-", r"[A-Za-z0-9_-]{20,}"),
    ("npm token", "npm_", r"[A-Za-z0-9]{30,}"),
    ("hugging face token", "hf_", r"[A-Za-z0-9]{20,}"),
    ("databricks token", "dapi", r"[a-f0-9]{32,}(?:-\d)?"),
    ("digitalocean token", "dop_v1_", r"[a-f0-9]{40,}"),
    ("shopify token", "shpat_", r"[A-Fa-f0-9]{32,}"),
    ("shopify token", "shpss_", r"[A-Fa-f0-9]{32,}"),
    ("pypi token", "pypi-", r"AgE[A-Za-z0-9_-]{30,}"),
    ("sendgrid key", "SG.", r"[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    ("sentry token", "sntrys_", r"[A-Za-z0-9+/=_]{20,}"),
    ("grafana token", "glsa_", r"[A-Za-z0-9_]{20,}"),
    ("vault token", "hvs.", r"[A-Za-z0-9_-]{20,}"),
    ("docker token", "dckr_pat_", r"[A-Za-z0-9_-]{20,}"),
    ("atlassian token", "ATATT3", r"[A-Za-z0-9_=-]{20,}"),
    ("figma token", "figd_", r"[A-Za-z0-9_-]{20,}"),
    ("notion token", "ntn_", r"[A-Za-z0-9]{30,}"),
    ("age key", "AGE-SECRET-KEY-1", r"[A-Z0-9]{40,}"),
)

TOKENS: tuple[Rule, ...] = (
    *(
        Rule(kind, (prefix.lower(),), re.compile(_L + re.escape(prefix) + body), check=_not_slug)
        for kind, prefix, body in _PREFIXED
    ),
    Rule("json web token", ("eyj",), re.compile(r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_-]*){1,4}")),
)
"""Shapes that are told by their first letters, also when a line break cuts them in two."""

_QUERY_KEYS = (
    r"access_token|refresh_token|id_token|auth_token|token|sig|signature|x-amz-signature|x-amz-security-token|"
    r"x-goog-signature|api[_-]?key|subscription-key|client_secret|secret|password|passwd|pwd|pass"
)

OTHERS: tuple[Rule, ...] = (
    Rule(
        "connection password",
        ("://",),
        re.compile(r"://[^\s:/@'\"<>?#]{0,200}:(?!\d{1,5}/)([^\s'\"<>]{1,200})@(?=[A-Za-z0-9\[._-])"),
        group=1,
        check=lambda value: not re.fullmatch(r"\$\{?\w+\}?|\{+\w+\}+|\*+|%\(\w+\)s", value),
    ),
    Rule("token", ("://",), re.compile(r"://([A-Za-z0-9_.-]{16,200})@"), group=1, check=is_random),
    Rule(
        "url token",
        ("=",),
        re.compile(rf"[?&](?:{_QUERY_KEYS})=([^\s&#\"'<>)\]]{{4,2048}})", re.IGNORECASE),
        group=1,
        check=lambda value: not re.fullmatch(r"\$\{?\w+\}?|\{+\w+\}+|\*+", value),
    ),
    Rule(
        "url token",
        ("key=", "code=", "session=", "sid=", "auth="),
        re.compile(r"[?&](?:key|code|session|sid|auth)=([A-Za-z0-9._~%+/-]{16,2048})", re.IGNORECASE),
        group=1,
        check=is_random,
    ),
    Rule(
        "webhook",
        ("hooks.slack.com", "discord.com/api/webhooks", "discordapp.com/api/webhooks"),
        re.compile(
            r"(?:hooks\.slack\.com/(?:services|workflows|triggers)|discord(?:app)?\.com/api/webhooks)"
            r"/([A-Za-z0-9/_-]{16,200})"
        ),
        group=1,
    ),
    Rule(
        "authorization",
        ("authorization",),
        re.compile(
            r"authorization\\?[\"']?[ \t]{0,4}[:=][ \t]{0,4}\\?[\"']?"
            r"((?:(?:bearer|basic|token|digest|negotiate|apikey|aws4-hmac-sha256)[ \t]{1,4})?[!#-&(-~]{6,4096})",
            re.IGNORECASE,
        ),
        group=1,
        check=lambda value: bool(re.search(r"\d|[=+/]|.{20}", value)) and not re.search(r"[${<]\w|\w\(", value),
    ),
    Rule(
        "bearer token",
        ("bearer",),
        re.compile(_L + r"bearer[ \t:]{1,4}([A-Za-z0-9._~+/=-]{8,4096})", re.IGNORECASE),
        group=1,
        check=lambda value: bool(re.search(r"\d", value)) and not is_slug(value),
    ),
    Rule(
        "cookie",
        ("cookie:",),
        re.compile(r"cookie:[ \t]{0,4}([^\s=;]{1,100}=[^\r\n\"']{6,4096})", re.IGNORECASE),
        group=1,
    ),
    Rule(
        "password hash",
        ("$2", "$5$", "$6$", "$y$", "$argon2"),
        re.compile(r"\$(?:2[abxy]?|5|6|y|argon2(?:id|i|d))\$[./A-Za-z0-9$=,+]{20,300}"),
    ),
    Rule(
        "password",
        ("curl", "wget", "http"),
        re.compile(r"(?<![A-Za-z0-9-])(?:-u|--user)[ =]{1,2}[\"']?[^\s:\"']{1,100}:([^\s\"']{1,200})"),
        group=1,
        check=lambda value: not value.startswith(("$", "{", "<")),
    ),
    Rule(
        "password",
        ("mysql", "mariadb", "sshpass", "mongo"),
        re.compile(
            r"(?:mysql|mysqldump|mariadb|sshpass|mongo(?:sh)?)\b[^\n]{0,120}?[ \t]-p[ \t]?[\"']?([^\s\"'$-]\S{2,100})"
        ),
        group=1,
        check=lambda value: bool(re.search(r"[^a-z]", value)),
    ),
    Rule(
        "password",
        ("machine",),
        re.compile(r"(?<![A-Za-z])login[ \t]{1,4}\S{1,100}\s{1,4}password[ \t]{1,4}(\S{1,200})"),
        group=1,
    ),
    Rule(
        "card number",
        tuple("3456" + "2"),
        re.compile(r"(?<![\d.])(?<!\d[- ])(?:\d[ -]?){12,18}\d(?![ -]?\d)(?!\.\d)"),
        check=_is_card,
    ),
)
"""Shapes that are told by what surrounds them."""

_KEY_BEGIN = re.compile(r"-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}|PuTTY-User-Key-File-\d")
_KEY_END = re.compile(r"-{4,5} ?END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}|Private-MAC: ?[0-9a-f]{10,128}")
_KEY_BODY = re.compile(
    r"(?:\s|\\[nr]|[A-Za-z-]{1,30}: [^\n]{0,200}(?=\n)|[A-Za-z0-9+/=]{16,200}|[A-Za-z0-9+/]{1,15}={1,2})*"
)
_KEY_LONGEST = 20_000


def private_keys(text: str) -> Iterator[Found]:
    """Yield blocks of private keys, over several lines, also when their end is missing."""
    if "PRIVATE KEY" not in text and "PuTTY-User-Key-File" not in text:
        return
    begins = list(_KEY_BEGIN.finditer(text))
    limits = [*(begin.start() for begin in begins[1:]), len(text)]
    for begin, limit in zip(begins, limits, strict=True):
        end = _KEY_END.search(text, begin.end(), min(limit, begin.end() + _KEY_LONGEST))
        body = _KEY_BODY.match(text, begin.end(), limit)
        stop = end.end() if end else begin.end() + len((body.group() if body else "").rstrip())
        yield Found(begin.start(), stop, "private key")


@cache
def library_rules() -> tuple[Rule, ...]:
    """The detectors of detect-secrets that know a vendor's token by its shape.

    They are read once and used as patterns: its own scanner keeps global settings, wants files and may call the
    vendor to verify. Left out are the detectors by name, by entropy and of public addresses, whose work the naming
    words do here, and those whose patterns take more than linear time on a long line.
    """
    from detect_secrets.plugins.artifactory import ArtifactoryDetector
    from detect_secrets.plugins.aws import AWSKeyDetector
    from detect_secrets.plugins.azure_storage_key import AzureStorageKeyDetector
    from detect_secrets.plugins.discord import DiscordBotTokenDetector
    from detect_secrets.plugins.github_token import GitHubTokenDetector
    from detect_secrets.plugins.gitlab_token import GitLabTokenDetector
    from detect_secrets.plugins.mailchimp import MailchimpDetector
    from detect_secrets.plugins.pypi_token import PypiTokenDetector
    from detect_secrets.plugins.sendgrid import SendGridDetector
    from detect_secrets.plugins.slack import SlackDetector
    from detect_secrets.plugins.square_oauth import SquareOAuthDetector
    from detect_secrets.plugins.stripe import StripeDetector
    from detect_secrets.plugins.telegram_token import TelegramBotTokenDetector
    from detect_secrets.plugins.twilio import TwilioKeyDetector

    detectors: tuple[tuple[type, tuple[str, ...]], ...] = (
        (ArtifactoryDetector, ("akc", "ap")),
        (AWSKeyDetector, ("akia", "asia", "abia", "acca", "a3t", "aws")),
        (AzureStorageKeyDetector, ("accountkey=",)),
        (DiscordBotTokenDetector, (".",)),
        (GitHubTokenDetector, ("ghp_", "gho_", "ghu_", "ghs_", "ghr_")),
        (GitLabTokenDetector, ("gl",)),
        (MailchimpDetector, ("-us",)),
        (PypiTokenDetector, ("pypi-",)),
        (SendGridDetector, ("sg.",)),
        (SlackDetector, ("xox", "hooks.slack.com")),
        (SquareOAuthDetector, ("sq0csp",)),
        (StripeDetector, ("k_live_",)),
        (TelegramBotTokenDetector, (":",)),
        (TwilioKeyDetector, ("ac", "sk")),
    )
    rules: list[Rule] = []
    for detector, needles in detectors:
        kind = re.sub(r"[^a-z0-9 ]", "", str(getattr(detector, "secret_type")).lower())  # noqa: B009 (untyped)
        for pattern in cast("Iterable[re.Pattern[str]]", getattr(detector, "denylist")):  # noqa: B009
            # A group marks the secret only when it is long enough to be one; else it is an alternation.
            group = 1 if pattern.groups == 1 and "aws" in pattern.pattern else 0
            check = is_random if detector is ArtifactoryDetector else None
            rules.append(Rule(kind, needles, pattern, group=group, check=check))
    return tuple(rules)


def _is_word(part: str) -> bool:
    """Whether the part of a cut token is rather the first word of the next line."""
    return part.isalpha() and len(part) < 8


def wrapped_tokens(text: str) -> Iterator[Found]:
    """Yield tokens that a line break cuts in two, as spans from their first to their last character."""
    if "\n" not in text:
        return
    starts: list[int] = []  # in the text
    edges: list[int] = []  # the same places in the glued text
    pieces: list[str] = []
    at = 0
    for match in re.finditer(r"[^\s](?:[^\n]*[^\s])?", text):
        starts.append(match.start())
        edges.append(at)
        pieces.append(match.group().rstrip("\\"))
        at += len(pieces[-1])
    glued = "".join(pieces)
    low = glued.lower()
    for rule in TOKENS:
        for found in rule.find(glued) if rule.may_match(low) else ():
            first, last = bisect_right(edges, found.start) - 1, bisect_right(edges, found.end - 1) - 1
            while first < last and _is_word(glued[edges[last] : found.end]):
                found = Found(found.start, edges[last], found.kind)
                last -= 1
            if first != last:
                start, end = starts[first] + found.start - edges[first], starts[last] + found.end - edges[last]
                yield Found(start, end, found.kind)
