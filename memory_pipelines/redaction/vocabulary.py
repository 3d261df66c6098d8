"""The words of redaction, in several languages: names of secrets, and words that only look like one."""

import unicodedata


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


PASSWORD = (
    *("password", "passwd", "passcode", "passphrase", "pass phrase", "pwd", "pass", "pw"),
    *("passwort", "kennwort", "wachtwoord", "lösenord", "adgangskode", "salasana"),
    *("contraseña", "contrasena", "senha", "palavra-passe", "mot de passe", "mdp", "parola", "parola d'ordine"),
    *("hasło", "heslo", "jelszó", "пароль", "пароля", "паролем", "κωδικός", "şifre", "şifrem", "şifremiz"),
    *("mật khẩu", "kata sandi", "पासवर्ड", "รหัสผ่าน", "密码", "密碼", "口令", "パスワード", "비밀번호", "암호"),
    *("كلمة المرور", "كلمة مرور", "كلمة السر", "كلمة سر", "رمز عبور", "סיסמה", "סיסמא"),
)
"""Values of these may be plain words."""

SECRET = (
    *("token", "secret", "credential", "api key", "api_key", "api-key", "apikey", "access key", "access_key"),
    *("access-key", "accesskey", "account key", "account_key", "accountkey", "auth key", "auth_key", "authkey"),
    *("private key", "private_key", "secret key", "signing key", "signing_key", "encryption key", "encryption_key"),
    *("license key", "license_key", "master key", "master_key", "service_key", "client_key", "db_key", "webhook key"),
    *("clave", "llave", "schlüssel", "clé", "chave", "chiave", "jeton", "ключ", "токен", "секрет", "密钥", "密鑰"),
    *("秘钥", "令牌", "トークン", "シークレット", "apiキー", "秘密鍵", "토큰", "api 키", "مفتاح", "رمز الوصول"),
)
"""Values of these are made by machines; the words have other meanings too."""

PIN = (
    *("pin", "pin code", "otp", "verification code", "security code", "one-time code", "2fa code", "cvv", "cvc"),
    *("código de verificación", "código de seguridad", "clave de acceso", "geheimzahl", "пин-код", "пин", "验证码"),
    *("驗證碼", "暗証番号", "인증번호", "الرقم السري", "رمز التحقق"),
)
"""Values of these are a few digits."""

PHRASE = ("seed phrase", "recovery phrase", "passphrase", "mnemonic", "frase semilla", "助记词")
"""Values of these are several words."""

SHORT = frozenset(("pass", "pw", "pwd", "pin", "otp", "cvv", "cvc", "mdp", "clé", "пин"))
"""Names that are also parts of other words."""


def _forms(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted({form for word in words for form in (word, unicodedata.normalize("NFD", word))}))


NAMES = tuple(
    (word, kind)
    for kind, words in (("password", PASSWORD), ("secret", SECRET), ("pin", PIN), ("passphrase", PHRASE))
    for word in _forms(words)
)
"""Every name, lower case, composed and decomposed, with the kind of what it names."""

FOR = (
    "for|to|of|on|in|at|del|de|du|da|do|di|para|por|en|pour|für|von|vom|zum|am|im|voor|van|от|для|к|до|dla|na|"
    "الخاصة|في|لـ"
)
IS = "is|was|will be|es|era|será|ist|war|lautet|est|était|è|é|jest|to|ár|är|on|это|является|هي|هو"
AS = _set("is was as es como ist als est comme é è как")

STOP = _set(
    "a an and the this that it is not no none null nil true false undefined str string bytes int any optional "
    "required wrong incorrect correct expired invalid valid stored saved hidden encrypted hashed needed missing "
    "empty blank weak rotated strong reset changed unknown confidential secret private public protected safe secure "
    "compromised leaked shared below above here there too so very now same different gone lost ready fine ok okay "
    "set unset yours mine mandatory forbidden disabled enabled case-sensitive n/a tbd todo what who where "
    "unavailable unchanged accepted rejected denied password token secret key value redacted masked placeholder "
    "incorrecta incorrecto correcta obligatoria requerida necesaria errónea segura débil secreta nueva una un la el mi "
    "falsch richtig erforderlich abgelaufen ungültig geheim sicher nötig ein eine das der die nicht "
    "faux requis obligatoire expiré invalide une le pas errata obrigatória incorreta "
    "неверный обязателен истёк истек нужен"
)
"""What a sentence says of a password."""

COMMON = _set(
    "oauth2 sha1 sha256 sha512 md5 base64 base32 utf8 utf-8 utf16 argon2 argon2id bcrypt pbkdf2 ipv4 ipv6 x509 rs256 "
    "hs256 es256 aes256 aes-256 1password oauth2.0 http2 k8s s3 ec2 python3 node18 web3 log4j i18n l10n gpt4 gpt-4 "
    "iso27001 soc2 fido2 u2f tls1.2 tls1.3 saml2 saml2.0"
)
"""Letters and digits that are a term, not a secret."""
