#include "worker/train/near_save.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/file.h"
#include "common/seconds.h"
#include "common/show.h"
#include "worker/checkpoint/near_files.h"
#include "worker/checkpoint/safetensors.h"
#include "worker/comm/messages.h"
#include "worker/train/near_neighbour.h"

/* A file of a rank: its data are parts that follow each other in memory. */
struct own_file {
	const struct wlb_tensor_part *parts;
	int count;
	const char *data_host;
	size_t data_bytes;
	char *head; /* what the file has before the data; NULL: there is no file */
	size_t head_bytes;
};

/* A file goes in two messages: its head and its data. */
enum { PIECES = 2 };

/* A rank of another node whose files this rank keeps, too. */
struct source {
	int rank;
	size_t bytes[WLB_NEAR_KINDS][PIECES]; /* of its files; 0: there is none */
	char *files;                          /* one behind the other */
};

struct wlb_near {
	int rank, ranks;
	const char *node;
	const struct wlb_train_options *options;
	char folder[4096];
	struct own_file own[WLB_NEAR_KINDS];
	struct wlb_messages *messages; /* NULL: the run has one node */
	int to;                        /* the rank that keeps this rank's files, too */
	struct source *sources;
	int source_count;
	double limit_s;

	struct wlb_near_name name; /* of the save in flight */
	char path[4096];
	double started_s; /* when its exchange began */
};

const char *wlb_near_folder(const struct wlb_near *near)
{
	return near->folder;
}

struct wlb_messages *wlb_near_messages(const struct wlb_near *near)
{
	return near->messages;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* A wlb_file_function. Under Slurm the epilog knows a node by Slurm's name of it. */
static int open_folder(void *context, struct wlb_error *error)
{
	struct wlb_near *near = context;
	const struct wlb_train_options *o = near->options;
	return wlb_near_folder_open(o->save_local, o->save, near->node, near->folder, error);
}

/* Finds the parts of a file of this rank, and takes the memory for its head. */
static int open_own(struct wlb_near *near, const struct wlb_parts *parts, enum wlb_near_kind kind,
                    struct wlb_error *error)
{
	struct own_file *own = &near->own[kind];
	bool is_shard = kind == WLB_NEAR_SHARD;
	size_t owned_bytes = parts->owned < parts->count
	                             ? (size_t)((char *)parts->list[parts->owned].data_host - parts->host)
	                             : parts->host_bytes;
	own->parts = is_shard ? parts->list : parts->list + parts->owned;
	own->count = is_shard ? parts->owned : parts->count - parts->owned;
	own->data_host = is_shard ? parts->host : parts->host + owned_bytes;
	own->data_bytes = is_shard ? owned_bytes : parts->host_bytes - owned_bytes;
	if (own->count == 0 && !is_shard)
		return 0;
	int64_t bytes = wlb_safetensors_size(own->parts, own->count, error);
	if (bytes < 0)
		return -1;
	own->head_bytes = (size_t)bytes - own->data_bytes;
	own->head = malloc(own->head_bytes);
	return own->head != NULL ? 0 : wlb_fail(error, "out of memory for the head of a shard");
}

/* Returns the rank that keeps the files of the `local_rank`-th rank of a node. */
static int keeper_of(const struct wlb_launch *launch, const int *neighbours, int node, int local_rank)
{
	return wlb_launch_rank_on(launch, neighbours[node], local_rank);
}

static size_t file_bytes(const struct source *source, int kind)
{
	return source->bytes[kind][0] + source->bytes[kind][1];
}

/* all_bytes has those of the pieces of all ranks. */
static int add_source(struct wlb_near *near, int rank, const double *all_bytes, struct wlb_error *error)
{
	struct source *source = &near->sources[near->source_count++];
	const double *bytes = &all_bytes[rank * WLB_NEAR_KINDS * PIECES];
	source->rank = rank;
	for (int i = 0; i < WLB_NEAR_KINDS * PIECES; i++)
		source->bytes[i / PIECES][i % PIECES] = (size_t)bytes[i];
	size_t all = file_bytes(source, WLB_NEAR_SHARD) + file_bytes(source, WLB_NEAR_COPIES);
	source->files = malloc(all);
	return source->files != NULL ? 0 : wlb_fail(error, "out of memory for %zu bytes of another node's copies", all);
}

/* Lists the ranks whose files this rank keeps. */
static int list_sources(struct wlb_near *near, const struct wlb_launch *launch, const int *neighbours,
                        const double *all_bytes, struct wlb_error *error)
{
	int here = launch->node_of[launch->rank], rc = 0;
	near->to = keeper_of(launch, neighbours, here, launch->local_rank);
	near->sources = calloc((size_t)launch->size, sizeof(*near->sources));
	if (near->sources == NULL)
		return wlb_fail(error, "out of memory for the ranks whose copies are kept");
	for (int node = 0; node < launch->node_count; node++)
		for (int i = 0; rc == 0 && neighbours[node] == here && i < launch->ranks_on[node]; i++)
			if (keeper_of(launch, neighbours, node, i) == launch->rank)
				rc = add_source(near, wlb_launch_rank_on(launch, node, i), all_bytes, error);
	return rc;
}

/* Collective. Finds out who keeps whose files; facts[] is memory for numbers of all nodes and ranks. */
static int find_sources(struct wlb_near *near, struct wlb_trainer *t, double *facts, uint64_t *switches,
                        int *neighbours, struct wlb_error *error)
{
	const struct wlb_launch *l = t->launch;
	size_t of_rank = WLB_NEAR_KINDS * PIECES, count = (size_t)l->node_count + (size_t)l->size * of_rank;
	double *bytes = facts + l->node_count, *own = bytes + (size_t)l->rank * of_rank;
	if (l->local_rank == 0)
		facts[l->node_of[l->rank]] =
			(double)wlb_near_switch(getenv("SLURM_TOPOLOGY_ADDR"), getenv("SLURM_TOPOLOGY_ADDR_PATTERN"));
	for (int kind = 0; kind < WLB_NEAR_KINDS; kind++) {
		own[kind * PIECES] = (double)near->own[kind].head_bytes;
		own[kind * PIECES + 1] = (double)near->own[kind].data_bytes;
	}
	if (wlb_comm_all_reduce_double(t->world, facts, count, WLB_SUM, error) < 0)
		return WLB_FAILED_HERE;
	for (int i = 0; i < l->node_count; i++)
		switches[i] = (uint64_t)facts[i];
	int rc = wlb_near_neighbours(l->node_count, switches, neighbours, error);
	if (rc == 0)
		rc = list_sources(near, l, neighbours, bytes, error);
	return wlb_agree(t->world, rc, error);
}

/* Collective. */
static int open_exchange(struct wlb_near *near, struct wlb_trainer *t, struct wlb_error *error)
{
	const struct wlb_launch *l = t->launch;
	size_t nodes = (size_t)l->node_count;
	double *facts = calloc(nodes + (size_t)l->size * WLB_NEAR_KINDS * PIECES, sizeof(*facts));
	uint64_t *switches = calloc(nodes, sizeof(*switches));
	int *neighbours = calloc(nodes, sizeof(*neighbours));
	bool has_memory = facts != NULL && switches != NULL && neighbours != NULL;
	int rc = wlb_agree(t->world, has_memory ? 0 : wlb_fail(error, "out of memory for %zu nodes", nodes), error);
	if (rc == 0)
		rc = find_sources(near, t, facts, switches, neighbours, error);
	free(neighbours);
	free(switches);
	free(facts);
	if (rc == 0) {
		near->messages = wlb_messages_open(t->world, error);
		rc = near->messages != NULL ? 0 : WLB_FAILED_HERE;
	}
	return rc;
}

static const char *name_node(const struct wlb_launch *launch)
{
	const char *of_slurm = getenv("SLURMD_NODENAME");
	return of_slurm != NULL && of_slurm[0] != '\0' ? of_slurm : wlb_launch_node(launch, launch->rank);
}

int wlb_near_go_without(struct wlb_trainer *t, int rc, struct wlb_error *error)
{
	if (rc != WLB_FAILED_EVERYWHERE)
		return rc;
	if (error->message[0] != '\0')
		wlb_show_line(stderr, "wlb-worker: rank %d: this attempt has no near checkpoints, training goes on: %s",
		              t->launch->rank, error->message);
	if (t->launch->rank == 0)
		wlb_record_event(t->recorder, WLB_NEAR_FAILED,
		                 "this attempt has no near checkpoints: the job's output says why");
	error->message[0] = '\0';
	wlb_near_close(t);
	return 0;
}

int wlb_near_open(struct wlb_trainer *t, const struct wlb_parts *parts, struct wlb_error *error)
{
	struct wlb_near *near = t->near = calloc(1, sizeof(*near));
	int rc = near != NULL ? 0 : wlb_fail(error, "out of memory");
	if (near != NULL) {
		near->rank = t->launch->rank;
		near->ranks = t->launch->size;
		near->node = name_node(t->launch);
		near->options = t->options;
		near->limit_s = t->files.collective_timeout_s;
	}
	for (int kind = 0; rc == 0 && kind < WLB_NEAR_KINDS; kind++)
		rc = open_own(near, parts, (enum wlb_near_kind)kind, error);
	rc = wlb_agree(t->world, rc, error);
	if (rc == 0)
		rc = wlb_near_go_without(t, wlb_work_with_files(&t->files, open_folder, near, error), error);
	if (rc == 0 && t->near != NULL && t->launch->node_count > 1)
		rc = open_exchange(near, t, error);
	if (rc < 0 && error->message[0] != '\0')
		wlb_fail_in(error, "--save-local");
	return rc;
}

/* A wlb_file_function. */
static int remove_folder(void *context, struct wlb_error *error)
{
	const struct wlb_near *near = context;
	return wlb_near_folder_remove(near->folder, error);
}

int wlb_near_end(struct wlb_trainer *t, struct wlb_error *error)
{
	if (t->near == NULL)
		return 0;
	int rc = wlb_work_with_files(&t->files, t->launch->local_rank == 0 ? remove_folder : NULL, t->near, error);
	if (rc != WLB_FAILED_EVERYWHERE)
		return rc;
	if (error->message[0] != '\0')
		wlb_show_line(stderr, "wlb-worker: near checkpoints stay: %s", error->message);
	error->message[0] = '\0';
	return 0;
}

void wlb_near_close(struct wlb_trainer *t)
{
	struct wlb_near *near = t->near;
	if (near == NULL)
		return;
	wlb_messages_close(near->messages);
	for (int i = 0; i < near->source_count; i++)
		free(near->sources[i].files);
	free(near->sources);
	for (int kind = 0; kind < WLB_NEAR_KINDS; kind++)
		free(near->own[kind].head);
	free(near);
	t->near = NULL;
}

/* ---- a save ------------------------------------------------------------------------------------------------------ */

void wlb_near_begin(struct wlb_near *near, int64_t step, const char *id)
{
	near->name.step = step;
	near->name.shards = near->ranks;
	snprintf(near->name.id, sizeof(near->name.id), "%s", id);
	wlb_near_path(near->folder, &near->name, near->path);
}

int wlb_near_prepare(struct wlb_near *near, const struct wlb_checkpoint_facts *facts, const void *packer_state,
                     size_t packer_bytes, struct wlb_error *error)
{
	if (wlb_near_make(near->path, error) < 0)
		return -1;
	return wlb_near_write_facts(near->path, facts, packer_state, packer_bytes, error);
}

/* Reads back what the file has before the data, with their checksums. */
static int read_head(const char *file, struct own_file *own, struct wlb_error *error)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	int rc = fd >= 0 ? wlb_pread_all(fd, own->head, own->head_bytes, 0) : -1;
	if (rc < 0)
		wlb_fail(error, "%s: cannot be read: %s", file, strerror(errno));
	if (fd >= 0)
		close(fd);
	return rc;
}

/* The shard is last: where it is, so are the copies. */
int wlb_near_write_own(struct wlb_near *near, struct wlb_error *error)
{
	int rc = 0;
	for (int kind = WLB_NEAR_KINDS - 1; rc == 0 && kind >= 0; kind--) {
		char file[4096];
		struct own_file *own = &near->own[kind];
		wlb_near_file(near->path, (enum wlb_near_kind)kind, near->rank, file);
		if (own->head != NULL)
			rc = wlb_near_write_parts(file, own->parts, own->count, error);
		if (rc == 0 && own->head != NULL && near->messages != NULL)
			rc = read_head(file, own, error);
	}
	return rc;
}

int wlb_near_start_exchange(struct wlb_near *near, struct wlb_error *error)
{
	near->started_s = wlb_now_s();
	for (int i = 0; i < near->source_count; i++) {
		const struct source *source = &near->sources[i];
		char *cursor = source->files;
		for (int k = 0; k < WLB_NEAR_KINDS * PIECES; k++) {
			size_t bytes = source->bytes[k / PIECES][k % PIECES];
			if (wlb_messages_receive(near->messages, cursor, bytes, source->rank, error) < 0)
				return -1;
			cursor += bytes;
		}
	}
	for (int kind = 0; near->messages != NULL && kind < WLB_NEAR_KINDS; kind++) {
		const struct own_file *own = &near->own[kind];
		if (own->head != NULL &&
		    (wlb_messages_send(near->messages, own->head, own->head_bytes, near->to, error) < 0 ||
		     wlb_messages_send(near->messages, own->data_host, own->data_bytes, near->to, error) < 0))
			return -1;
	}
	return 0;
}

int wlb_near_exchange(struct wlb_near *near, struct wlb_error *error)
{
	int done = near->messages != NULL ? wlb_messages_test(near->messages, error) : 1;
	if (done != 0 || wlb_now_s() - near->started_s <= near->limit_s)
		return done;
	return wlb_fail(error,
	                "the copies of step %lld between nodes have taken longer than %g s: "
	                "--distributed-timeout-minutes is their limit",
	                (long long)near->name.step, near->limit_s);
}

int wlb_near_write_received(struct wlb_near *near, struct wlb_error *error)
{
	int rc = 0;
	for (int i = 0; i < near->source_count; i++) {
		const struct source *source = &near->sources[i];
		const char *end =
			source->files + file_bytes(source, WLB_NEAR_SHARD) + file_bytes(source, WLB_NEAR_COPIES);
		for (int kind = WLB_NEAR_KINDS - 1; rc == 0 && kind >= 0; kind--) {
			char file[4096];
			size_t bytes = file_bytes(source, kind);
			end -= bytes;
			wlb_near_file(near->path, (enum wlb_near_kind)kind, source->rank, file);
			if (bytes > 0)
				rc = wlb_near_write_bytes(file, end, bytes, error);
		}
	}
	return rc;
}

int wlb_near_remove_older(struct wlb_near *near, struct wlb_error *error)
{
	return wlb_near_remove_others(near->folder, &near->name, error);
}

int wlb_near_abandon(struct wlb_near *near, struct wlb_error *error)
{
	return wlb_near_remove(near->folder, &near->name, error);
}
