/* The built-in byte-level tokenizer: each byte is a token, and one more ends a document. */
#ifndef WORKER_DATA_TOKENIZE_H
#define WORKER_DATA_TOKENIZE_H

#include <stdint.h>

enum {
	WLB_BYTES_END_OF_DOCUMENT = 256,
	WLB_BYTES_VOCABULARY = 257,
};

/* Writes the length + 1 tokens of a document; returns their number. */
int64_t wlb_tokenize_bytes(const char *text, int64_t length, uint16_t *tokens);

#endif
