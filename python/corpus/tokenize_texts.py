"""Tokenizes the texts of `wlb data build --tokenizer`, which starts several of these processes.

    python3 tokenize_texts.py TOKENIZER [--eod-token TOKEN] [--bos-token TOKEN] [--messages KEY [--chat-template FILE]]

TOKENIZER is a tokenizer.json of Hugging Face, a tekken.json of Mistral, a model of SentencePiece, or a folder with one. Nothing is
downloaded, and no code of the folder runs.

Standard output begins with 4 bytes, their value the length of the JSON object that follows, which says what the tokenizer is. Then each
batch on standard input is answered. All numbers are uint32, little-endian:

    a batch    number of texts, the bytes of each, then all texts in UTF-8
    its reply  number of texts, the ids of each, then all ids
               with --messages then also the number of bytes of a text in UTF-8, and the text

With --messages each text is the place where it was read, NUL, and a JSON object with a conversation in field KEY (chat_template.py). Then
2^31 is added to the ids of the answers' tokens, a conversation that is refused has no ids, and the text of the reply says why the first
one is, empty where none is.

A batch is read whole before the first byte of its reply is written. Special tokens are not added. Invalid UTF-8 becomes U+FFFD.
Exit code 2, with the reason on standard error, where the tokenizer cannot be used.
"""

import argparse
import array
import base64
import hashlib
import json
import os
import re
import sys
from pathlib import Path

FILES = ("tokenizer.json", "tekken.json", "tokenizer.model")  # in a folder, the first of them that is there
CONFIG = "tokenizer_config.json"  # beside tokenizer.json: which token ends a text, and the chat template
LARGEST_REASON_BYTES = 500


def refuse(message):
    print(message, file=sys.stderr)
    sys.exit(2)


def import_or_refuse(name):
    try:
        return __import__(name)
    except ImportError as error:
        refuse(f"the tokenizer needs the package {name} ({error}): {sys.executable} -m pip install {name}; --python names another Python")


class HuggingFace:
    """A tokenizer.json."""

    def __init__(self, path, content):
        tokenizers = import_or_refuse("tokenizers")
        self.library = f"tokenizers {tokenizers.__version__}"
        try:
            self._tokenizer = tokenizers.Tokenizer.from_buffer(content)
        except Exception as error:  # the library raises nothing more exact
            refuse(f"{path}: is no tokenizer.json that {self.library} reads: {error}")
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._encode_batch = getattr(self._tokenizer, "encode_batch_fast", self._tokenizer.encode_batch)
        self.vocabulary = self._tokenizer.get_vocab_size(with_added_tokens=True)
        self.ids = 1 + max(self._tokenizer.get_vocab(with_added_tokens=True).values())
        self._folder = path.parent
        config_path = self._folder / CONFIG
        try:
            self._config = json.loads(config_path.read_text(encoding="utf-8")) if config_path.exists() else {}
        except (OSError, ValueError) as error:
            refuse(f"{config_path}: cannot be read: {error}")
        if not isinstance(self._config, dict):
            refuse(f"{config_path}: must be a JSON object")

    def id_of(self, token):
        return self._tokenizer.token_to_id(token)

    def _token(self, name):
        token = self._config.get(name)
        if isinstance(token, dict):
            token = token.get("content")
        return token if isinstance(token, str) else None

    def _special(self, name):
        token = self._token(name)
        return self.id_of(token) if token is not None else None

    def eod(self):
        return self._special("eos_token")

    def bos(self):
        return self._special("bos_token")

    def encode(self, texts):
        return [encoding.ids for encoding in self._encode_batch(texts, add_special_tokens=False)]

    def conversations(self, key, file):
        """What encodes conversations, and the facts of it."""
        jinja2 = import_or_refuse("jinja2")
        import chat_template

        named = {name: self._token(name) for name in chat_template.SPECIAL_TOKENS}
        try:
            templates = chat_template.find_templates(self._folder, self._config, file)
            special_tokens = {name: token for name, token in named.items() if token is not None}
            encoder = chat_template.Conversations(self._tokenizer, templates, special_tokens, key)
        except chat_template.Refused as error:
            refuse(error)
        return encoder, {"library": f"{self.library}, jinja2 {jinja2.__version__}", "chat_template": chat_template.digest(templates)}


class PlainTexts:
    """A tokenizer that finds no special tokens in a text."""

    def conversations(self, *_):
        refuse(
            "--messages needs a tokenizer.json, which finds the special tokens of a chat template in a text: save the tokenizer in that "
            "form, as transformers does with save_pretrained()"
        )


class Tekken(PlainTexts):
    """A tekken.json: a vocabulary of tiktoken, with the pattern that splits a text, whose ids follow those of the special tokens."""

    OLD_SPECIAL_TOKENS = ({"token_str": "<unk>", "rank": 0}, {"token_str": "<s>", "rank": 1}, {"token_str": "</s>", "rank": 2})

    def __init__(self, path, content):
        tiktoken = import_or_refuse("tiktoken")
        self.library = f"tiktoken {tiktoken.__version__}"
        try:
            config = content["config"]
            self._first = config["default_num_special_tokens"]
            self.vocabulary = self.ids = config["default_vocab_size"]
            plain = self.vocabulary - self._first  # a file has more of them, the rarest last
            ranks = {base64.b64decode(token["token_bytes"]): token["rank"] for token in content["vocab"][:plain]}
            self._ids = {token: self._first + rank for token, rank in ranks.items()}
            special = content.get("special_tokens") or self.OLD_SPECIAL_TOKENS
            self._ids.update((token["token_str"].encode(), token["rank"]) for token in special)
            self._model = tiktoken.Encoding(
                "tekken", pat_str=config["pattern"], mergeable_ranks=ranks, special_tokens={}, explicit_n_vocab=plain
            )
        except (AssertionError, AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
            refuse(f"{path}: is no tekken.json that {self.library} reads: {type(error).__name__}: {error}")

    def id_of(self, token):
        return self._ids.get(token.encode())

    def eod(self):
        return self.id_of("</s>")

    def bos(self):
        return self.id_of("<s>")

    def encode(self, texts):
        return [[self._first + rank for rank in self._model.encode_ordinary(text)] for text in texts]


class SentencePiece(PlainTexts):
    """A model of SentencePiece."""

    def __init__(self, path, content):
        sentencepiece = import_or_refuse("sentencepiece")
        self.library = f"sentencepiece {sentencepiece.__version__}"
        self._model = sentencepiece.SentencePieceProcessor()
        try:
            self._model.load_from_serialized_proto(content)
        except RuntimeError as error:
            refuse(f"{path}: is neither a tokenizer.json nor a model that {self.library} reads: {error}")
        self.vocabulary = self.ids = self._model.vocab_size()

    def id_of(self, token):
        found = self._model.piece_to_id(token)
        return found if self._model.id_to_piece(found) == token else None

    def eod(self):
        return self._model.eos_id() if self._model.eos_id() >= 0 else None

    def bos(self):
        return self._model.bos_id() if self._model.bos_id() >= 0 else None

    def encode(self, texts):
        return self._model.encode(texts, out_type=int, num_threads=1)


def find_file(path):
    if not path.is_dir():
        return path
    for name in FILES:
        if (path / name).is_file():
            return path / name
    refuse(f"{path}: has none of {', '.join(FILES)}: save it in one of these forms, as transformers does with save_pretrained()")


def read_tokenizer(path, content):
    """The format of the file is found from its content."""
    if re.match(rb"[0-9A-Za-z+/=]+ [0-9]+\r?\n", content):
        refuse(
            f"{path}: is a vocabulary of tiktoken, which does not say how a text is split: name the tokenizer.json of the same model, or "
            "make one by TikTokenConverter of transformers, which takes the pattern that the model's code has"
        )
    if content.lstrip()[:1] != b"{":
        return SentencePiece(path, content)
    try:
        members = json.loads(content)
    except (ValueError, RecursionError) as error:
        refuse(f"{path}: begins as JSON and is none: {error}")
    return Tekken(path, members) if isinstance(members.get("vocab"), list) else HuggingFace(path, content)


def load(path):
    """The tokenizer at `path` and what the dataset records of it."""
    path = find_file(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        refuse(f"{path}: cannot be read: {error.strerror}")
    tokenizer = read_tokenizer(path, content)
    facts = {
        "file": str(path.resolve()),
        "sha256": hashlib.sha256(content).hexdigest(),
        "library": tokenizer.library,
        "vocabulary": tokenizer.vocabulary,
        "ids": tokenizer.ids,
    }
    return tokenizer, facts


def named_or(tokenizer, token, default):
    """The id of the token that an option names, or that of the tokenizer."""
    if token is None:
        return default()
    found = tokenizer.id_of(token)
    if found is None:
        refuse(f"the token '{token}' is not in the vocabulary")
    return found


def read_exactly(stream, size):
    data = stream.read(size)
    if len(data) != size:
        sys.exit(0)  # the build has ended
    return data


def numbers(data=b""):
    values = array.array("I")
    values.frombytes(data)
    if sys.byteorder == "big":
        values.byteswap()
    return values


def write_numbers(stream, values):
    if sys.byteorder == "big":
        values.byteswap()
    stream.write(values.tobytes())


def write_reason(stream, reason):
    text = reason.encode("utf-8", errors="replace")[:LARGEST_REASON_BYTES]
    write_numbers(stream, array.array("I", [len(text)]))
    stream.write(text)


def answer_batches(encode, has_reasons, stdin, stdout):
    while True:
        (count,) = numbers(read_exactly(stdin, 4))
        lengths = numbers(read_exactly(stdin, 4 * count))
        data = read_exactly(stdin, sum(lengths))
        texts, at = [], 0
        for length in lengths:
            texts.append(data[at : at + length].decode("utf-8", errors="replace"))
            at += length
        ids, reason = encode(texts) if has_reasons else (encode(texts), "")
        write_numbers(stdout, array.array("I", [count, *map(len, ids)]))
        for of_text in ids:
            write_numbers(stdout, array.array("I", of_text))
        if has_reasons:
            write_reason(stdout, reason)
        stdout.flush()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tokenizer", type=Path)
    parser.add_argument("--eod-token")
    parser.add_argument("--bos-token")
    parser.add_argument("--messages", metavar="KEY")
    parser.add_argument("--chat-template", type=Path)
    arguments = parser.parse_args()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # the processes are the parallelism
    tokenizer, facts = load(arguments.tokenizer)
    facts["eod"] = named_or(tokenizer, arguments.eod_token, tokenizer.eod)
    facts["bos"] = named_or(tokenizer, arguments.bos_token, tokenizer.bos)
    encode = tokenizer.encode
    if arguments.messages is not None:
        conversations, of_template = tokenizer.conversations(arguments.messages, arguments.chat_template)
        facts.update(of_template)
        encode = conversations.encode
    stdin, stdout = sys.stdin.buffer, sys.stdout.buffer
    head = json.dumps(facts).encode()
    write_numbers(stdout, array.array("I", [len(head)]))
    stdout.write(head)
    stdout.flush()
    answer_batches(encode, arguments.messages is not None, stdin, stdout)


if __name__ == "__main__":
    try:
        main()
    except (BrokenPipeError, KeyboardInterrupt):  # the build has ended, or is ending
        sys.stderr.close()
        os._exit(1)
