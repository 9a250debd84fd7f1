/* wlb plan: the layout for a number of nodes, and why. */
#include "coordinator/wlb/api.h"
#include "coordinator/wlb/calculators/plan/json.h"
#include "coordinator/wlb/calculators/plan/report.h"
#include "coordinator/wlb/commands.h"

struct request {
	struct wlb_plan_request input; /* first: WLB_PLAN_INPUT_OPTIONS fills it */
	int top;
	bool json;
};

static int report(const struct request *request, const struct wlb_plan_input *input,
                  const struct wlb_search_result *result, struct wlb_error *error)
{
	if (request->json)
		return wlb_api_print_report(wlb_search_to_json(input, result), error);
	return wlb_search_print(input, result) == 0 ? 0 : wlb_fail(error, "out of memory for the report");
}

static int plan(void *values, struct wlb_error *error)
{
	const struct request *request = values;
	struct wlb_plan_input input = {0};
	struct wlb_search_result *result = NULL;
	int code = WLB_EXIT_USAGE;
	if (wlb_plan_input_read(&request->input, &input, error) == 0 &&
	    (result = wlb_plan_input_search(&request->input, &input, request->top + 1, error)) != NULL)
		code = report(request, &input, result, error) == 0 ? WLB_EXIT_DONE : WLB_EXIT_FAILED;
	wlb_search_free(result);
	wlb_plan_input_free(&input);
	return code;
}

#define FIELD(name) offsetof(struct request, name)

static const struct wlb_option options[] = {
	WLB_PLAN_INPUT_OPTIONS,
	{WLB_OPTION(INT, "top", FIELD(top), "N", "how many of the next best, and of what does not fit, are shown"),
         .max = 1000, .initial = "5"},
	{WLB_OPTION(FLAG, "json", FIELD(json), NULL, "all of it as a JSON object")},
};

static const struct wlb_option_table table = {
	.command = "wlb plan",
	.about = "Finds how to split a model and its data over GPUs: tensor, context, pipeline and data parallelism, "
		 "micro-batches, interleaving and recomputation with the least simulated step time among all that fit "
		 "in memory.",
	.options = options,
	.count = sizeof(options) / sizeof(options[0]),
};

const struct wlb_command wlb_command_plan = {
	.name = "plan",
	.summary = "Find the layout for a number of nodes",
	.options = &table,
	.values_bytes = sizeof(struct request),
	.run = plan,
};
