/* wlb plan: the layout for a number of nodes, and why. */
#include "coordinator/wlb/api.h"
#include "coordinator/wlb/calculators/plan/json.h"
#include "coordinator/wlb/calculators/plan/report.h"
#include "coordinator/wlb/calculators/plan/search.h"
#include "coordinator/wlb/command.h"

static const char help[] =
	"Usage: wlb plan --nodes N --seq-length N --global-batch-size N [OPTIONS]\n\n"
	"Finds how to split a model and its data over GPUs: tensor, context, pipeline and data parallelism, "
	"micro-batches,\n"
	"interleaving and recomputation with the least simulated step time among all that fit in "
	"memory.\n\n" WLB_PLAN_INPUT_HELP
	"  --top N                 how many of the next best, and of what does not fit, are shown (default 5)\n"
	"  --json                  all of it as a JSON object\n";

struct request {
	struct wlb_plan_request input;
	int top;
	bool json;
};

static int report(const struct request *request, const struct wlb_plan_input *input,
                  const struct wlb_search_result *result, struct wlb_error *error)
{
	int rc;
	if (request->json) {
		json_t *object = wlb_search_to_json(input, result);
		rc = object != NULL ? wlb_api_print(object) : -1;
		json_decref(object);
	} else {
		rc = wlb_search_print(input, result);
	}
	return rc == 0 ? 0 : wlb_fail(error, "no memory for the report");
}

static int plan(const struct wlb_command *self, const struct request *request)
{
	struct wlb_plan_input input = {0};
	struct wlb_search_result *result = NULL;
	struct wlb_error error;
	int code = WLB_EXIT_USAGE;
	if (wlb_plan_input_read(&request->input, &input, &error) == 0 &&
	    (result = wlb_plan_search(&request->input, &input, request->top + 1, &error)) != NULL)
		code = report(request, &input, result, &error) == 0 ? WLB_EXIT_DONE : WLB_EXIT_FAILED;
	if (code != WLB_EXIT_DONE)
		wlb_command_fail(self, code, error.message);
	wlb_search_free(result);
	wlb_plan_input_free(&input);
	return code;
}

static int plan_main(const struct wlb_command *self, int argc, char **argv)
{
	static const struct option options[] = {WLB_PLAN_INPUT_OPTIONS,
	                                        {"top", required_argument, NULL, 't'},
	                                        {"json", no_argument, NULL, 'j'},
	                                        {"help", no_argument, NULL, WLB_OPTION_HELP},
	                                        {0}};
	struct request request = {.top = 5};
	struct wlb_error error;
	int option, rc = 0;
	wlb_plan_request_init(&request.input);
	while (rc >= 0 && (option = wlb_command_option(self, argc, argv, options)) != -1) {
		if (option == WLB_OPTION_HELP || option == WLB_OPTION_WRONG)
			return option == WLB_OPTION_HELP ? WLB_EXIT_DONE : WLB_EXIT_USAGE;
		if (option == 't')
			rc = wlb_command_number("--top", optarg, 0, 1000, &request.top, &error);
		else if (option == 'j')
			request.json = true;
		else
			rc = wlb_plan_request_option(&request.input, option, optarg, &error);
	}
	if (rc >= 0 && optind < argc)
		rc = wlb_fail(&error, "'%.60s': takes no argument; all is said with options", argv[optind]);
	if (rc < 0)
		return wlb_command_fail(self, WLB_EXIT_USAGE, error.message);
	return plan(self, &request);
}

const struct wlb_command wlb_command_plan = {
	.name = "plan",
	.summary = "Find the layout for a number of nodes",
	.help = help,
	.main = plan_main,
};
