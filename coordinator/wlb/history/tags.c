#include "coordinator/wlb/history/tags.h"

#include "common/output/terminal.h"
#include "common/output/wrap.h"
#include "coordinator/wlb/output/reply_fields.h"
#include "coordinator/wlb/output/time_format.h"

enum { NOTE_INDENT = 4 };

void wlb_show_tags(const json_t *run, FILE *out)
{
	const json_t *tags = json_object_get(run, "tags"), *notes = json_object_get(run, "notes"), *entry;
	size_t i;
	if (json_array_size(tags) > 0)
		fputs("  tags:", out);
	json_array_foreach(tags, i, entry) fprintf(out, " %s", json_string_value(entry));
	if (json_array_size(tags) > 0)
		fputc('\n', out);
	json_array_foreach(notes, i, entry)
	{
		char when[32], number[32];
		wlb_time_format(wlb_time_parse(wlb_field_text(entry, "time", NULL)), when, sizeof(when));
		wlb_field_number(entry, "number", number, sizeof(number));
		fprintf(out, "  note %s of %s, %s:\n", number, wlb_field_text(entry, "by", "?"), when);
		wlb_wrap_print(wlb_field_text(entry, "note", ""), NOTE_INDENT, wlb_terminal_columns(), out);
	}
}
