/* Tokenizes text into bytes: each byte is a token, and a token of its own ends each document. */
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
