#include "coordinator/wlbd/api/records/record_check.h"

#include <string.h>

#include "common/fault_kinds.h"
#include "coordinator/wlbd/api/first_exit.h"
#include "coordinator/wlbd/api/records/followed_check.h"
#include "coordinator/wlbd/api/records/gpus_check.h"
#include "coordinator/wlbd/api/records/plan_check.h"
#include "coordinator/wlbd/http/fields.h"

/*
 * Bounds far above the values of any run, so that no sum and no quotient of stored values leaves the range of its type.
 * docs/api.md lists them.
 */
#define COUNT_MAX INT64_C(1000000000000)       /* steps, tokens, documents, lengths */
#define BYTES_MAX INT64_C(1000000000000000000) /* of a checkpoint */
#define SECONDS_MAX 1e7
#define TIME_MAX_S 1e11 /* since 1970 */
#define RATIO_MAX 1e9
#define RATE_MAX 1e15       /* of tokens each second */
#define MAGNITUDE_MAX 1e100 /* of losses and norms, which are large in a run that diverges */

enum { ERROR_BYTES_MAX = 1024 };

static int check_layout(const json_t *data, struct wlb_error *error)
{
	static const char *const ways[] = {"tp", "cp", "pp", "dp"};
	const json_t *layout = NULL;
	int64_t way;
	if (wlbd_field_object(data, "layout", WLBD_OPTIONAL, &layout, error) != 0)
		return -1;
	for (int i = 0; layout != NULL && i < 4; i++)
		if (wlbd_field_integer(layout, ways[i], WLBD_REQUIRED, 1, WLBD_RANKS_MAX, &way, error) != 0)
			return wlb_fail_in(error, "layout");
	return 0;
}

/* Each rank of the map, which is below `world_size`, once. */
static int check_ranks_once(const json_t *map, int64_t world_size, struct wlb_error *error)
{
	uint64_t is_listed[WLBD_RANKS_MAX / 64]; /* bits */
	memset(is_listed, 0, ((size_t)world_size + 63) / 64 * sizeof(*is_listed));
	for (size_t i = 0; i < json_array_size(map); i++) {
		json_int_t rank = json_integer_value(json_object_get(json_array_get(map, i), "rank"));
		uint64_t bit = UINT64_C(1) << (rank % 64);
		if ((is_listed[rank / 64] & bit) != 0)
			return wlb_fail(error,
			                "rank_map[%zu]: rank %lld is listed twice: list each rank once, with its node",
			                i, (long long)rank);
		is_listed[rank / 64] |= bit;
	}
	return 0;
}

static int check_rank_map(const json_t *data, struct wlb_error *error)
{
	const json_t *map = NULL;
	const char *node;
	int64_t world_size, number;
	if (wlbd_field_integer(data, "world_size", WLBD_REQUIRED, 1, WLBD_RANKS_MAX, &world_size, error) != 0 ||
	    wlbd_field_array(data, "rank_map", WLBD_REQUIRED, (size_t)world_size, &map, error) != 0)
		return -1;
	for (size_t i = 0; i < json_array_size(map); i++) {
		const json_t *entry = json_array_get(map, i);
		if (!json_is_object(entry) ||
		    wlbd_field_integer(entry, "rank", WLBD_REQUIRED, 0, world_size - 1, &number, error) != 0 ||
		    wlbd_field_integer(entry, "local_rank", WLBD_REQUIRED, 0, world_size - 1, &number, error) != 0 ||
		    wlbd_field_text(entry, "node", WLBD_REQUIRED, WLBD_NAME_MAX, &node, error) != 0)
			return wlb_fail_in(error, "rank_map[%zu]", i);
	}
	return check_ranks_once(map, world_size, error);
}

static int check_attempt(const json_t *data, struct wlb_error *error)
{
	static const char *const on_rank_exit[] = {"end", "continue", NULL};
	const json_t *model;
	const char *text;
	int64_t number;
	bool saves;
	if (check_layout(data, error) != 0 ||
	    wlbd_field_boolean(data, "saves_on_request", WLBD_OPTIONAL, &saves, error) != 0 ||
	    wlbd_field_choice(data, "on_rank_exit", WLBD_OPTIONAL, on_rank_exit, &text, error) != 0 ||
	    check_rank_map(data, error) != 0 || wlbd_field_object(data, "model", WLBD_OPTIONAL, &model, error) != 0 ||
	    wlbd_field_bounded(data, "model", WLBD_MODEL_BYTES_MAX, error) != 0 ||
	    wlbd_field_integer(data, "seq_length", WLBD_OPTIONAL, 1, COUNT_MAX, &number, error) != 0 ||
	    wlbd_field_integer(data, "global_batch_size", WLBD_OPTIONAL, 1, COUNT_MAX, &number, error) != 0 ||
	    wlbd_field_integer(data, "train_iters", WLBD_OPTIONAL, 0, COUNT_MAX, &number, error) != 0 ||
	    wlbd_field_integer(data, "restart_count", WLBD_OPTIONAL, 0, INT32_MAX, &number, error) != 0 ||
	    wlbd_field_integer(data, "resumed_step", WLBD_OPTIONAL, 0, COUNT_MAX, &number, error) != 0 ||
	    wlbd_field_text(data, "checkpoint", WLBD_OPTIONAL, WLBD_TEXT_MAX, &text, error) != 0 ||
	    wlbd_field_text(data, "dtype", WLBD_OPTIONAL, WLBD_NAME_MAX, &text, error) != 0 ||
	    wlbd_field_text(data, "device", WLBD_OPTIONAL, WLBD_NAME_MAX, &text, error) != 0)
		return -1;
	return 0;
}

/* The times of the parts of a step: seconds by name. */
static int check_parts(const json_t *data, struct wlb_error *error)
{
	const json_t *parts = NULL;
	const char *name;
	json_t *part;
	double seconds;
	if (wlbd_field_object(data, "parts", WLBD_OPTIONAL, &parts, error) != 0)
		return -1;
	if (json_object_size(parts) > WLBD_PARTS_MAX)
		return wlb_fail(error, "field 'parts': %zu names; it may have %d", json_object_size(parts),
		                WLBD_PARTS_MAX);
	json_object_foreach((json_t *)parts, name, part)
	{
		if (strlen(name) > WLBD_PART_NAME_BYTES_MAX)
			return wlb_fail(error, "field 'parts': the name '%.20s...' must have at most %d bytes", name,
			                WLBD_PART_NAME_BYTES_MAX);
		if (wlbd_field_number(parts, name, WLBD_OPTIONAL, -SECONDS_MAX, SECONDS_MAX, &seconds, error) != 0)
			return wlb_fail_in(error, "parts");
	}
	return 0;
}

static int check_step(const json_t *data, struct wlb_error *error)
{
	static const struct {
		const char *name;
		double least, most;
	} numbers[] = {
		{"loss", -MAGNITUDE_MAX, MAGNITUDE_MAX},
		{"grad_norm", 0, MAGNITUDE_MAX},
		{"lr", -MAGNITUDE_MAX, MAGNITUDE_MAX},
		{"step_time_s", 0, SECONDS_MAX},
		{"tokens_per_s", 0, RATE_MAX},
		{"predicted_imbalance", 0, RATIO_MAX},
		{"imbalance", 0, RATIO_MAX},
	};
	static const char *const counts[] = {"tokens", "documents", "held_tokens", "loss_tokens"};
	int64_t count;
	double number;
	if (wlbd_field_integer(data, "step", WLBD_REQUIRED, 0, COUNT_MAX, &count, error) != 0 ||
	    wlbd_field_integer(data, "memory_bytes", WLBD_OPTIONAL, 0, BYTES_MAX, &count, error) != 0 ||
	    wlbd_field_integer(data, "global_batch_size", WLBD_OPTIONAL, 1, COUNT_MAX, &count, error) != 0 ||
	    check_parts(data, error) != 0)
		return -1;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (wlbd_field_number(data, numbers[i].name, WLBD_OPTIONAL, numbers[i].least, numbers[i].most, &number,
		                      error) != 0)
			return -1;
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		if (wlbd_field_integer(data, counts[i], WLBD_OPTIONAL, 0, COUNT_MAX, &count, error) != 0)
			return -1;
	return 0;
}

/* A checkpoint that a trainer reports, or a save that the hook has seen, whose `step` may not be known. */
static int check_save(const json_t *data, enum wlbd_need step, struct wlb_error *error)
{
	const char *path;
	int64_t count;
	double number;
	if (wlbd_field_integer(data, "step", step, 0, COUNT_MAX, &count, error) != 0 ||
	    wlbd_field_text(data, "path", WLBD_REQUIRED, WLBD_TEXT_MAX, &path, error) != 0 ||
	    wlbd_field_integer(data, "bytes", WLBD_OPTIONAL, 0, BYTES_MAX, &count, error) != 0 ||
	    wlbd_field_number(data, "duration_s", WLBD_OPTIONAL, 0, SECONDS_MAX, &number, error) != 0 ||
	    wlbd_field_number(data, "stall_s", WLBD_OPTIONAL, 0, SECONDS_MAX, &number, error) != 0)
		return -1;
	return 0;
}

static int check_checkpoint(const json_t *data, struct wlb_error *error)
{
	return check_save(data, WLBD_REQUIRED, error);
}

static int check_evaluation(const json_t *data, struct wlb_error *error)
{
	int64_t count;
	double number;
	if (wlbd_field_integer(data, "step", WLBD_REQUIRED, 0, COUNT_MAX, &count, error) != 0 ||
	    wlbd_field_number(data, "loss", WLBD_OPTIONAL, -MAGNITUDE_MAX, MAGNITUDE_MAX, &number, error) != 0 ||
	    wlbd_field_integer(data, "tokens", WLBD_OPTIONAL, 0, COUNT_MAX, &count, error) != 0 ||
	    wlbd_field_number(data, "duration_s", WLBD_OPTIONAL, 0, SECONDS_MAX, &number, error) != 0)
		return -1;
	return 0;
}

static int check_fault(const json_t *data, struct wlb_error *error)
{
	const char *kinds[WLB_FAULT_KIND_COUNT + 1], *text;
	int64_t count;
	int kind_count = 0;
	for (int kind = 0; kind < WLB_FAULT_KIND_COUNT; kind++)
		if (wlb_faults[kind].may_record)
			kinds[kind_count++] = wlb_faults[kind].name;
	kinds[kind_count] = NULL;
	if (wlbd_field_choice(data, "kind", WLBD_REQUIRED, kinds, &text, error) != 0 ||
	    wlbd_field_integer(data, "rank", WLBD_OPTIONAL, 0, WLBD_RANKS_MAX, &count, error) != 0 ||
	    wlbd_field_text(data, "node", WLBD_OPTIONAL, WLBD_NAME_MAX, &text, error) != 0 ||
	    wlbd_field_integer(data, "step", WLBD_OPTIONAL, 0, COUNT_MAX, &count, error) != 0 ||
	    wlbd_field_text(data, "detail", WLBD_OPTIONAL, WLBD_TEXT_MAX, &text, error) != 0 ||
	    wlbd_field_bounded(data, "evidence", WLBD_EVIDENCE_BYTES_MAX, error) != 0)
		return -1;
	return 0;
}

static int check_event(const json_t *data, struct wlb_error *error)
{
	const json_t *save = NULL;
	const char *text;
	if (wlbd_field_object(data, "save", WLBD_OPTIONAL, &save, error) != 0 ||
	    (save != NULL && check_save(save, WLBD_OPTIONAL, error) != 0))
		return -1;
	if (wlbd_field_text(data, "kind", WLBD_REQUIRED, WLBD_NAME_MAX, &text, error) != 0)
		return -1;
	return wlbd_field_text(data, "detail", WLBD_OPTIONAL, WLBD_TEXT_MAX, &text, error);
}

/* One line of an exception; the database cleans texts that are shown (sql/functions/outputs.sql). */
static int check_error(const json_t *data, struct wlb_error *error)
{
	const json_t *found = NULL;
	const char *text;
	int64_t rank;
	bool is_consequence;
	if (wlbd_field_object(data, "error", WLBD_OPTIONAL, &found, error) != 0)
		return -1;
	if (found == NULL)
		return 0;
	if (wlbd_field_text(found, "text", WLBD_REQUIRED, ERROR_BYTES_MAX, &text, error) != 0 ||
	    wlbd_field_text(found, "cause", WLBD_OPTIONAL, ERROR_BYTES_MAX, &text, error) != 0 ||
	    wlbd_field_integer(found, "rank", WLBD_OPTIONAL, 0, WLBD_RANKS_MAX, &rank, error) != 0 ||
	    wlbd_field_boolean(found, "is_consequence", WLBD_OPTIONAL, &is_consequence, error) != 0)
		return wlb_fail_in(error, "error");
	return 0;
}

/* How an attempt was started, and where its output goes. */
static int check_command(const json_t *data, struct wlb_error *error)
{
	const char *text;
	int64_t offset;
	bool is_labelled;
	if (wlbd_field_text(data, "command", WLBD_REQUIRED, WLBD_TEXT_MAX, &text, error) != 0 ||
	    wlbd_field_text(data, "stdout", WLBD_OPTIONAL, WLBD_TEXT_MAX, &text, error) != 0 ||
	    wlbd_field_text(data, "stderr", WLBD_OPTIONAL, WLBD_TEXT_MAX, &text, error) != 0 ||
	    wlbd_field_integer(data, "stdout_offset", WLBD_OPTIONAL, 0, BYTES_MAX, &offset, error) != 0 ||
	    wlbd_field_integer(data, "stderr_offset", WLBD_OPTIONAL, 0, BYTES_MAX, &offset, error) != 0)
		return -1;
	return wlbd_field_boolean(data, "labelled", WLBD_OPTIONAL, &is_labelled, error);
}

static int read_attempt_end(const json_t *data, struct wlbd_attempt_end *end, struct wlb_error *error)
{
	static const char *const states[] = {"complete", "failed", "ended", NULL};
	enum { NO_CODE = 256, CODE_MAX = 255 };
	const char *text;
	int64_t code = NO_CODE;
	if (wlbd_field_choice(data, "state", WLBD_REQUIRED, states, &end->state, error) != 0 ||
	    wlbd_field_integer(data, "exit_code", WLBD_OPTIONAL, -CODE_MAX, CODE_MAX, &code, error) != 0 ||
	    wlbd_first_exit_read(data, &end->first_exit, error) != 0 || check_error(data, error) != 0)
		return -1;
	end->has_exit_code = code != NO_CODE;
	end->exit_code = (int)code;
	return wlbd_field_text(data, "reason", WLBD_OPTIONAL, WLBD_TEXT_MAX, &text, error);
}

static int check_data(const char *type, const json_t *data, struct wlbd_attempt_end *end, struct wlb_error *error)
{
	static const struct {
		const char *type;
		int (*check)(const json_t *data, struct wlb_error *error);
	} types[] = {
		{"step", check_step},
		{"attempt", check_attempt},
		{"checkpoint", check_checkpoint},
		{"fault", check_fault},
		{"event", check_event},
		{"plan", wlbd_plan_check},
		{"gpus", wlbd_gpus_check},
		{"command", check_command},
		{"followed", wlbd_followed_check},
		{"evaluation", check_evaluation},
	};
	if (strcmp(type, "attempt_end") == 0)
		return read_attempt_end(data, end, error) == 0 ? 0 : wlb_fail_in(error, "attempt_end");
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(type, types[i].type) == 0)
			return types[i].check(data, error) == 0 ? 0 : wlb_fail_in(error, "%s", type);
	return wlb_fail(error,
	                "field 'type': '%.60s' must be attempt, command, plan, gpus, step, followed, checkpoint, "
	                "evaluation, fault, event or attempt_end",
	                type);
}

static int check_record(const json_t *record, int64_t expected_seq, struct wlbd_attempt_end *end,
                        struct wlb_error *error)
{
	const json_t *data = NULL;
	const char *type = NULL;
	int64_t seq = 0;
	double time_s;
	if (!json_is_object(record))
		return wlb_fail(error, "must be an object");
	if (wlbd_field_integer(record, "seq", WLBD_REQUIRED, 1, INT64_MAX, &seq, error) != 0 ||
	    wlbd_field_number(record, "time", WLBD_REQUIRED, 0, TIME_MAX_S, &time_s, error) != 0 ||
	    wlbd_field_text(record, "type", WLBD_REQUIRED, WLBD_NAME_MAX, &type, error) != 0 ||
	    wlbd_field_object(record, "data", WLBD_REQUIRED, &data, error) != 0)
		return -1;
	if (seq != expected_seq)
		return wlb_fail(error, "field 'seq': %lld must be %lld: the first is first_seq, each further one more",
		                (long long)seq, (long long)expected_seq);
	return check_data(type, data, end, error);
}

int wlbd_delivery_check(const json_t *body, struct wlbd_delivery *delivery, struct wlb_error *error)
{
	static const char *const sources[] = {"run", "rank0", NULL};
	*delivery = (struct wlbd_delivery){0};
	if (wlbd_field_uuid(body, "attempt_id", &delivery->attempt_id, error) != 0 ||
	    wlbd_field_choice(body, "source", WLBD_REQUIRED, sources, &delivery->source, error) != 0 ||
	    wlbd_field_integer(body, "job_id", WLBD_OPTIONAL, 1, UINT32_MAX, &delivery->job_id, error) != 0 ||
	    wlbd_field_integer(body, "first_seq", WLBD_REQUIRED, 1, INT64_MAX - WLBD_RECORDS_MAX, &delivery->first_seq,
	                       error) != 0 ||
	    wlbd_field_array(body, "records", WLBD_REQUIRED, WLBD_RECORDS_MAX, &delivery->records, error) != 0)
		return -1;
	for (size_t i = 0; i < json_array_size(delivery->records); i++) {
		struct wlbd_attempt_end end = {0};
		if (check_record(json_array_get(delivery->records, i), delivery->first_seq + (int64_t)i, &end, error) !=
		    0)
			return wlb_fail_in(error, "records[%zu]", i);
		if (delivery->end.state == NULL)
			delivery->end = end;
	}
	return 0;
}
