#include "worker/launch/launch.h"

#include <limits.h>
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "common/node_order.h"
#include "worker/launch/deadline.h"

#define PID_KEY "wlb.pid"
#define NODE_KEY "wlb.node"

enum { FENCE_TIMEOUT_S = 120, GET_TIMEOUT_S = 30 };

/* Of calls that PMIx does not bound: they wait for the server of this node, which may be stopped. */
enum { INIT_TIMEOUT_S = 120, ABORT_TIMEOUT_S = 30, FINALIZE_TIMEOUT_S = 600 };

static int fail_pmix(struct wlb_error *error, const char *what, pmix_status_t status)
{
	return wlb_fail(
		error,
		"PMIx: %s: %s (%d); start with srun --mpi=pmix or mpirun, and let `wlb doctor` check the cluster", what,
		PMIx_Error_string(status), status);
}

static pmix_proc_t proc_of(const struct wlb_launch *launch, pmix_rank_t rank)
{
	pmix_proc_t proc;
	PMIX_PROC_LOAD(&proc, launch->space, rank);
	return proc;
}

/* Waits until every rank has called it and has the data that the others put. Without data Slurm's default fence does
 * not wait, so data is always collected. */
static int fence(struct wlb_launch *launch, struct wlb_error *error)
{
	bool collect = true;
	int timeout_s = FENCE_TIMEOUT_S;
	pmix_info_t info[2];
	PMIX_INFO_LOAD(&info[0], PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
	PMIX_INFO_LOAD(&info[1], PMIX_TIMEOUT, &timeout_s, PMIX_INT);
	pmix_status_t status = PMIx_Fence(NULL, 0, info, 2);
	launch->fence_timed_out = status == PMIX_ERR_TIMEOUT;
	if (launch->fence_timed_out)
		launch->exit_code = EX_TEMPFAIL;
	return status == PMIX_SUCCESS ? 0 : fail_pmix(error, "not every rank came to the fence", status);
}

static int put(const char *key, pmix_value_t *value, struct wlb_error *error)
{
	pmix_status_t status = PMIx_Put(PMIX_GLOBAL, key, value);
	if (status == PMIX_SUCCESS)
		status = PMIx_Commit();
	return status == PMIX_SUCCESS ? 0 : fail_pmix(error, key, status);
}

/* Returns the value of a rank's key, which the caller releases; NULL with the reason when it does not arrive in time.
 */
static pmix_value_t *get(const struct wlb_launch *launch, pmix_rank_t rank, const char *key, pmix_data_type_t type,
                         struct wlb_error *error)
{
	int timeout_s = GET_TIMEOUT_S;
	pmix_info_t info;
	PMIX_INFO_LOAD(&info, PMIX_TIMEOUT, &timeout_s, PMIX_INT);
	pmix_proc_t proc = proc_of(launch, rank);
	pmix_value_t *value = NULL;
	pmix_status_t status = PMIx_Get(&proc, key, &info, 1, &value);
	if (status == PMIX_SUCCESS && value->type == type)
		return value;
	if (status == PMIX_SUCCESS) {
		PMIX_VALUE_RELEASE(value);
		status = PMIX_ERR_TYPE_MISMATCH;
	}
	fail_pmix(error, key, status);
	return NULL;
}

/* Returns the index of the node with that name, and adds the node when it is new; -1 if out of memory. */
static int find_or_add_node(struct wlb_launch *launch, const char *name)
{
	/* Neighbouring ranks share a node, so the newest is searched first. */
	for (int i = launch->node_count - 1; i >= 0; i--)
		if (strcmp(launch->nodes[i], name) == 0)
			return i;
	launch->nodes[launch->node_count] = strdup(name);
	return launch->nodes[launch->node_count] != NULL ? launch->node_count++ : -1;
}

/* Sets *number to the number that the launcher gave the node of `rank`, as that rank put it. */
static int get_node_number(const struct wlb_launch *launch, int rank, uint32_t *number, struct wlb_error *error)
{
	pmix_value_t *value = get(launch, (pmix_rank_t)rank, NODE_KEY, PMIX_UINT32, error);
	if (value == NULL)
		return wlb_fail_in(error, "number of the node of rank %d", rank);
	*number = value->data.uint32;
	PMIX_VALUE_RELEASE(value);
	return 0;
}

/* Sets node_of[rank], and number_of[node] with the first rank of the node. */
static int map_rank(struct wlb_launch *launch, int rank, uint32_t *number_of, struct wlb_error *error)
{
	int known = launch->node_count;
	pmix_value_t *value = get(launch, (pmix_rank_t)rank, PMIX_HOSTNAME, PMIX_STRING, error);
	if (value == NULL)
		return wlb_fail_in(error, "node of rank %d", rank);
	int node = launch->node_of[rank] = find_or_add_node(launch, value->data.string);
	PMIX_VALUE_RELEASE(value);
	if (node < 0)
		return wlb_fail(error, "out of memory for the node map");
	return node < known ? 0 : get_node_number(launch, rank, &number_of[node], error);
}

struct numbered_node {
	uint32_t number;
	int index; /* among the nodes in order of their first rank */
	char *name;
};

static int compare_nodes(const void *a, const void *b)
{
	const struct numbered_node *x = a, *y = b;
	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

/* Sorts the nodes from the order of their first ranks to the launcher's order, which the plugin uses too; nodes with
 * equal numbers keep their order. */
static int sort_nodes(struct wlb_launch *launch, const uint32_t *number_of, struct wlb_error *error)
{
	struct numbered_node *sorted = calloc((size_t)launch->node_count, sizeof(*sorted));
	int *sorted_index = calloc((size_t)launch->node_count, sizeof(*sorted_index));
	int rc = 0;
	if (sorted == NULL || sorted_index == NULL) {
		rc = wlb_fail(error, "out of memory for the map of %d nodes", launch->node_count);
	} else {
		for (int i = 0; i < launch->node_count; i++)
			sorted[i] = (struct numbered_node){number_of[i], i, launch->nodes[i]};
		qsort(sorted, (size_t)launch->node_count, sizeof(*sorted), compare_nodes);
		for (int i = 0; i < launch->node_count; i++) {
			launch->nodes[i] = sorted[i].name;
			sorted_index[sorted[i].index] = i;
		}
		for (int rank = 0; rank < launch->size; rank++)
			launch->node_of[rank] = sorted_index[launch->node_of[rank]];
	}
	free(sorted_index);
	free(sorted);
	return rc;
}

static int allocate_map(struct wlb_launch *launch, struct wlb_error *error)
{
	launch->nodes = calloc((size_t)launch->size, sizeof(*launch->nodes));
	launch->node_of = calloc((size_t)launch->size, sizeof(*launch->node_of));
	launch->ranks_on = calloc((size_t)launch->size, sizeof(*launch->ranks_on));
	if (launch->nodes == NULL || launch->node_of == NULL || launch->ranks_on == NULL)
		return wlb_fail(error, "out of memory for the map of %d ranks", launch->size);
	return 0;
}

/* Returns the number of `rank` among the ranks of its node. */
static int local_rank_of(const struct wlb_launch *launch, int rank)
{
	int before = 0;
	for (int r = 0; r < rank; r++)
		before += launch->node_of[r] == launch->node_of[rank];
	return before;
}

static void count_ranks(struct wlb_launch *launch)
{
	for (int rank = 0; rank < launch->size; rank++)
		launch->ranks_on[launch->node_of[rank]]++;
	launch->local_size = launch->ranks_on[launch->node_of[launch->rank]];
	launch->local_rank = local_rank_of(launch, launch->rank);
}

static int make_map(struct wlb_launch *launch, struct wlb_error *error)
{
	if (allocate_map(launch, error) < 0)
		return -1;
	uint32_t *number_of = calloc((size_t)launch->size, sizeof(*number_of));
	int rc = number_of != NULL ? 0 : wlb_fail(error, "out of memory for the map of %d ranks", launch->size);
	for (int rank = 0; rc == 0 && rank < launch->size; rank++)
		rc = map_rank(launch, rank, number_of, error);
	if (rc == 0)
		rc = sort_nodes(launch, number_of, error);
	if (rc == 0)
		count_ranks(launch);
	if (rc == 0)
		launch->order = wlb_node_order_parse(getenv(WLB_NODE_ORDER), launch->node_count);
	free(number_of);
	return rc;
}

/* Returns the number of this node from the data of PMIx_Init, without waiting; 0 where the launcher does not number
 * nodes. */
static uint32_t own_node_number(const pmix_proc_t *me)
{
	bool optional = true;
	uint32_t number = 0;
	pmix_info_t info;
	pmix_value_t *value = NULL;
	PMIX_INFO_LOAD(&info, PMIX_OPTIONAL, &optional, PMIX_BOOL);
	if (PMIx_Get(me, PMIX_NODEID, &info, 1, &value) != PMIX_SUCCESS)
		return 0;
	if (value->type == PMIX_UINT32)
		number = value->data.uint32;
	PMIX_VALUE_RELEASE(value);
	return number;
}

/* Connects to the server: sets this process's rank, puts the data that the others need, and finds the node of every
 * rank. */
static int open_with_server(struct wlb_launch *launch, struct wlb_error *error)
{
	pmix_proc_t me;
	struct wlb_deadline deadline;
	wlb_deadline_start(&deadline, "PMIx_Init", INIT_TIMEOUT_S, launch->exit_code);
	pmix_status_t status = PMIx_Init(&me, NULL, 0);
	wlb_deadline_stop(&deadline);
	if (status != PMIX_SUCCESS)
		return fail_pmix(error, "the server that started this process does not answer", status);
	launch->has_server = 1;
	launch->rank = (int)me.rank;
	snprintf(launch->space, sizeof(launch->space), "%.255s", me.nspace);
	pmix_value_t *size = get(launch, PMIX_RANK_WILDCARD, PMIX_JOB_SIZE, PMIX_UINT32, error);
	if (size == NULL)
		return -1;
	launch->size = (int)size->data.uint32;
	PMIX_VALUE_RELEASE(size);
	pmix_value_t pid = {.type = PMIX_UINT32, .data.uint32 = (uint32_t)getpid()};
	pmix_value_t node = {.type = PMIX_UINT32, .data.uint32 = own_node_number(&me)};
	if (put(PID_KEY, &pid, error) < 0 || put(NODE_KEY, &node, error) < 0 || fence(launch, error) < 0)
		return -1;
	return make_map(launch, error);
}

/* Sets the launch of one process on this host. */
static int open_alone(struct wlb_launch *launch, struct wlb_error *error)
{
	char host[HOST_NAME_MAX + 1] = "";
	const char *node = getenv("SLURMD_NODENAME");
	if (node == NULL && gethostname(host, sizeof(host) - 1) == 0)
		node = host;
	launch->size = 1;
	if (allocate_map(launch, error) < 0)
		return -1;
	if (find_or_add_node(launch, node) < 0)
		return wlb_fail(error, "out of memory for the node map");
	count_ranks(launch);
	return 0;
}

/* Fails where srun started several tasks without PMIx: they cannot find each other, and each would train alone. */
static int check_single_task(struct wlb_error *error)
{
	const char *tasks = getenv("SLURM_STEP_NUM_TASKS"), *task = getenv("SLURM_PROCID");
	if (getenv("SLURM_STEP_ID") == NULL || tasks == NULL || atoi(tasks) < 2)
		return 0;
	error->message[0] = '\0';
	if (task != NULL && atoi(task) > 0)
		return -1; /* task 0 prints the message */
	return wlb_fail(error, "srun started %.20s tasks without PMIx: add --mpi=pmix to srun", tasks);
}

struct wlb_launch *wlb_launch_open(int *exit_code, struct wlb_error *error)
{
	int has_server = getenv("PMIX_NAMESPACE") != NULL;
	*exit_code = 2;
	if (!has_server && check_single_task(error) < 0)
		return NULL;
	*exit_code = 1;
	struct wlb_launch *launch = calloc(1, sizeof(*launch));
	if (launch == NULL) {
		wlb_fail(error, "out of memory for the launch");
		return NULL;
	}
	launch->exit_code = *exit_code;
	int rc = has_server ? open_with_server(launch, error) : open_alone(launch, error);
	if (rc == 0)
		return launch;
	*exit_code = launch->exit_code;
	wlb_launch_close(launch);
	return NULL;
}

void wlb_launch_disconnect(struct wlb_launch *launch)
{
	struct wlb_deadline deadline;
	if (!launch->has_server)
		return;
	launch->has_server = 0;
	wlb_deadline_start(&deadline, "PMIx_Finalize", FINALIZE_TIMEOUT_S, launch->exit_code);
	PMIx_Finalize(NULL, 0);
	wlb_deadline_stop(&deadline);
}

void wlb_launch_close(struct wlb_launch *launch)
{
	if (launch == NULL)
		return;
	wlb_launch_disconnect(launch);
	for (int i = 0; i < launch->node_count; i++)
		free(launch->nodes[i]);
	free(launch->nodes);
	free(launch->order);
	free(launch->ranks_on);
	free(launch->node_of);
	free(launch);
}

struct wlb_nodes wlb_launch_nodes(const struct wlb_launch *launch)
{
	return (struct wlb_nodes){.count = launch->node_count,
	                          .ranks_on = launch->ranks_on,
	                          .names = launch->nodes,
	                          .order = launch->order};
}

int wlb_launch_place(const struct wlb_launch *launch)
{
	const struct wlb_nodes nodes = wlb_launch_nodes(launch);
	return (int)wlb_nodes_place(&nodes, launch->node_of[launch->rank], launch->local_rank);
}

const char *wlb_launch_node(const struct wlb_launch *launch, int rank)
{
	return launch->nodes[launch->node_of[rank]];
}

int wlb_launch_rank_on(const struct wlb_launch *launch, int node, int index)
{
	int before = index % launch->ranks_on[node], rank = 0;
	while (launch->node_of[rank] != node || before-- > 0)
		rank++;
	return rank;
}

int wlb_launch_share(struct wlb_launch *launch, const char *key, void *blob, size_t bytes, struct wlb_error *error)
{
	if (launch->size == 1)
		return 0;
	pmix_value_t mine = {.type = PMIX_BYTE_OBJECT, .data.bo = {.bytes = blob, .size = bytes}};
	if (launch->rank == 0 && put(key, &mine, error) < 0)
		return -1;
	if (fence(launch, error) < 0)
		return -1;
	if (launch->rank == 0)
		return 0;
	pmix_value_t *value = get(launch, 0, key, PMIX_BYTE_OBJECT, error);
	if (value == NULL)
		return -1;
	int rc = 0;
	if (value->data.bo.size == bytes)
		memcpy(blob, value->data.bo.bytes, bytes);
	else
		rc = wlb_fail(error,
		              "%s: rank 0 sent %zu bytes, %zu are expected: all nodes must run the same wlb-worker",
		              key, value->data.bo.size, bytes);
	PMIX_VALUE_RELEASE(value);
	return rc;
}

int wlb_launch_peer_pid(struct wlb_launch *launch, int rank, pid_t *pid, struct wlb_error *error)
{
	pmix_value_t *value = get(launch, (pmix_rank_t)rank, PID_KEY, PMIX_UINT32, error);
	if (value == NULL)
		return wlb_fail_in(error, "process of rank %d", rank);
	*pid = (pid_t)value->data.uint32;
	PMIX_VALUE_RELEASE(value);
	return 0;
}

void wlb_launch_abort(struct wlb_launch *launch, int code)
{
	struct wlb_deadline deadline; /* not stopped: the process ends */
	wlb_deadline_start(&deadline, "PMIx_Abort", ABORT_TIMEOUT_S, code);
	if (launch->has_server && launch->size > 1)
		PMIx_Abort(code, "wlb-worker ended the run", NULL, 0);
	_exit(code);
}
