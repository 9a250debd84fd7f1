"""Tokenizes conversations, for `wlb data build --messages`, as apply_chat_template(tokenize=True) of transformers does, and finds
the tokens of their answers, as its return_assistant_tokens_mask does.

A template is run in the sandbox of Jinja, since it comes from whoever published the tokenizer. An answer is what {% generation %}
encloses, where the template has that tag. Else it is what a message of the assistant adds to the text of the messages before it, rendered
with the generation prompt: a conversation is refused where these texts are not how its own text begins.
"""

import datetime
import hashlib
import json
import os

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox

ANSWER = 1 << 31  # is added to the ids of an answer's tokens
SPECIAL_TOKENS = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")


class Refused(ValueError):
    """Why a conversation, or the template, cannot be used."""


class Generation(jinja2.ext.Extension):
    """The tag {% generation %}."""

    tags = {"generation"}

    def __init__(self, environment):
        super().__init__(environment)
        environment.extend(has_generation=False, rendered=[], answers=[])

    def parse(self, parser):
        self.environment.has_generation = True
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_take_answer"), [], [], body).set_lineno(line)

    def _take_answer(self, caller):
        answer = caller()
        begin = sum(map(len, self.environment.rendered))
        self.environment.answers.append((begin, begin + len(answer)))
        return answer


def raise_exception(message):
    raise jinja2.TemplateError(message)


def strftime_now(form):
    """The time of the build; where SOURCE_DATE_EPOCH is set, that time: then equal inputs make equal datasets."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    now = datetime.datetime.now() if epoch is None else datetime.datetime.fromtimestamp(int(epoch), datetime.timezone.utc)
    return now.strftime(form)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


class ChatTemplate:
    def __init__(self, source, special_tokens):
        environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
        )
        environment.filters["tojson"] = tojson
        environment.globals.update(raise_exception=raise_exception, strftime_now=strftime_now)
        try:
            self._template = environment.from_string(source)
        except jinja2.TemplateError as error:
            raise Refused(f"the chat template is not one that Jinja {jinja2.__version__} reads: {error}") from error
        self._environment = environment
        self._special_tokens = special_tokens

    def _render(self, messages, tools, add_generation_prompt=False):
        """The text, and where in it {% generation %} begins and ends."""
        rendered, answers = self._environment.rendered, self._environment.answers
        rendered.clear()
        answers.clear()
        try:
            for piece in self._template.generate(
                messages=messages, tools=tools, documents=None, add_generation_prompt=add_generation_prompt, **self._special_tokens
            ):
                rendered.append(piece)
        except Exception as error:  # a template fails as it likes, with what its expressions raise or with raise_exception
            raise Refused(f"the chat template fails: {type(error).__name__}: {error}") from error
        return "".join(rendered), list(answers)

    def _answers_by_prefixes(self, text, messages, tools):
        answers = []
        for number, message in enumerate(messages):
            if message["role"] != "assistant":
                continue
            before, _ = self._render(messages[:number], tools, add_generation_prompt=True)
            with_it, _ = self._render(messages[: number + 1], tools)
            if not (with_it.startswith(before) and text.startswith(with_it)):
                raise Refused(
                    f"the chat template renders message {number + 1} otherwise where others follow it, so that the answer in it is not "
                    "found: enclose answers by {% generation %} in a template of your own (--chat-template)"
                )
            answers.append((len(before), len(with_it)))
        return answers

    def render(self, messages, tools):
        """The text of a conversation, and where in it each answer begins and ends."""
        text, answers = self._render(messages, tools)
        return text, answers if self._environment.has_generation else self._answers_by_prefixes(text, messages, tools)


def mark_answers(encoding, answers):
    """The ids, with ANSWER added to those of tokens that have a part of an answer in them."""
    ids, at = [], 0
    for token, (begin, end) in zip(encoding.ids, encoding.offsets):
        while at < len(answers) and answers[at][1] <= begin:
            at += 1
        ids.append(token + ANSWER if at < len(answers) and end > answers[at][0] else token)
    return ids


def check_messages(messages):
    if not isinstance(messages, list) or not messages:
        raise Refused("a conversation is a list of messages, of at least one")
    for number, message in enumerate(messages):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise Refused(f"message {number + 1} must be an object with a text 'role'")


class Conversations:
    """Encodes conversations by a tokenizer of the package tokenizers. `templates` are sources by name; `key` is the field of a line that
    has the messages."""

    def __init__(self, tokenizer, templates, special_tokens, key):
        self._tokenizer = tokenizer
        self._templates = {name: ChatTemplate(source, special_tokens) for name, source in templates.items()}
        self._key = key

    def _encode(self, line):
        try:
            conversation = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise Refused(f"is no JSON: {error}") from error
        messages, tools = conversation[self._key], conversation.get("tools")
        check_messages(messages)
        name = "tool_use" if tools is not None and "tool_use" in self._templates else "default"
        text, answers = self._templates[name].render(messages, tools)
        try:
            encoding = self._tokenizer.encode(text, add_special_tokens=False)
        except Exception as error:  # a text that is no Unicode; the library raises nothing more exact
            raise Refused(f"the rendered text cannot be tokenized: {error}") from error
        ids = mark_answers(encoding, answers)
        if not any(token >= ANSWER for token in ids):
            raise Refused("has no token of an answer: there is no text of the assistant")
        return ids

    def encode(self, texts):
        """The ids of each text, none for one that is refused, and why the first of these is. A text is where it was read, NUL, and the
        line."""
        ids, reason = [], ""
        for text in texts:
            place, _, line = text.partition("\0")
            try:
                ids.append(self._encode(line))
            except Refused as error:
                ids.append([])
                reason = reason or f"{place} {error}"
        return ids, reason


def named_templates(value):
    """Those of `chat_template` in tokenizer_config.json: one text, or several with names."""
    if isinstance(value, str):
        return {"default": value}
    if isinstance(value, list) and all(isinstance(one, dict) for one in value):
        named = {one.get("name"): one.get("template") for one in value}
        if "default" in named and all(isinstance(text, str) for item in named.items() for text in item):
            return named
    raise Refused("must be a text, or a list of {name, template} of which one is named default")


def find_templates(folder, config, file):
    """The templates by their names: of `file`, where one is given, else those of the tokenizer's folder, as transformers finds them."""
    beside = folder / "chat_template.jinja"
    if file is None and beside.is_file():
        file = beside
    try:
        if file is not None:
            return {"default": file.read_text(encoding="utf-8")}
        if "chat_template" in config:
            return named_templates(config["chat_template"])
    except (OSError, ValueError) as error:
        raise Refused(f"{file or 'chat_template in tokenizer_config.json'}: {error}") from error
    raise Refused(
        f"{folder} has no chat template, neither chat_template.jinja nor chat_template in tokenizer_config.json: name one by --chat-template"
    )


def digest(templates):
    """Of the templates and their names; of one template alone that of its file."""
    text = templates["default"] if len(templates) == 1 else json.dumps(sorted(templates.items()))
    return hashlib.sha256(text.encode("utf-8", errors="replace")).hexdigest()
