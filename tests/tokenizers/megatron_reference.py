"""Makes a dataset as tools/preprocess_data.py of Megatron-LM core_v0.16.1 does, with Megatron-LM's own writer of the files.

    python3 megatron_reference.py TOKENIZER INPUT.jsonl PREFIX [--append-eod END_ID] [--lines]

--lines: the text is split at its newlines first, which makes the list of sentences that preprocess_data.py takes as a text.
"""

import argparse
import json
import sys
import types
from pathlib import Path
from unittest import mock

# Megatron-LM's writer imports torch for the class of its reader alone.
torch = mock.MagicMock()
torch.utils.data.Dataset = object
sys.modules["torch"] = torch
for name in ("megatron.core", "megatron.core.datasets"):
    package = types.ModuleType(name)
    package.__path__ = [str(folder) for path in sys.path for folder in [Path(path, *name.split("."))] if folder.is_dir()]
    sys.modules[name] = package
for name in ("megatron.core.datasets.object_storage_utils", "megatron.core.msc_utils", "megatron.core.utils"):
    sys.modules[name] = mock.MagicMock()
sys.modules["megatron.core.msc_utils"].MultiStorageClientFeature.is_enabled.return_value = False

from megatron.core.datasets import indexed_dataset  # noqa: E402


def load(path):
    """The ids of a text, and the number of tokens, as Megatron-LM's HuggingFaceTokenizer and SentencePieceTokenizer have them."""
    if path.suffix == ".json":
        import tokenizers

        tokenizer = tokenizers.Tokenizer.from_file(str(path))
        return lambda text: tokenizer.encode(text, add_special_tokens=False).ids, tokenizer.get_vocab_size()
    import sentencepiece

    model = sentencepiece.SentencePieceProcessor(model_file=str(path))
    return model.encode_as_ids, model.get_piece_size()


def encode(sentences, tokenize, eod):
    """Encoder.encode() of preprocess_data.py."""
    doc_ids, sentence_lens = [], []
    for sentence in sentences:
        sentence_ids = tokenize(sentence)
        if len(sentence_ids) > 0:
            doc_ids.extend(sentence_ids)
            sentence_lens.append(len(sentence_ids))
    if len(doc_ids) > 0 and eod is not None:
        doc_ids.append(eod)
        sentence_lens[-1] += 1
    return doc_ids, sentence_lens


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tokenizer", type=Path)
    parser.add_argument("input", type=Path)
    parser.add_argument("prefix")
    parser.add_argument("--append-eod", type=int)
    parser.add_argument("--lines", action="store_true")
    arguments = parser.parse_args()
    tokenize, vocabulary = load(arguments.tokenizer)
    builder = indexed_dataset.IndexedDatasetBuilder(arguments.prefix + ".bin", dtype=indexed_dataset.DType.optimal_dtype(vocabulary))
    with open(arguments.input, encoding="utf-8") as lines:
        for line in lines:
            text = json.loads(line)["text"]
            builder.add_document(*encode(text.split("\n") if arguments.lines else [text], tokenize, arguments.append_eod))
    builder.finalize(arguments.prefix + ".idx")


if __name__ == "__main__":
    main()
