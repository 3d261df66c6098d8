import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_pipelines.redaction import find_secrets, redact, redact_json, redact_many

# Every value here is made up, or is the vendor's own example.
PLANTED = [
    ("my key is sk-proj-Zk3vT8qLmW2xYb7RcN4d", "sk-proj-Zk3vT8qLmW2xYb7RcN4d"),
    ("sk-ant-api03-Qx9LmPz2Rt5Vw8Yb1Nc4Kd7Fg0Hj", "sk-ant-api03-Qx9LmPz2Rt5Vw8Yb1Nc4Kd7Fg0Hj"),
    ("use ghp_16C7e42F292c6912E7710c838347Ae178B4a ok", "ghp_16C7e42F292c6912E7710c838347Ae178B4a"),
    ("github_pat_11ABCDEFG0abcdefghijkl_Zyx987wvu654", "github_pat_11ABCDEFG0abcdefghijkl_Zyx987wvu654"),
    ("AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE"),
    ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    ("AIzaSyD-9tSrke72PouQMnMX-a7eZSW0jkFMBWY", "AIzaSyD-9tSrke72PouQMnMX-a7eZSW0jkFMBWY"),
    ("glpat-9xYzAbCdEfGh1JkLmN0p", "glpat-9xYzAbCdEfGh1JkLmN0p"),
    ("xoxb-123456789012-abcDEF456ghi", "xoxb-123456789012-abcDEF456ghi"),
    ("npm_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8", "npm_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"),
    ("hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345", "hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345"),
    ("dapi0123456789abcdef0123456789abcdef", "dapi0123456789abcdef0123456789abcdef"),
    ("sk_live_4eC39HqLyjWDarjtT1zdp7dc", "sk_live_4eC39HqLyjWDarjtT1zdp7dc"),
    ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U", "dozjgNryP4J3jVmNHl0w5N"),
    ("curl -H 'Authorization: Bearer q1w2e3r4t5y6u7i8'", "q1w2e3r4t5y6u7i8"),
    ("Authorization: Basic YWRtaW46aHVudGVyMg==", "YWRtaW46aHVudGVyMg=="),
    ("postgresql://app:s3cr3tP@ss@db.internal:5432/x", "s3cr3tP@ss"),
    ("redis://:hunter2@cache:6379/0", "hunter2"),
    ("https://x.blob.core.windows.net/a?sv=2021&sig=aBcD%2Fef123%3D&se=1", "aBcD%2Fef123%3D"),
    ("GET https://api.example.com/v1?access_token=abc123def456&x=1", "abc123def456"),
    ("My password is hunter2, don't tell.", "hunter2"),
    ("my password is banana.", "banana"),
    ("The password for the staging wifi is Tr0ub4dor&3", "Tr0ub4dor&3"),
    ("password: correct-horse-battery", "correct-horse-battery"),
    ("Mi contraseña es Gatito2024!", "Gatito2024!"),
    ("Mi contrasen̄a no. Mi contraseña del wifi es Luna_77", "Luna_77"),
    ("Das Passwort lautet Sommer2024#", "Sommer2024#"),
    ("le mot de passe est Soleil!99", "Soleil!99"),
    ("我的密码是hunter2请记住", "hunter2"),
    ("密钥sk-proj-Zk3vT8qLmW2xYb7RcN4d请保存", "sk-proj-Zk3vT8qLmW2xYb7RcN4d"),
    ("数据库密码：Qw3rty!8。谢谢", "Qw3rty!8"),
    ("كلمة المرور هي Abc123!وشكرا", "Abc123!"),
    ("мой пароль: Солнышко2024", "Солнышко2024"),
    ("пароль — zima1999", "zima1999"),
    ("パスワードは sakura77 です", "sakura77"),
    ("パスワードはsakura77です", "sakura77"),
    ("비밀번호는 dragon88 입니다", "dragon88"),
    ("minha senha é Flores#21", "Flores#21"),
    ('{"user": "bob", "password": "letmein"}', "letmein"),
    ('{\\"password\\": \\"letmein\\"}', "letmein"),
    ("DB_PASSWORD=letmein", "letmein"),
    ("api_key: 8f3kJ2mQ9x", "8f3kJ2mQ9x"),
    ("Server=db;Uid=sa;Pwd=Str0ng!Pass;Database=x", "Str0ng!Pass"),
    ("hunter2 is my password", "hunter2"),
    ("please use Qwerty!99 as the new password", "Qwerty!99"),
    ("I changed my password from hunter1 to hunter22", "hunter22"),
    ("here is the API key for staging, use this one: 8f3kJ2mQ9xLp0Zr7Tn5Vw1", "8f3kJ2mQ9xLp0Zr7Tn5Vw1"),
    ("run login --password hunter --user x", "hunter"),
    ("curl -u admin:s3cret https://x", "s3cret"),
    ("mysql -u root -pS3cretPw db", "S3cretPw"),
    ("machine x.com login bob password letmein", "letmein"),
    ("my card 4111 1111 1111 1111 exp 12/27", "4111 1111 1111 1111"),
    ("my PIN is 4821", "4821"),
    ("验证码 482913", "482913"),
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\n-----END RSA PRIVATE KEY-----", "MIIEowIBAAKCAQEA"),
    ("seed phrase: ripple scissors kick mammal hire column oak again sun offer wealth tomorrow", "mammal hire"),
    ("clientSecret: 'a8f5f167f44f4964e6c998dee827110c'", "a8f5f167f44f4964e6c998dee827110c"),
    ('api_key = "2f1d7c1e-0c54-4b7e-9d6c-0a3f0a9c1e55"', "2f1d7c1e"),
    (
        "AccountKey=abcdEFGH1234abcdEFGH1234abcdEFGH1234abcdEFGH1234abcdEFGH1234abcdEFGH1234abcdEFGH1234abcd==",
        "abcdEFGH1234",
    ),
    ("$2b$12$EixZaYVK1fsbw1ZfbX3OXePaWxn96p36WQoeG6Lruj3vjPGga31lW", "EixZaYVK1fsbw1ZfbX3OXe"),
    ("Cookie: sessionid=abc123def456; x=y", "abc123def456"),
    ("**Password:** hunter2", "hunter2"),
    ("the password is `hunter`", "hunter"),
    ("password:\n  hunter2", "hunter2"),
    ("Authorization: token 0a1b2c3d4e5f", "0a1b2c3d4e5f"),
    ("AWS key AKIAIOSF\nODNN7EXAMPLE is it", "ODNN7EXAMPLE"),
    ("X-Api-Key: 9f8e7d6c5b4a", "9f8e7d6c5b4a"),
    ("la parola d'ordine è Roma1960!", "Roma1960!"),
    ("https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX", "XXXXXXXXXXXXXXXXXXXXXXXX"),
    ("telegram 123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw1", "AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw1"),
    ("login: bob / pass: Zebra99", "Zebra99"),
    ("şifrem: kaplan42", "kaplan42"),
    ("मेरा पासवर्ड Sitara99 है", "Sitara99"),
]

ORDINARY = [
    "Run 2f1d7c1e-0c54-4b7e-9d6c-0a3f0a9c1e55 failed; commit 9fceb02d0ae598e95dc970b74767f19372d61af8 broke it.",
    "Use finance.gold, not finance.silver_v2, for revenue. Mail ana.lopez@example.com by 2024-05-01 10:30.",
    "The password reset flow is broken again; the password is required and must be at least 12 characters.",
    "We need 128k tokens of context; max_tokens=2048, prompt_tokens: 512, token_count=42, the token limit is 8192.",
    "The secret to good coffee is patience. Our secret santa is on 2024-12-20.",
    "The primary key is order_id and the partition key is event_date_2024.",
    "def login(user: str, password: str) -> Token: return check(user, password)",
    'token = tokens[0]; password = request.form["password"]; secret = client.get_secret("prod/db")',
    "password=${DB_PASSWORD} token={{ token }} api_key=<your-key> secret=***",
    "The order number is 1234567890123 and the phone is +34 600 123 456. Version 1.2.3, port 5432, 10.0.0.1.",
    "La contraseña es obligatoria. El flujo de restablecimiento de contraseña falla. La clave es la paciencia.",
    "Das Passwort ist falsch. Der Schlüssel zum Erfolg ist Geduld. Das Passwort muss 8 Zeichen haben.",
    "Le mot de passe est obligatoire. La clé du succès est la patience.",
    "密码错误，请重试。密码是必填项。关键是要按时交付。我住在上海,喜欢喝茶。",
    "كلمة المرور مطلوبة. أعمل في الرياض كل يوم أحد.",
    "Пароль обязателен. Ключ к успеху это терпение. Пароль истёк.",
    "パスワードは必須です。鍵は机の上にあります。",
    "The bearer of this letter is my friend. Bearer responsibilities are listed below.",
    "I pass the ball; tests pass: 12 of 12. first_pass=10. We passed 2024 audits. Please pin the tab.",
    "See https://example.com/a/b?page=2&sort=asc and http://localhost:8080/x@y and docs at https://registry:4873/@scope/pkg.",
    "My wifi is slow; the WiFi password page shows a PostgreSQL error. OAuth2 token refresh, SHA256, base64.",
    "Ticket ABC-1234, isbn 978-3-16-148410-0, sku 4000-1234-5678.",
    "The tokenizer is cl100k_base; secretary Anna22 joined; the passenger list has 30 people.",
    "Password policy: minimum length 12. Password manager: 1Password. Token type: bearer.",
    "What is the token for? The API key is stored in Vault. Keep the secret in AWS Secrets Manager.",
    "sklearn task-based risk-adjusted-scores-for-2024 sk-learn is fine.",
    "The access key is in the drawer on floor 3. Access token expires at 10:30 on 2024-05-01.",
]


@pytest.mark.parametrize(("text", "secret"), PLANTED)
def test_a_planted_secret_is_gone(text: str, secret: str) -> None:
    redacted = redact(text)

    assert secret not in redacted
    assert "[redacted: " in redacted


@pytest.mark.parametrize(("text", "secret"), PLANTED)
def test_a_secret_beside_scripts_without_spaces_is_gone(text: str, secret: str) -> None:
    assert secret not in redact(f"请记住{text}。谢谢")
    assert secret not in redact(f"تذكر {text}\nشكرا")


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_is_unchanged(text: str) -> None:
    assert redact(text) == text


def test_all_ordinary_text_together_is_unchanged() -> None:
    text = "\n".join(ORDINARY)

    assert redact(text) == text


def test_what_surrounds_a_secret_is_kept() -> None:
    assert redact("db: postgres://app:s3cr3t@db.internal:5432/x ok") == (
        "db: postgres://app:[redacted: connection password]@db.internal:5432/x ok"
    )
    assert redact("我的密码是hunter2请记住") == "我的密码是[redacted: password]请记住"
    assert redact('{"password": "letmein", "n": 1}') == '{"password": "[redacted: password]", "n": 1}'
    assert redact("Server=db;Pwd=Str0ng!Pass;Database=x") == "Server=db;Pwd=[redacted: password];Database=x"


def test_a_private_key_goes_as_a_whole() -> None:
    body = "\n".join(["MIIEpAIBAAKCAQEA7bq1x9Z0kQ+/abcdefghijklmnop"] * 5)
    key = f"-----BEGIN OPENSSH PRIVATE KEY-----\n{body}\n-----END OPENSSH PRIVATE KEY-----"

    assert redact(f"here:\n{key}\nthanks") == "here:\n[redacted: private key]\nthanks"
    assert redact(f"here:\n{key[:150]}\nthanks a lot") == "here:\n[redacted: private key]\nthanks a lot"
    assert redact("keys: " + key.replace("\n", "\\n") + " end") == "keys: [redacted: private key] end"


def test_a_secret_cut_by_a_line_break_is_gone_on_both_lines() -> None:
    assert redact("token ghp_16C7e42F292c\n6912E7710c838347Ae178B4a\nok") == "token [redacted: secret]\nok"
    assert redact("key 8f3kJ2mQ9xLp0Zr7Tn5Vw1\n9Zk3vT8qLm\nok") == "key 8f3kJ2mQ9xLp0Zr7Tn5Vw1\n9Zk3vT8qLm\nok"
    assert redact("api key 8f3kJ2mQ9xLp0Zr7Tn5Vw1\n9Zk3vT8qLm\nok") == "api key [redacted: secret]\nok"


def test_secrets_across_turns_are_gone() -> None:
    assert redact_many(["What is the admin password?", "hunter2", "thanks"]) == [
        "What is the admin password?",
        "[redacted: password]",
        "thanks",
    ]
    halves = redact_many(["my token: ghp_16C7e42F292c", "6912E7710c838347Ae178B4a there", "bye"])
    assert "16C7e42F292c" not in halves[0]
    assert halves[1].endswith(" there")
    assert "6912E7710c838347Ae178B4a" not in halves[1]
    assert halves[2] == "bye"


def test_turns_without_secrets_are_unchanged_together() -> None:
    assert redact_many(ORDINARY) == ORDINARY
    assert redact_many([]) == []
    assert redact_many(["", "", "x"]) == ["", "", "x"]


def test_json_is_redacted_by_key_and_by_text() -> None:
    value = {
        "user": "bob",
        "password": "x",
        "clientSecret": ["abc", {"deep": "y"}],
        "max_tokens": 2048,
        "tokens": 12,
        "enabled": True,
        "api_key": None,
        "env": [{"name": "DB_PASSWORD", "value": "zz"}, {"name": "PORT", "value": "80"}],
        "note": "my password is hunter2",
    }

    assert redact_json(value) == {
        "user": "bob",
        "password": "[redacted: secret]",
        "clientSecret": ["[redacted: secret]", {"deep": "[redacted: secret]"}],
        "max_tokens": 2048,
        "tokens": 12,
        "enabled": True,
        "api_key": None,
        "env": [{"name": "DB_PASSWORD", "value": "[redacted: secret]"}, {"name": "PORT", "value": "80"}],
        "note": "my password is [redacted: password]",
    }
    assert redact_json(redact_json(value)) == redact_json(value)


def test_found_spans_are_ordered_and_apart() -> None:
    text = "\n".join(text for text, _ in PLANTED)
    found = find_secrets(text)

    assert all(0 <= f.start < f.end <= len(text) for f in found)
    assert all(a.end <= b.start for a, b in pairwise(found))
    assert len(found) >= 40


FRAGMENTS = st.sampled_from(
    [text for text, _ in PLANTED]
    + [secret for _, secret in PLANTED]
    + ORDINARY
    + [
        "password",
        "token:",
        " is ",
        "=",
        "\n",
        '"',
        "密码",
        "[redacted: password]",
        "[redacted: ",
        "]",
        "sk-",
        "://",
        "@",
        ":",
    ]
)


@given(st.lists(FRAGMENTS | st.text(max_size=8), max_size=8).map("".join))
def test_redacting_twice_is_redacting_once(text: str) -> None:
    once = redact(text)

    assert redact(once) == once


@given(st.lists(st.lists(FRAGMENTS, max_size=3).map("".join), max_size=4))
def test_redacting_turns_twice_is_redacting_them_once(texts: list[str]) -> None:
    once = redact_many(texts)

    assert len(once) == len(texts)
    assert redact_many(once) == once


LONG = {
    "prose": "the quick brown fox resets a password and the token limit is 8192 ",
    "naming words": "password for ab is ",
    "token starts": "sk-",
    "urls": "://a:",
    "jwt starts": "-eyJaaaaaaaaaa",
    "digits": "4 ",
    "key blocks": "-----BEGIN PRIVATE KEY-----",
    "blanks": "password: " + " " * 1000,
    "one word": "a",
    "base64": "Ab1+/x9Z",
    "cut lines": "token sk-ab1\n",
}


@pytest.mark.parametrize("name", sorted(LONG))
def test_long_text_costs_linear_time(name: str) -> None:
    """Eight times the text may cost about eight times the time; quadratic would be sixty-four."""

    def seconds(size: int) -> float:
        text = (LONG[name] * (size // len(LONG[name]) + 1))[:size]
        best = 9e9
        for _ in range(2):
            start = time.process_time()
            redact(text)
            best = min(best, time.process_time() - start)
        return best

    redact("token")  # loads the detectors
    assert seconds(120_000) < max(0.15, 24 * seconds(15_000))
