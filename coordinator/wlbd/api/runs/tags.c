/* POST /v1/runs/RUN/tags and /notes: its owner, or an administrator, describes a run, also one that has ended. */
#include <stdlib.h>
#include <string.h>

#include "coordinator/wlbd/api/handlers.h"
#include "coordinator/wlbd/api/run_change.h"
#include "coordinator/wlbd/http/fields.h"
#include "coordinator/wlbd/http/long_reply.h"
#include "coordinator/wlbd/http/reply.h"
#include "coordinator/wlbd/wlbd.h"

enum {
	TAGS_MAX = 32, /* of a run; the schema counts them */
	TAG_MAX = 64,
	NOTE_NUMBER_MAX = INT32_MAX,
};

/* As the check of the table, which would answer without these words. */
static int check_tag(const char *tag, struct wlb_error *error)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
	static const char all[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:/=+-";
	size_t length = strlen(tag);
	if (length > TAG_MAX || strspn(tag, all) != length || strspn(tag, letters) == 0)
		return wlb_fail(
			error,
			"tag '%.80s': must have 1 to %d letters, digits and ._:/=+-, and begin with a letter or a "
			"digit",
			tag, TAG_MAX);
	return 0;
}

/* Writes the list as JSON, which the caller frees; an absent field is an empty list. */
static char *read_tags(const json_t *body, const char *name, struct wlb_error *error)
{
	const json_t *tags = NULL;
	if (wlbd_field_names(body, name, WLBD_OPTIONAL, TAGS_MAX, &tags, error) != 0)
		return NULL;
	for (size_t i = 0; i < json_array_size(tags); i++)
		if (check_tag(json_string_value(json_array_get(tags, i)), error) != 0)
			return NULL;
	char *text = tags != NULL ? json_dumps(tags, JSON_COMPACT) : strdup("[]");
	if (text == NULL)
		wlb_fail(error, "out of memory");
	return text;
}

/* The parameters that both statements begin with. */
static void add_asker(struct wlbd_params *params, const struct wlbd_request *request)
{
	wlbd_params_add_text(params, request->run);
	wlbd_params_add_integer_if(params, !wlbd_request_privileged(request), request->uid);
	wlbd_params_add_integer(params, request->uid);
}

static void change(struct wlbd_request *request, const char *sql, const struct wlbd_params *params)
{
	wlbd_run_change(request->wlbd, request->uid, wlbd_run_job_id(request->run), sql, params, wlbd_request_reply_db,
	                request);
}

void wlbd_post_tags(struct wlbd_request *request)
{
	struct wlb_error error = {0};
	struct wlbd_params params = {0};
	char *added = read_tags(request->body, "add", &error);
	char *removed = added != NULL ? read_tags(request->body, "remove", &error) : NULL;
	if (removed == NULL) {
		wlbd_request_fail(request, 400, "%s", error.message);
	} else {
		add_asker(&params, request);
		wlbd_params_add_text(&params, added);
		wlbd_params_add_text(&params, removed);
		change(request, "select wlb_run_tag($1, $2, $3, $4, $5)", &params);
	}
	free(added);
	free(removed);
}

void wlbd_post_notes(struct wlbd_request *request)
{
	struct wlb_error error = {0};
	struct wlbd_params params = {0};
	const char *note = NULL;
	int64_t removed = 0; /* none */
	if (wlbd_field_text(request->body, "add", WLBD_OPTIONAL, WLBD_TEXT_MAX, &note, &error) != 0 ||
	    wlbd_field_integer(request->body, "remove", WLBD_OPTIONAL, 1, NOTE_NUMBER_MAX, &removed, &error) != 0) {
		wlbd_request_fail(request, 400, "%s", error.message);
		return;
	}
	if ((note == NULL || *note == '\0') && removed == 0) {
		wlbd_request_fail(request, 400, "neither 'add' has a text nor 'remove' the number of a note");
		return;
	}
	add_asker(&params, request);
	wlbd_params_add_text(&params, note);
	wlbd_params_add_integer_if(&params, removed > 0, removed);
	change(request, "select wlb_run_note($1, $2, $3, $4, $5)", &params);
}
