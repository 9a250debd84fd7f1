/* wlb-worker whose ranks are on nodes of which this machine is each: WORKER_NODES=2,1 has two ranks on the node "a" and
 * one on "b", in the order of ranks. */
#include <stdlib.h>
#include <string.h>

#include "worker/launch/launch.h"

enum { NODES_MAX = 26 };

struct wlb_launch *__real_wlb_launch_open(int *exit_code, struct wlb_error *error);
struct wlb_launch *__wrap_wlb_launch_open(int *exit_code, struct wlb_error *error);

/* The launch frees the lists. */
static void make_lists(struct wlb_launch *launch)
{
	free(launch->nodes[0]);
	free(launch->nodes);
	free(launch->ranks_on);
	launch->nodes = calloc(NODES_MAX, sizeof(*launch->nodes));
	launch->ranks_on = calloc(NODES_MAX, sizeof(*launch->ranks_on));
	launch->node_count = 0;
	if (launch->nodes == NULL || launch->ranks_on == NULL)
		abort();
}

static void add_node(struct wlb_launch *launch, int first, int ranks)
{
	const char name[2] = {(char)('a' + launch->node_count), '\0'};
	launch->nodes[launch->node_count] = strdup(name);
	launch->ranks_on[launch->node_count] = ranks;
	for (int i = 0; i < ranks && first + i < launch->size; i++)
		launch->node_of[first + i] = launch->node_count;
	if (launch->rank >= first && launch->rank < first + ranks) {
		launch->local_rank = launch->rank - first;
		launch->local_size = ranks;
	}
	launch->node_count++;
}

struct wlb_launch *__wrap_wlb_launch_open(int *exit_code, struct wlb_error *error)
{
	struct wlb_launch *launch = __real_wlb_launch_open(exit_code, error);
	char *text = getenv("WORKER_NODES");
	if (launch == NULL || text == NULL)
		return launch;
	make_lists(launch);
	for (int rank = 0; rank < launch->size && launch->node_count < NODES_MAX;) {
		int ranks = (int)strtol(text, &text, 10);
		add_node(launch, rank, ranks);
		rank += ranks;
		text += *text == ',';
	}
	return launch;
}
