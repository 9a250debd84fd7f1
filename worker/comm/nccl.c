/*
 * The transport over NCCL, for groups whose ranks each have a GPU of their own. A call is queued on the group's queue
 * and the host goes on. Communicators do not block: a call that NCCL has not queued yet is asked for until it is,
 * within the limit of the group.
 *
 * NCCL requires that no thread is in a call while ncclCommAbort is (its user guide, Fault Tolerance). So every call on
 * a communicator is made under one lock of the process, also a question that is repeated: the watchdog's abort comes
 * between two of them, and the next finds that the communicator is gone.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/seconds.h"
#include "worker/comm/nccl_library.h"
#include "worker/comm/queue_await.h"
#include "worker/comm/transport.h"

struct group {
	const struct wlb_transport_group *ranks;
	struct wlb_device *device;
	struct wlb_queue *queue;
	cudaStream_t stream;
	double limit_s;
	/* While it is connected: when the step began, and what NCCL said of it. */
	double began_s;
	ncclResult_t result;
	float *word;
	/* Under the lock: */
	ncclComm_t comm; /* NULL until it is opened */
	int aborted;     /* by the watchdog's thread, or after a failure; `comm` is gone then */
};

static pthread_mutex_t calls = PTHREAD_MUTEX_INITIALIZER;
static struct wlb_nccl nccl;
static int is_loaded;

int wlb_nccl_usable(struct wlb_error *error)
{
	if (!is_loaded && wlb_nccl_load(&nccl, error) < 0)
		return -1;
	is_loaded = 1;
	return 0;
}

/* Under the lock. */
static int fail(const struct group *g, ncclResult_t result, const char *what, struct wlb_error *error)
{
	return wlb_fail(error, "%s: %s (%s)", what, nccl.ncclGetErrorString(result), nccl.ncclGetLastError(g->comm));
}

/* Under the lock. */
static int is_usable(const struct group *g)
{
	return g->comm != NULL && !g->aborted;
}

/* Under the lock: how far the newest call of the communicator has come, or why it has failed. */
static ncclResult_t ask(const struct group *g)
{
	ncclResult_t result = ncclSuccess, asked = nccl.ncclCommGetAsyncError(g->comm, &result);
	return asked != ncclSuccess ? asked : result;
}

static void abort_group(void *state)
{
	struct group *g = state;
	pthread_mutex_lock(&calls);
	if (is_usable(g))
		nccl.ncclCommAbort(g->comm);
	g->aborted = 1;
	pthread_mutex_unlock(&calls);
}

/* Looks once at the call that has given *result: 1 where NCCL has done it, 0 where it is in progress, or -1. */
static int look(struct group *g, ncclResult_t *result, const char *what, struct wlb_error *error)
{
	int done = 0;
	pthread_mutex_lock(&calls);
	if (g->aborted) {
		done = wlb_fail(error, "%s: NCCL was aborted", what);
	} else {
		if (*result == ncclInProgress)
			*result = ask(g);
		if (*result != ncclInProgress)
			done = *result == ncclSuccess ? 1 : fail(g, *result, what, error);
	}
	pthread_mutex_unlock(&calls);
	return done;
}

/* Returns when NCCL has done what `result` says is in progress since began_s: 0, or -1 with the reason. */
static int await(struct group *g, ncclResult_t result, double began_s, const char *what, struct wlb_error *error)
{
	int done = look(g, &result, what, error);
	for (long polls = 0; done == 0; polls++) {
		if (wlb_now_s() - began_s > g->limit_s) {
			abort_group(g);
			return wlb_fail(error,
			                "%s has taken %.1f s, more than --distributed-timeout-minutes allows: does "
			                "every rank run, and do the nodes reach each other (NCCL_SOCKET_IFNAME)?",
			                what, g->limit_s);
		}
		if (polls > 1000)
			nanosleep(&(struct timespec){.tv_nsec = 100000L}, NULL);
		done = look(g, &result, what, error);
	}
	return done < 0 ? -1 : 0;
}

_Static_assert(sizeof(ncclUniqueId) == WLB_GROUP_ID_BYTES, "the id of a group is NCCL's");

static int make_id(char *id, struct wlb_error *error)
{
	ncclUniqueId made;
	ncclResult_t result = nccl.ncclGetUniqueId(&made);
	if (result != ncclSuccess)
		return wlb_fail(error, "ncclGetUniqueId: %s", nccl.ncclGetErrorString(result));
	memcpy(id, &made, sizeof(made));
	return 0;
}

static int find_type(enum wlb_dtype dtype, ncclDataType_t *type, struct wlb_error *error)
{
	switch (dtype) {
	case WLB_FLOAT32:
		*type = ncclFloat32;
		return 0;
	case WLB_FLOAT64:
		*type = ncclFloat64;
		return 0;
	case WLB_BFLOAT16:
		*type = ncclBfloat16;
		return 0;
	}
	return wlb_dtype_check(dtype, error);
}

/* Under the lock. */
static ncclResult_t call(const struct group *g, const struct wlb_transport_request *c, ncclDataType_t type)
{
	switch (c->kind) {
	case WLB_COMM_ALL_REDUCE:
		return nccl.ncclAllReduce(c->in, c->out, c->count, type, c->op == WLB_MAX ? ncclMax : ncclSum, g->comm,
		                          g->stream);
	case WLB_COMM_REDUCE_SCATTER:
		return nccl.ncclReduceScatter(c->in, c->out, c->count, type, ncclSum, g->comm, g->stream);
	case WLB_COMM_ALL_GATHER:
		return nccl.ncclAllGather(c->in, c->out, c->count, type, g->comm, g->stream);
	case WLB_COMM_SEND:
		return nccl.ncclSend(c->in, c->count, type, c->peer, g->comm, g->stream);
	case WLB_COMM_RECV:
		return nccl.ncclRecv(c->out, c->count, type, c->peer, g->comm, g->stream);
	case WLB_COMM_ALL_REDUCE_DOUBLE: /* on the host */
		break;
	}
	return ncclInvalidArgument;
}

/* Begins a call; what it returns is to be awaited. */
static ncclResult_t queue_request(const struct group *g, const struct wlb_transport_request *request,
                                  ncclDataType_t type)
{
	pthread_mutex_lock(&calls);
	ncclResult_t result = !is_usable(g) ? ncclInvalidUsage : call(g, request, type);
	pthread_mutex_unlock(&calls);
	return result;
}

/* Connecting has these steps, each for all groups before the next, so that NCCL connects them side by side: it opens a
 * communicator on a thread of its own. Its groups of calls are not for that: "Init functions cannot be aggregated with
 * other init functions" (user guide, Group Calls). */

/* Memory for a message between two ranks. CUDA may wait for the whole device when it is allocated or freed, so that is
 * done before the first message of any group is started, and after the last has ended. */
static int make_word(struct group *g, struct wlb_error *error)
{
	if (g->ranks->size != 2)
		return 0;
	g->word = g->device->ops->alloc(g->device, sizeof(*g->word), error);
	return g->word != NULL ? g->device->ops->synchronize(g->device, error) : -1;
}

static int free_word(struct group *g, struct wlb_error *error)
{
	(void)error;
	g->device->ops->release(g->device, g->word);
	g->word = NULL;
	return 0;
}

static int start_opening(struct group *g, struct wlb_error *error)
{
	ncclUniqueId id;
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	config.blocking = 0;
	memcpy(&id, g->ranks->id, sizeof(id));
	g->began_s = wlb_now_s();
	pthread_mutex_lock(&calls);
	g->result = g->aborted ? ncclInvalidUsage
	                       : nccl.ncclCommInitRankConfig(&g->comm, g->ranks->size, id, g->ranks->rank, &config);
	pthread_mutex_unlock(&calls);
	(void)error; /* what failed at once is found when it is awaited */
	return 0;
}

static int await_opening(struct group *g, struct wlb_error *error)
{
	return await(g, g->result, g->began_s, "opening by NCCL", error);
}

/* A first message from the first of two ranks to the second. NCCL connects two ranks in their first message, and the
 * host waits for it; on an edge of the pipeline that could be before the host has queued what the message needs. */
static int start_first_message(struct group *g, struct wlb_error *error)
{
	(void)error; /* as above */
	if (g->ranks->size != 2)
		return 0;
	const struct wlb_transport_request message = {.kind = g->ranks->rank == 0 ? WLB_COMM_SEND : WLB_COMM_RECV,
	                                              .out = g->word,
	                                              .in = g->word,
	                                              .count = 1,
	                                              .peer = 1 - g->ranks->rank};
	g->began_s = wlb_now_s();
	g->result = queue_request(g, &message, ncclFloat32);
	return 0;
}

static int await_first_message(struct group *g, struct wlb_error *error)
{
	if (g->ranks->size != 2)
		return 0;
	if (await(g, g->result, g->began_s, "connecting two ranks by NCCL", error) < 0)
		return -1;
	return wlb_queue_await(g->device, g->queue, g->began_s, g->limit_s, "the first message of NCCL", error);
}

static int connect_groups(void *const *states, int count, int *which, struct wlb_error *error)
{
	int (*const steps[])(struct group *, struct wlb_error *) = {
		make_word, start_opening, await_opening, start_first_message, await_first_message, free_word};
	for (size_t step = 0; step < sizeof(steps) / sizeof(steps[0]); step++)
		for (*which = 0; *which < count; (*which)++)
			if (steps[step](states[*which], error) < 0)
				return -1;
	return 0;
}

/* Begins to end the communicator, or ends it. */
static ncclResult_t end(const struct group *g, ncclResult_t (*call_nccl)(ncclComm_t))
{
	pthread_mutex_lock(&calls);
	ncclResult_t result = !is_usable(g) ? ncclInvalidUsage : call_nccl(g->comm);
	pthread_mutex_unlock(&calls);
	return result;
}

static void close_group(void *state)
{
	struct group *g = state;
	struct wlb_error ignored;
	if (g->comm != NULL && await(g, end(g, nccl.ncclCommFinalize), wlb_now_s(), "closing", &ignored) == 0)
		end(g, nccl.ncclCommDestroy);
	else
		abort_group(g);
	free(g);
}

static void *open_group(const struct wlb_transport_group *group, struct wlb_device *device, struct wlb_queue *queue,
                        double limit_s, struct wlb_error *error)
{
	struct group *g = calloc(1, sizeof(*g));
	if (g == NULL) {
		wlb_fail(error, "out of memory");
		return NULL;
	}
	g->ranks = group;
	g->device = device;
	g->queue = queue;
	g->stream = device->ops->queue_handle(device, queue);
	g->limit_s = limit_s;
	return g;
}

/* A call needs no memory of its own. */
static void *handle_new(void *state, struct wlb_error *error)
{
	(void)error;
	return state;
}

static void handle_free(void *handle)
{
	(void)handle;
}

static int start(void *handle, const struct wlb_transport_request *request, struct wlb_error *error)
{
	struct group *g = handle;
	ncclDataType_t type = ncclFloat32;
	if (find_type(request->dtype, &type, error) < 0)
		return -1;
	return await(g, queue_request(g, request, type), wlb_now_s(), "NCCL", error);
}

static int check(void *state, struct wlb_error *error)
{
	struct group *g = state;
	/* While the training thread is in a call, that call finds the failure. */
	if (pthread_mutex_trylock(&calls) != 0)
		return 0;
	ncclResult_t result = is_usable(g) ? ask(g) : ncclSuccess;
	int rc = result == ncclSuccess || result == ncclInProgress ? 0 : fail(g, result, "NCCL", error);
	pthread_mutex_unlock(&calls);
	return rc;
}

const struct wlb_transport wlb_transport_nccl = {
	.on_queue = 1,
	.make_id = make_id,
	.open = open_group,
	.connect = connect_groups,
	.close = close_group,
	.handle_new = handle_new,
	.handle_free = handle_free,
	.start = start,
	.check = check,
	.abort = abort_group,
};
