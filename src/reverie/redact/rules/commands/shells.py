"""Secrets in single commands and in the lines of configuration files: a share, a vault, a tunnel, a directory."""

# ruff: noqa: E501 (a pattern is easier to read in one piece)

from __future__ import annotations

import re

from reverie.redact.rules.literals import is_argument
from reverie.redact.rules.names import key_strength
from reverie.redact.rules.plausible import is_password_like, is_random_value, is_technical
from reverie.redact.rules.rule import UUID, Rule, Span
from reverie.redact.rules.values import judge_named


def _is_secret(text: str) -> bool:
    return is_argument(text) and not is_technical(text) and (is_password_like(text) or is_random_value(text))


def _directive(data: bytes, match_start: int, start: int, end: int) -> Span | None:
    """Find the value of `bindpw ...`: a password's name, a blank, and the value up to the end of the line."""
    found = re.search(rb"([A-Za-z0-9_.\-]+)[ \t]+[\"']?\Z", data[match_start:start])
    key = found.group(1).decode("ascii") if found else ""
    value = data[start:end].decode("utf-8", "replace")
    if key.lower() in _WORDS or key_strength(key) != "password" or not any(c.isdigit() for c in value):
        return None
    return (start, end) if is_argument(value) and judge_named(value, "password") else None


_WORDS = frozenset({"password", "passwords", "passphrase", "passwd", "pass", "bypass"})

RULES = (
    Rule(
        "shell-secret",
        r"\b(?i:net use)[ ][^\n]{0,120}?(?i:/user:)[^\s]{1,80}[ ][\"']?([^\s\"'/][^\s\"']{3,100})"
        r"|\bvault[ ](?:operator[ ](?:unseal|rekey|generate-root)|unseal|login)(?:[ ]-[^\s]{1,80}){0,3}[ ][\"']?([A-Za-z0-9+/=.]{20,256})"
        r"|(?i:key|psk|passw[a-z]{0,6}|secret|token)[ =]<\((?:echo|printf)[ ](?:-n[ ])?[\"']?([^\s\"'$)]{6,256})"
        r"|\b(?:kinit|passwd|sudo|cryptsetup|gpg|su|login|ssh-add|mysql|psql)\b[^\n|]{0,80}?<<<[ ]?[\"']?([^\s\"'$]{5,128})"
        r"|\bopenssl[ ](?:enc|aes[a-z0-9-]{3,12}|des3)\b[^\n|]{0,160}?[ ]-[kK][ ][\"']?([^\s\"'\-$][^\s\"']{3,128})"
        r"|\becho[ ](?:-n[ ])?[\"'][A-Za-z0-9_.@\-]{1,64}:([^\s\"'$]{5,128})[\"'][ ]?\|[ ]?base64"
        r"|\becho[ ](?:-n[ ])?[\"']?([^\s\"'$|]{5,128})[\"']?[ ]?\|[ ]?(?:sudo )?(?:passwd|kinit)\b"
        r"|(?i:assword|passphrase)[^\n]{0,40}?\bsend(?:line)?(?:[ ]--)?[ (]{1,2}[\"'{]([^\s\"'$]{5,128}?)(?:\\[rn]){0,2}[\"'}]"
        r"|(?m:^|[ \t])[^\s:]{0,100}[ ]?:[ ]?(?:PSK|XAUTH|EAP|NTLM|RSA|ECDSA|PKCS8|P12)[ ](?:[^\s\"]{1,80}[ ])?\\?\"([^\"\n\\]{5,128})\\?\""
        r"|\bBUNDLE_[A-Z0-9_]{2,80}__[A-Z0-9]{2,20}[\"']?[ ]{0,2}[:=][ ]{0,2}[\"']?([^\s\"':]{1,64}:[^\s\"':/$]{6,128})"
        r"|\bCURLOPT_(?:PROXY)?USERPWD[ ]?,[ ]?[\"'][^\"':\n]{0,64}:([^\"'\n]{4,128})[\"']"
        r"|\brabbitmqctl[ ][^\n|]{0,60}?(?:add_user|change_password|authenticate_user)[ ][\"']?[^\s\"']{1,64}[\"']?[ ][\"']?([^\s\"'$\-][^\s\"']{4,128})"
        r"|--(?:src-|dest-)?creds[ =][\"']?[^\s\"':]{1,64}:[\"']?([^\s\"'$]{5,256})"
        r"|\bcreateUser[ ](?:-e[ ][^\s]{1,64}[ ])?[^\s]{1,64}[ ](?:MD5|SHA(?:-?[0-9]{3})?)[ ][\"']?([^\s\"']{8,128})"
        r"|\bcloudflared(?:\.exe)?[ ]service install[ ][\"']?([A-Za-z0-9_=+/\-]{40,1000})"
        rf"|(?i:\b(?:vault_|approle_)?secret[_-]?id)[\"']?[ \t]{{0,3}}[:=][ \t]{{0,3}}[\"']?({UUID})\b",
        trigger=r"(?i:/user:)|\bvault[ ](?:operator|unseal|login)[ ]|<\((?:echo|printf)[ ]|<<<[ ]?[\"']?[^\s\"'$]{5}|\bopenssl[ ][^\n]*[ ]-[kK][ ]|\|[ ]?(?:base64|(?:sudo )?(?:passwd|kinit))|\bsend(?:line)?(?:[ ]--)?[ (]{1,2}[\"'{]|:[ ]?(?:PSK|XAUTH|EAP|NTLM|RSA|ECDSA|PKCS8|P12)[ ]|\bBUNDLE_[A-Z0-9_]+__|USERPWD[ ]?,|\brabbitmqctl[ ]|--(?:src-|dest-)?creds[ =]|\bcreateUser[ ]|\bservice install[ ][\"']?[A-Za-z0-9_=+/\-]{20}|(?i:secret[_-]?id)[\"']?[ \t]*[:=][ \t]*[\"']?[0-9a-fA-F]{8}-",
        check=_is_secret,
        examples=(
            r"net use Z: \\fs01\share /user:CORP\ci ⟨w14⟩7",
            "vault operator unseal ⟨b44⟩",
            "wg set wg0 private-key <(echo ⟨b43⟩=)",
            'kinit bob <<< "Zebra.Maple77"',
            "rabbitmqctl add_user bob 'Maple!Horse8x'",
            "skopeo copy --src-creds bob:'Maple!Horse8x' docker://host/a dir:/tmp/a",
            'createUser bob SHA "Maple!Horse8x" AES',
            "cloudflared service install eyJhIjoi⟨w120⟩",
            "openssl enc -aes-256-cbc -k Zebra.Maple77 -in x",
            'echo -n "bob:Zebra.Maple77" | base64',
            "echo 'Zebra.Maple77' | passwd --stdin bob",
            r'expect "assword:" { send "Zebra.Maple77\r" }',
            '10.1.1.1 10.2.2.2 : PSK "⟨b43⟩="',
            ': XAUTH bob "⟨w12⟩7"',
            "BUNDLE_ENTERPRISE__CONTRIBSYS__COM=⟨h8⟩:⟨h8⟩",
            'curl_setopt($ch, CURLOPT_USERPWD, "bob:Zebra.Maple77");',
            "role_id=x secret_id=⟨h8⟩-⟨h4⟩-⟨h4⟩-⟨h4⟩-⟨h12⟩",
        ),
        near_misses=(
            r"net use Z: \\fs01\share /user:CORP\ci /persistent:yes",
            "vault operator unseal -migrate",
            "vault login -method=oidc",
            "wg set wg0 private-key <(echo $KEY)",
            "<UserSecretsId>⟨h8⟩-⟨h4⟩-⟨h4⟩-⟨h4⟩-⟨h12⟩</UserSecretsId>",
            'send "show version\\r"',
            "rabbitmqctl add_user bob $PASSWORD",
            "skopeo inspect --creds $USER:$PASSWORD docker://host/a",
            "cloudflared service install --help",
            "createUser bob in the admin console",
        ),
    ),
    Rule(
        "directive-password",
        r"(?:(?m:^)|[\"'`|]|\\n)[ \t]{0,12}(?:set[ ])?[A-Za-z0-9_.\-]{1,40}(?i:pw|psk|password|passwd|passphrase|_pass)[ \t]{1,12}[\"']?([^\s\"'`<>$]{5,128})[\"']?[ \t]{0,3}(?m:$|[\"'`\\])",
        trigger=r"(?i:pw|psk|password|passwd|passphrase|_pass)[ \t]+[\"']?[^\s\"'`<>$]",
        refine=_directive,
        generic=True,
        examples=(
            "bindpw ⟨w8⟩.⟨w8⟩7",
            "  AuthLDAPBindPassword Zebra.Maple77",
            '{"content":"smtp_password Zebra.Maple77"}',
        ),
        near_misses=("bindpw /etc/ldap.secret", "the bypass route66x", "auth_user_pass_verify script1.sh"),
    ),
)
