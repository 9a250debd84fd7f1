/*
 * Turns texts into the documents of a dataset: as bytes, or by a tokenizer that runs in several processes
 * (tokenizer.h). Texts go to these in batches, in turn, and the ids are written in the order of the texts, whichever
 * process is first. The tokens of a document are, as of Megatron-LM's preprocess_data.py: the ids of each of its texts
 * that has any, a sequence each; the end id behind the last one, if asked for, unless the document has no ids. The
 * beginning id, if asked for, is before the first id of a document and never of an empty one. A conversation is one
 * sequence, and has a loss mask; one that is refused is an empty document.
 */
#ifndef WORKER_DATA_ENCODER_H
#define WORKER_DATA_ENCODER_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "libwlb/wlb.h"
#include "worker/data/index_writer.h"
#include "worker/data/tokenizer.h"

/* Each byte of a text is a token, and this token of its own ends each document. */
enum { WLB_BYTES_END_OF_DOCUMENT = 256, WLB_BYTES_VOCABULARY };

enum { WLB_ENCODER_MOST_WORKERS = 1024 };

struct wlb_encoder_options {
	struct wlb_tokenizer_options tokenizer; /* its path is NULL for bytes: the others below are then not used */
	int workers;                            /* processes */
	bool append_eod;
	bool prepend_bos;
	bool split_sentences; /* each line of a document is a sequence */
};

struct wlb_encoder;

/* Starts the processes; the options stay the caller's. NULL with *bad_input: 1 where the tokenizer cannot be used. */
struct wlb_encoder *wlb_encoder_new(const struct wlb_encoder_options *options, const volatile sig_atomic_t *interrupted,
                                    int *bad_input, struct wlb_error *error);
/* The element type of its tokens, as Megatron-LM chooses it: uint16 for a vocabulary below 65,500. */
enum wlb_index_dtype wlb_encoder_dtype(const struct wlb_encoder *encoder);
/* What PREFIX.facts.json says: a JSON object that ends with a newline. The caller frees it; NULL: out of memory. */
char *wlb_encoder_facts(const struct wlb_encoder *encoder);
/* Adds a document, which reaches the writer in this call or a later one. */
int wlb_encoder_add(struct wlb_encoder *encoder, struct wlb_index_writer *writer, const struct wlb_text *text,
                    struct wlb_error *error);
/* Why a conversation was refused, the first of those that have reached the writer; empty where none was. */
const char *wlb_encoder_refusal(const struct wlb_encoder *encoder);
/* Writes all that was added. */
int wlb_encoder_finish(struct wlb_encoder *encoder, struct wlb_index_writer *writer, struct wlb_error *error);
/* Ends the processes. NULL allowed. */
void wlb_encoder_free(struct wlb_encoder *encoder);

#endif
