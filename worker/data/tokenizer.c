#include "worker/data/tokenizer.h"

#include <endian.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "libwlb/capacity.h"

enum {
	LOAD_LIMIT_S = 600,           /* of a tokenizer, on a file system that is slow */
	BATCH_LIMIT_S = 600,          /* without a byte of the reply, and */
	SLOWEST_BYTES_PER_S = 10000,  /* for a long text the time that it takes at this speed */
	END_LIMIT_S = 5,              /* of a process whose input has ended */
	LARGEST_HEAD_BYTES = 1 << 16, /* of the JSON that says what the tokenizer is */
	LARGEST_IDS = 1 << 30,        /* of a vocabulary */
	/* One byte can be several ids: characters are decomposed, and each byte of the result can be an id. */
	IDS_PER_BYTE = 64,
	MORE_IDS = 64,          /* of a text, such as a blank before it */
	TEMPLATE_IDS = 1 << 20, /* of a conversation, what its template says of itself */
};

static const uint32_t ANSWER = 1U << 31; /* is added to the ids of an answer */

int wlb_tokenizer_start(struct wlb_tokenizer *t, const struct wlb_tokenizer_options *options,
                        const volatile sig_atomic_t *interrupted, struct wlb_error *error)
{
	*t = (struct wlb_tokenizer){.options = options, .interrupted = interrupted};
	char *program = wlb_helper_path("tokenize_texts.py", error);
	if (program == NULL)
		return -1;
	const char *argv[12] = {options->python, program};
	int words = 2;
	if (options->eod_token != NULL) {
		argv[words++] = "--eod-token";
		argv[words++] = options->eod_token;
	}
	if (options->bos_token != NULL) {
		argv[words++] = "--bos-token";
		argv[words++] = options->bos_token;
	}
	if (options->messages_key != NULL) {
		argv[words++] = "--messages";
		argv[words++] = options->messages_key;
	}
	if (options->chat_template != NULL) {
		argv[words++] = "--chat-template";
		argv[words++] = options->chat_template;
	}
	argv[words] = options->path;
	int rc = wlb_helper_start(&t->helper, argv, -1, error);
	free(program);
	return rc;
}

/* Ends the process and says why; *bad_input is 1 where it has refused the tokenizer. */
static int fail_ended(struct wlb_tokenizer *t, const struct wlb_error *why, int *bad_input, struct wlb_error *error)
{
	enum { REFUSED = 2 }; /* its exit code */
	char said[512];
	int code = wlb_helper_end(&t->helper, *t->interrupted ? 0 : END_LIMIT_S, said, sizeof(said));
	*bad_input = code == REFUSED;
	if (*t->interrupted)
		return wlb_fail(error, "interrupted");
	if (code == REFUSED)
		return wlb_fail(error, "--tokenizer: %s", said);
	return wlb_fail(error, "--tokenizer %s: its process failed with exit code %d: %s%s%s", t->options->path, code,
	                why->message, said[0] != '\0' ? ": " : "", said);
}

/* Takes an id, or null for -1. Returns 0 where it is neither. */
static int take_id(const json_t *value, int64_t ids, int64_t *id)
{
	*id = json_is_integer(value) ? json_integer_value(value) : -1;
	return json_is_null(value) || (json_is_integer(value) && *id >= 0 && *id < ids);
}

/* Reads what a process says of its tokenizer. */
static int parse_facts(const char *text, size_t bytes, struct wlb_tokenizer_facts *facts, struct wlb_error *error)
{
	json_error_t json_error;
	json_t *eod, *bos;
	const char *file, *library, *sha256, *chat_template = "";
	json_int_t vocabulary, ids;
	json_t *object = json_loadb(text, bytes, 0, &json_error);
	int rc = 0;
	*facts = (struct wlb_tokenizer_facts){0};
	if (object == NULL ||
	    json_unpack_ex(object, &json_error, 0, "{s:s, s:s, s:s, s:I, s:I, s:o, s:o, s?s}", "file", &file, "library",
	                   &library, "sha256", &sha256, "vocabulary", &vocabulary, "ids", &ids, "eod", &eod, "bos",
	                   &bos, "chat_template", &chat_template) < 0)
		rc = wlb_fail(error, "what it says of the tokenizer is not understood: %s", json_error.text);
	else if (strlen(sha256) != 64 || strlen(chat_template) > 64 || vocabulary < 1 || ids < vocabulary ||
	         ids > LARGEST_IDS || !take_id(eod, ids, &facts->eod) || !take_id(bos, ids, &facts->bos))
		rc = wlb_fail(error, "what it says of the tokenizer is outside of its bounds");
	if (rc == 0) {
		facts->vocabulary = vocabulary;
		facts->ids = ids;
		memcpy(facts->sha256, sha256, sizeof(facts->sha256));
		strcpy(facts->chat_template, chat_template);
		facts->file = strdup(file);
		facts->library = strdup(library);
		if (facts->file == NULL || facts->library == NULL) {
			wlb_tokenizer_facts_free(facts);
			rc = wlb_fail(error, "out of memory");
		}
	}
	json_decref(object);
	return rc;
}

static int read_head(struct wlb_tokenizer *t, struct wlb_tokenizer_facts *facts, struct wlb_error *error)
{
	uint32_t stored;
	if (wlb_helper_read(&t->helper, &stored, sizeof(stored), LOAD_LIMIT_S, t->interrupted, error) < 0)
		return -1;
	uint32_t bytes = le32toh(stored);
	if (bytes > LARGEST_HEAD_BYTES)
		return wlb_fail(error, "what it says of the tokenizer has %u bytes: at most %d are taken", bytes,
		                LARGEST_HEAD_BYTES);
	char *text = malloc(bytes + 1);
	if (text == NULL)
		return wlb_fail(error, "out of memory");
	int rc = wlb_helper_read(&t->helper, text, bytes, LOAD_LIMIT_S, t->interrupted, error);
	if (rc == 0)
		rc = parse_facts(text, bytes, facts, error);
	free(text);
	return rc;
}

int wlb_tokenizer_read_facts(struct wlb_tokenizer *t, struct wlb_tokenizer_facts *facts, int *bad_input,
                             struct wlb_error *error)
{
	struct wlb_error why;
	return read_head(t, facts, &why) < 0 ? fail_ended(t, &why, bad_input, error) : 0;
}

static int64_t limit_s(const struct wlb_text_batch *batch)
{
	return BATCH_LIMIT_S + (int64_t)(batch->byte_count / SLOWEST_BYTES_PER_S);
}

int wlb_tokenizer_send(struct wlb_tokenizer *t, const struct wlb_text_batch *batch, struct wlb_error *error)
{
	struct wlb_error why;
	int bad_input;
	uint32_t *head = malloc((1 + batch->text_count) * sizeof(*head));
	if (head == NULL)
		return wlb_fail(error, "out of memory");
	head[0] = htole32((uint32_t)batch->text_count);
	for (size_t i = 0; i < batch->text_count; i++)
		head[1 + i] = htole32(batch->lengths[i]);
	int rc = wlb_helper_write(&t->helper, head, (1 + batch->text_count) * sizeof(*head), BATCH_LIMIT_S,
	                          t->interrupted, &why);
	free(head);
	if (rc == 0)
		rc = wlb_helper_write(&t->helper, batch->bytes, batch->byte_count, BATCH_LIMIT_S, t->interrupted, &why);
	return rc < 0 ? fail_ended(t, &why, &bad_input, error) : 0;
}

/* Reads so many numbers, and changes them to the order of bytes of this machine. */
static int read_numbers(struct wlb_tokenizer *t, uint32_t *numbers, size_t count, int64_t limit,
                        struct wlb_error *error)
{
	if (wlb_helper_read(&t->helper, numbers, count * sizeof(*numbers), limit, t->interrupted, error) < 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		numbers[i] = le32toh(numbers[i]);
	return 0;
}

/* Checks the number of ids of each text, and returns that of all; -1 where one is not possible. */
static int64_t check_counts(const struct wlb_text_batch *batch, const uint32_t *counts, int64_t more,
                            struct wlb_error *error)
{
	int64_t total = 0;
	for (size_t i = 0; i < batch->text_count; i++) {
		int64_t most = (int64_t)IDS_PER_BYTE * batch->lengths[i] + more;
		if (counts[i] > most)
			return wlb_fail(error, "it says %u ids for a text of %u bytes: at most %lld are taken",
			                counts[i], batch->lengths[i], (long long)most);
		total += counts[i];
	}
	return total;
}

/* Takes the mask out of the ids of conversations, and reads the reason behind them. */
static int read_conversations(struct wlb_tokenizer *t, struct wlb_token_ids *to, int64_t total, struct wlb_error *error)
{
	uint32_t bytes;
	if (wlb_grow((void **)&to->loss_mask, &to->mask_capacity, (size_t)total, 1) < 0)
		return wlb_fail(error, "out of memory for %lld ids", (long long)total);
	for (int64_t i = 0; i < total; i++) {
		to->loss_mask[i] = ((uint32_t)to->ids[i] & ANSWER) != 0;
		to->ids[i] = (int32_t)((uint32_t)to->ids[i] & ~ANSWER);
	}
	if (read_numbers(t, &bytes, 1, BATCH_LIMIT_S, error) < 0)
		return -1;
	if (bytes >= sizeof(to->refusal))
		return wlb_fail(error, "it says a reason of %u bytes: it must have less than %zu", bytes,
		                sizeof(to->refusal));
	to->refusal[bytes] = '\0';
	return wlb_helper_read(&t->helper, to->refusal, bytes, BATCH_LIMIT_S, t->interrupted, error);
}

static int read_reply(struct wlb_tokenizer *t, const struct wlb_text_batch *batch, int64_t ids,
                      struct wlb_token_ids *to, struct wlb_error *error)
{
	uint32_t texts;
	if (read_numbers(t, &texts, 1, limit_s(batch), error) < 0)
		return -1;
	if (texts != batch->text_count)
		return wlb_fail(error, "it replies for %u texts, and %zu were sent", texts, batch->text_count);
	if (wlb_grow((void **)&to->counts, &to->count_capacity, texts, sizeof(*to->counts)) < 0)
		return wlb_fail(error, "out of memory for %u texts", texts);
	if (read_numbers(t, to->counts, texts, BATCH_LIMIT_S, error) < 0)
		return -1;
	int64_t more = t->options->messages_key != NULL ? TEMPLATE_IDS : MORE_IDS;
	int64_t total = check_counts(batch, to->counts, more, error);
	if (total < 0)
		return -1;
	if (wlb_grow((void **)&to->ids, &to->id_capacity, (size_t)total, sizeof(*to->ids)) < 0)
		return wlb_fail(error, "out of memory for %lld ids", (long long)total);
	if (read_numbers(t, (uint32_t *)to->ids, (size_t)total, BATCH_LIMIT_S, error) < 0)
		return -1;
	if (t->options->messages_key != NULL && read_conversations(t, to, total, error) < 0)
		return -1;
	for (int64_t i = 0; i < total; i++)
		if (to->ids[i] < 0 || to->ids[i] >= ids)
			return wlb_fail(error, "it says id %u, and the tokenizer has ids below %lld",
			                (uint32_t)to->ids[i], (long long)ids);
	return 0;
}

int wlb_tokenizer_receive(struct wlb_tokenizer *t, const struct wlb_text_batch *batch, int64_t ids,
                          struct wlb_token_ids *to, struct wlb_error *error)
{
	struct wlb_error why;
	int bad_input;
	return read_reply(t, batch, ids, to, &why) < 0 ? fail_ended(t, &why, &bad_input, error) : 0;
}

void wlb_tokenizer_close(struct wlb_tokenizer *t)
{
	wlb_helper_end(&t->helper, t->interrupted != NULL && *t->interrupted ? 0 : END_LIMIT_S, NULL, 0);
}

int wlb_tokenizer_facts_equal(const struct wlb_tokenizer_facts *a, const struct wlb_tokenizer_facts *b)
{
	return strcmp(a->sha256, b->sha256) == 0 && strcmp(a->library, b->library) == 0 &&
	       strcmp(a->chat_template, b->chat_template) == 0 && a->eod == b->eod && a->bos == b->bos &&
	       a->ids == b->ids && a->vocabulary == b->vocabulary;
}

void wlb_tokenizer_facts_free(struct wlb_tokenizer_facts *facts)
{
	free(facts->file);
	free(facts->library);
	*facts = (struct wlb_tokenizer_facts){0};
}

void wlb_token_ids_free(struct wlb_token_ids *ids)
{
	free(ids->counts);
	free(ids->ids);
	free(ids->loss_mask);
	*ids = (struct wlb_token_ids){0};
}
