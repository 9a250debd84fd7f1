#include "planner/cli/plan/near.h"

#include <stdio.h>

static const char *const kinds[] = {
	[WLB_PUBLISHED_UNKNOWN] = "unknown",
	[WLB_PUBLISHED_CALIBRATED] = "calibrated",
	[WLB_PUBLISHED_PREDICTED] = "predicted",
};

int wlb_near_find(const struct wlb_plan_request *request, const struct wlb_plan_input *input, int32_t gpus,
                  struct wlb_published_near *near, struct wlb_error *error)
{
	struct wlb_published published = {0};
	const struct wlb_published_question question = {
		.machine = input->machine.name,
		.trainer = input->trainer.name,
		.window_tokens = request->seq_length,
		.gpus = gpus,
		.list = wlb_published_list_of(&input->model, input->cost.fp8),
		.without = -1,
	};
	int rc = wlb_published_read(&published, error);
	if (rc == 0)
		*near = wlb_published_near(&published, &question);
	wlb_published_free(&published);
	return rc;
}

void wlb_near_print(const struct wlb_published_near *near)
{
	if (near->kind == WLB_PUBLISHED_UNKNOWN) {
		puts("  unknown how far off: near this machine, window and number of GPUs are fewer than four "
		     "published steps of two sources");
		return;
	}
	printf("  %s: near this are %d published steps (%d sources%s); "
	       "9 of 10 took between %.0f%% less and %.0f%% more time than predicted%s\n",
	       kinds[near->kind], near->steps, near->sources, near->any_trainer ? ", other trainers too" : "",
	       100.0 * (1.0 - near->lower), 100.0 * (near->upper - 1.0),
	       near->kind == WLB_PUBLISHED_CALIBRATED ? "; they set constants of the model" : "");
}

json_t *wlb_near_to_json(const struct wlb_published_near *near)
{
	if (near->kind == WLB_PUBLISHED_UNKNOWN)
		return json_pack("{s:s}", "kind", kinds[near->kind]);
	return json_pack("{s:s, s:i, s:i, s:b, s:f, s:f}", "kind", kinds[near->kind], "steps", (int)near->steps,
	                 "sources", (int)near->sources, "any_trainer", near->any_trainer, "lower", near->lower, "upper",
	                 near->upper);
}
