"""Makes a dataset as tools/preprocess_data.py of Megatron-LM core_v0.16.1 does, with Megatron-LM's own writer of the files.

    python3 megatron_reference.py TOKENIZER INPUT.jsonl PREFIX [--append-eod END_ID] [--lines] [--read OTHER_PREFIX]

--lines: the text is split at its newlines first, which makes the list of sentences that preprocess_data.py takes as a text.
--read: Megatron-LM's reader must find the same documents in the dataset OTHER_PREFIX.
"""

import argparse
import json
import sys
import types
from pathlib import Path
from unittest import mock

# Megatron-LM's writer and reader import torch for the class that the reader is derived from.
torch = mock.MagicMock()
torch.utils.data.Dataset = object
sys.modules["torch"] = torch
for name in ("megatron.core", "megatron.core.datasets"):
    package = types.ModuleType(name)
    package.__path__ = [str(folder) for path in sys.path for folder in [Path(path, *name.split("."))] if folder.is_dir()]
    sys.modules[name] = package
for name in ("megatron.core.datasets.object_storage_utils", "megatron.core.msc_utils", "megatron.core.utils"):
    sys.modules[name] = mock.MagicMock()
sys.modules["megatron.core.datasets.object_storage_utils"].is_object_storage_path.return_value = False
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


def check_read(prefix, documents):
    dataset = indexed_dataset.IndexedDataset(prefix)
    ends = dataset.document_indices.tolist()
    read = [[id for sequence in range(first, last) for id in dataset[sequence].tolist()] for first, last in zip(ends, ends[1:])]
    if read != documents:
        sys.exit(f"{prefix}: IndexedDataset does not find the documents that were written")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tokenizer", type=Path)
    parser.add_argument("input", type=Path)
    parser.add_argument("prefix")
    parser.add_argument("--append-eod", type=int)
    parser.add_argument("--lines", action="store_true")
    parser.add_argument("--read")
    arguments = parser.parse_args()
    tokenize, vocabulary = load(arguments.tokenizer)
    builder = indexed_dataset.IndexedDatasetBuilder(arguments.prefix + ".bin", dtype=indexed_dataset.DType.optimal_dtype(vocabulary))
    documents = []
    with open(arguments.input, encoding="utf-8") as lines:
        for line in lines:
            text = json.loads(line)["text"]
            ids, lengths = encode(text.split("\n") if arguments.lines else [text], tokenize, arguments.append_eod)
            builder.add_document(ids, lengths)
            documents.append(ids)
    builder.finalize(arguments.prefix + ".idx")
    if arguments.read:
        check_read(arguments.read, documents)


if __name__ == "__main__":
    main()
