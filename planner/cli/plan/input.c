#include "planner/cli/plan/input.h"

#include <stdlib.h>
#include <string.h>

#include "common/file.h"
#include "common/number.h"
#include "coordinator/slurm/slurm_api.h"
#include "planner/search.h"

enum { ALL_GPUS_MAX = 1 << 24, LARGEST_TOPOLOGY_BYTES = 16 << 20 };

/* Finds the node of that name or number. */
static int find_node(const struct wlb_plan_input *input, const char *name, int32_t *node, struct wlb_error *error)
{
	char *end;
	long number = strtol(name, &end, 10);
	*node = -1;
	if (end != name && *end == '\0' && number >= 0 && number < input->nodes)
		*node = (int32_t)number;
	for (int32_t i = 0; *node < 0 && i < input->nodes && i < input->topology.node_count; i++)
		if (strcmp(input->topology.nodes[i], name) == 0)
			*node = i;
	if (*node >= 0)
		return 0;
	if (input->topology.node_count == 0)
		return wlb_fail(error,
		                "there is no node '%.60s' among %d: use their numbers, from 0 to %d; nodes have names "
		                "only with --topology",
		                name, input->nodes, input->nodes - 1);
	return wlb_fail(error, "there is no node '%.60s' among %d", name, input->nodes);
}

/* Removes the nodes "n[7-8]", or for "n7:6" all GPUs of the node but 6. */
static int take_down(struct wlb_plan_input *input, char *word, struct wlb_error *error)
{
	char *colon = strchr(word, ':'), **names;
	int64_t left = 0;
	int count, rc = 0;
	if (colon != NULL) {
		*colon = '\0';
		if (wlb_number_parse("GPUs left", colon + 1, 0, input->machine.gpus_per_node, &left, error) < 0)
			return -1;
	}
	if (wlb_topology_names(word, &names, &count, error) < 0)
		return -1;
	for (int i = 0; rc == 0 && i < count; i++) {
		int32_t node;
		rc = find_node(input, names[i], &node, error);
		if (rc == 0)
			input->gpus_of_node[node] = (int32_t)left;
	}
	wlb_strings_free(names, count);
	return rc;
}

/* Splits off a word at a comma outside of brackets; *rest is then the next word. */
static char *split(char **rest)
{
	char *word = *rest, *c = word;
	for (int depth = 0; *c != '\0' && (*c != ',' || depth > 0); c++)
		depth += (*c == '[') - (*c == ']');
	*rest = *c != '\0' ? c + 1 : NULL;
	*c = '\0';
	return word;
}

static int read_nodes(const struct wlb_plan_request *request, struct wlb_plan_input *input, struct wlb_error *error)
{
	input->nodes = request->nodes;
	input->gpus_of_node = calloc((size_t)input->nodes, sizeof(*input->gpus_of_node));
	char *words = request->down != NULL ? strdup(request->down) : NULL, *rest = words;
	int rc = 0;
	if (input->gpus_of_node == NULL || (request->down != NULL && words == NULL))
		rc = wlb_fail(error, "out of memory for %d nodes", input->nodes);
	for (int32_t i = 0; rc == 0 && i < input->nodes; i++)
		input->gpus_of_node[i] = input->machine.gpus_per_node;
	while (rc == 0 && rest != NULL)
		if ((rc = take_down(input, split(&rest), error)) < 0)
			wlb_fail_in(error, "--down %.200s", request->down);
	free(words);
	int64_t gpus = 0;
	for (int32_t i = 0; rc == 0 && i < input->nodes; i++)
		gpus += input->gpus_of_node[i];
	if (rc == 0 && (gpus < 1 || gpus > ALL_GPUS_MAX))
		return wlb_fail(error, "%lld GPUs on %d nodes: must be from 1 to %d", (long long)gpus, input->nodes,
		                ALL_GPUS_MAX);
	input->gpus = (int32_t)gpus;
	return rc;
}

static int read_leaves(struct wlb_plan_input *input, struct wlb_error *error)
{
	int32_t *order = calloc((size_t)input->nodes, sizeof(*order)), used = 0;
	input->leaf = calloc((size_t)input->nodes, sizeof(*input->leaf));
	int rc = order != NULL && input->leaf != NULL
	                 ? wlb_topology_order(&input->topology.topology, input->nodes, order, input->leaf, error)
	                 : wlb_fail(error, "out of memory for %d nodes", input->nodes);
	for (int32_t i = 0; rc == 0 && i < input->nodes; i++)
		if (input->gpus_of_node[order[i]] > 0)
			input->leaf[used++] = input->leaf[i];
	free(order);
	return rc < 0 ? wlb_fail_in(error, "--topology") : 0;
}

static int read_topology(const char *path, struct wlb_topology_file *file, struct wlb_error *error)
{
	char *text;
	if (wlb_file_read(path, LARGEST_TOPOLOGY_BYTES, &text, NULL, error) < 0)
		return wlb_fail_in(error, "--topology");
	int rc = wlb_topology_file_parse(text, file, error);
	free(text);
	return rc < 0 ? wlb_fail_in(error, "--topology %s", path) : 0;
}

int wlb_plan_input_read(const struct wlb_plan_request *request, struct wlb_plan_input *input, struct wlb_error *error)
{
	if (wlb_machine_file_read(request->gpu, &input->machine, error) < 0)
		return wlb_fail_in(error, "--machine");
	if (wlb_trainer_read(&request->trainer, &input->trainer, &input->machine, &input->cost, error) < 0)
		return -1;
	int for_worker = input->cost.trainer == WLB_COST_WORKER;
	if (for_worker && request->zero_stage != 1 && request->zero_stage != 2)
		return wlb_fail(error,
		                "--zero-stage %d: wlb-worker shards the states of the optimizer, which is stage 1, and "
		                "with stage 2 gradients; give 1 or 2, or plan for --trainer megatron",
		                request->zero_stage);
	if (wlb_model_file_read(request->model, for_worker ? WLB_MODEL_TO_TRAIN : WLB_MODEL_TO_PLAN, &input->model,
	                        error) < 0)
		return -1;
	if (wlb_length_list_sample(request->lengths, &input->list, error) < 0)
		return -1;
	input->stream = (struct wlb_length_stream){.list = &input->list, .repeat = true};
	if (request->gpus_per_node > 0)
		input->machine.gpus_per_node = request->gpus_per_node;
	if (request->topology != NULL && read_topology(request->topology, &input->topology, error) < 0)
		return -1;
	wlb_topology_file_keep_first(&input->topology, request->nodes);
	if (read_nodes(request, input, error) < 0)
		return -1;
	return request->topology != NULL ? read_leaves(input, error) : 0;
}

void wlb_plan_input_free(struct wlb_plan_input *input)
{
	wlb_length_list_free(&input->list);
	wlb_topology_file_free(&input->topology);
	free(input->gpus_of_node);
	free(input->leaf);
	*input = (struct wlb_plan_input){0};
}

int wlb_recompute_read(const char *text, int *set, struct wlb_error *error)
{
	enum wlb_recompute found;
	*set = -1;
	if (strcmp(text, "auto") == 0)
		return 0;
	if (wlb_recompute_set_parse(text, &found, error) < 0)
		return wlb_fail_in(error, "--recompute");
	*set = (int)found;
	return 0;
}

struct wlb_search_fixed wlb_plan_nothing_fixed(void)
{
	return (struct wlb_search_fixed){
		.recompute = -1, .account_for_embedding = -1, .account_for_loss = -1, .shared_head = -1};
}

struct wlb_search_result *wlb_plan_input_search(const struct wlb_plan_request *request, struct wlb_plan_input *input,
                                                const struct wlb_search_fixed *fixed, int keep, struct wlb_error *error)
{
	struct wlb_search_options options;
	wlb_search_options_init(&options, input->nodes, request->seq_length, request->global_batch);
	options.gpus_of_node = input->gpus_of_node;
	options.topology = request->topology != NULL ? &input->topology.topology : NULL;
	options.max_length_ratio = request->max_length_ratio;
	options.zero_stage = request->zero_stage;
	options.cost = input->cost;
	options.fixed = *fixed;
	if (input->cost.trainer != WLB_COST_WORKER) /* others cannot */
		options.fixed.shared_head = 0;
	options.charge_limit = input->cost.trainer == WLB_COST_WORKER;
	options.dynamic = request->dynamic;
	options.prefer_every_gpu = 1;
	options.keep = keep;
	return wlb_plan_search(&input->model, &input->machine, &input->stream, &options, error);
}

void wlb_plan_input_model_words(const struct wlb_plan_request *request, const struct wlb_plan_input *input, char *text,
                                size_t size)
{
	const struct wlb_model_class *known = wlb_model_class(request->model);
	double parameters = (double)wlb_model_parameters(&input->model);
	double active = (double)wlb_model_active_parameters(&input->model);
	int is_small = parameters < 1e9;
	double unit = is_small ? 1e6 : 1e9;
	char of_token[96] = "";
	if (active < parameters)
		snprintf(of_token, sizeof(of_token), ", of which %.2f compute a token", active / unit);
	wlb_text_format(text, size, "%s, %.2f %s parameters%s%s%s", known != NULL ? known->name : request->model,
	                parameters / unit, is_small ? "million" : "billion", of_token, known != NULL ? ": " : "",
	                known != NULL ? known->source : "");
}

const char *wlb_plan_node_name(const struct wlb_plan_input *input, int32_t node, char *text, size_t size)
{
	if (node < input->topology.node_count)
		return input->topology.nodes[node];
	snprintf(text, size, "%d", node);
	return text;
}
