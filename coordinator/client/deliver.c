#include "coordinator/client/deliver.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <jansson.h>

#include "coordinator/client/clock.h"
#include "coordinator/client/reply.h"
#include "coordinator/client/reporter.h"

enum { BATCH_RECORDS = 1000, REQUEST_MS = 5000 };

/* acked_seq of a reply; -1 when it has none. */
static int64_t reply_acked(const struct wlb_reply *reply)
{
	json_int_t acked = -1;
	json_t *root = json_loadb(reply->body, reply->length, 0, NULL);
	json_unpack(root, "{s:I}", "acked_seq", &acked);
	json_decref(root);
	return acked;
}

static enum wlb_delivery accept_reply(struct wlb_spool *spool, const struct wlb_reply *reply, struct wlb_error *error)
{
	int64_t before = wlb_spool_acked(spool);
	int64_t acked = reply->status == 200 || reply->status == 409 ? reply_acked(reply) : -1;
	if (acked < 0)
		wlb_reply_failure(reply, error);
	/* Anything but a clear refusal of a live service may be over in a moment. */
	if (acked < 0 && (reply->status >= 500 || reply->status < 400))
		return WLB_DELIVERY_AWAY;
	if (acked < 0 || wlb_spool_acknowledge(spool, acked, error) != 0)
		return WLB_DELIVERY_REFUSED;
	if (wlb_spool_pending(spool) == 0)
		return WLB_DELIVERY_DONE;
	if (wlb_spool_acked(spool) != before)
		return WLB_DELIVERY_MORE;
	wlb_reply_failure(reply, error);
	return WLB_DELIVERY_REFUSED;
}

enum wlb_delivery wlb_deliver_batch(struct wlb_connection *connection, struct wlb_spool *spool, int timeout_ms,
                                    struct wlb_error *error)
{
	char path[128];
	struct wlb_reply reply;
	snprintf(path, sizeof(path), "/v1/runs/%s/records", wlb_spool_whose(spool)->run_id);
	for (int records = BATCH_RECORDS; records > 0; records /= 2) {
		if (wlb_spool_pending(spool) == 0)
			return WLB_DELIVERY_DONE;
		char *body = wlb_spool_batch(spool, records, error);
		if (body == NULL)
			return WLB_DELIVERY_REFUSED;
		int rc = wlb_connection_call(connection, "POST", path, body, timeout_ms, &reply, error);
		free(body);
		if (rc != 0)
			return WLB_DELIVERY_AWAY;
		if (reply.status != 413 || records == 1)
			break;
		free(reply.body);
	}
	enum wlb_delivery outcome = accept_reply(spool, &reply, error);
	free(reply.body);
	return outcome;
}

/* ---- what earlier processes left ------------------------------------------------------------------------------ */

struct leftover {
	char path[PATH_MAX];
	time_t written;
};

static int by_age(const void *a, const void *b)
{
	const struct leftover *x = a, *y = b;
	return (x->written > y->written) - (x->written < y->written);
}

static bool is_spool(const char *name)
{
	size_t length = strlen(name);
	return name[0] != '.' && length > 6 && strcmp(name + length - 6, ".jsonl") == 0;
}

/* Spools in `dir`, oldest first; a folder that is not there has none. */
static int list_leftovers(const char *dir, struct leftover **list, int *count, struct wlb_error *error)
{
	*list = NULL;
	*count = 0;
	DIR *folder = opendir(dir);
	if (folder == NULL && errno == ENOENT)
		return 0;
	if (folder == NULL)
		return wlb_fail(error, "spool folder %s: cannot be read: %s", dir, strerror(errno));
	for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
		struct leftover item;
		struct stat about;
		int n = snprintf(item.path, sizeof(item.path), "%s/%s", dir, entry->d_name);
		if (!is_spool(entry->d_name) || n >= (int)sizeof(item.path) || stat(item.path, &about) != 0)
			continue;
		item.written = about.st_mtime;
		struct leftover *more = realloc(*list, sizeof(item) * (size_t)(*count + 1));
		if (more == NULL)
			break;
		*list = more;
		more[(*count)++] = item;
	}
	closedir(folder);
	qsort(*list, (size_t)*count, sizeof(**list), by_age);
	return 0;
}

/* Records of one spool that could not be delivered by the deadline; what stood in the way is in `error`. */
static int64_t deliver_leftover(struct wlb_connection *connection, const char *path, int64_t deadline_ms, bool *away,
                                struct wlb_error *error)
{
	bool busy;
	struct wlb_spool *spool = wlb_spool_adopt(path, &busy, error);
	if (spool == NULL)
		return busy ? 0 : 1;
	enum wlb_delivery outcome = WLB_DELIVERY_MORE;
	while (!*away && outcome == WLB_DELIVERY_MORE) {
		int left_ms = wlb_clock_left_ms(deadline_ms);
		if (left_ms == 0)
			outcome = WLB_DELIVERY_AWAY;
		else
			outcome = wlb_deliver_batch(connection, spool, left_ms < REQUEST_MS ? left_ms : REQUEST_MS,
			                            error);
	}
	*away = *away || outcome == WLB_DELIVERY_AWAY;
	int64_t left = wlb_spool_pending(spool);
	wlb_spool_close(spool, true);
	return left;
}

int64_t wlb_spool_deliver(const struct wlb_client_config *config, const char *spool_dir, int timeout_ms,
                          struct wlb_error *error)
{
	struct leftover *list;
	int count;
	if (list_leftovers(spool_dir, &list, &count, error) != 0)
		return -1;
	struct wlb_connection *connection = count > 0 ? wlb_connection_new(config) : NULL;
	int64_t deadline_ms = wlb_clock_ms() + timeout_ms;
	bool away = false;
	int64_t left = 0;
	for (int i = 0; connection != NULL && i < count; i++)
		left += deliver_leftover(connection, list[i].path, deadline_ms, &away, error);
	if (connection == NULL && count > 0)
		left = wlb_fail(error, "no memory for a connection");
	wlb_connection_free(connection);
	free(list);
	return left;
}
