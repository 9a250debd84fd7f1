#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/automatic.h"
#include "planner/machine.h"
#include "planner/machine_choose.h"
#include "planner/machine_compare.h"
#include "planner/plan_record.h"
#include "planner/search.h"
#include "tests/unit/data/fixture.h"
#include "tests/unit/data/index_file.h"

static const char config[] = "{\"model_type\": \"llama\", \"hidden_size\": 256, \"intermediate_size\": 768, "
			     "\"num_hidden_layers\": 8, \"num_attention_heads\": 8, \"num_key_value_heads\": 4, "
			     "\"vocab_size\": 512, \"max_position_embeddings\": 1024}";

/* 2 billion parameters. */
static const char large[] = "{\"model_type\": \"llama\", \"hidden_size\": 4096, \"intermediate_size\": 11008, "
			    "\"num_hidden_layers\": 8, \"num_attention_heads\": 8, \"vocab_size\": 32000, "
			    "\"max_position_embeddings\": 1024}";

static struct wlb_auto_request request_of(void **state, int nodes, int ranks)
{
	struct wlb_error error;
	struct wlb_auto_request request = {
		.model = fixture_write_text(state, "model.json", config),
		.machine = WLB_TEST_MACHINES "/CPU.json",
		.seq_length = 512,
		.global_batch = 32,
		.max_length_ratio = 1.25,
		.sharding = WLB_SHARDING_ADAPTIVE,
		.nodes = {.count = nodes, .ranks_per_node = ranks},
		.fixed = {.recompute = -1},
		.every_rank = 1,
	};
	assert_int_equal(wlb_trainer_file_read("megatron", &request.trainer, &error), 0);
	return request;
}

/* Writes FOLDER/small.json: the CPU machine with this much memory for a rank. */
static const char *small_machine(void **state, double bytes)
{
	size_t bytes_read;
	char *text = fixture_read(WLB_TEST_MACHINES "/CPU.json", &bytes_read), *rest;
	char changed[8192];
	char *at = strstr(text, "\"memory_bytes\":");
	assert_non_null(at);
	rest = strchr(at, ',');
	snprintf(changed, sizeof(changed), "%.*s\"memory_bytes\": %.0f%s", (int)(at - text), text, bytes, rest);
	free(text);
	return fixture_write_text(state, "small.json", changed);
}

/* The memory that data parallelism alone needs. */
static double data_parallel_bytes(struct wlb_auto_request request)
{
	struct wlb_auto found = {0};
	struct wlb_error error;
	request.fixed.tp = request.fixed.cp = request.fixed.pp = 1;
	assert_int_equal(wlb_auto_find(&request, &found, &error), 0);
	double bytes = found.result->ranked[0].memory.reserved;
	for (size_t i = 1; i < found.result->ranked_count; i++)
		if (found.result->ranked[i].memory.reserved < bytes)
			bytes = found.result->ranked[i].memory.reserved;
	wlb_auto_free(&found);
	return bytes;
}

static void splits_a_model_that_does_not_fit_on_one_rank(void **state)
{
	struct wlb_auto_request request = request_of(state, 4, 2);
	struct wlb_auto found = {0};
	struct wlb_error error;
	request.machine = small_machine(state, 0.7 * data_parallel_bytes(request));
	assert_int_equal(wlb_auto_find(&request, &found, &error), 0);
	const struct wlb_candidate *best = &found.result->ranked[0];
	assert_true(best->plan.layout.tp * best->plan.layout.pp > 1);
	assert_int_equal(wlb_layout_ranks(&best->plan.layout), 8);
	assert_true(best->memory.reserved <= found.machine.memory_bytes);
	assert_true(found.result->misfit_count > 0);
	assert_true(found.utilization > 0.0 && found.utilization < 1.0);
	assert_says(found.reason, "not fit in memory");
	json_t *record = wlb_plan_record(&request, &found);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(record, "layout"), "pp")),
	                 best->plan.layout.pp);
	assert_in_range(json_array_size(json_object_get(record, "next")), 1, WLB_PLAN_RECORD_OTHERS);
	const json_t *misfit = json_array_get(json_object_get(record, "misfits"), 0);
	assert_true(json_real_value(json_object_get(misfit, "missing_bytes")) > 0.0);
	json_decref(record);
	wlb_auto_free(&found);
}

static void holds_what_is_fixed(void **state)
{
	struct wlb_auto_request request = request_of(state, 2, 2);
	struct wlb_auto found = {0};
	struct wlb_error error;
	request.fixed = (struct wlb_search_fixed){
		.pp = 2, .interleave = 2, .micro_batch_windows = 2, .recompute = WLB_RECOMPUTE_FULL};
	assert_int_equal(wlb_auto_find(&request, &found, &error), 0);
	const struct wlb_plan *plan = &found.result->ranked[0].plan;
	assert_int_equal(plan->layout.pp, 2);
	assert_int_equal(plan->interleave, 2);
	assert_int_equal(plan->recompute, WLB_RECOMPUTE_FULL);
	assert_int_equal(found.micro_batch_windows, 2);
	wlb_auto_free(&found);
}

/* A launcher's options say whole layers alone, so the sets of modules of the trainer's file are not tried. */
static void recomputes_no_modules(void **state)
{
	struct wlb_auto_request request = request_of(state, 1, 1);
	struct wlb_auto found = {0};
	struct wlb_error error;
	int full = 0;
	request.fixed = (struct wlb_search_fixed){.tp = 1, .cp = 1, .pp = 1, .micro_batch_windows = 4, .recompute = -1};
	request.trainer.cost.recompute_sets[0] = WLB_RECOMPUTE_LAYERNORM;
	assert_int_equal(wlb_auto_find(&request, &found, &error), 0);
	double bytes = found.result->ranked[0].memory.reserved;
	wlb_auto_free(&found);
	for (double share = 0.999; share > 0.9; share -= 0.02) {
		request.machine = small_machine(state, share * bytes);
		assert_int_equal(wlb_auto_find(&request, &found, &error), 0);
		enum wlb_recompute recompute = found.result->ranked[0].plan.recompute;
		assert_true(recompute <= WLB_RECOMPUTE_FULL);
		full += recompute == WLB_RECOMPUTE_FULL;
		wlb_auto_free(&found);
	}
	assert_true(full > 0);
}

static void refuses_with_the_remedy(void **state)
{
	struct wlb_auto_request request = request_of(state, 2, 2);
	struct wlb_auto found = {0};
	struct wlb_error error;
	request.machine = NULL;
	request.gpu_types = "abacus_9000";
	assert_int_equal(wlb_auto_find(&request, &found, &error), -1);
	assert_says(error.message, "abacus_9000");
	assert_says(error.message, "WLB_MACHINE");
	request.gpu_types = "";
	assert_int_equal(wlb_auto_find(&request, &found, &error), -1);
	assert_says(error.message, "GRES names no type");
	assert_says(error.message, "machine = H100 of wlb.conf");
	request.machine = "/none/m.json";
	assert_int_equal(wlb_auto_find(&request, &found, &error), -1);
	assert_says(error.message, "--machine: ");
	request.machine = small_machine(state, 1.001e8);
	request.model = fixture_write_text(state, "large.json", large);
	assert_int_equal(wlb_auto_find(&request, &found, &error), -1);
	assert_says(error.message, "none of");
	request.model = "/none/config.json";
	assert_int_equal(wlb_auto_find(&request, &found, &error), -1);
	assert_says(error.message, "/none/config.json");
	wlb_auto_free(&found);
}

static void knows_the_types_that_slurm_names(void **state)
{
	static const char *const types[] = {"h100",   "nvidia_h100_80gb_hbm3", "NVIDIA-A100",
	                                    "mi300x", "nvidia_gb200",          "b200"};
	static const char *const names[] = {"H100", "H100", "A100", "MI300X", "GB200", "B200"};
	struct wlb_auto_request request = request_of(state, 1, 8);
	struct wlb_error error;
	request.machine = NULL;
	for (int i = 0; i < 6; i++) {
		struct wlb_auto found = {0};
		request.gpu_types = types[i];
		assert_int_equal(wlb_auto_find(&request, &found, &error), 0);
		assert_string_equal(found.machine.name, names[i]);
		wlb_auto_free(&found);
	}
}

static void takes_the_memory_that_the_type_names(void **state)
{
	static const struct {
		const char *type;
		double bytes;
	} types[] = {{"nvidia_a100-sxm4-40gb", 42.4e9}, {"NVIDIA_A100_40GB", 42.4e9}, {"nvidia_a100_80gb_pcie", 84.8e9},
	             {"nvidia_h100_80gb_hbm3", 84.8e9}, {"h100_96gb", 84.987e9},      {"nvidia_h100_nvl", 84.987e9}};
	static const char *const parts[] = {"nvidia_a100_1g.10gb", "1g.10gb", "a100-1c.2g.20gb"};
	struct wlb_machine machine;
	struct wlb_error error;
	const char *from;
	(void)state;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		assert_int_equal(wlb_machine_choose(NULL, types[i].type, 8, &machine, &from, &error), 0);
		assert_float_equal(machine.memory_bytes, types[i].bytes, 1.0);
	}
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		assert_int_equal(wlb_machine_choose(NULL, parts[i], 8, &machine, &from, &error), -1);
		assert_says(error.message, parts[i]);
		assert_says(error.message, "name its machine file by WLB_MACHINE");
	}
	assert_int_equal(wlb_machine_choose(NULL, "a100_1g.10gb", 8, &machine, &from, &error), -1);
	assert_says(error.message, "1g.10gb is a part of a GPU");
}

static void the_memory_of_the_job_limits_cpus(void **state)
{
	const double mebibyte = 1024.0 * 1024.0;
	struct wlb_machine machine;
	struct wlb_error error;
	const char *from;
	(void)state;
	setenv("SLURM_MEM_PER_NODE", "200", 1);
	setenv("SLURM_CPUS_ON_NODE", "4", 1);
	assert_int_equal(wlb_machine_choose(NULL, NULL, 2, &machine, &from, &error), 0);
	assert_true(machine.memory_bytes == 100.0 * mebibyte);
	setenv("SLURM_MEM_PER_CPU", "10", 1);
	assert_int_equal(wlb_machine_choose(NULL, NULL, 2, &machine, &from, &error), 0);
	assert_true(machine.memory_bytes == 20.0 * mebibyte);
	setenv("SLURM_MEM_PER_NODE", "0", 1);
	unsetenv("SLURM_MEM_PER_CPU");
	assert_int_equal(wlb_machine_choose(NULL, NULL, 2, &machine, &from, &error), 0);
	assert_true(machine.memory_bytes > 100.0 * mebibyte);
	setenv("SLURM_MEM_PER_NODE", "200", 1);
	assert_int_equal(wlb_machine_choose("CPU", NULL, 2, &machine, &from, &error), 0);
	assert_true(machine.memory_bytes > 100.0 * mebibyte);
	unsetenv("SLURM_MEM_PER_NODE");
	unsetenv("SLURM_CPUS_ON_NODE");
}

static void of_several_types_the_slowest_is_searched_with(void **state)
{
	static const char *const types[] = {"h100,a100", "a100,h100", "b200,a100,h100"};
	struct wlb_auto_request request = request_of(state, 2, 8);
	struct wlb_auto found = {0};
	struct wlb_error error;
	char text[512];
	request.machine = NULL;
	for (int i = 0; i < 3; i++) {
		request.gpu_types = types[i];
		assert_int_equal(wlb_auto_find(&request, &found, &error), 0);
		assert_non_null(strstr(found.machine.name, "A100"));
		snprintf(text, sizeof(text), "the slowest of the types %s", types[i]);
		assert_says(found.reason, text);
		wlb_auto_free(&found);
	}
	/* A measured type is a file: it may be faster and have less memory. */
	snprintf(text, sizeof(text), "a100,%s", small_machine(state, 2e9));
	request.gpu_types = text;
	assert_int_equal(wlb_auto_find(&request, &found, &error), 0);
	assert_true(found.machine.memory_bytes == 2e9);
	wlb_auto_free(&found);
	request.gpu_types = "a100,abacus_9000";
	assert_int_equal(wlb_auto_find(&request, &found, &error), -1);
	assert_says(error.message, "abacus_9000");
	wlb_auto_free(&found);
}

static void takes_the_machine_of_wlb_conf(void **state)
{
	struct wlb_auto_request request = request_of(state, 2, 8);
	struct wlb_auto found = {0};
	struct wlb_error error;
	request.machine = NULL;
	setenv("WLB_CONF", fixture_write_text(state, "wlb.conf", "coordinator = h:1\nmachine = B200 # all\n"), 1);
	static const char *const types[] = {NULL, "", "abacus_9000", "a100"}, *const names[] = {"B200", "B200", "B200",
	                                                                                        "A100"};
	for (int i = 0; i < 4; i++) {
		request.gpu_types = types[i];
		assert_int_equal(wlb_auto_find(&request, &found, &error), 0);
		assert_non_null(strstr(found.machine.name, names[i]));
		wlb_auto_free(&found);
	}
	request.gpu_types = NULL;
	setenv("WLB_CONF", fixture_write_text(state, "wrong.conf", "machine = abacus\n"), 1);
	assert_int_equal(wlb_auto_find(&request, &found, &error), -1);
	assert_says(error.message, "wrong.conf: 'abacus' is unknown");
	setenv("WLB_CONF", fixture_write_text(state, "wrong.conf", "machine\n"), 1);
	assert_int_equal(wlb_auto_find(&request, &found, &error), -1);
	assert_says(error.message, "line 1: 'machine': a line is KEY = VALUE");
	wlb_auto_free(&found);
	unsetenv("WLB_CONF");
}

/* Checks the range of one part of a comparison. */
static void assert_times(const json_t *times, const char *part, double least, double most)
{
	const json_t *range = json_object_get(times, part);
	assert_int_equal(json_array_size(range), 2);
	assert_float_equal(json_number_value(json_array_get(range, 0)), least, 1e-6);
	assert_float_equal(json_number_value(json_array_get(range, 1)), most, 1e-6);
}

static void compares_machines(void **state)
{
	struct wlb_machine before, now;
	struct wlb_error error;
	(void)state;
	assert_int_equal(wlb_machine_file_read(WLB_TEST_MACHINES "/CPU.json", &before, &error), 0);
	now = before;
	now.memory_bytes_per_s *= 2.0;
	now.node_link.bytes_per_s /= 4.0;
	now.node_link.latency_s *= 4.0;
	/* Products of few rows only: the points between are interpolated, those outside are the nearest. */
	now.gemm = before.gemm = (struct wlb_gemm_rates){.rows_count = 2,
	                                                 .depth_count = 1,
	                                                 .columns_count = 1,
	                                                 .rows = {64.0, 4096.0},
	                                                 .depth = {64.0},
	                                                 .columns = {64.0},
	                                                 .flops_per_s = {1e9, 1e10}};
	now.gemm.flops_per_s[0] = 5e8;
	json_t *times = wlb_machine_compare(&now, &before);
	assert_non_null(times);
	assert_times(times, "matrix_products", 0.5, 1.0);
	assert_times(times, "attention", 1.0, 1.0);
	assert_times(times, "memory", 2.0, 2.0);
	assert_times(times, "node_link", 0.25, 0.25);
	assert_times(times, "network_link", 1.0, 1.0);
	json_decref(times);
}

/* Seconds computed for a window of 8,192 tokens; one document in `every` fills it, the others have 64 tokens. */
static double computed_of_window_s(const struct wlb_auto *found, int every, int32_t global_batch)
{
	struct wlb_length_list list = {0};
	struct wlb_length_stream stream = {.list = &list, .repeat = true};
	struct wlb_search_options options;
	struct wlb_error error;
	for (int i = 0; i < 4000; i++)
		assert_int_equal(wlb_length_list_add(&list, i % every == every / 2 ? 8192 : 64, &error), 0);
	wlb_search_options_init(&options, 1, 8192, global_batch);
	options.fixed = (struct wlb_search_fixed){
		.tp = 1, .cp = 1, .pp = 1, .micro_batch_windows = 1, .recompute = WLB_RECOMPUTE_NONE};
	struct wlb_search_result *result = wlb_plan_search(&found->model, &found->machine, &stream, &options, &error);
	assert_non_null(result);
	double seconds = result->ranked[0].time.compute_s / global_batch;
	wlb_search_free(result);
	wlb_length_list_free(&list);
	return seconds;
}

/* Of a step of two windows one in two has a long document: no single step tells what the mean step computes. */
static void rare_long_documents_count_in_small_batches(void **state)
{
	enum { EVERY = 400 };
	struct wlb_auto_request request = request_of(state, 1, 1);
	struct wlb_auto found = {0};
	struct wlb_error error;
	assert_int_equal(wlb_auto_find(&request, &found, &error), 0);
	double long_share = 8192.0 / (8192.0 + (EVERY - 1) * 64.0);
	double long_s = computed_of_window_s(&found, 1, 16), short_s = computed_of_window_s(&found, 4001, 16);
	double expected_s = long_share * long_s + (1.0 - long_share) * short_s;
	assert_true(long_s > 3.0 * short_s);
	assert_true(fabs(computed_of_window_s(&found, EVERY, 256) / expected_s - 1.0) < 0.03);
	assert_true(fabs(computed_of_window_s(&found, EVERY, 2) / expected_s - 1.0) < 0.15);
	wlb_auto_free(&found);
}

/* Tokens of the predicted step with documents of so many tokens, in windows of 512. */
static double tokens_of_step(const struct wlb_auto *found, enum wlb_cost_trainer trainer, int64_t tokens_of_document,
                             int32_t global_batch)
{
	struct wlb_length_list list = {0};
	struct wlb_length_stream stream = {.list = &list, .repeat = true};
	struct wlb_search_options options;
	struct wlb_error error;
	for (int i = 0; i < 100; i++)
		assert_int_equal(wlb_length_list_add(&list, tokens_of_document, &error), 0);
	wlb_search_options_init(&options, 1, 512, global_batch);
	options.cost.trainer = trainer;
	struct wlb_search_result *result = wlb_plan_search(&found->model, &found->machine, &stream, &options, &error);
	assert_non_null(result);
	double tokens = result->ranked[0].tokens_per_s * result->ranked[0].step_s;
	wlb_search_free(result);
	wlb_length_list_free(&list);
	return tokens;
}

/* A step of wlb-worker ends where the next document would not fit: two windows have two documents, and 256 windows 341,
 * which leaves 128 tokens, as 512 windows do. The last token of a document is a target alone. Other trainers cut a
 * document there. */
static void steps_have_whole_documents(void **state)
{
	struct wlb_auto_request request = request_of(state, 1, 1);
	struct wlb_auto found = {0};
	struct wlb_error error;
	assert_int_equal(wlb_auto_find(&request, &found, &error), 0);
	assert_true(fabs(tokens_of_step(&found, WLB_COST_WORKER, 385, 2) - 768.0) < 1e-6);
	assert_true(fabs(tokens_of_step(&found, WLB_COST_WORKER, 385, 256) - 341.0 * 384.0) < 1e-6);
	assert_true(fabs(tokens_of_step(&found, WLB_COST_WORKER, 385, 512) - (512.0 * 512.0 - 128.0)) < 1e-6);
	assert_true(fabs(tokens_of_step(&found, WLB_COST_MEGATRON, 384, 2) - 1024.0) < 1e-6);
	wlb_auto_free(&found);
}

/* A dataset of documents whose lengths are log-normal; with sigma 0 all are equal. Returns its prefix. */
static const char *log_normal_documents(void **state, double median, double sigma)
{
	enum { DOCUMENTS = 4000 };
	static int32_t lengths[DOCUMENTS];
	static struct index_file index;
	uint64_t random = 1;
	for (int i = 0; i < DOCUMENTS; i++) {
		double normal = -6.0; /* the sum of twelve uniform numbers has variance 1 */
		for (int k = 0; k < 12; k++) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			normal += (double)(random >> 33) / 2147483648.0;
		}
		lengths[i] = (int32_t)fmax(16.0, median * exp(sigma * normal));
	}
	index_file_init(&index, 3, 4, lengths, DOCUMENTS);
	index_file_write(&index, state);
	return fixture_path(state, "x");
}

/* Other trainers fill every window, and cut documents for that: a layout whose micro-batches are whole windows is not
 * worse for it. */
static void other_trainers_fill_windows(void **state)
{
	static const struct {
		double median, sigma;
	} documents[] = {{700.0, 1.2}, {2600.0, 0.0}, {2600.0, 0.1}};
	struct wlb_auto_request request = request_of(state, 1, 8);
	struct wlb_error error = {""};
	request.model = fixture_write_text(state, "large.json", large);
	request.machine = WLB_TEST_MACHINES "/H100.json";
	request.seq_length = 4096;
	request.global_batch = 64;
	request.max_length_ratio = 1.0;
	request.sharding = WLB_SHARDING_SEQUENCE;
	for (int i = 0; i < 3; i++) {
		struct wlb_auto found = {0}, replicas = {0};
		struct wlb_auto_request of_replicas = request;
		request.lengths = of_replicas.lengths =
			log_normal_documents(state, documents[i].median, documents[i].sigma);
		of_replicas.fixed.tp = of_replicas.fixed.cp = of_replicas.fixed.pp = 1;
		wlb_auto_find(&request, &found, &error);
		assert_string_equal(error.message, "");
		wlb_auto_find(&of_replicas, &replicas, &error);
		assert_string_equal(error.message, "");
		assert_int_equal(found.result->ranked[0].gpus, 8);
		assert_true(found.result->ranked[0].step_s <= 1.02 * replicas.result->ranked[0].step_s);
		wlb_auto_free(&found);
		wlb_auto_free(&replicas);
	}
}

/* The file of the trainer has what its communication runs beside and how fast its products are. */
static void another_trainer_is_planned_by_its_file(void **state)
{
	static const char *const trainers[] = {"megatron", "torchtitan-eager"};
	struct wlb_auto_request request = request_of(state, 1, 8);
	struct wlb_auto found = {0};
	struct wlb_error error = {""};
	double step_s[2];
	request.model = fixture_write_text(state, "large.json", large);
	request.machine = WLB_TEST_MACHINES "/H100.json";
	for (int i = 0; i < 2; i++) {
		assert_int_equal(wlb_trainer_file_read(trainers[i], &request.trainer, &error), 0);
		wlb_auto_find(&request, &found, &error);
		assert_string_equal(error.message, "");
		assert_says(found.reason, i == 0 ? "plans on H100 for megatron: " : "for torchtitan-eager: ");
		step_s[i] = found.result->fastest_s;
		wlb_auto_free(&found);
	}
	assert_true(step_s[1] > 1.02 * step_s[0]);
}

/* wlb-worker divides a step into as many micro-batches as the user's limit of their tokens needs. */
static void a_limit_of_tokens_adds_micro_batches(void **state)
{
	struct wlb_auto_request request = request_of(state, 1, 2);
	struct wlb_auto found = {0};
	struct wlb_error error = {""};
	request.is_worker = 1;
	request.lengths = log_normal_documents(state, 350.0, 0.0);
	request.max_tokens = 512;
	request.least_micro_batches = 64;
	request.fixed.micro_batch_windows = 1;
	wlb_auto_find(&request, &found, &error);
	assert_string_equal(error.message, "");
	const struct wlb_candidate *best = &found.result->ranked[0];
	assert_int_equal(best->plan.micro_batches * best->plan.layout.dp, 64);
	assert_int_equal(best->micro_batch_tokens, 512);
	assert_int_equal(found.micro_batch_windows, 1);
	wlb_auto_free(&found);
	request.max_tokens = 511;
	assert_int_equal(wlb_auto_find(&request, &found, &error), -1);
	assert_says(error.message, "max_tokens is 511: it must be 0, or at least seq_length, 512");
	wlb_auto_free(&found);
}

static double step_s_with(struct wlb_auto_request request, int dynamic, int *is_dynamic)
{
	struct wlb_auto found = {0};
	struct wlb_error error = {""};
	request.dynamic = dynamic;
	wlb_auto_find(&request, &found, &error);
	assert_string_equal(error.message, "");
	double step_s = found.result->ranked[0].step_s;
	*is_dynamic = found.result->ranked[0].plan.dynamic_cp > 0;
	wlb_auto_free(&found);
	return step_s;
}

/* A document of a window is more work than a rank's share of the step, unless all are windows. */
static void dynamic_packing_is_taken_where_its_step_is_shorter(void **state)
{
	static const char grouped[] =
		"{\"model_type\": \"llama\", \"hidden_size\": 4096, \"intermediate_size\": 14336, "
		"\"num_hidden_layers\": 8, \"num_attention_heads\": 32, "
		"\"num_key_value_heads\": 8, \"vocab_size\": 32000, "
		"\"max_position_embeddings\": 131072}";
	static const double medians[] = {2000.0, 131073.0}, sigmas[] = {1.5, 0.0};
	struct wlb_auto_request request = request_of(state, 4, 8);
	request.is_worker = 1;
	request.model = fixture_write_text(state, "grouped.json", grouped);
	request.machine = WLB_TEST_MACHINES "/H100.json";
	request.seq_length = 131072;
	request.fixed.cp = request.fixed.pp = 1;
	request.fixed.tp = 2;
	for (int i = 0; i < 2; i++) {
		int chosen, without, with;
		request.lengths = log_normal_documents(state, medians[i], sigmas[i]);
		double without_s = step_s_with(request, 0, &without), with_s = step_s_with(request, 1, &with);
		assert_true(step_s_with(request, -1, &chosen) == fmin(without_s, with_s));
		assert_true(!without && with);
		assert_int_equal(chosen, i == 0);
	}
}

/* 88 ranks for a batch of 8 windows: only pp = 11 uses them all, and its step is longer than that of 64 ranks. */
static void ranks_stay_idle_where_that_is_faster(void **state)
{
	struct wlb_auto_request request = request_of(state, 11, 8);
	struct wlb_auto every = {0}, fastest = {0};
	struct wlb_error error = {""};
	request.model = fixture_write_text(state, "large.json", large);
	request.machine = WLB_TEST_MACHINES "/H100.json";
	request.seq_length = 4096;
	request.global_batch = 8;
	request.is_worker = 1;
	request.fixed.account_for_embedding = request.fixed.account_for_loss = request.fixed.shared_head = -1;
	wlb_auto_find(&request, &every, &error);
	assert_string_equal(error.message, "");
	request.every_rank = 0;
	wlb_auto_find(&request, &fastest, &error);
	assert_string_equal(error.message, "");
	const struct wlb_candidate *best = &fastest.result->ranked[0];
	assert_int_equal(every.result->ranked[0].gpus, 88);
	assert_true(best->gpus < 88);
	assert_true(best->step_s < 0.9 * every.result->ranked[0].step_s);
	assert_true(best->step_s <= 1.01 * fastest.result->fastest_s);
	assert_says(fastest.reason, fastest.result->preferred ? "% above the least of" : "the least of");
	wlb_auto_free(&every);
	wlb_auto_free(&fastest);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(splits_a_model_that_does_not_fit_on_one_rank),
		TEST(holds_what_is_fixed),
		TEST(recomputes_no_modules),
		TEST(refuses_with_the_remedy),
		TEST(knows_the_types_that_slurm_names),
		TEST(takes_the_memory_that_the_type_names),
		TEST(the_memory_of_the_job_limits_cpus),
		TEST(of_several_types_the_slowest_is_searched_with),
		TEST(takes_the_machine_of_wlb_conf),
		TEST(compares_machines),
		TEST(rare_long_documents_count_in_small_batches),
		TEST(steps_have_whole_documents),
		TEST(other_trainers_fill_windows),
		TEST(ranks_stay_idle_where_that_is_faster),
		TEST(another_trainer_is_planned_by_its_file),
		TEST(a_limit_of_tokens_adds_micro_batches),
		TEST(dynamic_packing_is_taken_where_its_step_is_shorter),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
