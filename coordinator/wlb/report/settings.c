#include "coordinator/wlb/report/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/wlb/output/reply_fields.h"
#include "libwlb/wlb.h"

enum { SETTINGS_MAX = 200, NAME_BYTES = 128, VALUE_BYTES = 256 };

static int add_text(json_t *settings, const char *name, const char *text)
{
	if (json_array_size(settings) >= SETTINGS_MAX)
		return 0;
	return json_array_append_new(settings, json_pack("[s, s]", name, text));
}

/* A text without quotes, anything else as JSON. A long one is cut between characters; a setting that is absent or null
 * is not listed. */
static int add(json_t *settings, const char *prefix, const char *key, const json_t *value)
{
	char name[NAME_BYTES], text[VALUE_BYTES];
	if (value == NULL || json_is_null(value))
		return 0;
	char *json = json_is_string(value) ? NULL
	                                   : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(7));
	const char *whole = json_is_string(value) ? json_string_value(value) : json;
	int rc = whole != NULL ? 0 : -1;
	if (rc == 0) {
		wlb_text_format(name, sizeof(name), "%s%s", prefix, key);
		wlb_text_show(text, sizeof(text), whole);
		rc = add_text(settings, name, text);
	}
	free(json);
	return rc;
}

static int add_object(json_t *settings, const char *prefix, const json_t *object)
{
	const char *key;
	json_t *value;
	int rc = 0;
	json_object_foreach((json_t *)object, key, value) rc |= add(settings, prefix, key, value);
	return rc;
}

static int add_attempt(json_t *settings, const json_t *run)
{
	const json_t *attempts = json_object_get(run, "attempts");
	const json_t *last = json_array_get(attempts, json_array_size(attempts) - 1);
	char layout[64], nodes[VALUE_BYTES];
	if (last == NULL)
		return 0;
	wlb_field_layout(last, layout, sizeof(layout));
	wlb_field_nodes(last, nodes, sizeof(nodes));
	return add_text(settings, "layout", layout) | add_text(settings, "nodes", nodes) |
	       add(settings, "", "ranks", json_object_get(last, "world_size")) |
	       add(settings, "", "device", json_object_get(last, "device")) |
	       add(settings, "", "dtype", json_object_get(last, "dtype"));
}

json_t *wlb_report_settings(const json_t *run)
{
	static const char *const keys[] = {"job_name",          "user",        "account", "cluster", "seq_length",
	                                   "global_batch_size", "train_iters", "on_fault"};
	json_t *settings = json_array();
	int rc = settings != NULL ? 0 : -1;
	for (size_t i = 0; rc == 0 && i < sizeof(keys) / sizeof(keys[0]); i++)
		rc = add(settings, "", keys[i], json_object_get(run, keys[i]));
	if (rc == 0)
		rc = add_attempt(settings, run) | add_object(settings, "policy.", json_object_get(run, "policy")) |
		     add_object(settings, "model.", json_object_get(run, "model"));
	if (rc == 0)
		return settings;
	json_decref(settings);
	return NULL;
}
