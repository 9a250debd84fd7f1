#include "worker/data/encoder.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "libwlb/capacity.h"

/* Megatron-LM's DType.optimal_dtype: vocabularies from here on have int32 tokens. */
enum { FIRST_WIDE_VOCABULARY = 65500 };

struct worker {
	struct wlb_tokenizer tokenizer;
	struct wlb_text_batch batch; /* what it was sent; empty: it has replied */
};

struct wlb_encoder {
	struct wlb_encoder_options options;
	struct wlb_tokenizer_facts facts;
	struct wlb_text_batch filling; /* what is added to */
	struct worker *workers;
	int started;
	int next; /* the worker that gets the next batch, which is the one that has waited longest */
	struct wlb_token_ids ids;
	int32_t *tokens; /* of one document */
	size_t token_capacity;
	int32_t *lengths; /* of its sequences */
	size_t length_capacity;
	char refusal[sizeof(((struct wlb_token_ids *)0)->refusal)]; /* the first */
};

/* Checks that the tokens that are to be added exist. */
static int check_facts(const struct wlb_encoder *e, struct wlb_error *error)
{
	const struct wlb_tokenizer_facts *f = &e->facts;
	if (e->options.append_eod && f->eod < 0)
		return wlb_fail(error, "--append-eod: %s does not say which token ends a text: name it by --eod-token",
		                f->file);
	if (e->options.prepend_bos && f->bos < 0)
		return wlb_fail(error,
		                "--prepend-bos: %s does not say which token begins a text: name it by --bos-token",
		                f->file);
	if (wlb_encoder_dtype(e) == WLB_INDEX_UINT16 && f->ids > UINT16_MAX + 1)
		return wlb_fail(error,
		                "%s: has %lld tokens and ids up to %lld: with fewer than %d tokens ids must be below "
		                "65536, as of Megatron-LM",
		                f->file, (long long)f->vocabulary, (long long)f->ids - 1, FIRST_WIDE_VOCABULARY);
	return 0;
}

/* Starts all processes, which load the tokenizer at the same time, and checks that it is one tokenizer. */
static int start_workers(struct wlb_encoder *e, const volatile sig_atomic_t *interrupted, int *bad_input,
                         struct wlb_error *error)
{
	e->workers = calloc((size_t)e->options.workers, sizeof(*e->workers));
	if (e->workers == NULL)
		return wlb_fail(error, "out of memory for %d processes", e->options.workers);
	for (; e->started < e->options.workers; e->started++)
		if (wlb_tokenizer_start(&e->workers[e->started].tokenizer, &e->options.tokenizer, interrupted, error) <
		    0)
			return -1;
	if (wlb_tokenizer_read_facts(&e->workers[0].tokenizer, &e->facts, bad_input, error) < 0)
		return -1;
	for (int i = 1; i < e->started; i++) {
		struct wlb_tokenizer_facts other;
		if (wlb_tokenizer_read_facts(&e->workers[i].tokenizer, &other, bad_input, error) < 0)
			return -1;
		int is_equal = wlb_tokenizer_facts_equal(&e->facts, &other);
		wlb_tokenizer_facts_free(&other);
		if (!is_equal)
			return wlb_fail(error, "%s: was changed while it was loaded: run the command again",
			                e->options.tokenizer.path);
	}
	*bad_input = 1;
	return check_facts(e, error);
}

struct wlb_encoder *wlb_encoder_new(const struct wlb_encoder_options *options, const volatile sig_atomic_t *interrupted,
                                    int *bad_input, struct wlb_error *error)
{
	struct wlb_encoder *e = calloc(1, sizeof(*e));
	*bad_input = 0;
	if (e == NULL) {
		wlb_fail(error, "out of memory");
		return NULL;
	}
	e->options = *options;
	if (options->tokenizer.path == NULL) {
		e->options.append_eod = true;
		e->facts = (struct wlb_tokenizer_facts){.vocabulary = WLB_BYTES_VOCABULARY,
		                                        .ids = WLB_BYTES_VOCABULARY,
		                                        .eod = WLB_BYTES_END_OF_DOCUMENT,
		                                        .bos = -1};
	} else if (start_workers(e, interrupted, bad_input, error) < 0) {
		wlb_encoder_free(e);
		return NULL;
	}
	return e;
}

void wlb_encoder_free(struct wlb_encoder *e)
{
	if (e == NULL)
		return;
	for (int i = 0; i < e->started; i++) {
		wlb_tokenizer_close(&e->workers[i].tokenizer);
		wlb_text_batch_free(&e->workers[i].batch);
	}
	free(e->workers);
	wlb_tokenizer_facts_free(&e->facts);
	wlb_text_batch_free(&e->filling);
	wlb_token_ids_free(&e->ids);
	free(e->tokens);
	free(e->lengths);
	free(e);
}

enum wlb_index_dtype wlb_encoder_dtype(const struct wlb_encoder *e)
{
	return e->facts.vocabulary < FIRST_WIDE_VOCABULARY ? WLB_INDEX_UINT16 : WLB_INDEX_INT32;
}

static json_t *id_or_null(int64_t id)
{
	return id < 0 ? json_null() : json_integer(id);
}

char *wlb_encoder_facts(const struct wlb_encoder *e)
{
	const struct wlb_tokenizer_facts *f = &e->facts;
	const struct wlb_encoder_options *o = &e->options;
	json_t *tokenizer = f->file == NULL ? json_string("bytes")
	                                    : json_pack("{s:s, s:s, s:s}", "file", f->file, "sha256", f->sha256,
	                                                "library", f->library);
	json_t *object = json_pack("{s:o, s:I, s:I, s:o, s:b, s:o, s:b, s:b}", "tokenizer", tokenizer, "vocabulary",
	                           (json_int_t)f->vocabulary, "ids_below", (json_int_t)f->ids, "eod",
	                           id_or_null(f->eod), "append_eod", o->append_eod, "bos", id_or_null(f->bos),
	                           "prepend_bos", o->prepend_bos, "split_sentences", o->split_sentences);
	if (f->chat_template[0] != '\0')
		json_object_set_new(object, "chat_template", json_string(f->chat_template));
	char *text = object == NULL ? NULL : json_dumps(object, JSON_INDENT(2));
	json_decref(object);
	char *line = text == NULL ? NULL : realloc(text, strlen(text) + 2);
	if (line == NULL)
		free(text);
	else
		strcat(line, "\n");
	return line;
}

static int reserve(struct wlb_encoder *e, size_t tokens, size_t sequences, struct wlb_error *error)
{
	if (tokens > INT32_MAX)
		return wlb_fail(error, "a document of %zu tokens: at most 2^31 - 1 fit the format: split it", tokens);
	if (wlb_grow((void **)&e->tokens, &e->token_capacity, tokens, sizeof(*e->tokens)) < 0 ||
	    wlb_grow((void **)&e->lengths, &e->length_capacity, sequences, sizeof(*e->lengths)) < 0)
		return wlb_fail(error, "out of memory for a document of %zu tokens", tokens);
	return 0;
}

static int add_bytes(struct wlb_encoder *e, struct wlb_index_writer *writer, const char *text, int64_t bytes,
                     struct wlb_error *error)
{
	if (reserve(e, (size_t)bytes + 1, 1, error) < 0)
		return -1;
	for (int64_t i = 0; i < bytes; i++)
		e->tokens[i] = (unsigned char)text[i];
	e->tokens[bytes] = WLB_BYTES_END_OF_DOCUMENT;
	e->lengths[0] = (int32_t)bytes + 1;
	return wlb_index_writer_add(writer, e->tokens, e->lengths, 1, error);
}

/* Writes a document of `texts` texts, whose ids are `ids` and their numbers `counts`. */
static int write_document(struct wlb_encoder *e, struct wlb_index_writer *writer, const int32_t *ids,
                          const uint32_t *counts, uint32_t texts, struct wlb_error *error)
{
	size_t total = 0, at = 0;
	int32_t sequences = 0;
	for (uint32_t i = 0; i < texts; i++)
		total += counts[i];
	if (reserve(e, total + 2, texts + 1, error) < 0)
		return -1;
	for (uint32_t i = 0; i < texts; i++)
		if (counts[i] > 0)
			e->lengths[sequences++] = (int32_t)counts[i];
	if (sequences > 0 && e->options.prepend_bos) {
		e->tokens[at++] = (int32_t)e->facts.bos;
		e->lengths[0]++;
	}
	if (total > 0)
		memcpy(e->tokens + at, ids, total * sizeof(*ids));
	if (sequences > 0 && e->options.append_eod) {
		e->tokens[at + total] = (int32_t)e->facts.eod;
		e->lengths[sequences - 1]++;
	}
	if (e->options.tokenizer.messages_key != NULL &&
	    wlb_index_writer_add_mask(writer, e->ids.loss_mask + (ids - e->ids.ids), total, error) < 0)
		return -1;
	return wlb_index_writer_add(writer, e->tokens, e->lengths, sequences, error);
}

/* Waits for what the worker was sent, and writes it. */
static int deliver(struct wlb_encoder *e, struct worker *worker, struct wlb_index_writer *writer,
                   struct wlb_error *error)
{
	const struct wlb_text_batch *batch = &worker->batch;
	if (batch->document_count == 0)
		return 0;
	if (wlb_tokenizer_receive(&worker->tokenizer, batch, e->facts.ids, &e->ids, error) < 0)
		return -1;
	if (e->refusal[0] == '\0')
		memcpy(e->refusal, e->ids.refusal, sizeof(e->refusal));
	const int32_t *ids = e->ids.ids;
	const uint32_t *counts = e->ids.counts;
	for (size_t d = 0; d < batch->document_count; d++) {
		if (write_document(e, writer, ids, counts, batch->document_texts[d], error) < 0)
			return -1;
		for (uint32_t i = 0; i < batch->document_texts[d]; i++)
			ids += *counts++;
	}
	wlb_text_batch_clear(&worker->batch);
	return 0;
}

/* Gives the batch that is filled to the next worker, which is done with the one before. */
static int send_filled(struct wlb_encoder *e, struct wlb_index_writer *writer, struct wlb_error *error)
{
	struct worker *worker = &e->workers[e->next];
	if (deliver(e, worker, writer, error) < 0 || wlb_tokenizer_send(&worker->tokenizer, &e->filling, error) < 0)
		return -1;
	struct wlb_text_batch sent = e->filling;
	e->filling = worker->batch;
	worker->batch = sent;
	e->next = (e->next + 1) % e->options.workers;
	return 0;
}

int wlb_encoder_add(struct wlb_encoder *e, struct wlb_index_writer *writer, const struct wlb_text *text,
                    struct wlb_error *error)
{
	if (e->options.tokenizer.path == NULL)
		return add_bytes(e, writer, text->bytes, text->length, error);
	if (wlb_text_batch_add(&e->filling, text, e->options.split_sentences, error) < 0)
		return -1;
	return wlb_text_batch_is_full(&e->filling) ? send_filled(e, writer, error) : 0;
}

const char *wlb_encoder_refusal(const struct wlb_encoder *e)
{
	return e->refusal;
}

int wlb_encoder_finish(struct wlb_encoder *e, struct wlb_index_writer *writer, struct wlb_error *error)
{
	if (e->options.tokenizer.path == NULL)
		return 0;
	if (e->filling.document_count > 0 && send_filled(e, writer, error) < 0)
		return -1;
	for (int i = 0; i < e->options.workers; i++)
		if (deliver(e, &e->workers[(e->next + i) % e->options.workers], writer, error) < 0)
			return -1;
	return 0;
}
