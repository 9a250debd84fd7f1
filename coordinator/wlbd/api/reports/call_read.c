#include "coordinator/wlbd/api/reports/call_read.h"

#include "coordinator/wlbd/api/reports/entry_values.h"
#include "coordinator/wlbd/http/fields.h"

#define MICROSECONDS_MAX INT64_C(1000000000000000)
#define SEQ_MAX INT64_C(1000000000000000)
#define BYTES_MAX INT64_C(1000000000000000000)

/* The places of the values in an entry. */
enum place { RANK, GROUP, SEQ, BYTES, ENTERED, BLOCKED, LEFT, VALUES };

/* A time of a node's clock in microseconds, none before `min`. */
static int read_time(const char *what, const json_t *value, int64_t min, int64_t *microseconds, double *time_s,
                     struct wlb_error *error)
{
	if (wlbd_value_integer(what, value, min, MICROSECONDS_MAX, microseconds, error) != 0)
		return -1;
	*time_s = 1e-6 * (double)*microseconds;
	return 0;
}

int wlbd_call_read(const json_t *entry, struct wlbd_rank_call *call, struct wlb_error *error)
{
	int64_t rank = 0, entered = 0, blocked = 0, left = 0;
	const json_t *value[VALUES];
	*call = (struct wlbd_rank_call){0};
	if (json_array_size(entry) != VALUES)
		return wlbd_value_refuse("entry", entry, "an array of 7 values", error);
	for (size_t i = 0; i < VALUES; i++)
		value[i] = json_array_get(entry, i);
	if (wlbd_value_integer("rank", value[RANK], 0, WLBD_RANKS_MAX, &rank, error) != 0 ||
	    wlbd_value_name("group", value[GROUP], call->group, sizeof(call->group), error) != 0 ||
	    wlbd_value_integer("seq", value[SEQ], 0, SEQ_MAX, &call->seq, error) != 0 ||
	    wlbd_value_integer("bytes", value[BYTES], 0, BYTES_MAX, &call->bytes, error) != 0 ||
	    read_time("time entered", value[ENTERED], 0, &entered, &call->entered_s, error) != 0 ||
	    read_time("time blocked", value[BLOCKED], entered, &blocked, &call->blocked_s, error) != 0 ||
	    read_time("time left", value[LEFT], blocked, &left, &call->left_s, error) != 0)
		return -1;
	call->rank = (int)rank;
	return 0;
}

int wlbd_calls_check(const json_t *body, const json_t **calls, struct wlb_error *error)
{
	struct wlbd_rank_call call;
	if (wlbd_field_array(body, "calls", WLBD_OPTIONAL, WLBD_CALLS_MAX, calls, error) != 0)
		return -1;
	for (size_t i = 0; i < json_array_size(*calls); i++)
		if (wlbd_call_read(json_array_get(*calls, i), &call, error) != 0)
			return wlb_fail_in(error, "calls[%zu]", i);
	return 0;
}
