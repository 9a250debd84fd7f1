"""Makes the folder of a tokenizer for the tests of conversations: a byte-level BPE, trained on a text, with the special tokens of several
families of chat templates.

    python3 make_tokenizer.py FOLDER TEXT
"""

import json
import pathlib
import sys

import tokenizers

SPECIAL = ["<s>", "</s>", "<unk>", "[INST]", "[/INST]", "<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>",
           "<|im_start|>", "<|im_end|>"]


def main():
    folder, text = pathlib.Path(sys.argv[1]), sys.argv[2]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer.train([text], tokenizers.trainers.BpeTrainer(
        vocab_size=1000, special_tokens=SPECIAL, initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    # Which apply_chat_template() does not add: the template has it.
    bos = ("<s>", tokenizer.token_to_id("<s>"))
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(single="<s> $A", special_tokens=[bos])
    folder.mkdir()
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": {"content": "</s>", "__type": "AddedToken"}}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))


if __name__ == "__main__":
    main()
