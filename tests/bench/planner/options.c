#include "tests/bench/planner/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "planner/machine.h"
#include "planner/trainer_file.h"

void *bench_must(void *made, const struct wlb_error *error)
{
	if (made != NULL)
		return made;
	fprintf(stderr, "planner: %s\n", error->message);
	exit(1);
}

enum wlb_fp8 bench_fp8(const struct published_row *row)
{
	if (strcmp(row->precision, "mxfp8") == 0)
		return WLB_FP8_MXFP8;
	if (strcmp(row->precision, "fp8") == 0)
		return strcmp(row->recipe, "delayed") == 0 ? WLB_FP8_DELAYED : WLB_FP8_TENSORWISE;
	return WLB_FP8_NONE;
}

void bench_options(const struct published_row *row, struct wlb_machine *machine, struct wlb_cost_options *options)
{
	struct wlb_trainer_file trainer;
	struct wlb_error error;
	if (wlb_trainer_file_read(row->trainer, &trainer, &error) < 0 ||
	    wlb_trainer_file_apply(&trainer, row->attention, machine, options, &error) < 0)
		bench_must(NULL, &error);
	if (row->gradient_bytes > 0)
		options->gradient_bytes = row->gradient_bytes;
	if (row->optimizer_bytes > 0.0)
		options->optimizer_bytes = row->optimizer_bytes;
	if (row->fragmentation >= 0.0)
		options->fragmentation = row->fragmentation;
	options->fp8 = bench_fp8(row);
	options->full_attention = row->rate.flops != PUBLISHED_CAUSAL;
	options->rows_by_node = row->rows_by_node;
	options->experts_in_turn = row->experts_in_turn;
	if (!row->grouped_experts)
		options->grouped_experts = options->fused_experts = 0;
	if (!row->overlap_experts)
		options->exchange_processors = 0;
	options->split_operations &= row->split_operations;
	options->weighted_experts |= row->weighted_experts;
	if (row->tp_overlap >= 0.0)
		options->tp_overlap = (struct wlb_overlap){row->tp_overlap, row->tp_overlap};
	if (!row->overlap)
		options->overlap_gradients = options->overlap_parameters = options->overlap_pp = 0;
	options->overlap_gradients |= row->overlap_gradients;
}

const char *bench_inexpressible(const struct published_row *row, struct wlb_machine *machine, char *text, size_t size)
{
	struct wlb_error error;
	if (row->mamba)
		return "Mamba layers";
	if (strcmp(row->precision, "nvfp4") == 0)
		return "products in 4 bits";
	if (strcmp(row->precision, "fp8") == 0 && strcmp(row->recipe, "rowwise") == 0)
		return "products in 8 bits with a scale for each row";
	if (row->offloaded_layers > 0)
		return "activations in the host's memory";
	if (row->shard_ranks > 0)
		return "sharding over fewer ranks than hold the same weights";
	snprintf(text, size, "%s/libwlb/machines/%s.json", WLB_SOURCE_DIR, row->machine);
	if (access(text, F_OK) != 0) {
		snprintf(text, size, "no file of the machine %s", row->machine);
		return text;
	}
	if (wlb_machine_file_read(row->machine, machine, &error) < 0)
		bench_must(NULL, &error);
	if (row->gpu_gib > 0.0)
		machine->memory_bytes = row->gpu_gib * 1024.0 * 1024.0 * 1024.0;
	if (row->network_gbits_per_s > 0.0)
		machine->network_link.bytes_per_s = 1e9 / 8.0 * row->network_gbits_per_s / machine->gpus_per_node;
	return NULL;
}
