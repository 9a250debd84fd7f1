"""What transformers makes of conversations, with its return_assistant_tokens_mask.

    python3 transformers_conversations.py < REQUESTS

A request is a line [FOLDER, LINES.jsonl], of which FOLDER is that of a tokenizer with its chat template. The reply is a line: a list of
[ids, mask] for each conversation, null for one that cannot be rendered.
"""

import json
import sys

import transformers


def render(tokenizer, conversation):
    try:
        made = tokenizer.apply_chat_template(
            conversation["messages"], tools=conversation.get("tools"), tokenize=True, return_dict=True, return_assistant_tokens_mask=True)
    except Exception:  # whatever the template raises
        return None
    return [made["input_ids"], made["assistant_masks"]]


def main():
    for request in sys.stdin:
        folder, path = json.loads(request)
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        with open(path, encoding="utf-8") as lines:
            print(json.dumps([render(tokenizer, json.loads(line)) for line in lines]), flush=True)


if __name__ == "__main__":
    main()
