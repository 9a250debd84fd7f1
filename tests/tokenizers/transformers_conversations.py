"""What transformers makes of conversations, with its return_assistant_tokens_mask.

    python3 transformers_conversations.py FOLDER LINES.jsonl

FOLDER is that of a tokenizer with its chat template. Of each line of standard output the first element is the ids, and the second the
mask; null where the conversation cannot be rendered.
"""

import json
import sys

import transformers


def main():
    tokenizer = transformers.AutoTokenizer.from_pretrained(sys.argv[1])
    with open(sys.argv[2], encoding="utf-8") as lines:
        for line in lines:
            conversation = json.loads(line)
            try:
                made = tokenizer.apply_chat_template(
                    conversation["messages"], tools=conversation.get("tools"), tokenize=True, return_dict=True,
                    return_assistant_tokens_mask=True)
                print(json.dumps([made["input_ids"], made["assistant_masks"]]))
            except Exception:  # whatever the template raises
                print("null")


if __name__ == "__main__":
    main()
