"""Model providers and the tools around them."""

from __future__ import annotations

from reverie.redact.entropy import looks_random, word_share
from reverie.redact.patterns.rule import UUID, Rule, token


def _key_like(text: str) -> bool:
    """Not the name of something: `sk-learn-model-selection-utils` has words where a key has noise."""
    tail = text.split("-", 1)[-1]
    return any(c.isdigit() for c in tail) and word_share(tail) <= 0.5


RULES = (
    Rule(
        "anthropic-key", token(r"sk-ant-[A-Za-z0-9_\-]{20,}"), examples=("sk-ant-api03-⟨u93⟩AA", "sk-ant-oat01-⟨u80⟩")
    ),
    Rule("openrouter-key", token(r"sk-or-(?:v1-)?[A-Za-z0-9]{32,}"), examples=("sk-or-v1-⟨h64⟩",)),
    Rule(
        "openai-key",
        token(
            r"sk-(?:proj|svcacct|admin|service|None)-[A-Za-z0-9_\-]{20,}|sk-[A-Za-z0-9]{16,24}T3BlbkFJ[A-Za-z0-9]{16,24}"
        ),
        examples=("sk-proj-⟨u120⟩", "sk-svcacct-⟨u100⟩", "sk-⟨w20⟩T3BlbkFJ⟨w20⟩"),
        near_misses=("sk-proj-name", "the sk-proj- prefix"),
    ),
    Rule("openai-session", token(r"sess-[A-Za-z0-9]{40,}\b"), examples=("sess-⟨w40⟩",)),
    Rule(
        "sk-key",
        token(r"sk-[A-Za-z0-9_\-]{16,}"),
        check=_key_like,
        examples=("sk-⟨w48⟩", "sk-⟨h32⟩", "sk-lf-⟨h8⟩-⟨h4⟩-⟨h4⟩-⟨h4⟩-⟨h12⟩"),
        near_misses=("sk-learn-model-selection-utils", "sk-your-api-key-goes-here", "sk-SK-language-pack-default"),
    ),
    Rule("groq-key", token(r"gsk_[A-Za-z0-9]{32,}"), examples=("gsk_⟨w52⟩",)),
    Rule(
        "huggingface-token",
        token(r"hf_[A-Za-z0-9]{30,}\b|api_org_[A-Za-z0-9]{30,}\b"),
        examples=("hf_⟨l34⟩", "api_org_⟨l34⟩"),
        near_misses=("hf_hub_download", "hf_model_name_or_path_to_load"),
    ),
    Rule("replicate-token", token(r"r8_[A-Za-z0-9]{36,}\b"), examples=("r8_⟨w37⟩",)),
    Rule("perplexity-key", token(r"pplx-[A-Za-z0-9]{32,}\b"), examples=("pplx-⟨w48⟩",)),
    Rule("xai-key", token(r"xai-[A-Za-z0-9]{40,}\b"), examples=("xai-⟨w80⟩",)),
    Rule("together-key", token(r"tgp_v1_[A-Za-z0-9_\-]{30,}"), examples=("tgp_v1_⟨u43⟩",)),
    Rule(
        "fireworks-key",
        token(r"(?:fw|fpk)_[A-Za-z0-9]{22,}\b"),
        check=looks_random,
        examples=("fw_⟨w24⟩",),
        near_misses=("fw_update_completed_successfully", "fw_configurationmanager"),
    ),
    Rule("elevenlabs-key", token(r"sk_[a-f0-9]{48}\b"), examples=("sk_⟨h48⟩",)),
    Rule("pinecone-key", token(r"pcsk_[A-Za-z0-9_]{40,}"), examples=("pcsk_⟨w6⟩_⟨w60⟩",)),
    Rule(
        "langsmith-key",
        token(r"lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}|ls__[a-f0-9]{32}\b"),
        examples=("lsv2_pt_⟨h32⟩_⟨h10⟩", "ls__⟨h32⟩"),
    ),
    Rule("wandb-key", token(r"wandb_v[0-9]_[A-Za-z0-9_\-]{30,}"), examples=("wandb_v1_⟨w60⟩",)),
    Rule("nvidia-key", token(r"nvapi-[A-Za-z0-9_\-]{40,}"), examples=("nvapi-⟨u64⟩",)),
    Rule("cerebras-key", token(r"csk-[a-z0-9]{32,}\b"), examples=("csk-⟨a48⟩",)),
    Rule("tavily-key", token(r"tvly-(?:dev-|prod-)?[A-Za-z0-9]{20,}\b"), examples=("tvly-dev-⟨w32⟩", "tvly-⟨w32⟩")),
    Rule("firecrawl-key", token(r"fc-[a-f0-9]{32}\b"), examples=("fc-⟨h32⟩",)),
    Rule("langfuse-key", token(rf"[sp]k-lf-{UUID}"), examples=("pk-lf-⟨h8⟩-⟨h4⟩-⟨h4⟩-⟨h4⟩-⟨h12⟩",)),
    Rule("voyage-key", token(r"pa-[A-Za-z0-9_\-]{40,}"), check=looks_random, examples=("pa-⟨w43⟩",)),
    Rule("jina-key", token(r"jina_[A-Za-z0-9_\-]{40,}"), check=looks_random, examples=("jina_⟨h32⟩⟨u28⟩",)),
    Rule("e2b-key", token(r"e2b_[a-f0-9]{40}\b"), examples=("e2b_⟨h40⟩",)),
    Rule("modal-token", token(r"a[ks]-[A-Za-z0-9]{22}\b"), check=looks_random, examples=("ak-⟨w22⟩", "as-⟨w22⟩")),
    Rule("llamacloud-key", token(r"llx-[A-Za-z0-9]{40,}\b"), examples=("llx-⟨w48⟩",)),
    Rule("mem0-key", token(r"m0-[A-Za-z0-9]{30,}\b"), examples=("m0-⟨w40⟩",)),
    Rule("apify-token", token(r"apify_api_[A-Za-z0-9]{30,}\b"), examples=("apify_api_⟨w36⟩",)),
    Rule("runpod-key", token(r"rpa_[A-Z0-9]{30,}[A-Za-z0-9]*\b"), examples=("rpa_⟨A46⟩",)),
    Rule("reverie-key", token(r"rvk_[A-Za-z0-9]+_[A-Za-z0-9_\-]{43}"), examples=("rvk_⟨a10⟩_⟨u43⟩",)),
)
