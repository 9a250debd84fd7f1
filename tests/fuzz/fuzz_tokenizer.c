/* Whatever a tokenizer's process says: refused with a reason, or facts and ids within their bounds. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "tests/fuzz/scratch.h"
#include "worker/data/tokenizer.h"

static void check_id(int64_t id, const struct wlb_tokenizer_facts *facts)
{
	must(id >= -1 && id < facts->ids);
}

/* Of conversations each id has a byte of the mask, and a reason ends. */
static void check_conversations(const struct wlb_token_ids *ids, int64_t count)
{
	for (int64_t i = 0; i < count; i++)
		must(ids->loss_mask[i] <= 1);
	must(memchr(ids->refusal, '\0', sizeof(ids->refusal)) != NULL);
}

static void check_reply(struct wlb_tokenizer *t, const struct wlb_tokenizer_facts *facts)
{
	static const struct wlb_text two = {.bytes = "one\ntwo", .length = 7}, empty = {.bytes = ""};
	struct wlb_text_batch batch = {0};
	struct wlb_token_ids ids = {0};
	struct wlb_error error;
	must(wlb_text_batch_add(&batch, &two, 1, &error) == 0);
	must(wlb_text_batch_add(&batch, &empty, 0, &error) == 0);
	while (wlb_tokenizer_receive(t, &batch, facts->ids, &ids, &error) == 0) {
		const int32_t *id = ids.ids;
		for (size_t i = 0; i < batch.text_count; i++)
			for (uint32_t k = 0; k < ids.counts[i]; k++, id++)
				must(*id >= 0 && *id < facts->ids);
		if (t->options->messages_key != NULL)
			check_conversations(&ids, id - ids.ids);
	}
	wlb_token_ids_free(&ids);
	wlb_text_batch_free(&batch);
}

static void check(const uint8_t *data, size_t bytes, const struct wlb_tokenizer_options *options)
{
	static const volatile sig_atomic_t interrupted = 0;
	struct wlb_error error;
	struct wlb_tokenizer_facts facts;
	int bad_input, fd = open(scratch_write("said", data, bytes), O_RDONLY | O_CLOEXEC);
	must(fd >= 0);
	struct wlb_tokenizer t = {{.in = -1, .out = fd, .said = -1}, options, &interrupted};
	if (wlb_tokenizer_read_facts(&t, &facts, &bad_input, &error) == 0) {
		must(facts.vocabulary > 0 && facts.ids >= facts.vocabulary);
		check_id(facts.eod, &facts);
		check_id(facts.bos, &facts);
		check_reply(&t, &facts);
		wlb_tokenizer_facts_free(&facts);
	}
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static const struct wlb_tokenizer_options texts = {.path = "x"},
						  conversations = {.path = "x", .messages_key = "m"};
	check(data, bytes, &texts);
	check(data, bytes, &conversations);
	return 0;
}
