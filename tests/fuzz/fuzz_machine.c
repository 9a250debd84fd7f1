/* Any description of a machine, of a trainer, and of published steps: refused with a message, or one that passes its
 * check. */
#include "planner/machine.h"
#include "planner/published.h"
#include "planner/trainer_file.h"
#include "tests/fuzz/scratch.h"

static void parse_trainer(const char *text, size_t bytes)
{
	struct wlb_trainer_file trainer;
	struct wlb_cost_options cost;
	struct wlb_machine machine = {.gemm_efficiency = 0.5};
	struct wlb_error error = {0};
	if (wlb_trainer_file_parse(text, bytes, &trainer, &error) < 0) {
		must(error.message[0] != '\0');
		return;
	}
	must(wlb_trainer_file_apply(&trainer, NULL, &machine, &cost, &error) == 0);
	must(wlb_cost_options_check(&cost, &error) == 0);
	must(machine.gemm_efficiency > 0.0 && machine.gemm_efficiency <= 1.0);
}

static void parse_published(const char *text, size_t bytes)
{
	const struct wlb_published_question questions[] = {{"H100", "nemo", 8192.0, 64.0, 0, -1},
	                                                   {"H100", "nemo", 8192.0, 64.0, 1, -1}};
	struct wlb_published published = {0};
	struct wlb_error error = {0};
	if (wlb_published_parse(text, bytes, &published, &error) < 0)
		must(error.message[0] != '\0');
	else
		for (int i = 0; i < 2; i++) {
			struct wlb_published_near near = wlb_published_near(&published, &questions[i]);
			must(near.lower >= 0.0 && near.upper >= near.lower);
		}
	wlb_published_free(&published);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct wlb_machine machine;
	struct wlb_error error = {0};
	parse_trainer((const char *)data, bytes);
	parse_published((const char *)data, bytes);
	if (wlb_machine_file_parse((const char *)data, bytes, &machine, &error) < 0) {
		must(error.message[0] != '\0');
		return 0;
	}
	must(wlb_machine_check(&machine, &error) == 0);
	must(machine.name[0] != '\0');
	must(wlb_machine_gather_s(&machine, 4, 2, 1, 1e9) > 0.0);
	must(wlb_machine_gemm_s(&machine, 1000.0, 3000.0, 500.0) > 0.0);
	for (int fp8 = WLB_FP8_NONE; fp8 <= WLB_FP8_MXFP8; fp8++)
		if (wlb_machine_fp8_check(&machine, (enum wlb_fp8)fp8, &error) == 0)
			must(wlb_machine_fp8_gemm_s(&machine, (enum wlb_fp8)fp8, 1000.0, 3000.0, 500.0) > 0.0);
	must(wlb_machine_linked_gpus(&machine) >= machine.gpus_per_node);
	must(wlb_machine_attention_s(&machine, 3, 64, 0.0, 100.0, 5000.0, 1) > 0.0);
	return 0;
}
