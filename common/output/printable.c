#include "common/output/printable.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int replace_control(json_t *value)
{
	const char *text = json_string_value(value);
	size_t left = json_string_length(value), used = 0;
	char *printable = malloc(left + 1);
	if (printable == NULL)
		return -1;
	for (size_t bytes; left > 0; text += bytes, left -= bytes) {
		uint32_t code;
		bytes = wlb_text_first(text, left, &code);
		bool is_control = wlb_text_is_control(code);
		memcpy(printable + used, is_control ? " " : text, is_control ? 1 : bytes);
		used += is_control ? 1 : bytes;
	}
	int rc = json_string_setn(value, printable, used);
	free(printable);
	return rc;
}

int wlb_make_printable(json_t *value)
{
	const char *key;
	json_t *inner;
	size_t i;
	int rc = 0;
	if (json_is_string(value))
		return replace_control(value);
	json_object_foreach(value, key, inner) rc |= wlb_make_printable(inner);
	json_array_foreach(value, i, inner) rc |= wlb_make_printable(inner);
	return rc;
}

/* Above U+FFFF, JSON has a pair of surrogates. */
static void print_escaped(uint32_t code, FILE *out)
{
	if (code > 0xffff) {
		fprintf(out, "\\u%04X", (unsigned)(0xd800 + ((code - 0x10000) >> 10)));
		code = 0xdc00 + ((code - 0x10000) & 0x3ff);
	}
	fprintf(out, "\\u%04X", (unsigned)code);
}

/* `text` is JSON, of which all but ASCII is in strings. */
static void print(const char *text, FILE *out)
{
	for (size_t left = strlen(text), bytes; left > 0; text += bytes, left -= bytes) {
		uint32_t code;
		bytes = wlb_text_first(text, left, &code);
		if (code != '\n' && wlb_text_is_control(code))
			print_escaped(code, out);
		else
			fwrite(text, 1, bytes, out);
	}
}

char *wlb_printable_json(const json_t *value, size_t flags)
{
	char *text = json_dumps(value, flags | JSON_PRESERVE_ORDER), *printable = NULL;
	size_t size;
	FILE *out = text != NULL ? open_memstream(&printable, &size) : NULL;
	if (out != NULL)
		print(text, out);
	free(text);
	if (out == NULL || fclose(out) == 0)
		return printable;
	free(printable);
	return NULL;
}

int wlb_json_print(const json_t *value)
{
	char *text = wlb_printable_json(value, JSON_INDENT(2));
	int rc = text != NULL ? puts(text) : EOF;
	free(text);
	return rc == EOF ? -1 : 0;
}

int wlb_json_print_report(json_t *report, struct wlb_error *error)
{
	if (report == NULL)
		return wlb_fail(error, "out of memory for the report");
	int rc = wlb_json_print(report);
	json_decref(report);
	return rc == 0 ? 0 : wlb_fail(error, "the report cannot be written to standard output");
}
