/* wlb tag: sets and removes the tags of a run, by which wlb runs finds it. */
#include <stdio.h>

#include "common/output/printable.h"
#include "coordinator/wlb/api.h"
#include "coordinator/wlb/commands.h"
#include "coordinator/wlb/run_name.h"

struct request {
	struct wlb_option_list words; /* RUN and then the tags */
	bool removes, json;
};

static void print_tags(json_t *reply)
{
	const json_t *tags = json_object_get(reply, "tags"), *tag;
	size_t i;
	printf("run %s has ", json_string_value(json_object_get(reply, "run_id")));
	puts(json_array_size(tags) == 0 ? "no tags" : json_array_size(tags) == 1 ? "the tag" : "the tags");
	json_array_foreach(tags, i, tag) printf("  %s\n", json_string_value(tag));
}

static json_t *send_tags(const struct request *request, const char *name, struct wlb_error *error)
{
	char path[128];
	json_t *tags = json_array();
	for (int i = 1; i < request->words.count; i++) {
		json_t *tag = json_string(request->words.texts[i]);
		if (tag == NULL) {
			json_decref(tags);
			wlb_fail(error, "tag %d: must be letters, digits and ._:/=+-", i);
			return NULL;
		}
		json_array_append_new(tags, tag);
	}
	snprintf(path, sizeof(path), "/v1/runs/%s/tags", name);
	json_t *body = json_pack("{s:o}", request->removes ? "remove" : "add", tags);
	json_t *reply = wlb_api_post(path, body, error);
	json_decref(body);
	return reply;
}

static int tag(void *values, struct wlb_error *error)
{
	const struct request *request = values;
	char name[WLB_RUN_NAME_BYTES];
	if (request->words.count < 2) {
		wlb_fail(error, "no tag is given; add one, for example wlb tag %.60s baseline",
		         request->words.texts[0]);
		return WLB_EXIT_USAGE;
	}
	int found = wlb_run_name_find(request->words.texts[0], name, error);
	if (found != WLB_EXIT_DONE)
		return found;
	json_t *reply = send_tags(request, name, error);
	if (reply == NULL)
		return WLB_EXIT_FAILED;
	if (request->json)
		return wlb_json_print_report(reply, error) == 0 ? WLB_EXIT_DONE : WLB_EXIT_FAILED;
	int rc = wlb_make_printable(reply);
	if (rc == 0)
		print_tags(reply);
	else
		wlb_fail(error, "out of memory for the tags");
	json_decref(reply);
	return rc == 0 ? WLB_EXIT_DONE : WLB_EXIT_FAILED;
}

#define FIELD(name) offsetof(struct request, name)

static const struct wlb_option options[] = {
	{WLB_OPTION(LIST, NULL, FIELD(words), "RUN TAG...",
                    "the run, and tags of letters, digits and ._:/=+-, at most 64 characters each"),
         .required = true},
	{WLB_OPTION(FLAG, "remove", FIELD(removes), NULL, "remove these tags instead")},
	{WLB_OPTION(FLAG, "json", FIELD(json), NULL, "the coordinator's reply as it is")},
};

static const struct wlb_option_table table = {
	.command = "wlb tag",
	.about = "Gives a run tags, also one that has ended, and prints all that it has. Only its owner, SlurmUser and "
		 "root "
		 "may. 'wlb runs --tag TAG' lists the runs that have one; a run has 32 at most.",
	.options = options,
	.count = sizeof(options) / sizeof(options[0]),
};

const struct wlb_command wlb_command_tag = {
	.name = "tag",
	.summary = "Give a run tags, or remove them",
	.options = &table,
	.values_bytes = sizeof(struct request),
	.run = tag,
};
