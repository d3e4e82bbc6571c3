"""What transformers' own renderer makes of conversations.json with each template of ../shared/data/chat-templates.

    pip install transformers jinja2 && python tests/data/templates/make.py [--texts FOLDER]

Writes outcomes.tsv, a line per template: name, SHA-256 of its text, and an outcome per conversation: the first 32
hex digits of the SHA-256 of what was rendered, "!" and those of the message of a raise_exception, or "-" for any
other failure. Where a template fails, it is told the request in other ways, as mettle does (TELLINGS below), and last
in an environment without two of transformers' restrictions (lenient). Writes expressions.json too: what the templates
of expressions.txt (ours; "§" stands between two) render to, null where they fail. --texts writes the texts themselves
elsewhere, for looking into a difference. Last run with transformers 5.24.0 and jinja2 3.1.6.
"""

import contextlib
import hashlib
import inspect
import json
import pathlib
import re
import sys

import jinja2
import jinja2.sandbox
from transformers.tokenization_utils_base import PreTrainedTokenizerBase
from transformers.utils import chat_template_utils

HERE = pathlib.Path(__file__).parent
TEMPLATES = HERE.parents[3] / "shared" / "data" / "chat-templates"
TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}


class Clock(chat_template_utils.datetime):
    """strftime_now's clock, which stands still."""

    @classmethod
    def now(cls, tz=None):
        return cls(2026, 2, 3, 4, 5, 6)


def thinking_variables(name, thinking):
    """What each template reads, found by reading it; variables that it does not read do no harm."""
    enabled, effort, budget = thinking.get("enabled"), thinking.get("effort"), thinking.get("budget")
    variables = {}
    if effort is not None:
        enabled = True if enabled is None else enabled
        variables |= {"reasoning_effort": effort, "thinking_effort": effort, "reasoning_strength": effort}
    if enabled is not None:
        variables |= {"enable_thinking": enabled, "thinking": enabled, "reasoning": enabled}
        variables["thinking_mode"] = "enabled" if enabled else "disabled"
    if enabled is False:
        variables["thinking_budget"] = 0
        variables["reasoning_effort"] = "no_think" if name == "tencent-Hy3" else "minimal"
        if name in ("openai-gpt-oss-120b", "deepseek-ai-DeepSeek-V4", "deepseek-ai-DeepSeek-V4-Flash-0731"):
            del variables["reasoning_effort"]
    if enabled and effort is None and name == "tencent-Hy3":
        variables["reasoning_effort"] = "high"
    if budget is not None:
        variables["thinking_budget"] = budget
    return variables


def message_of(source, template):
    role = source["role"]
    if role == "developer" and "developer" not in template:
        role = "system"
    message = {"role": role, "content": source["content"]}
    if "name" in source:
        message["name"] = source["name"]
    if "reasoning" in source:
        message["reasoning_content"] = source["reasoning"]
        for alias in ("reasoning", "thought"):
            if re.search(rf"(\.|\[?['\"]){alias}\b(?!_)", template):
                message[alias] = source["reasoning"]
    if "tool_calls" in source:
        message["tool_calls"] = [
            {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": call["arguments"]}}
            for call in source["tool_calls"]
        ]
    if "tool_call_id" in source:
        message["tool_call_id"] = source["tool_call_id"]
    return message


class Tokenizer(PreTrainedTokenizerBase):
    """No vocabulary, only apply_chat_template."""

    def __init__(self):
        super().__init__(**TOKENS)


# Whether what a tool's definition leaves out is said to be empty; whether arguments are JSON text.
TELLINGS = [(False, False), (True, False), (False, True), (True, True)]


def described(schema):
    for member in schema.get("properties", {}).values():
        if isinstance(member, dict):
            member.setdefault("description", "")
            described(member)
    if isinstance(schema.get("items"), dict):
        described(schema["items"])


def completed(tool):
    tool = json.loads(json.dumps(tool))
    tool.setdefault("description", "")
    parameters = tool.setdefault("parameters", {})
    parameters.setdefault("type", "object")
    parameters.setdefault("properties", {})
    described(parameters)
    return tool


@contextlib.contextmanager
def lenient():
    """Lists may be changed, and what jinja2's map gives has JSON."""

    class Environment(jinja2.sandbox.SandboxedEnvironment):
        def from_string(self, source, *args, **kwargs):
            tojson = self.filters["tojson"]
            listed = lambda value: list(value) if inspect.isgenerator(value) else value
            self.filters["tojson"] = lambda value, *args, **kwargs: tojson(listed(value), *args, **kwargs)
            return super().from_string(source, *args, **kwargs)

    strict = chat_template_utils.ImmutableSandboxedEnvironment
    chat_template_utils.ImmutableSandboxedEnvironment = Environment
    chat_template_utils._compile_jinja_template.cache_clear()
    yield
    chat_template_utils.ImmutableSandboxedEnvironment = strict
    chat_template_utils._compile_jinja_template.cache_clear()


def render(name, template, conversation, telling):
    complete, text_arguments = telling
    messages = [message_of(message, template) for message in conversation["messages"]]
    for call in [call for message in messages for call in message.get("tool_calls", [])]:
        if text_arguments:
            call["function"]["arguments"] = json.dumps(call["function"]["arguments"], ensure_ascii=False)
    thinking = conversation.get("thinking", {})
    if name == "NVIDIA-Nemotron-Nano-v2" and "enabled" in thinking:
        user = next(message for message in reversed(messages) if message["role"] == "user")
        user["content"] += " /think" if thinking["enabled"] else " /no_think"
    definitions = [] if conversation.get("tool_choice") == "none" else conversation.get("tools", [])
    shown = [completed(tool) if complete else tool for tool in definitions]
    tools = [{"type": "function", "function": tool} for tool in shown]
    continues = conversation.get("continue_final", False)
    variables = thinking_variables(name, thinking) | conversation.get("variables", {})
    if name == "fireworks-ai-llama-3-firefunction-v2":
        # Its model card's variables; the day is enough.
        functions = json.dumps(definitions, indent=4, ensure_ascii=False)
        variables = {"functions": functions, "datetime": Clock.now().strftime("%Y-%m-%d")} | variables
    return Tokenizer().apply_chat_template(
        messages,
        tools=tools or None,
        chat_template=template,
        tokenize=False,
        add_generation_prompt=not continues,
        continue_final_message=continues,
        **variables,
    )


def outcome(name, template, conversation):
    """The kind of outcome and its text."""
    first = None
    for environment in (contextlib.nullcontext, lenient):
        for telling in TELLINGS:
            with environment():
                kind, text = told(name, template, conversation, telling)
            if kind != "-":
                return kind, text
            first = first or (kind, text)
    return first


def told(name, template, conversation, telling):
    try:
        return "", render(name, template, conversation, telling)
    except jinja2.exceptions.TemplateRuntimeError as error:
        return "-", f"{type(error).__name__}: {error}"
    except jinja2.exceptions.TemplateError as error:
        raised = type(error) is jinja2.exceptions.TemplateError
        return ("!" if raised else "-"), str(error) if raised else f"{type(error).__name__}: {error}"
    except Exception as error:
        return "-", f"{type(error).__name__}: {error}"


def expression(source):
    try:
        return chat_template_utils._compile_jinja_template(source).render()
    except Exception as error:
        print(f"{source}: {type(error).__name__}: {error}")
        return None


def main():
    chat_template_utils.datetime = Clock
    texts = pathlib.Path(sys.argv[2]) if sys.argv[1:2] == ["--texts"] else None
    conversations = json.loads((HERE / "conversations.json").read_text())
    lines = ["template\tsha256\t" + "\t".join(conversation["name"] for conversation in conversations)]
    for path in sorted(TEMPLATES.glob("*.jinja")):
        source = path.read_bytes()
        row = [path.stem, hashlib.sha256(source).hexdigest()]
        for conversation in conversations:
            kind, text = outcome(path.stem, source.decode(), conversation)
            # A lone surrogate has no UTF-8; none is expected.
            digest = hashlib.sha256(text.encode()).hexdigest()[:32]
            row.append("-" if kind == "-" else kind + digest)
            if texts:
                folder = texts / path.stem
                folder.mkdir(parents=True, exist_ok=True)
                (folder / conversation["name"]).write_bytes((kind + text).encode())
        lines.append("\t".join(row))
    (HERE / "outcomes.tsv").write_text("\n".join(lines) + "\n")
    expressions = [expression(source) for source in (HERE / "expressions.txt").read_text().split("\n§\n")]
    (HERE / "expressions.json").write_text("[\n" + ",\n".join(map(json.dumps, expressions)) + "\n]\n")


if __name__ == "__main__":
    main()
