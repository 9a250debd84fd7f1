#!/usr/bin/env python3
"""test_conversations.py WLB-DATA: `wlb data build --messages`, token by token against transformers, by the Python of tests/trainers/venv."""
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
TEXT = "/usr/share/common-licenses/GPL-3"
# What the families have, in short. The answers are between BEGIN and END, which become {% generation %} tags or nothing.
TEMPLATES = {
    "llama3": "{{ bos_token }}{% for message in messages %}{{ '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n' }}"
              "{% if message['role'] == 'assistant' %}BEGIN{{ message['content'] | trim + '<|eot_id|>' }}END"
              "{% else %}{{ message['content'] | trim + '<|eot_id|>' }}{% endif %}{% endfor %}"
              "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}",
    "chatml": """\
{%- if tools %}
    {{- '<|im_start|>system\n# Tools\n' }}
    {%- for tool in tools %}
        {{- tool | tojson }}
    {%- endfor %}
    {{- '<|im_end|>\n' }}
{%- elif messages[0].role != 'system' %}
    {{- '<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'assistant' %}
        {{- '<|im_start|>assistant\n' }}BEGIN{{- message.content or '' }}
        {%- for call in message.tool_calls or [] %}
            {{- '<tool_call>' + call.function.name + ' ' }}{{ call.function.arguments | tojson }}{{- '</tool_call>' }}
        {%- endfor %}{{- '<|im_end|>\n' }}END
    {%- else %}
        {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
{%- endif %}
""",
    "mistral": "{{ bos_token }}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
               "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
               "{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + ' [/INST]' }}"
               "{% else %}BEGIN{{ ' ' + message['content'] + eos_token }}END{% endif %}{% endfor %}",
    # The last character of an answer may be several tokens, and the first token of one may have begun before it.
    "plain": """\
{% for message in messages %}
    {% if message['role'] == 'assistant' %}
BEGIN{{ message['content'] }}END{% else %}
Q: {{ message['content'] }} A: {% endif %}
{% endfor %}
""",
}
TOOLS = [{"type": "function", "function": {"name": "sum", "parameters": {"type": "object", "n": [1, 1.0, 0.1, -3e-7, 9007199254740993]}}}]


def said(*texts):
    """A conversation in which user and assistant say the texts in turn."""
    return [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(texts)]


def conversations():
    """Some by hand and some drawn, with all that texts have in them."""
    draw = random.Random(11)
    words = pathlib.Path(TEXT).read_text().split()
    parts = ["", " ", "\n\n", "é中文😀", "<|im_end|>", "</s>", "<|eot_id|>x", "\u0000", "\\n\"'", "  two  spaces ", "a\tb"]
    made = [said("Hi", "Hello!"), said("a", "b", "c"), said("a", "", "b", "c"), [{"role": "system", "content": "Be short."}, *said("a", "b")],
            said("a", " leading and trailing \n", "b", "\n\n"), said("é中文😀", "😀中文é")]
    for _ in range(60):
        texts = [" ".join(draw.choices(words, k=draw.randrange(1, 40))) + draw.choice(parts) for _ in range(draw.randrange(2, 9))]
        made.append(said(*texts))
    return [{"messages": messages} for messages in made]


def make_venv():
    made = subprocess.run([HERE.parent / "trainers/venv"], stdout=subprocess.PIPE, text=True)
    if made.returncode:
        sys.exit(made.returncode)
    return pathlib.Path(made.stdout.strip()) / "bin/python3"


class Conversations(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.tokenizer = pathlib.Path(scratch.name) / "tokenizer"
        subprocess.run([PYTHON, HERE / "make_tokenizer.py", cls.tokenizer, TEXT], check=True, timeout=100)
        # One process for all: it takes seconds to start.
        cls.transformers = subprocess.Popen([PYTHON, HERE / "transformers_conversations.py"], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        cls.addClassCleanup(cls.transformers.wait)
        cls.addClassCleanup(cls.transformers.stdout.close)
        cls.addClassCleanup(cls.transformers.kill)
        cls.addClassCleanup(cls.transformers.stdin.close)

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.input = self.folder / "in.jsonl"
        self.write_input(conversations())

    def write_input(self, lines):
        self.input.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")

    def make_folder(self, template, name="model", tagged=True):
        folder = self.folder / name
        shutil.copytree(self.tokenizer, folder)
        for word, tag in (("BEGIN", "{% generation %}"), ("END", "{% endgeneration %}")):
            template = template.replace(word, tag if tagged else "")
        (folder / "chat_template.jinja").write_text(template)
        return folder

    def build(self, folder, *options, code=0, prefix="ours", environment={}):
        """Returns what it printed: stdout, or stderr where it fails."""
        command = [PROGRAM, "build", "--input", self.input, "--output-prefix", self.folder / prefix, "--python", PYTHON, "--tokenizer",
                   folder, "--messages", *([] if "--workers" in options else ["--workers", "1"]), *options]
        ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=200,
                               env={**os.environ, **environment})
        self.assertEqual(ended.returncode, code, ended.stderr)
        return ended.stderr if code else ended.stdout

    def documents(self, prefix="ours"):
        """Ids and mask of each document of uint16 tokens, one sequence a document or none."""
        tokens, index, mask = ((self.folder / f"{prefix}.{end}").read_bytes() for end in ("bin", "idx", "loss_mask"))
        sequences, ends = (int.from_bytes(index[at : at + 8], "little") for at in (18, 26))
        starts = memoryview(index[34 + 12 * sequences :]).cast("q")
        lengths = memoryview(index[34 : 34 + 4 * sequences]).cast("i")
        values, found, at = memoryview(tokens).cast("H"), [], 0
        self.assertEqual((len(mask), ends), (len(values), len(starts)))
        for first, last in zip(starts[: ends - 1], starts[1:ends]):
            count = sum(lengths[first:last])
            found.append([list(values[at : at + count]), list(mask[at : at + count])])
            at += count
        return found

    def by_transformers(self, folder):
        """The same of transformers, empty where nothing is to be trained."""
        print(json.dumps([str(folder), str(self.input)]), file=self.transformers.stdin, flush=True)
        found = json.loads(self.transformers.stdout.readline())
        return [one if one is not None and any(one[1]) else [[], []] for one in found]

    # ---- tokens and masks ----

    def test_as_transformers(self):
        for name, template in TEMPLATES.items():
            with self.subTest(name):
                tagged, bare = (self.make_folder(template, f"{name}-{tagged}", tagged) for tagged in (True, False))
                self.build(tagged, "--workers", "2")
                expected, ours = self.by_transformers(tagged), self.documents()
                self.assertTrue(ours == expected, f"{name}: ids or masks differ from those of transformers")
                self.assertGreater(sum(sum(mask) for _, mask in ours), 1000)
                self.assertGreater(sum(mask.count(0) for _, mask in ours), 1000)
                self.build(bare)
                self.assertTrue(self.documents() == expected, f"{name}: without the tag the answers are others")

    def test_tools(self):
        """Of tools and calls each number is as it was, and a template for tools is taken where there are some."""
        call = {"type": "function", "function": {"name": "sum", "arguments": {"a": 1, "b": 2.0, "c": 1e22, "d": 0.1, "é": None}}}
        calls = [{"role": "user", "content": "1+2?"}, {"role": "assistant", "content": None, "tool_calls": [call, call]},
                 {"role": "tool", "content": "3"}, {"role": "assistant", "content": "Three."}]
        self.write_input([{"messages": calls, "tools": TOOLS}, {"tools": None, "messages": calls, "id": 3}])
        folder = self.make_folder(TEMPLATES["chatml"])
        self.build(folder)
        self.assertEqual(self.documents(), self.by_transformers(folder))
        config = json.loads((folder / "tokenizer_config.json").read_text())
        template = (folder / "chat_template.jinja").read_text()
        (folder / "chat_template.jinja").unlink()
        config["chat_template"] = [{"name": "default", "template": template}, {"name": "tool_use", "template": "<s>" + template}]
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
        self.build(folder)
        with_tools, without = (ids for ids, _ in self.documents())
        self.assertEqual((with_tools[0] == 0, without[0] == 0), (True, False))

    def test_where_the_template_is(self):
        """chat_template.jinja comes before tokenizer_config.json, --chat-template before both; the digest is that of the template."""
        folder = self.make_folder(TEMPLATES["chatml"])
        config = json.loads((folder / "tokenizer_config.json").read_text())
        (folder / "tokenizer_config.json").write_text(json.dumps({**config, "chat_template": TEMPLATES["mistral"].replace("BEGIN", "").replace("END", "")}))
        self.build(folder)
        chatml = self.documents()
        (folder / "chat_template.jinja").rename(self.folder / "other.jinja")
        self.build(folder)
        mistral, facts = self.documents(), json.loads((self.folder / "ours.facts.json").read_text())
        self.assertFalse(mistral == chatml)
        self.build(folder, "--chat-template", self.folder / "other.jinja")
        self.assertTrue(self.documents() == chatml)
        self.assertNotEqual(json.loads((self.folder / "ours.facts.json").read_text())["chat_template"], facts["chat_template"])
        self.assertRegex(facts["tokenizer"]["library"], r"^tokenizers [0-9.]+, jinja2 [0-9.]+$")

    def test_the_date(self):
        folder = self.make_folder("{{ strftime_now('%d %b %Y') }}" + TEMPLATES["chatml"])
        self.write_input([{"messages": said("a", "b")}])
        self.build(folder, environment={"SOURCE_DATE_EPOCH": "86400"})
        first = self.documents()
        self.build(folder, environment={"SOURCE_DATE_EPOCH": "172800"})
        self.assertNotEqual(self.documents(), first)

    # ---- what is refused ----

    def test_lines_that_are_refused(self):
        folder, good = self.make_folder(TEMPLATES["mistral"], tagged=False), {"messages": said("a", "b")}
        for bad, why in (([], "a conversation is a list of messages, of at least one"),
                         ([{"content": "x"}], "message 1 must be an object with a text 'role'"), (["x"], "message 1 must be"),
                         (said("only a question"), "has no token of an answer"), ([*said("a", "b"), said("a", "b")[1]], "roles must alternate"),
                         ([{"role": "user"}, {"role": "assistant", "content": "b"}], "the chat template fails: UndefinedError"),
                         ([{"role": "user", "content": None}, {"role": "assistant", "content": "b"}], "the chat template fails: TypeError")):
            with self.subTest(why):
                self.write_input([good, {"messages": bad}, good, {"messages": bad}, {"messages": None}])
                told = self.build(folder)
                self.assertIn("2 conversations are refused and are empty documents, the first: " + str(self.input) + ": line 2: ", told)
                self.assertIn(why, told)
                self.assertIn("1 null", told)
                self.assertEqual([bool(ids) for ids, _ in self.documents()], [True, False, True, False])
                self.write_input([good, {"messages": bad}])
                self.assertIn(why, self.build(folder, "--strict", code=2))
        self.write_input([good, {"messages": "a text"}])
        self.assertIn("line 2: field 'messages' is not an array: it must be an array of messages", self.build(folder, code=2))

    def test_a_template_that_changes_what_it_has_said(self):
        """Without the tag an answer is not found where the template renders earlier answers otherwise."""
        template = TEMPLATES["mistral"].replace("message['content'] + eos_token", "(message['content'] if loop.last else '...') + eos_token")
        self.write_input([{"messages": said("a", "b", "c", "d")}, {"messages": said("a", "b")}])
        told = self.build(self.make_folder(template, tagged=False))
        self.assertIn("line 1: the chat template renders message 2 otherwise where others follow it", told)
        self.assertEqual([bool(ids) for ids, _ in self.documents()], [False, True])
        tagged = self.make_folder(template, "tagged")
        self.build(tagged)
        self.assertEqual(self.documents(), self.by_transformers(tagged))

    def test_hostile_templates(self):
        for number, (template, why) in enumerate((
                ("{{ ''.__class__.__mro__[1].__subclasses__() }}", "SecurityError"),
                ("{{ self._TemplateReference__context.environment }}", "SecurityError"),
                ("{{ cycler.__init__.__globals__.os.popen('id').read() }}", "SecurityError"),
                ("{{ messages.append(1) }}", "SecurityError"), ("{% for a in range(1000000) %}{% endfor %}", "OverflowError"),
                ("{% include '/etc/passwd' %}", "no loader for this environment"))):
            with self.subTest(template):
                told = self.build(self.make_folder(template + TEMPLATES["chatml"], f"m{number}"), code=2)
                self.assertIn("conversations is refused, the first: ", told)
                self.assertIn(why, told)
                self.assertEqual(sorted(path.name for path in self.folder.glob("ours*")), [])

    def test_what_cannot_be_used(self):
        folder = self.make_folder("{% if %}")
        self.assertIn("the chat template is not one that Jinja", self.build(folder, code=2))
        (folder / "chat_template.jinja").unlink()
        self.assertIn("has no chat template, neither chat_template.jinja nor", self.build(folder, code=2))
        self.assertIn("none.jinja: ", self.build(folder, "--chat-template", self.folder / "none.jinja", code=2))
        self.assertIn("--messages excludes", self.build(folder, "--append-eod", code=2))
        self.assertIn("--messages needs a tokenizer", self.build("bytes", code=2))
        for text in ('{"chat_template": 3}', '{"chat_template": [{"name": "other", "template": "x"}]}', '{"chat_template": [3]}'):
            (folder / "tokenizer_config.json").write_text(text)
            self.assertIn("must be a text, or a list of {name, template}", self.build(folder, code=2))
        (self.folder / "no").mkdir()
        (self.folder / "no/jinja2.py").write_text("raise ImportError('none here')")
        self.assertIn("-m pip install jinja2", self.build(folder, code=2, environment={"PYTHONPATH": str(self.folder / "no")}))

    def test_any_line(self):
        """Whatever messages hold: what transformers makes of them, or refused; whatever bytes a line has, one reason at most."""
        draw = random.Random(int(os.environ.get("WLB_FUZZ_SEED", "5")))
        values = [None, True, 3, -0.5, 2**53 + 1, "", "x", "é\u0000\u2028", "<s>", [], {}, ["text"], {"type": "text", "text": "x"},
                  [{"type": "text", "text": "x"}], {"a": {"b": [1, {}]}}]
        roles = ["user", "assistant", "system", "tool", "user", "assistant", *values]

        def message():
            made = {"role": draw.choice(roles), "content": draw.choice([*values, "some words", "some words"])}
            for key in draw.sample(["tool_calls", "name", "weight", "role"], draw.randrange(2)):
                made[key] = draw.choice(values)
            return draw.choice([made, made, made, made, made, draw.choice(values)])

        lines = [{"messages": [message() for _ in range(draw.randrange(5))], "tools": draw.choice([None, None, TOOLS])} for _ in range(400)]
        self.write_input([{"messages": said("a", "b")}, *lines])
        folder = self.make_folder(TEMPLATES["chatml"])
        self.build(folder)
        self.assertEqual(self.documents(), self.by_transformers(folder))
        whole = self.input.read_bytes()
        for _ in range(20):
            changed = bytearray(whole[: draw.randrange(len(whole))])
            for _ in range(draw.randrange(4)):
                changed[draw.randrange(len(changed))] = draw.randrange(256)
            self.input.write_bytes(changed)
            command = [PROGRAM, "build", "--input", self.input, "--output-prefix", self.folder / "any", "--python", PYTHON, "--tokenizer",
                       folder, "--messages", "--workers", "1"]
            ended = subprocess.run(command, capture_output=True, text=True, timeout=100)
            self.assertIn(ended.returncode, (0, 2), ended.stderr)
            self.assertEqual(ended.stderr.count("\n"), 1 if ended.returncode else 0, ended.stderr)
            self.assertEqual(list(self.folder.glob("any*partial*")), [])

    # ---- files ----

    def test_a_mask_goes_with_its_dataset(self):
        folder = self.make_folder(TEMPLATES["chatml"])
        self.build(folder)
        self.assertEqual(self.names(), ["ours.bin", "ours.facts.json", "ours.idx", "ours.loss_mask"])
        self.input.write_text('{"text": "x"}\n')
        subprocess.run([PROGRAM, "build", "--input", self.input, "--output-prefix", self.folder / "ours"], check=True, timeout=60,
                       stdout=subprocess.DEVNULL)
        self.assertEqual(self.names(), ["ours.bin", "ours.facts.json", "ours.idx"])

    def names(self):
        return sorted(path.name for path in self.folder.glob("ours*"))

    def test_resumed(self):
        """Killed, it goes on from what it had written, with the mask and what was refused before."""
        self.write_input([{"messages": said(*texts)} for texts in [("a",), *[("a question", f"answer {i}") for i in range(8000)]]])
        folder = self.make_folder(TEMPLATES["chatml"], tagged=False)
        self.build(folder, prefix="whole")
        command = [PROGRAM, "build", "--input", self.input, "--output-prefix", self.folder / "ours", "--python", PYTHON, "--tokenizer",
                   folder, "--messages", "--workers", "1"]
        for end in ("terminate", "kill"):
            build = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            left, limit_s = self.folder / "ours.loss_mask.resume.partial", time.monotonic() + 100
            before = left.stat().st_size if left.exists() else 0
            while not left.exists() or left.stat().st_size <= before:
                self.assertLess(time.monotonic(), limit_s)
                self.assertIsNone(build.poll())
                time.sleep(0.005)
            getattr(build, end)()
            build.wait(timeout=20)
        told = self.build(folder)
        self.assertRegex(told, r"an earlier build had left [1-9][0-9]* of the documents")
        self.assertIn("1 conversations are refused and are empty documents, the first: ", told)
        for end in ("bin", "idx", "loss_mask", "facts.json"):
            self.assertTrue((self.folder / f"ours.{end}").read_bytes() == (self.folder / f"whole.{end}").read_bytes(), end)
        self.assertEqual(self.names(), ["ours.bin", "ours.facts.json", "ours.idx", "ours.loss_mask"])


if __name__ == "__main__":
    PYTHON = make_venv()
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    unittest.main()
