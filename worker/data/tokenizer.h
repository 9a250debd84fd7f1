/*
 * One process of python/corpus/tokenize_texts.py, in which a tokenizer runs. That file
 * describes what is written and read. Nothing of a reply is believed: every count has a bound that follows from the
 * batch, and every id is one of the tokenizer.
 */
#ifndef WORKER_DATA_TOKENIZER_H
#define WORKER_DATA_TOKENIZER_H

#include <signal.h>
#include <stdint.h>

#include "libwlb/wlb.h"
#include "worker/data/helper.h"
#include "worker/data/text_batch.h"

struct wlb_tokenizer_options {
	const char *path;      /* a file or a folder */
	const char *python;    /* the program that runs it */
	const char *eod_token; /* NULL: what the tokenizer says */
	const char *bos_token; /* NULL: as above */
	/* The field of a line that has the messages of a conversation, which are then what is tokenized, after the
	 * place where they were read and a NUL; NULL: texts. */
	const char *messages_key;
	const char *chat_template; /* a file; NULL: that of the tokenizer's folder */
};

struct wlb_tokenizer_facts {
	char *file;    /* the caller frees it, by wlb_tokenizer_facts_free() */
	char *library; /* and its version */
	char sha256[65];
	char chat_template[65]; /* the SHA-256 of it; empty where there are no conversations */
	int64_t vocabulary;     /* tokens, those added to it included */
	int64_t ids;            /* each id is below; more than there are tokens where some ids are not used */
	int64_t eod;            /* the id that ends a document; -1: the tokenizer has none */
	int64_t bos;            /* the id that begins one; -1: as above */
};

/* The ids of a batch. Zero it before the first use. */
struct wlb_token_ids {
	uint32_t *counts; /* of each text */
	size_t count_capacity;
	int32_t *ids; /* of all texts, one behind the other */
	size_t id_capacity;
	/* Of conversations: 1 for each id that is of an answer, 0 for the others. */
	uint8_t *loss_mask;
	size_t mask_capacity;
	char refusal[512]; /* why the first conversation of the batch that has no ids has none; empty where all have */
};

struct wlb_tokenizer {
	struct wlb_helper helper;
	const struct wlb_tokenizer_options *options;
	const volatile sig_atomic_t *interrupted;
};

/* Starts the process, which loads the tokenizer meanwhile. On -1 there is nothing to close. */
int wlb_tokenizer_start(struct wlb_tokenizer *t, const struct wlb_tokenizer_options *options,
                        const volatile sig_atomic_t *interrupted, struct wlb_error *error);
/* Waits for it, and reads what the tokenizer is. *bad_input is 1 where it cannot be used. */
int wlb_tokenizer_read_facts(struct wlb_tokenizer *t, struct wlb_tokenizer_facts *facts, int *bad_input,
                             struct wlb_error *error);
int wlb_tokenizer_send(struct wlb_tokenizer *t, const struct wlb_text_batch *batch, struct wlb_error *error);
/* Reads the ids of the batch that was sent. */
int wlb_tokenizer_receive(struct wlb_tokenizer *t, const struct wlb_text_batch *batch, int64_t ids,
                          struct wlb_token_ids *to, struct wlb_error *error);
/* Ends the process. */
void wlb_tokenizer_close(struct wlb_tokenizer *t);

int wlb_tokenizer_facts_equal(const struct wlb_tokenizer_facts *a, const struct wlb_tokenizer_facts *b);
void wlb_tokenizer_facts_free(struct wlb_tokenizer_facts *facts);
void wlb_token_ids_free(struct wlb_token_ids *ids);

#endif
