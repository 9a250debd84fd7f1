/* wlb note: writes and removes notes on a run. */
#include <stdio.h>

#include "common/output/printable.h"
#include "coordinator/wlb/api.h"
#include "coordinator/wlb/commands.h"
#include "coordinator/wlb/run_name.h"

enum { NOTE_NUMBER_MAX = 1000000 };

struct request {
	struct wlb_option_list words; /* RUN and then the text */
	int removed;
	bool json;
};

/* Returns the body of the request; NULL with the reason. */
static json_t *body_of(const struct request *request, struct wlb_error *error)
{
	bool has_text = request->words.count == 2;
	if (request->words.count > 2) {
		wlb_fail(error, "'%.60s': the text must be one word of the command line; put quotes around it",
		         request->words.texts[2]);
		return NULL;
	}
	if (has_text == (request->removed > 0)) {
		wlb_fail(error,
		         "needs either a text or --remove N, for example wlb note %.60s 'half the learning rate'",
		         request->words.texts[0]);
		return NULL;
	}
	json_t *body = has_text ? json_pack("{s:s}", "add", request->words.texts[1])
	                        : json_pack("{s:i}", "remove", request->removed);
	if (body == NULL)
		wlb_fail(error, "the text must be UTF-8");
	return body;
}

static int print_reply(json_t *reply, bool as_json, bool removed, struct wlb_error *error)
{
	if (as_json)
		return wlb_json_print_report(reply, error);
	size_t count = json_array_size(json_object_get(reply, "notes"));
	const json_t *last = json_array_get(json_object_get(reply, "notes"), count - 1);
	const char *run = json_string_value(json_object_get(reply, "run_id"));
	if (removed)
		printf("run %s: the note is removed\n", run);
	else
		printf("run %s: note %lld is written\n", run,
		       (long long)json_integer_value(json_object_get(last, "number")));
	json_decref(reply);
	return 0;
}

static int note(void *values, struct wlb_error *error)
{
	const struct request *request = values;
	char name[WLB_RUN_NAME_BYTES], path[128];
	json_t *body = body_of(request, error);
	if (body == NULL)
		return WLB_EXIT_USAGE;
	int found = wlb_run_name_find(request->words.texts[0], name, error);
	json_t *reply = NULL;
	if (found == WLB_EXIT_DONE) {
		snprintf(path, sizeof(path), "/v1/runs/%s/notes", name);
		reply = wlb_api_post(path, body, error);
	}
	json_decref(body);
	if (found != WLB_EXIT_DONE)
		return found;
	if (reply == NULL)
		return WLB_EXIT_FAILED;
	return print_reply(reply, request->json, request->removed > 0, error) == 0 ? WLB_EXIT_DONE : WLB_EXIT_FAILED;
}

#define FIELD(name) offsetof(struct request, name)

static const struct wlb_option options[] = {
	{WLB_OPTION(LIST, NULL, FIELD(words), "RUN [TEXT]", "the run, and the note in quotes, at most 4,096 bytes"),
         .required = true},
	{WLB_OPTION(INT, "remove", FIELD(removed), "N", "remove note N instead, as wlb show numbers them"), .min = 1,
         .max = NOTE_NUMBER_MAX},
	{WLB_OPTION(FLAG, "json", FIELD(json), NULL, "the coordinator's reply as it is")},
};

static const struct wlb_option_table table = {
	.command = "wlb note",
	.about = "Writes a note on a run, also one that has ended. Only its owner, SlurmUser and root may. 'wlb show "
		 "RUN' "
		 "has the notes with their authors; a run has 100 at most.",
	.options = options,
	.count = sizeof(options) / sizeof(options[0]),
};

const struct wlb_command wlb_command_note = {
	.name = "note",
	.summary = "Write a note on a run, or remove one",
	.options = &table,
	.values_bytes = sizeof(struct request),
	.run = note,
};
