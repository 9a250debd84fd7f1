/* Any file in the place of a spool: refused, or every record of it is delivered in order, damaged ones by name. Of
 * some, single records are refused, and in the end all that is left. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coordinator/client/spool.h"
#include "tests/fuzz/scratch.h"

enum { MOST_RECORDS = 3 };

/* The batch must be what wlbd accepts: JSON, with records that number on. Returns how many there are. */
static int64_t check_batch(const char *batch, int64_t first_seq)
{
	json_error_t at;
	json_t *body = json_loads(batch, JSON_DECODE_ANY, &at), *record;
	size_t i;
	if (body == NULL) /* a record nested to the parser's limit is two deeper here */
		must(json_error_code(&at) == json_error_stack_overflow);
	json_t *records = json_object_get(body, "records");
	must(body == NULL || (json_array_size(records) >= 1 && json_array_size(records) <= MOST_RECORDS));
	json_array_foreach(records, i, record)
		must(json_integer_value(json_object_get(record, "seq")) == first_seq + (int64_t)i);
	int64_t count = body ? (int64_t)json_array_size(records) : 1;
	json_decref(body);
	return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	enum wlb_spool_adoption adoption;
	struct wlb_error error;
	struct wlb_spool *spool = wlb_spool_adopt(scratch_write("a.rank0.jsonl", data, bytes), &adoption, &error);
	must(adoption != WLB_SPOOL_BUSY && (spool != NULL) == (adoption == WLB_SPOOL_ADOPTED));
	while (spool != NULL && wlb_spool_pending(spool) > 0) {
		int64_t pending = wlb_spool_pending(spool), acked = wlb_spool_acked(spool);
		char *batch = wlb_spool_batch(spool, MOST_RECORDS, &error);
		must(batch != NULL);
		must(wlb_spool_acknowledge(spool, acked + check_batch(batch, acked + 1), &error) == 0);
		must(wlb_spool_pending(spool) < pending);
		free(batch);
		if (data[bytes - 1] % 4 == 1)
			wlb_spool_refuse(spool, "refused", &error);
		if (data[bytes - 1] % 4 == 2 && wlb_spool_refuse_rest(spool, "refused", &error) >= 0)
			must(wlb_spool_pending(spool) == 0);
	}
	wlb_spool_close(spool, true);
	unlink(scratch_path("refused/a.rank0.jsonl"));
	return 0;
}
