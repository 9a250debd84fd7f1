/* wlb set: changes settings of a run while it goes on. */
#include <stdio.h>
#include <string.h>

#include "common/on_fault.h"
#include "common/output/printable.h"
#include "coordinator/wlb/api.h"
#include "coordinator/wlb/commands.h"
#include "coordinator/wlb/run_name.h"

struct request {
	struct wlb_option_list words; /* RUN and then the settings */
	bool json;
};

static const char on_fault_prefix[] = "on-fault=";

/* Each setting is named once, since the user means one of two values. */
static int read_settings(const struct wlb_option_list *words, char items[WLB_ON_FAULT_SIZE], struct wlb_error *error)
{
	items[0] = '\0';
	for (int i = 1; i < words->count; i++) {
		const char *word = words->texts[i];
		size_t length = strlen(on_fault_prefix);
		if (strncmp(word, on_fault_prefix, length) != 0)
			return wlb_fail(error,
			                "'%.100s': must be a setting NAME=VALUE; the settings are: on-fault, for "
			                "example on-fault=hang=report",
			                word);
		if (items[0] != '\0')
			return wlb_fail(error, "'%.100s': on-fault is given twice; put commas between its items", word);
		if (wlb_on_fault_items(word + length, items, WLB_ON_FAULT_SIZE, error) != 0)
			return wlb_fail_in(error, "on-fault");
	}
	if (items[0] == '\0')
		return wlb_fail(error, "no setting is given; add one, for example on-fault=hang=report");
	return 0;
}

static int print_reply(json_t *reply, struct wlb_error *error)
{
	const char *run, *before, *now;
	if (wlb_make_printable(reply) != 0)
		return wlb_fail(error, "out of memory for the reply");
	if (json_unpack(reply, "{s:s, s:s, s:s}", "run_id", &run, "before", &before, "on_fault", &now) != 0)
		return wlb_fail(error, "the coordinator's reply does not say what is set");
	printf("run %s: on-fault is %s\n", run, now);
	if (strcmp(before, now) == 0)
		puts("  as before");
	else
		printf("  before: %s\n", before);
	return 0;
}

static int set(void *values, struct wlb_error *error)
{
	const struct request *request = values;
	char path[128], items[WLB_ON_FAULT_SIZE];
	char name[WLB_RUN_NAME_BYTES];
	if (read_settings(&request->words, items, error) != 0)
		return WLB_EXIT_USAGE;
	int found = wlb_run_name_find(request->words.texts[0], name, error);
	if (found != WLB_EXIT_DONE)
		return found;
	snprintf(path, sizeof(path), "/v1/runs/%s/settings", name);
	json_t *body = json_pack("{s:s}", "on_fault", items);
	json_t *reply = wlb_api_post(path, body, error);
	json_decref(body);
	if (reply == NULL)
		return WLB_EXIT_FAILED;
	if (request->json)
		return wlb_json_print_report(reply, error) == 0 ? WLB_EXIT_DONE : WLB_EXIT_FAILED;
	int rc = print_reply(reply, error);
	json_decref(reply);
	return rc == 0 ? WLB_EXIT_DONE : WLB_EXIT_FAILED;
}

#define FIELD(name) offsetof(struct request, name)

static const struct wlb_option options[] = {
	{WLB_OPTION(LIST, NULL, FIELD(words), "RUN on-fault=ITEM[,ITEM...]",
                    "the run, and what is done about its faults, in the syntax of --wlb-on-fault"),
         .required = true},
	{WLB_OPTION(FLAG, "json", FIELD(json), NULL, "the coordinator's reply as it is")},
};

static const struct wlb_option_table table = {
	.command = "wlb set",
	.about = "Changes settings of a run while it goes on, at once and also for its next attempts. Only its owner, "
		 "SlurmUser and root may; 'wlb show RUN' shows what is in force, and who changed it.",
	.notes = "An item is report or evict, for all kinds of faults; KIND=report or KIND=evict for one of crash, "
		 "hang, slow, corrupt and outliers; hang-after=SECONDS; slow-by=PERCENT. What is not named stays as it "
		 "is.",
	.options = options,
	.count = sizeof(options) / sizeof(options[0]),
};

const struct wlb_command wlb_command_set = {
	.name = "set",
	.summary = "Change what is done about the faults of a run",
	.options = &table,
	.values_bytes = sizeof(struct request),
	.run = set,
};
