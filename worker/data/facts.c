#include "worker/data/facts.h"

#include <stdlib.h>

#include "common/file.h"
#include "common/show.h"

enum { LARGEST_BYTES = 1 << 16 };

json_t *wlb_facts_read(const char *prefix)
{
	char *path, *text = NULL;
	size_t bytes;
	json_t *facts = NULL;
	if (asprintf(&path, "%s.facts.json", prefix) < 0)
		return NULL;
	if (wlb_file_read(path, LARGEST_BYTES, &text, &bytes, NULL) == 0)
		facts = json_loadb(text, bytes, 0, NULL);
	free(text);
	free(path);
	if (json_is_object(facts))
		return facts;
	json_decref(facts);
	return NULL;
}

/* Writes what was done with a special token, if anything was. */
static const char *name_special(const json_t *facts, const char *is_added, const char *id, const char *format,
                                char text[64])
{
	text[0] = '\0';
	if (json_is_true(json_object_get(facts, is_added)))
		snprintf(text, 64, format, (long long)json_integer_value(json_object_get(facts, id)));
	return text;
}

void wlb_facts_print(const json_t *facts, FILE *to)
{
	const json_t *tokenizer = json_object_get(facts, "tokenizer");
	const char *name = json_string_value(tokenizer), *library = NULL;
	char bos[64], eod[64];
	if (name == NULL) {
		name = json_string_value(json_object_get(tokenizer, "file"));
		library = json_string_value(json_object_get(tokenizer, "library"));
	}
	if (name == NULL)
		return;
	wlb_show_line(to, "tokenizer: %s%s%s, %lld tokens, ids below %lld%s%s", name, library != NULL ? " by " : "",
	              library != NULL ? library : "",
	              (long long)json_integer_value(json_object_get(facts, "vocabulary")),
	              (long long)json_integer_value(json_object_get(facts, "ids_below")),
	              name_special(facts, "prepend_bos", "bos", "; %lld begins a document", bos),
	              name_special(facts, "append_eod", "eod", "; %lld ends a document", eod));
}
