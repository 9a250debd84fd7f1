#include "common/output/csv.h"

#include <stdlib.h>
#include <string.h>

#include "common/output/printable.h"
#include "libwlb/wlb.h"

enum { NAME_BYTES = 64 };

/* The characters with which spreadsheets let a formula begin; those of full width too, in some languages. */
static bool begins_formula(const char *text)
{
	static const uint32_t begins[] = {'=', '+', '-', '@', 0xff1d, 0xff0b, 0xff0d, 0xff20};
	uint32_t code;
	text += strspn(text, " ");
	wlb_text_first(text, strlen(text), &code);
	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		if (*text != '\0' && code == begins[i])
			return true;
	return false;
}

/* In quotes where a reader would otherwise not get the text as it is. */
static void print_cell(const char *text, FILE *out)
{
	size_t length = strlen(text);
	bool has_edge = length > 0 && (text[0] == ' ' || text[length - 1] == ' ');
	if (strpbrk(text, ",\"\r\n") == NULL && !has_edge) {
		fputs(text, out);
		return;
	}
	fputc('"', out);
	for (const char *c = text; *c != '\0'; c++)
		fputs(*c == '"' ? "\"\"" : (char[]){*c, '\0'}, out);
	fputc('"', out);
}

/* The fewest digits from which the number is read again. */
static void write_real(double value, FILE *out)
{
	char text[40] = "";
	for (int digits = 15; digits <= 17 && (digits == 15 || strtod(text, NULL) != value); digits++)
		snprintf(text, sizeof(text), "%.*g", digits, value);
	fputs(text, out);
}

static void write_value(const json_t *value, FILE *out)
{
	size_t i;
	const json_t *element;
	if (json_is_string(value)) {
		fputs(json_string_value(value), out);
	} else if (json_is_real(value)) {
		write_real(json_real_value(value), out);
	} else if (json_is_array(value)) {
		json_array_foreach(value, i, element)
		{
			fputs(i > 0 ? " " : "", out);
			write_value(element, out);
		}
	} else if (value != NULL && !json_is_null(value)) {
		char *text = wlb_printable_json(value, JSON_ENCODE_ANY | JSON_COMPACT); /* names of members, too */
		fputs(text != NULL ? text : "", out);
		free(text);
	}
}

static int print_value(const json_t *value, FILE *out)
{
	char *text = NULL;
	size_t size;
	FILE *memory = open_memstream(&text, &size);
	if (memory == NULL)
		return -1;
	fputc('\'', memory);
	write_value(value, memory);
	int rc = fclose(memory) == 0 ? 0 : -1;
	if (rc == 0)
		print_cell(!json_is_number(value) && begins_formula(text + 1) ? text : text + 1, out);
	free(text);
	return rc;
}

/* The member that "a.b" names; NULL: there is none. */
static const json_t *member(const json_t *object, const char *path)
{
	char name[NAME_BYTES];
	for (const char *dot; (dot = strchr(path, '.')) != NULL; path = dot + 1) {
		snprintf(name, sizeof(name), "%.*s", (int)(dot - path), path);
		object = json_object_get(object, name);
	}
	return json_object_get(object, path);
}

static int print_line(const json_t *row, const char *const *fields, FILE *out)
{
	int rc = 0;
	for (const char *const *field = fields; rc == 0 && *field != NULL; field++) {
		fputs(field != fields ? "," : "", out);
		if (row != NULL)
			rc = print_value(member(row, *field), out);
		else
			print_cell(*field, out);
	}
	fputs("\r\n", out);
	return rc;
}

int wlb_csv_print(json_t *rows, const char *const *fields, bool has_header, FILE *out)
{
	int rc = wlb_make_printable(rows);
	if (rc == 0 && has_header)
		rc = print_line(NULL, fields, out);
	for (size_t i = 0; rc == 0 && i < json_array_size(rows); i++)
		rc = print_line(json_array_get(rows, i), fields, out);
	return rc;
}
