#include "coordinator/slurm/supply.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/slurm/compat.h"

/* What Slurm says; the lists are NULL where there is none. */
struct answers {
	node_info_msg_t *nodes;
	wlb_compat_hostlist of_job;
	wlb_compat_hostlist of_partition; /* NULL: the partition starts no jobs */
};

static void answers_free(struct answers *answers)
{
	if (answers->nodes != NULL)
		slurm_free_node_info_msg(answers->nodes);
	if (answers->of_job != NULL)
		slurm_hostlist_destroy(answers->of_job);
	if (answers->of_partition != NULL)
		slurm_hostlist_destroy(answers->of_partition);
}

static int find_partition(const char *name, struct answers *answers, struct wlb_error *error)
{
	partition_info_msg_t *reply = NULL;
	if (slurm_load_partitions(0, &reply, SHOW_ALL) != SLURM_SUCCESS)
		return wlb_fail(error, "Slurm gives no list of partitions: %s", slurm_strerror(errno));
	for (uint32_t i = 0; i < reply->record_count; i++) {
		const partition_info_t *partition = &reply->partition_array[i];
		if (strcmp(partition->name ?: "", name) == 0 && (partition->state_up & PARTITION_SCHED) != 0)
			answers->of_partition = slurm_hostlist_create(partition->nodes ?: "");
	}
	slurm_free_partition_info_msg(reply);
	return 0;
}

static int ask(const struct wlb_slurm_job *job, struct answers *answers, struct wlb_error *error)
{
	if (slurm_load_node(0, &answers->nodes, SHOW_ALL) != SLURM_SUCCESS)
		return wlb_fail(error, "Slurm gives no node list: %s", slurm_strerror(errno));
	answers->of_job = slurm_hostlist_create(job->nodes);
	if (answers->of_job == NULL)
		return wlb_fail(error, "node list '%.200s': Slurm cannot read it", job->nodes);
	return find_partition(job->partition, answers, error);
}

/* A deleted dynamic node leaves an entry without a name. */
static bool is_of(wlb_compat_hostlist list, const node_info_t *node)
{
	return list != NULL && node->name != NULL && slurm_hostlist_find(list, node->name) >= 0;
}

static bool is_usable(const node_info_t *node)
{
	const uint32_t unusable = NODE_STATE_NO_RESPOND | NODE_STATE_POWERED_DOWN | NODE_STATE_POWERING_DOWN |
	                      NODE_STATE_DRAIN | NODE_STATE_FAIL;
	uint32_t base = node->node_state & NODE_STATE_BASE;
	return (base == NODE_STATE_IDLE || base == NODE_STATE_ALLOCATED || base == NODE_STATE_MIXED) &&
	       (node->node_state & unusable) == 0;
}

static bool is_idle(const node_info_t *node)
{
	return strcmp(slurm_node_state_string(node->node_state), "IDLE") == 0;
}

static bool is_like(const node_info_t *a, const node_info_t *b)
{
	return a->cpus == b->cpus && a->real_memory == b->real_memory && strcmp(a->gres ?: "", b->gres ?: "") == 0 &&
	       strcmp(a->features_act ?: "", b->features_act ?: "") == 0;
}

static bool is_like_one(const node_info_t *node, const node_info_t *const *own, int count)
{
	for (int i = 0; i < count; i++)
		if (is_like(node, own[i]))
			return true;
	return false;
}

/* Names the usable nodes of the job; own[] receives them. */
static int name_usable(const struct answers *answers, const node_info_t **own, struct wlb_slurm_supply *supply)
{
	for (uint32_t i = 0; i < answers->nodes->record_count; i++) {
		const node_info_t *node = &answers->nodes->node_array[i];
		if (!is_of(answers->of_job, node) || !is_usable(node))
			continue;
		own[supply->usable_count] = node;
		supply->usable[supply->usable_count] = strdup(node->name);
		if (supply->usable[supply->usable_count] == NULL)
			return -1;
		supply->usable_count++;
	}
	return 0;
}

static int count_nodes(const struct answers *answers, struct wlb_slurm_supply *supply, struct wlb_error *error)
{
	size_t count = (size_t)answers->nodes->record_count + 1;
	const node_info_t **own = calloc(count, sizeof(*own));
	supply->usable = calloc(count, sizeof(*supply->usable));
	if (own == NULL || supply->usable == NULL || name_usable(answers, own, supply) != 0) {
		free(own);
		return wlb_fail(error, "out of memory for the list of %zu nodes", count - 1);
	}
	for (uint32_t i = 0; i < answers->nodes->record_count; i++) {
		const node_info_t *node = &answers->nodes->node_array[i];
		if (is_of(answers->of_partition, node) && !is_of(answers->of_job, node) && is_idle(node))
			supply->idle += is_like_one(node, own, supply->usable_count);
	}
	free(own);
	return 0;
}

int wlb_slurm_supply(const struct wlb_slurm_job *job, struct wlb_slurm_supply *supply, struct wlb_error *error)
{
	struct answers answers = {0};
	*supply = (struct wlb_slurm_supply){0};
	int rc = ask(job, &answers, error);
	if (rc == 0)
		rc = count_nodes(&answers, supply, error);
	answers_free(&answers);
	if (rc != 0)
		wlb_slurm_supply_free(supply);
	return rc;
}

void wlb_slurm_supply_free(struct wlb_slurm_supply *supply)
{
	wlb_strings_free(supply->usable, supply->usable_count);
	*supply = (struct wlb_slurm_supply){0};
}
